"""Calls of both clients against a real server."""

from __future__ import annotations

import pytest
from bytepair_client import (
    EncodingInfo,
    FingerprintMismatch,
    InvalidUtf8,
    Segments,
    SpecialTokenInText,
    TokenizerClient,
    UnknownTokenId,
    special,
)
from bytepair_client._operations.encoding import OffsetUnit
from conftest import Serve
from support.clients import Clients
from support.oracle import oracle
from support.serving import RunningServer, write_config

END = "<|endoftext|>"
TEXTS = ["", "Hello, world!", "naïve 日本語 🙂\r\n\t x", "a" * 3000]


@pytest.fixture
def client(server: RunningServer, clients: Clients) -> TokenizerClient:
    return clients(server.target, encoding="o200k_base")


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_text_to_ids_and_back(client: TokenizerClient, text: str) -> None:
    expected = oracle("o200k_base").encode(text)
    assert client.encode(text) == expected
    assert client.count(text) == len(expected)
    assert client.decode(expected) == text
    assert client.decode_bytes(expected) == text.encode()


def test_a_call_may_name_its_own_encoding(client: TokenizerClient) -> None:
    expected = oracle("r50k_base").encode("日本語")
    assert client.encode("日本語", encoding="gpt2") == expected
    assert client.encode("日本語") != expected


def test_special_tokens_in_text_are_handled_as_in_tiktoken(client: TokenizerClient) -> None:
    text = f"a {END}"
    with pytest.raises(SpecialTokenInText) as caught:
        client.encode(text)
    assert caught.value.token == END
    assert caught.value.byte_offset == 2
    ordinary = oracle("o200k_base").encode(text, disallowed_special=())
    assert client.encode(text, disallowed_special=()) == ordinary
    assert client.count(text) == len(ordinary)
    with pytest.raises(SpecialTokenInText):
        client.count(text, disallowed_special="all")


@pytest.fixture(scope="module")
def permissive(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_config(
        tmp_path_factory.mktemp("ceiling"), f'[ceiling.default]\ncl100k_base = ["{END}"]\n'
    )


def test_permitted_special_tokens_and_segments(
    serve: Serve, clients: Clients, permissive: str
) -> None:
    client = clients(serve("--config", permissive).target, encoding="cl100k_base")
    text = f"a{END}b"
    expected = oracle("cl100k_base").encode(text, allowed_special={END})
    assert client.encode(text, allowed_special={END}) == expected
    assert client.encode(text, allowed_special="all") == expected
    assert client.encode(Segments(["a", special(END), "b"])) == expected
    assert client.count(Segments(["a", special(END), "b"])) == len(expected)
    assert client.encode_batch([Segments(["a", special(END), "b"]), "a"])[0] == expected
    with pytest.raises(SpecialTokenInText) as caught:
        client.encode(Segments(["é", special(END), END]))
    assert caught.value.byte_offset == 2 + len(END)
    assert client.decode(expected) == text
    assert client.decode(expected, skip_special_tokens=True) == "ab"
    assert client.decode_bytes(expected, skip_special_tokens=True) == b"ab"
    assert client.decode_batch([expected], skip_special_tokens=True) == ["ab"]


def test_counting_stops_at_a_limit(client: TokenizerClient) -> None:
    assert client.count("a b c d e", limit=3) == 4
    assert client.count("a b c", limit=3) == 3
    assert client.count("a", limit=0) == 1
    assert client.count_batch(["a b c d e", "a"], limit=2) == [3, 1]
    assert client.with_raw_response.count("a b c d e", limit=3).limit_exceeded
    assert not client.with_raw_response.count("a b c", limit=3).limit_exceeded


@pytest.mark.parametrize(
    ("unit", "expected"),
    [("byte", [0, 2, 7]), ("code_point", [0, 1, 3]), ("utf16", [0, 1, 4])],
)
def test_offsets_count_in_their_unit(
    clients: Clients, server: RunningServer, unit: OffsetUnit, expected: list[int]
) -> None:
    client = clients(server.target, encoding="cl100k_base")
    ids, offsets = client.encode_with_offsets("é 😀!", unit=unit)
    assert ids == oracle("cl100k_base").encode("é 😀!")
    assert offsets == expected


def test_bytes_that_are_not_utf8(client: TokenizerClient) -> None:
    cut = [*client.encode("a"), *client.encode("𐍈")[:1]]
    assert client.decode(cut) == "a\ufffd"
    assert client.decode_bytes(cut) == b"a\xf0"
    assert client.decode_batch([cut, []]) == ["a\ufffd", ""]
    with pytest.raises(InvalidUtf8) as caught:
        client.decode(cut, errors="strict")
    assert caught.value.byte_offset == 1
    assert 'errors="replace" or decode_bytes()' in str(caught.value)
    with pytest.raises(InvalidUtf8) as caught:
        client.decode_batch([[], cut], errors="strict")
    assert (caught.value.item, caught.value.byte_offset) == (1, 1)


def test_encodings_are_described(client: TokenizerClient) -> None:
    infos = client.list_encodings()
    assert [info.name for info in infos] == sorted(info.name for info in infos)
    info = client.get_encoding("gpt-4o")
    assert info in infos
    assert info == client.get_encoding()
    assert isinstance(info, EncodingInfo)
    assert info.name == "o200k_base"
    assert "gpt-4o" in info.aliases
    assert info.special_tokens[END] == 199999
    assert info.n_vocab == oracle("o200k_base").n_vocab


def test_raw_responses_name_the_encoding_and_its_fingerprint(client: TokenizerClient) -> None:
    info = client.get_encoding()
    for answer in (
        client.with_raw_response.encode("a"),
        client.with_raw_response.encode_with_offsets("a"),
        client.with_raw_response.encode_batch(["a"]),
        client.with_raw_response.decode([64]),
        client.with_raw_response.decode_bytes([64]),
        client.with_raw_response.decode_batch([[64]]),
        client.with_raw_response.count("a"),
        client.with_raw_response.count_batch(["a"]),
    ):
        assert (answer.encoding, answer.fingerprint) == (info.name, info.fingerprint)
    assert client.with_raw_response.get_encoding().encoding.name == info.name
    assert len(client.with_raw_response.list_encodings().encodings) == len(client.list_encodings())


def test_the_fingerprint_of_the_client_is_checked_for_its_own_encoding_only(
    server: RunningServer, clients: Clients
) -> None:
    print_ = clients(server.target).get_encoding("o200k_base").fingerprint
    client = clients(server.target, encoding="o200k_base", expected_fingerprint=print_)
    assert client.count("a") == 1
    assert client.count("a", encoding="o200k_base") == 1
    assert client.count("a", encoding="cl100k_base") == 1
    with pytest.raises(FingerprintMismatch) as caught:
        client.count("a", encoding="cl100k_base", expected_fingerprint=print_)
    assert caught.value.encoding == "cl100k_base"
    assert caught.value.expected == print_
    assert caught.value.actual == client.get_encoding("cl100k_base").fingerprint

    wrong = clients(server.target, encoding="o200k_base", expected_fingerprint="sha256:0")
    for call in (
        lambda: wrong.count("a"),
        lambda: wrong.encode("a"),
        lambda: wrong.decode([1]),
        lambda: wrong.decode_bytes([1]),
        lambda: wrong.encode_with_offsets("a"),
        lambda: wrong.count_batch(["a"]),
        lambda: wrong.encode_batch(["a"]),
        lambda: wrong.decode_batch([[1]]),
    ):
        with pytest.raises(FingerprintMismatch):
            call()
    assert wrong.count("a", expected_fingerprint=None) == 1


def test_a_batch_raises_the_first_error_with_its_index(client: TokenizerClient) -> None:
    with pytest.raises(SpecialTokenInText, match=r"^item 1: ") as caught:
        client.encode_batch(["ok", f"x{END}", END])
    assert caught.value.item == 1
    assert caught.value.byte_offset == 1
    with pytest.raises(SpecialTokenInText) as caught:
        client.count_batch(["ok", END], disallowed_special="all")
    assert caught.value.item == 1
    with pytest.raises(UnknownTokenId) as caught_id:
        client.decode_batch([[1], [1, 4_000_000_000]])
    assert caught_id.value.item == 1
    assert caught_id.value.index == 1


def test_a_batch_returns_errors_in_place_on_request(client: TokenizerClient) -> None:
    first, second = client.encode_batch(["a", END], return_exceptions=True)
    assert first == client.encode("a")
    assert isinstance(second, SpecialTokenInText)
    assert (second.item, second.token, second.code) == (1, END, "INVALID_ARGUMENT")
    counted = client.count_batch([END, "a"], disallowed_special="all", return_exceptions=True)
    assert isinstance(counted[0], SpecialTokenInText)
    assert counted[1] == 1
    decoded = client.decode_batch([[4_000_000_000], []], return_exceptions=True)
    assert isinstance(decoded[0], UnknownTokenId)
    assert decoded[1] == ""


def test_health(client: TokenizerClient) -> None:
    assert client.health() == "SERVING"
    assert client.health("bytepair.v1.TokenizerService") == "SERVING"
