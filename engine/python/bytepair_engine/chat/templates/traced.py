"""Text with provenance: which characters come from the template, and which from input.

A plain `str` is input. `Traced` is a `str` with the ranges that come from the template. If an
operation cannot track a character, it becomes input: a bug here can hide a control token, but
never forge one.

Empty input counts too: it separates two ranges of the template, so that no control token arises
from the text on both sides of an empty message.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NoReturn, Self, SupportsIndex

from jinja2.exceptions import SecurityError

from bytepair_engine.chat.templates.budget import CHARACTERS_PER_STEP, spend, spend_deep, spend_text

Ranges = tuple[tuple[int, int], ...]
#: The ranges of empty input: it separates the two ranges of the template.
_EMPTY_INPUT: Final[Ranges] = ((0, 0), (0, 0))

#: The characters that `Markup` escapes.
_ESCAPED: Final = re.compile("[&<>'\"]")


class Traced(str):
    """Text with the ranges that come from the template. `format_strings` has its operator `%` and
    its method `format`.

    Attributes:
        template: These ranges in code points, increasing. Input is between two ranges, even if
            they touch: it is empty then. A range next to input may be empty.
    """

    __slots__ = ("template",)
    template: Ranges

    def __new__(cls, text: str = "", template: Ranges = ()) -> Self:
        result = super().__new__(cls, text)
        result.template = template
        return result

    @classmethod
    def constant(cls, text: str) -> Traced:
        """Return text that comes from the template."""
        return cls(text, ((0, len(text)),))

    @classmethod
    def of(cls, value: str) -> Traced:
        """Return `value` unchanged if it is `Traced`, else as input."""
        return value if isinstance(value, Traced) else cls(value)

    @property
    def is_constant(self) -> bool:
        """Whether all of the text comes from the template."""
        return self.template == ((0, len(self)),)

    def part(self, start: int, stop: int) -> Traced:
        """Return the characters from `start` to `stop`, both in [0, length].

        Input beside them becomes empty input: removed, it still separates.
        """
        template = self.template
        first = bisect_left(template, start, key=_end)
        last = bisect_left(template, (stop + 1,), first)
        spend(1 + (last - first >> 2))
        ranges = [(max(a, start) - start, min(b, stop) - start) for a, b in template[first:last]]
        if ranges and template[first][0] == start > 0:
            ranges.insert(0, (0, 0))
        if ranges and template[last - 1][1] == stop < len(self):
            ranges.append((stop - start, stop - start))
        return type(self)(str.__getitem__(self, slice(start, stop)), tuple(ranges))

    def _like(self, result: str) -> Traced:
        """Return `result` with the provenance of this text, character by character."""
        return type(self)(result, self.template if len(result) == len(self) else ())

    def _parts(self, pieces: Iterable[str]) -> list[Traced]:
        """Find pieces that occur in this text in this order."""
        found, position = [], 0
        for piece in pieces:
            position = self.index(piece, position)
            found.append(self.part(position, position + len(piece)))
            position += len(piece)
        return found

    def __add__(self, other: str) -> Traced:
        return joined((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> Traced:
        return joined((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> Traced:
        # The operator is charged for each character, but a text may have more ranges.
        count = max(0, times.__index__()) if self else 1
        spend_text(count * len(self.template) * 16)
        result = joined([self] * count)
        return type(self)(str(result), result.template)

    __rmul__ = __mul__

    def __getitem__(self, key: SupportsIndex | slice) -> Traced:
        if not isinstance(key, slice):
            index = range(len(self))[key]
            return self.part(index, index + 1)
        start, stop, step = key.indices(len(self))
        if step == 1:
            return self.part(start, max(start, stop))
        result = str.__getitem__(self, key)
        if step != -1:
            return type(self)(result)
        size = len(result)
        ranges = reversed(self.part(start + 1 - size, start + 1).template)
        return type(self)(result, tuple([(size - b, size - a) for a, b in ranges]))

    def __iter__(self) -> Iterator[str]:
        return (self.part(i, i + 1) for i in range(len(self)))

    def strip(self, chars: str | None = None) -> Traced:
        return self.lstrip(chars).rstrip(chars)

    def _spend_product(self, sought: str | None) -> None:
        """Charge an operation that may compare each character with all of another text."""
        if sought:
            spend_text(len(self) * len(sought) >> 6)

    def lstrip(self, chars: str | None = None) -> Traced:
        self._spend_product(chars)
        return self.part(len(self) - len(str.lstrip(self, chars)), len(self))

    def rstrip(self, chars: str | None = None) -> Traced:
        self._spend_product(chars)
        return self.part(0, len(str.rstrip(self, chars)))

    def removeprefix(self, prefix: str) -> Traced:
        return self.part(len(self) - len(str.removeprefix(self, prefix)), len(self))

    def removesuffix(self, suffix: str) -> Traced:
        return self.part(0, len(str.removesuffix(self, suffix)))

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._separated(str.split(self, sep, maxsplit), sep)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        self._spend_product(sep)
        return self._separated(str.rsplit(self, sep, maxsplit), sep)

    def _separated(self, pieces: list[str], sep: str | None) -> list[str]:
        if sep is None:
            return [*self._parts(pieces)]
        found: list[str] = []
        position = 0
        for piece in pieces:
            found.append(self.part(position, position + len(piece)))
            position += len(piece) + len(sep)
        return found

    def splitlines(self, keepends: bool = False) -> list[str]:
        lines = self._parts(str.splitlines(self, keepends=True))
        if keepends:
            return [*lines]
        return [line.part(0, len(str.splitlines(line)[0])) for line in lines]

    def partition(self, sep: str) -> tuple[str, str, str]:
        first, middle, last = self._parts(str.partition(self, sep))
        return first, middle, last

    def rpartition(self, sep: str) -> tuple[str, str, str]:
        self._spend_product(sep)
        before, middle, _ = str.rpartition(self, sep)
        start = len(before)
        stop = start + len(middle)
        return self.part(0, start), self.part(start, stop), self.part(stop, len(self))

    def rfind(self, sub: str, *bounds: SupportsIndex | None) -> int:
        self._spend_product(sub)
        return str.rfind(self, sub, *bounds)

    def rindex(self, sub: str, *bounds: SupportsIndex | None) -> int:
        self._spend_product(sub)
        return str.rindex(self, sub, *bounds)

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> Traced:
        if not isinstance(new, str):
            raise TypeError("not a text")
        found = str.count(self, old)
        limit = count.__index__()
        if limit >= 0:
            found = min(found, limit)
        spend_text(len(self) + found * len(new))
        if not old:
            return Traced(str.replace(self, old, new, count))
        return Traced.join(Traced.of(new), self.split(old, found))

    def upper(self) -> Traced:
        return self._like(str.upper(self))

    def lower(self) -> Traced:
        return self._like(str.lower(self))

    def title(self) -> Traced:
        return self._like(str.title(self))

    def capitalize(self) -> Traced:
        return self._like(str.capitalize(self))

    def swapcase(self) -> Traced:
        return self._like(str.swapcase(self))

    def casefold(self) -> Traced:
        return self._like(str.casefold(self))

    def join(self, values: Iterable[str], /) -> Traced:
        pieces: list[str] = []
        for value in values:
            if not isinstance(value, str):
                raise TypeError("not a text")
            if pieces:
                pieces.append(self)
            pieces.append(value)
        return joined(pieces)

    def center(self, width: SupportsIndex, fillchar: str = " ") -> Traced:
        return self._padded(str.center, width, fillchar)

    def ljust(self, width: SupportsIndex, fillchar: str = " ") -> Traced:
        return self._padded(str.ljust, width, fillchar)

    def rjust(self, width: SupportsIndex, fillchar: str = " ") -> Traced:
        return self._padded(str.rjust, width, fillchar)

    def _padded(
        self, pad: Callable[[str, SupportsIndex, str], str], width: SupportsIndex, fill: str
    ) -> Traced:
        spend_text(max(0, width.__index__()))
        return type(self)(pad(self, width, fill))

    def zfill(self, width: SupportsIndex) -> Traced:
        spend_text(max(0, width.__index__()))
        return type(self)(str.zfill(self, width))


class Safe(Traced):
    """The result of the filter `safe`. Jinja2 escapes the texts that are added to it or written
    into it. That is an error here, unless there is nothing to escape."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Markup({super().__repr__()})"

    def _refused(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise SecurityError("the texts would be escaped")

    join = replace = _refused


def added(left: str, right: str) -> Traced:
    """Return the result of the operator `+`."""
    result = joined((left, right))
    if not isinstance(left, Safe) and not isinstance(right, Safe):
        return result
    for part in (left, right):
        if not isinstance(part, Safe) and _ESCAPED.search(part):
            raise SecurityError("the text beside a safe one would be escaped")
    return Safe(str(result), result.template)


def joined(pieces: Iterable[str]) -> Traced:
    """Join pieces into one text with provenance."""
    pieces = list(pieces)
    spend(len(pieces) >> 3)
    ranges: list[tuple[int, int]] = []
    end = 0
    for piece in pieces:
        own = ranges_of(piece)
        if own and ranges and ranges[-1][1] == end + own[0][0]:
            # Ranges that touch across two pieces are one range; within a piece they are not.
            ranges[-1] = (ranges[-1][0], end + own[0][1])
            own = own[1:]
        ranges += [(end + start, end + stop) for start, stop in own]
        end += len(piece)
    spend_text(end + 16 * len(ranges))
    return Traced("".join(pieces), tuple(ranges))


def _end(span: tuple[int, int]) -> int:
    return span[1]


def ranges_of(value: str) -> Ranges:
    """Return the ranges of a text that come from the template."""
    if isinstance(value, Traced) and value.template:
        return value.template
    return () if value else _EMPTY_INPUT


def text(value: Any) -> str:
    """Return the text that a template writes for a value."""
    if isinstance(value, str):
        return value
    spend_deep(value)
    written = str(value)
    spend(len(written) // CHARACTERS_PER_STEP)
    # An undefined value is not input: which fields exist is structure. So it separates nothing.
    return written or Traced.constant("")
