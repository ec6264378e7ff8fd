"""Chats in batches: counted, each by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Literal, cast, overload

from bytepair.v1 import chat_pb2

from bytepair_client._call import Call, Method
from bytepair_client._errors import InvalidOption, TokenizerError
from bytepair_client._operations.batches import Batch, Item, Progress
from bytepair_client._operations.chat_requests import (
    ChatMessages,
    ChatTools,
    fill,
    set_chat,
    set_options,
)
from bytepair_client._operations.chats import CHAT_SERVICE, COUNT_CHAT
from bytepair_client._operations.common import set_encoding
from bytepair_client._options import (
    NOT_GIVEN,
    Defaults,
    Fingerprint,
    Timeout,
    checked_limit,
    chosen_timeout,
)
from bytepair_client._text import DisallowedSpecial

BATCH_COUNT_CHAT = Method(
    f"{CHAT_SERVICE}BatchCountChat", chat_pb2.BatchCountChatResponse.FromString
)

#: Messages, or {"messages": …, "tools": …}.
Chats = Iterable[ChatMessages | Mapping[str, Any]]


@overload
def count_chat_batch(
    defaults: Defaults,
    chats: Chats,
    *,
    format: str,
    add_generation_prompt: bool = True,
    continue_final_message: bool = False,
    past_reasoning: str = "default",
    reasoning_effort: str = "",
    current_date: str = "",
    format_options: Mapping[str, str] | None = None,
    limit: int | None = None,
    encoding: str | None = None,
    disallowed_special: DisallowedSpecial = (),
    return_exceptions: Literal[False] = False,
    progress: Progress | None = None,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    expected_format_fingerprint: str = "",
    timeout: Timeout = NOT_GIVEN,
) -> Batch[chat_pb2.BatchCountChatResponse, int]: ...
@overload
def count_chat_batch(
    defaults: Defaults,
    chats: Chats,
    *,
    format: str,
    add_generation_prompt: bool = True,
    continue_final_message: bool = False,
    past_reasoning: str = "default",
    reasoning_effort: str = "",
    current_date: str = "",
    format_options: Mapping[str, str] | None = None,
    limit: int | None = None,
    encoding: str | None = None,
    disallowed_special: DisallowedSpecial = (),
    return_exceptions: bool,
    progress: Progress | None = None,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    expected_format_fingerprint: str = "",
    timeout: Timeout = NOT_GIVEN,
) -> Batch[chat_pb2.BatchCountChatResponse, int | TokenizerError]: ...
def count_chat_batch(
    defaults: Defaults,
    chats: Chats,
    *,
    format: str,  # noqa: A002
    add_generation_prompt: bool = True,
    continue_final_message: bool = False,
    past_reasoning: str = "default",
    reasoning_effort: str = "",
    current_date: str = "",
    format_options: Mapping[str, str] | None = None,
    limit: int | None = None,
    encoding: str | None = None,
    disallowed_special: DisallowedSpecial = (),
    return_exceptions: bool = False,
    progress: Progress | None = None,
    expected_fingerprint: Fingerprint = NOT_GIVEN,
    expected_format_fingerprint: str = "",
    timeout: Timeout = NOT_GIVEN,
) -> Batch[chat_pb2.BatchCountChatResponse, Any]:
    """Count the tokens of any number of chats, each as `count_chat` would.

    They go in requests of a size that the server takes, several of them at one time.

    Args:
        chats: Each a list of messages as for `count_chat`, or {"messages": …, "tools": …}; read as
            requests are made.
        format: As for `count_chat`, like the eight that follow.
        add_generation_prompt: Whether to count what begins the assistant's reply.
        continue_final_message: Whether the assistant's last message stays open.
        past_reasoning: "default", or a rule that the format has.
        reasoning_effort: One of the format's values; "" for its default.
        current_date: Such as "2026-11-23", where the format writes one.
        format_options: The format's own options.
        limit: As for `count`, for each chat by itself.
        encoding: Name or alias; None for the client's.
        disallowed_special: () to count control tokens that text contains as text, "all" to fail.
        return_exceptions: As for `encode_batch`, like `progress`.
        progress: Called with the number of chats that are done, after each request.
        expected_fingerprint: What the encoding must be.
        expected_format_fingerprint: What the format must be; "" for any.
        timeout: Seconds for the whole batch; None for no deadline. Left out: the client's, for
            each request.
    Returns:
        The number of tokens of each chat, in order; [] for no chats.
    Raises:
        TokenizerError: See the tree in the documentation.
    """
    # With the fields that a request for one chat has too, and without one.
    options = chat_pb2.CountChatRequest(limit=checked_limit(limit))
    fill(options, (), format, None, disallowed_special, expected_format_fingerprint)
    set_options(
        options.options,
        add_generation_prompt,
        continue_final_message,
        past_reasoning,
        reasoning_effort,
        current_date,
        format_options,
    )
    set_encoding(options, defaults, encoding, expected_fingerprint)
    request = chat_pb2.BatchCountChatRequest(
        encoding=options.encoding,
        format=options.format,
        options=options.options,
        limit=options.limit if options.HasField("limit") else None,
        disallowed_special=options.disallowed_special,
        expected_fingerprint=options.expected_fingerprint,
        expected_format_fingerprint=options.expected_format_fingerprint,
    )

    def alone(item: chat_pb2.ChatItem, seconds: Timeout) -> Call[Any, Any]:
        single = chat_pb2.CountChatRequest(messages=item.messages, tools=item.tools)
        single.MergeFrom(options)
        return Call(COUNT_CHAT, single, chosen_timeout(defaults, seconds), _count)

    return Batch(
        defaults,
        BATCH_COUNT_CHAT,
        request,
        _items(chats, alone),
        _count,
        timeout=timeout,
        return_exceptions=return_exceptions,
        progress=progress,
    )


def _items(chats: Chats, alone: Any) -> Iterator[Item]:
    for index, chat in enumerate(chats):
        messages: Any = chat
        tools: ChatTools = None
        if isinstance(chat, Mapping):
            messages, tools = chat.get("messages", ()), cast(ChatTools, chat.get("tools"))
        item = chat_pb2.ChatItem()
        try:
            set_chat(item, messages, tools)
        except InvalidOption as error:
            error.item = index
            raise
        yield Item(item, item.ByteSize(), partial(alone, item))


def _count(result: chat_pb2.CountChatResult | chat_pb2.CountChatResponse) -> int:
    return result.count
