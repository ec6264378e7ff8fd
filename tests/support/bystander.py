"""A well-behaved client on a separate connection, while others misbehave."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import grpc
from bytepair.v1 import tokenizer_pb2, tokenizer_pb2_grpc

_COUNT: Final = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="hello world")
#: gRPC sometimes ends a call with CANCELLED if more calls arrive than the server has announced.
#: Such a call is retried, as the project's client does; no other status is.
_RETRIES: Final = json.dumps(
    {
        "methodConfig": [
            {
                "name": [{}],
                "retryPolicy": {
                    "maxAttempts": 5,
                    "initialBackoff": "0.1s",
                    "maxBackoff": "1s",
                    "backoffMultiplier": 2,
                    "retryableStatusCodes": ["CANCELLED"],
                },
            }
        ]
    }
)


@contextmanager
def bystander(target: str) -> Iterator[Callable[[], None]]:
    """Connect, and yield a function that makes a call and fails unless it counts two tokens."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.service_config", _RETRIES)]
    with grpc.insecure_channel(target, options=options) as channel:
        stub = tokenizer_pb2_grpc.TokenizerServiceStub(channel)  # type: ignore[no-untyped-call]

        def count() -> None:
            assert stub.Count(_COUNT, timeout=60).count == 2

        yield count
