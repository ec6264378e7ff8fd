"""The chat RPCs over the wire return what the engine returns, within the caller's ceiling."""

from __future__ import annotations

from typing import Any

import pytest
from bytepair.v1 import chat_pb2, text_pb2
from bytepair_engine import get_encoding
from bytepair_engine.chat import ChatOptions, count_chat, encode_chat, fit_chat, list_chat_formats
from support.chat_calls import CHAT, stub, wire
from support.failures import failure
from support.serving import RunningServer

TOOL = (
    '{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}'
)
#: Three turns of text alone, which the server parses by itself.
PLAIN: list[dict[str, Any]] = [
    {"role": role, "content": text}
    for number in range(3)
    for role, text in (("user", f"question {number}"), ("assistant", "word " * 9))
]


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
