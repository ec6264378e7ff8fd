"""Numbers in memory that processes share. They survive the process that writes them.

There are no files: nothing fills a disk or is left over from another run.
"""

from __future__ import annotations

import json
import mmap
from typing import Final, TypeAlias

CELL_BYTES: Final = 8
#: Size of the cells of a block, and of its lines: some hundred times what the metrics of six
#: encodings need. Memory that is never touched costs nothing.
_AREA_BYTES: Final = 8 << 20

Cells: TypeAlias = "memoryview[float]"
Key = tuple[str, ...]


class Block:
    """Rows of numbers, each with a key in a named table. Not thread-safe.

    The first half of the memory holds the cells. The second half holds one line of JSON for each
    row: [table, key, number of cells]. Cell 0 is the number of bytes of lines in use. It grows only
    after a line is complete, so a process may be killed at any moment.
    """

    def __init__(self, area_bytes: int = _AREA_BYTES) -> None:
        """Reserve `area_bytes` for the cells, and as many for the lines."""
        memory = memoryview(mmap.mmap(-1, 2 * area_bytes))
        self._cells: Final = memory[:area_bytes].cast("d")
        self._lines: Final = memory[area_bytes:]
        self._read = 0
        self._next = 1
        self._rows: Final[dict[str, dict[Key, Cells]]] = {}

    def rows(self, table: str) -> dict[Key, Cells]:
        """The rows of a table, by key, with those that other processes have added."""
        end = int(self._cells[0])
        for line in bytes(self._lines[self._read : end]).splitlines():
            name, key, count = json.loads(line)
            cells = self._cells[self._next : self._next + count]
            self._rows.setdefault(name, {})[tuple(key)] = cells
            self._next += count
        self._read = end
        return self._rows.get(table, {})

    def reserve(self, table: str, key: Key, count: int, spare_bytes: int = 0) -> Cells:
        """The row of a key; a new one of `count` zeros if it has none. Processes that share the
        block must not add rows at the same time.

        Raises:
            MemoryError: A new row would leave less than `spare_bytes` for cells or for lines.
        """
        found = self.rows(table).get(key)
        if found is not None:
            return found
        line = json.dumps([table, key, count]).encode() + b"\n"
        end = self._read + len(line)
        free = CELL_BYTES * (len(self._cells) - self._next - count)
        if min(len(self._lines) - end, free) < spare_bytes:
            raise MemoryError(f"the shared memory of {table} is full")
        self._lines[self._read : end] = line
        self._cells[0] = end
        return self.rows(table)[key]
