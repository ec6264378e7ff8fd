"""Convert merges from spellings to ids, as the columns of `Merges`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import add

from bytepair_engine.pipeline.definition import Columns, Merges

#: An implementation of `columns_slowly`.
_ToColumns = Callable[[list[str], Mapping[str, int], int], "Columns | int"]


def merges_of(halves: list[str], vocabulary: Mapping[str, int], prefix: int) -> Merges | int:
    """Look up the ids of merges.

    Args:
        halves: The left and the right half of each merge, alternating, in order of priority.
        vocabulary: Spelling to id.
        prefix: Number of bytes to remove from the right half before joining; the whole half is
            removed if that would split a character.
    Returns:
        The merges; a duplicate pair has the priority of its last occurrence. If a half or the
        result of a merge is not in `vocabulary`, the index of that merge.
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
    """Look up the columns of `merges_of` in Python, without the native core."""
    firsts, seconds = halves[::2], halves[1::2]
    names = map(add, firsts, [without_prefix(second, prefix) for second in seconds])
    left, right, result = (list(map(vocabulary.get, part)) for part in (firsts, seconds, names))
    if None in left or None in right or None in result:
        return min(ids.index(None) for ids in (left, right, result) if None in ids)
    merges = Merges.listed(left, right, result)  # type: ignore[arg-type]
    return merges.priorities, merges.results, merges.lefts, merges.rights


def without_prefix(right: str, prefix: int) -> str:
    """Return `right` without its first `prefix` bytes; "" if that would split a character."""
    if right.isascii():
        return right[prefix:]
    try:
        return right.encode()[prefix:].decode()
    except UnicodeError:
        return ""
