"""The client of the bytepair tokenizer service.

    from bytepair_client import TokenizerClient

    with TokenizerClient("localhost:50051", encoding="o200k_base") as client:
        client.count("How many tokens is this?")

`AsyncTokenizerClient` has the same methods for asyncio. `operations` describes the arguments
that all of them take, `errors` what they raise.
"""

from bytepair_client.aio import AsyncFullResponses, AsyncTokenizerClient
from bytepair_client._async_stream import AsyncStream
from bytepair_client._client import FullResponses, TokenizerClient
from bytepair_client._errors import (
    Cancelled,
    ClientClosed,
    DeadlineExceeded,
    Draining,
    FingerprintMismatch,
    InputTooLarge,
    InternalError,
    InvalidOption,
    InvalidUtf8,
    Overloaded,
    QuotaExceeded,
    RequestRefused,
    ResourceExhausted,
    SpecialTokenInText,
    SpecialTokenNotPermitted,
    StreamIdle,
    TokenizerError,
    Unauthenticated,
    Unavailable,
    Unimplemented,
    UnknownEncoding,
    UnknownTokenId,
)
from bytepair_client._operations.common import error_of
from bytepair_client._operations.describing import EncodingInfo
from bytepair_client._operations.encoding import IdsWithOffsets
from bytepair_client._options import NOT_GIVEN, Tls
from bytepair_client._stream import Stream
from bytepair_client._text import SpecialToken, Text, special
from bytepair_client._version import __version__

__all__ = [
    "NOT_GIVEN",
    "AsyncFullResponses",
    "AsyncStream",
    "AsyncTokenizerClient",
    "Cancelled",
    "ClientClosed",
    "DeadlineExceeded",
    "Draining",
    "EncodingInfo",
    "FingerprintMismatch",
    "FullResponses",
    "IdsWithOffsets",
    "InputTooLarge",
    "InternalError",
    "InvalidOption",
    "InvalidUtf8",
    "Overloaded",
    "QuotaExceeded",
    "RequestRefused",
    "ResourceExhausted",
    "SpecialToken",
    "SpecialTokenInText",
    "SpecialTokenNotPermitted",
    "Stream",
    "StreamIdle",
    "Text",
    "Tls",
    "TokenizerClient",
    "TokenizerError",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "UnknownEncoding",
    "UnknownTokenId",
    "__version__",
    "error_of",
    "special",
]
