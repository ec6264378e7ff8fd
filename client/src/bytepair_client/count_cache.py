"""Counts that were asked for before: kept by all that decides them, within so many bytes."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from sys import getsizeof
from threading import Lock
from typing import Any, Final

from bytepair.v1 import tokenizer_pb2

from bytepair_client import options
from bytepair_client.call import Call

#: What an entry takes beside its key and its value, a little more than CPython takes of large ones.
ENTRY_BYTES: Final = 200


class CountCache:
    """Answers of Count, of which those that were not asked for the longest are given up first.

    A count is decided by the text, the options and the encoding, and an encoding only by its
    fingerprint: a name may mean another one tomorrow. So what is kept is the answer to a request
    that holds `expected_fingerprint`; others are always sent. The key is the SHA-256 of all of
    the request, so no text is kept. Errors are not kept. For many threads at once.
    """

    def __init__(self, max_bytes: int) -> None:
        """Keep nothing yet.

        Args:
            max_bytes: Memory of all entries; 0 to keep nothing at any time.
        Raises:
            InvalidOption: It is less than 0.
        """
        if max_bytes < 0:
            raise options.invalid("count_cache_bytes", "at least 0")
        self._max: Final = max_bytes
        self._lock: Final = Lock()  # of the two below
        self._kept: Final[OrderedDict[bytes, bytes]] = OrderedDict()
        self._bytes = 0

    def key(self, call: Call[Any, Any]) -> bytes | None:
        """What the answer to a call is kept by; None if it is not kept."""
        request = call.request
        if not self._max or call.is_large or not isinstance(request, tokenizer_pb2.CountRequest):
            return None
        if not request.expected_fingerprint:
            return None
        return sha256(request.SerializeToString(deterministic=True)).digest()

    def get(self, key: bytes) -> tokenizer_pb2.CountResponse | None:
        """The answer to the same request before; None if there is none any more."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
        return tokenizer_pb2.CountResponse.FromString(kept)

    def put(self, key: bytes, answer: tokenizer_pb2.CountResponse) -> None:
        """Keep an answer."""
        value = answer.SerializeToString()
        with self._lock:
            self._forget(key)
            self._kept[key] = value
            self._bytes += _cost(key, value)
            while self._bytes > self._max:
                self._forget(next(iter(self._kept)))

    def _forget(self, key: bytes) -> None:
        value = self._kept.pop(key, None)
        if value is not None:
            self._bytes -= _cost(key, value)


def _cost(key: bytes, value: bytes) -> int:
    return getsizeof(key) + getsizeof(value) + ENTRY_BYTES
