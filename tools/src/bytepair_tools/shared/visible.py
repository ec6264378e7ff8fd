"""Untrusted text and bytes, made visible: nothing that is shown can act on a terminal or a page.

Control characters, format characters (those that set the direction of text or join what is beside
them among them), surrogates, private and unassigned characters, and white space other than the
space are shown as escapes of Python; so are bytes that are not UTF-8. A backslash is doubled, so no
text looks like an escape. A mark with nothing before it stands on a dotted circle.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_ESCAPED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_SHORT: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}
_CIRCLE: Final = "\u25cc"


def visible(text: str) -> str:
    r"""Text as one line of characters that show themselves.

    >>> visible("a\n\x1b[1m\u202eb\\")
    'a\\n\\x1b[1m\\u202eb\\\\'
    """
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    return _on_circle("".join(map(_character, text)))


def visible_bytes(data: bytes) -> str:
    r"""As `visible`, for bytes that need not be UTF-8.

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
