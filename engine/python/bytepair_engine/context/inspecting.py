"""Report what makes the count of a text surprising. The text is never changed."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from heapq import nsmallest
from itertools import pairwise
from types import MappingProxyType
from typing import Final, TypeVar

import regex

from bytepair_engine import cancel
from bytepair_engine.context.boundaries import Boundaries
from bytepair_engine.context.measure import Measure
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import check_least, check_type
from bytepair_engine.streaming.encoder import DEFAULT_MAX_PENDING_BYTES
from bytepair_engine.vocabulary.special_search import special_search

#: Number of steps of a finder between two checks for cancellation: a few milliseconds.
_CHECK_EVERY: Final = 4096

T = TypeVar("T")


class FindingCode(IntEnum):
    """The kinds of findings; the numbers are those of the proto."""

    #: The text ends with white space, which following text would join.
    TRAILING_WHITESPACE = 1
    #: From here on, following text can change the tokens.
    UNSTABLE_TAIL = 2
    #: The text contains a special token.
    SPECIAL_TOKEN_SPELLED = 3
    #: The text looks like a special token, apart from case, compatibility or invisible characters.
    SPECIAL_TOKEN_LOOKALIKE = 4
    #: Not in Unicode's normal form C.
    NOT_NFC = 5
    #: A character without width, except those that emoji and scripts need.
    INVISIBLE_CHARACTER = 6
    #: A tag character, except those of flags.
    TAG_CHARACTER = 7
    #: A character that changes the direction of text.
    BIDI_CONTROL = 8
    #: U+FFFD: the text was decoded wrongly before.
    REPLACEMENT_CHARACTER = 9
    #: A control character other than TAB, LF and CR.
    CONTROL_CHARACTER = 10
    #: A token of the list `flagged`.
    FLAGGED_TOKEN = 11
    #: The unknown token of a vocabulary that has one.
    UNKNOWN_TOKEN = 12
    #: A stretch without a split point, longer than a stream may hold.
    LONG_RUN = 13


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A finding in a text.

    A token of a space that the encoding adds to the text is found at the character beside it.

    Attributes:
        start: Its start, in code points.
        end: Its end, after `start`.
        code: Its kind.
        token_id: The id of the token; None if it is not about a token.
        token: The name of the special token; None for other kinds.
        code_point: The character; None if it is not about a character.
    """

    start: int
    end: int
    code: FindingCode
    token_id: int | None = None
    token: str | None = None
    code_point: int | None = None


@dataclass(frozen=True, slots=True)
class Inspection:
    """The result of inspecting a text.

    Attributes:
        findings: The findings by start, end and code; at most `max_findings`.
        totals: Number of all findings, by code.
        count: Number of tokens of the text as ordinary text.
        stable_tokens: Number of leading tokens that no following text can change.
        stable_end: Their end, in code points.
    """

    findings: tuple[Finding, ...]
    totals: Mapping[FindingCode, int]
    count: int
    stable_tokens: int
    stable_end: int


def inspect(
    encoding: Encoding,
    text: str,
    *,
    codes: Collection[FindingCode] = (),
    max_findings: int | None = None,
    flagged: Collection[int] = (),
    long_run_bytes: int = DEFAULT_MAX_PENDING_BYTES,
) -> Inspection:
    """Report what makes the count of a text, or an answer to it, surprising.

    Args:
        encoding: The encoding. Unless it can be streamed, no token is known to be stable.
        text: Any text without lone surrogates; its special tokens are ordinary text.
        codes: The kinds to report; empty for all.
        max_findings: Maximum number of findings, at least 0; None for all.
        flagged: Token ids to report.
        long_run_bytes: Maximum bytes without a split point.
    Raises:
        InvalidUnicode: A lone surrogate.
        InvalidOption: `max_findings` is negative.
    """
    check_type("text", text, str, "str")
    if max_findings is not None:
        check_least("max_findings", max_findings, 0)
    measure = Measure(encoding, text, frozenset())
    count = measure.count(text)
    stable_end = measure.points.stable_end()
    wanted = frozenset(codes) or frozenset(FindingCode)
    inspected = _Text(encoding, text, stable_end, frozenset(flagged), long_run_bytes)
    totals: Counter[FindingCode] = Counter()
    found = _all(inspected, wanted, totals)
    if max_findings is None:
        findings = sorted(found)
    else:  # without holding the others; for 0, nsmallest would not even count them
        findings = nsmallest(max(1, max_findings), found)[:max_findings]
    return Inspection(
        tuple(findings),
        totals,
        count,
        measure.count(text[:stable_end]),
        stable_end,
    )


@dataclass(frozen=True, slots=True)
class _Text:
    encoding: Encoding
    text: str
    stable_end: int
    flagged: frozenset[int]
    long_run_bytes: int


def _all(
    text: _Text, wanted: Collection[FindingCode], totals: Counter[FindingCode]
) -> Iterator[Finding]:
    """Yield the findings of the wanted kinds, and count them in `totals`."""
    for code, look in _FINDERS.items():
        cancel.check()
        if code in wanted:
            for finding in look(text):
                totals[code] += 1
                yield finding


def _checked(steps: Iterable[T]) -> Iterator[T]:
    """Yield the steps of a finder. Raises Cancelled between them if the work was cancelled."""
    for number, step in enumerate(steps, 1):
        yield step
        if number % _CHECK_EVERY == 0:
            cancel.check()


#: Characters without width that are not characters of their own kind below.
_INVISIBLE: Final = (
    r"\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2064\u206a-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\U000e0100-\U000e01ef"
)
#: Scripts whose letters are joined, or kept apart, by U+200C and U+200D.
_JOINING: Final = (
    r"\p{Arab}\p{Syrc}\p{Mong}\p{Deva}\p{Beng}\p{Guru}\p{Gujr}\p{Orya}\p{Taml}\p{Telu}\p{Knda}"
    r"\p{Mlym}\p{Sinh}\p{Khmr}\p{Mymr}\p{Thaa}\p{Nkoo}\p{Mand}\p{Adlm}\p{Rohg}"
)
_NEEDED: Final = (
    # Between emoji, and between letters of scripts that use them, with marks in between.
    r"(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})"
    rf"|(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])"
    # Presentation of emoji and keycaps, variants of Han and Mongolian.
    r"|(?<=[\p{Extended_Pictographic}0-9#*])[\ufe0e\ufe0f]"
    r"|(?<=\p{Han})[\ufe00-\ufe02\U000e0100-\U000e01ef]"
    r"|(?<=\p{Mong})[\u180b-\u180f]"
)
_FLAG_TAGS: Final = "".join(
    rf"|(?<=\U0001f3f4){''.join(chr(0xE0000 + ord(c)) for c in code)}\U000e007f"
    for code in ("gbeng", "gbsct", "gbwls")
)
_CHARACTERS: Final[dict[FindingCode, regex.Pattern[str]]] = {
    FindingCode.INVISIBLE_CHARACTER: regex.compile(rf"(?:{_NEEDED})(*SKIP)(*FAIL)|[{_INVISIBLE}]"),
    FindingCode.TAG_CHARACTER: regex.compile(
        rf"(?:{_FLAG_TAGS[1:]})(*SKIP)(*FAIL)|[\U000e0000-\U000e007f]"
    ),
    FindingCode.BIDI_CONTROL: regex.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"),
    FindingCode.REPLACEMENT_CHARACTER: regex.compile("\ufffd"),
    FindingCode.CONTROL_CHARACTER: regex.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"),
}
_DROPPED: Final = regex.compile(rf"[{_INVISIBLE}\U000e0000-\U000e007f\u200e\u200f\u202a-\u202e]")
_TRAILING: Final = regex.compile(r"(?r)\s+")


def _trailing(text: _Text) -> Iterator[Finding]:
    match = _TRAILING.match(text.text)
    if match:
        yield Finding(match.start(), match.end(), FindingCode.TRAILING_WHITESPACE)


def _unstable(text: _Text) -> Iterator[Finding]:
    if text.stable_end < len(text.text):
        yield Finding(text.stable_end, len(text.text), FindingCode.UNSTABLE_TAIL)


def _spelled(text: _Text) -> Iterator[Finding]:
    special = text.encoding.special_tokens
    code = FindingCode.SPECIAL_TOKEN_SPELLED
    is_spelled = False
    names_found = special_search(frozenset(special)).finditer(text.text, len(text.text))
    for match in _checked(names_found):
        name, is_spelled = match.group(), True
        yield Finding(match.start(), match.end(), code, special[name], name)
    if not is_spelled:
        # Like `encode`, search the normalised text only if the text itself has no special token.
        names = _found_in_normalised_text(text.encoding)
        yield from _tokens(text, names.keys(), code, names)


def _lookalikes(text: _Text) -> Iterator[Finding]:
    special = text.encoding.special_tokens
    folded, prefixes = _folded_names(frozenset(special))
    # Of this text only: folding all characters of Unicode takes a second.
    firsts = sorted(c for c in set(text.text) if _folded(c) in prefixes)
    if not firsts:
        return
    last = 0
    first = "[" + "".join(map(regex.escape, firsts)) + "]"
    for match in _checked(regex.finditer(first, text.text)):
        start = place = match.start()
        if start < last:
            continue
        seen, best = "", None
        while place < len(text.text):
            seen += _folded(text.text[place])
            if seen not in prefixes:
                break
            place += 1
            if seen in folded:
                best = place, folded[seen]
        if best is not None and text.text[start : best[0]] not in special:
            last, name = best
            code = FindingCode.SPECIAL_TOKEN_LOOKALIKE
            yield Finding(start, last, code, special[name], name)


@lru_cache(16)
def _folded_names(names: frozenset[str]) -> tuple[Mapping[str, str], frozenset[str]]:
    """Return names by folded name, and all prefixes of these."""
    folded = {_folded(name): name for name in sorted(names, reverse=True)}
    folded.pop("", None)
    prefixes = frozenset(name[:end] for name in folded for end in range(1, len(name) + 1))
    return folded, prefixes


@lru_cache(4096)
def _folded(text: str) -> str:
    return _DROPPED.sub("", unicodedata.normalize("NFKC", text).casefold())


def _not_nfc(text: _Text) -> Iterator[Finding]:
    if unicodedata.is_normalized("NFC", text.text):
        return
    ends = [0, *Boundaries(text.text).between("grapheme", 0, len(text.text))]
    found = False
    for start, end in _checked(pairwise(ends)):
        if not unicodedata.is_normalized("NFC", text.text[start:end]):
            found = True
            yield Finding(start, end, FindingCode.NOT_NFC)
    if not found:
        yield Finding(0, len(text.text), FindingCode.NOT_NFC)


def _characters(code: FindingCode) -> Callable[[_Text], Iterator[Finding]]:
    def find(text: _Text) -> Iterator[Finding]:
        for match in _checked(_CHARACTERS[code].finditer(text.text)):
            point = ord(match.group())
            yield Finding(match.start(), match.end(), code, code_point=point)

    return find


def _flagged(text: _Text) -> Iterator[Finding]:
    yield from _tokens(text, text.flagged, FindingCode.FLAGGED_TOKEN)


def _unknown(text: _Text) -> Iterator[Finding]:
    pipeline = text.encoding.pipeline
    if pipeline is not None and pipeline.model.unknown is not None:
        yield from _tokens(text, frozenset({pipeline.model.unknown}), FindingCode.UNKNOWN_TOKEN)


_NONE: Final[Mapping[int, str]] = MappingProxyType({})


def _found_in_normalised_text(encoding: Encoding) -> dict[int, str]:
    """Return the special tokens, by id, that are searched in normalised text."""
    added = () if encoding.pipeline is None else encoding.pipeline.added
    return {token.id: token.name for token in added if token.special and token.normalised}


def _tokens(
    text: _Text, wanted: Collection[int], code: FindingCode, special: Mapping[int, str] = _NONE
) -> Iterator[Finding]:
    """Yield the tokens with these ids; those in `special` are encoded as special tokens."""
    if not wanted:
        return
    ids, offsets = text.encoding.encode_with_offsets(
        text.text, allowed_special=frozenset(special.values()), disallowed_special=()
    )
    offsets.append(len(text.text))
    for index, token_id in enumerate(_checked(ids)):
        if token_id in wanted:
            # A token within a character is reported as the whole character. A token of a space that
            # the encoding adds is reported as the character beside it, so one after the text as the
            # last character.
            start, after = min(offsets[index], len(text.text) - 1), index + 1
            while offsets[after] <= start:
                after += 1
            yield Finding(start, offsets[after], code, token_id, special.get(token_id))


def _long_runs(text: _Text) -> Iterator[Finding]:
    if len(text.text.encode()) > text.long_run_bytes:
        measure = Measure(text.encoding, text.text, frozenset())
        for start, end in measure.points.long_runs(text.long_run_bytes):
            yield Finding(start, end, FindingCode.LONG_RUN)


_FINDERS: Final[dict[FindingCode, Callable[[_Text], Iterator[Finding]]]] = {
    FindingCode.TRAILING_WHITESPACE: _trailing,
    FindingCode.UNSTABLE_TAIL: _unstable,
    FindingCode.SPECIAL_TOKEN_SPELLED: _spelled,
    FindingCode.SPECIAL_TOKEN_LOOKALIKE: _lookalikes,
    FindingCode.NOT_NFC: _not_nfc,
    **{code: _characters(code) for code in _CHARACTERS},
    FindingCode.FLAGGED_TOKEN: _flagged,
    FindingCode.UNKNOWN_TOKEN: _unknown,
    FindingCode.LONG_RUN: _long_runs,
}
