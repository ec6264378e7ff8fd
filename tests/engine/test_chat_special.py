"""Special tokens in texts of chats: the error names the message, and the place in its content."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import pytest
from bytepair_engine import InvalidUnicode, SpecialTokenFound, extend_encoding
from bytepair_engine.chat import (
    ChatFormatMismatch,
    count_chat,
    encode_chat,
    fit_chat,
    get_chat_format,
)
from bytepair_engine.chat.counting import count_texts
from support.chats import encoding_for

TOKEN = "<|endoftext|>"
CALLED = [{"name": "f", "arguments": "{}"}]
CALLS: list[Any] = [
    count_chat,
    partial(count_chat, limit=90),
    encode_chat,
    partial(fit_chat, max_tokens=90),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", ["chatml", "gemma", "llama3", "mistral-v1", "harmony"])
def test_the_error_names_the_message(name: str, call: Any) -> None:
    """The offset is that in the content, also where the format joins it with other texts."""
    chat: Any = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": ["né", f"!{TOKEN}"]},
    ]
    how: Any = {"encoding": encoding_for(name), "format": name, "disallowed_special": "all"}
    with pytest.raises(SpecialTokenFound, match=r"^message 1: content: .* at byte 4; ") as caught:
        call(chat, **how)
    found = caught.value
    assert (found.token, found.byte_offset, found.index) == (TOKEN, 4, 1)
    assert "allowed_special=" not in str(found).replace("disallowed_special=", "")
    assert str(pickle.loads(pickle.dumps(found))) == str(found)
    chat[1]["content"] = ["né", "!\ud800"]
    with pytest.raises(InvalidUnicode, match=r"^message 1: content: lone surrogate at byte 4$"):
        call(chat, **how)


def test_a_message_is_named_by_its_index_in_the_whole_chat() -> None:
    """The format drops the reasoning of the whole chat, and not that of the shortened one."""
    chat = [
        {"role": "user", "content": "word " * 50},
        {"role": "assistant", "channel": "analysis", "content": TOKEN},
        {"role": "assistant", "channel": "final", "content": "b"},
    ]
    how: Any = {"encoding": encoding_for("harmony"), "format": "harmony"}
    with pytest.raises(SpecialTokenFound, match=r"^message 1: "):
        fit_chat(chat, 40, **how, pinned=[1], min_last_turns=0, disallowed_special={TOKEN})


@pytest.mark.parametrize(
    ("message", "tool", "index", "field", "offset"),
    [
        (
            {"tool_calls": [{"name": "é" + TOKEN, "arguments": "{}"}]},
            "",
            1,
            "tool_calls[0].name",
            2,
        ),
        ({"reasoning": TOKEN, "tool_calls": CALLED}, "", 1, "reasoning", 0),
        ({"content": ""}, TOKEN, 1, "tools", 30),
        ({"content": ""}, TOKEN.replace("<", r"\u003c"), 1, "tools", 63),
    ],
)
def test_a_token_outside_content_is_found_by_its_path(
    message: Any, tool: str, index: int, field: str, offset: int
) -> None:
    chat: Any = [{"role": "user", "content": "q"}, {"role": "assistant", **message}]
    tools = ['{"name": "f"}', f'{{"name": "f", "description": "{tool}"}}']
    for call in CALLS:
        with pytest.raises(SpecialTokenFound) as caught:
            call(
                chat,
                encoding=encoding_for("harmony"),
                format="harmony",
                tools=tools,
                disallowed_special="all",
            )
        found = caught.value
        assert (found.index, found.field, found.byte_offset) == (index, field, offset)
        assert "allowed_special=" not in str(found).replace("disallowed_special=", "")


def test_a_token_in_a_structured_part_is_found_by_its_path() -> None:
    part = {"type": "developer_content", "instructions": TOKEN}
    chat: Any = [{"role": "developer", "content": ["a", part]}]
    with pytest.raises(SpecialTokenFound) as caught:
        encode_chat(chat, encoding=encoding_for("harmony"), format="harmony")
    assert (caught.value.index, caught.value.field) == (0, "content[1]")


def test_a_token_of_two_messages_is_in_none() -> None:
    """Here the format writes a system message and the next one as one text."""
    chat = [{"role": "system", "content": TOKEN[:5]}, {"role": "user", "content": TOKEN[5:]}]
    tokens = [TOKEN[:5] + "\n\n" + TOKEN[5:]]
    encoding = extend_encoding(encoding_for("gemma"), tokens, name="own")
    with pytest.raises(SpecialTokenFound, match=r"^chat: messages: ") as caught:
        encode_chat(chat, encoding=encoding, format="gemma")
    assert (caught.value.index, caught.value.field) == (None, "messages")


def test_count_texts_leaves_the_error_to_count_chat() -> None:
    encoding, chosen = encoding_for("openai-chat"), get_chat_format("openai-chat")
    pairs = [("user", TOKEN.encode())]
    assert count_texts(pairs, encoding=encoding, chosen=chosen)
    assert not count_texts(pairs, encoding=encoding, chosen=chosen, disallowed_special="all")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "token"),
    [
        ("chatml", "ser"),
        ("gemma", "model"),
        ("gemma", "\n\n"),
        ("harmony", "assistant"),
        ("harmony", "developer"),
        ("llama3", "\n"),
        ("mistral-v1", "[/INST]"),
        ("mistral-v1", "\n\n"),
        ("qwen2.5", "Alibaba"),
    ],
)
def test_an_encoding_with_a_special_token_in_the_text_of_the_format_is_rejected(
    name: str, token: str
) -> None:
    """Otherwise every encoded chat would contain a special token in its text."""
    chat = [{"role": "user", "content": "q"}]
    encoding = extend_encoding(encoding_for(name), [token], name="own")
    for call in CALLS:
        with pytest.raises(ChatFormatMismatch) as rejected:
            call(chat, encoding=encoding, format=name)
        assert (rejected.value.encoding, rejected.value.missing) == ("own", ())


@pytest.mark.parametrize("part", [slice(4), slice(3, -2), slice(-2, None)])
def test_a_special_token_within_a_control_token_changes_no_ids(part: slice) -> None:
    base, chosen = encoding_for("chatml"), get_chat_format("chatml")
    parts = sorted({name[part] for name in chosen.controls})
    encoding = extend_encoding(base, parts, name="parts")
    chat = [{"role": "user", "content": f"Say {parts[0]}!"}]
    ids, expected = (
        encode_chat(chat, encoding=each, format=chosen, disallowed_special=()).ids
        for each in (encoding, base)
    )
    assert ids == expected
