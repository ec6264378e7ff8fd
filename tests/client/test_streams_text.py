"""Streams of text of both clients against a real server."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from bytepair_client import InvalidUtf8, SpecialTokenInText, TokenizerClient
from support.clients import Clients
from support.hard_text import random_texts
from support.oracle import oracle
from support.pieces import Broke, cuts, read
from support.serving import RunningServer

END = "<|endoftext|>"
ENCODINGS = ["r50k_base", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony"]


@pytest.fixture
def client(server: RunningServer, clients: Clients) -> TokenizerClient:
    return clients(server.target, encoding="o200k_base")


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODINGS)
def test_a_text_in_pieces_gives_the_ids_of_the_whole(client: TokenizerClient, name: str) -> None:
    seed = random.randrange(2**32)
    print(f"{seed = }")
    rng = random.Random(seed)
    text = "".join(random_texts(rng, oracle(name).token_byte_values(), 12))
    expected = oracle(name).encode(text, disallowed_special=())
    data = text.encode()
    sources: list[Any] = [
        text,
        data,
        memoryview(data),
        [text],
        cuts(rng, text),
        cuts(rng, data),
        list(cuts(rng, bytearray(data))),
        iter([text[:5], text[5:].encode()]),
    ]
    for source in sources:
        pieces = list(client.encode_stream(source, encoding=name, disallowed_special=()))
        assert all(pieces)
        assert [token_id for ids in pieces for token_id in ids] == expected
    assert client.count_stream(cuts(rng, text), encoding=name) == len(expected)
    assert client.count_stream(cuts(rng, data), encoding=name, limit=5) == min(6, len(expected))


def test_no_text_gives_no_ids(client: TokenizerClient) -> None:
    sources: list[Any] = ["", b"", [], [""], iter([b"", ""])]
    for source in sources:
        assert list(client.encode_stream(source)) == []
    assert client.count_stream([]) == 0


def test_counting_takes_no_more_pieces_than_its_limit_needs(
    client: TokenizerClient, clients: Clients
) -> None:
    def endless() -> Iterator[str]:
        while True:
            yield "more and more " * 1000

    assert client.count_stream(clients.source(endless()), limit=10_000) == 10_001
    answer = client.with_raw_response.count_stream(clients.source(endless()), limit=10)
    assert (answer.count, answer.limit_exceeded, answer.encoding) == (11, True, "o200k_base")


def test_a_special_token_in_text_comes_after_the_ids_before_it(client: TokenizerClient) -> None:
    text = "one two three four. " * 3
    pieces, error = read(client.encode_stream([text, "five ", END[:4], END[4:]]))
    ids = [token_id for piece in pieces for token_id in piece]
    assert ids == oracle("o200k_base").encode(text + "five ")
    assert isinstance(error, SpecialTokenInText)
    assert (error.token, error.byte_offset) == (END, len(text) + 5)
    assert client.count_stream([END[:4], END[4:]]) == 7
    with pytest.raises(SpecialTokenInText):
        client.count_stream([END[:4], END[4:]], disallowed_special="all")


@pytest.mark.parametrize(
    ("offset", "pieces"),
    [
        (3, ["é", "a\ud800"]),
        (2, [b"ab", b"\xff"]),
        (2, [b"ab", b"\xf0\x9f"]),
    ],
)
def test_an_error_names_the_offset_of_invalid_utf8(
    client: TokenizerClient, offset: int, pieces: list[str | bytes]
) -> None:
    for call in (
        lambda: list(client.encode_stream(pieces)),
        lambda: client.count_stream(pieces),
    ):
        with pytest.raises(InvalidUtf8) as caught:
            call()
        assert caught.value.byte_offset == offset


def test_a_piece_that_is_not_text(client: TokenizerClient) -> None:
    with pytest.raises(TypeError, match="piece"):
        list(client.encode_stream(["a", 1]))  # type: ignore[list-item]
    with pytest.raises(TypeError, match="piece"):
        client.count_stream([None])  # type: ignore[list-item]


def test_an_exception_of_the_source_of_a_count(client: TokenizerClient) -> None:
    def pieces() -> Iterator[str]:
        yield "a"
        raise Broke

    with pytest.raises(Broke):
        client.count_stream(pieces())
    with pytest.raises(Broke):
        list(client.encode_stream(pieces()))
