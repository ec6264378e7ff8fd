"""Chats: counting, encoding, and fitting into a context window."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final, Literal, Unpack, overload

from bytepair.v1 import chat_pb2

from bytepair_client._arguments import (
    Defaults,
    DisallowedSpecial,
    checked_iterable,
    invalid,
    lone_surrogate,
    not_bytes,
)
from bytepair_client._call import Call, Method, Plain, Response, method
from bytepair_client._errors import EstimateNotAllowed, TokenizerError
from bytepair_client._operations.batches import Batch, BatchOptions, Item
from bytepair_client._operations.requests import EncodingOptions, prepared, set_field

COUNT_CHAT = method("CountChat", attrgetter("count"))
ENCODE_CHAT = method("EncodeChat", lambda response: list(response.ids))
FIT_CHAT = method("FitChat", lambda response: list(response.kept))
BATCH_COUNT_CHAT = method("BatchCountChat", COUNT_CHAT.plain)

ChatMessages = Iterable[Mapping[str, Any]]
ChatTools = Iterable[Mapping[str, Any] | str] | None
#: Messages, or {"messages": …, "tools": …}.
Chats = Iterable[ChatMessages | Mapping[str, Any]]
_Chat = tuple[Any, Any]
_NO_LIST = (str, bytes, bytearray, Mapping)  # iterables whose elements are no messages or tools

_RENDERING = frozenset(chat_pb2.ChatOptions.DESCRIPTOR.fields_by_name)
#: The fields of a message; `reasoning_content` is another name of `reasoning`.
_FIELDS = frozenset(chat_pb2.ChatMessage.DESCRIPTOR.fields_by_name) | {"reasoning_content"}
#: The types of those that are not strings.
_LISTS: Final = {
    "content": (
        'a string, or a list of parts such as {"type": "text", "text": "…"}, or {"type": '
        '"counted_tokens", "tokens": N} where N is 0 or more'
    ),
    "tool_calls": "a list of calls with a function's name and arguments",
}
_TOOL: Final = 'a definition such as {"type": "function", "function": {…}}, or its JSON'


def _counting(method: Method[Response, int], allow_estimate: bool) -> Method[Response, int]:
    """The method, whose estimates are errors unless they are allowed."""
    if not isinstance(allow_estimate, bool):
        raise TypeError(f"allow_estimate must be a bool, not {type(allow_estimate).__name__}")
    return method if allow_estimate else replace(method, problem=_estimated)


def _estimated(counted: chat_pb2.CountChatResponse | chat_pb2.CountChatResult) -> Any:
    """The error for a count that is an estimate; None if it is exact."""
    if counted.accuracy == chat_pb2.ACCURACY_EXACT:
        return None
    return EstimateNotAllowed(
        f"the count of this chat, {counted.count}, is an estimate: no rule is published for its "
        "tools or for the model that encoding names, or it has counted parts; allow_estimate=True "
        "returns it",
        metadata={"count": str(counted.count)},
    )


class ChatOptions(EncodingOptions, total=False):
    """Options of every method for chats; `count_chat` describes them."""

    add_generation_prompt: bool
    continue_final_message: bool
    past_reasoning: str
    reasoning_effort: str
    current_date: str
    format_options: Mapping[str, str] | None
    expected_format_fingerprint: str


class ChatBatchOptions(ChatOptions, BatchOptions, total=False):
    """Options of `count_chat_batch`."""

    allow_estimate: bool
    disallowed_special: DisallowedSpecial


def count_chat(
    defaults: Defaults,
    messages: ChatMessages,
    *,
    format: str,  # noqa: A002
    tools: ChatTools = None,
    limit: int | None = None,
    allow_estimate: bool = False,
    disallowed_special: DisallowedSpecial = (),
    **options: Unpack[ChatOptions],
) -> Call[chat_pb2.CountChatResponse, int]:
    """Count the tokens of a chat, control tokens included.

    `with_raw_response` returns estimates too. It also says whether the count is exact, by which
    rule, and the count of each message.

    The other arguments are those of `count`.

    Args:
        messages: As in OpenAI's API: {"role", "content", "name", "tool_calls", "tool_call_id"}.
            The content is a string, a list of text parts, or None.
        format: The chat format of the model, such as "harmony"; `list_chat_formats` lists them.
        tools: As in OpenAI's API: {"type": "function", "function": {…}}, or JSON text.
        allow_estimate: Whether to return a count that is not known to be exact.
        add_generation_prompt: Whether to count the start of the assistant's reply.
        continue_final_message: Whether the assistant's last message stays open.
        past_reasoning: Which earlier reasoning is dropped: "default" for the format's own rule, or
            the name of another, such as "keep" to drop none.
        reasoning_effort: One of the format's values; "" for its default.
        current_date: The date in the rendering, such as "2026-11-23", if the format has one.
        format_options: Options of the format itself.
        disallowed_special: For control tokens in message text: () to count them as ordinary text,
            or "all" to fail with SpecialTokenInText.
        expected_format_fingerprint: The fingerprint that the format must have; otherwise the call
            fails with FingerprintMismatch. "" for any.
    Returns:
        The number of tokens, at most `limit` + 1.
    Raises:
        EstimateNotAllowed: The count is an estimate.
    """
    own = {"format": format, "limit": limit, "disallowed_special": disallowed_special}
    return _chat_call(
        _counting(COUNT_CHAT, allow_estimate), defaults, messages, tools, **own, **options
    )


def encode_chat(
    defaults: Defaults,
    messages: ChatMessages,
    *,
    format: str,  # noqa: A002
    tools: ChatTools = None,
    disallowed_special: DisallowedSpecial = "all",
    **options: Unpack[ChatOptions],
) -> Call[chat_pb2.EncodeChatResponse, list[int]]:
    """Encode a chat. Only its structure gives control tokens, never its text.

    The operator must permit the format. The other arguments are those of `count_chat`.

    Args:
        disallowed_special: For control tokens in message text: "all" to fail with
            SpecialTokenInText, or () to read them as ordinary text.
    Returns:
        The ids, in order.
    """
    own = {"format": format, "disallowed_special": disallowed_special}
    return _chat_call(ENCODE_CHAT, defaults, messages, tools, **own, **options)


def fit_chat(
    defaults: Defaults,
    messages: ChatMessages,
    max_tokens: int,
    *,
    format: str,  # noqa: A002
    tools: ChatTools = None,
    reserve_tokens: int = 0,
    keep_system: bool = True,
    pinned: Sequence[int] = (),
    min_last_turns: int = 1,
    refill_percent: int = 100,
    disallowed_special: DisallowedSpecial = (),
    **options: Unpack[ChatOptions],
) -> Call[chat_pb2.FitChatResponse, list[int]]:
    """Choose the messages that fit into a context window.

    These are the system messages at the start, the pinned messages, and the longest run of complete
    turns at the end. A tool call is kept together with its results.

    The other arguments are those of `count_chat`.

    Args:
        max_tokens: The size of the context window.
        reserve_tokens: Tokens of the window to reserve for the model's reply.
        keep_system: Whether to keep system and developer messages at the start.
        pinned: Indices of messages to keep.
        min_last_turns: The number of turns at the end to keep.
        refill_percent: If messages must be dropped, keep at most this share of the budget.
    Returns:
        The indices of the messages to keep, increasing.
    Raises:
        BudgetTooSmall: The messages that must be kept do not fit.
    """
    return _chat_call(
        FIT_CHAT,
        defaults,
        messages,
        tools,
        format=format,
        max_tokens=max_tokens,
        reserve_tokens=reserve_tokens,
        keep_system=keep_system,
        pinned=list(checked_iterable("pinned", pinned)),
        min_last_turns=min_last_turns,
        refill_percent=refill_percent,
        disallowed_special=disallowed_special,
        **options,
    )


@overload
def count_chat_batch(
    defaults: Defaults,
    chats: Chats,
    *,
    format: str,
    limit: int | None = None,
    return_exceptions: Literal[False] = False,
    **options: Unpack[ChatBatchOptions],
) -> Batch[chat_pb2.BatchCountChatResponse, int]: ...
@overload
def count_chat_batch(
    defaults: Defaults,
    chats: Chats,
    *,
    format: str,
    limit: int | None = None,
    return_exceptions: bool = False,
    **options: Unpack[ChatBatchOptions],
) -> Batch[chat_pb2.BatchCountChatResponse, int | TokenizerError]: ...
def count_chat_batch(
    defaults: Defaults,
    chats: Chats,
    *,
    format: str,  # noqa: A002
    **options: Any,
) -> Batch[Any, Any]:
    """Count the tokens of any number of chats, each as `count_chat` does.

    The other arguments are those of `count_chat` and of `encode_batch`.

    Args:
        chats: Each a list of messages as for `count_chat`, or {"messages": …, "tools": …}. They are
            read when requests are made.
        limit: As for `count`, for each chat.
    Returns:
        The number of tokens of each chat, in order; [] for no chats.
    """

    def one(chat: _Chat, **each: Any) -> Call[chat_pb2.CountChatResponse, int]:
        return count_chat(defaults, chat[0], tools=chat[1], **each)

    def measured(chat: ChatMessages | Mapping[str, Any], name: str) -> Item:
        value, message = _chat(chat), chat_pb2.ChatItem()
        set_chat(message, *value, f"messages of {name}")
        return Item(value, message, message.ByteSize())

    options["format"] = format
    counting = _counting(BATCH_COUNT_CHAT, options.get("allow_estimate", False))
    return Batch(counting, one, ([], []), "chats", chats, measured, defaults, **options)


def _chat(chat: ChatMessages | Mapping[str, Any]) -> _Chat:
    """The messages and tools of a chat."""
    if not isinstance(chat, Mapping):
        return _listed(chat), []
    if problem := problem_of(chat):
        raise invalid("chats", problem)
    return _listed(chat["messages"]), _listed(chat.get("tools") or ())


def problem_of(chat: Mapping[str, Any]) -> str:
    """What is wrong with the fields of a chat; "" if nothing is."""
    if "messages" not in chat:  # for example, a message instead of a chat
        return 'each must be a list of messages, or a mapping with "messages"'
    unknown = sorted(map(repr, chat.keys() - {"messages", "tools"}))
    return f"unknown field {unknown[0][:64]}; a chat has messages and tools" if unknown else ""


def _listed(values: Any) -> Any:
    """A list, which can be read again; `set_chat` rejects what cannot be one."""
    is_one = isinstance(values, _NO_LIST) or not isinstance(values, Iterable)
    return values if is_one else list(values)


def _chat_call(
    method: Method[Response, Plain],
    defaults: Defaults,
    messages: ChatMessages,
    tools: ChatTools,
    **fields: Any,
) -> Call[Response, Plain]:
    """The call for a chat; `fields` are those of the request and of its options."""
    rendering = {name: fields.pop(name) for name in _RENDERING & fields.keys()}
    request, seconds = prepared(method, defaults, **fields)
    for name, value in rendering.items():
        set_field(request.options, name, value)
    set_chat(request, messages, tools)
    return Call(method, request, seconds)


def set_chat(wire: Any, messages: ChatMessages, tools: ChatTools, name: str = "messages") -> None:
    """Set the messages and tools of a request or a batch item.

    Raises TypeError, with `name`, if `messages` is not a list, InvalidOption if one or a tool is
    malformed, InvalidUtf8 if one holds a lone surrogate.
    """
    if isinstance(messages, _NO_LIST) or not isinstance(messages, Iterable):
        raise TypeError(f"{name} must be a list of dicts, not {type(messages).__name__}")
    for index, message in enumerate(messages):
        wrong = _set_message(wire.messages.add(), message, f"message {index}")
        if wrong:
            raise invalid("messages", f"message {index}: {wrong}")
    if isinstance(tools, _NO_LIST) or not isinstance(tools, Iterable | None):
        raise invalid("tools", "must be a list of tools")
    for index, tool in enumerate(tools or ()):
        if isinstance(tool, str):
            # The server parses the JSON; here only a name in place of it is found.
            given = "" if tool.lstrip().startswith("{") else repr(tool[:64])
        else:
            given = "" if isinstance(tool, Mapping) else type(tool).__name__
        if given:
            raise invalid("tools", f"tool {index} must be {_TOOL}, not {given}")
        try:
            text = tool if isinstance(tool, str) else json.dumps(tool, ensure_ascii=False)
            wire.tools.add(json=text)
        except UnicodeEncodeError as error:
            raise lone_surrogate(error.object, error.start, name=f"tool {index}") from None
        except (TypeError, ValueError):
            raise invalid("tools", f"tool {index} is not JSON") from None


def _set_message(wire: chat_pb2.ChatMessage, message: Mapping[str, Any], name: str) -> str:
    """Fill a message. Returns the problem; "" if there is none. Raises InvalidUtf8, with `name`."""
    if not isinstance(message, Mapping):
        return "must be a mapping"
    if message.get("role") is None:
        return "role must be a string"
    for field, value in message.items():
        if value is None or (value == [] and field not in _FIELDS):
            continue  # OpenAI's messages have empty lists of kinds that are unknown here
        if field not in _FIELDS:
            known = ", ".join(sorted(_FIELDS))
            return f"unknown field {str(field)[:64]!r}; a message has {known}"
        try:
            if field == "content":
                _set_content(wire, value)
            elif field == "tool_calls":
                _set_tool_calls(wire, value)
            elif field != "reasoning_content":
                setattr(wire, field, not_bytes(value))
            elif message.get("reasoning") in (None, value):
                wire.reasoning = not_bytes(value)
            else:
                return "reasoning and reasoning_content name the same text, and differ"
        except UnicodeEncodeError as error:
            at_fault = f"{name}: {_path(wire, field, value)}"
            raise lone_surrogate(error.object, error.start, name=at_fault) from None
        except (TypeError, ValueError, AttributeError, KeyError):
            path = _path(wire, field, value)
            at_fault = "" if path == field else f"{path}: "
            return f"{at_fault}{field} must be {_LISTS.get(field, 'a string')}"
    return ""


def _path(wire: chat_pb2.ChatMessage, field: str, value: Any) -> str:
    """The part or call that was set last, or the field if that is no list."""
    is_list = field in _LISTS and not isinstance(value, _NO_LIST)
    number = len(getattr(wire, field)) if is_list else 0
    return f"{field}[{number - 1}]" if number else field


def _set_content(wire: chat_pb2.ChatMessage, content: Any) -> None:
    if isinstance(content, Mapping):
        raise TypeError("a part, whose keys would be read as texts")
    for part in (content,) if isinstance(content, str) else content:
        added = wire.content.add()
        if isinstance(part, str):
            added.text = part
        elif part["type"] == "text":
            added.text = not_bytes(part["text"])
        elif part["type"] == "counted_tokens":
            added.counted_tokens = part["tokens"]
        else:
            added.json = json.dumps(part, ensure_ascii=False)


def _set_tool_calls(wire: chat_pb2.ChatMessage, calls: Any) -> None:
    for call in calls:
        added = wire.tool_calls.add()
        if call.get("type") not in (None, "function"):
            raise ValueError("another kind of call")
        function = call.get("function", call)
        arguments = function["arguments"]
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        added.id = not_bytes(call.get("id") or "")
        added.name = not_bytes(function["name"])
        added.arguments_json = arguments
