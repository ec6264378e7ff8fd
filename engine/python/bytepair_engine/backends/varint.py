"""Base-128 varints, the wire format of a packed `repeated uint32` field."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import cache
from typing import Protocol

#: Maximum length of a varint of 32 bits.
_MAX_BYTES = 5


def pack(values: Iterable[int]) -> bytes:
    """Encode values as concatenated varints.

    Args:
        values: Integers in [0, 2**32).
    Returns:
        One to five bytes for each value; b"" for none.

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
    """Decode concatenated varints.

    Args:
        data: The content of a packed `repeated uint32` field.
    Returns:
        The low 32 bits of each value, as in Protocol Buffers; None if `data` ends within a varint
        or holds one longer than five bytes.

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
    """Decode varints in Python, without the native core; see `unpack`."""
    values = array("I")
    value = length = 0
    for byte in data:
        value |= (byte & 0x7F) << 7 * length
        length += 1
        if byte < 0x80:
            values.append(value & 0xFFFFFFFF)
            value = length = 0
        elif length == _MAX_BYTES:
            return None
    return None if length else values
