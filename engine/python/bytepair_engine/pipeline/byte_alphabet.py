"""Bytes as printable characters, by the mapping of GPT-2's encoder.py: printable bytes of Latin-1
map to themselves, the others to U+0100 and following, in order."""

from __future__ import annotations

from typing import Final


def _byte_alphabet() -> dict[str, int]:
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    alphabet.update({chr(0x100 + i): byte for i, byte in enumerate(others)})
    return alphabet


#: Character to byte, in the order of GPT-2's first 256 ids.
BYTE_ALPHABET: Final = _byte_alphabet()

_WRITTEN: Final = str.maketrans({chr(byte): character for character, byte in BYTE_ALPHABET.items()})
# Every other character of Latin-1 becomes one that Latin-1 cannot encode.
_READ: Final = str.maketrans(
    {
        chr(code): chr(BYTE_ALPHABET[chr(code)]) if chr(code) in BYTE_ALPHABET else "\ufffd"
        for code in range(0x144)
    }
)


def write_bytes(data: bytes) -> str:
    """Encode bytes as characters, one per byte.

    >>> write_bytes("é ".encode())
    'Ã©Ġ'
    """
    return data.decode("latin-1").translate(_WRITTEN)


def read_bytes(text: str) -> bytes | None:
    """Decode characters to bytes; None if a character encodes no byte.

    >>> read_bytes("Ã©Ġ")
    b'\\xc3\\xa9 '
    """
    try:
        return text.translate(_READ).encode("latin-1")
    except UnicodeEncodeError:
        return None
