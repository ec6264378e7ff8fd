"""Untrusted JSON: parsed in bounded time and memory, and taken apart by typed steps.

A document of the size of a vocabulary can hold a hundred million values, each of which costs many
times its spelling, and `json` recurses on nesting. So the values are counted before any is built,
and every way in which `json` gives up becomes one refusal.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

from bytepair_engine.errors import VocabularyError

#: No published vocabulary has a third as many values; they would take less than a gigabyte.
MAX_VALUES: Final = 2**23

T = TypeVar("T")

_KINDS: Final[dict[type, str]] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "an integer",
    bool: "true or false",
    float: "a number",
}


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a JSON document, and where it is.

    Attributes:
        value: As `json` gives it.
        path: Its keys from the root, as in `config.pattern` or `vocab[3].rank`; "" for the root.
        source: The file, for errors.
        remedy: What to do about any fault, for errors.
    """

    value: Any
    path: str
    source: str
    remedy: str

    def refuse(self, problem: str) -> NoReturn:
        """Raises VocabularyError, which names the place."""
        place = f"{self.path}: " if self.path else ""
        raise VocabularyError(self.source, f"{place}{problem}", self.remedy)

    def a(self, kind: type[T]) -> T:
        """The value, if it is of that type exactly (an integer is no bool).

        Raises:
            VocabularyError: It is of another.
        """
        if type(self.value) is not kind:
            self.refuse(f"it must be {_KINDS[kind]}")
        return self.value

    def get(self, key: str) -> Node | None:
        """The member of that name; None if there is none, or it is null.

        Raises:
            VocabularyError: This is no object.
        """
        value = self.a(dict).get(key)
        return None if value is None else self._child(value, f".{key}" if self.path else key)

    def __getitem__(self, key: str) -> Node:
        """The member of that name.

        Raises:
            VocabularyError: There is none, or this is no object.
        """
        found = self.get(key)
        if found is None:
            self.refuse(f"it has no {key!r}")
        return found

    def items(self) -> list[Node]:
        """The elements of a list.

        Raises:
            VocabularyError: This is no list.
        """
        return [self._child(value, f"[{i}]") for i, value in enumerate(self.a(list))]

    def _child(self, value: Any, step: str) -> Node:
        return Node(value, self.path + step, self.source, self.remedy)


def read_json(data: bytes, source: str, remedy: str) -> Node:
    """Parse a document.

    Args:
        data: The file, in UTF-8.
        source: Its name, for errors.
        remedy: What to do about any fault in it.
    Returns:
        Its root.
    Raises:
        VocabularyError: It is empty, no JSON, nested too deeply or too large; or an object has a
            key twice, of which another reader might take the other.
    """
    if not data.strip():
        raise VocabularyError(source, "the file is empty", remedy)
    # Each value but the first follows one of these; those within strings count too, and are few.
    values = sum(data.count(mark) for mark in (b",", b"[", b"{"))
    if values > MAX_VALUES:
        raise VocabularyError(source, f"it holds more than {MAX_VALUES} values", remedy)
    try:
        root = json.loads(data, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise VocabularyError(
            source, f"it is not JSON: {error.msg}", remedy, line=error.lineno
        ) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise VocabularyError(source, "the line is not UTF-8", remedy, line=line) from None
    except RecursionError:
        raise VocabularyError(source, "it is nested too deeply", remedy) from None
    except ValueError as error:
        raise VocabularyError(source, str(error), remedy) from None
    return Node(root, "", source, remedy)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"an object has the key {twice[:100]!r} twice")
    return unique


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which is not JSON")
