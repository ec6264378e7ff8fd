"""The table of unary RPCs: how a request is parsed, and which function answers it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from bytepair.v1 import chat_pb2, tokenizer_pb2
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from bytepair_server.call import Call
from bytepair_server.rpc import wire
from bytepair_server.rpc.chat_messages import parts_of, take_chat
from bytepair_server.rpc.service import Service
from bytepair_server.rpc.wire import take_ids, take_items, take_text, take_texts

#: Computes a serialised answer from a parsed request.
Answer = Callable[[Service, Any, Call], bytes]
#: Parses a request; also returns the number of its elements (items, segments, …) that cost time
#: even if they are short. Raises like `wire.parse`.
Read = Callable[[type[Any], bytes], tuple[Any, int]]


def _message(
    parts: Callable[[Any], int], request_class: type[Message], raw: bytes
) -> tuple[Message, int]:
    """Parse the whole message by protobuf; `parts` is the number of its elements."""
    request = wire.parse(request_class, raw)
    return request, parts(request)


_plain: Final = partial(_message, lambda _: 0)
#: For answers that may take milliseconds whatever the request: they are computed on a thread.
_never_inline: Final = partial(_message, lambda _: sys.maxsize)
_COUNTS: Final = frozenset({"Count", "BatchCount"})
#: A kilobyte can cost them milliseconds.
_COSTLY: Final = frozenset(
    {
        *("Truncate", "BatchTruncate", "Split", "Inspect"),
        *("CountChat", "BatchCountChat", "EncodeChat", "FitChat"),
    }
)


@dataclass(frozen=True, slots=True)
class Rpc:
    """How one unary RPC is parsed and answered; see `Read` and `Answer`.

    Attributes:
        path: `package.Service/Method`, without a leading slash.
        is_count: Whether it only counts. Nearly all of its work is then in the engine, which a
            `CancelScope` can stop.
        is_costly: Whether even a small request may cost much, so that on the event loop it has a
            time limit.
    """

    path: str
    request_class: type[Message]
    response_class: type[Message]
    answer: Answer
    read: Callable[[bytes], tuple[Any, int]]
    is_count: bool
    is_costly: bool


def _methods(service: ServiceDescriptor, rows: Mapping[str, tuple[Answer, Read]]) -> dict[str, Rpc]:
    found = {}
    for name, (answer, read) in rows.items():
        method = service.methods_by_name[name]
        path = f"{service.full_name}/{name}"
        classes = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
        parse = partial(read, classes[0])
        found[name] = Rpc(
            path, *classes, answer, parse, is_count=name in _COUNTS, is_costly=name in _COSTLY
        )
    return found


#: Every unary RPC by its name in the proto.
METHODS: Final = _methods(
    tokenizer_pb2.DESCRIPTOR.services_by_name["TokenizerService"],
    {
        "Encode": (Service.encode, take_text),
        "Decode": (Service.decode, take_ids),
        "Count": (Service.count, take_text),
        "BatchEncode": (Service.batch_encode, take_texts),
        "BatchDecode": (Service.batch_decode, take_items),
        "BatchCount": (Service.batch_count, take_texts),
        "Truncate": (lambda service, *given: service.context.truncate(*given), _plain),
        "BatchTruncate": (
            lambda service, *given: service.context.batch_truncate(*given),
            partial(_message, lambda request: len(request.items)),
        ),
        "Split": (lambda service, *given: service.context.split(*given), _plain),
        "Inspect": (lambda service, *given: service.context.inspect(*given), _plain),
        # As JSON, the thousand special tokens of o200k_harmony take milliseconds.
        "ListEncodings": (Service.list_encodings, _never_inline),
        "GetEncoding": (Service.get_encoding, _never_inline),
        # The first call for a vocabulary reads all of it.
        "GetToken": (Service.get_token, _never_inline),
    },
) | _methods(
    chat_pb2.DESCRIPTOR.services_by_name["ChatService"],
    {
        "CountChat": (lambda service, *given: service.chat.count(*given), take_chat),
        "BatchCountChat": (
            lambda service, *given: service.chat.batch_count(*given),
            partial(_message, parts_of),
        ),
        "EncodeChat": (lambda service, *given: service.chat.encode(*given), take_chat),
        "FitChat": (lambda service, *given: service.chat.fit(*given), take_chat),
        "ListChatFormats": (lambda service, *given: service.chat.list_formats(*given), _plain),
        "GetChatFormat": (lambda service, *given: service.chat.get_format(*given), _plain),
    },
)
