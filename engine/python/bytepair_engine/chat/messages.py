"""The messages and tools of a chat, read from OpenAI-shaped dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from bytepair_engine.chat import json_text
from bytepair_engine.chat.errors import InvalidChat

# Tuples, because a chat has many of them, and they are made in a third of the time.


class Structured(NamedTuple):
    """The system or developer content of openai/harmony.

    Attributes:
        kind: "system_content" or "developer_content".
        fields: Its fields, as openai-harmony's `to_dict` gives them.
    """

    kind: str
    fields: Mapping[str, Any]


#: A part of a message's content: text; how many tokens the caller has counted, such as those of an
#: image, at least 0, and only for counting; or content of harmony.
Part = str | int | Structured


class ToolCall(NamedTuple):
    """A call that an assistant's message makes.

    Attributes:
        id: What its result refers to; "" for none.
        name: The function's name.
        arguments: JSON text, as written.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may call.

    Attributes:
        document: The tool as it was given, {"type": "function", "function": {…}}, keys in order.
        name: Of the function.
        description: "" for none.
        parameters: The JSON schema of its arguments; None for none.
    """

    document: Mapping[str, Any]
    name: str
    description: str
    parameters: Any


class Message(NamedTuple):
    """One message of a chat.

    Attributes:
        role: As given; a format says which it has.
        content: Its parts; None where the content is null or absent.
        name: The author's; None for none.
        reasoning: What formats call thinking or analysis; None for none.
        tool_calls: In order.
        tool_call_id: Of a tool's result: which call it answers.
        channel: openai/harmony's.
        recipient: openai/harmony's.
        content_type: openai/harmony's, as text.
        constrain: openai/harmony's content type after the control token <|constrain|>.
    """

    role: str
    content: tuple[Part, ...] | None = None
    name: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    channel: str | None = None
    recipient: str | None = None
    content_type: str | None = None
    constrain: str | None = None

    @property
    def parts(self) -> tuple[str | int, ...]:
        """The parts of its content, in a format that has no structured ones."""
        return self.content or ()  # type: ignore[return-value]

    @property
    def text(self) -> str:
        """The text parts, joined; "" for none."""
        if self.content is None:
            return ""
        return "".join([part for part in self.content if isinstance(part, str)])


#: What a message has behind its role and content, if it has nothing else.
NOTHING_ELSE: Final = Message("")[2:]
_TEXT_FIELDS: Final = (
    "name",
    "reasoning",
    "tool_call_id",
    "channel",
    "recipient",
    "content_type",
    "constrain",
)
_FIELDS: Final = frozenset({"role", "content", "tool_calls", "reasoning_content", *_TEXT_FIELDS})
_STRUCTURED: Final = ("system_content", "developer_content")


def read_messages(messages: Sequence[Mapping[str, Any] | Message]) -> tuple[Message, ...]:
    """Read messages as programs have them.

    Args:
        messages: Dictionaries with `role`, `content` (a string, a list of parts
            {"type": "text", "text": …}, or None), `name`, `reasoning` (or `reasoning_content`),
            `tool_calls`, `tool_call_id`, and for openai/harmony `channel`, `recipient`,
            `content_type`, `constrain`. A part {"type": "counted_tokens", "tokens": n} stands for
            what the caller has counted. A field whose value is None, or an empty list, is absent;
            an unknown one that is not is refused, because ignoring it would make counts wrong.
    Raises:
        InvalidChat: A message is not of this shape.
    """
    return tuple(
        message if isinstance(message, Message) else _message(index, message)
        for index, message in enumerate(messages)
    )


def _message(index: int, fields: Mapping[str, Any]) -> Message:
    if not isinstance(fields, Mapping):
        raise InvalidChat(index, "message", "not_an_object")
    role, content = fields.get("role"), fields.get("content")
    if not isinstance(role, str):
        raise InvalidChat(index, "role", "not_a_string")
    parts = (content,) if isinstance(content, str) else _parts(index, content)
    # Most messages have nothing else.
    if len(fields) == 2 and "content" in fields:
        return Message(role, parts)
    texts: dict[str, str | None] = {}
    for field, value in fields.items():
        if field in _FIELDS:
            continue
        if value is not None and value != []:
            raise InvalidChat(index, "message", "field_unknown")
    for field in _TEXT_FIELDS:
        value = fields.get(field)
        if field == "reasoning" and value is None:
            value = fields.get("reasoning_content")
        if value is not None and not isinstance(value, str):
            raise InvalidChat(index, field, "not_a_string")
        texts[field] = value
    return Message(role, parts, tool_calls=_calls(index, fields.get("tool_calls")), **texts)


def _parts(index: int, content: object) -> tuple[Part, ...] | None:
    if content is None:
        return None
    if not isinstance(content, (list, tuple)):
        raise InvalidChat(index, "content", "not_text_or_parts")
    return tuple(_part(index, part) for part in content)


def _part(index: int, part: object) -> Part:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        kind = part.get("type")
        text = part.get("text")
        if kind == "text" and isinstance(text, str):
            return text
        if kind == "counted_tokens" and type(part.get("tokens")) is int and part["tokens"] >= 0:
            return int(part["tokens"])
        if kind in _STRUCTURED:
            with_json(index, "content", lambda: json_text.check_depth(dict(part)))
            return Structured(str(kind), part)
    raise InvalidChat(index, "content", "part_not_supported")


def _calls(index: int, calls: object) -> tuple[ToolCall, ...]:
    if calls is None:
        return ()
    if not isinstance(calls, (list, tuple)):
        raise InvalidChat(index, "tool_calls", "not_a_list")
    return tuple(_call(index, call) for call in calls)


def _call(index: int, call: object) -> ToolCall:
    if not isinstance(call, Mapping):
        raise InvalidChat(index, "tool_calls", "not_an_object")
    function = call.get("function", call)
    if call.get("type") not in (None, "function") or not isinstance(function, Mapping):
        raise InvalidChat(index, "tool_calls", "not_a_function")
    name, arguments = function.get("name"), function.get("arguments")
    call_id = call.get("id") or ""
    if not isinstance(name, str) or not isinstance(call_id, str):
        raise InvalidChat(index, "tool_calls", "not_a_string")
    if not isinstance(arguments, str):
        with_json(index, "tool_calls", lambda: json_text.check_depth(arguments))
        arguments = json_text.dumps(arguments)
    else:
        with_json(index, "tool_calls", lambda: json_text.parse(arguments))
    return ToolCall(call_id, name, arguments)


def read_tools(tools: Sequence[Mapping[str, Any] | str | Tool] | None) -> tuple[Tool, ...]:
    """Read tools as programs have them.

    Args:
        tools: Each {"type": "function", "function": {"name", "description", "parameters"}}, or
            what is in "function" alone, as a dictionary or as JSON text. None for none.
    Raises:
        InvalidChat: A tool is not of this shape; `index` is the tool's.
    """
    return tuple(
        tool if isinstance(tool, Tool) else _tool(index, tool)
        for index, tool in enumerate(tools or ())
    )


def _tool(index: int, tool: Mapping[str, Any] | str) -> Tool:
    if isinstance(tool, str):
        text = tool
        document = with_json(index, "tools", lambda: json_text.parse(text))
    else:
        document = tool
        with_json(index, "tools", lambda: json_text.check_depth(document))
    if not isinstance(document, Mapping):
        raise InvalidChat(index, "tools", "not_an_object")
    if "function" not in document:
        document = {"type": "function", "function": document}
    function = document["function"]
    if document.get("type", "function") != "function" or not isinstance(function, Mapping):
        raise InvalidChat(index, "tools", "not_a_function")
    name, description = function.get("name"), function.get("description")
    if not isinstance(name, str):
        raise InvalidChat(index, "tools.name", "not_a_string")
    if description is not None and not isinstance(description, str):
        raise InvalidChat(index, "tools.description", "not_a_string")
    parameters = function.get("parameters")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InvalidChat(index, "tools.parameters", "not_an_object")
    return Tool(document, name, description or "", parameters)


def with_json(index: int | None, field: str, read: Callable[[], Any]) -> Any:
    """What `read` gives, with JSON that it refuses as InvalidChat."""
    try:
        return read()
    except json_text.NotJson:
        raise InvalidChat(index, field, "not_json") from None
