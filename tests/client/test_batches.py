"""Batches of any size: the results of single calls, in order, in requests within the limits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_client import (
    BudgetTooSmall,
    DeadlineExceeded,
    InputTooLarge,
    InvalidOption,
    InvalidUtf8,
    Segments,
    SpecialTokenInText,
    TokenizerClient,
    Unavailable,
    UnknownEncoding,
    UnknownTokenId,
    error_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from support.clients import Clients
from support.oracle import oracle
from support.scripted import ScriptedServer, fail
from support.serving import RunningServer

END = "<|endoftext|>"
NO_TOKEN = 4_000_000_000
LARGE = "naïve 日本語 🙂 and so on. " * 60_000  # too large for one request


def ids_of(text: str) -> list[int]:
    return oracle("cl100k_base").encode(text, disallowed_special=())


@pytest.fixture
def client(server: RunningServer, clients: Clients) -> TokenizerClient:
    return clients(server.target, encoding="cl100k_base")


@pytest.fixture(scope="module")
def small() -> Iterator[RunningServer]:
    """A server with small limits."""
    flags = ("--max-input-bytes", "2000", "--max-batch-items", "7", "--max-ids", "131328")
    with RunningServer("--builtin-encodings", "cl100k_base", *flags) as running:
        yield running


def test_a_budget_too_small_for_an_item_that_is_sent_alone(
    server: RunningServer, clients: Clients
) -> None:
    client = clients(server.target, encoding="cl100k_base", max_unary_bytes=1000)
    texts = ["", "word " * 1000]
    results = client.truncate_batch(texts, 0, marker=" …", return_exceptions=True)
    assert results[0] == ""
    assert isinstance(results[1], BudgetTooSmall)
    assert results[1].item == 1


@pytest.mark.slow
def test_more_items_than_a_request_holds(client: TokenizerClient) -> None:
    texts = [f"line {number}: {'word ' * (number % 50)}" for number in range(5000)]
    expected = [ids_of(text) for text in texts]
    done: list[int] = []
    assert client.encode_batch(iter(texts), progress=done.append) == expected
    assert done == sorted(done)
    assert (len(done), done[-1]) == (5, 5000)
    assert client.count_batch(texts) == [len(ids) for ids in expected]
    assert client.decode_batch(expected) == texts


def test_a_batch_without_items(client: TokenizerClient) -> None:
    for call in (client.encode_batch, client.count_batch, client.decode_batch):
        assert call([]) == []


@pytest.mark.slow
def test_items_larger_than_a_request_holds(client: TokenizerClient) -> None:
    ids = ids_of(LARGE)
    assert client.encode_batch(["a", LARGE, "", LARGE]) == [ids_of("a"), ids, [], ids]
    assert client.count_batch([LARGE, "a"], limit=10) == [11, 1]
    assert client.decode_batch([ids, ids[:3]]) == [LARGE, oracle("cl100k_base").decode(ids[:3])]
    answer = client.with_raw_response.encode_batch(["a", LARGE])
    assert [list(result.ids) for result in answer.results] == [ids_of("a"), ids]
    assert (answer.encoding, answer.fingerprint) == (
        "cl100k_base",
        client.get_encoding().fingerprint,
    )


@pytest.mark.slow
def test_a_server_with_smaller_limits(small: RunningServer, clients: Clients) -> None:
    client = clients(small.target, encoding="cl100k_base")
    texts = ["a text of some words " * (number % 200) for number in range(60)]
    expected = [ids_of(text) for text in texts]
    assert client.encode_batch(texts) == expected
    assert client.count_batch(texts) == [len(ids) for ids in expected]
    assert client.decode_batch(expected) == texts
    assert client.decode_batch([expected[-1] * 100] * 9) == [texts[-1] * 100] * 9
    one = client.encode_batch([Segments(["a " * 2000]), "a"], return_exceptions=True)
    assert isinstance(one[0], InputTooLarge)
    assert (one[0].item, one[1]) == (0, ids_of("a"))


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(st.text(max_size=30) | st.just("word " * 500) | st.just(END), max_size=40))
def test_a_batch_gives_what_single_calls_give(small: RunningServer, texts: list[str]) -> None:
    with TokenizerClient(small.target, encoding="cl100k_base", max_unary_bytes=700) as client:
        expected = [ids_of(text) for text in texts]
        assert client.encode_batch(texts, disallowed_special=()) == expected
        assert client.count_batch(texts) == [len(ids) for ids in expected]
        assert client.decode_batch(expected) == texts


def test_a_response_larger_than_the_client_accepts(server: RunningServer, clients: Clients) -> None:
    client = clients(server.target, encoding="cl100k_base", max_response_bytes=5000)
    texts = [f"{number} words " * 20 for number in range(100)]
    expected = [ids_of(text) for text in texts]
    assert client.encode_batch(texts) == expected
    assert client.decode_batch(expected) == texts


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 1500, 4999])
def test_the_error_of_an_item_names_it(client: TokenizerClient, at: int) -> None:
    texts = ["a"] * 5000
    texts[at] = f"x{END}"
    with pytest.raises(SpecialTokenInText, match=f"^item {at}: ") as caught:
        client.encode_batch(texts)
    assert (caught.value.item, caught.value.byte_offset) == (at, 1)
    values = client.encode_batch(texts, return_exceptions=True)
    assert [index for index, value in enumerate(values) if isinstance(value, Exception)] == [at]
    results = client.with_raw_response.encode_batch(texts).results
    errors = [error_of(result, index) for index, result in enumerate(results)]
    assert [error.item for error in errors if error is not None] == [at]


@pytest.mark.slow
def test_the_error_of_a_large_item_names_it(client: TokenizerClient) -> None:
    texts = ["a", f"{LARGE}{END}", "a"]
    with pytest.raises(SpecialTokenInText) as caught:
        client.encode_batch(texts)
    assert (caught.value.item, caught.value.byte_offset) == (1, len(LARGE.encode()))
    values = client.encode_batch(texts, return_exceptions=True)
    assert isinstance(values[1], SpecialTokenInText)
    assert values[::2] == [ids_of("a")] * 2
    result = client.with_raw_response.encode_batch(texts).results[1]
    assert isinstance(error_of(result), SpecialTokenInText)
    ids = [*ids_of(LARGE), NO_TOKEN]
    with pytest.raises(UnknownTokenId) as unknown:
        client.decode_batch([[64], ids])
    assert (unknown.value.item, unknown.value.index) == (1, len(ids) - 1)
    with pytest.raises(InvalidUtf8) as surrogate:
        client.count_batch(["a", LARGE + "\ud800"])
    assert surrogate.value.item == 1


def test_the_error_of_an_invalid_item_is_returned_in_its_place(client: TokenizerClient) -> None:
    values = client.encode_batch(["a", "\ud800", "a"], return_exceptions=True)
    assert isinstance(values[1], InvalidUtf8)
    assert values[::2] == [ids_of("a")] * 2
    texts = client.decode_batch([[64], [-1], [2**40], [64]], return_exceptions=True)
    assert [type(text) for text in texts] == [str, UnknownTokenId, UnknownTokenId, str]
    chat = [{"role": "user", "content": "a"}]
    chats: list[Any] = [chat, [{"role": "user", "content": "\ud800"}], chat[0]]
    counts = client.count_chat_batch(chats, format="openai-chat", return_exceptions=True)
    assert counts[0] == client.count_chat(chat, format="openai-chat")
    assert [type(count) for count in counts[1:]] == [InvalidUtf8, InvalidOption]
    assert [error.item for error in (values[1], texts[2], *counts[1:])] == [1, 2, 1, 2]  # type: ignore[union-attr]
    with pytest.raises(InvalidUtf8) as caught:
        client.count_batch(["a", "\ud800"])
    assert caught.value.item == 1
    result = client.with_raw_response.count_batch(["\ud800"]).results[0]
    assert isinstance(error_of(result), InvalidUtf8)


def test_an_error_of_every_request_is_raised(client: TokenizerClient) -> None:
    with pytest.raises(UnknownEncoding):
        client.count_batch(["a"] * 3000, encoding="nope", return_exceptions=True)


def test_the_error_of_a_request_is_returned_for_each_of_its_items(clients: Clients) -> None:
    good = counts(1024)
    gone = fail(grpc.StatusCode.UNAVAILABLE, "gone")
    with ScriptedServer(good, gone, good) as server:
        client = clients(server.target, encoding="e", max_attempts=1)
        values = client.count_batch(["a"] * 1024, return_exceptions=True)
        assert values == [1] * 1024
        failed = client.count_batch(["a"] * 1024, return_exceptions=True)
        assert {type(value) for value in failed} == {Unavailable}
    with ScriptedServer(good, gone) as server:
        client = clients(server.target, encoding="e", max_attempts=1)
        assert client.count_batch(["a"] * 1024) == [1] * 1024
        with pytest.raises(Unavailable, match="gone") as caught:
            client.count_batch(["a"] * 1024)
        assert caught.value.item is None


def counts(number: int) -> Callable[[grpc.ServicerContext], bytes]:
    """A handler that answers BatchCount with this many results."""
    results = [tokenizer_pb2.CountResult(count=1)] * number
    answer = tokenizer_pb2.BatchCountResponse(results=results).SerializeToString()
    return lambda context: answer


def never(context: grpc.ServicerContext) -> bytes:
    """Wait until the client cancels the call."""
    over = threading.Event()
    context.add_callback(over.set)
    over.wait()
    context.abort(grpc.StatusCode.ABORTED, "")
    raise AssertionError("abort raises")


@pytest.mark.slow
def test_a_batch_has_a_bounded_number_of_requests_in_flight(clients: Clients) -> None:
    taken = 0

    def texts() -> Iterator[str]:
        nonlocal taken
        for _ in range(100_000):
            taken += 1
            yield "a"

    with ScriptedServer(never) as server:
        client = clients(server.target, encoding="e", timeout=1)
        with pytest.raises(DeadlineExceeded):
            client.count_batch(texts())
    assert taken <= 6 * 1024 + 1


def test_a_timeout_is_for_the_whole_batch(clients: Clients) -> None:
    with ScriptedServer(never) as server:
        client = clients(server.target, encoding="e")
        with pytest.raises(DeadlineExceeded, match=r"the batch took more than 0.2 s"):
            client.count_batch(["a"] * 5000, timeout=0.2)
