"""Base-128 varints, the form that a packed `repeated uint32` has on the wire."""

from __future__ import annotations

from collections.abc import Iterable


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
