"""The messages and tools of a chat, parsed from dictionaries in OpenAI's format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

from bytepair_engine.chat import json_text
from bytepair_engine.chat.errors import MAX_COUNTED, InvalidChat
from bytepair_engine.errors import wrong_type

# Named tuples, because a chat has many of them: creating one takes a third of the time.


class Structured(NamedTuple):
    """The system or developer content of openai/harmony.

    Attributes:
        kind: "system_content" or "developer_content".
        fields: The fields, as in openai-harmony's `to_dict`.
    """

    kind: str
    fields: Mapping[str, Any]


#: A part of a message's content: text; or a number of tokens that the caller has counted, such as
#: those of an image, at least 0 and only for counting; or structured content of harmony.
Part = str | int | Structured


class ToolCall(NamedTuple):
    """A tool call in an assistant message.

    Attributes:
        id: The id that the result refers to; "" if there is none.
        name: The function's name.
        arguments: The arguments as JSON text, unchanged.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may call.

    Attributes:
        document: The original dictionary, {"type": "function", "function": {…}}, keys in order.
        name: The function's name.
        description: The description; "" if there is none.
        parameters: The JSON schema of the arguments; None if there is none.
    """

    document: Mapping[str, Any]
    name: str
    description: str
    parameters: Any


class Message(NamedTuple):
    """One message of a chat.

    Attributes:
        role: The role, not checked yet; each format supports some.
        content: The parts of the content; None if the content is null, empty or absent.
        name: The name of the author; None if there is none.
        reasoning: Reasoning, also called thinking or analysis; None if there is none.
        tool_calls: The tool calls in order.
        tool_call_id: The id of the call that a tool result answers.
        channel: The channel, in openai/harmony.
        recipient: The recipient, in openai/harmony.
        content_type: The content type as text, in openai/harmony.
        constrain: The content type after the control token <|constrain|>, in openai/harmony.
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
        """The parts of the content, for formats without structured parts."""
        return self.content or ()  # type: ignore[return-value]

    @property
    def text(self) -> str:
        """The text parts, joined; "" if there are none."""
        if self.content is None:
            return ""
        return "".join([part for part in self.content if isinstance(part, str)])


#: The other fields of a message that has only a role and content.
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

#: The types of fields, parts and calls that contain no subclass of `str`.
_EXACT: Final = frozenset({str, int, tuple, Structured, type(None)})

#: The advice about a tool without a name: those that OpenAI hosts have none.
_FUNCTION_TOOL: Final = 'only tools of the type "function" are rendered, and each has a name'
#: Maximum number of characters of an unknown field that an error names.
_MAX_NAME_LENGTH: Final = 64

#: What is wrong with a part of a known type.
_PART_ADVICE: Final = {
    "text": "text must be a str",
    "counted_tokens": "tokens must be an int of 0 or more",
}


def read_messages(messages: Sequence[Mapping[str, Any] | Message]) -> tuple[Message, ...]:
    """Parse messages in OpenAI's format.

    Args:
        messages: Dictionaries with `role`, `content` (a string, a list of parts
            {"type": "text", "text": …}, or None), `name`, `reasoning` (or `reasoning_content`),
            `tool_calls`, `tool_call_id`, and for openai/harmony `channel`, `recipient`,
            `content_type`, `constrain`. A part {"type": "counted_tokens", "tokens": n} represents
            content that the caller has counted. A field with the value None or [] counts as
            absent. Other unknown fields are rejected: ignoring them would make counts wrong.
    Raises:
        InvalidChat: A message does not have this format.
    """
    _check_list("messages", messages)
    return tuple(
        _exact_message(message) if isinstance(message, Message) else _message(index, message)
        for index, message in enumerate(messages)
    )


def _check_list(option: str, value: object) -> None:
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise wrong_type(option, f"a list of {option}", value)


def _message(index: int, fields: Mapping[str, Any]) -> Message:
    if not isinstance(fields, Mapping):
        raise InvalidChat(index, "message", "not_an_object")
    role, content = _string(index, "role", fields.get("role")), fields.get("content")
    parts = (_exact(content),) if isinstance(content, str) else _parts(index, content)
    # Fast path: most messages have no other fields.
    if len(fields) == 2 and "content" in fields:
        return Message(role, parts)
    texts: dict[str, str | None] = {}
    for field, value in fields.items():
        if field in _FIELDS:
            continue
        if value is not None and value != []:
            raise InvalidChat(index, str(field)[:_MAX_NAME_LENGTH], "field_unknown")
    other = fields.get("reasoning_content")
    for field in _TEXT_FIELDS:
        value = fields.get(field)
        if field == "reasoning" and other is not None:
            if value not in (None, other):
                raise InvalidChat(index, field, "reasoning_given_twice")
            value = other
        texts[field] = None if value is None else _string(index, field, value)
    return Message(role, parts, tool_calls=_calls(index, fields.get("tool_calls")), **texts)


def _exact(text: str) -> str:
    """Return a text as `str` instead of a subclass, whose `__format__` can give another text."""
    return text if type(text) is str else str.__str__(text)


def _exact_message(message: Message) -> Message:
    """Return a message without texts of subclasses of `str`."""
    content, calls = message.content, message.tool_calls
    if {*map(type, message), *map(type, content or ()), *map(type, chain(*calls))} <= _EXACT:
        return message

    def exact(fields: Iterable[Any]) -> Iterable[Any]:
        return (_exact(field) if isinstance(field, str) else field for field in fields)

    return Message(*exact(message))._replace(
        content=None if content is None else tuple(exact(content)),
        tool_calls=tuple(ToolCall(*exact(call)) for call in calls),
    )


def _string(index: int, field: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidChat(index, field, "not_a_string")
    return _exact(value)


def _parts(index: int, content: object) -> tuple[Part, ...] | None:
    if content is None:
        return None
    if not isinstance(content, (list, tuple)):
        raise InvalidChat(index, "content", "not_text_or_parts")
    return tuple([_part(index, at, part) for at, part in enumerate(content)]) or None


def _part(index: int, at: int, part: object) -> Part:
    if isinstance(part, str):
        return _exact(part)
    if isinstance(part, Mapping):
        kind = part.get("type")
        text = part.get("text")
        if kind == "text" and isinstance(text, str):
            return _exact(text)
        if kind == "counted_tokens" and type(part.get("tokens")) is int and part["tokens"] >= 0:
            return counted(index, at, part["tokens"])
        if kind in _STRUCTURED:
            fields = with_json(index, f"content[{at}]", lambda: json_text.exact(dict(part)))
            return Structured(fields["type"], fields)
        advice = _PART_ADVICE.get(str(kind), "")
        raise InvalidChat(index, f"content[{at}]", "part_not_supported", advice)
    raise InvalidChat(index, f"content[{at}]", "part_not_supported")


def counted(index: int, at: int, tokens: int) -> int:
    """Return the number of `counted_tokens` of part `at`. Raises InvalidChat if it is too large."""
    if tokens > MAX_COUNTED:
        raise InvalidChat(index, f"content[{at}]", "counted_tokens_too_large")
    return tokens


def _calls(index: int, calls: object) -> tuple[ToolCall, ...]:
    if calls is None:
        return ()
    if not isinstance(calls, (list, tuple)):
        raise InvalidChat(index, "tool_calls", "not_a_list")
    return tuple(_call(index, f"tool_calls[{at}]", call) for at, call in enumerate(calls))


def _call(index: int, path: str, call: object) -> ToolCall:
    if not isinstance(call, Mapping):
        raise InvalidChat(index, path, "not_an_object")
    function = call.get("function", call)
    if call.get("type") not in (None, "function") or not isinstance(function, Mapping):
        raise InvalidChat(index, path, "not_a_function")
    name = _string(index, f"{path}.name", function.get("name"))
    call_id = _string(index, f"{path}.id", call.get("id") or "")
    arguments: Any = function.get("arguments")
    path += ".arguments"
    if not isinstance(arguments, str):
        with_json(index, path, lambda: json_text.check_depth(arguments))
        arguments = json_text.dumps(arguments)
    else:
        with_json(index, path, lambda: json_text.parse(arguments))
        arguments = _exact(arguments)
    return ToolCall(call_id, name, arguments)


def read_tools(tools: Sequence[Mapping[str, Any] | str | Tool] | None) -> tuple[Tool, ...]:
    """Parse tools in OpenAI's format.

    Args:
        tools: {"type": "function", "function": {"name", "description", "parameters"}}, or only the
            value of "function", each as a dictionary or as JSON text. None for no tools.
    Raises:
        InvalidChat: A tool does not have this format; `index` is that of the tool.
    """
    _check_list("tools", tools or ())
    return tuple(
        tool if isinstance(tool, Tool) else _tool(index, tool)
        for index, tool in enumerate(tools or ())
    )


def _tool(index: int, tool: Mapping[str, Any] | str) -> Tool:
    if isinstance(tool, str):
        text = tool
        document = with_json(index, "tools", lambda: json_text.parse(text))
    else:
        document = with_json(index, "tools", lambda: json_text.exact(tool))
    if not isinstance(document, Mapping):
        raise InvalidChat(index, "tools", "not_an_object")
    if "function" not in document:
        document = {"type": "function", "function": document}
    function = document["function"]
    if document.get("type", "function") != "function" or not isinstance(function, Mapping):
        raise InvalidChat(index, "tools", "not_a_function")
    name, description = function.get("name"), function.get("description")
    if not isinstance(name, str):
        raise InvalidChat(index, "tools.name", "not_a_string", _FUNCTION_TOOL)
    if description is not None and not isinstance(description, str):
        raise InvalidChat(index, "tools.description", "not_a_string")
    parameters = function.get("parameters")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InvalidChat(index, "tools.parameters", "not_an_object")
    return Tool(document, name, description or "", parameters)


def with_json(index: int | None, field: str, read: Callable[[], Any]) -> Any:
    """Call `read`, and raise InvalidChat instead of NotJson."""
    try:
        return read()
    except json_text.NotJson:
        raise InvalidChat(index, field, "not_json") from None
