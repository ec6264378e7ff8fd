"""A parser of the Protocol Buffers wire format, for SentencePiece models.

A message is a sequence of fields, each a tag (field number and wire type) and a value. The protobuf
package is not used because its errors have no position, it builds all messages before their number
can be limited, and it would be a second dependency for five messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from
from typing import Final, Literal

#: Wire types by their content. Groups, deprecated since 2010, are rejected.
Kind = Literal["varint", "64-bit", "bytes", "32-bit"]
_KINDS: Final[dict[int, Kind]] = {0: "varint", 1: "64-bit", 2: "bytes", 5: "32-bit"}


class WireFault(ValueError):
    """Bytes that are not a valid message.

    Attributes:
        position: Byte offset of the error in the file.
        problem: The problem.
    """

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(position, problem)
        self.position = position
        self.problem = problem


def fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, Kind, int, int]]:
    """Yield the fields of the message data[start:end], in order.

    Yields:
        The field number, the kind of the value, and the start and the end of the value in `data`;
        for a varint, the start and the value in 64 bits.
    Raises:
        WireFault: The message is invalid; raised at the first invalid field.
    """
    position = start
    while position < end:
        at = position
        tag, position = varint(data, position, end)
        number, kind = tag >> 3, _KINDS.get(tag & 7)
        if number == 0 or kind is None:
            raise WireFault(at, f"no field starts with the tag {tag}")
        value = position
        if kind == "varint":
            found, position = varint(data, position, end)
            yield number, kind, value, found
            continue
        if kind == "bytes":
            length, value = varint(data, position, end)
            position = value + length
        else:
            position += 8 if kind == "64-bit" else 4
        if position > end:
            raise WireFault(at, f"field {number} ends {position - end} bytes after its message")
        yield number, kind, value, position


def varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return the value of the varint at `position`, in 64 bits, and its end.

    Raises:
        WireFault: The varint has more than ten bytes, or does not end before `end`.
    """
    if position < end and data[position] < 0x80:
        return data[position], position + 1  # fast path of nearly all varints
    value = 0
    for shift in range(0, 70, 7):
        if position + shift // 7 >= end:
            raise WireFault(position, "a number does not end before its message does")
        byte = data[position + shift // 7]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), position + shift // 7 + 1
    raise WireFault(position, "a number has more than ten bytes")


def float32(data: bytes, start: int) -> float:
    """Return the value of a float field at `start`."""
    number: float = unpack_from("<f", data, start)[0]
    return number
