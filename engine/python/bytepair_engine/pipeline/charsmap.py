"""Maps from strings to strings, as SentencePiece compiles them: a double-array trie over the bytes
of the keys, whose values are positions in a block of strings that a zero byte ends.

A double array keeps a trie in one list of 32-bit units. From the unit at position p, the byte b
leads to the unit at p ^ offset ^ b, where the offset is p's, if that unit's label is b; a unit that
ends a key has its value at p ^ offset. (Yata et al., "A compact static double-array keeping
character codes", 2007; the layout of a unit is that of the library Darts-clone.)
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from sys import byteorder
from typing import Final

#: As in the sentencepiece package: of the keys that start at one place only this many,
#: the shortest, are seen.
MAX_KEYS_AT_ONE_PLACE: Final = 32

#: Bounds on the work for each character of a text, and on what is checked of a map.
MAX_KEY_BYTES: Final = 1024
MAX_TABLE_BYTES: Final = 8 * 2**20

#: No published map has a tenth as many nodes; those that several paths lead to count several times.
MAX_NODES: Final = 2**20


class CharsMapFault(ValueError):
    """Bytes that are no such map; the message says why."""


class CharsMapTable:
    """A compiled map, checked as a whole before anything asks it.

    Args:
        table: The size of the trie in 4 bytes (little-endian), the trie, the strings.

    Attributes:
        longest_key: The length of the longest key, in bytes; 0 if there is none.
        values: The values of all keys.

    Raises:
        CharsMapFault: A size is wrong, the trie leads outside or back to where it came from, a key
            is too long, there are too many, or a value is not UTF-8.
    """

    def __init__(self, table: bytes) -> None:
        size = int.from_bytes(table[:4], "little")
        if len(table) > MAX_TABLE_BYTES:
            raise CharsMapFault(f"it has more than {MAX_TABLE_BYTES} bytes")
        if len(table) <= 4 or size % 4 or not size or 4 + size >= len(table):
            raise CharsMapFault(f"its trie says {size} bytes, and the map has {len(table)}")
        self._units = array("I", table[4 : 4 + size])
        if byteorder == "big":
            self._units.byteswap()
        self._strings = table[4 + size :]
        self._seen: dict[int, str] = {}
        self.longest_key, ends = self._walk()
        self.values = frozenset(map(self._value, ends))

    def prefixes(self, data: bytes, start: int) -> Iterator[tuple[int, str]]:
        """The keys that `data` has at `start`, the shortest first, at most
        `MAX_KEYS_AT_ONE_PLACE` of them.

        Yields:
            The length of each in bytes, and its value.
        """
        units = self._units
        position = _offset(units[0])
        found = 0
        for length, byte in enumerate(data[start : start + self.longest_key], 1):
            position ^= byte
            if position >= len(units) or units[position] & _LABEL != byte:
                return
            unit = units[position]
            position ^= _offset(unit)
            if unit & _ENDS_KEY:
                yield length, self._value(units[position] & _VALUE)
                found += 1
                if found == MAX_KEYS_AT_ONE_PLACE:
                    return

    def longest(self, data: bytes, start: int) -> tuple[int, str] | None:
        """The last of `prefixes`; None if there is none."""
        found = None
        for found in self.prefixes(data, start):  # noqa: B007  # only the last one counts
            pass
        return found

    def items(self) -> Iterator[tuple[bytes, str]]:
        """Every key and its value."""
        units, by_base = self._units, self._by_base()
        waiting = [(_offset(units[0]), b"")]
        while waiting:
            base, key = waiting.pop()
            for position in by_base[base]:
                longer = key + bytes([units[position] & 0xFF])
                below = position ^ _offset(units[position])
                if units[position] & _ENDS_KEY:
                    yield longer, self._value(units[below] & _VALUE)
                waiting.append((below, longer))

    def _by_base(self) -> defaultdict[int, list[int]]:
        """Which units can follow: those whose position and label give one base."""
        by_base: defaultdict[int, list[int]] = defaultdict(list)
        for position, unit in enumerate(self._units):
            if unit & _LABEL < 0x100:
                by_base[position ^ (unit & 0xFF)].append(position)
        return by_base

    def _value(self, start: int) -> str:
        found = self._seen.get(start)
        if found is None:
            end = self._strings.find(b"\0", start)
            if not 0 <= start < len(self._strings) or end < 0:
                raise CharsMapFault(f"a value is at {start}, outside its strings")
            try:
                found = self._strings[start:end].decode()
            except UnicodeDecodeError:
                raise CharsMapFault(f"the value at {start} is not UTF-8") from None
            self._seen[start] = found
        return found

    def _walk(self) -> tuple[int, set[int]]:
        """The length of the longest key, and where the values are; every unit that a text can
        reach is visited once."""
        units = self._units
        by_base = self._by_base()
        values: set[int] = set()
        depths: dict[int, int] = {}  # of the subtrie below a base; -1 while it is being walked
        sizes: dict[int, int] = {}  # of the same: how many nodes it has
        root = _offset(units[0])
        stack = [root]
        while stack:
            base = stack[-1]
            below = [position ^ _offset(units[position]) for position in by_base[base]]
            if base not in depths:
                depths[base] = -1
                for position, next_base in zip(by_base[base], below, strict=True):
                    if units[position] & _ENDS_KEY:
                        if next_base >= len(units) or units[next_base] < 0x80000000:
                            raise CharsMapFault(f"unit {position} of its trie has no value")
                        values.add(units[next_base] & _VALUE)
                    if depths.get(next_base) == -1:
                        raise CharsMapFault(f"unit {position} of its trie leads back to itself")
                    if next_base not in depths:
                        stack.append(next_base)
                continue
            stack.pop()
            if depths[base] == -1:
                depths[base] = max((1 + depths[next_base] for next_base in below), default=0)
                sizes[base] = sum(1 + sizes[next_base] for next_base in below)
        if depths[root] > MAX_KEY_BYTES:
            raise CharsMapFault(f"it has a key of more than {MAX_KEY_BYTES} bytes")
        if sizes[root] > MAX_NODES:
            raise CharsMapFault(f"its trie has more than {MAX_NODES} nodes")
        return depths[root], values


@lru_cache(16)
def charsmap(table: bytes) -> CharsMapTable:
    """A compiled map; checked once, however many steps of however many encodings have it.

    Raises:
        CharsMapFault: It is none.
    """
    return CharsMapTable(table)


_LABEL: Final = 0x800000FF  # the bit above marks a value, which no byte leads to
_ENDS_KEY: Final = 0x100
_VALUE: Final = 0x7FFFFFFF


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 0x200) >> 6)
