"""Sources of streams in pieces, and what a stream gives."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any


def cuts(rng: random.Random, items: Sequence[Any]) -> Iterator[Any]:
    """`items` in pieces of random length, some of them empty."""
    start = 0
    while start < len(items):
        length = rng.choice([0, 1, 1, 2, 3, 7, 50])
        yield items[start : start + length]
        start += length


def stream(encoder: Any, pieces: Iterable[Any]) -> list[int]:
    """The ids of pieces that an encoder gets one after another."""
    ids = [token_id for piece in pieces for token_id in encoder.feed(piece)]
    return [*ids, *encoder.finish()]


def cut(data: Any, *points: int) -> list[Any]:
    """The parts of data between points."""
    ends = [0, *sorted(points), len(data)]
    return [data[start:end] for start, end in pairwise(ends)]


class Broke(Exception):
    """Raised by a source."""


def read(stream: Iterable[Any]) -> tuple[list[Any], Exception | None]:
    """The pieces of a stream, and the exception that it ends with."""
    pieces = []
    try:
        for piece in stream:
            pieces.append(piece)  # noqa: PERF402  # what came before an error counts
    except Exception as error:
        return pieces, error
    return pieces, None
