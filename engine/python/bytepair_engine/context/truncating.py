"""The longest start, end, or start and end of a text that fits a number of tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal

from bytepair_engine.backends.interface import Fits
from bytepair_engine.backends.reference import check_unicode
from bytepair_engine.context.boundaries import LEVELS, Level, checked_level
from bytepair_engine.context.measure import check_special
from bytepair_engine.context.truncation_search import Keep, Search, Truncation
from bytepair_engine.encoding import Encoding
from bytepair_engine.errors import (
    BudgetTooSmall,
    InvalidOption,
    InvalidUnicode,
    check_least,
    check_percent,
    check_type,
)
from bytepair_engine.vocabulary.special_sets import SpecialTokens

#: Share of the budget for the start with `keep="both"`, in percent.
DEFAULT_START_PERCENT: Final = 50

#: Characters that the core is given for each token of the budget, and in addition.
_CHARACTERS_PER_TOKEN: Final = 8
_EXTRA_CHARACTERS: Final = 256


def truncated(
    encoding: Encoding,
    text: str,
    max_tokens: int,
    *,
    keep: Keep = "start",
    level: Level = "grapheme",
    marker: str = "",
    start_percent: int = DEFAULT_START_PERCENT,
    allowed_special: SpecialTokens = frozenset(),
    disallowed_special: SpecialTokens = frozenset(),
    add_special_tokens: bool = False,
) -> Truncation:
    """Cut a text so that it has at most `max_tokens` tokens.

    Args:
        encoding: The encoding.
        text: Any text without lone surrogates.
        max_tokens: At least 0; the template's tokens count, where they are added.
        keep: "start", "end", or "both": a start, then the longest end that fits beside it.
        level: The level to cut at, one of `boundaries.LEVELS`. If no boundary of it fits, graphemes
            are tried, then code points.
        marker: Replaces removed text, and is counted.
        start_percent: For "both": maximum share of the budget for the start, 0 to 100.
        allowed_special: As for `Encoding.encode`; none of them is cut.
        disallowed_special: As for `Encoding.encode`.
        add_special_tokens: As for `Encoding.encode`.
    Returns:
        The whole text if it fits. Otherwise the longest text that fits and is cut at the level.
    Raises:
        BudgetTooSmall: The text does not fit, and the marker and the template alone do not either.
        SpecialTokenFound: `text` contains a disallowed special token.
        InvalidUnicode: A lone surrogate.
        InvalidOption: An argument outside its domain.
        PieceTooLong: The text does not fit, and more than 1,024 characters where it would be cut
            have no split point; not for rank tables with a published pattern, nor for pipelines
            that `context.valid_cuts` and `context.valid_ends` know. For pipelines also if such text
            stands beside a marker, or beside the start with "both", and is too long to try every
            place.
    """
    if keep not in ("start", "end", "both"):
        raise InvalidOption("keep", 'must be "start", "end" or "both"')
    check_percent("start_percent", start_percent)
    check_type("text", text, str, "str")
    if disallowed_special:
        check_special(encoding, text, allowed_special, disallowed_special)
    found = _truncated(
        encoding,
        text,
        max_tokens,
        keep,
        level,
        marker,
        start_percent=start_percent,
        allowed_special=allowed_special,
        add_special_tokens=add_special_tokens,
        is_part=False,
    )
    assert found is not None
    return found


def truncated_part(
    encoding: Encoding,
    part: str,
    max_tokens: int,
    *,
    keep: Literal["start", "end"] = "start",
    level: Level = "grapheme",
    marker: str = "",
    add_special_tokens: bool = False,
) -> Truncation | None:
    """Cut a text of which only a part is at hand, as `truncated` cuts the whole.

    Args:
        encoding: The encoding.
        part: The start of a longer text, or with `keep="end"` its end, without lone surrogates.
        max_tokens: See `truncated`, as for the other arguments.
        keep: "start" or "end".
        level: The level to cut at.
        marker: Replaces removed text, and is counted.
        add_special_tokens: As for `Encoding.encode`.
    Returns:
        What `truncated` returns for each text with this part; `kept` is a range of the part. None
        if the part is too short to decide that.
    Raises:
        BudgetTooSmall, InvalidUnicode, InvalidOption, PieceTooLong: See `truncated`.
    """
    check_type("text", part, str, "str")
    if keep not in ("start", "end"):
        raise InvalidOption("keep", 'must be "start" or "end" for a part')
    return _truncated(
        encoding,
        part,
        max_tokens,
        keep,
        level,
        marker,
        add_special_tokens=add_special_tokens,
        is_part=True,
    )


def _truncated(
    encoding: Encoding,
    text: str,
    max_tokens: int,
    keep: Keep,
    level: Level,
    marker: str,
    *,
    start_percent: int = DEFAULT_START_PERCENT,
    allowed_special: SpecialTokens = frozenset(),
    add_special_tokens: bool,
    is_part: bool,
) -> Truncation | None:
    """Cut a text, or one with this part; None if the part does not decide."""
    max_tokens = check_least("max_tokens", max_tokens, 0)
    check_type("marker", marker, str, "str")
    checked_level(level)
    frame = len(encoding.template) if add_special_tokens else 0
    budget = max_tokens - frame
    try:
        if not marker and not allowed_special and encoding.fits is not None:
            found = _by_core(encoding.fits, text, budget, keep, level, frame, is_part)
            if found is not None:
                return found
        search = Search(encoding, text, level, marker, allowed_special)
        checkpoints, beyond = search.bounds(keep, max(budget, 0), is_part)
        if is_part and beyond is None:
            return None
        found = search.run(keep, budget, start_percent, checkpoints, beyond)
    except (InvalidUnicode, UnicodeEncodeError):
        check_unicode(text)  # raises with the offset in the whole text
        raise
    if found is None:
        raise BudgetTooSmall(search.marker_count + frame, max_tokens)
    return replace(found, count=found.count + frame)


def _by_core(
    fits: Fits, text: str, budget: int, keep: Keep, level: Level, frame: int, is_part: bool
) -> Truncation | None:
    """Truncate ordinary text in the core; None if the text near the cut does not decide."""
    if keep == "both" or budget < 0:
        return None
    length = (budget + 1) * _CHARACTERS_PER_TOKEN + _EXTRA_CHARACTERS
    is_all = length >= len(text)
    is_complete = is_all and not is_part
    part = text if is_all else text[:length] if keep == "start" else text[-length:]
    found = fits.longest(part, budget, LEVELS.index(level), keep == "end", is_complete)
    if found is None:
        return None
    place, count = found
    if is_complete and place == (len(text) if keep == "start" else 0):
        return Truncation(
            text, count + frame, False, ((0, place or len(text)),) if text else (), None
        )
    if keep == "start":
        return Truncation(text[:place], count + frame, True, ((0, place),), level)
    start = len(text) - len(part) + place
    return Truncation(text[start:], count + frame, True, ((start, len(text)),), level)
