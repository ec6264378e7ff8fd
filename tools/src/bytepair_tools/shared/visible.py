"""Escape untrusted text and bytes for display, so that they cannot affect a terminal or a page.

Control characters, format characters (including those that change the direction of text or join
adjacent characters), surrogates, private and unassigned characters, white space other than the
space, and bytes that are not UTF-8 become Python escapes. Backslashes are doubled, so text never
looks like an escape. A combining mark at the start gets a dotted circle.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_ESCAPED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_SHORT: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}
_CIRCLE: Final = "\u25cc"


def visible(text: str) -> str:
    r"""Return a text as one line of printable characters.

    >>> visible("a\n\x1b[1m\u202eb\\")
    'a\\n\\x1b[1m\\u202eb\\\\'
    """
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    return _on_circle("".join(map(_character, text)))


def visible_bytes(data: bytes) -> str:
    r"""Return bytes, which need not be UTF-8, as one line of printable characters.

    >>> visible_bytes("é\n".encode() + b"\xf0\x9f")
    'é\\n\\xf0\\x9f'
    """
    text = data.decode("utf-8", "surrogateescape")
    return _on_circle(
        "".join(
            f"\\x{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else _character(c)
            for c in text
        )
    )


def _character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character == " " or unicodedata.category(character) not in _ESCAPED:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _on_circle(text: str) -> str:
    return _CIRCLE + text if text and unicodedata.category(text[0]).startswith("M") else text
