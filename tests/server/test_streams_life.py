"""Open streams: idle, drained, rejected, abandoned, unread, and many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from io import StringIO
from itertools import count, takewhile
from time import sleep
from typing import Any

import bytepair_engine
import grpc
import pytest
from bytepair.v1 import stream_pb2, tokenizer_pb2
from bytepair_server.config import loader
from bytepair_server.observability import logs
from bytepair_server.server import Server
from bytepair_server.streaming.handler import SESSIONS
from conftest import Serve
from support import http2
from support.failures import Failed, read
from support.serving import RunningServer
from support.slow import ENDLESS, SLOW_FLAGS, WITHOUT_CORE
from support.streaming import (
    CountRequest,
    DecodeRequest,
    EncodeRequest,
    Talk,
    count_config,
    decode_config,
    encode_config,
)

Code = grpc.StatusCode
DECODE_STREAM = "/bytepair.v1.TokenizerService/DecodeStream"
#: "Hello", " ST" and "OP".
HELLO, ST, OP = 9906, 4015, 3143


def wait_for_streams(server: RunningServer, number: int) -> None:
    while server.metric("bytepair_open_streams") != number:
        sleep(0.005)


def memory(server: RunningServer) -> float:
    """Return the resident memory in bytes."""
    return server.metric("process_resident_memory_bytes")


def test_an_idle_stream_ends_after_the_text_that_is_certain(serve: Serve) -> None:
    server = serve("--stream-idle-seconds", "2")
    first = decode_config(stop=["STOP"])
    first.ids.extend([HELLO, ST])
    answers, failed = Talk(server.stub.DecodeStream).last(first)
    assert [answer.text for answer in answers] == ["Hello ", "ST"]
    assert failed is not None
    assert (failed.code, failed.reason) == (Code.ABORTED, "STREAM_IDLE")
    assert failed.metadata == {"seconds": "2"}
    assert failed.metadata["seconds"] in failed.message
    assert server.metric("bytepair_errors_total", rpc="DecodeStream", reason="STREAM_IDLE") == 1


def test_a_message_without_content_keeps_a_stream_open(serve: Serve) -> None:
    server = serve("--stream-idle-seconds", "4")
    talk, idle = Talk(server.stub.DecodeStream), Talk(server.stub.DecodeStream)
    for each in (talk, idle):
        each.say(decode_config())
    while server.metric("bytepair_open_streams") == 2:
        sleep(0.1)
        assert talk.say(DecodeRequest()).tokens_consumed == 0
    assert idle.rest()[1] is not None
    assert talk.say(DecodeRequest(ids=[HELLO], flush=True)).finished
    assert talk.rest() == ([], None)


def test_streams_stay_open_without_an_idle_timeout(serve: Serve) -> None:
    server = serve("--stream-idle-seconds", "0")
    talk = Talk(server.stub.DecodeStream)
    talk.say(decode_config())
    sleep(0.5)
    assert talk.say(DecodeRequest(ids=[HELLO])).text == "Hello"
    assert talk.close()[1] is None


def test_a_stream_is_not_idle_while_the_server_computes_its_answer(serve: Serve) -> None:
    server = serve(*SLOW_FLAGS, "--stream-idle-seconds", "1", environment=WITHOUT_CORE)
    messages = iter([count_config(), CountRequest(text=ENDLESS)])
    computing = server.stub.CountStream.future(messages)
    wait_for_streams(server, 1)
    for _ in range(2):  # the second begins after the last message of `computing`
        failed = Talk(server.stub.DecodeStream).last(decode_config())[1]
        assert failed is not None
        assert failed.reason == "STREAM_IDLE"
    assert not computing.done()
    computing.cancel()
    wait_for_streams(server, 0)


def test_a_stream_within_the_grace_time_is_finished_before_the_server_stops(serve: Serve) -> None:
    server = serve("--grace-seconds", "0", "--stream-grace-seconds", "60")
    talk = Talk(server.stub.DecodeStream)
    talk.say(decode_config())
    server.terminate()
    server.wait_for_log("draining", open_streams=1)
    late = Talk(server.stub.EncodeStream).rest()[1]
    assert late is not None
    assert late.code is Code.UNAVAILABLE
    assert talk.say(DecodeRequest(ids=[HELLO])).text == "Hello"
    answers, failed = talk.close()
    assert (answers[-1].finished, failed) == (True, None)
    assert server.wait() == 0


def test_a_stream_that_exceeds_the_grace_time_ends_after_the_text_that_is_certain(
    serve: Serve,
) -> None:
    server = serve("--stream-grace-seconds", "0.2")
    decode, encode = Talk(server.stub.DecodeStream), Talk(server.stub.EncodeStream)
    decode.say(decode_config(stop=["STOP"]))
    assert decode.say(DecodeRequest(ids=[HELLO, ST])).text == "Hello "
    assert list(encode.say(encode_config()).ids) == []
    assert list(encode.say(EncodeRequest(text="Hello ST")).ids) == [HELLO]
    server.terminate()
    for talk, texts in ((decode, ["ST"]), (encode, [])):
        answers, failed = talk.rest()
        assert [answer.text for answer in answers] == texts
        assert failed is not None
        assert (failed.code, failed.reason) == (Code.UNAVAILABLE, "DRAINING")
    assert server.wait() == 0
    assert (
        server.wait_for_log("ended calls that were still running after the grace time")["streams"]
        == 2
    )


@pytest.mark.slow
@pytest.mark.parametrize("in_time", [True, False])
def test_a_stream_before_the_encodings_are_loaded_waits_for_them(in_time: bool) -> None:
    """It is rejected if the server drains first."""
    arguments = ["--grpc-address", "127.0.0.1:0", "--http-address", "none"]
    arguments += ["--builtin-encodings", "cl100k_base", "--allow-reference-backend"]
    arguments += ["--stream-idle-seconds", "2"]  # it is not idle meanwhile
    first = decode_config()
    first.ids.extend([HELLO])

    async def run() -> Failed | None:
        server = Server(loader.load(arguments, {}), logs.configure("json", "error", StringIO()))
        await server.start()
        try:
            async with grpc.aio.insecure_channel(server.grpc_address) as channel:
                method: Any = channel.stream_stream(DECODE_STREAM)
                call = method()
                await call.write(first.SerializeToString())
                await call.wait_for_connection()
                await asyncio.sleep(2.2)
                await (server.load() if in_time else server.drain())
                await call.done_writing()
                answers = [answer async for answer in call]
                text = [stream_pb2.DecodeStreamResponse.FromString(each).text for each in answers]
                assert text == ["Hello", ""]
        except grpc.RpcError as error:
            return read(error)
        finally:
            await server.stop()
        return None

    failed = asyncio.run(run())
    assert (failed and failed.reason) == (None if in_time else "DRAINING")


def test_a_stream_beyond_the_limit_is_rejected(serve: Serve) -> None:
    """Idle streams use no capacity of unary calls."""
    server = serve("--max-open-streams", "2", "--max-in-flight", "1")
    talks = [Talk(server.stub.DecodeStream) for _ in range(2)]
    for talk in talks:
        talk.say(decode_config())
    assert server.metric("bytepair_open_streams") == 2
    assert server.metric("bytepair_in_flight") == 0
    assert server.stub.Count(tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a")).count
    failed = Talk(server.stub.DecodeStream).rest()[1]
    assert failed is not None
    assert (failed.code, failed.reason) == (Code.RESOURCE_EXHAUSTED, "OVERLOADED")
    assert failed.retry_seconds == 0.25
    assert failed.metadata == {"setting": "max_open_streams"}
    assert server.metric("bytepair_errors_total", rpc="DecodeStream", reason="OVERLOADED") == 1
    assert talks[0].close()[1] is None
    wait_for_streams(server, 1)
    third = Talk(server.stub.DecodeStream)
    assert third.say(decode_config()).encoding == "cl100k_base"
    assert third.close()[1] is talks[1].close()[1] is None


def test_the_content_held_by_all_streams_is_bounded(serve: Serve) -> None:
    server = serve("--max-streams-bytes", str(1 << 20))
    first, second = Talk(server.stub.EncodeStream), Talk(server.stub.EncodeStream)
    endless = EncodeRequest(text="a" * 600_000)
    for talk in (first, second):
        talk.say(encode_config())
    assert first.say(endless).pending_bytes == 600_000
    failed = second.last(endless)[1]
    assert failed is not None
    assert (failed.code, failed.reason) == (Code.RESOURCE_EXHAUSTED, "OVERLOADED")
    assert failed.metadata == {"setting": "max_streams_bytes"}
    answers, failed = first.close()
    assert (answers[-1].bytes_consumed, failed) == (600_000, None)
    third = Talk(server.stub.EncodeStream)
    third.say(encode_config())
    assert third.say(endless).pending_bytes == 600_000
    third.cancel()
    wait_for_streams(server, 0)


GIVEN_UP: dict[str, tuple[str, Any]] = {
    "decode": ("DecodeStream", decode_config()),
    "encode": ("EncodeStream", encode_config()),
    "encode, within a character": ("EncodeStream", EncodeRequest(data=b"\xc3")),
    "count": ("CountStream", count_config()),
}
GIVEN_UP["encode, within a character"][1].MergeFrom(encode_config())


@pytest.mark.parametrize("case", GIVEN_UP)
def test_an_abandoned_stream_is_counted_as_cancelled(serve: Serve, case: str) -> None:
    """It is not counted as half-closed, which looks the same to gRPC at first."""
    server = serve()
    rpc, first = GIVEN_UP[case]
    sent: list[Any] = []

    def messages() -> Iterator[Any]:
        yield first
        while not sent:
            sleep(0.005)

    method = getattr(server.stub, rpc)
    call = method.future(messages()) if rpc == "CountStream" else method(messages())
    wait_for_streams(server, 1)
    call.cancel()
    wait_for_streams(server, 0)
    sent.append(None)
    assert server.metric("bytepair_requests_total", rpc=rpc, code="CANCELLED") == 1


@pytest.mark.parametrize(
    ("rest", "code"), [(b"", "CANCELLED"), (b"no size\r\n", "INVALID_ARGUMENT")]
)
def test_a_stream_by_http_1_that_ends_within_its_request_is_counted_once(
    serve: Serve, rest: bytes, code: str
) -> None:
    """It is cancelled if its caller has gone, and invalid if a chunk is."""
    server = serve("--transport", "native")
    first = http2.message(count_config().SerializeToString())
    for ended, kind in enumerate(("connect", "grpc-web", "grpc"), 1):
        head = f"POST {http2.SERVICE}CountStream HTTP/1.1\r\nhost: a\r\n"
        head += f"transfer-encoding: chunked\r\ncontent-type: application/{kind}+proto\r\n\r\n"
        head += f"{len(first):x}\r\n"
        with http2.connection(server.target, hello=head.encode() + first + b"\r\n") as link:
            wait_for_streams(server, 1)
            link.sendall(rest)
            if rest:
                wait_for_streams(server, 0)
        wait_for_streams(server, 0)
        counted = server.metric("bytepair_requests_total", rpc="CountStream", code=code)
        assert counted == ended
    assert server.metric("bytepair_requests_total", rpc="CountStream") == ended


def test_flow_control_stops_a_client_that_does_not_read(serve: Serve) -> None:
    """The waiting content in the server is bounded. gRPC decides when it stops the client: after
    some 700 messages, or several times that if its estimate of the network is wrong."""
    server = serve("--stream-idle-seconds", "60")
    ids = [HELLO] * 4096
    progress, last = [0], [20_000]

    def messages() -> Iterator[DecodeRequest]:
        yield decode_config()
        for progress[0] in takewhile(lambda sent: sent <= last[0], count()):
            yield DecodeRequest(ids=ids)

    call = server.stub.DecodeStream(messages())
    assert next(call).encoding == "cl100k_base"
    before, reached = memory(server), -1
    while progress[0] != reached:
        reached = progress[0]
        sleep(1.5)
        quick = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="a")
        assert server.stub.Count(quick).count == 1
    assert reached < last[0]
    assert memory(server) - before < 64 << 20
    last[0] = reached + 10
    answers = list(call)
    sent = progress[0] + 1
    assert sum(len(answer.text) for answer in answers) == sent * len("Hello" * 4096)
    assert answers[-1].tokens_consumed == sent * 4096
    assert answers[-1].finished


def send_and_never_read(server: RunningServer) -> Any:
    """A call whose client sends until flow control stops it, and reads nothing."""
    ended: list[None] = []

    def messages() -> Iterator[DecodeRequest]:
        yield decode_config()
        while not ended:
            yield DecodeRequest(ids=[HELLO] * 4096)

    call = server.stub.DecodeStream(messages())
    call.add_callback(lambda: ended.append(None))
    return call


def test_a_stream_that_is_never_read_counts_as_open_for_the_idle_time_after_its_end(
    serve: Serve,
) -> None:
    server = serve("--stream-idle-seconds", "2")
    call = send_and_never_read(server)
    page = ""
    while 'reason="STREAM_IDLE"' not in page:
        page = server.get("/metrics")[1]
    assert "bytepair_open_streams 1.0" in page
    wait_for_streams(server, 0)
    call.cancel()


def test_a_client_that_never_reads_does_not_delay_the_stop(serve: Serve) -> None:
    server = serve("--grace-seconds", "3600", "--stream-grace-seconds", "0.2")
    call = send_and_never_read(server)
    wait_for_streams(server, 1)
    sleep(0.5)
    server.terminate()
    assert server.wait() == 0
    assert "Traceback" not in server.raw_log
    assert server.wait_for_log("call", rpc="DecodeStream")["reason"] == "DRAINING"
    call.cancel()


def test_hundreds_of_streams_can_be_open_at_once(serve: Serve) -> None:
    number, rounds = 500, 4
    server = serve()
    encoding = bytepair_engine.get_encoding("cl100k_base")
    texts = [f"stream {n}: naïve 🙂🙂 日本語" for n in range(number)]

    async def talk(call: Any, ids: list[int], meet: asyncio.Barrier) -> str:
        text = ""
        await call.write(decode_config())
        for start in range(rounds):
            await call.write(DecodeRequest(ids=ids[start::rounds]))
        await meet.wait()
        await call.done_writing()
        async for answer in call:
            text += answer.text
        return text

    async def run() -> list[str]:
        meet = asyncio.Barrier(number)
        async with grpc.aio.insecure_channel(server.target) as channel:
            method = channel.stream_stream(
                DECODE_STREAM,
                request_serializer=DecodeRequest.SerializeToString,
                response_deserializer=stream_pb2.DecodeStreamResponse.FromString,
            )
            # The ids in the order of their arrival are those of the text.
            parts = [in_rounds(encoding.encode(text), rounds) for text in texts]
            return await asyncio.gather(*(talk(method(), ids, meet) for ids in parts))

    assert asyncio.run(run()) == texts
    assert server.metric("bytepair_requests_total", rpc="DecodeStream", code="OK") == number
    total = sum(len(encoding.encode(text)) for text in texts)
    assert server.metric("bytepair_tokens_total", rpc="DecodeStream") == total
    wait_for_streams(server, 0)


def in_rounds(ids: list[int], rounds: int) -> list[int]:
    """Return a list whose slices [n::rounds], concatenated, are `ids`."""
    dealt = [0] * len(ids)
    places = [place for start in range(rounds) for place in range(start, len(ids), rounds)]
    for place, token_id in zip(places, ids, strict=True):
        dealt[place] = token_id
    return dealt


def test_every_streaming_rpc_is_served() -> None:
    declared = tokenizer_pb2.DESCRIPTOR.services_by_name["TokenizerService"].methods
    assert SESSIONS.keys() == {rpc.name for rpc in declared if rpc.client_streaming}
