"""The operations of the service, one function each: from arguments to a call ready to be sent.

Everything is decided here once, for both clients, for plain values and for whole messages: the
names and defaults of arguments, how they go into a request, and the plain value of an answer. The
first argument, `defaults`, is the client's; users do not pass it.
"""

from bytepair_client._operations.chats import count_chat, count_chat_batch, encode_chat, fit_chat
from bytepair_client._operations.context import (
    inspect,
    split,
    split_stream,
    truncate,
    truncate_batch,
)
from bytepair_client._operations.decoding import decode, decode_batch, decode_bytes
from bytepair_client._operations.describing import (
    get_chat_format,
    get_encoding,
    get_token,
    health,
    list_chat_formats,
    list_encodings,
)
from bytepair_client._operations.encoding import (
    count,
    count_batch,
    encode,
    encode_batch,
    encode_with_offsets,
)
from bytepair_client._operations.streaming import count_stream, decode_stream, encode_stream

__all__ = [
    "count",
    "count_batch",
    "count_chat",
    "count_chat_batch",
    "count_stream",
    "decode",
    "decode_batch",
    "decode_bytes",
    "decode_stream",
    "encode",
    "encode_batch",
    "encode_chat",
    "encode_stream",
    "encode_with_offsets",
    "fit_chat",
    "get_chat_format",
    "get_encoding",
    "get_token",
    "health",
    "inspect",
    "list_chat_formats",
    "list_encodings",
    "split",
    "split_stream",
    "truncate",
    "truncate_batch",
]
