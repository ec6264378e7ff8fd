"""JSON in chats: parse it within limits, and write it like Python or like serde_json."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

#: Maximum nesting of arrays and objects.
MAX_DEPTH: Final = 64

#: Python writes and reads smaller integers.
_INTEGERS: Final = 10**4300

# The integers of serde_json; it reads larger ones as floats.
_U64: Final = 1 << 64
_I64: Final = -(1 << 63)


class NotJson(ValueError):
    """Text that is not JSON, or is nested too deeply."""


def parse(text: str) -> Any:
    """Parse JSON. Keys keep their order.

    Raises:
        NotJson: The text is not JSON by RFC 8259 (which has no NaN and Infinity), is nested deeper
            than `MAX_DEPTH`, or contains an escaped lone surrogate.
    """
    try:
        value = json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise NotJson from None
    check_depth(value)
    if "\\u" in text and not text_of(value):
        raise NotJson
    return value


def text_of(value: object) -> str:
    """Return `dumps(value)`; "" if it contains a lone surrogate, which UTF-8 cannot encode."""
    written = dumps(value)
    try:
        written.encode()
    except UnicodeEncodeError:
        return ""
    return written


def _reject_constant(name: str) -> object:
    raise NotJson(name)


def check_depth(value: object, limit: int = MAX_DEPTH) -> None:
    """Raise NotJson if `value` is nested deeper than `limit` or is not a JSON value, or if it has
    an integer that Python does not write."""
    level = [value]
    for _ in range(limit + 1):
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                if not all(isinstance(key, str) for key in item):
                    raise NotJson
                below += item.values()
            elif isinstance(item, (list, tuple)):
                below += item
            elif isinstance(item, float):
                if item != item or item in (float("inf"), float("-inf")):
                    raise NotJson
            elif isinstance(item, int):
                if not -_INTEGERS < item < _INTEGERS:
                    raise NotJson
            elif item is not None and not isinstance(item, str):
                raise NotJson
        if not below:
            return
        level = below
    raise NotJson


def exact(value: object) -> Any:
    """Return a copy with the types that `parse` gives, such as `str` instead of a subclass, whose
    `__format__` can give another text.

    Raises:
        NotJson: See `check_depth`.
    """
    check_depth(value)
    return json.loads(dumps(value))


def dumps(value: object) -> str:
    """Write JSON like Python's `json.dumps(value, ensure_ascii=False)`, which Hugging Face's
    `tojson` and mistral-common use."""
    return json.dumps(value, ensure_ascii=False)


def dumps_compact(value: object) -> str:
    """Write JSON like serde_json: without white space, and with its format of floats.

    Raises:
        NotJson: An integer is too large for a float, which serde_json rejects.
    """
    if isinstance(value, dict):
        items = (f"{_string(key)}:{dumps_compact(item)}" for key, item in value.items())
        return f"{{{','.join(items)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(dumps_compact, value))}]"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int):
        # Beyond 64 bits serde_json uses floats.
        try:
            return str(value) if _I64 <= value < _U64 else _float(float(value))
        except OverflowError:
            raise NotJson from None
    if isinstance(value, float):
        return _float(value)
    return _string(str(value))


def _string(text: str) -> str:
    # serde_json escapes the same characters as Python.
    return json.dumps(text, ensure_ascii=False)


def _float(value: float) -> str:
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    stripped = text.rstrip("0") or "0"
    exponent += len(text) - len(stripped)
    text = stripped
    minus = "-" if sign else ""
    if text == "0":
        return f"{minus}0.0"
    point = len(text) + exponent
    if exponent >= 0 and point <= 16:
        return f"{minus}{text}{'0' * exponent}.0"
    if 0 < point <= 16:
        return f"{minus}{text[:point]}.{text[point:]}"
    if -5 < point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    rest = f".{text[1:]}" if len(text) > 1 else ""
    return f"{minus}{text[0]}{rest}e{point - 1}"
