"""The laws of Truncate, Split, SplitStream and Inspect, checked for one text: in the library, and
through a server that answers with the same types.

Counts are an outside oracle's where there is one. The names of the laws are those of
tests/engine/test_context_laws.py.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Protocol, get_args

from bytepair_engine import Encoding
from bytepair_engine.context.boundaries import Level
from bytepair_engine.context.inspecting import FindingCode, Inspection, inspect
from bytepair_engine.context.splitting import Chunk, SplitOptions, split
from bytepair_engine.context.stream import StreamChunker
from bytepair_engine.context.truncating import Keep, Truncation, truncated
from bytepair_engine.errors import BudgetTooSmall, SpecialTokenFound

from support.context_laws import Count, check_chunks, inside_special, longest

KEEPS: Final[tuple[Keep, ...]] = get_args(Keep)

#: Ordinary text to ids.
Encode = Callable[[str], list[int]]


@dataclass(frozen=True)
class Cut:
    """How a text is truncated."""

    most: int
    keep: Keep = "start"
    level: Level = "grapheme"
    marker: str = ""
    percent: int = 50
    allowed: Sequence[str] = ()


class Api(Protocol):
    """What is checked.

    Attributes:
        special_tokens: The names of the encoding's special tokens.
    """

    special_tokens: Collection[str]

    def truncate(self, text: str, cut: Cut) -> Truncation:
        """Raises BudgetTooSmall."""

    def split(self, text: str, options: SplitOptions) -> Iterable[Chunk]:
        """Raises BudgetTooSmall."""

    def stream(self, text: str, options: SplitOptions, size: int) -> Iterable[Chunk]:
        """The same, of pieces of `size` bytes. Raises BudgetTooSmall after the chunks before it."""

    def inspect(self, text: str, max_findings: int | None = None) -> Inspection: ...

    def spelled(self, text: str) -> tuple[str, int] | None:
        """The special token for which Encode rejects a text, and its byte; None for none."""


class Library:
    """The methods of an encoding."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self.special_tokens: Collection[str] = encoding.special_tokens

    def truncate(self, text: str, cut: Cut) -> Truncation:
        return truncated(
            self._encoding,
            text,
            cut.most,
            keep=cut.keep,
            level=cut.level,
            marker=cut.marker,
            start_percent=cut.percent,
            allowed_special=frozenset(cut.allowed),
        )

    def split(self, text: str, options: SplitOptions) -> Iterator[Chunk]:
        return split(self._encoding, text, options)

    def stream(self, text: str, options: SplitOptions, size: int) -> Iterator[Chunk]:
        chunker, data = StreamChunker(self._encoding, options), text.encode()
        try:
            for start in range(0, len(data), size):
                yield from chunker.feed(data[start : start + size])
            yield from chunker.finish()
        except BudgetTooSmall:
            yield from chunker.before_fault
            raise

    def inspect(self, text: str, max_findings: int | None = None) -> Inspection:
        return inspect(self._encoding, text, max_findings=max_findings)

    def spelled(self, text: str) -> tuple[str, int] | None:
        try:
            self._encoding.encode(text)
        except SpecialTokenFound as found:
            return found.token, found.byte_offset
        return None


def check_truncation(api: Api, text: str, cut: Cut, count: Count, special: Sequence[str]) -> None:
    """Laws T1 to T7.

    Args:
        api: What is checked.
        text: Any text.
        cut: How.
        count: The tokens of a text, where those of `cut` are allowed.
        special: All special tokens: none is made where parts meet.
    """
    count, most, keep, marker = cache(count), cut.most, cut.keep, cut.marker
    needed: int | None = None
    try:
        result = api.truncate(text, cut)
    except BudgetTooSmall as error:
        needed = error.needed
    if needed is not None:
        assert count(text) > most
        assert needed == count(marker) > most
        return
    assert result.count == count(result.text) <= most
    assert result.truncated == (count(text) > most)
    kept = [text[start:end] for start, end in result.kept]
    if not result.truncated:
        assert result.text == text
        return
    assert api.truncate(result.text, cut).text == result.text

    def whole(joined: str, place: int) -> bool:
        return place not in inside_special(joined, special)

    forbidden = inside_special(text, cut.allowed)
    share = (most - count(marker)) * cut.percent // 100 if keep == "both" else None
    first: int | None = 0
    if keep != "end":
        first = longest(
            text,
            cut.level,
            lambda p: (
                (share is None or count(text[:p]) <= share)
                and count(text[:p] + marker) <= most
                and whole(text[:p] + marker, p)
            ),
            forbidden,
            last=True,
        )
    head = text[: first or 0] + marker
    last: int | None = None
    if keep != "start":
        last = longest(
            text,
            cut.level,
            lambda p: (
                p > (first or 0)
                and count(head + text[p:]) <= most
                and whole(head + text[p:], len(head))
            ),
            forbidden,
            last=False,
        )
    assert result.text == head + (text[last:] if last is not None else "")
    assert kept == [part for part in (text[: first or 0], text[last:] if last else "") if part]


def check_budgets(api: Api, text: str, keep: Keep, level: Level, budgets: Iterable[int]) -> None:
    """Law T9: where the same level is used, more tokens never keep less."""
    most: dict[Level | None, int] = {}
    for budget in budgets:
        found = api.truncate(text, Cut(budget, keep, level))
        kept = sum(end - start for start, end in found.kept)
        assert found.level is not None or kept == len(text)
        assert kept >= most.get(found.level, 0)
        most[found.level] = kept


def check_split(
    api: Api, text: str, options: SplitOptions, count: Count, sizes: Sequence[int] = ()
) -> None:
    """Laws S1 to S11; S7 with pieces of `sizes` bytes."""
    count = cache(count)
    allowed = options.allowed_special
    names = [] if allowed == "all" else sorted(allowed)
    whole = outcome(api.split(text, options))
    for size in sizes:
        streamed = outcome(api.stream(text, options, size))
        if whole and isinstance(whole[0], tuple):
            # A call that fails has no chunks, where a stream has those before its fault.
            assert streamed[-1:] == whole
        else:
            assert streamed == whole
    assert outcome(api.split(text, options)) == whole
    if whole and isinstance(whole[-1], tuple):
        needed, offset = whole[-1]
        assert offset is not None
        place = len(text.encode()[:offset].decode())
        assert needed == count(text[place]) > options.max_tokens
        return
    check_chunks(text, [c for c in whole if isinstance(c, Chunk)], options, count, names)


def outcome(chunks: Iterable[Chunk]) -> list[Chunk | tuple[int, int | None]]:
    """The chunks, and the facts of the fault that ends them."""
    found: list[Chunk | tuple[int, int | None]] = []
    try:
        found.extend(chunks)
    except BudgetTooSmall as error:
        found.append((error.needed, error.byte_offset))
    return found


def check_inspection(api: Api, text: str, more: str, encode: Encode, few: int = 1) -> None:
    """Laws I1 to I7, of which I4 for the text `more`; `encode` gives the ids of ordinary text."""
    found = api.inspect(text)
    places = [(f.start, f.end, f.code) for f in found.findings]
    assert places == sorted(places)
    assert all(0 <= start < end <= len(text) for start, end, _ in places)
    assert sum(found.totals.values()) == len(found.findings)
    cut_off = api.inspect(text, few)
    assert cut_off.findings == found.findings[:few]
    assert cut_off.totals == found.totals
    ids = encode(text)
    assert found.count == len(ids)
    stable = ids[: found.stable_tokens]
    assert encode(text[: found.stable_end]) == stable
    assert encode(text + more)[: found.stable_tokens] == stable
    # The only text in an answer is the name of a special token.
    assert {f.token for f in found.findings} <= {None, *api.special_tokens}
    spelled = [f for f in found.findings if f.code == FindingCode.SPECIAL_TOKEN_SPELLED]
    first = (spelled[0].token, len(text[: spelled[0].start].encode())) if spelled else None
    assert first == api.spelled(text)
    not_nfc = found.totals.get(FindingCode.NOT_NFC, 0) > 0
    assert not_nfc == (unicodedata.normalize("NFC", text) != text)
