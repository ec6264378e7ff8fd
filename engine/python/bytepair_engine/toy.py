"""A tiny encoding for examples and tests: the worked toy of `backends.reference`."""

from __future__ import annotations

from functools import cache

from bytepair_engine.backends.cores import resolve
from bytepair_engine.building import build_encoding
from bytepair_engine.encoding import Encoding
from bytepair_engine.resources import Resources

_MERGES = [b"aa", b"ab", b"aab", b" a"]


@cache
def toy() -> Encoding:
    """Return an encoding with the 256 bytes, four merges and the special token `<|end|>` (260),
    on the reference backend.

    >>> toy().encode("aab<|end|>", allowed_special="all")
    [258, 260]
    """
    tokens = [bytes([byte]) for byte in range(256)] + _MERGES
    core = resolve("reference")
    return build_encoding(
        core,
        core.from_items([(token, rank) for rank, token in enumerate(tokens)]),
        name="toy",
        pattern=" ?[a-z]+",
        special_tokens={"<|end|>": len(tokens)},
        source="builtin",
        table_source="toy.py",
        resources=Resources(),
    )
