"""Write declarations as lines of a configuration file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_CONTROL: Final = re.compile(r'[\x00-\x1f\x7f"\\]')


def toml_string(text: str) -> str:
    """Return a text as a TOML string."""

    def escaped(match: re.Match[str]) -> str:
        return _ESCAPED.get(match.group()) or f"\\u{ord(match.group()):04x}"

    return f'"{_CONTROL.sub(escaped, text)}"'


def declaration(name: str, values: dict[str, object]) -> Iterator[str]:
    """Yield the lines of the table `[encodings.<name>]`.

    Args:
        name: The encoding's name.
        values: Key to value: strings, paths, lists of strings, or tables from string to number.
            Empty values and None are omitted.
    """
    yield f"[encodings.{_key(name)}]"
    for key, value in values.items():
        if value not in (None, "", (), [], {}):
            yield f"{key} = {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, dict):
        items = (f"{toml_string(key)} = {number}" for key, number in value.items())
        return f"{{ {', '.join(items)} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_string, value))}]"
    return toml_string(str(value.absolute()) if isinstance(value, Path) else str(value))


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else toml_string(name)
