"""Descriptions of encodings, tokens and chat formats of a server, and its health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, TypeVar

from bytepair.v1 import chat_pb2, encoding_pb2, token_pb2, tokenizer_pb2
from grpc_health.v1 import health_pb2

from bytepair_client._call import Call, Method, method
from bytepair_client._operations.chats import CHAT_SERVICE
from bytepair_client._operations.requests import enum_name, named_encoding
from bytepair_client._options import NOT_GIVEN, Defaults, Timeout, chosen_timeout, utf8

LIST_ENCODINGS = method(tokenizer_pb2.ListEncodingsResponse, "ListEncodings")
GET_ENCODING = method(tokenizer_pb2.GetEncodingResponse, "GetEncoding")
GET_TOKEN = method(token_pb2.GetTokenResponse, "GetToken")
LIST_CHAT_FORMATS = method(chat_pb2.ListChatFormatsResponse, "ListChatFormats", CHAT_SERVICE)
GET_CHAT_FORMAT = method(chat_pb2.GetChatFormatResponse, "GetChatFormat", CHAT_SERVICE)
T = TypeVar("T")

CHECK = Method("/grpc.health.v1.Health/Check", health_pb2.HealthCheckResponse.FromString)

_STATES = {
    health_pb2.HealthCheckResponse.SERVING: "SERVING",
    health_pb2.HealthCheckResponse.NOT_SERVING: "NOT_SERVING",
}


@dataclass(frozen=True, slots=True)
class EncodingInfo:
    """One encoding, as the server describes it.

    Attributes:
        name: The canonical name, such as "cl100k_base".
        aliases: Other names that requests may use for it, sorted.
        fingerprint: "sha256:" and 64 hexadecimal digits over what decides ids. Equal
            fingerprints mean equal ids for every text.
        n_vocab: One more than the largest token id.
        max_token_id: The largest token id, special tokens included.
        pattern: The regular expression that splits text into pre-tokens.
        special_tokens: Spelling to id, in the order of ids.
        source: "builtin", "builtin:" and the built-in encoding that it extends, or "file:" and
            a path on the server.
        backend: "native" or "reference". The ids are the same.
        splitter: How the pattern is run. The pre-tokens are the same.
        template_before: The tokens that `add_special_tokens` adds before a text, by spelling.
        template_after: Those that it adds after a text.
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
        fingerprint: "sha256:" and 64 hexadecimal digits over what decides the rendering.
        source: The published rendering that it follows: a repository, a file, a revision.
        audience: The models that it is for.
        is_exact: Whether counts can be exact; otherwise they are estimates.
        encodes: Whether `encode_chat` supports it.
        control_tokens: Those that it may write, sorted.
        roles: The roles of messages.
        fields: The optional fields of a message that it supports, sorted.
        tools: Whether it supports a list of tools.
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
    """A part of a token while it is merged.

    Attributes:
        spelling: As in the vocabulary; its decoded text may differ.
        id: Its id; None if it is not a token.
        order: The rank, priority or score by which its two halves merged; None for a unit.
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
        data: The bytes that it decodes to within a text.
        kind: "ordinary", "byte", "special" or "unknown".
        order: The meaning of the parts' `order`: "rank", "priority" or "score".
        parts: The initial units, then the result of each merge; () if it is not merged, or longer
            than 1,024 bytes.
    """

    data: bytes
    kind: str
    order: str
    parts: tuple[TokenPart, ...]


def list_encodings(
    defaults: Defaults, *, timeout: Timeout = NOT_GIVEN
) -> Call[tokenizer_pb2.ListEncodingsResponse, list[EncodingInfo]]:
    """Describe every encoding that the server has loaded.

    Args:
        timeout: Seconds; None for no deadline.
    Returns:
        Sorted by name.
    """
    return Call(
        LIST_ENCODINGS,
        tokenizer_pb2.ListEncodingsRequest(),
        chosen_timeout(defaults, timeout),
        lambda response: [_info(encoding) for encoding in response.encodings],
    )


def get_encoding(
    defaults: Defaults, encoding: str | None = None, *, timeout: Timeout = NOT_GIVEN
) -> Call[tokenizer_pb2.GetEncodingResponse, EncodingInfo]:
    """Describe one encoding.

    Args:
        encoding: Name or alias; None for the client's.
        timeout: Seconds; None for no deadline.
    Returns:
        Its description, under its canonical name.
    Raises:
        UnknownEncoding: The server has none of that name.
    """
    return Call(
        GET_ENCODING,
        tokenizer_pb2.GetEncodingRequest(encoding=named_encoding(defaults, encoding)),
        chosen_timeout(defaults, timeout),
        lambda response: _info(response.encoding),
    )


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
    """
    request = token_pb2.GetTokenRequest(encoding=named_encoding(defaults, encoding), id=token_id)
    return Call(GET_TOKEN, request, chosen_timeout(defaults, timeout), _token_info)


def list_chat_formats(
    defaults: Defaults, *, timeout: Timeout = NOT_GIVEN
) -> Call[chat_pb2.ListChatFormatsResponse, list[ChatFormatInfo]]:
    """Describe every chat format that the server has.

    Args:
        timeout: Seconds; None for no deadline.
    Returns:
        Sorted by name.
    """
    return Call(
        LIST_CHAT_FORMATS,
        chat_pb2.ListChatFormatsRequest(),
        chosen_timeout(defaults, timeout),
        lambda response: [_format_info(each) for each in response.formats],
    )


def get_chat_format(
    defaults: Defaults,
    format: str,  # noqa: A002
    *,
    timeout: Timeout = NOT_GIVEN,
) -> Call[chat_pb2.GetChatFormatResponse, ChatFormatInfo]:
    """Describe one chat format.

    Args:
        format: Its name.
        timeout: Seconds; None for no deadline.
    Raises:
        UnknownChatFormat: The server has none of that name.
    """
    return Call(
        GET_CHAT_FORMAT,
        chat_pb2.GetChatFormatRequest(format=utf8("format", format)),
        chosen_timeout(defaults, timeout),
        lambda response: _format_info(response.format),
    )


def health(
    defaults: Defaults, service: str = "", *, timeout: Timeout = NOT_GIVEN
) -> Call[health_pb2.HealthCheckResponse, str]:
    """Ask whether the server is serving.

    Args:
        service: A service's full name; "" for the server as a whole.
        timeout: Seconds; None for no deadline.
    Returns:
        "SERVING", or "NOT_SERVING" while the server loads its encodings, verifies them or
        stops; "UNKNOWN" for any other state.
    Raises:
        RequestRefused: The server has no such service; `code` is "NOT_FOUND".
    """
    return Call(
        CHECK,
        health_pb2.HealthCheckRequest(service=service),
        chosen_timeout(defaults, timeout),
        lambda response: _STATES.get(response.status, "UNKNOWN"),
    )


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


def _token_info(answer: token_pb2.GetTokenResponse) -> TokenInfo:
    return described(
        TokenInfo,
        answer,
        kind=enum_name(answer.kind, token_pb2.TokenKind),
        order=enum_name(answer.order, token_pb2.MergeOrder),
        parts=tuple(described(TokenPart, part) for part in answer.parts),
    )


def described(kind: type[T], message: Any, /, **others: Any) -> T:
    """A dataclass of the fields of a message that have the same names, and of `others`: lists as
    tuples, and None for what is not set."""
    for field in fields(kind):  # type: ignore[arg-type]  # T is a dataclass
        if field.name in others:
            continue
        value = getattr(message, field.name)
        if message.DESCRIPTOR.fields_by_name[field.name].has_presence:
            value = value if message.HasField(field.name) else None
        elif not isinstance(value, str | bytes | bool | int):
            value = tuple(value)
        others[field.name] = value
    return kind(**others)
