"""A rank table: ordinary tokens and their ids, and a strict parser of rank files.

This is the table of the reference. The native core has a twin with the same interface, which
reports the same errors on the same lines.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from bytepair_engine.errors import BytepairError

#: The largest token id: many libraries store ids as signed 32-bit integers.
MAX_TOKEN_ID: Final = 2**31 - 1


class TableFault(BytepairError, ValueError):
    """An invalid rank table; `file.rejection` converts it to a `VocabularyError`.

    Attributes:
        kind: One of "empty_file", "crlf", "malformed_line", "not_base64", "empty_token",
            "rank_not_a_number", "rank_too_large", "duplicate_token", "duplicate_rank".
        line: 1-based line of the file, or 1-based index of the item.
    """

    def __init__(self, kind: str, line: int) -> None:
        super().__init__(kind, line)
        self.kind = kind
        self.line = line


class RankTable:
    """A one-to-one mapping between token bytes and ids."""

    def __init__(self, ranks: Mapping[bytes, int]) -> None:
        #: Token to id, in the order of the file.
        self.ranks: Mapping[bytes, int] = MappingProxyType(dict(ranks))
        self._ids = frozenset(ranks.values())

    @classmethod
    def from_items(cls, items: Iterable[tuple[bytes, int]]) -> RankTable:
        """Build a table from (token, id) pairs.

        Raises:
            TableFault: A token is empty or a duplicate, or an id is a duplicate or out of range.
        """
        ranks: dict[bytes, int] = {}
        seen: set[int] = set()
        for line, (token, rank) in enumerate(items, 1):
            if not token:
                raise TableFault("empty_token", line)
            if not 0 <= rank <= MAX_TOKEN_ID:
                raise TableFault("rank_too_large", line)
            if token in ranks:
                raise TableFault("duplicate_token", line)
            if rank in seen:
                raise TableFault("duplicate_rank", line)
            ranks[token] = rank
            seen.add(rank)
        return cls(ranks)

    @classmethod
    def parse_tiktoken(cls, data: bytes) -> RankTable:
        r"""Parse a rank file. Each line is the bytes of a token in base64, a space, and its id.

        Args:
            data: The file. Lines end in "\n", which is optional after the last one.
        Raises:
            TableFault: A line is invalid; the error describes the first such line.

        >>> RankTable.parse_tiktoken(b"YQ== 0\nYWI= 1\n").items()
        [(b'a', 0), (b'ab', 1)]
        """
        if not data:
            raise TableFault("empty_file", 1)
        lines = data.removesuffix(b"\n").split(b"\n")
        return cls.from_items(_parse_line(line, number) for number, line in enumerate(lines, 1))

    def items(self) -> list[tuple[bytes, int]]:
        """Return all (token, id) pairs in order of ids."""
        return sorted(self.ranks.items(), key=lambda item: item[1])

    def missing_byte(self) -> int | None:
        """Return the smallest byte that is not a token; None if every byte is one."""
        return next((byte for byte in range(256) if bytes([byte]) not in self.ranks), None)

    def has_id(self, token_id: int) -> bool:
        """Whether a token has this id."""
        return token_id in self._ids

    def max_id(self) -> int:
        """Return the largest id; -1 for an empty table."""
        return max(self._ids, default=-1)

    def __len__(self) -> int:
        return len(self.ranks)


def _parse_line(line: bytes, number: int) -> tuple[bytes, int]:
    if line.endswith(b"\r"):
        raise TableFault("crlf", number)
    token, space, rank = line.partition(b" ")
    if not space or not rank or b" " in rank:
        raise TableFault("malformed_line", number)
    try:
        decoded = base64.b64decode(token, validate=True)
    except binascii.Error:
        raise TableFault("not_base64", number) from None
    if base64.b64encode(decoded) != token:
        raise TableFault("not_base64", number)  # not canonical
    if not rank.isdigit():
        raise TableFault("rank_not_a_number", number)
    # At most ten digits, so that `int` is not quadratic in the length of the line.
    if len(rank) > 10:
        raise TableFault("rank_too_large", number)
    return decoded, int(rank)
