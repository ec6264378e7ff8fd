"""Chats between protobuf and the engine."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from bytepair.v1 import chat_pb2
from bytepair_engine import Encoding
from bytepair_engine.backends.text_length import text_length
from bytepair_engine.chat import ChatFormat, ChatOptions, InvalidChat, Message, ToolCall
from bytepair_engine.chat.costs import DEFAULT_OPTIONS
from bytepair_engine.chat.json_text import NotJson, parse
from bytepair_engine.chat.messages import Part, Structured, counted

from bytepair_server.rpc import wire
from bytepair_server.rpc.options import chosen
from bytepair_server.rpc.wire import Named, take_named_texts

#: Batches with more items are not read further to choose where they are computed.
FEW_ITEMS: Final = 1024
#: Beside these two fields a message rarely has others.
_CONTENT: Final = chat_pb2.ChatMessage.CONTENT_FIELD_NUMBER
#: The texts of a message outside its content and calls.
_OTHER_TEXTS: Final = attrgetter(
    *("name", "reasoning", "tool_call_id", "channel", "recipient", "content_type", "constrain")
)
_PAST_REASONING: Final[dict[int, Any]] = {
    chat_pb2.PAST_REASONING_UNSPECIFIED: "default",
    chat_pb2.PAST_REASONING_KEEP: "keep",
    chat_pb2.PAST_REASONING_BEFORE_FIRST_FINAL: "before_first_final",
    chat_pb2.PAST_REASONING_BEFORE_LAST_FINAL_IF_ANSWERED: "before_last_final_if_answered",
    chat_pb2.PAST_REASONING_BEFORE_LAST_FINAL: "before_last_final",
}
ACCURACY: Final = {
    "exact": chat_pb2.ACCURACY_EXACT,
    "estimate": chat_pb2.ACCURACY_ESTIMATE,
}
_JOINING: Final = {"piecewise": chat_pb2.JOINING_PIECEWISE, "runs": chat_pb2.JOINING_RUNS}


HasChat = TypeVar(
    "HasChat",
    chat_pb2.CountChatRequest,
    chat_pb2.EncodeChatRequest,
    chat_pb2.FitChatRequest,
)


@dataclass(slots=True)
class ParsedChat(Generic[HasChat]):
    """A request of one chat with its messages.

    Attributes:
        request: The request; without its messages if `named` is set.
        named: The role and the text of each message; None unless every message has only these.
        named_size: UTF-8 bytes of the texts of `named`.
        parts: Number of messages, parts, calls and tools.
    """

    request: HasChat
    named: list[Named] | None
    named_size: int
    parts: int

    def size(self) -> int:
        """UTF-8 bytes of the chat's texts; see `size_of_chat`."""
        if self.named is not None and not self.request.tools:
            return self.named_size
        return self.named_size + size_of_chat(self.request)

    def texts(self) -> list[Named] | None:
        """The role and the text of each message; None if the chat has anything else."""
        if self.request.tools or self.request.HasField("options"):
            return None
        return self.named

    def messages(self) -> list[Message]:
        """The engine's messages.

        Raises:
            InvalidChat: A part is empty or unsupported, or its JSON is invalid.
        """
        if self.named is None:
            return messages_of(self.request.messages)
        return [
            Message(role, None if text is None else (text.decode(),)) for role, text in self.named
        ]


def take_chat(request_class: type[HasChat], raw: bytes) -> tuple[ParsedChat[HasChat], int]:
    """Parse a request; also returns its parts. Raises like `wire.parse`."""
    found = take_named_texts(raw, request_class.MESSAGES_FIELD_NUMBER)
    if found is None:
        request = wire.parse(request_class, raw)
        parts = parts_of_chat(request)
        return ParsedChat(request, None, 0, parts), parts
    rest, named = found
    request = wire.parse(request_class, rest)
    sizes = [len(text) for _, text in named if text is not None]
    parts = len(named) + len(sizes) + len(request.tools)
    return ParsedChat(request, named, sum(sizes), parts), parts


def parts_of(request: chat_pb2.BatchCountChatRequest) -> int:
    """Number of items of a batch, plus the parts of their chats unless the items are many."""
    count = len(request.items)
    return count if count > FEW_ITEMS else count + sum(map(parts_of_chat, request.items))


def parts_of_chat(chat: Any) -> int:
    """Number of messages, parts, calls and tools of one chat."""
    # Not a list: protobuf's objects take hundreds of times the bytes of an empty message.
    inside = sum(len(message.content) + len(message.tool_calls) for message in chat.messages)
    return len(chat.tools) + len(chat.messages) + inside


def size_of_chat(chat: Any) -> int:
    """UTF-8 bytes of all texts of one chat: every string of its messages and tools but the roles,
    which are names."""
    texts = tools_of(chat.tools)
    for message in chat.messages:
        for part in message.content:
            texts.append(part.text or part.json)
        for call in message.tool_calls:
            texts += (call.id, call.name, call.arguments_json)
        texts += _OTHER_TEXTS(message)
    return text_length("".join(texts), "byte")


def messages_of(messages: Any) -> list[Message]:
    """The engine's messages.

    Raises:
        InvalidChat: A part is empty or unsupported, or its JSON is invalid.
    """
    return [_message(index, message) for index, message in enumerate(messages)]


def _message(index: int, message: chat_pb2.ChatMessage) -> Message:
    role, content, fields = message.role, message.content, message.ListFields()
    parts = tuple([_part(index, at, part) for at, part in enumerate(content)]) or None
    if len(fields) == bool(role) + bool(parts):
        return Message(role, parts)
    others = {field.name: value for field, value in fields if field.number > _CONTENT}
    calls = []
    for at, call in enumerate(others.pop("tool_calls", ())):
        _json(index, f"tool_calls[{at}].arguments", call.arguments_json)
        calls.append(ToolCall(call.id, call.name, call.arguments_json))
    return Message(role, parts, tool_calls=tuple(calls), **others)


def _part(index: int, at: int, part: chat_pb2.ContentPart) -> Part:
    kind = part.WhichOneof("part")
    if kind == "text":
        return part.text
    if kind == "counted_tokens":
        return counted(index, at, part.counted_tokens)
    if kind == "json":
        value = _json(index, f"content[{at}]", part.json)
        if isinstance(value, dict) and value.get("type") in ("system_content", "developer_content"):
            return Structured(value["type"], value)
    raise InvalidChat(index, f"content[{at}]", "part_not_supported" if kind else "part_empty")


def _json(index: int, field: str, text: str) -> Any:
    try:
        return parse(text)
    except NotJson:
        raise InvalidChat(index, field, "not_json") from None


def tools_of(tools: Any) -> list[str]:
    """The JSON of each tool."""
    return [tool.json for tool in tools]


def options_of(request: HasChat | chat_pb2.BatchCountChatRequest) -> ChatOptions:
    """The engine's options.

    Raises:
        InvalidField, InvalidOption: A value is invalid.
    """
    if not request.HasField("options"):
        return DEFAULT_OPTIONS
    options = request.options
    prompts = options.add_generation_prompt or not options.HasField("add_generation_prompt")
    return ChatOptions(
        add_generation_prompt=prompts,
        continue_final_message=options.continue_final_message,
        past_reasoning=chosen(
            "options.past_reasoning",
            options.past_reasoning,
            chat_pb2.PastReasoning.Name,
            _PAST_REASONING,
        ),
        reasoning_effort=options.reasoning_effort,
        current_date=options.current_date,
        format_options=dict(options.format_options),
    )


def described(chosen: ChatFormat, encodings: list[Encoding]) -> chat_pb2.ChatFormat:
    """Describe a format and the loaded encodings that support it."""
    controls = chosen.controls | chosen.optional_controls
    for encoding in encodings:
        controls |= chosen.controls_in(encoding)
    return chat_pb2.ChatFormat(
        name=chosen.name,
        fingerprint=chosen.fingerprint,
        source=chosen.source,
        audience=chosen.audience,
        joining=_JOINING[chosen.joining],
        accuracy=ACCURACY[chosen.accuracy],
        encodes=chosen.encodes,
        control_tokens=sorted(controls),
        roles=chosen.roles,
        fields=sorted(chosen.fields - {"structured"}),
        tools=chosen.tools,
        encodings=sorted(encoding.name for encoding in encodings),
    )
