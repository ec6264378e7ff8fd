"""Formats that are made of a chat template: their options and encodings, and fitting."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from bytepair_engine import EncodingSpec, extend_encoding, get_encoding, load_encoding
from bytepair_engine.chat import (
    BadTemplate,
    ChatFormatMismatch,
    ChatOptions,
    InvalidChat,
    count_chat,
    encode_chat,
    fit_chat,
)
from bytepair_engine.chat.templates import TemplateFormat, load_template
from bytepair_engine.chat.templates.format import MAX_SOURCE
from bytepair_engine.errors import InvalidOption
from support.chat_templates import CHATML, ENCODING, controls
from support.chats import ADVERSARIAL, Odd, encoding_for


def test_a_template_renders_the_same_as_the_hand_written_format() -> None:
    chat = [
        {"role": role, "content": text} for text in ADVERSARIAL for role in ("user", "assistant")
    ]
    given_chat: Any = {"encoding": encoding_for("chatml"), "disallowed_special": ()}
    by_hand = encode_chat(chat, format="chatml", **given_chat)
    found = encode_chat(chat, format=TemplateFormat("mine", CHATML), **given_chat)
    assert found.ids == by_hand.ids
    assert found.message_spans == by_hand.message_spans


def test_fitting_counts_the_kept_messages() -> None:
    chosen = TemplateFormat("mine", CHATML)
    chat = [{"role": ("user", "assistant")[n % 2], "content": "word " * n} for n in range(30)]
    encoding = encoding_for("chatml")
    found = fit_chat(chat, 200, encoding=encoding, format=chosen)
    kept = count_chat([chat[n] for n in found.kept], encoding=encoding, format=chosen)
    assert found.count == kept.count <= 200
    by_hand = fit_chat(chat, 200, encoding=encoding, format="chatml")
    assert found.kept == by_hand.kept


def test_templates_see_the_date_of_the_request() -> None:
    chosen = TemplateFormat("mine", "{{ strftime_now('%d %b %Y') }}")
    chat = [{"role": "user", "content": ""}]
    with pytest.raises(InvalidOption):
        count_chat(chat, encoding=ENCODING, format=chosen)
    options = ChatOptions(current_date="2026-11-24")
    found = encode_chat(chat, encoding=ENCODING, format=chosen, options=options)
    assert found.segments == ["24 Nov 2026"]
    for wrong in ("2026-02-29", "2026-13-01", "20261124", "2026-W48-2"):
        with pytest.raises(InvalidOption, match="must be a date"):
            ChatOptions(current_date=wrong)
    clock = TemplateFormat("mine", "{{ strftime_now('%H:%M') }}")
    with pytest.raises(InvalidChat, match="time"):
        count_chat(chat, encoding=ENCODING, format=clock, options=options)


def test_only_declared_options_and_encodings_are_accepted() -> None:
    template = "{% if think %}<c>{% endif %}{{ messages[0].content }}"
    chosen = TemplateFormat("mine", template, options={"think": ("true", "false")}, encodings=["t"])
    chat = [{"role": "user", "content": "x"}]
    for value, expected in (("true", 1), ("false", 0)):
        options = ChatOptions(format_options={"think": value})
        found = encode_chat(chat, encoding=ENCODING, format=chosen, options=options)
        assert controls(found.segments) == expected
    with pytest.raises(InvalidOption):
        count_chat(
            chat,
            encoding=ENCODING,
            format=chosen,
            options=ChatOptions(format_options={"think": "<c>"}),
        )
    with pytest.raises(ChatFormatMismatch):
        count_chat(chat, encoding=get_encoding("o200k_base"), format=chosen)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "missing"),
    [
        (CHATML, ("<|im_end|>", "<|im_start|>")),
        ("{{ messages[0].content }}<|{{ messages[0].role }}|>", ("<|user|>",)),
        ("{% for m in messages %}<start_of_turn>{{ m.content }}{% endfor %}", ("<start_of_turn>",)),
        ("{{ bos_token }}<|endoftext|>", ("[B]",)),
        ("<｜User｜>{# <|x|> #}{{ '<|y|>' if messages[0].name }}", ("<｜User｜>",)),
    ],
)
def test_an_encoding_without_the_tokens_of_the_template_is_rejected(
    template: str, missing: tuple[str, ...]
) -> None:
    """Otherwise they would be counted as text. The operator may name encodings for which they are
    text."""
    base = get_encoding("o200k_base")
    chat = [{"role": "user", "content": "<|z|>[B]"}]
    given: dict[str, Any] = {"variables": {"bos_token": "[B]", "pad_token": "[P]"}}
    chosen = TemplateFormat("mine", template, **given)
    for call in (count_chat, encode_chat, partial(fit_chat, max_tokens=99)):
        with pytest.raises(ChatFormatMismatch) as rejected:
            call(chat, encoding=base, format=chosen)
        assert rejected.value.missing == missing
    with pytest.raises(ChatFormatMismatch):
        chosen.check_encoding(base)
    has_tokens = extend_encoding(base, missing, name="has")
    count = count_chat(chat, encoding=has_tokens, format=chosen).count
    named = TemplateFormat("mine", template, **given, encodings=["o200k_base"])
    assert count_chat(chat, encoding=base, format=named).count > count


def test_a_token_that_only_some_chats_have_is_needed_for_these() -> None:
    chosen = TemplateFormat("mine", "{{ '<|tools|>' if tools }}{{ messages[0].content }}")
    base = get_encoding("o200k_base")
    chat = [{"role": "user", "content": "hi"}]
    chosen.check_encoding(base)
    assert count_chat(chat, encoding=base, format=chosen).count == 1
    with pytest.raises(ChatFormatMismatch):
        count_chat(chat, encoding=base, format=chosen, tools=[{"name": "f"}])


def test_the_value_of_an_option_may_be_of_a_subclass_of_str() -> None:
    chosen = TemplateFormat("mine", "{{ mode }}", options={"mode": ("a", "b")}, encodings=["t"])
    options = ChatOptions(format_options={"mode": Odd("b")})
    found = encode_chat([], encoding=ENCODING, format=chosen, options=options)
    assert found.segments == ["b"]


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"encodings": "cl100k_base"}, "encodings"),
        ({"options": {"think": "true"}}, "options.think"),
        ({"options": {"think": []}}, "options.think"),
    ],
)
def test_one_string_is_no_list_of_names(given: dict[str, Any], option: str, tmp_path: Any) -> None:
    file = tmp_path / "template.jinja"
    file.write_text("x")
    with pytest.raises(InvalidOption) as caught:
        TemplateFormat("mine", "x", **given)
    assert caught.value.option == option
    with pytest.raises(InvalidOption):
        load_template("mine", file, **given)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("x" * (MAX_SOURCE + 1), "more than 262144 characters"),
        ("{{ " + "(" * 3000 + ")" * 3000 + " }}", "RecursionError"),
        ("{{ " + "1" * 5000 + " }}", "ValueError"),
        ("{% macro f(a, a) %}{% endmacro %}", "SyntaxError"),
    ],
    ids=["long", "deep", "a long number", "two arguments of one name"],
)
def test_a_template_that_cannot_be_compiled_is_rejected(template: str, problem: str) -> None:
    with pytest.raises(BadTemplate, match=problem):
        TemplateFormat("mine", template)
    assert TemplateFormat("mine", "x" * MAX_SOURCE)


@pytest.mark.parametrize("field", [".reasoning_content", "['reasoning_content']"])
def test_a_template_supports_the_fields_that_it_reads(field: str) -> None:
    chat = [{"role": "assistant", "content": "x", "reasoning": "why"}]
    chosen = TemplateFormat("mine", "{{ messages[0]" + field + " }}")
    assert encode_chat(chat, encoding=ENCODING, format=chosen).segments == ["why"]
    with pytest.raises(InvalidChat, match="field_not_supported"):
        encode_chat(chat, encoding=ENCODING, format=TemplateFormat("mine", CHATML))


def test_a_template_that_reads_calls_accepts_the_ids_of_results() -> None:
    chat = [{"role": "tool", "content": "x", "tool_call_id": "1"}]
    chosen = TemplateFormat("mine", "{{ messages[0].tool_calls }}{{ messages[0].content }}")
    assert encode_chat(chat, encoding=ENCODING, format=chosen).segments == ["x"]
    with pytest.raises(InvalidChat, match="field_not_supported"):
        encode_chat(chat, encoding=ENCODING, format=TemplateFormat("mine", CHATML))


CALLS = [
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a": 2}'}},
                       {"function": {"name": "g", "arguments": "{}"}}],
    }
]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "arguments", "expected"),
    [
        ("tools is none", "object", "True"),
        ("messages[0].content is none", "object", "True"),
        ("messages[0].tool_calls[0].id", "object", "1"),
        ("messages[0].tool_calls[1].id is defined", "object", "False"),
        ("messages[0].tool_calls[0].function.arguments.a + 1", "object", "3"),
        ("messages[0].tool_calls[0].function.arguments", "text", '{"a": 2}'),
    ],
)
def test_a_template_sees_what_the_request_has(
    expression: str, arguments: Any, expected: str
) -> None:
    template = "{% set calls = messages[0].tool_calls %}{{ " + expression + " }}"
    chosen = TemplateFormat("mine", template, arguments=arguments)
    assert encode_chat(CALLS, encoding=ENCODING, format=chosen).segments == [expected]


def test_variables_in_lists_and_tables_are_text_of_the_template() -> None:
    given_variables = {"many": ["<c>"], "named": {"a": "<c>", "number": 1}}
    template = "{{ many[0] }}{{ named.a }}{{ named.number }}{{ messages[0].content }}"
    chosen = TemplateFormat("mine", template, variables=given_variables)
    chat = [{"role": "user", "content": "<c>"}]
    found = encode_chat(chat, encoding=ENCODING, format=chosen, disallowed_special=())
    assert [str(segment) for segment in found.segments] == [*["Control('<c>')"] * 2, "1<c>"]


def test_tools_have_their_own_count() -> None:
    template = "{% for tool in tools %}<c>{{ tool.function.name }}{% endfor %}<c>"
    chosen = TemplateFormat("mine", template)
    chat, tools = [{"role": "user", "content": ""}], [{"name": "a"}, {"name": "b"}]
    counted = count_chat(chat, encoding=ENCODING, format=chosen, tools=tools)
    assert (counted.tools_count, counted.message_counts, counted.frame_count) == (4, (0,), 1)


def test_what_templates_cannot_render_is_rejected() -> None:
    chosen = TemplateFormat("mine", "{{ messages[0].content }}")
    given_chat: Any = {"encoding": ENCODING, "format": chosen}
    options = ChatOptions(continue_final_message=True)
    with pytest.raises(InvalidOption, match="continue_final_message"):
        count_chat([{"role": "assistant", "content": "x"}], **given_chat, options=options)
    counted = [{"type": "counted_tokens", "tokens": 1}]
    with pytest.raises(InvalidChat, match="part_not_supported; this format cannot place"):
        count_chat([{"role": "user", "content": counted}], **given_chat)


@pytest.mark.parametrize(
    ("before", "counts", "spans"),
    [
        # The token ` cd` is in two messages, and belongs to the first of them.
        ("", (2, 1, 0, 2), [(0, 2), (2, 3), (3, 3), (3, 5)]),
        ("<c>", (3, 2, 1, 4), [(0, 3), (3, 5), (5, 6), (6, 10)]),
    ],
)
def test_each_message_has_its_tokens(
    before: str, counts: tuple[int, ...], spans: list[tuple[int, int]]
) -> None:
    template = "{% for m in messages %}" + before + "{{ m.content }}{% endfor %}"
    chat = [{"role": "user", "content": text} for text in ("a b", " c", "", "d e f")]
    given_chat: Any = {"encoding": ENCODING, "format": TemplateFormat("mine", template)}
    assert count_chat(chat, **given_chat).message_counts == counts
    found = encode_chat(chat, **given_chat)
    assert found.message_spans == spans
    assert "" not in found.segments


@pytest.mark.parametrize(
    ("written", "flags", "pre_tokenizer", "missing"),
    [
        ("<c>", {"special": False}, None, ("<c>",)),
        ("<c>", {"rstrip": True}, None, ()),
        ("<c>", {"lstrip": True}, None, ()),
        ("<c>", {"single_word": True}, None, ()),
        ("<c>", {}, "first", ()),
        ("{{ '<' ~ 'c>' }}", {"rstrip": True}, None, ()),
        ("{{ c }}", {"special": False}, None, ("<c>",)),
        ("{% if false %}<c>{% endif %}", {"rstrip": True}, None, ()),
    ],
)
def test_an_encoding_that_gives_a_rendered_string_other_ids_is_rejected(
    tmp_path: Any,
    written: str,
    flags: dict[str, bool],
    pre_tokenizer: str | None,
    missing: tuple[str, ...],
) -> None:
    def encoding(flags: dict[str, bool], scheme: str | None) -> Any:
        token = {"id": 2, "content": "<c>", "special": True, "single_word": False,
                 "lstrip": False, "rstrip": False, "normalized": False} | flags  # fmt: skip
        spaces = scheme and {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme,
                             "split": False}  # fmt: skip
        vocab = {"a": 0, "b": 1, "<c>": 2, "▁": 3, "\n": 4, "<d>": 5}
        # Every template has white space, and none has this other control token.
        space = {**token, "id": 4, "content": "\n", "special": False}
        other = {**token, "id": 5, "content": "<d>", "special": True, "lstrip": True}
        model = {"type": "BPE", "vocab": vocab, "merges": [], "unk_token": "b"}
        file = tmp_path / "tokenizer.json"
        file.write_text(
            json.dumps(
                {"added_tokens": [token, space, other], "model": model, "pre_tokenizer": spaces}
            )
        )
        return load_encoding(EncodingSpec(name="small", file=file))

    chosen = TemplateFormat(
        "mine",
        written + "{{ messages[0].content }}\n",
        variables={"c": "<c>"} if written == "{{ c }}" else {},
    )
    chat = [{"role": "user", "content": "ab"}]
    assert encode_chat(chat, encoding=encoding({}, None), format=chosen).ids[-2:] == [0, 1]
    with pytest.raises(ChatFormatMismatch) as rejected:
        count_chat(chat, encoding=encoding(flags, pre_tokenizer), format=chosen)
    assert rejected.value.missing == missing


@pytest.mark.parametrize("budget", [2, 40, 100, 399])
def test_fitting_is_exact_for_templates_without_a_loop_over_messages(budget: int) -> None:
    chosen = TemplateFormat("mine", "{{ messages | map(attribute='content') | join(' ') }}")
    chat = [{"role": "user", "content": "word " * (n % 7)} for n in range(100)]

    def count(start: int) -> int:
        return count_chat(chat[start:], encoding=ENCODING, format=chosen).count

    found = fit_chat(chat, budget, encoding=ENCODING, format=chosen)
    start = found.kept[0]
    assert found.kept == list(range(start, 100))
    assert found.count == count(start) <= budget
    assert start == 0 or count(start - 1) > budget
