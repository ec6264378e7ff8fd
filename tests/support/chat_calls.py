"""A chat with every kind of message, and how tests send it."""

from __future__ import annotations

from typing import Any

from bytepair.v1 import chat_pb2, chat_pb2_grpc

from support.serving import RunningServer

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


def wire(chat: list[dict[str, Any]]) -> list[chat_pb2.ChatMessage]:
    """Return a chat as messages of protobuf."""
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


def stub(server: RunningServer) -> Any:
    """Return the stub of the chat RPCs."""
    # Generated without types.
    return chat_pb2_grpc.ChatServiceStub(server.channel)  # type: ignore[no-untyped-call]
