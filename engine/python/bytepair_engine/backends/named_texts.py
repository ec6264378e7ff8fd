"""Repeated fields whose elements are a name and a text, as Protocol Buffers writes them."""

from __future__ import annotations

from functools import cache
from typing import Protocol

#: A name, and the UTF-8 of a text, or None where there is none.
Named = tuple[str, bytes | None]


class _Take(Protocol):
    def __call__(self, data: bytes, number: int, /) -> tuple[bytes, list[Named]] | None: ...


def take_named_texts(data: bytes, number: int) -> tuple[bytes, list[Named]] | None:
    """Take a repeated field out of a message.

    Args:
        data: The message.
        number: The field's, from 1 to 15. Its elements are messages: a string in field 1 and, if it
            is there, a message in field 2 that holds a string in field 1.
    Returns:
        The message without the field, and its elements in order. None where an element has anything
        else, where the message is malformed, and without the core: protobuf reads it then.

    >>> take_named_texts(b"\\n\\x01e\\x12\\x07\\n\\x01u\\x12\\x02\\n\\x00", 2)
    (b'\\n\\x01e', [('u', b'')])
    """
    return _take()(data, number)


@cache
def _take() -> _Take:
    try:
        from bytepair_engine import _core
    except ImportError:
        return lambda _data, _number: None
    return _core.take_named_texts
