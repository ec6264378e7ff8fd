"""Maps from strings to strings in SentencePiece's compiled format: a double-array trie over the
bytes of the keys, whose values are positions in a block of zero-terminated strings.

A double array stores a trie in one array of 32-bit units. From the unit at position p with its
offset, the byte b leads to the unit at p ^ offset ^ b, if that unit has the label b. A unit that
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

#: The sentencepiece package finds only the shortest 32 of the keys that start at a position.
MAX_KEYS_AT_POSITION: Final = 32

#: Limits of the work per character of a text, and of the work of checking a map.
MAX_KEY_BYTES: Final = 1024
MAX_TABLE_BYTES: Final = 8 * 2**20

#: Maximum number of nodes; a node on several paths counts several times. Published maps have less
#: than a tenth of it.
MAX_NODES: Final = 2**20


class CharsMapFault(ValueError):
    """Bytes that are not a valid map; the message states the reason."""


class CharsMapTable:
    """A compiled map, completely validated on construction.

    Args:
        table: The size of the trie in 4 bytes (little-endian), the trie, the strings.

    Attributes:
        longest_key: Length of the longest key in bytes; 0 if there is none.
        values: The values of all keys.

    Raises:
        CharsMapFault: A size is wrong, the trie leads outside or has a cycle, a key is too long,
            there are too many nodes, or a value is not UTF-8.
    """

    def __init__(self, table: bytes) -> None:
        size = int.from_bytes(table[:4], "little")
        if len(table) > MAX_TABLE_BYTES:
            raise CharsMapFault(f"it has more than {MAX_TABLE_BYTES} bytes")
        if len(table) <= 4 or size % 4 or not size or 4 + size >= len(table):
            raise CharsMapFault(f"its trie has the size {size}, but the map has {len(table)} bytes")
        self._units = array("I", table[4 : 4 + size])
        if byteorder == "big":
            self._units.byteswap()
        self._strings = table[4 + size :]
        self._seen: dict[int, str] = {}
        self.longest_key, ends = self._walk()
        self.values = frozenset(map(self._value, ends))

    def prefixes(self, data: bytes, start: int) -> Iterator[tuple[int, str]]:
        """Yield the keys that match `data` at `start`, the shortest first, at most
        `MAX_KEYS_AT_POSITION`.

        Yields:
            The length of each key in bytes, and its value.
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
                if found == MAX_KEYS_AT_POSITION:
                    return

    def longest(self, data: bytes, start: int) -> tuple[int, str] | None:
        """Return the longest of `prefixes`; None if there is none."""
        found = None
        for found in self.prefixes(data, start):  # noqa: B007  # only the last one is needed
            pass
        return found

    def items(self) -> Iterator[tuple[bytes, str]]:
        """Yield every key with its value."""
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
        """Return the units by base: the position XOR the label of the unit."""
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
        """Validate the trie; visits every reachable unit once. Return the length of the longest
        key, and the positions of the values."""
        units = self._units
        by_base = self._by_base()
        values: set[int] = set()
        depths: dict[int, int] = {}  # depth of the subtrie below a base; -1 while it is walked
        sizes: dict[int, int] = {}  # number of nodes of the same subtrie
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
    """Return a validated map; cached, because several steps and encodings can share it.

    Raises:
        CharsMapFault: The map is invalid.
    """
    return CharsMapTable(table)


_LABEL: Final = 0x800000FF  # the highest bit marks a value, which no byte leads to
_ENDS_KEY: Final = 0x100
_VALUE: Final = 0x7FFFFFFF


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 0x200) >> 6)
