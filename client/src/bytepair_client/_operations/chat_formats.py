"""Which chat formats the server has."""

from __future__ import annotations

from dataclasses import dataclass

from bytepair.v1 import chat_pb2

from bytepair_client._call import Call, Method
from bytepair_client._operations.chats import CHAT_SERVICE
from bytepair_client._options import NOT_GIVEN, Defaults, Timeout, chosen_timeout, utf8

LIST_CHAT_FORMATS = Method(
    f"{CHAT_SERVICE}ListChatFormats", chat_pb2.ListChatFormatsResponse.FromString
)
GET_CHAT_FORMAT = Method(f"{CHAT_SERVICE}GetChatFormat", chat_pb2.GetChatFormatResponse.FromString)


@dataclass(frozen=True, slots=True)
class ChatFormatInfo:
    """One chat format, as the server describes it.

    Attributes:
        name: Its name, such as "harmony".
        fingerprint: "sha256:" and 64 hexadecimal digits over what decides the rendering.
        source: What it is a rendering of: a repository, a file, a revision.
        audience: For which models.
        is_exact: Whether counts by it can be exact; else they are estimates.
        encodes: Whether `encode_chat` takes it.
        control_tokens: Those that structure may put, sorted.
        roles: The roles of messages.
        fields: The optional fields of a message that it has, sorted.
        tools: Whether it can say which tools there are.
        encodings: The loaded encodings that have what it needs, sorted.
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


def list_chat_formats(
    defaults: Defaults, *, timeout: Timeout = NOT_GIVEN
) -> Call[chat_pb2.ListChatFormatsResponse, list[ChatFormatInfo]]:
    """Describe every chat format that the server has.

    Args:
        timeout: Seconds; None for no deadline.
    Returns:
        Sorted by name.
    Raises:
        TokenizerError: See the tree in the documentation.
    """
    return Call(
        LIST_CHAT_FORMATS,
        chat_pb2.ListChatFormatsRequest(),
        chosen_timeout(defaults, timeout),
        lambda response: [_info(each) for each in response.formats],
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
        TokenizerError: See the tree in the documentation.
    """
    return Call(
        GET_CHAT_FORMAT,
        chat_pb2.GetChatFormatRequest(format=utf8("format", format)),
        chosen_timeout(defaults, timeout),
        lambda response: _info(response.format),
    )


def _info(described: chat_pb2.ChatFormat) -> ChatFormatInfo:
    return ChatFormatInfo(
        name=described.name,
        fingerprint=described.fingerprint,
        source=described.source,
        audience=described.audience,
        is_exact=described.accuracy == chat_pb2.ACCURACY_EXACT,
        encodes=described.encodes,
        control_tokens=tuple(described.control_tokens),
        roles=tuple(described.roles),
        fields=tuple(described.fields),
        tools=described.tools,
        encodings=tuple(described.encodings),
    )
