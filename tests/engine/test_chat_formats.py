"""Chat formats against published cases: openai/harmony's own, and the cookbook's counts."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import get_encoding
from bytepair_engine.chat import (
    ChatFormatMismatch,
    ChatOptions,
    UnknownChatFormat,
    count_chat,
    encode_chat,
    fit_chat,
    get_chat_format,
    list_chat_formats,
)
from bytepair_engine.chat.messages import Message, read_messages
from bytepair_engine.errors import InvalidOption
from support.chats import encoding_for

HARMONY = json.loads((Path(__file__).parents[1] / "vectors" / "chat" / "harmony.json").read_text())[
    "cases"
]

#: The conversation and the tool of openai/openai-cookbook's notebook on counting (MIT).
COOKBOOK = [
    {"role": "system", "content": "You are a helpful, pattern-following assistant that translates "
     "corporate jargon into plain English."},
    {"role": "system", "name": "example_user", "content": "New synergies will help drive top-line "
     "growth."},
    {"role": "system", "name": "example_assistant", "content": "Things working well together will "
     "increase revenue."},
    {"role": "system", "name": "example_user", "content": "Let's circle back when we have more "
     "bandwidth to touch base on opportunities for increased leverage."},
    {"role": "system", "name": "example_assistant", "content": "Let's talk later when we're less "
     "busy about how to do better."},
    {"role": "user", "content": "This late pivot means we don't have time to boil the ocean for "
     "the client deliverable."},
]  # fmt: skip
COOKBOOK_TOOL = {
    "type": "function",
    "function": {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {
                    "type": "string",
                    "description": "The city and state, e.g. San Francisco, CA",
                },
                "unit": {
                    "type": "string",
                    "description": "The unit of temperature to return",
                    "enum": ["celsius", "fahrenheit"],
                },
            },
            "required": ["location"],
        },
    },
}
COOKBOOK_ASKED = [
    {"role": "system", "content": "You are a helpful assistant that can answer to questions about "
     "the weather."},
    {"role": "user", "content": "What's the weather like in San Francisco?"},
]  # fmt: skip


@pytest.mark.parametrize("case", HARMONY, ids=lambda case: case["name"])
def test_harmony_renders_its_own_cases(case: dict[str, Any]) -> None:
    encoding = get_encoding("o200k_harmony")
    options = ChatOptions(past_reasoning=case["past_reasoning"])
    found = encode_chat(case["messages"], encoding=encoding, format="harmony", options=options)
    assert encoding.decode(found.ids) == case["text"]
    assert found.ids == encoding.encode(case["text"], allowed_special="all")


def test_harmony_renders_tools_in_the_developer_message() -> None:
    encoding = get_encoding("o200k_harmony")
    (case,) = (c for c in HARMONY if c["name"] == "test_render_functions_with_parameters")
    system, developer, user = json.loads(json.dumps(case["messages"]))
    tools = developer["content"][0].pop("tools")["functions"]["tools"]
    found = encode_chat([system, developer, user], encoding=encoding, format="harmony", tools=tools)
    assert encoding.decode(found.ids) == case["text"]


def test_harmony_writes_openai_calls_as_messages() -> None:
    encoding = get_encoding("o200k_harmony")
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat: list[dict[str, Any]] = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "reasoning": "hm", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "r"},
    ]
    found = encode_chat(chat, encoding=encoding, format="harmony")
    assert encoding.decode(found.ids) == (
        "<|start|>user<|message|>q<|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>hm<|end|>"
        "<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}"
        "<|call|><|start|>functions.f to=assistant<|channel|>commentary<|message|>r<|end|>"
        "<|start|>assistant"
    )


@pytest.mark.parametrize("content", [[], ()])
def test_content_without_parts_counts_as_absent(content: Any) -> None:
    """As in the service, whose messages cannot tell the two apart."""

    def count(content: Any) -> int:
        call = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
        chat = [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": content, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "r"},
        ]
        return count_chat(chat, encoding=get_encoding("o200k_harmony"), format="harmony").count

    assert count(content) == count(None)
    assert read_messages([{"role": "user", "content": content}]) == (Message("user"),)


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ("keep", "abc"),
        ("default", "bc"),
        ("before_first_final", "bc"),
        ("before_last_final_if_answered", "c"),
        ("before_last_final", "c"),
    ],
)
@pytest.mark.parametrize("answered", [True, False])
def test_harmony_drops_past_analysis_as_requested(rule: Any, kept: str, answered: bool) -> None:
    encoding = get_encoding("o200k_harmony")
    said = [("a", "analysis"), ("1", "final"), ("b", "analysis"), ("2", "final")]
    said += [("c", "analysis")] if not answered else []
    chat = [{"role": "assistant", "content": text, "channel": channel} for text, channel in said]
    found = encode_chat(
        chat, encoding=encoding, format="harmony", options=ChatOptions(past_reasoning=rule)
    )
    text = encoding.decode(found.ids)
    seen = "".join(x for x in "abc" if f"analysis<|message|>{x}<" in text)
    if answered:
        assert seen == kept.replace("c", "")
    else:
        assert seen == (kept if rule in ("keep", "before_last_final") else "abc")


@pytest.mark.parametrize(("encoding", "count"), [("cl100k_base", 129), ("o200k_base", 124)])
def test_cookbook_messages_are_counted_exactly(encoding: str, count: int) -> None:
    found = count_chat(COOKBOOK, encoding=get_encoding(encoding), format="openai-chat")
    assert (found.count, found.accuracy) == (count, "exact")


def test_openai_chat_is_for_the_models_of_its_rule() -> None:
    chosen = get_chat_format("openai-chat")
    for model in ("cl100k_base", "gpt-4", "gpt-3.5-turbo-0125", "gpt-35-turbo-16k", "ft:gpt-4o:a"):
        assert chosen.is_for(model), model
    for model in (
        "gpt-3.5-turbo-0301",
        "gpt-35-turbo-instruct",
        "gpt-4o-mini-tts",
        "gpt-5",
        "mine",
    ):
        assert not chosen.is_for(model), model


@pytest.mark.parametrize(("encoding", "count"), [("cl100k_base", 105), ("o200k_base", 101)])
def test_cookbook_tools_are_an_estimate(encoding: str, count: int) -> None:
    found = count_chat(
        COOKBOOK_ASKED,
        encoding=get_encoding(encoding),
        format="openai-chat",
        tools=[COOKBOOK_TOOL],
    )
    assert (found.count, found.accuracy) == (count, "estimate")


@pytest.mark.parametrize(
    ("name", "counts", "spans"),
    [
        # <s>, then [INST] of the user, 4 ids of the system, 2 of the user, [/INST] of the user
        ("mistral-v3", (4, 4), [(2, 6), (1, 9)]),
        ("gemma", (4, 7), [(4, 8), (1, 12)]),
    ],
)
def test_a_system_text_inside_a_message_has_its_own_span(
    name: str, counts: tuple[int, ...], spans: list[tuple[int, int]]
) -> None:
    chat = [
        {"role": "system", "content": "You are helpful."},
        {"role": "user", "content": "Hello there"},
    ]
    given_chat: Any = {"encoding": encoding_for(name), "format": name}
    assert count_chat(chat, **given_chat).message_counts == counts
    assert encode_chat(chat, **given_chat).message_spans == spans


def test_qwen3_strips_the_line_breaks_before_the_first_part_with_other_characters() -> None:
    def count(content: Any) -> int:
        chat = [{"role": "user", "content": "q"}, {"role": "assistant", "content": content}]
        return count_chat(chat, encoding=encoding_for("qwen3"), format="qwen3").count

    counted = {"type": "counted_tokens", "tokens": 85}
    assert count(["\n", "\n\nx"]) == count("x")
    assert count(["\n", counted, "x"]) == count([counted, "x"])
    assert count([counted, "\nx"]) > count([counted, "x"])


@pytest.mark.parametrize("name", ["qwen2.5", "qwen3"])
def test_qwen_begins_a_line_for_a_call_after_content_that_the_caller_counted(name: str) -> None:
    chat = [
        {"role": "assistant", "content": None, "tool_calls": [{"name": "f", "arguments": "{}"}]}
    ]
    parts = [{"type": "counted_tokens", "tokens": 85}]
    alone, after = (
        count_chat([{**chat[0], "content": content}], encoding=encoding_for(name), format=name)
        for content in (None, parts)
    )
    assert after.count == alone.count + 85 + 1


@pytest.mark.parametrize("name", ["mistral-v1", "mistral-v2", "mistral-v3", "mistral-v7"])
def test_mistral_joins_the_texts_of_a_system_message_by_empty_lines(name: str) -> None:
    def ids(content: Any) -> list[int]:
        chat = [{"role": "system", "content": content}, {"role": "user", "content": "u"}]
        return encode_chat(chat, encoding=encoding_for(name), format=name).ids

    assert ids(["a", "", "b"]) == ids("a\n\nb")


def test_a_format_that_only_counts_returns_no_ids() -> None:
    with pytest.raises(InvalidOption, match="format"):
        encode_chat(COOKBOOK, encoding=get_encoding("o200k_base"), format="openai-chat")


@pytest.mark.parametrize("name", list_chat_formats())
def test_a_format_rejects_an_encoding_without_its_tokens(name: str) -> None:
    chosen = get_chat_format(name)
    if not chosen.controls <= {"<s>", "</s>"}:
        with pytest.raises(ChatFormatMismatch) as rejected:
            count_chat([], encoding=get_encoding("r50k_base"), format=name)
        assert set(rejected.value.missing) == chosen.controls


def test_the_format_of_hosted_models_rejects_the_encoding_of_models_that_are_not() -> None:
    """An exact count of a gpt-oss chat by the rule of another model would be wrong."""
    with pytest.raises(ChatFormatMismatch):
        count_chat(COOKBOOK, encoding=get_encoding("o200k_harmony"), format="openai-chat")


def test_there_is_no_fallback_format() -> None:
    with pytest.raises(UnknownChatFormat) as rejected:
        count_chat([], encoding=get_encoding("o200k_base"), format="gpt-9")
    assert rejected.value.known == tuple(list_chat_formats())
    with pytest.raises(UnknownChatFormat, match=r"the nearest known: openai-chat$"):
        get_chat_format("OpenAI_Chat")


@pytest.mark.parametrize(
    ("argument", "other"),
    [
        ("messages", "hello"),
        ("messages", {"role": "user", "content": "hello"}),
        ("encoding", "o200k_base"),
        ("format", None),
        ("tools", 5),
        ("tools", {"type": "function"}),
        ("options", {"current_date": "2026-11-23"}),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(argument: str, other: Any) -> None:
    arguments: dict[str, Any] = {
        "messages": [],
        "encoding": get_encoding("o200k_base"),
        "format": "openai-chat",
    }
    for call in (count_chat, encode_chat, partial(fit_chat, max_tokens=10)):
        with pytest.raises(TypeError, match=f"^{argument} must be .*, not {type(other).__name__}$"):
            call(**arguments | {argument: other})
    fitting: dict[str, Any] = {"max_tokens": 1.5, "pinned": 5, "refill_percent": "1"}
    for name, value in fitting.items():
        with pytest.raises(TypeError, match=f"^{name} must be "):
            fit_chat(**arguments | {"max_tokens": 10, name: value})


def test_formats_have_different_fingerprints() -> None:
    prints = {get_chat_format(name).fingerprint for name in list_chat_formats()}
    assert len(prints) == len(list_chat_formats())
    assert all(p.startswith("sha256:") and len(p) == 71 for p in prints)
