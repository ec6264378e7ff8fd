"""A call that has ended is freed at once, however it ended.

A reference cycle would keep its messages, megabytes, until a garbage collection, which a quiet
server may not run for hours.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from io import StringIO
from time import monotonic, sleep
from typing import Any

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2, tokenizer_pb2_grpc
from bytepair_server.config import loader
from bytepair_server.observability import logs
from bytepair_server.server import Server
from bytepair_server.transport.native import NativeStreamCall, NativeUnaryCall
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.failures import Failed, failure
from support.serving import START_SECONDS
from support.streaming import (
    CountRequest,
    DecodeRequest,
    EncodeRequest,
    Talk,
    answers_of,
    decode_config,
    encode_config,
)

ARGUMENTS = ["--grpc-address", "127.0.0.1:0", "--http-address", "none", "--transport", "native"]
ARGUMENTS += ["--builtin-encodings", "cl100k_base", "--work-threads", "1"]
MEGABYTE = tokenizer_pb2.EncodeRequest(encoding="cl100k_base", text="a b" * 330_000)
SMALL = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a")
UNKNOWN = "unknown"


def rejected(stub: Any) -> None:
    for text in ("a", MEGABYTE.text):
        request = tokenizer_pb2.CountRequest(encoding=UNKNOWN, text=text)
        assert failure(stub.Count, request).reason == "UNKNOWN_ENCODING"


def cancelled(stub: Any) -> None:
    """Some are being computed, some queued, some unread."""
    calls = [stub.Encode.future(MEGABYTE) for _ in range(8)]
    calls[0].result()
    for call in calls:
        call.cancel()


def cancelled_streams(stub: Any) -> None:
    for first in (decode_config(), None):
        talk = Talk(stub.DecodeStream)
        if first is not None:
            talk.say(first)
        talk.call.cancel()


def reason(outcome: tuple[list[Any], Failed | None]) -> str:
    error = outcome[1]
    return "" if error is None else error.reason


def failed_streams(stub: Any) -> None:
    assert reason(answers_of(stub.DecodeStream, [decode_config(UNKNOWN)])) == "UNKNOWN_ENCODING"
    assert (
        reason(answers_of(stub.DecodeStream, [decode_config(), DecodeRequest(ids=[1, 1 << 30])]))
        == "UNKNOWN_TOKEN_ID"
    )
    word = EncodeRequest(text="a" * (2 << 20))
    assert reason(answers_of(stub.EncodeStream, [encode_config(), word, word])) == "INPUT_TOO_LARGE"
    assert failure(stub.CountStream, iter([CountRequest(text="a")])).reason == "INVALID_OPTION"


def cancelled_watch(stub: Any) -> None:
    health: Any = health_pb2_grpc.HealthStub(stub.channel)
    watch = health.Watch(health_pb2.HealthCheckRequest())
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    watch.cancel()


@pytest.fixture
def without_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


@pytest.mark.usefixtures("without_collections")
@pytest.mark.parametrize(
    "make_calls", [rejected, cancelled, cancelled_streams, failed_streams, cancelled_watch]
)
def test_an_ended_call_is_freed_without_garbage_collection(
    make_calls: Callable[[Any], None],
) -> None:
    def calls(address: str) -> int:
        with grpc.insecure_channel(address) as channel:
            # Generated without types.
            stub: Any = tokenizer_pb2_grpc.TokenizerServiceStub(channel)  # type: ignore[no-untyped-call]
            stub.channel = channel
            make_calls(stub)
            assert stub.Count(SMALL).count == 1
            until = monotonic() + START_SECONDS
            while (alive := number_of_calls()) and monotonic() < until:
                sleep(0.02)
        return alive

    async def run() -> None:
        server = Server(loader.load(ARGUMENTS, {}), logs.configure("json", "error", StringIO()))
        await server.start()
        await server.load()
        try:
            assert await asyncio.to_thread(calls, server.grpc_address) == 0
        finally:
            await server.drain()
            await server.stop()

    asyncio.run(run())


def number_of_calls() -> int:
    return sum(isinstance(it, NativeUnaryCall | NativeStreamCall) for it in gc.get_objects())
