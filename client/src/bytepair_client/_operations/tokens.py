"""What one token is."""

from __future__ import annotations

from dataclasses import dataclass

from bytepair.v1 import token_pb2

from bytepair_client._call import Call, method
from bytepair_client._operations.common import named_encoding
from bytepair_client._options import NOT_GIVEN, Defaults, Timeout, chosen_timeout

GET_TOKEN = method(token_pb2.GetTokenResponse, "GetToken")


@dataclass(frozen=True, slots=True)
class TokenPart:
    """A part of a token at some moment of merging.

    Attributes:
        spelling: As the vocabulary has it, which need not be what it decodes to.
        id: Its id; None where it is no token by itself.
        order: What decided when its two halves merged; None for a unit.
        left: The index of its left half; None for a unit.
        right: The index of its right half; None for a unit.
    """

    spelling: bytes
    id: int | None
    order: float | None
    left: int | None
    right: int | None


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """One token, as the server describes it.

    Attributes:
        data: What it decodes to amid a text.
        kind: "ordinary", "byte", "special" or "unknown".
        order: What the order of parts is: "rank", "priority" or "score".
        parts: What merging begins with, then what each merge makes; () where it is not merged, or
            longer than 1,024 bytes.
    """

    data: bytes
    kind: str
    order: str
    parts: tuple[TokenPart, ...]


def get_token(
    defaults: Defaults,
    token_id: int,
    *,
    encoding: str | None = None,
    timeout: Timeout = NOT_GIVEN,
) -> Call[token_pb2.GetTokenResponse, TokenInfo]:
    """Describe one token, and the merges that make it.

    Args:
        token_id: Its id.
        encoding: Name or alias; None for the client's.
        timeout: Seconds; None for no deadline.
    Raises:
        UnknownTokenId: No token has this id.
        UnknownEncoding: The server has none of that name.
        TokenizerError: See the tree in the documentation.
    """
    request = token_pb2.GetTokenRequest(encoding=named_encoding(defaults, encoding), id=token_id)
    return Call(GET_TOKEN, request, chosen_timeout(defaults, timeout), _info)


def _info(answer: token_pb2.GetTokenResponse) -> TokenInfo:
    return TokenInfo(
        data=answer.data,
        kind=token_pb2.TokenKind.Name(answer.kind).removeprefix("TOKEN_KIND_").lower(),
        order=token_pb2.MergeOrder.Name(answer.order).removeprefix("MERGE_ORDER_").lower(),
        parts=tuple(map(_part, answer.parts)),
    )


def _part(part: token_pb2.TokenPart) -> TokenPart:
    id_, order, left, right = (
        getattr(part, name) if part.HasField(name) else None
        for name in ("id", "order", "left", "right")
    )
    return TokenPart(part.spelling, id_, order, left, right)
