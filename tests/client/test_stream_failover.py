"""Streams whose replica is killed resume at another one: nothing is lost, repeated or changed."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from bytepair_client import InvalidUtf8, TokenizerClient, Unavailable, UnknownTokenId
from support.clients import Clients
from support.hard_text import random_texts
from support.oracle import oracle
from support.serving import RunningServer, write_config
from support.tokenizer_json import framed, oracle_of, template

TEXT = "naïve 日本語 🙂🙂 삼겹살 e\u0301 don't\r\n  x " * 20
NO_TOKEN = 4_000_000_000


class Replicas:
    """Two servers at one target; each may be killed.

    Attributes:
        target: Of both.
    """

    def __init__(self, *arguments: str) -> None:
        self._stack = ExitStack()
        flags = ("--builtin-encodings", "cl100k_base", *arguments)
        self._servers = [self._stack.enter_context(RunningServer(*flags)) for _ in range(2)]
        self.target = "ipv4:" + ",".join(server.target for server in self._servers)

    def kill(self) -> None:
        """Kill the replica that has the stream."""
        server = self._used()
        self._servers.remove(server)
        os.kill(server.pid, signal.SIGKILL)

    def terminate(self) -> None:
        """Stop the replica that has the stream, without time to finish it."""
        self._used().terminate()

    def _used(self) -> RunningServer:
        deadline = monotonic() + 30
        while monotonic() < deadline:
            for server in self._servers:
                if server.metric("bytepair_open_streams"):
                    return server
        raise AssertionError("no replica has a stream")

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def replicas() -> Iterator[Replicas]:
    running = Replicas("--grace-seconds", "0.1")
    yield running
    running.close()


@pytest.fixture
def client(replicas: Replicas, clients: Clients) -> TokenizerClient:
    client = clients(replicas.target, encoding="cl100k_base")
    client.health()
    return client


def ids_of(text: str) -> list[int]:
    return oracle("cl100k_base").encode(text, disallowed_special=())


def interrupted(items: list[Any], at: int, act: Callable[[], None]) -> Iterator[Any]:
    """The items one by one; `act` is called before the one at index `at`."""
    for number, item in enumerate(items):
        if number == at:
            act()
        yield item


@pytest.mark.parametrize("how", ["kill", "terminate"])
def test_a_decoded_stream_resumes(
    replicas: Replicas, client: TokenizerClient, clients: Clients, how: str
) -> None:
    seed = random.randrange(2**32)
    print(f"{seed = }")
    rng = random.Random(seed)
    ids = ids_of("".join(random_texts(rng, oracle("cl100k_base").token_byte_values(), 6)) + TEXT)
    at = rng.randrange(1, len(ids))
    source = clients.source(interrupted(ids, at, getattr(replicas, how)))
    stream = client.decode_stream(source)
    assert "".join(stream) == oracle("cl100k_base").decode(ids)
    assert stream.last.tokens_consumed == len(ids)
    assert stream.last.finished
    assert stream.last.encoding == "cl100k_base"


@pytest.mark.parametrize("how", ["kill", "terminate"])
@pytest.mark.parametrize(
    ("stop", "found"), [("🙂🙂 삼겹", True), ("x naïve 日本語 🙂🙂 삼겹!", False)]
)
def test_a_connection_may_break_inside_a_stop_string(
    replicas: Replicas, client: TokenizerClient, clients: Clients, stop: str, found: bool, how: str
) -> None:
    text = TEXT if found else TEXT[: len(TEXT) // 20 * 2]
    ids = ids_of(text)
    at = len(ids_of(text[: text.index("🙂🙂")])) + 4  # inside a partial match of the stop string
    source = clients.source(interrupted(ids, at, getattr(replicas, how)))
    stream = client.decode_stream(source, stop=[stop])
    assert "".join(stream) == (text.partition(stop)[0] if found else text)
    assert stream.last.stop_matched == (stop if found else "")


@pytest.mark.parametrize(
    ("bad", "kind", "name", "where"),
    [
        ([NO_TOKEN], UnknownTokenId, "index", len(ids_of(TEXT * 3))),
        (ids_of("𐍈")[:1] + ids_of("x"), InvalidUtf8, "byte_offset", len(TEXT.encode()) * 3),
    ],
)
def test_positions_in_errors_are_those_of_the_whole_stream(
    replicas: Replicas,
    client: TokenizerClient,
    clients: Clients,
    bad: list[int],
    kind: type[Exception],
    name: str,
    where: int,
) -> None:
    ids = ids_of(TEXT * 3)
    assert len(ids) > 600  # so that the buffer drops some of the context
    source = clients.source(interrupted(ids + bad, len(ids) - 3, replicas.kill))
    pieces: list[str] = []
    with pytest.raises(kind) as caught:
        pieces.extend(client.decode_stream(source, errors="strict"))
    assert "".join(pieces) == TEXT * 3
    assert getattr(caught.value, name) == where
    assert str(where) in str(caught.value)


def test_bytes_and_prefill_resume(
    replicas: Replicas, client: TokenizerClient, clients: Clients
) -> None:
    ids = ids_of("𐍈" + TEXT)
    source = clients.source(interrupted(ids[1:], 50, replicas.kill))
    data = b"".join(client.decode_stream(source, as_bytes=True, prefill_ids=ids[:1]))
    assert data == oracle("cl100k_base").decode_bytes(ids[1:])


def test_an_encoded_stream_resumes(
    replicas: Replicas, client: TokenizerClient, clients: Clients
) -> None:
    pieces: list[Any] = [TEXT[start : start + 7] for start in range(0, len(TEXT), 7)]
    source = clients.source(interrupted(pieces, len(pieces) // 2, replicas.kill))
    stream = client.encode_stream(source)
    assert [token_id for ids in stream for token_id in ids] == ids_of(TEXT)
    assert stream.last.bytes_consumed == len(TEXT.encode())


@pytest.mark.slow
def test_an_encoded_stream_resumes_in_an_encoding_that_marks_the_start_of_a_text(
    clients: Clients, tmp_path: Path
) -> None:
    data = framed("spaces normalised", template("<s> $A </s>"))
    (tmp_path / "made.json").write_bytes(data)
    config = '[encodings.made]\nfile = "made.json"\n[ceiling.default]\nmade = "ALL"\n'
    replicas = Replicas("--config", write_config(tmp_path, config))
    try:
        client = clients(replicas.target, encoding="made")
        client.health()
        text = "hello world " * 50
        pieces: list[Any] = [text[start : start + 7] for start in range(0, len(text), 7)]
        source = clients.source(interrupted(pieces, len(pieces) // 2, replicas.kill))
        stream = client.encode_stream(source, add_special_tokens=True)
        ids = [token_id for some in stream for token_id in some]
    finally:
        replicas.close()
    assert ids == oracle_of(data).encode(text).ids


def test_a_count_restarts_if_its_text_can_be_read_again(
    replicas: Replicas, clients: Clients
) -> None:
    client = clients(replicas.target, encoding="cl100k_base", max_unary_bytes=1000)

    class Book:
        """More text than the buffer keeps, which can be read again."""

        def __init__(self) -> None:
            self.readings = 0

        def __iter__(self) -> Iterator[str]:
            self.readings += 1
            first = self.readings == 2  # the first one only asked whether it is an iterator
            pieces = [TEXT] * 30
            return interrupted(pieces, 25 if first else -1, replicas.kill)

    assert client.count_stream(Book()) == len(ids_of(TEXT * 30))


@pytest.mark.parametrize("read_again", [10, 40], ids=["less", "more"])
def test_a_source_that_gives_another_text_when_it_is_read_again_fails(
    replicas: Replicas, clients: Clients, read_again: int
) -> None:
    client = clients(replicas.target, encoding="cl100k_base", max_unary_bytes=1000)

    class File:
        """Like a file that another object holds: what was read does not come again."""

        def __init__(self) -> None:
            self.readings = 0

        def __iter__(self) -> Iterator[str]:
            self.readings += 1
            if self.readings == 2:  # the first one only asked whether it is an iterator
                return interrupted([TEXT] * 30, 25, replicas.kill)
            return iter(["x", *[TEXT] * read_again][:read_again])

    with pytest.raises(Unavailable, match="another text when they were read again"):
        client.count_stream(File())
