"""Streams of ids, and what all streams share: both clients against a real server."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pytest
from bytepair_client import (
    InvalidOption,
    InvalidUtf8,
    TokenizerClient,
    UnknownEncoding,
    UnknownTokenId,
)
from support.clients import Clients
from support.hard_text import random_texts
from support.oracle import oracle
from support.pieces import Broke, cuts, read
from support.serving import RunningServer

END_ID = 199999
TEXT = "naïve 日本語 🙂🙂 삼겹살 \ufffd e\u0301 don't\r\n  x" * 3
ENCODINGS = ["r50k_base", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony"]
NO_TOKEN = 4_000_000_000


@pytest.fixture
def client(server: RunningServer, clients: Clients) -> TokenizerClient:
    return clients(server.target, encoding="o200k_base")


def ids_of(text: str) -> list[int]:
    return oracle("o200k_base").encode(text)


def as_source(rng: random.Random, ids: list[int]) -> Iterable[int | list[int]]:
    """The ids one by one, or some of them in lists."""
    for some in cuts(rng, ids):
        if rng.random() < 0.5:
            yield from some
        else:
            yield list(some)


def random_ids(rng: random.Random, name: str) -> list[int]:
    """Ids of texts, of special tokens, and of tokens that are not UTF-8."""
    encoding = oracle(name)
    special = sorted(encoding.special_tokens_set)
    tokens = encoding.token_byte_values()
    ids: list[int] = []
    for text in random_texts(rng, tokens, 6):
        ids += encoding.encode(text, disallowed_special=())
        ids.append(encoding.encode_single_token(rng.choice(special)))
        ids.append(encoding.encode_single_token(rng.choice(tokens)))
    return ids


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODINGS)
def test_pieces_joined_are_what_decode_gives(client: TokenizerClient, name: str) -> None:
    seed = random.randrange(2**32)
    print(f"{seed = }")
    rng = random.Random(seed)
    for skip in (False, True):
        ids = random_ids(rng, name)
        options: dict[str, Any] = {"encoding": name, "skip_special_tokens": skip}
        for source in (ids, tuple(ids), iter(ids), as_source(rng, ids), list(cuts(rng, ids))):
            pieces = list(client.decode_stream(source, **options))
            assert all(pieces)
            assert "".join(pieces) == client.decode(ids, **options)
        data = list(client.decode_stream(as_source(rng, ids), as_bytes=True, **options))
        assert all(data)
        assert b"".join(data) == client.decode_bytes(ids, **options)


def test_no_ids_give_no_text(client: TokenizerClient) -> None:
    sources: list[Any] = [[], iter(()), [[]], iter([[], []])]
    for source in sources:
        stream = client.decode_stream(source)
        assert list(stream) == []
        assert stream.last.finished
    assert list(client.decode_stream([END_ID], skip_special_tokens=True)) == []


def test_ids_before_the_stream_complete_its_first_character(client: TokenizerClient) -> None:
    ids = ids_of("𐍈")
    assert len(ids) > 2
    for cut in range(1, len(ids)):
        assert "".join(client.decode_stream(ids[cut:], prefill_ids=ids[:cut])) == "𐍈"
    assert "".join(client.decode_stream(ids, prefill_ids=ids_of("before"))) == "𐍈"


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("stop", [["日本"], ["語 🙂", "🙂🙂"], ["don", "don't"], ["nowhere"]])
def test_the_text_ends_at_a_stop_string(
    client: TokenizerClient, stop: list[str], include: bool
) -> None:
    ids = ids_of(TEXT)
    for source in (ids, iter(ids), [[token_id] for token_id in ids]):
        stream = client.decode_stream(source, stop=stop, include_stop=include)
        text = "".join(stream)
        if stop == ["nowhere"]:
            assert (text, stream.last.stop_matched) == (TEXT, "")
        else:
            matched = stream.last.stop_matched
            start = min(TEXT.find(string) for string in stop if string in TEXT)
            longest = max((s for s in stop if TEXT.startswith(s, start)), key=len)
            assert matched == longest
            assert text == TEXT[:start] + (longest if include else "")
        assert stream.last.finished


def test_after_a_stop_string_the_source_is_not_read_on(
    client: TokenizerClient, clients: Clients
) -> None:
    ended = threading.Event()

    def model() -> Iterator[int]:
        try:
            while True:
                yield from ids_of("tick tock ")
                time.sleep(0.001)
        finally:
            ended.set()

    stream = client.decode_stream(clients.source(model()), stop=["tock"])
    assert "".join(stream) == "tick "
    assert ended.wait(30)


def test_a_piece_comes_before_the_next_id(client: TokenizerClient, clients: Clients) -> None:
    seen = threading.Semaphore(0)
    ids = ids_of("one two three four")

    def model() -> Iterator[int]:
        for token_id in ids:
            yield token_id
            assert seen.acquire(timeout=30)  # until the piece of this id was read

    pieces = []
    for piece in client.decode_stream(clients.source(model())):
        pieces.append(piece)
        seen.release()
    assert pieces == ["one", " two", " three", " four"]


def after_answers(items: Iterable[Any], answered: threading.Semaphore) -> Iterator[Any]:
    """The items, each after an answer to the one before it."""
    for item in items:
        yield item
        assert answered.acquire(timeout=30)


def test_an_empty_item_sends_an_empty_message(client: TokenizerClient, clients: Clients) -> None:
    raw = client.with_raw_response
    streams: list[tuple[Callable[..., Any], list[Any]]] = [
        (raw.decode_stream, [ids_of("one"), [], (), iter([]), ids_of(" two")]),
        (raw.encode_stream, ["one", "", b"", bytearray(), " two"]),
        (partial(raw.split_stream, max_tokens=9), ["one", "", b"", memoryview(b""), " two"]),
    ]
    for stream, items in streams:
        answered = threading.Semaphore(0)
        for _ in stream(clients.source(after_answers(items, answered))):
            answered.release()


def test_pending_ids_are_sent_in_one_message(client: TokenizerClient) -> None:
    answers = list(client.with_raw_response.decode_stream(ids_of("a b ") * 10_000))
    assert len(answers) < 10
    assert "".join(answer.text for answer in answers) == "a b " * 10_000


@pytest.mark.slow
def test_a_slow_reader_stops_the_source(client: TokenizerClient) -> None:
    taken = 0
    many = 200_000

    def model() -> Iterator[int]:
        nonlocal taken
        for _ in range(many):
            taken += 1
            yield 64

    stream = client.decode_stream(model())
    size = len(next(stream))
    before = -1
    while before < taken:  # until the source stops
        before = taken
        time.sleep(0.2)
    assert taken < 100_000
    assert size + sum(map(len, stream)) == many


def test_an_exception_of_the_source_comes_after_the_text_before_it(
    client: TokenizerClient, clients: Clients, server: RunningServer
) -> None:
    def model() -> Iterator[int]:
        yield from ids_of("one two 𐍈")[:-1]
        raise Broke

    server.wait_for_metric("bytepair_open_streams", 0)
    ended = {"rpc": "DecodeStream", "code": "OK"}
    before = server.metric("bytepair_requests_total", **ended)
    for source in (model(), clients.source(model())):
        pieces, error = read(client.decode_stream(source))
        assert "".join(pieces) == "one two "
        assert isinstance(error, Broke)
    server.wait_for_metric("bytepair_open_streams", 0)
    assert server.metric("bytepair_requests_total", **ended) == before


@pytest.mark.parametrize("bad", [NO_TOKEN, -1, 2**32, 2**70])
@pytest.mark.parametrize("how", ["list", "one by one", "lists"])
def test_an_unknown_id_comes_after_the_text_before_it(
    client: TokenizerClient, clients: Clients, how: str, bad: int
) -> None:
    before = ids_of("one two three")
    ids = [*before, bad, *before]
    sources: dict[str, Any] = {
        "list": ids,
        "one by one": clients.source(iter(ids)),
        "lists": [ids[:2], ids[2:]],
    }
    pieces, error = read(client.decode_stream(sources[how]))
    assert "".join(pieces) == "one two three"
    assert isinstance(error, UnknownTokenId)
    assert error.index == len(before)
    pieces, error = read(client.decode_stream(before, prefill_ids=[*before[:1], NO_TOKEN]))
    assert (pieces, type(error)) == ([], UnknownTokenId)


def test_an_item_that_is_not_an_id(client: TokenizerClient) -> None:
    items: list[Any] = ["1", b"1", 1.5, None, ["1"], [b"1"], [[1.5]]]
    for source in ([[64, 1.5]], *([64, item] for item in items)):
        pieces, error = read(client.decode_stream(iter(source)))
        assert "".join(pieces) == "a"
        assert isinstance(error, TypeError)


def test_an_option_that_the_server_rejects_is_named_as_in_python(client: TokenizerClient) -> None:
    _, error = read(client.decode_stream([1], stop=[""]))
    assert isinstance(error, InvalidOption)
    assert (str(error), error.field) == ("stop: must not contain an empty string", "stop")


def test_strict_decoding_fails_after_the_text_before(client: TokenizerClient) -> None:
    ids = [*ids_of("one two"), *ids_of("𐍈")[:1], *ids_of("x")]
    pieces, error = read(client.decode_stream(ids, errors="strict"))
    assert "".join(pieces) == "one two"
    assert isinstance(error, InvalidUtf8)
    assert error.byte_offset == 7


def test_streams_compose(client: TokenizerClient) -> None:
    ids = client.encode_stream(TEXT[i : i + 3] for i in range(0, len(TEXT), 3))
    assert "".join(client.decode_stream(list(ids))) == TEXT


def test_the_last_response_names_the_encoding(client: TokenizerClient) -> None:
    info = client.get_encoding()
    decoding = client.decode_stream(iter(ids_of("one two")))
    assert (decoding.last.encoding, decoding.last.tokens_consumed) == ("", 0)
    assert "".join(decoding) == "one two"
    assert decoding.last.tokens_consumed == 2
    encoding = client.encode_stream(["one", " two"], encoding="gpt-4o")
    assert [i for ids in encoding for i in ids] == ids_of("one two")
    assert encoding.last.bytes_consumed == 7
    for last in (decoding.last, encoding.last):
        assert last.finished
        assert (last.encoding, last.fingerprint) == (info.name, info.fingerprint)


def test_raw_streams_give_every_message(client: TokenizerClient) -> None:
    answers = list(client.with_raw_response.decode_stream(ids_of("🙂 one")))
    assert "".join(answer.text for answer in answers) == "🙂 one"
    assert answers[0].encoding == "o200k_base"
    assert [answer.encoding for answer in answers[1:]] == [""] * (len(answers) - 1)
    assert [answer.finished for answer in answers] == [False] * (len(answers) - 1) + [True]
    found = list(client.with_raw_response.encode_stream(["one", " two"]))
    assert [token_id for answer in found for token_id in answer.ids] == ids_of("one two")
    assert found[0].encoding == "o200k_base"


def test_a_finished_stream_stays_finished(client: TokenizerClient) -> None:
    for stream in (
        client.decode_stream([64]),
        client.decode_stream([NO_TOKEN]),
        client.decode_stream([64], encoding="nope"),
    ):
        read(stream)
        assert list(stream) == []
        stream.close()
        assert list(stream) == []


@pytest.mark.parametrize("ids", [[True], [[1, False]]])
def test_a_bool_is_no_id(client: TokenizerClient, ids: list[Any]) -> None:
    with pytest.raises(TypeError, match="ids must be integers or lists of integers"):
        list(client.decode_stream(ids))


def test_an_unknown_encoding(client: TokenizerClient) -> None:
    def model() -> Iterator[int]:
        yield 64

    with pytest.raises(UnknownEncoding):
        next(client.decode_stream(model(), encoding="nope"))
    with pytest.raises(UnknownEncoding):
        next(client.encode_stream(["a"], encoding="nope"))
    with pytest.raises(UnknownEncoding):
        client.count_stream(["a"], encoding="nope")
