"""Parse untrusted JSON in bounded time and memory, and access it with type checks.

A document of the size of a vocabulary can contain a hundred million values, each of which takes
many times the memory of its text, and `json` recurses on nesting. So values are counted before
parsing, and every error of `json` becomes a `VocabularyError`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

from bytepair_engine.errors import VocabularyError, has_surrogate

#: Maximum number of values, which take less than a gigabyte. Published vocabularies have less than
#: a third of it.
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
    """A value of a JSON document with its path.

    Attributes:
        value: The value, as parsed by `json`.
        path: The keys from the root, such as `config.pattern` or `vocab[3].rank`; "" for the root.
        source: The name of the file, for errors.
        remedy: How to fix the file, for errors.
    """

    value: Any
    path: str
    source: str
    remedy: str

    def reject(self, problem: str) -> NoReturn:
        """Raise VocabularyError with the path of the value."""
        path = f"{self.path}: " if self.path else ""
        raise VocabularyError(self.source, f"{path}{problem}", self.remedy)

    def a(self, kind: type[T]) -> T:
        """Return the value if it has exactly this type (`True` is not an integer).

        Raises:
            VocabularyError: The value has another type, or is a string with a lone surrogate.
        """
        if type(self.value) is not kind:
            self.reject(f"it must be {_KINDS[kind]}")
        if isinstance(self.value, str) and has_surrogate(self.value):
            self.reject("it holds a lone surrogate, which valid text never contains")
        return self.value

    def get(self, key: str) -> Node | None:
        """Return a member of an object; None if it is missing or null.

        Raises:
            VocabularyError: The value is not an object.
        """
        value = self.a(dict).get(key)
        return None if value is None else self._child(value, f".{key}" if self.path else key)

    def __getitem__(self, key: str) -> Node:
        """Return a required member of an object.

        Raises:
            VocabularyError: The member is missing or null, or the value is not an object.
        """
        found = self.get(key)
        if found is None:
            self.reject(f"it has no {key!r}")
        return found

    def items(self) -> list[Node]:
        """Return the elements of a list.

        Raises:
            VocabularyError: The value is not a list.
        """
        return [self._child(value, f"[{i}]") for i, value in enumerate(self.a(list))]

    def _child(self, value: Any, step: str) -> Node:
        return Node(value, self.path + step, self.source, self.remedy)


def read_json(data: bytes, source: str, remedy: str) -> Node:
    """Parse a document.

    Args:
        data: The content of the file, in UTF-8.
        source: The name of the file, for errors.
        remedy: How to fix the file, for errors.
    Returns:
        The root.
    Raises:
        VocabularyError: The file is empty, not JSON, nested too deeply or too large; or an object
            has a duplicate key, which other parsers may resolve differently.
    """
    if not data.strip():
        raise VocabularyError(source, "the file is empty", remedy)
    # Each value except the first follows one of these. The few within strings count too.
    values = sum(data.count(mark) for mark in (b",", b"[", b"{"))
    if values > MAX_VALUES:
        raise VocabularyError(source, f"it holds more than {MAX_VALUES} values", remedy)
    try:
        root = json.loads(data.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
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
