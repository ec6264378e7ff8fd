"""The filters and tests of chat templates: those of Jinja2, with limits and provenance."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from types import GeneratorType
from typing import Any, Final, cast

from jinja2 import Environment, Undefined, pass_environment
from jinja2.filters import FILTERS as DEFAULT_FILTERS
from jinja2.filters import make_attrgetter
from jinja2.tests import TESTS as DEFAULT_TESTS

from bytepair_engine.chat.errors import TemplateLimit
from bytepair_engine.chat.templates.budget import spend, spend_copy, spend_deep, spend_text, walked
from bytepair_engine.chat.templates.format_strings import MAX_WIDTH, percent
from bytepair_engine.chat.templates.traced import Safe, Traced, ranges_of, text

#: Jinja2's filters that neither create text nor walk nested values.
_SHALLOW: Final = (
    "abs", "count", "d", "default", "first", "float", "items", "last", "length",
    "list", "map", "reverse",
)  # fmt: skip
#: Jinja2's filters that walk all of a value.
_DEEP: Final = ("dictsort", "groupby", "max", "min", "sort", "unique", "wordcount")

_PLAIN_TESTS: Final = cast("dict[str, Callable[..., Any]]", DEFAULT_TESTS)

#: Maximum size of an integer parsed from text, in bits: that of JSON.
MAX_READ_BITS: Final = 1 << 14

#: Maximum number of characters of indented JSON: deep values would be mostly indentation.
_INDENTED: Final = 1 << 16
#: As many more for each character of the JSON without indentation.
_INDENTED_TIMES: Final = 16

NO_TEXT: Final = Traced.constant("")
_WORDS: Final = re.compile(r"[-\s({\[<]+")


def _trim(value: Any, chars: str | None = None) -> str:
    return Traced.of(text(value)).strip(chars)


def _upper(value: Any) -> str:
    return Traced.of(text(value)).upper()


def _lower(value: Any) -> str:
    return Traced.of(text(value)).lower()


def _capitalize(value: Any) -> str:
    return Traced.of(text(value)).capitalize()


def _title(value: Any) -> str:
    source = Traced.of(text(value))
    plain = str(source)  # once, because it copies
    end = 0
    words: list[str] = []
    for found in _WORDS.finditer(plain):
        words += (plain[end : found.start()], found.group())
        end = found.end()
    words.append(plain[end:])
    spend(len(words) >> 5)
    result = "".join([word[:1].upper() + word[1:].lower() for word in words])
    return Traced(result, source.template if len(result) == len(source) else ())


def _replace(value: Any, old: Any, new: Any, count: int | None = None) -> str:
    found = Traced.of(text(value))
    return Traced.replace(found, text(old), text(new), -1 if count is None else count)


def _safe(value: Any) -> str:
    found = Traced.of(text(value))
    return Safe(str(found), ranges_of(found))


@pass_environment
def _join(
    environment: Environment, value: Any, d: Any = NO_TEXT, attribute: str | int | None = None
) -> str:
    if attribute is not None:
        value = map(make_attrgetter(environment, attribute), value)
    return Traced.join(Traced.of(text(d)), map(text, value))


def _indent(value: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    if not isinstance(value, str):
        raise TypeError("only a text can be indented")
    source = Traced.of(value)
    if not isinstance(width, str) and width > MAX_WIDTH:
        raise TemplateLimit("width")
    lead = width if isinstance(width, str) else Traced.constant(" " * width)
    lines = (source + "\n").splitlines()
    pieces = [lines[0], *[lead + line if blank or line else line for line in lines[1:]]]
    newline = Traced.constant("\n") if source.is_constant else Traced("\n")
    result = newline.join(pieces)
    if first:
        result = Traced.of(lead) + result
    return type(source)(str(result), ranges_of(result))


def _reverse(value: Any) -> Any:
    return Traced.of(value)[::-1] if isinstance(value, str) else DEFAULT_FILTERS["reverse"](value)


def _format(value: Any, *args: Any, **kwargs: Any) -> str:
    if args and kwargs:
        raise TypeError("arguments by position and by name")
    return percent(text(value), kwargs or args)


def _int(value: Any, default: Any = 0, base: int = 10) -> Any:
    result = DEFAULT_FILTERS["int"](value, default, base)
    if isinstance(result, int) and result.bit_length() > MAX_READ_BITS:
        raise TemplateLimit("integer")
    return result


def _round(value: Any, precision: int = 0, method: Any = "common") -> Any:
    if isinstance(precision, int) and abs(precision) > sys.float_info.max_10_exp:
        raise TemplateLimit("integer")
    return DEFAULT_FILTERS["round"](value, precision, method)


def _center(value: Any, width: int = 80) -> str:
    return Traced.of(text(value)).center(width)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Write JSON as in transformers: without escapes for HTML."""
    if isinstance(value, Undefined):
        raise TypeError("an undefined value is not JSON")
    if indent is not None and (isinstance(indent, str) or indent > 16):
        raise TemplateLimit("width")
    if separators is not None and max(map(len, separators)) > 16:
        raise TemplateLimit("width")
    spend_deep(value)
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    if indent is None:
        result = encoder.encode(value)
    else:
        room = _INDENTED + _INDENTED_TIMES * len(json.dumps(value, ensure_ascii=ensure_ascii))
        chunks = []
        for chunk in encoder.iterencode(value):
            room -= len(chunk)
            if room < 0:
                raise TemplateLimit("width")
            chunks.append(chunk)
        result = "".join(chunks)
    spend_text(len(result))
    return result


def _metered(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        spend(1)
        yield value


def _choosing(name: str) -> Callable[..., Any]:
    """A filter that drops values, which nothing else charges."""
    function = DEFAULT_FILTERS[name]

    @functools.wraps(function)
    def chosen(context: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        return function(context, _metered(value or ()), *args, **kwargs)

    return chosen


def _remainder(value: Any, num: Any) -> Any:
    """Return the result of the operator `%`, which formats a text: within limits."""
    return percent(value, num) if isinstance(value, str) else value % num


def _odd(value: Any) -> Any:
    return _remainder(value, 2) == 1


def _even(value: Any) -> Any:
    return _remainder(value, 2) == 0


def _divisibleby(value: Any, num: Any) -> Any:
    return _remainder(value, num) == 0


def _spending(function: Callable[..., Any], *, deep: bool) -> Callable[..., Any]:
    """Charge the calls of a filter. A generator stays a generator, because an empty one is true."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        spend(1)
        if deep:
            args = tuple(map(walked, args))
        else:
            for arg in args[:2]:
                spend_copy(arg)
        for option in (*args[2:], *kwargs.values()):
            spend_deep(option)  # it may be hashed, or be a name that is written in an error
        result = function(*args, **kwargs)
        return _metered(result) if isinstance(result, GeneratorType) else result

    return wrapped


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    **{name: _spending(DEFAULT_FILTERS[name], deep=False) for name in _SHALLOW},
    **{name: _spending(DEFAULT_FILTERS[name], deep=True) for name in _DEEP},
    **{
        name: _spending(function, deep=False)
        for name, function in (
            ("trim", _trim),
            ("upper", _upper),
            ("lower", _lower),
            ("capitalize", _capitalize),
            ("title", _title),
            ("replace", _replace),
            ("join", _join),
            ("indent", _indent),
            ("reverse", _reverse),
            ("format", _format),
            ("int", _int),
            ("round", _round),
            ("center", _center),
            ("reject", _choosing("reject")),
            ("rejectattr", _choosing("rejectattr")),
            ("select", _choosing("select")),
            ("selectattr", _choosing("selectattr")),
            ("tojson", _tojson),
            ("string", text),
            ("safe", _safe),
        )
    },
}

#: Tests; those that compare or write nested values are charged.
TESTS: Final[dict[str, Callable[..., Any]]] = {
    **_PLAIN_TESTS,
    **{
        name: _spending(_PLAIN_TESTS[name], deep=True)
        for name in ("==", "eq", "equalto", "!=", "ne", "<", "lt", "lessthan", "in", "<=", "le",
                     ">=", "ge", ">", "gt", "greaterthan", "lower", "upper", "filter", "test")
    },
    **{
        name: _spending(function, deep=True)
        for name, function in (("odd", _odd), ("even", _even), ("divisibleby", _divisibleby))
    },
}  # fmt: skip
