"""Retries, balancing, deadlines, metadata and closing of the client."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_client import (
    NOT_GIVEN,
    AsyncTokenizerClient,
    Cancelled,
    ClientClosed,
    DeadlineExceeded,
    InternalError,
    InvalidOption,
    ResourceExhausted,
    Tls,
    TokenizerClient,
    Unavailable,
    __version__,
)
from bytepair_client._options import DEFAULT_TIMEOUT_S
from conftest import Serve
from support.clients import Clients
from support.scripted import Answer, HeldAnswer, ScriptedServer, fail, ok, refusing
from support.serving import START_SECONDS
from support.streaming import Talk, decode_config

REFUSED = fail(grpc.StatusCode.UNAVAILABLE, "not now")
#: https://github.com/grpc/grpc/issues/41785
STOPPED = fail(grpc.StatusCode.CANCELLED)


@pytest.mark.slow
@pytest.mark.parametrize("failure", [REFUSED, STOPPED])
def test_unavailable_and_cancelled_calls_are_retried(clients: Clients, failure: Answer) -> None:
    with ScriptedServer(failure, failure, ok) as server:
        assert clients(server.target, encoding="e").count("text") == 7
    assert server.calls == ["/bytepair.v1.TokenizerService/Count"] * 3


@pytest.mark.slow
def test_the_number_of_attempts_is_limited(clients: Clients) -> None:
    with ScriptedServer(REFUSED) as server:
        with pytest.raises(Unavailable, match="not now"):
            clients(server.target, encoding="e").count("text")
        assert len(server.calls) == 6
        with pytest.raises(Unavailable):
            clients(server.target, encoding="e", max_attempts=1).count("text")
        assert len(server.calls) == 7


@pytest.mark.parametrize("status", [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INTERNAL])
def test_other_statuses_are_not_retried(clients: Clients, status: grpc.StatusCode) -> None:
    with ScriptedServer(fail(status), ok) as server:
        with pytest.raises((ResourceExhausted, InternalError)):
            clients(server.target, encoding="e").count("text")
        assert len(server.calls) == 1


def test_calls_are_balanced_over_all_addresses(clients: Clients) -> None:
    with ScriptedServer() as one, ScriptedServer() as two:
        client = clients(f"ipv4:{one.target},{two.target}", encoding="e")
        while not (one.calls and two.calls):  # until both are connected
            client.count("text")
        before = len(one.calls), len(two.calls)
        for _ in range(20):
            client.count("text")
        assert (len(one.calls) - before[0], len(two.calls) - before[1]) == (10, 10)


def test_an_address_without_a_server_is_skipped(clients: Clients) -> None:
    with ScriptedServer() as one:
        with ScriptedServer() as two:
            client = clients(f"ipv4:{one.target},{two.target}", encoding="e")
            while not (one.calls and two.calls):
                client.count("text")
        for _ in range(10):
            assert client.count("text") == 7


@pytest.mark.slow
def test_no_server_at_the_target(clients: Clients) -> None:
    with refusing() as target:
        client = clients(target, encoding="e")
        with pytest.raises(Unavailable, match=f"no answer from {target}") as caught:
            client.count("text")
    assert isinstance(caught.value, ConnectionError)
    assert caught.value.code == "UNAVAILABLE"
    assert caught.value.reason is None


def test_a_new_client_tries_at_once_after_another_failed(
    clients: Clients, socket_folder: Path, serve: Serve
) -> None:
    socket = f"unix:{socket_folder}/s"
    first = clients(socket, encoding="cl100k_base", max_attempts=1)
    with pytest.raises(Unavailable, match="No such file"):
        first.count("text")
    serve("--grpc-address", socket)
    assert clients(socket, encoding="cl100k_base", max_attempts=1).count("text") == 1


def test_a_name_that_no_host_can_have(clients: Clients) -> None:
    for target in ("no..host:1", f"{'a' * 64}.invalid:1"):
        with pytest.raises(Unavailable, match=f"no answer from {target}"):
            clients(target, encoding="e", max_attempts=1).count("text")


def test_a_name_that_no_host_has(clients: Clients) -> None:
    with pytest.raises(Unavailable, match=r"host\.invalid:1: the name of the host cannot be "):
        clients("host.invalid:1", encoding="e", max_attempts=1).count("text")


def test_a_server_of_another_protocol(clients: Clients) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever).start()
        target = f"127.0.0.1:{server.server_port}"
        client = clients(target, encoding="e", max_attempts=1)
        message = f"^something that is not a gRPC server answers at {target}$"
        try:
            with pytest.raises(Unavailable, match=message):
                client.count("text")
            with pytest.raises(Unavailable, match=message):
                next(client.decode_stream([1]))
        finally:
            server.shutdown()


@pytest.mark.parametrize("on_the_call", [True, False])
def test_a_deadline_ends_the_wait(clients: Clients, on_the_call: bool) -> None:
    with ScriptedServer(HeldAnswer()) as server:
        client = clients(server.target, encoding="e", timeout=60 if on_the_call else 0.1)
        with pytest.raises(DeadlineExceeded, match=r"within 0\.1 s") as caught:
            client.count("text", timeout=0.1 if on_the_call else NOT_GIVEN)
    assert isinstance(caught.value, TimeoutError)


def test_calls_have_a_deadline_by_default(clients: Clients) -> None:
    left: list[float] = []  # gRPC says "forever" by a very large number

    def answer(context: grpc.ServicerContext) -> bytes:
        left.append(context.time_remaining() or 0)
        return ok(context)

    with ScriptedServer(answer) as server:
        client = clients(server.target, encoding="e")
        client.count("text")
        client.count("text", timeout=None)
        clients(server.target, encoding="e", timeout=None).count("text")
    assert 0 < left[0] < 1.1 * DEFAULT_TIMEOUT_S  # gRPC sends it rounded
    assert min(left[1:]) > 1e9


def test_a_list_of_addresses_and_a_unix_socket_are_served(
    socket_folder: Path, serve: Serve
) -> None:
    """They give no host name for the authority, which the server's transport requires."""
    server = serve("--transport", "native")
    with TokenizerClient(f"ipv4:{server.target},{server.target}") as client:
        assert client.count("hello world", encoding="cl100k_base") == 2
    socket = f"unix:{socket_folder}/s"
    serve("--transport", "native", "--grpc-address", socket)
    with TokenizerClient(socket) as client:
        assert client.count("hello world", encoding="cl100k_base") == 2


def all_are_answered(client: TokenizerClient, calls: int) -> bool:
    try:
        return {client.count("a") for _ in range(calls)} == {1}
    except Unavailable:
        return False


@pytest.mark.slow
def test_a_client_leaves_a_server_that_drains(serve: Serve, clients: Clients) -> None:
    """It refuses connections: otherwise the client would come back as long as it drains."""
    flags = ("--workers", "2", "--stream-grace-seconds", "600")
    first, second = serve(*flags), serve(*flags)
    target = f"ipv4:{first.target},{second.target}"
    client = clients(target, encoding="cl100k_base", max_attempts=1)
    talk = Talk(first.stub.DecodeStream)
    talk.say(decode_config())
    first.terminate()
    first.wait_for_log("draining", open_streams=1)
    until = monotonic() + START_SECONDS
    while not all_are_answered(client, 20):  # until the client has read GOAWAY
        assert monotonic() < until
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(client.count, ["a"] * 4000)) == {1}
    assert talk.close()[1] is None


def test_metadata_are_sent_with_every_call(clients: Clients) -> None:
    with ScriptedServer() as server:
        clients(
            server.target,
            encoding="e",
            api_key="secret-key",
            metadata={"x-team": "search", "x-team-bin": b"\xff"},
            user_agent="shop/2",
        ).count("text")
        clients(server.target, encoding="e", metadata=[("x-a", "1"), ("x-b", "2")]).count("text")
    first, second = server.metadata
    assert first["authorization"] == "Bearer secret-key"
    assert (first["x-team"], first["x-team-bin"]) == ("search", b"\xff")
    assert str(first["user-agent"]).startswith(f"shop/2 bytepair-client/{__version__} python/")
    assert "authorization" not in second
    assert (second["x-a"], second["x-b"]) == ("1", "2")


@pytest.mark.parametrize("key", ["", "two words", "line\n", "ключ"])
def test_an_invalid_key_is_rejected_without_showing_it(clients: Clients, key: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        clients(api_key=key)
    assert caught.value.field == "api_key"
    assert not key or key not in str(caught.value)
    assert ("; strip the line end, such as by .strip()" in str(caught.value)) == (key == "line\n")


def test_the_key_is_not_shown(clients: Clients) -> None:
    assert "secret" not in repr(clients(api_key="secret"))
    assert "secret" not in repr(Tls(client_key=b"secret"))


def test_a_response_may_be_too_large(clients: Clients) -> None:
    def long(context: grpc.ServicerContext) -> bytes:
        return tokenizer_pb2.EncodeResponse(ids=range(2000)).SerializeToString()

    with ScriptedServer(long) as server:
        assert len(clients(server.target, encoding="e").encode("text")) == 2000
        with pytest.raises(ResourceExhausted):
            clients(server.target, encoding="e", max_response_bytes=1000).encode("text")


@pytest.mark.parametrize("name", ["X-Team", "x team", "", "x\n"])
def test_metadata_that_cannot_be_sent_are_rejected(clients: Clients, name: str) -> None:
    with pytest.raises(InvalidOption, match="may only have a-z"):
        clients(metadata={name: "1"})
    with pytest.raises(InvalidOption, match="the value of 'x-team' is not printable") as caught:
        clients(metadata={"x-team": "secret\n"})
    for value in (5, "secret", bytearray(b"secret")):
        with pytest.raises(InvalidOption, match="the value of 'x-team-bin' is not bytes"):
            clients(metadata={"x-team-bin": value})
    assert caught.value.field == "metadata"
    assert "secret" not in str(caught.value)


def test_closing_ends_running_calls_and_rejects_new_ones(clients: Clients) -> None:
    held = HeldAnswer()
    with ScriptedServer(held) as server, ThreadPoolExecutor(1) as thread:
        client = clients(server.target, encoding="e")
        running = thread.submit(client.count, "text")
        held.arrived.wait()
        client.close()
        client.close()
        with pytest.raises(Cancelled, match=server.target):
            running.result()
        with pytest.raises(ClientClosed):
            client.count("text")


def test_a_client_that_was_never_used_can_be_closed(clients: Clients) -> None:
    client = clients(encoding="e")
    client.close()
    with pytest.raises(ClientClosed):
        client.count("text")


def test_many_threads_may_share_a_client() -> None:
    with (
        ScriptedServer() as server,
        TokenizerClient(server.target, encoding="e") as client,
        ThreadPoolExecutor(16) as threads,
    ):
        assert list(threads.map(client.count, ["text"] * 200)) == [7] * 200


def test_many_tasks_may_share_a_client() -> None:
    async def main(target: str) -> list[int]:
        async with AsyncTokenizerClient(target, encoding="e") as client:
            return await asyncio.gather(*[client.count("text") for _ in range(200)])

    with ScriptedServer() as server:
        assert asyncio.run(main(server.target)) == [7] * 200


def test_an_async_client_may_be_made_before_its_loop() -> None:
    with ScriptedServer() as server:
        client = AsyncTokenizerClient(server.target, encoding="e")

        async def main() -> int:
            async with client:
                return await client.count("text")

        assert asyncio.run(main()) == 7


def test_an_async_client_belongs_to_the_loop_of_its_first_call() -> None:
    with ScriptedServer() as server:
        client = AsyncTokenizerClient(server.target, encoding="e")
        assert asyncio.run(client.count("text")) == 7
        for call in (client.count("text"), anext(client.decode_stream([1]))):
            with pytest.raises(RuntimeError, match=r"^AsyncTokenizerClient\(.* another event loop"):
                asyncio.run(call)


def test_cancelling_a_task_cancels_its_call() -> None:
    held = HeldAnswer()

    async def main(target: str) -> None:
        async with AsyncTokenizerClient(target, encoding="e") as client:
            task = asyncio.create_task(client.count("text"))
            await asyncio.to_thread(held.arrived.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(held.over.wait)  # the server learns of it

    with ScriptedServer(held) as server:
        asyncio.run(main(server.target))
