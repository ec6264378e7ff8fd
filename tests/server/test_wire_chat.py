"""The hand-written parser of chat requests gives the same messages as protobuf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bytepair.v1 import chat_pb2
from bytepair_engine.chat import InvalidChat
from bytepair_server.errors import InvalidField, InvalidText
from bytepair_server.rpc.chat_messages import messages_of, parts_of_chat, size_of_chat, take_chat
from bytepair_server.rpc.wire import take_named_texts
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

Count, Message, Part = chat_pb2.CountChatRequest, chat_pb2.ChatMessage, chat_pb2.ContentPart
NUMBER = Count.MESSAGES_FIELD_NUMBER

texts = st.text(max_size=200)
plain = st.builds(
    lambda role, text: Message(role=role, content=[] if text is None else [Part(text=text)]),
    st.sampled_from(["user", "assistant", ""]) | texts,
    st.none() | texts,
)
other = st.sampled_from(
    [
        Message(role="user", content=[Part(text="a"), Part(text="")]),
        Message(role="user", content=[Part(counted_tokens=3)]),
        Message(role="user", name=""),
        Message(role="assistant", tool_calls=[chat_pb2.ToolCall(name="f", arguments_json="{}")]),
        Message(role="tool", content=[Part(text="x")], tool_call_id="1"),
    ]
)
requests = st.builds(
    Count,
    encoding=texts,
    format=texts,
    messages=st.lists(plain, max_size=4) | st.lists(plain | other, max_size=4),
    tools=st.lists(st.builds(chat_pb2.Tool, json=texts), max_size=2),
    limit=st.none() | st.integers(0, 2**64 - 1),
)


def outcome(read: Callable[[], Any]) -> Any:
    """Return the messages, or the error."""
    try:
        return read()
    except InvalidChat as refused:
        return refused.args


def same(raw: bytes) -> None:
    """Assert that both parsers give the same, or both reject."""
    try:
        expected = Count.FromString(raw)
    except DecodeError:
        with pytest.raises((InvalidField, InvalidText)):
            take_chat(Count, raw)
        return
    found, _ = take_chat(Count, raw)
    assert outcome(found.messages) == outcome(lambda: messages_of(expected.messages))
    assert (found.parts, found.size()) == (parts_of_chat(expected), size_of_chat(expected))
    expected.ClearField("messages")
    found.request.ClearField("messages")  # protobuf parses them only if the parser left them there
    assert found.request == expected


@given(requests)
def test_requests_are_parsed_as_by_protobuf(request: Any) -> None:
    raw = request.SerializeToString()
    same(raw)
    is_plain = all(
        set(fields) <= {"role", "content"}
        and [p.WhichOneof("part") for p in m.content] in ([], ["text"])
        for m in request.messages
        for fields in [[field.name for field, _ in m.ListFields()]]
    )
    assert (take_named_texts(raw, NUMBER) is not None) == is_plain


@given(requests, st.data())
def test_damaged_requests_are_parsed_as_by_protobuf(request: Any, data: Any) -> None:
    raw = bytearray(request.SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw)))
        raw[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    same(bytes(raw))
