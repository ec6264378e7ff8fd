"""The laws of Truncate, Split, SplitStream and Inspect, checked for one text. Every assertion names
its law, of those that tests/engine/test_context_laws.py lists.

Counts are an outside oracle's where there is one. It counts under the options of the request: with
the special tokens that are allowed, and with the template where it is added.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise

from bytepair_engine.context.boundaries import LEVELS, Level
from bytepair_engine.context.inspecting import FindingCode
from bytepair_engine.context.splitting import Chunk, SplitOptions
from bytepair_engine.context.truncation_search import Keep, Truncation
from bytepair_engine.errors import BudgetTooSmall

from support.context_api import Api, Cut, Encode, outcome
from support.context_laws import Count, boundaries, inside_special, longest


def check_truncation(api: Api, text: str, cut: Cut, count: Count) -> None:
    """Laws T1 to T7."""
    count, most, marker = cache(count), cut.most, cut.marker
    special = frozenset(api.special_tokens)
    needed: int | None = None
    try:
        result = api.truncate(text, cut)
    except BudgetTooSmall as error:
        needed = error.needed
    if needed is not None:
        assert count(text) > most, "T3"
        assert needed == count(marker) > most, "T1"
        return
    assert result.count == count(result.text) <= most, "T1"
    assert result.truncated == (count(text) > most), "T3"
    if not result.truncated:
        kept = ((0, len(text)),) if text else ()
        assert (result.text, result.kept, result.level) == (text, kept, None), "T3"
        return
    first, last = _check_parts(text, cut, result)
    assert not {first, last} & inside_special(text, cut.allowed), "T7"
    assert not {first, first + len(marker)} & inside_special(result.text, special), "T7"
    _check_longest(text, cut, count, special, (first, last, result.level))
    again = api.truncate(result.text, cut)
    assert (again.text, again.truncated) == (result.text, False), "T6"


def _check_parts(text: str, cut: Cut, result: Truncation) -> tuple[int, int]:
    """Return where the start that is kept ends, and where the end that is kept starts."""
    first = next((end for start, end in result.kept if start == 0), 0)
    last = next((start for start, _ in result.kept if start > 0), len(text))
    kept = tuple(part for part in ((0, first), (last, len(text))) if part[0] < part[1])
    assert result.kept == kept, "T2"
    assert cut.keep != "start" or last == len(text), "T2"
    assert cut.keep != "end" or first == 0, "T2"
    assert result.text == text[:first] + cut.marker + text[last:], "T2"
    return first, last


def _check_longest(
    text: str,
    cut: Cut,
    count: Count,
    special: frozenset[str],
    found: tuple[int, int, Level | None],
) -> None:
    most, marker, keep = cut.most, cut.marker, cut.keep
    forbidden = inside_special(text, cut.allowed)
    share = (most - count(marker)) * cut.percent // 100 if keep == "both" else None
    template = count("")

    def joins(joined: str, place: int) -> bool:
        return count(joined) <= most and place not in inside_special(joined, special)

    first, level = 0, LEVELS[0]
    if keep != "end":
        first, level = longest(
            text,
            cut.level,
            lambda p: (
                (share is None or count(text[:p]) - template <= share)
                and joins(text[:p] + marker, p)
            ),
            forbidden,
            last=True,
        ) or (0, LEVELS[0])
    head, last = text[:first] + marker, len(text)
    if keep != "start":
        last, end_level = longest(
            text,
            cut.level,
            lambda p: p > first and joins(head + text[p:], len(head)),
            forbidden,
            last=False,
        ) or (last, level if keep == "both" else LEVELS[0])
        level = end_level
    assert found[:2] == (first, last), "T5"
    assert found[2] == level, "T4"


def check_budgets(
    api: Api, text: str, keep: Keep, level: Level, budgets: Iterable[int], template: bool = False
) -> None:
    """Law T9: where the same level is used, more tokens never keep less."""
    most: dict[Level | None, int] = {}
    for budget in budgets:
        found = api.truncate(text, Cut(budget, keep, level, template=template))
        kept = sum(end - start for start, end in found.kept)
        assert found.level is not None or kept == len(text), "T3"
        assert kept >= most.get(found.level, 0), "T9"
        most[found.level] = kept


def check_split(
    api: Api, text: str, options: SplitOptions, count: Count, sizes: Sequence[int] = ()
) -> None:
    """Laws S1 to S11; S7 with pieces of `sizes` bytes."""
    whole = outcome(api.split(text, options))
    assert outcome(api.split(text, options)) == whole, "S8"
    chunks = [each for each in whole if isinstance(each, Chunk)]
    fault = next((each for each in whole if not isinstance(each, Chunk)), None)
    for size in sizes:
        streamed = outcome(api.stream(text, options, size))
        if fault is not None and not chunks:
            # A call that fails has no chunks, where a stream has those before its fault.
            chunks = [each for each in streamed if isinstance(each, Chunk)]
        assert streamed == [*chunks, *whole[-1:]] if fault else streamed == whole, "S7"
    rule = _Rule(text, options, cache(count))
    _check_chunks(rule, chunks, is_whole=fault is None)
    if fault is not None:
        needed, offset = fault
        assert offset is not None, "S9"
        place = len(text.encode()[:offset].decode())
        assert not chunks or place == chunks[-1].end, "S9"
        assert needed == count(text[place]) > options.max_tokens, "S9"
        assert rule.end(place, place) is None, "S9"


def check_pieces(api: Api, text: str, options: SplitOptions, sizes: Sequence[int]) -> None:
    """Law S7, for texts that are too long to try all of."""
    for size in sizes:
        whole, streamed = (
            outcome(api.split(text, options)),
            outcome(api.stream(text, options, size)),
        )
        assert streamed == whole, "S7"


def _check_chunks(rule: _Rule, chunks: Sequence[Chunk], *, is_whole: bool) -> None:
    """Laws S1 to S6, S10 and S11, of all chunks or of those before a fault."""
    text, options, count = rule.text, rule.options, rule.count
    if is_whole:
        assert bool(chunks) == bool(text), "S4"
        assert chunks[-1].end == len(text) if text else not chunks, "S3"
        assert len(chunks) < 2 or count(text) > options.max_tokens, "S5"
    covered = 0
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end], "S2"
        assert chunk.count == count(chunk.text) <= options.max_tokens, "S1"
        assert not {chunk.start, chunk.end} & rule.forbidden, "S10"
        assert chunk.level == rule.level(chunk.end), "S11"
        assert chunk.end == rule.end(chunk.start, covered), "S5"
        covered = chunk.end
    assert all(chunk.start == chunk.overlap == 0 for chunk in chunks[:1]), "S3"
    for before, chunk in pairwise(chunks):
        assert before.start < chunk.start, "S4"
        assert before.end < chunk.end, "S4"
        assert chunk.start <= before.end, "S3"
        assert options.overlap_tokens or chunk.start == before.end, "S3"
        shared = rule.shared(chunk.start, before.end)
        assert chunk.overlap == shared <= options.overlap_tokens, "S6"
        assert chunk.start == rule.start(before), "S6"


class _Rule:
    """Where the chunks of a text start and end, by trying every boundary."""

    def __init__(self, text: str, options: SplitOptions, count: Count) -> None:
        self.text = text
        self.options = options
        self.count = count
        self.forbidden = inside_special(text, frozenset(options.allowed_special))
        self._of_level = {level: set(boundaries(text, level)) for level in LEVELS}

    def level(self, place: int) -> Level:
        return next(level for level in reversed(LEVELS) if place in self._of_level[level])

    def shared(self, start: int, end: int) -> int:
        """The tokens that two chunks share: without those of a template."""
        return self.count(self.text[start:end]) - self.count("") if start < end else 0

    def start(self, before: Chunk) -> int:
        """The start of the next chunk."""
        most, end = self.options.overlap_tokens, before.end
        fitting = (
            place
            for place in self._of_level["grapheme"] - self.forbidden
            if before.start < place < end and self.shared(place, end) <= most
        )
        first = min(fitting, default=end) if most else end
        return end if self.end(first, end) is None else first

    def end(self, start: int, covered: int) -> int | None:
        """The end of the chunk from `start` on, which is after `covered`; None for none."""
        text, options = self.text, self.options
        if self.count(text[start:]) <= options.max_tokens:
            return len(text)
        for level in options.levels:
            fitting = [
                place
                for place in self._of_level[level] - self.forbidden
                if place > start and self.count(text[start:place]) <= options.max_tokens
            ]
            end = max(fitting, default=0)
            if end <= covered:
                continue
            share = self.count(text[start:end]) * 100
            least = options.max_tokens * options.min_fill_percent
            if share >= least or level in ("grapheme", "code_point"):
                return end
        return None


def check_inspection(api: Api, text: str, more: str, encode: Encode, few: int = 1) -> None:
    """Laws I1 to I7, of which I4 for the text `more`; `encode` gives the ids of ordinary text."""
    found = api.inspect(text)
    places = [(f.start, f.end, f.code) for f in found.findings]
    assert places == sorted(places), "I1"
    assert all(0 <= start < end <= len(text) for start, end, _ in places), "I1"
    assert sum(found.totals.values()) == len(found.findings), "I2"
    cut_off = api.inspect(text, few)
    assert cut_off.findings == found.findings[:few], "I2"
    assert cut_off.totals == found.totals, "I2"
    ids = encode(text)
    assert found.count == len(ids), "I3"
    stable = ids[: found.stable_tokens]
    assert encode(text[: found.stable_end]) == stable, "I4"
    assert encode(text + more)[: found.stable_tokens] == stable, "I4"
    spelled = [f for f in found.findings if f.code == FindingCode.SPECIAL_TOKEN_SPELLED]
    first = (spelled[0].token, len(text[: spelled[0].start].encode())) if spelled else None
    assert first == api.spelled(text), "I5"
    not_nfc = found.totals.get(FindingCode.NOT_NFC, 0) > 0
    assert not_nfc == (unicodedata.normalize("NFC", text) != text), "I6"
    assert {f.token for f in found.findings} <= {None, *api.special_tokens}, "I7"
