"""Write the files of a trained encoding: a rank file, and a configuration for the server."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from bytepair_engine.vocabulary.patterns import PATTERNS

_BARE: Final = re.compile("[A-Za-z0-9_-]+")


def rank_file(tokens: Iterable[tuple[bytes, int]]) -> bytes:
    r"""Write a rank file in tiktoken's format. Each line is a token in base64 and its id.

    >>> rank_file([(b"a", 0), (b"ab", 1)])
    b'YQ== 0\nYWI= 1\n'
    """
    return b"".join(b"%s %d\n" % (base64.b64encode(token), i) for token, i in tokens)


def configuration(
    name: str, *, file: str, data: bytes, pattern: str, special_tokens: Mapping[str, int]
) -> str:
    """Write the table of the server's configuration file that declares an encoding.

    Args:
        name: The encoding's name.
        file: The name of the rank file in the configuration.
        data: The content of the rank file.
        pattern: The split pattern, resolved.
        special_tokens: Spelling to id.
    """
    named = next((known for known, text in PATTERNS.items() if text == pattern), pattern)
    special = ", ".join(f"{_string(token)} = {i}" for token, i in special_tokens.items())
    lines = [
        f"[encodings.{name if _BARE.fullmatch(name) else _string(name)}]",
        f"file = {_string(file)}",
        'format = "tiktoken"',
        f"pattern = {_string(named)}",
        f'sha256 = "{hashlib.sha256(data).hexdigest()}"',
    ]
    if special:
        lines.append(f"special_tokens = {{ {special} }}")
    return "\n".join(lines) + "\n"


def _string(text: str) -> str:
    """Write a basic string of TOML, which differs from JSON by one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
