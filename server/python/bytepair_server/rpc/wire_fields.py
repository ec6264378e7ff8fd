"""Single fields of messages, read and written as bytes.

protobuf would copy a large field, such as ids or text, and turn it into objects that nothing needs.
Each function here gives byte for byte what protobuf would.
"""

from __future__ import annotations

from typing import Final

from bytepair_engine.backends.varint import pack

_LENGTH_DELIMITED: Final = 2


def field(number: int, content: bytes) -> bytes:
    """A field of a message, up to number 15: a packed one, a string, bytes or a message.

    Args:
        number: The field's.
        content: What it holds; b"" for a field that is not set, which is none.
    """
    return element(number, content) if content else b""


def element(number: int, content: bytes) -> bytes:
    """As `field`, of a repeated field, which has empty elements too."""
    return b"%c%b%b" % (number << 3 | _LENGTH_DELIMITED, pack((len(content),)), content)


def take(raw: bytes, number: int) -> tuple[bytes, list[bytes]] | None:
    """Take a field out of a message: a packed one, a string, bytes or a message.

    Args:
        raw: The message.
        number: The field's, up to 15.
    Returns:
        The message without the field, and what the field holds, each time that it is there.
        None where that is not to be had simply, as for a message that is malformed: protobuf
        knows.
    """
    wanted = number << 3 | _LENGTH_DELIMITED
    at, kept, size = 0, 0, len(raw)
    rest, found = [], []
    try:
        while at < size:
            start, key = at, raw[at]
            if key < 8 or key > 127:
                return None  # there is no field 0
            if key & 7 != _LENGTH_DELIMITED:
                # A number or an enum: one byte, in every request that is usual.
                if key & 7 or raw[at + 1] > 127 or key >> 3 == number:
                    return None
                at += 2
                continue
            # Read here and not by a function, which would cost a batch most of its time.
            length, at = raw[at + 1], at + 2
            if length > 127:
                if raw[at] < 128:
                    length, at = length - 128 + (raw[at] << 7), at + 1
                else:
                    length, at = _length(raw, start + 1)
            end = at + length
            if end > size:
                return None
            if key == wanted:
                found.append(raw[at:end])
                rest.append(raw[kept:start])
                kept = end
            at = end
    except IndexError:
        return None  # it ends within a field
    rest.append(raw[kept:])
    return b"".join(rest), found


def only(raw: bytes, number: int) -> bytes | None:
    """What a field holds, of a message that has no other; None if it is not so, or not simply.

    Args:
        raw: The message.
        number: The field's, up to 15.
    """
    size = len(raw)
    if not size or raw[0] != number << 3 | _LENGTH_DELIMITED:
        return None
    # The lengths of two bytes that most texts have are seen without a call.
    if size > 130 and raw[1] > 127 >= raw[2] and raw[1] - 128 + (raw[2] << 7) == size - 3:
        return raw[3:]
    length, at = _length(raw, 1)
    return raw[at:] if at + length == size else None


def _length(raw: bytes, at: int) -> tuple[int, int]:
    """A varint, and where what follows it begins; beyond the end where it is none."""
    length = shift = 0
    for at_byte in range(at, min(at + 5, len(raw))):
        byte = raw[at_byte]
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return length, at_byte + 1
    return 0, len(raw) + 1
