"""Chats as programs have them, put into requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from bytepair.v1 import chat_pb2

from bytepair_client._operations.common import EncodingOptions, set_encoding
from bytepair_client._options import Defaults, invalid, utf8
from bytepair_client._text import DisallowedSpecial, wire_disallowed

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
_PAST_REASONING = {
    "default": chat_pb2.PAST_REASONING_UNSPECIFIED,
    "keep": chat_pb2.PAST_REASONING_KEEP,
    "before_first_final": chat_pb2.PAST_REASONING_BEFORE_FIRST_FINAL,
    "before_last_final_if_answered": chat_pb2.PAST_REASONING_BEFORE_LAST_FINAL_IF_ANSWERED,
    "before_last_final": chat_pb2.PAST_REASONING_BEFORE_LAST_FINAL,
}


class ChatOptions(EncodingOptions, total=False):
    """Options of every method for chats; `count_chat` describes them."""

    add_generation_prompt: bool
    continue_final_message: bool
    past_reasoning: str
    reasoning_effort: str
    current_date: str
    format_options: Mapping[str, str] | None
    expected_format_fingerprint: str


def set_chat_options(
    request: Any,
    defaults: Defaults,
    chat_format: str,
    disallowed_special: DisallowedSpecial,
    *,
    add_generation_prompt: bool = True,
    continue_final_message: bool = False,
    past_reasoning: str = "default",
    reasoning_effort: str = "",
    current_date: str = "",
    format_options: Mapping[str, str] | None = None,
    expected_format_fingerprint: str = "",
    **options: Unpack[EncodingOptions],
) -> None:
    """Say in a request how chats are rendered, and by what.

    Raises:
        InvalidOption: A value is not one of those that there are.
    """
    request.format = utf8("format", chat_format)
    request.expected_format_fingerprint = utf8(
        "expected_format_fingerprint", expected_format_fingerprint
    )
    request.disallowed_special = wire_disallowed(disallowed_special)
    set_encoding(request, defaults, **options)
    if past_reasoning not in _PAST_REASONING:
        raise invalid("past_reasoning", f"must be one of {', '.join(_PAST_REASONING)}")
    rendering: chat_pb2.ChatOptions = request.options
    rendering.add_generation_prompt = add_generation_prompt
    rendering.continue_final_message = continue_final_message
    rendering.past_reasoning = _PAST_REASONING[past_reasoning]
    rendering.reasoning_effort = utf8("reasoning_effort", reasoning_effort)
    rendering.current_date = utf8("current_date", current_date)
    for key, value in (format_options or {}).items():
        rendering.format_options[utf8("format_options", key)] = utf8("format_options", value)


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
