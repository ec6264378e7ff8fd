"""A base class that derives most of the backend interface from `encode` and `decode_bytes`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Collection, Sequence
from typing import Generic

from bytepair_engine.backends import varint
from bytepair_engine.backends.interface import DecodeErrors, S, Text
from bytepair_engine.errors import InvalidUnicode


class DerivedBackend(ABC, Generic[S]):
    """A backend without its own batch, count and packed methods; see `interface.Backend`."""

    @abstractmethod
    def encode(self, text: str, allowed: S, disallowed: S) -> list[int]: ...

    @abstractmethod
    def decode_bytes(self, ids: Collection[int]) -> bytes: ...

    def encode_array(self, text: str, allowed: S, disallowed: S) -> array[int]:
        return array("I", self.encode(text, allowed, disallowed))

    def encode_packed(self, text: Text, allowed: S, disallowed: S) -> bytes:
        return varint.pack(self.encode(_decoded(text), allowed, disallowed))

    def encode_batch(self, texts: Sequence[str], allowed: S, disallowed: S) -> list[list[int]]:
        return [self.encode(text, allowed, disallowed) for text in texts]

    def count(self, text: Text, allowed: S, disallowed: S, limit: int | None) -> int:
        count = len(self.encode(_decoded(text), allowed, disallowed))
        return count if limit is None else min(count, limit + 1)

    def count_batch(
        self, texts: Sequence[Text], allowed: S, disallowed: S, limit: int | None
    ) -> list[int]:
        return [self.count(text, allowed, disallowed, limit) for text in texts]

    def decode(self, ids: Collection[int], errors: DecodeErrors) -> str:
        return _decoded(self.decode_bytes(ids), errors)


def _decoded(text: Text, errors: DecodeErrors = "strict") -> str:
    if not isinstance(text, bytes):
        return text
    try:
        return text.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise InvalidUnicode(error.start, "invalid UTF-8") from None
