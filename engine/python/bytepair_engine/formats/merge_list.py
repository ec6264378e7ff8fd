"""Merges by how their halves are spelled, as the columns of `pipeline.Merges`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import add

from bytepair_engine.pipeline.definition import Columns, Merges

#: What answers `columns_slowly`.
_ToColumns = Callable[[list[str], Mapping[str, int], int], "Columns | int"]


def merges_of(halves: list[str], vocabulary: Mapping[str, int], prefix: int) -> Merges | int:
    """Look the tokens up.

    Args:
        halves: The left and the right half of each merge, one after the other, in order of
            priority.
        vocabulary: Spelling to id.
        prefix: How many bytes of the right half are left out when the two are joined; all of
            them where that would cut a character.
    Returns:
        The merges; of a pair that is listed twice the last place counts. If a merge names or makes
        a token that is not in `vocabulary`, its index instead.
    """
    columns = _to_columns()(halves, vocabulary, prefix)
    return columns if isinstance(columns, int) else Merges(*columns)


@cache
def _to_columns() -> _ToColumns:
    try:
        from bytepair_engine import _core
    except ImportError:
        return columns_slowly
    return _core.merge_columns


def columns_slowly(halves: list[str], vocabulary: Mapping[str, int], prefix: int) -> Columns | int:
    """As `merges_of`, in Python."""
    firsts, seconds = halves[::2], halves[1::2]
    names = map(add, firsts, [without_prefix(second, prefix) for second in seconds])
    left, right, result = (list(map(vocabulary.get, part)) for part in (firsts, seconds, names))
    if None in left or None in right or None in result:
        return min(ids.index(None) for ids in (left, right, result) if None in ids)
    merges = Merges.listed(left, right, result)  # type: ignore[arg-type]
    return merges.priorities, merges.results, merges.lefts, merges.rights


def without_prefix(right: str, prefix: int) -> str:
    """`right` without this many bytes; "" where that would cut a character."""
    if right.isascii():
        return right[prefix:]
    try:
        return right.encode()[prefix:].decode()
    except UnicodeError:
        return ""
