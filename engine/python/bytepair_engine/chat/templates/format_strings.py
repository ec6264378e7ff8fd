"""Format strings with provenance: the operator `%` and the method `format` of texts."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from jinja2.exceptions import SecurityError

from bytepair_engine.chat.errors import TemplateLimit
from bytepair_engine.chat.templates.budget import spend, spend_deep
from bytepair_engine.chat.templates.traced import Safe, Traced, joined, text

#: Maximum width of a field of a format string.
MAX_WIDTH: Final = 1000

_PERCENT: Final = re.compile(
    r"%(?:\((?P<key>[^)]*)\))?(?P<flags>[#0\- +]*)(?P<width>\*|\d*)"
    r"(?:\.(?P<precision>\*|\d*))?[hlL]?(?P<kind>.)",
    re.DOTALL,
)
_WIDTH: Final = re.compile(r"\d+")
_END: Final = object()


def percent(template: str, values: Any) -> Traced:
    """Return `template % values`."""
    return _formatted(template, _percent_pieces(template, values))


def filled(template: str, /, *args: Any, **kwargs: Any) -> Traced:
    """Return `template.format(*args, **kwargs)`."""
    return _formatted(template, _brace_pieces(template, args, kwargs))


def _formatted(template: str, pieces: Iterable[str]) -> Traced:
    if isinstance(template, Safe):
        raise SecurityError("the texts would be escaped")
    result = joined(list(pieces))
    # If the format string is partly input, the provenance of its literal parts is unknown.
    return result if Traced.of(template).is_constant else Traced(str(result))


def _checked_width(spec: str) -> None:
    for number in _WIDTH.findall(spec):
        if len(number) > 4 or int(number) > MAX_WIDTH:
            raise TemplateLimit("width")


def _percent_pieces(template: str, values: Any) -> Iterator[str]:
    """Yield the literal and formatted pieces of `template % values`."""
    positional = iter(values) if isinstance(values, tuple) else iter((values,))
    end = keyed = 0
    plain = str(template)
    for found in _PERCENT.finditer(plain):
        yield Traced.constant(plain[end : found.start()])
        end = found.end()
        spend(1)
        key, kind = found["key"], found["kind"]
        if kind == "%":
            yield Traced.constant("%")
            continue
        if "*" in (found["width"], found["precision"]):
            raise SecurityError("the width of a field must be a constant")
        _checked_width(found["width"])
        _checked_width(found["precision"] or "")
        if key is not None:
            keyed += 1
            value = values[key]
            positional = iter(())
        else:
            try:
                value = next(positional)
            except StopIteration:
                raise TypeError("not enough arguments for format string") from None
        if kind == "s" and not found["width"] and found["precision"] is None:
            yield text(value)
            continue
        spend_deep(value)
        spec = "%" + found["flags"] + found["width"]
        if found["precision"] is not None:
            spec += "." + found["precision"]
        yield (spec + kind) % (value,)
    if "%" in plain[end:]:
        raise ValueError("incomplete format")
    yield Traced.constant(plain[end:])
    if not keyed and not isinstance(values, Mapping) and next(positional, _END) is not _END:
        raise TypeError("not all arguments converted during string formatting")


def _brace_pieces(template: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[str]:
    """Yield the literal and formatted pieces of `template.format(*args, **kwargs)`."""
    count, numbered = 0, False
    for literal, field, spec, conversion in string.Formatter().parse(str(template)):
        spend(1)
        yield Traced.constant(literal)
        if field is None:
            continue
        if conversion not in (None, "s") or "{" in (spec or ""):
            raise SecurityError("a field must not have this conversion or nested fields")
        if field == "":
            field, count = str(count), count + 1
        elif field.isdecimal():
            numbered = True
        if count and numbered:
            raise ValueError("fields with and without numbers")
        if field.isdecimal():
            value = args[int(field)]
        elif field.isidentifier():
            value = kwargs[field]
        else:
            raise SecurityError("a field must not access attributes")
        if isinstance(value, str) and spec in ("", "s"):
            yield value
            continue
        _checked_width(spec or "")
        spend_deep(value)
        yield format(text(value) if conversion else value, spec or "")
