"""The client of the bytepair tokenizer service.

    from bytepair_client import TokenizerClient

    with TokenizerClient("localhost:50051", encoding="o200k_base") as client:
        client.count("How many tokens is this?")

`AsyncTokenizerClient` has the same methods for asyncio. Every error is a TokenizerError.
"""

import os

__version__ = "0.1.0"

# gRPC logs failed TLS handshakes to standard error, although the exceptions say what is wrong. It
# reads this variable once, when it is imported. Afterwards the program's environment is restored.
if "GRPC_VERBOSITY" in os.environ:
    import grpc
else:
    os.environ["GRPC_VERBOSITY"] = "NONE"
    import grpc  # noqa: F401

    del os.environ["GRPC_VERBOSITY"]

# isort: split
from bytepair_client import _errors
from bytepair_client._arguments import NOT_GIVEN, NotGiven, Segments, SpecialToken, Text, special
from bytepair_client._client import (
    AsyncRawResponses,
    AsyncTokenizerClient,
    RawResponses,
    TokenizerClient,
)
from bytepair_client._errors import *  # noqa: F403
from bytepair_client._operations.batches import error_of
from bytepair_client._operations.context import Chunk, Finding, Inspection
from bytepair_client._operations.describing import (
    ChatFormatInfo,
    EncodingInfo,
    TokenInfo,
    TokenPart,
)
from bytepair_client._operations.encoding import IdsWithOffsets
from bytepair_client._options import Tls
from bytepair_client._stream import AsyncStream, Stream

__all__ = [
    "NOT_GIVEN",
    "AsyncRawResponses",
    "AsyncStream",
    "AsyncTokenizerClient",
    "ChatFormatInfo",
    "Chunk",
    "EncodingInfo",
    "Finding",
    "IdsWithOffsets",
    "Inspection",
    "NotGiven",
    "RawResponses",
    "Segments",
    "SpecialToken",
    "Stream",
    "Text",
    "Tls",
    "TokenInfo",
    "TokenPart",
    "TokenizerClient",
    "__version__",
    "error_of",
    "special",
]
__all__ += _errors.__all__

# Tracebacks show the public name of each type.
for _name in __all__:
    _value = globals()[_name]
    if isinstance(_value, type) and _value.__module__.startswith("bytepair_client."):
        _value.__module__ = __name__
