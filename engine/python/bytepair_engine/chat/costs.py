"""The constant token overhead of a message, for formats where it does not depend on the chat."""

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
    """Token overhead of a chat with default options and without tools.

    Attributes:
        by_role: Overhead of a message with only a role and a text. Roles that make the count an
            estimate are left out.
        frame: Overhead of the chat itself.
    """

    by_role: dict[str, int]
    frame: int


_KNOWN: Final[WeakKeyDictionary[Encoding, dict[ChatFormat, Costs]]] = WeakKeyDictionary()


def costs_of(chosen: ChatFormat, encoding: Encoding) -> Costs | None:
    """Return the costs of a format; None if they depend on more than the role.

    Raises:
        ChatFormatMismatch: The encoding does not support the format.
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
    """Whether a chat has only messages with a role and at most one text, and default options."""
    if chat.tools or chat.options != DEFAULT_OPTIONS or not chat.kinds <= {str}:
        return False
    parts = [len(message.content) for message in chat.messages if message.content]
    others = [message[2:] for message in chat.messages]
    return parts.count(1) == len(parts) and others.count(NOTHING_ELSE) == len(others)
