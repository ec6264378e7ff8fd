"""Counting and encoding a chat: a format lays it out, the encoding gives the ids."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bytepair_engine.backends.interface import Text
from bytepair_engine.chat.costs import DEFAULT_OPTIONS, Costs, costs_of, is_plain
from bytepair_engine.chat.errors import InvalidChat
from bytepair_engine.chat.format import Accuracy, Chat, ChatFormat
from bytepair_engine.chat.layout import FRAME, TOOLS, Control, Layout, Run
from bytepair_engine.chat.messages import Message, Tool, read_messages, read_tools
from bytepair_engine.chat.options import ChatOptions
from bytepair_engine.chat.registry import get_chat_format
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import InvalidOption
from bytepair_engine.vocabulary.special_sets import SpecialTokens

Messages = Sequence[Mapping[str, Any] | Message]
Tools = Sequence[Mapping[str, Any] | str | Tool] | None


@dataclass(frozen=True, slots=True)
class ChatCount:
    """How many tokens a chat has.

    Attributes:
        count: All of them; `limit` + 1 where there are more than `limit`.
        limit_exceeded: Whether there are more than `limit`.
        accuracy: "exact", or "estimate" where the rule is not what models are really given.
        audience: For which models.
        rule: By which rule, with its source.
        message_counts: Those of each message; 0 for one that the format drops. A token over a
            split point belongs to the earlier side. Empty where `limit_exceeded`.
        tools_count: What the tools add.
        frame_count: The start of the text, system text of the format's own, the reply's start.
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
        ids: All of them.
        segments: What they are the ids of, in order: text, or a control token.
        message_spans: For each message where its ids begin and end; equal for one that is dropped.
            From the first to the last: where a format puts other ids between, they are inside.
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
        messages: OpenAI-shaped dictionaries; see `read_messages`.
        encoding: The model's.
        format: A name of `list_chat_formats`, or a format.
        tools: OpenAI-shaped dictionaries, or JSON text; None for none.
        options: See `ChatOptions`.
        limit: If given, counting may stop once there are more tokens.
        disallowed_special: Special tokens that no text may contain; none by default. Text never
            becomes a control token, whatever this is.
    Raises:
        UnknownChatFormat, ChatFormatMismatch, InvalidChat, InvalidOption: See there.
        SpecialTokenFound: A text contains a disallowed special token.

    >>> from bytepair_engine import get_encoding
    >>> chat = [{"role": "user", "content": "hello"}]
    >>> count_chat(chat, encoding=get_encoding("o200k_base"), format="openai-chat").count
    8
    """
    if limit is not None and limit < 0:
        raise InvalidOption("limit", f"must be 0 or more, and is {limit}")
    chosen, chat = read_chat(format, messages, tools, options)
    if limit is not None and exceeds(
        encoding, chosen.layout(chat, encoding), limit, disallowed_special
    ):
        return _result(chosen, chat, [], limit)
    counts = Counter(chosen, encoding, disallowed_special).counts(chat)
    return _result(chosen, chat, counts, None)


def count_texts(
    messages: Sequence[tuple[str, Text | None]],
    *,
    encoding: Encoding,
    chosen: ChatFormat,
    disallowed_special: SpecialTokens = (),
) -> ChatCount | None:
    """As `count_chat` for messages that are a role and a text, or None, without tools and options.

    Args:
        messages: Roles and texts, which may come as their UTF-8.
        encoding: As of `count_chat`.
        chosen: The format.
        disallowed_special: As of `count_chat`.
    Returns:
        None where the format has to lay the chat out, and where it refuses it.
    Raises:
        ChatFormatMismatch, SpecialTokenFound: See `count_chat`.
        InvalidUnicode: Bytes are not UTF-8.
    """
    costs = costs_of(chosen, encoding)
    roles = [role for role, _ in messages]
    if costs is None or not costs.by_role.keys() >= set(roles):
        return None
    texts = [text or "" for _, text in messages]
    counted = encoding.count_batch(texts, disallowed_special=disallowed_special)
    counts = tuple(_with_costs(costs, roles, counted))
    total = sum(counts) + costs.frame
    sources = chosen.accuracy, chosen.audience, chosen.source
    return ChatCount(total, False, *sources, counts, 0, costs.frame)


def _with_costs(costs: Costs, roles: list[str], counted: list[int]) -> list[int]:
    by_role = costs.by_role
    return [by_role[role] + count for role, count in zip(roles, counted, strict=True)]


def read_chat(
    chat_format: str | ChatFormat, messages: Messages, tools: Tools, options: ChatOptions
) -> tuple[ChatFormat, Chat]:
    """The format, and the chat in the form that formats take."""
    chosen = get_chat_format(chat_format) if isinstance(chat_format, str) else chat_format
    return chosen, Chat(read_messages(messages), read_tools(tools), options)


def _result(chosen: ChatFormat, chat: Chat, counts: list[int], limit: int | None) -> ChatCount:
    exceeded = limit is not None
    return ChatCount(
        sum(counts) if limit is None else limit + 1,
        exceeded,
        chosen.accuracy_of(chat),
        chosen.audience,
        chosen.source,
        () if exceeded else tuple(counts[:TOOLS]),
        0 if exceeded else counts[TOOLS],
        0 if exceeded else counts[FRAME],
    )


def exceeds(
    encoding: Encoding, layout: Layout, limit: int, disallowed_special: SpecialTokens
) -> bool:
    """Whether a layout has more than `limit` tokens; encodes no more than that needs."""
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


class Counter:
    """Counts chats of one format, and encodes each text once however many of them hold it."""

    def __init__(
        self, chosen: ChatFormat, encoding: Encoding, disallowed_special: SpecialTokens
    ) -> None:
        self._format = chosen
        self._encoding = encoding
        self._disallowed = disallowed_special
        self._known: dict[str, int] = {}
        self._first: tuple[list[str], list[int]] | None = None

    def counts(self, chat: Chat) -> list[int]:
        """The counts of the messages, then those of the tools and of the frame."""
        costs = costs_of(self._format, self._encoding) if is_plain(chat) else None
        roles = [message.role for message in chat.messages]
        if costs is not None and costs.by_role.keys() >= set(roles):
            counted = self._counted([message.text for message in chat.messages])
            return [*_with_costs(costs, roles, counted), 0, costs.frame]
        return self._of_layout(self._format.layout(chat, self._encoding), len(roles))

    def _of_layout(self, layout: Layout, messages: int) -> list[int]:
        counted = iter(self._counted([piece for piece in layout.pieces if type(piece) is str]))
        counts = [0] * (messages + 2)
        # By type: isinstance would take most of the time.
        for piece, owner in zip(layout.pieces, layout.owners, strict=True):
            kind = type(piece)
            if kind is str:
                counts[owner] += next(counted)
            elif kind is int:
                counts[owner] += piece  # type: ignore[operator]
            elif kind is Run:
                self._share(piece, counts)  # type: ignore[arg-type]
            else:
                counts[owner] += 1
        return counts

    def _counted(self, texts: list[str]) -> list[int]:
        """The counts of texts. Only texts that were in no earlier layout are encoded."""
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

    def _share(self, run: Run, counts: list[int]) -> None:
        """Give each token of a run to the owner in whose part it starts."""
        _, offsets = self._encoding.encode_with_offsets(
            str(run), disallowed_special=self._disallowed
        )
        for offset in offsets:
            counts[run.parts_owners[bisect_right(run.starts, offset) - 1]] += 1


def encode_chat(
    messages: Messages,
    *,
    encoding: Encoding,
    format: str | ChatFormat,  # noqa: A002
    tools: Tools = None,
    options: ChatOptions = DEFAULT_OPTIONS,
    disallowed_special: SpecialTokens = "all",
) -> EncodedChat:
    """Encode a chat: the ids that a model of the format is given.

    Args:
        messages: As of `count_chat`.
        encoding: As of `count_chat`.
        format: As of `count_chat`.
        tools: As of `count_chat`.
        options: As of `count_chat`.
        disallowed_special: Special tokens whose spelling in a text is an error: all by default.
            With () they are encoded as ordinary text.
    Raises:
        UnknownChatFormat, ChatFormatMismatch, InvalidChat, SpecialTokenFound: See `count_chat`.
        InvalidOption: The format only counts; or see `count_chat`.
    """
    chosen, chat = read_chat(format, messages, tools, options)
    if not chosen.encodes:
        raise InvalidOption("format", f"{chosen.name!r} only counts: its ids are not published")
    for index, message in enumerate(chat.messages):
        if any(isinstance(part, int) for part in message.content or ()):
            raise InvalidChat(index, "content", "part_not_supported")
    layout = chosen.layout(chat, encoding)
    texts = [piece for piece in layout.pieces if isinstance(piece, str)]
    encoded = iter(encoding.encode_batch(texts, disallowed_special=disallowed_special))
    ids: list[int] = []
    spans: list[tuple[int, int] | None] = [None] * len(chat.messages)
    for piece, owner in zip(layout.pieces, layout.owners, strict=True):
        start = len(ids)
        if isinstance(piece, Control):
            ids.append(encoding.special_tokens[piece.name])
        else:
            ids += next(encoded)
        owners = piece.parts_owners if isinstance(piece, Run) else (owner,)
        for part in owners:
            if part >= 0:
                span = spans[part]
                spans[part] = (start if span is None else span[0], len(ids))
    segments = [piece for piece in layout.pieces if piece and not isinstance(piece, int)]
    return EncodedChat(ids, segments, _filled(spans))


def _filled(spans: list[tuple[int, int] | None]) -> list[tuple[int, int]]:
    """An empty span, where the one before ends, for each message that is dropped."""
    filled: list[tuple[int, int]] = []
    for span in spans:
        end = filled[-1][1] if filled else 0
        filled.append((end, end) if span is None else span)
    return filled
