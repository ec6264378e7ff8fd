"""Base-128 varints, as a packed `repeated uint32` is written on the wire."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import cache
from typing import Protocol

#: No value of 32 bits needs more bytes.
_MOST_BYTES = 5


def pack(values: Iterable[int]) -> bytes:
    """Write each value as a varint, one after the other.

    Args:
        values: Each in [0, 2**32).
    Returns:
        One to five bytes for each; b"" for none.

    >>> pack([1, 300])
    b'\\x01\\xac\\x02'

    Source: the Protocol Buffers encoding, "Base 128 Varints".
    """
    out = bytearray()
    for value in values:
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
    return bytes(out)


class _Unpack(Protocol):
    def __call__(self, data: bytes) -> array[int] | None: ...


def unpack(data: bytes) -> array[int] | None:
    """Read varints that stand one after the other.

    Args:
        data: The content of a packed `repeated uint32` field.
    Returns:
        The values, of each its low 32 bits, as Protocol Buffers has it; None where `data` ends
        within one, or one is longer than five bytes.

    >>> unpack(b"\\x01\\xac\\x02")
    array('I', [1, 300])
    """
    return _unpack()(data)


@cache
def _unpack() -> _Unpack:
    try:
        from bytepair_engine import _core
    except ImportError:
        return unpack_slowly
    return _core.unpack


def unpack_slowly(data: bytes) -> array[int] | None:
    """As `unpack`, in Python."""
    values = array("I")
    value = length = 0
    for byte in data:
        value |= (byte & 0x7F) << 7 * length
        length += 1
        if byte < 0x80:
            values.append(value & 0xFFFFFFFF)
            value = length = 0
        elif length == _MOST_BYTES:
            return None
    return None if length else values
