"""Compile `allowed_special` and `disallowed_special` into sets for a backend."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final, Literal

from bytepair_engine.backends.interface import Backend
from bytepair_engine.errors import InvalidOption, check_type

SpecialTokens = Literal["all"] | Collection[str]

#: Number of compiled sets that an encoding caches: callers that vary the options without end cost
#: time but not memory.
_MAX_CACHED_SETS: Final = 256

_EMPTY: Final = (frozenset[str](), ())


class SpecialSets:
    """The sets of special tokens of one encoding, compiled by its backend."""

    def __init__(self, backend: Backend[Any], special_tokens: Mapping[str, int]) -> None:
        self._names: Final = frozenset(special_tokens)

        # A set is checked once, when it is compiled.
        @lru_cache(_MAX_CACHED_SETS)
        def compiled(names: frozenset[str]) -> Any:
            return backend.special_set(names if names <= self._names else _check_strings(names))

        self._compiled: Final = compiled
        self._every: Final = backend.special_set(self._names)
        self.none: Final = backend.special_set(frozenset())
        self._default: Final = (self.none, self._every)
        self._nothing: Final = (self.none, self.none)

    def resolve(self, allowed: SpecialTokens, disallowed: SpecialTokens) -> tuple[Any, Any]:
        """Return the allowed and the disallowed set, with tiktoken's meaning of the options.

        Raises:
            InvalidOption: An option is a string other than "all", or contains "".
            TypeError: An option is not a collection, or a name to disallow is not a string.
        """
        try:
            rejects_all = disallowed == "all"
            allows_none = allowed in _EMPTY
            if allows_none and rejects_all:
                return self._default
            if allows_none and disallowed in _EMPTY:
                return self._nothing
            allows_all = allowed == "all"
        except ValueError:  # of an array, which compares each of its items
            raise TypeError(
                'allowed_special and disallowed_special must be "all" or a collection of strings, '
                "not an array: use a list"
            ) from None
        if allows_all and rejects_all:
            return self._every, self.none
        names = self._names if allows_all else self._allowed(allowed)
        rejected = (
            self._names - names if rejects_all else _checked("disallowed_special", disallowed)
        )
        return self._compiled(names), self._compiled(rejected)

    def _allowed(self, names: Collection[str]) -> frozenset[str]:
        # As in tiktoken, a name that is not a special token allows nothing. If it were kept, it
        # could match the text of a special token.
        return _checked("allowed_special", names) & self._names


def chosen_names(
    every: frozenset[str], allowed: SpecialTokens, disallowed: SpecialTokens
) -> tuple[frozenset[str], frozenset[str]]:
    """Return which of `every` special token are allowed, and the strings that are an error.

    Raises:
        InvalidOption: An argument is one string other than "all", or contains "".
        TypeError: An argument is not a collection, or a name to disallow is not a string.
    """
    known = every if allowed == "all" else _checked("allowed_special", allowed) & every
    if disallowed == "all":
        return known, every - known
    return known, _check_strings(_checked("disallowed_special", disallowed))


def _checked(option: str, names: Collection[str]) -> frozenset[str]:
    if isinstance(names, str):
        raise InvalidOption(option, 'must be "all" or a collection of strings, not one string')
    try:
        if isinstance(names, (bytes, bytearray)):
            raise TypeError("not bytes")
        names = frozenset(names)
    except TypeError as error:  # not iterable, or with an unhashable name
        raise TypeError(f'{option} must be "all" or a collection of strings: {error}') from error
    if "" in names:
        raise InvalidOption(option, "contains an empty string")
    return names


def _check_strings(names: frozenset[str]) -> frozenset[str]:
    """Return names to disallow; raise TypeError if one is not a string. Allowing such a name does
    nothing."""
    for name in names:
        check_type("disallowed_special: each name", name, str, "str")
    return names
