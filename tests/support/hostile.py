"""The hostile and broken clients by name.

Each takes an address, runs until it is stopped, and returns the number of things that it sent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Final

from support.hostile_connections import (
    full_speed_streams,
    incomplete_messages,
    new_connections,
    rapid_reset,
    renewed_incomplete_messages,
    silent_connections,
    slow_bytes,
    unread_answers,
)
from support.hostile_messages import (
    bomb,
    costly_splits,
    gzip_bombs,
    gzip_to_health,
    large_headers,
    not_protobuf,
    not_utf8,
    random_frames,
    wrong_lengths,
)
from support.http2 import Going


def going_for(seconds: float) -> Going:
    """Return a function that is true three times, and until this time is over."""
    until, first = monotonic() + seconds, iter((True,) * 3)
    return lambda: next(first, False) or monotonic() < until


def prepare() -> None:
    """Prepare data whose making takes longer than some attacks."""
    bomb()


ATTACKS: Final[dict[str, Callable[[str, Going], int]]] = {
    "200 silent connections": silent_connections,
    "50 connections, a byte a second": slow_bytes,
    "500 large answers never read": unread_answers,
    "1,000 incomplete messages": incomplete_messages,
    "1,000 incomplete messages on ten connections, renewed": renewed_incomplete_messages,
    "1,000 streams at full speed": full_speed_streams,
    "streams opened and reset (rapid reset)": rapid_reset,
    "streams opened and reset on ten connections": partial(rapid_reset, connections=10),
    "a flood of new connections": new_connections,
    "gzip bombs of 64 MiB": gzip_bombs,
    "gzip bombs to the health service": gzip_to_health,
    "10,000 headers in 10 KB": large_headers,
    "wrong lengths": wrong_lengths,
    "random frames": random_frames,
    "invalid protobuf": not_protobuf,
    "invalid UTF-8": not_utf8,
    "16 KB of one word, split into single tokens": costly_splits,
}
