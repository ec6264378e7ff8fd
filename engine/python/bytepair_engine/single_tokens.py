"""The methods of `Encoding` for single tokens, by their bytes or ids."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from bytepair_engine.backends.interface import Backend
from bytepair_engine.errors import UnknownToken, UnknownTokenId, wrong_type


class TokenMethods:
    """Look up tokens."""

    __slots__ = ()

    # Of `Encoding`:
    special_tokens: Mapping[str, int]
    _backend: Backend[Any]
    _special_ids: frozenset[int]

    def encode_single_token(self, token: str | bytes) -> int:
        """Return the id of a token, ordinary or special.

        This is a vocabulary lookup that returns special ids too: never pass it user text.

        Raises:
            UnknownToken: `token` is not exactly one token.
        """
        if not isinstance(token, str | bytes):
            raise wrong_type("token", "str or bytes", token)
        # No token contains a lone surrogate.
        data = token.encode(errors="replace") if isinstance(token, str) else token
        if isinstance(token, str) and data.decode() != token:
            raise UnknownToken(len(data))
        token_id = self._backend.token_id(data)
        if token_id is None:
            token_id = self.special_tokens.get(data.decode(errors="surrogateescape"))
        if token_id is None:
            raise UnknownToken(len(data))
        return token_id

    def decode_single_token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of a token, ordinary or special.

        Raises:
            UnknownTokenId: No token has this id.
        """
        token_id = _index(token_id)
        token = self._backend.token_bytes(token_id)
        if token is None:
            raise UnknownTokenId(token_id)
        return token

    def token_byte_values(self) -> list[bytes]:
        """Return the bytes of every ordinary token, sorted."""
        return self._backend.token_byte_values()

    def is_special_id(self, token_id: int) -> bool:
        """Whether a special token has this id."""
        return _index(token_id) in self._special_ids

    def without_special(self, ids: Sequence[int]) -> list[int]:
        """Return the ids without those of special tokens, in order."""
        try:
            return [i for i in map(operator.index, ids) if i not in self._special_ids]
        except TypeError as error:
            raise TypeError(f"ids: {error}") from error


def _index(token_id: int) -> int:
    try:
        return operator.index(token_id)
    except TypeError:
        raise wrong_type("token_id", "int", token_id) from None
