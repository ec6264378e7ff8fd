"""Count and encode chats: a format renders the layout, and the encoding encodes its texts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bytepair_engine.backends.interface import Text
from bytepair_engine.chat import json_text
from bytepair_engine.chat.costs import DEFAULT_OPTIONS, Costs, costs_of, is_plain
from bytepair_engine.chat.errors import InvalidChat
from bytepair_engine.chat.format import Accuracy, Chat, ChatFormat
from bytepair_engine.chat.layout import FRAME, TOOLS, Control, Layout, Run
from bytepair_engine.chat.messages import Message, Structured, Tool, read_messages, read_tools
from bytepair_engine.chat.options import ChatOptions
from bytepair_engine.chat.registry import get_chat_format
from bytepair_engine.encoding import Encoding, check_encoding
from bytepair_engine.errors import (
    InvalidOption,
    InvalidUnicode,
    SpecialTokenFound,
    check_least,
    check_type,
)
from bytepair_engine.vocabulary.special_sets import SpecialTokens

Messages = Sequence[Mapping[str, Any] | Message]
Tools = Sequence[Mapping[str, Any] | str | Tool] | None

#: The types of pieces that are not encoded with the other texts, which may be of a subclass of str.
_NO_TEXT: Final = frozenset({Control, Run, int})


@dataclass(frozen=True, slots=True)
class ChatCount:
    """The number of tokens of a chat.

    Attributes:
        count: The total; `limit` + 1 if it exceeds `limit`.
        limit_exceeded: Whether the total exceeds `limit`.
        accuracy: "exact", or "estimate" if the real rendering is not published.
        audience: The models that the rule applies to.
        rule: The rule and its source.
        message_counts: Tokens of each message; 0 if the format drops it. A token that spans two
            messages belongs to the first. Empty if `limit_exceeded`.
        tools_count: Tokens of the tools.
        frame_count: Tokens of the start of the text, the format's own system text and the
            generation prompt.
    """

    count: int
    limit_exceeded: bool
    accuracy: Accuracy
    audience: str
    rule: str
    message_counts: tuple[int, ...]
    tools_count: int
    frame_count: int


@dataclass(frozen=True, slots=True)
class EncodedChat:
    """The ids of a chat.

    Attributes:
        ids: The ids of the whole chat.
        segments: The rendered chat in order: texts and control tokens.
        message_spans: Start and end of the ids of each message, from the first to one after the
            last; equal for a message without ids. Other ids between them are included, such as
            those of a system text that the format writes inside the message of a user.
    """

    ids: list[int]
    segments: list[str | Control]
    message_spans: list[tuple[int, int]]


def count_chat(
    messages: Messages,
    *,
    encoding: Encoding,
    format: str | ChatFormat,  # noqa: A002
    tools: Tools = None,
    options: ChatOptions = DEFAULT_OPTIONS,
    limit: int | None = None,
    disallowed_special: SpecialTokens = (),
) -> ChatCount:
    """Count the tokens of a chat.

    Args:
        messages: Dictionaries in OpenAI's format; see `read_messages`.
        encoding: The encoding of the model.
        format: A name from `list_chat_formats`, or a format.
        tools: Dictionaries in OpenAI's format, or JSON text; None for no tools.
        options: See `ChatOptions`.
        limit: At least 0: counting may stop once the limit is exceeded. None for no limit.
        disallowed_special: Special tokens whose spelling in a text is an error; none by default.
            With any value, text never becomes a control token.
    Raises:
        UnknownChatFormat, ChatFormatMismatch, InvalidChat, InvalidOption: See these classes.
        SpecialTokenFound: A text contains a disallowed special token.
        InvalidUnicode: A text has a lone surrogate.

    >>> from bytepair_engine import get_encoding
    >>> chat = [{"role": "user", "content": "hello"}]
    >>> count_chat(chat, encoding=get_encoding("o200k_base"), format="openai-chat").count
    8
    """
    if limit is not None:
        check_least("limit", limit, 0)
    chosen, chat = read_chat(encoding, format, messages, tools, options)
    try:
        if limit is not None and exceeds(
            encoding, chosen.layout(chat, encoding), limit, disallowed_special
        ):
            return _result(chosen, chat, [0, 0], limit)
        counts = Counter(chosen, encoding, disallowed_special).counts(chat)
    except (SpecialTokenFound, InvalidUnicode) as error:
        raise located(error, chat, tools, encoding, disallowed_special) from None
    return _result(chosen, chat, counts, None)


def count_texts(
    messages: Sequence[tuple[str, Text | None]],
    *,
    encoding: Encoding,
    chosen: ChatFormat,
    disallowed_special: SpecialTokens = (),
) -> ChatCount | None:
    """Count a chat of plain messages, without tools and options, faster than `count_chat`.

    Args:
        messages: The role and the text of each message; text as `str`, UTF-8 bytes or None.
        encoding: See `count_chat`.
        chosen: The format.
        disallowed_special: See `count_chat`.
    Returns:
        The count; None if the format must render the chat, or rejects it, or if `count_chat` raises
        SpecialTokenFound.
    Raises:
        ChatFormatMismatch: See `count_chat`.
        InvalidUnicode: Bytes are not UTF-8.
    """
    costs = costs_of(chosen, encoding)
    roles = [role for role, _ in messages]
    if costs is None or not costs.by_role.keys() >= set(roles):
        return None
    texts = [text or "" for _, text in messages]
    try:
        counted = encoding.count_batch(texts, disallowed_special=disallowed_special)
    except SpecialTokenFound:
        return None
    counts = tuple(_with_costs(costs, roles, counted))
    total = sum(counts) + costs.frame
    sources = chosen.accuracy, chosen.audience, chosen.source
    return ChatCount(total, False, *sources, counts, 0, costs.frame)


def _with_costs(costs: Costs, roles: list[str], counted: list[int]) -> list[int]:
    by_role = costs.by_role
    return [by_role[role] + count for role, count in zip(roles, counted, strict=True)]


def read_chat(
    encoding: Encoding,
    chat_format: str | ChatFormat,
    messages: Messages,
    tools: Tools,
    options: ChatOptions,
) -> tuple[ChatFormat, Chat]:
    """Check the arguments, look up the format and parse the chat."""
    check_encoding(encoding)
    check_type("format", chat_format, str | ChatFormat, 'a name, such as "openai-chat"')
    check_type("options", options, ChatOptions, "ChatOptions")
    chosen = get_chat_format(chat_format) if isinstance(chat_format, str) else chat_format
    return chosen, Chat(read_messages(messages), read_tools(tools), options)


def _result(chosen: ChatFormat, chat: Chat, counts: list[int], limit: int | None) -> ChatCount:
    return ChatCount(
        sum(counts) if limit is None else limit + 1,
        limit is not None,
        chosen.accuracy_of(chat),
        chosen.audience,
        chosen.source,
        tuple(counts[:TOOLS]),
        counts[TOOLS],
        counts[FRAME],
    )


def exceeds(
    encoding: Encoding, layout: Layout, limit: int, disallowed_special: SpecialTokens
) -> bool:
    """Whether a layout has more than `limit` tokens. Stops encoding as soon as it does."""
    rest = limit - sum(
        piece if isinstance(piece, int) else 1
        for piece in layout.pieces
        if not isinstance(piece, str)
    )
    for piece in layout.pieces:
        if rest < 0:
            return True
        if isinstance(piece, str):
            rest -= encoding.count(piece, limit=rest, disallowed_special=disallowed_special)
    return rest < 0


def located(
    error: SpecialTokenFound | InvalidUnicode,
    chat: Chat,
    tools: Tools,
    encoding: Encoding,
    disallowed_special: SpecialTokens,
) -> SpecialTokenFound | InvalidUnicode:
    """Return the error of the first text of the chat with a disallowed special token or a lone
    surrogate."""
    for index, field, text in _texts(chat, tools):
        try:
            encoding.count(text, limit=0, disallowed_special=disallowed_special)
        except (SpecialTokenFound, InvalidUnicode) as found:
            found.index, found.field = index, field
            return found
    error.index, error.field = None, "messages"
    return error


def _texts(chat: Chat, tools: Tools) -> Iterator[tuple[int, str, str]]:
    """Yield the index of a message or tool, the path of each of its texts, and the text."""
    for index, message in enumerate(chat.messages):
        yield index, "content", message.text
        for at, part in enumerate(message.content or ()):
            if isinstance(part, Structured):
                yield index, f"content[{at}]", json_text.dumps(part.fields)
        for field, value in message._asdict().items():
            if isinstance(value, str) and field != "role":
                yield index, field, value
        for at, call in enumerate(message.tool_calls):
            for field, value in call._asdict().items():
                yield index, f"tool_calls[{at}].{field}", value
    for index, (given, tool) in enumerate(zip(tools or (), chat.tools, strict=True)):
        if isinstance(given, str):
            yield index, "tools", given
        yield index, "tools", json_text.dumps(tool.document)


class Counter:
    """Counts chats of one format, and caches the counts of their texts."""

    def __init__(
        self, chosen: ChatFormat, encoding: Encoding, disallowed_special: SpecialTokens
    ) -> None:
        self._format = chosen
        self._encoding = encoding
        self._disallowed = disallowed_special
        self._known: dict[str, int] = {}
        self._first: tuple[list[str], list[int]] | None = None

    def counts(self, chat: Chat) -> list[int]:
        """Return the counts of the messages, of the tools and of the frame, in this order."""
        costs = costs_of(self._format, self._encoding) if is_plain(chat) else None
        roles = [message.role for message in chat.messages]
        if costs is not None and costs.by_role.keys() >= set(roles):
            counted = self._counted([message.text for message in chat.messages])
            return [*_with_costs(costs, roles, counted), 0, costs.frame]
        return self._of_layout(self._format.layout(chat, self._encoding), len(roles))

    def _of_layout(self, layout: Layout, messages: int) -> list[int]:
        texts = [piece for piece in layout.pieces if type(piece) not in _NO_TEXT]
        counted = iter(self._counted(texts))  # type: ignore[arg-type]
        counts = [0] * (messages + 2)
        # By type: isinstance would take most of the time.
        for piece, owner in zip(layout.pieces, layout.owners, strict=True):
            kind = type(piece)
            if kind is Control:
                counts[owner] += 1
            elif kind is int:
                counts[owner] += piece  # type: ignore[operator]
            elif kind is Run:
                _, parts = _encoded_run(piece, self._encoding, self._disallowed)  # type: ignore[arg-type]
                for part, start, end in parts:
                    counts[part] += end - start
            else:
                counts[owner] += next(counted)
        return counts

    def _counted(self, texts: list[str]) -> list[int]:
        """Return the counts of texts. Encodes only texts that are not in earlier layouts."""
        if self._first is None:
            found = self._encoding.count_batch(texts, disallowed_special=self._disallowed)
            self._first = texts, found
            return found
        known = self._known
        if not known:
            known.update(zip(*self._first, strict=True))
        new = [text for text in texts if text not in known]
        found = self._encoding.count_batch(new, disallowed_special=self._disallowed)
        known.update(zip(new, found, strict=True))
        return [known[text] for text in texts]


def _encoded_run(
    run: Run, encoding: Encoding, disallowed_special: SpecialTokens
) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Return the ids of a run; and the owner, the start and the end of those of each part, which
    are the ids that start in it."""
    ids, offsets = encoding.encode_with_offsets(str(run), disallowed_special=disallowed_special)
    starts = [bisect_left(offsets, start) for start in run.starts]
    return ids, [*zip(run.parts_owners, starts, [*starts[1:], len(ids)], strict=True)]


def encode_chat(
    messages: Messages,
    *,
    encoding: Encoding,
    format: str | ChatFormat,  # noqa: A002
    tools: Tools = None,
    options: ChatOptions = DEFAULT_OPTIONS,
    disallowed_special: SpecialTokens = "all",
) -> EncodedChat:
    """Encode a chat into the ids that a model of this format receives.

    Args:
        messages: See `count_chat`.
        encoding: See `count_chat`.
        format: See `count_chat`.
        tools: See `count_chat`.
        options: See `count_chat`.
        disallowed_special: Special tokens whose spelling in a text is an error; all by default.
            With () they are encoded as ordinary text.
    Raises:
        UnknownChatFormat, ChatFormatMismatch, InvalidChat, SpecialTokenFound: See `count_chat`.
        InvalidOption: The format can only count; or see `count_chat`.
    """
    chosen, chat = read_chat(encoding, format, messages, tools, options)
    if not chosen.encodes:
        problem = f"{chosen.name!r} can only count: its rendering is not published"
        raise InvalidOption("format", problem)
    for index, message in enumerate(chat.messages):
        for at, part in enumerate(message.content or ()):
            if isinstance(part, int):
                advice = "counted tokens have no ids; count the chat instead"
                raise InvalidChat(index, f"content[{at}]", "part_not_supported", advice)
    layout = chosen.layout(chat, encoding)
    ids: list[int] = []
    spans: list[tuple[int, int] | None] = [None] * len(chat.messages)
    try:
        for found, parts in _encoded(layout, encoding, disallowed_special):
            for part, start, end in parts:
                if part >= 0 and start < end:
                    first = spans[part] or (len(ids) + start, 0)
                    spans[part] = first[0], len(ids) + end
            ids += found
    except (SpecialTokenFound, InvalidUnicode) as error:
        raise located(error, chat, tools, encoding, disallowed_special) from None
    segments = [piece for piece in layout.pieces if piece and not isinstance(piece, int)]
    return EncodedChat(ids, segments, _filled(spans))


def _encoded(
    layout: Layout, encoding: Encoding, disallowed_special: SpecialTokens
) -> Iterator[tuple[list[int], list[tuple[int, int, int]]]]:
    """Yield the ids of each piece, with those of each part as in `_encoded_run`."""
    texts = [piece for piece in layout.pieces if type(piece) not in _NO_TEXT]
    encoded = iter(
        encoding.encode_batch(texts, disallowed_special=disallowed_special)  # type: ignore[arg-type]
    )
    for piece, owner in zip(layout.pieces, layout.owners, strict=True):
        if isinstance(piece, Run):
            yield _encoded_run(piece, encoding, disallowed_special)
        elif isinstance(piece, Control):
            yield [encoding.special_tokens[piece.name]], [(owner, 0, 1)]
        else:
            ids = next(encoded)
            yield ids, [(owner, 0, len(ids))]


def _filled(spans: list[tuple[int, int] | None]) -> list[tuple[int, int]]:
    """Give each message without ids an empty span at the end of the previous one."""
    filled: list[tuple[int, int]] = []
    for span in spans:
        end = filled[-1][1] if filled else 0
        filled.append((end, end) if span is None else span)
    return filled
