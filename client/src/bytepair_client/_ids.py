"""Token ids on their way into a request."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.internal.containers import RepeatedScalarFieldContainer

from bytepair_client._errors import UnknownTokenId

MAX_TOKEN_ID = 2**32 - 1


def set_ids(field: RepeatedScalarFieldContainer[int], ids: Iterable[int]) -> None:
    """Append `ids` to the field of a request.

    Raises:
        UnknownTokenId: One is negative or above MAX_TOKEN_ID, so that no encoding has it.
        TypeError: One is not an integer, or `ids` cannot be iterated.
    """
    ids = ids if isinstance(ids, list | tuple) else list(ids)
    try:
        field.extend(ids)
    except ValueError:
        for index, token_id in enumerate(ids):
            if not 0 <= token_id <= MAX_TOKEN_ID:
                raise unknown_id(token_id, index) from None
        raise


def unknown_id(token_id: int, index: int) -> UnknownTokenId:
    """The error for an id that no encoding can have."""
    return UnknownTokenId(
        f"no token has id {token_id} at index {index}",
        metadata={"id": str(token_id), "index": str(index)},
    )
