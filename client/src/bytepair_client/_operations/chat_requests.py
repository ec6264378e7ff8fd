"""Chats as programs have them, put into requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from bytepair.v1 import chat_pb2

from bytepair_client._operations.requests import EncodingOptions, Filled, fill, set_field
from bytepair_client._options import Defaults, invalid

ChatMessages = Iterable[Mapping[str, Any]]
ChatTools = Iterable[Mapping[str, Any] | str] | None

_TEXTS = (
    "name",
    "reasoning",
    "tool_call_id",
    "channel",
    "recipient",
    "content_type",
    "constrain",
)
_FIELDS = frozenset({"role", "content", "tool_calls", "reasoning_content", *_TEXTS})
_RENDERING = frozenset(chat_pb2.ChatOptions.DESCRIPTOR.fields_by_name)


class ChatOptions(EncodingOptions, total=False):
    """Options of every method for chats; `count_chat` describes them."""

    add_generation_prompt: bool
    continue_final_message: bool
    past_reasoning: str
    reasoning_effort: str
    current_date: str
    format_options: Mapping[str, str] | None
    expected_format_fingerprint: str


def chat_request(
    request: Filled, defaults: Defaults, messages: ChatMessages, tools: ChatTools, **fields: Any
) -> Filled:
    """Fill a request for a chat, and the options of its rendering in it.

    Returns it. Raises InvalidOption.
    """
    wire: Any = request
    for name in _RENDERING & fields.keys():
        set_field(wire.options, name, fields.pop(name))
    set_chat(wire, messages, tools)
    return fill(request, defaults, **fields)


def set_chat(wire: Any, messages: ChatMessages, tools: ChatTools) -> None:
    """Set the messages and the tools, of a request or of one chat in it.

    Raises:
        InvalidOption: One of them does not have the shape that it must have.
    """
    for index, message in enumerate(messages):
        try:
            _set_message(wire.messages.add(), message)
        except (TypeError, ValueError, AttributeError, KeyError):
            raise invalid(
                "messages", f"message {index} does not have the fields of a message"
            ) from None
    for index, tool in enumerate(tools or ()):
        try:
            text = tool if isinstance(tool, str) else json.dumps(tool, ensure_ascii=False)
            wire.tools.add(json=text)
        except (TypeError, ValueError):
            raise invalid("tools", f"tool {index} is not JSON") from None


def _set_message(wire: chat_pb2.ChatMessage, message: Mapping[str, Any]) -> None:
    for field, value in message.items():
        if field not in _FIELDS and value is not None and value != []:
            raise ValueError(field)
    wire.role = message["role"]
    content = message.get("content")
    if isinstance(content, str):
        wire.content.add(text=content)
    elif content is not None:
        for part in content:
            _set_part(wire.content.add(), part)
    for field in _TEXTS:
        value = message.get(field)
        if field == "reasoning" and value is None:
            value = message.get("reasoning_content")
        if value is not None:
            setattr(wire, field, value)
    for call in message.get("tool_calls") or ():
        function = call.get("function", call)
        arguments = function["arguments"]
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        wire.tool_calls.add(
            id=call.get("id") or "", name=function["name"], arguments_json=arguments
        )


def _set_part(wire: chat_pb2.ContentPart, part: Any) -> None:
    if isinstance(part, str):
        wire.text = part
    elif part["type"] == "text":
        wire.text = part["text"]
    elif part["type"] == "counted_tokens":
        wire.counted_tokens = part["tokens"]
    else:
        wire.json = json.dumps(part, ensure_ascii=False)
