"""How the chat RPCs fail: the reason, the details, and the path of the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bytepair.v1 import chat_pb2, text_pb2
from support.chat_calls import CHAT, stub, wire
from support.failures import failure
from support.serving import RunningServer, write_config

TOO_MANY = chat_pb2.ContentPart(counted_tokens=(1 << 40) + 1)
IS_JSON = chat_pb2.ToolCall(name="f", arguments_json="{}")
NO_JSON = chat_pb2.ToolCall(name="f", arguments_json="{")


@pytest.mark.parametrize(
    ("change", "reason", "metadata"),
    [
        ({"format": "gpt-9"}, "UNKNOWN_CHAT_FORMAT", {"format": "gpt-9"}),
        ({"format": "chatml"}, "CHAT_FORMAT_MISMATCH", {"missing": "<|im_end|>, <|im_start|>"}),
        ({"expected_format_fingerprint": "x"}, "FINGERPRINT_MISMATCH", {"format": "harmony"}),
        (
            {"messages": [chat_pb2.ChatMessage(role="nobody")]},
            "INVALID_CHAT",
            {"index": "0", "field": "role", "rule": "role_unknown"},
        ),
        (
            {"messages": [chat_pb2.ChatMessage(role="user", content=[{"text": ""}, TOO_MANY])]},
            "INVALID_CHAT",
            {"index": "0", "field": "content[1]", "rule": "counted_tokens_too_large"},
        ),
        (
            {"messages": [chat_pb2.ChatMessage(role="assistant", tool_calls=[IS_JSON, NO_JSON])]},
            "INVALID_CHAT",
            {"index": "0", "field": "tool_calls[1].arguments", "rule": "not_json"},
        ),
        ({"tools": [chat_pb2.Tool(json="{")]}, "INVALID_CHAT", {"rule": "not_json"}),
        ({"tools": [chat_pb2.Tool(json='"\\ud800"')]}, "INVALID_CHAT", {"rule": "not_json"}),
        (
            {"options": chat_pb2.ChatOptions(reasoning_effort="high")},
            "INVALID_OPTION",
            {"field": "options.reasoning_effort"},
        ),
        (
            {"options": chat_pb2.ChatOptions(current_date="yesterday")},
            "INVALID_OPTION",
            {"field": "options.current_date"},
        ),
        (
            {"options": chat_pb2.ChatOptions(format_options={"a": "b"})},
            "INVALID_OPTION",
            {"field": "options.format_options"},
        ),
    ],
)
def test_an_invalid_chat_is_named_by_its_reason(
    chats: RunningServer, change: dict[str, Any], reason: str, metadata: dict[str, str]
) -> None:
    request: dict[str, Any] = {"encoding": "o200k_harmony", "format": "harmony"}
    request |= {"messages": wire(CHAT)} | change
    info = failure(stub(chats).CountChat, chat_pb2.CountChatRequest(**request))
    assert info.reason == reason
    assert metadata.items() <= dict(info.metadata).items()
    if reason == "INVALID_OPTION":
        assert info.field == metadata["field"]
    if metadata.get("rule") == "not_json" and "field" in metadata:
        assert info.field == "messages[0].tool_calls[1].arguments_json"


def test_an_option_that_a_format_lacks_is_said_to_be_unsupported(chats: RunningServer) -> None:
    request = chat_pb2.CountChatRequest(
        encoding="o200k_base",
        format="openai-chat",
        options=chat_pb2.ChatOptions(past_reasoning=chat_pb2.PAST_REASONING_KEEP),
    )
    info = failure(stub(chats).CountChat, request)
    assert info.message == "options.past_reasoning: the format does not support it"


def test_json_that_is_nested_too_deeply_is_said_to_be(chats: RunningServer) -> None:
    deep = "[" * 66 + "]" * 66
    call = chat_pb2.ToolCall(name="f", arguments_json=deep)
    chat = [*wire(CHAT), chat_pb2.ChatMessage(role="assistant", tool_calls=[call])]
    names: dict[str, Any] = {"encoding": "o200k_harmony", "format": "harmony"}
    for request in ({"messages": chat}, {"messages": wire(CHAT), "tools": [{"json": deep}]}):
        info = failure(stub(chats).CountChat, chat_pb2.CountChatRequest(**names, **request))
        assert dict(info.metadata)["rule"] == "not_json"
        assert info.message.endswith("not_json; it is not JSON, or is nested deeper than 64 levels")


def test_a_text_that_is_not_utf8_is_named(chats: RunningServer) -> None:
    request = chat_pb2.CountChatRequest(
        encoding="o200k_harmony",
        format="harmony",
        messages=wire([{"role": "user", "content": "???"}]),
    )
    raw = request.SerializeToString().replace(b"???", b"?\xff?")
    info = failure(chats.channel.unary_unary("/bytepair.v1.ChatService/CountChat"), raw)
    assert info.reason == "INVALID_UTF8"
    assert info.metadata["byte_offset"] == "1"


def test_a_budget_that_is_too_small_is_an_error_with_the_needed_budget(
    chats: RunningServer,
) -> None:
    request = chat_pb2.FitChatRequest(
        encoding="o200k_harmony", format="harmony", messages=wire(CHAT), max_tokens=3
    )
    info = failure(stub(chats).FitChat, request)
    assert (info.reason, info.metadata["budget"]) == ("BUDGET_TOO_SMALL", "3")
    assert info.message.endswith(" tokens, and the limit is 3; raise max_tokens")
    for reserve, left in ((1, 2), (3, 0), (9, 0)):
        request.reserve_tokens = reserve
        info = failure(stub(chats).FitChat, request)
        assert info.metadata["budget"] == str(left)
        assert info.message.endswith(
            f"reserve_tokens leaves {left} of max_tokens; raise max_tokens, or lower reserve_tokens"
        )
    request.ClearField("max_tokens")
    info = failure(stub(chats).FitChat, request)
    assert (info.reason, info.metadata["field"]) == ("INVALID_OPTION", "max_tokens")


@pytest.mark.parametrize(
    ("encoding", "chat_format", "token"),
    [("o200k_harmony", "harmony", "<|end|>"), ("o200k_base", "openai-chat", "<|endoftext|>")],
)
def test_a_control_token_in_text_is_rejected_with_its_message(
    chats: RunningServer, encoding: str, chat_format: str, token: str
) -> None:
    """EncodeChat rejects it by default; the other calls, here of texts alone, on request."""
    chat = [{"role": "system", "content": "s"}, {"role": "user", "content": f"é{token}"}]
    given: dict[str, Any] = {"encoding": encoding, "format": chat_format, "messages": wire(chat)}
    failed = []
    if chat_format == "harmony":
        failed.append(failure(stub(chats).EncodeChat, chat_pb2.EncodeChatRequest(**given)))
    given["disallowed_special"] = text_pb2.DISALLOWED_SPECIAL_REJECT
    failed.append(failure(stub(chats).CountChat, chat_pb2.CountChatRequest(**given)))
    fitting = chat_pb2.FitChatRequest(**given, max_tokens=90)
    failed.append(failure(stub(chats).FitChat, fitting))
    for info in failed:
        assert info.reason == "SPECIAL_TOKEN_IN_TEXT"
        found = {"token": token, "byte_offset": "2", "index": "1", "field": "content"}
        assert info.metadata == found
        assert info.message.startswith("message 1: content: the text contains the special token")
        assert "allowed_special" not in info.message.replace("disallowed_special", "")
        assert info.field == "messages[1].content"


def test_a_control_token_outside_content_is_rejected_with_its_path(chats: RunningServer) -> None:
    call = chat_pb2.ToolCall(name="f", arguments_json='{"é": "<|end|>"}')
    calling = chat_pb2.ChatMessage(role="assistant", tool_calls=[IS_JSON, call])
    tools = [
        chat_pb2.Tool(json=f'{{"name":"f","description":"{text}"}}') for text in ("", "<|end|>")
    ]
    given: dict[str, Any] = {"encoding": "o200k_harmony", "format": "harmony"}
    cases: list[tuple[dict[str, Any], str, str, str]] = [
        (
            {"messages": [calling]},
            "tool_calls[1].arguments",
            "8",
            "messages[0].tool_calls[1].arguments_json",
        ),
        ({"tools": tools}, "tools", "27", "tools[1]"),
    ]
    for chat, field, offset, path in cases:
        info = failure(stub(chats).EncodeChat, chat_pb2.EncodeChatRequest(**given, **chat))
        index = "1" if field == "tools" else "0"
        found = {"token": "<|end|>", "byte_offset": offset, "index": index, "field": field}
        assert info.metadata == found
        assert info.field == path
        assert "allowed_special" not in info.message.replace("disallowed_special", "")


@pytest.mark.slow
def test_encoding_needs_the_ceiling_and_counting_does_not(server: RunningServer) -> None:
    request: dict[str, Any] = {
        "encoding": "o200k_harmony",
        "format": "harmony",
        "messages": wire(CHAT),
    }
    assert stub(server).CountChat(chat_pb2.CountChatRequest(**request)).count
    info = failure(stub(server).EncodeChat, chat_pb2.EncodeChatRequest(**request))
    assert info.reason == "CHAT_FORMAT_NOT_PERMITTED"
    assert "formats in its table of [ceiling]" in info.message
    request |= {"encoding": "o200k_base", "format": "openai-chat"}
    info = failure(stub(server).EncodeChat, chat_pb2.EncodeChatRequest(**request))
    # No permission helps: the format can only count.
    assert (info.reason, info.metadata["field"]) == ("INVALID_OPTION", "format")


@pytest.mark.slow
def test_a_ceiling_that_names_an_unknown_format_is_rejected_at_start(tmp_path: Path) -> None:
    config = write_config(tmp_path, '[ceiling.default]\nformats = ["gpt-9"]\n')
    with pytest.raises(Exception, match="gpt-9"), RunningServer("--config", config):
        pass
