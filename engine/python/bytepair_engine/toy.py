"""The smallest encoding that shows everything: the worked example of `reference`."""

from __future__ import annotations

from functools import cache

from bytepair_engine.encoding import Encoding
from bytepair_engine.rank_table import RankTable
from bytepair_engine.reference import ReferenceBackend

_PATTERN = " ?[a-z]+"
_MERGES = [b"aa", b"ab", b"aab", b" a"]


@cache
def toy() -> Encoding:
    """256 bytes, four merges and one special token, `<|end|>` 260; on the reference backend.

    >>> toy().encode("aab<|end|>", allowed_special="all")
    [258, 260]
    """
    tokens = [bytes([byte]) for byte in range(256)] + _MERGES
    special_tokens = {"<|end|>": len(tokens)}
    table = RankTable.from_items([(token, rank) for rank, token in enumerate(tokens)])
    return Encoding(
        "toy",
        ReferenceBackend(table, _PATTERN, special_tokens),
        pattern=_PATTERN,
        special_tokens=special_tokens,
        max_token_id=len(tokens),
        source="builtin",
    )
