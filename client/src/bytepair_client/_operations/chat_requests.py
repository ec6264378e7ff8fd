"""Chats as programs have them, put into requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from bytepair.v1 import chat_pb2

from bytepair_client._operations.requests import EncodingOptions, Filled, fill, set_field
from bytepair_client._options import Defaults, invalid

ChatMessages = Iterable[Mapping[str, Any]]
_Setter = Callable[[chat_pb2.ChatMessage, Mapping[str, Any]], None]
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
        wrong = _set_message(wire.messages.add(), message)
        if wrong:
            raise invalid("messages", f"message {index}: {wrong}")
    for index, tool in enumerate(tools or ()):
        try:
            text = tool if isinstance(tool, str) else json.dumps(tool, ensure_ascii=False)
            wire.tools.add(json=text)
        except (TypeError, ValueError):
            raise invalid("tools", f"tool {index} is not JSON") from None


def _set_message(wire: chat_pb2.ChatMessage, message: Mapping[str, Any]) -> str:
    """Fill a message. Returns what is wrong with it; "" if nothing is."""
    if not isinstance(message, Mapping):
        return "must be a mapping"
    for field, value in message.items():
        if field not in _FIELDS and value is not None and value != []:
            return f"unknown field {str(field)[:64]!r}"
    for field, (shape, set_part) in _SHAPES.items():
        try:
            set_part(wire, message)
        except (TypeError, ValueError, AttributeError, KeyError):
            return f"{field} must be {shape}"
    return ""


def _set_role(wire: chat_pb2.ChatMessage, message: Mapping[str, Any]) -> None:
    wire.role = message["role"]


def _set_content(wire: chat_pb2.ChatMessage, message: Mapping[str, Any]) -> None:
    content = message.get("content")
    if isinstance(content, str):
        wire.content.add(text=content)
    elif content is not None:
        for part in content:
            _set_part(wire.content.add(), part)


def _set_texts(wire: chat_pb2.ChatMessage, message: Mapping[str, Any]) -> None:
    for field in _TEXTS:
        value = message.get(field)
        if field == "reasoning" and value is None:
            value = message.get("reasoning_content")
        if value is not None:
            setattr(wire, field, value)


def _set_tool_calls(wire: chat_pb2.ChatMessage, message: Mapping[str, Any]) -> None:
    for call in message.get("tool_calls") or ():
        function = call.get("function", call)
        arguments = function["arguments"]
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        wire.tool_calls.add(
            id=call.get("id") or "", name=function["name"], arguments_json=arguments
        )


#: For each field of a message: what it must be, and how it is set.
_SHAPES: Final[dict[str, tuple[str, _Setter]]] = {
    "role": ("a string", _set_role),
    "content": ("a string, or a list of parts with a type", _set_content),
    "tool_calls": (
        "a list of calls with a function's name and arguments",
        _set_tool_calls,
    ),
    "every other field": ("a string", _set_texts),
}


def _set_part(wire: chat_pb2.ContentPart, part: Any) -> None:
    if isinstance(part, str):
        wire.text = part
    elif part["type"] == "text":
        wire.text = part["text"]
    elif part["type"] == "counted_tokens":
        wire.counted_tokens = part["tokens"]
    else:
        wire.json = json.dumps(part, ensure_ascii=False)
