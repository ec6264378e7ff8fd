"""What a message costs beside its text, in formats where that is the same in every chat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from bytepair_engine.chat.format import Chat, ChatFormat
from bytepair_engine.chat.messages import NOTHING_ELSE, Message
from bytepair_engine.chat.options import ChatOptions
from bytepair_engine.encoding import Encoding

DEFAULT_OPTIONS: Final = ChatOptions()


@dataclass(frozen=True, slots=True)
class Costs:
    """Tokens of a chat beside those of its texts, by default options and without tools.

    Attributes:
        by_role: Of a message that has a role and a text, and nothing else. Without roles whose
            messages make a count less sure.
        frame: Of the chat.
    """

    by_role: dict[str, int]
    frame: int


_KNOWN: Final[WeakKeyDictionary[Encoding, dict[ChatFormat, Costs]]] = WeakKeyDictionary()


def costs_of(chosen: ChatFormat, encoding: Encoding) -> Costs | None:
    """The costs of a format; None for one in which they depend on more than the role.

    Raises:
        ChatFormatMismatch: The encoding does not have what the format needs.
    """
    if not chosen.additive or chosen.joining != "piecewise":
        return None
    known = _KNOWN.setdefault(encoding, {})
    if chosen not in known:
        frame = _total(chosen, Chat(()), encoding)
        chats = {role: Chat((Message(role),)) for role in chosen.roles}
        by_role = {
            role: _total(chosen, chat, encoding) - frame
            for role, chat in chats.items()
            if chosen.accuracy_of(chat) == chosen.accuracy
        }
        known[chosen] = Costs(by_role, frame)
    return known[chosen]


def _total(chosen: ChatFormat, chat: Chat, encoding: Encoding) -> int:
    total = 0
    for piece in chosen.layout(chat, encoding).pieces:
        if isinstance(piece, str):
            total += encoding.count(piece)
        else:
            total += piece if isinstance(piece, int) else 1
    return total


def is_plain(chat: Chat) -> bool:
    """Whether its messages have a role and at most one text each, and it has nothing else."""
    if chat.tools or chat.options != DEFAULT_OPTIONS or not chat.kinds <= {str}:
        return False
    parts = [len(message.content) for message in chat.messages if message.content]
    others = [message[2:] for message in chat.messages]
    return parts.count(1) == len(parts) and others.count(NOTHING_ELSE) == len(others)
