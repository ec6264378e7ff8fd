"""Requests with text in every field where the API takes text, found by its descriptor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc
from bytepair.v1 import tokenizer_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from support.failures import read
from support.keys import with_key

SERVICE = tokenizer_pb2.DESCRIPTOR.services_by_name["TokenizerService"]

#: String fields of requests that give no ids. All other string fields are text.
NO_TEXT = frozenset(
    {
        *("encoding", "expected_fingerprint", "allowed_special", "special_token", "stop", "marker"),
        "preceding_text",
    }
)

#: RPCs whose text is only inspected: it gives no ids, and special tokens in it are findings.
NO_POLICY = frozenset({"Inspect"})

#: RPCs whose items must be plain texts: segments are INVALID_OPTION.
NO_SEGMENTS = frozenset({"BatchTruncate"})
#: Fields that some RPCs need in addition to a text and its options.
NEEDED = {"max_tokens": 1000}


@dataclass(frozen=True)
class Place:
    """A field in which one RPC takes text.

    Attributes:
        rpc: Name of the RPC.
        path: The fields that lead to the text.
    """

    rpc: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.rpc}:{'.'.join(self.path)}"


@dataclass(frozen=True)
class Answer:
    """The result of a call.

    Attributes:
        messages: The answers.
        reason: Reason of the error of the call or of an item; "" if there is none.
    """

    messages: list[Any]
    reason: str


def places(last: str | None = None) -> Iterator[Place]:
    """Yield every field in which an RPC takes text, or the fields called `last`."""
    for rpc in SERVICE.methods:
        if rpc.name in NO_POLICY:
            continue
        for path in _paths(rpc.input_type):
            if rpc.name in NO_SEGMENTS and "segments" in path:
                continue
            if (path[-1] not in NO_TEXT) if last is None else path[-1] == last:
                yield Place(rpc.name, path)


def _paths(message: Descriptor) -> Iterator[tuple[str, ...]]:
    for field in message.fields:
        if field.message_type is not None:
            yield from ((field.name, *path) for path in _paths(field.message_type))
        elif field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
            yield (field.name,)


def call(
    channel: grpc.Channel, place: Place, text: str, *, key: str = "", **options: Any
) -> Answer:
    """Call the RPC with a text in one field.

    Args:
        channel: A channel to the server.
        place: The RPC, and the field of the text.
        text: The text.
        key: The API key; "" for none.
        options: The options that requests with text share. A request without one of them would
            ignore the policy, and is a ValueError.
    """
    method = SERVICE.methods_by_name[place.rpc]
    request_class = GetMessageClass(method.input_type)
    request = request_class()
    _put(request, place.path, text)
    messages = [request]
    if "config" in method.input_type.fields_by_name:
        first: Any = request_class()
        _set(first.config, NEEDED | options)
        messages.insert(0, first)
    else:
        _set(request, NEEDED | options)
    streams = method.client_streaming, method.server_streaming
    kind = "_".join("stream" if is_stream else "unary" for is_stream in streams)
    rpc = getattr(channel, kind)(
        f"/{SERVICE.full_name}/{place.rpc}",
        request_serializer=request_class.SerializeToString,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    try:
        whole = iter(messages) if method.client_streaming else request
        answer = rpc(whole, **(with_key(key) if key else {}))
        answers = list(answer) if method.server_streaming else [answer]
    except grpc.RpcError as error:
        return Answer([], read(error).reason)
    results = [result for each in answers for result in getattr(each, "results", ())]
    return Answer(results or answers, "".join(result.error.reason for result in results))


def _put(message: Any, path: tuple[str, ...], text: str) -> None:
    name, *rest = path
    field = message.DESCRIPTOR.fields_by_name[name]
    repeated = isinstance(getattr(message, name), list) or hasattr(getattr(message, name), "extend")
    if rest:
        inner = getattr(message, name)
        _put(inner.add() if repeated else inner, tuple(rest), text)
        return
    value = text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
    if repeated:
        getattr(message, name).append(value)
    else:
        setattr(message, name, value)


def _set(message: Any, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if name in NEEDED and name not in message.DESCRIPTOR.fields_by_name:
            continue
        if isinstance(value, list):
            getattr(message, name).extend(value)
        else:
            setattr(message, name, value)
