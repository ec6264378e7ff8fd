"""The chat RPCs over the wire return what the engine returns, within the caller's ceiling."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bytepair.v1 import chat_pb2, chat_pb2_grpc, text_pb2
from bytepair_engine import get_encoding
from bytepair_engine.chat import ChatOptions, count_chat, encode_chat, fit_chat, list_chat_formats
from support.failures import failure
from support.serving import RunningServer, write_config

TOOL = (
    '{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}'
)
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "hi<|end|>"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a": 1.0}'}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "done"},
    {"role": "user", "content": "and?"},
]
TOO_MANY = chat_pb2.ContentPart(counted_tokens=(1 << 40) + 1)
IS_JSON = chat_pb2.ToolCall(name="f", arguments_json="{}")
NO_JSON = chat_pb2.ToolCall(name="f", arguments_json="{")
#: Three turns of text alone, which the server parses by itself.
PLAIN: list[dict[str, Any]] = [
    {"role": role, "content": text}
    for number in range(3)
    for role, text in (("user", f"question {number}"), ("assistant", "word " * 9))
]


def wire(chat: list[dict[str, Any]]) -> list[chat_pb2.ChatMessage]:
    found = []
    for message in chat:
        made = chat_pb2.ChatMessage(role=message["role"], tool_call_id=message.get("tool_call_id"))
        if message["content"] is not None:
            made.content.add(text=message["content"])
        for call in message.get("tool_calls", ()):
            function = call["function"]
            made.tool_calls.add(
                id=call["id"], name=function["name"], arguments_json=function["arguments"]
            )
        found.append(made)
    return found


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose callers may encode harmony."""
    config = write_config(
        tmp_path_factory.mktemp("chat"),
        """
        builtin_encodings = ["o200k_harmony", "o200k_base"]
        [ceiling.default]
        formats = ["harmony", "openai-chat"]
        """,
    )
    with RunningServer("--config", config) as running:
        yield running


def stub(server: RunningServer) -> Any:
    # Generated without types.
    return chat_pb2_grpc.ChatServiceStub(server.channel)  # type: ignore[no-untyped-call]


@pytest.mark.slow
def test_chats_are_counted_encoded_and_fitted_as_the_engine_does(chats: RunningServer) -> None:
    encoding = get_encoding("o200k_harmony")
    given: dict[str, Any] = {"encoding": encoding, "format": "harmony", "tools": [TOOL]}
    request: dict[str, Any] = {
        "encoding": "o200k_harmony",
        "format": "harmony",
        "messages": wire(CHAT),
        "tools": [chat_pb2.Tool(json=TOOL)],
    }
    counted = stub(chats).CountChat(chat_pb2.CountChatRequest(**request))
    expected = count_chat(CHAT, **given)
    assert counted.count == expected.count
    assert tuple(counted.message_counts) == expected.message_counts
    assert counted.accuracy == chat_pb2.ACCURACY_EXACT
    assert counted.rule == expected.rule
    encoded = stub(chats).EncodeChat(
        chat_pb2.EncodeChatRequest(
            **request, disallowed_special=text_pb2.DISALLOWED_SPECIAL_AS_TEXT, with_segments=True
        )
    )
    ids = encode_chat(CHAT, **given, disallowed_special=()).ids
    assert list(encoded.ids) == ids
    assert len(ids) == counted.count
    assert encoded.format_fingerprint == counted.format_fingerprint
    assert next(s for s in encoded.segments if s.special_token).special_token == "<|start|>"
    fitted = stub(chats).FitChat(
        chat_pb2.FitChatRequest(**request, max_tokens=counted.count - 1, reserve_tokens=0)
    )
    assert list(fitted.kept) == fit_chat(CHAT, counted.count - 1, **given).kept == [0, 4]
    item = chat_pb2.ChatItem(messages=request["messages"], tools=request["tools"])
    bad = chat_pb2.ChatItem(messages=[chat_pb2.ChatMessage(role="nobody")])
    batch = stub(chats).BatchCountChat(
        chat_pb2.BatchCountChatRequest(
            encoding="o200k_harmony", format="harmony", items=[item, bad]
        )
    )
    assert batch.results[0].count == counted.count
    assert batch.results[1].error.reason == "INVALID_CHAT"
    for answer in (fitted, batch):
        assert (answer.audience, answer.rule) == (counted.audience, counted.rule)


@pytest.mark.parametrize(
    ("encoding", "chat_format"), [("o200k_harmony", "harmony"), ("o200k_base", "openai-chat")]
)
def test_the_options_of_a_chat_of_text_alone_apply(
    chats: RunningServer, encoding: str, chat_format: str
) -> None:
    given: dict[str, Any] = {"encoding": get_encoding(encoding), "format": chat_format}
    request: dict[str, Any] = {"encoding": encoding, "format": chat_format}
    request["messages"] = wire(PLAIN)
    whole = count_chat(PLAIN, **given).count

    def count(**options: Any) -> Any:
        return stub(chats).CountChat(chat_pb2.CountChatRequest(**request, **options))

    for limit in (whole, whole - 1, 0):
        counted, expected = count(limit=limit), count_chat(PLAIN, **given, limit=limit)
        assert counted.limit_exceeded == expected.limit_exceeded == (limit < whole)
        assert counted.count == expected.count
    without_prompt = count(options=chat_pb2.ChatOptions(add_generation_prompt=False)).count
    no_prompt = ChatOptions(add_generation_prompt=False)
    assert without_prompt == count_chat(PLAIN, **given, options=no_prompt).count < whole

    def fit(max_tokens: int, **options: Any) -> chat_pb2.FitChatRequest:
        return chat_pb2.FitChatRequest(**request, max_tokens=max_tokens, **options)

    cases: list[tuple[int, dict[str, Any], list[int]]] = [
        (whole - 1, {}, [2, 3, 4, 5]),
        (whole - 1, {"refill_percent": 50}, [4, 5]),
        (whole - 1, {"refill_percent": 50, "min_last_turns": 2}, [2, 3, 4, 5]),
        (9, {"min_last_turns": 0}, []),
    ]
    for most, options, kept in cases:
        assert list(stub(chats).FitChat(fit(most, **options)).kept) == kept
        assert fit_chat(PLAIN, most, **given, **options).kept == kept
    assert failure(stub(chats).FitChat, fit(9)).reason == "BUDGET_TOO_SMALL"


def test_an_encoded_chat_says_where_its_messages_and_texts_are(chats: RunningServer) -> None:
    request = chat_pb2.EncodeChatRequest(
        encoding="o200k_harmony", format="harmony", messages=wire(PLAIN), with_segments=True
    )
    encoded = stub(chats).EncodeChat(request)
    expected = encode_chat(PLAIN, encoding=get_encoding("o200k_harmony"), format="harmony")
    assert [(span.start, span.end) for span in encoded.message_spans] == expected.message_spans
    said = [segment.special_token or segment.text for segment in encoded.segments]
    assert said == [getattr(segment, "name", segment) for segment in expected.segments]


def test_an_option_that_one_chat_of_a_batch_breaks_fails_only_that_chat(
    chats: RunningServer,
) -> None:
    items = [chat_pb2.ChatItem(messages=wire(PLAIN[:size])) for size in (2, 1, 0)]
    names: dict[str, Any] = {"encoding": "o200k_harmony", "format": "harmony"}

    def batch(**options: Any) -> chat_pb2.BatchCountChatRequest:
        made = chat_pb2.ChatOptions(**options)
        return chat_pb2.BatchCountChatRequest(**names, items=items, options=made)

    good, *others = stub(chats).BatchCountChat(batch(continue_final_message=True)).results
    options = ChatOptions(continue_final_message=True)
    expected = count_chat(
        PLAIN[:2], encoding=get_encoding("o200k_harmony"), format="harmony", options=options
    )
    assert good.count == expected.count
    for other in others:
        assert other.error.reason == "INVALID_OPTION"
        assert "continue_final_message" in other.error.message
    info = failure(stub(chats).BatchCountChat, batch(reasoning_effort="high"))
    assert (info.reason, info.field) == ("INVALID_OPTION", "options.reasoning_effort")


def test_formats_are_listed_and_described(chats: RunningServer) -> None:
    listed = stub(chats).ListChatFormats(chat_pb2.ListChatFormatsRequest()).formats
    assert [chat_format.name for chat_format in listed] == list_chat_formats()
    (harmony,) = (f for f in listed if f.name == "harmony")
    assert list(harmony.encodings) == ["o200k_harmony"]
    one = stub(chats).GetChatFormat(chat_pb2.GetChatFormatRequest(format="harmony")).format
    assert one == harmony


def test_a_count_for_a_model_without_a_published_rule_is_an_estimate(chats: RunningServer) -> None:
    """The model is known if the request names it as its encoding."""
    item = chat_pb2.ChatItem(messages=wire(CHAT[:2]))
    names = {
        "o200k_base": chat_pb2.ACCURACY_EXACT,
        "gpt-4o": chat_pb2.ACCURACY_EXACT,
        "gpt-4o-mini-2024-07-18": chat_pb2.ACCURACY_EXACT,
        "ft:gpt-4o-mini:a::b": chat_pb2.ACCURACY_EXACT,
        "gpt-5": chat_pb2.ACCURACY_ESTIMATE,
        "gpt-4.1-mini": chat_pb2.ACCURACY_ESTIMATE,
        "ft:gpt-4.1:a::b": chat_pb2.ACCURACY_ESTIMATE,
        "o3": chat_pb2.ACCURACY_ESTIMATE,
        "gpt-4o-mini-audio-preview": chat_pb2.ACCURACY_ESTIMATE,
        "gpt-4o-transcribe": chat_pb2.ACCURACY_ESTIMATE,
    }
    for name, accuracy in names.items():
        options: dict[str, Any] = {"encoding": name, "format": "openai-chat"}
        count = chat_pb2.CountChatRequest(messages=item.messages, **options)
        batch = chat_pb2.BatchCountChatRequest(items=[item], **options)
        fit = chat_pb2.FitChatRequest(messages=item.messages, max_tokens=1000, **options)
        assert stub(chats).CountChat(count).accuracy == accuracy, name
        assert stub(chats).BatchCountChat(batch).results[0].accuracy == accuracy, name
        assert stub(chats).FitChat(fit).accuracy == accuracy, name


def test_an_estimated_count_is_marked_as_such(chats: RunningServer) -> None:
    answer = stub(chats).CountChat(
        chat_pb2.CountChatRequest(
            encoding="o200k_base",
            format="openai-chat",
            messages=wire(CHAT[:2]),
            tools=[chat_pb2.Tool(json=TOOL)],
        )
    )
    assert answer.accuracy == chat_pb2.ACCURACY_ESTIMATE


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
def test_a_ceiling_that_names_an_unknown_format_is_rejected_at_start(tmp_path: Path) -> None:
    config = write_config(tmp_path, '[ceiling.default]\nformats = ["gpt-9"]\n')
    with pytest.raises(Exception, match="gpt-9"), RunningServer("--config", config):
        pass
