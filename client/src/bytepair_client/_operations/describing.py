"""Descriptions of encodings, tokens and chat formats, and the health of the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from bytepair.v1 import chat_pb2, encoding_pb2, token_pb2, tokenizer_pb2
from grpc_health.v1 import health_pb2

from bytepair_client._arguments import (
    MAX_TOKEN_ID,
    NOT_GIVEN,
    Defaults,
    Timeout,
    chosen_timeout,
    utf8,
)
from bytepair_client._call import Call, Method, Plain, Response, method
from bytepair_client._errors import UnknownTokenId
from bytepair_client._operations.requests import described, named_encoding


@dataclass(frozen=True, slots=True)
class EncodingInfo:
    """One encoding, as the server describes it.

    Attributes:
        name: The canonical name, such as "cl100k_base".
        aliases: Its other names, sorted.
        fingerprint: "sha256:" and 64 hexadecimal digits over everything that determines ids. Equal
            fingerprints mean equal ids for every text.
        n_vocab: One more than the largest token id.
        max_token_id: The largest token id, special tokens included.
        pattern: The regular expression that splits text into pre-tokens.
        special_tokens: The id of each special token, in the order of ids.
        source: "builtin"; "builtin:" and the built-in encoding that it extends; or "file:" and a
            path on the server.
        backend: "native" or "reference". Both give the same ids.
        splitter: The implementation of the pattern. All give the same pre-tokens.
        template_before: The tokens that `add_special_tokens` adds before a text, by spelling.
        template_after: The tokens that it adds after a text.
    """

    name: str
    aliases: tuple[str, ...]
    fingerprint: str
    n_vocab: int
    max_token_id: int
    pattern: str
    special_tokens: Mapping[str, int]
    source: str
    backend: str
    splitter: str
    template_before: tuple[str, ...] = ()
    template_after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatFormatInfo:
    """One chat format, as the server describes it.

    Attributes:
        name: Its name, such as "harmony".
        fingerprint: "sha256:" and 64 hexadecimal digits over everything that determines the
            rendering.
        source: The published rendering that it follows: repository, file and revision.
        audience: The models that use it.
        is_exact: Whether counts can be exact; otherwise they are estimates.
        encodes: Whether `encode_chat` supports it.
        control_tokens: The control tokens that it may write, sorted.
        roles: The roles that messages may have.
        fields: The optional fields that messages may have, sorted.
        tools: Whether it supports tools.
        encodings: The loaded encodings that have its control tokens, sorted.
    """

    name: str
    fingerprint: str
    source: str
    audience: str
    is_exact: bool
    encodes: bool
    control_tokens: tuple[str, ...]
    roles: tuple[str, ...]
    fields: tuple[str, ...]
    tools: bool
    encodings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenPart:
    """A part of a token: an initial unit, or the result of a merge.

    Attributes:
        spelling: As in the vocabulary; the decoded text may differ.
        id: The token id; None if the part is not a token.
        order: The rank, priority or score of the merge of its two halves; None for a unit.
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
        data: The bytes that it decodes to inside a text.
        kind: "ordinary", "byte", "special" or "unknown".
        order: The meaning of the parts' `order`: "rank", "priority" or "score".
        parts: The initial units, then the result of each merge; () if no merges make the token, or
            if it is longer than 1,024 bytes.
    """

    data: bytes
    kind: str
    order: str
    parts: tuple[TokenPart, ...]


def _info(encoding: encoding_pb2.Encoding) -> EncodingInfo:
    return described(
        EncodingInfo,
        encoding,
        special_tokens=MappingProxyType({s.token: s.id for s in encoding.special_tokens}),
        template_before=tuple(s.token for s in encoding.template_before),
        template_after=tuple(s.token for s in encoding.template_after),
    )


def _format_info(format_: chat_pb2.ChatFormat) -> ChatFormatInfo:
    is_exact = format_.accuracy == chat_pb2.ACCURACY_EXACT
    return described(ChatFormatInfo, format_, is_exact=is_exact)


def _token_info(response: token_pb2.GetTokenResponse) -> TokenInfo:
    parts = tuple(described(TokenPart, part) for part in response.parts)
    return described(TokenInfo, response, parts=parts)


LIST_ENCODINGS = method("ListEncodings", lambda response: list(map(_info, response.encodings)))
GET_ENCODING = method("GetEncoding", lambda response: _info(response.encoding))
GET_TOKEN = method("GetToken", _token_info)
LIST_CHAT_FORMATS = method(
    "ListChatFormats", lambda response: list(map(_format_info, response.formats))
)
GET_CHAT_FORMAT = method("GetChatFormat", lambda response: _format_info(response.format))
_STATES: Final = {1: "SERVING", 2: "NOT_SERVING"}
CHECK = Method(
    "/grpc.health.v1.Health/Check",
    health_pb2.HealthCheckRequest,
    health_pb2.HealthCheckResponse.FromString,
    lambda response: _STATES.get(response.status, "UNKNOWN"),
)


def _call(
    method: Method[Response, Plain], defaults: Defaults, timeout: Timeout, **fields: Any
) -> Call[Response, Plain]:
    return Call(method, method.request(**fields), chosen_timeout(defaults.timeout, timeout))


def list_encodings(
    defaults: Defaults, *, timeout: Timeout = NOT_GIVEN
) -> Call[tokenizer_pb2.ListEncodingsResponse, list[EncodingInfo]]:
    """Describe every encoding that the server has loaded.

    Args:
        timeout: Seconds; None for no deadline.
    Returns:
        Sorted by name.
    """
    return _call(LIST_ENCODINGS, defaults, timeout)


def get_encoding(
    defaults: Defaults, encoding: str | None = None, *, timeout: Timeout = NOT_GIVEN
) -> Call[tokenizer_pb2.GetEncodingResponse, EncodingInfo]:
    """Describe one encoding.

    Args:
        encoding: Name or alias; None for the client's.
        timeout: Seconds; None for no deadline.
    Returns:
        Its description, with its canonical name.
    Raises:
        UnknownEncoding: The server has no encoding of that name.
    """
    return _call(GET_ENCODING, defaults, timeout, encoding=named_encoding(defaults, encoding))


def get_token(
    defaults: Defaults, token_id: int, *, encoding: str | None = None, timeout: Timeout = NOT_GIVEN
) -> Call[token_pb2.GetTokenResponse, TokenInfo]:
    """Describe one token and the merges that make it.

    Args:
        token_id: The id of the token.
        encoding: Name or alias; None for the client's.
        timeout: Seconds; None for no deadline.
    Raises:
        UnknownTokenId: No token has this id.
        UnknownEncoding: The server has no encoding of that name.
    """
    if isinstance(token_id, bool) or not isinstance(token_id, int):
        raise TypeError(f"token_id must be an int, not {type(token_id).__name__}")
    if not 0 <= token_id <= MAX_TOKEN_ID:
        raise UnknownTokenId(f"no token has id {token_id}", metadata={"id": str(token_id)})
    name = named_encoding(defaults, encoding)
    return _call(GET_TOKEN, defaults, timeout, encoding=name, id=token_id)


def list_chat_formats(
    defaults: Defaults, *, timeout: Timeout = NOT_GIVEN
) -> Call[chat_pb2.ListChatFormatsResponse, list[ChatFormatInfo]]:
    """Describe every chat format that the server has.

    Args:
        timeout: Seconds; None for no deadline.
    Returns:
        Sorted by name.
    """
    return _call(LIST_CHAT_FORMATS, defaults, timeout)


def get_chat_format(
    defaults: Defaults,
    format: str,  # noqa: A002
    *,
    timeout: Timeout = NOT_GIVEN,
) -> Call[chat_pb2.GetChatFormatResponse, ChatFormatInfo]:
    """Describe one chat format.

    Args:
        format: The name of the format.
        timeout: Seconds; None for no deadline.
    Raises:
        UnknownChatFormat: The server has no chat format of that name.
    """
    return _call(GET_CHAT_FORMAT, defaults, timeout, format=utf8("format", format))


def health(
    defaults: Defaults, service: str = "", *, timeout: Timeout = NOT_GIVEN
) -> Call[health_pb2.HealthCheckResponse, str]:
    """Check whether the server is serving.

    Args:
        service: The full name of a service; "" for the whole server.
        timeout: Seconds; None for no deadline.
    Returns:
        "SERVING", or "NOT_SERVING" while the server loads encodings, verifies them or stops;
        "UNKNOWN" for any other state.
    Raises:
        RequestRejected: The server has no such service; `code` is "NOT_FOUND".
    """
    return _call(CHECK, defaults, timeout, service=utf8("service", service))
