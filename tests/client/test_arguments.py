"""Invalid arguments are rejected before anything is sent, with a message that names them."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
from bytepair_client import (
    AsyncTokenizerClient,
    InputTooLarge,
    InvalidOption,
    InvalidUtf8,
    Segments,
    TokenizerClient,
    UnknownTokenId,
    special,
)
from support.clients import Clients
from support.scripted import ScriptedServer

Act = Callable[[TokenizerClient], object]


@pytest.fixture
def client(clients: Clients) -> Iterator[TokenizerClient]:
    with ScriptedServer() as server:
        yield clients(server.target, encoding="e", max_request_bytes=1000)
        assert not server.calls


@pytest.mark.parametrize(
    ("field", "act"),
    [
        ("allowed_special", lambda c: c.encode("a", allowed_special="<|endoftext|>")),
        ("allowed_special", lambda c: c.encode("a", allowed_special={"ALL"})),
        ("allowed_special", lambda c: c.count("a", allowed_special={"all"})),
        ("allowed_special", lambda c: c.count_stream(["a"], allowed_special=["<|x|>", "all"])),
        ("allowed_special", lambda c: c.encode("a", allowed_special={"\ud800"})),
        ("disallowed_special", lambda c: c.encode("a", disallowed_special={"<|endoftext|>"})),
        ("disallowed_special", lambda c: c.count("a", disallowed_special="none")),
        ("disallowed_special", lambda c: c.encode_batch(["a"], disallowed_special=["x"])),
        ("disallowed_special", lambda c: c.encode("a", disallowed_special=numpy.array(["x", "y"]))),
        ("unit", lambda c: c.encode_with_offsets("a", unit="char")),
        ("limit", lambda c: c.count("a", limit=-1)),
        ("limit", lambda c: c.count_batch(["a"], limit=2**64)),
        ("errors", lambda c: c.decode([1], errors="ignore")),
        ("errors", lambda c: c.decode_batch([[1]], errors="")),
        ("encoding", lambda c: c.encode("a", encoding="")),
        ("encoding", lambda c: c.get_encoding("\udcff")),
        ("expected_fingerprint", lambda c: c.count("a", expected_fingerprint="\udcff")),
        ("token", lambda c: c.count(Segments(["a", special("")]))),
        ("token", lambda c: c.count(Segments(["a", special("\ud800")]))),
        ("timeout", lambda c: c.count("a", timeout=0)),
        ("timeout", lambda c: c.list_encodings(timeout=math.nan)),
        ("timeout", lambda c: c.decode([1], timeout=math.inf)),
        ("timeout", lambda c: c.decode([1], timeout=sys.maxsize)),
        ("stop", lambda c: c.decode_stream([1], stop="text")),
        ("stop", lambda c: c.decode_stream([1], stop=["\ud800"])),
        ("errors", lambda c: c.decode_stream([1], errors="ignore")),
        ("timeout", lambda c: c.decode_stream([1], timeout=0)),
        ("encoding", lambda c: c.decode_stream([1], encoding="\udcff")),
        ("allowed_special", lambda c: c.encode_stream(["a"], allowed_special={"ALL"})),
        ("disallowed_special", lambda c: c.encode_stream(["a"], disallowed_special={"x"})),
        ("timeout", lambda c: c.encode_stream(["a"], timeout=-1)),
        ("limit", lambda c: c.count_stream(["a"], limit=-1)),
        ("max_tokens", lambda c: c.split("a", 0)),
        ("max_tokens", lambda c: c.split_stream(["a"], 0)),
        ("overlap_tokens", lambda c: c.split("a", 5, overlap_tokens=3)),
    ],
)
def test_an_option_outside_its_domain(client: TokenizerClient, field: str, act: Act) -> None:
    with pytest.raises(InvalidOption, match=f"^{field}: ") as caught:
        act(client)
    assert caught.value.field == field
    assert caught.value.code is None


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("target", {"target": "\udcff:1"}),
        ("target", {"target": "http://localhost:50051"}),
        ("timeout", {"timeout": -1}),
        ("max_attempts", {"max_attempts": 0}),
        ("max_requests_per_second", {"max_requests_per_second": 0}),
        ("max_requests_per_second", {"max_requests_per_second": -1}),
        ("max_requests_per_second", {"max_requests_per_second": math.nan}),
        ("max_requests_per_second", {"max_requests_per_second": math.inf}),
        ("max_unary_bytes", {"max_unary_bytes": 0}),
        ("max_request_bytes", {"max_request_bytes": 0}),
        ("max_response_bytes", {"max_response_bytes": -1}),
        ("max_request_bytes", {"max_request_bytes": sys.maxsize}),
        ("max_response_bytes", {"max_response_bytes": 2**31}),
        ("user_agent", {"user_agent": "a\nb"}),
        ("user_agent", {"user_agent": "é"}),
        ("keepalive", {"keepalive": 0}),
        ("keepalive", {"keepalive": 1e8}),
    ],
)
def test_an_option_of_the_client_outside_its_domain(
    clients: Clients, field: str, options: dict[str, object]
) -> None:
    with pytest.raises(InvalidOption) as caught:
        clients(**options)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("target", "remedy"),
    [
        ("localhost", "localhost:50051"),
        ("tokens.example:", "tokens.example:50051"),
        ("127.0.0.1", "127.0.0.1:50051"),
        ("[::1]", "[::1]:50051"),
        ("fe80::1", "[fe80::1]:50051"),
    ],
)
def test_a_target_without_a_port(clients: Clients, target: str, remedy: str) -> None:
    with pytest.raises(InvalidOption, match=rf"^target: has no port: write {re.escape(remedy)}$"):
        clients(target)


def test_an_ipv6_address_with_a_port_and_without_brackets(clients: Clients) -> None:
    for target, remedy in (("::1:50051", "[::1]:50051"), ("fe80::1:10000", "[fe80::1]:10000")):
        with pytest.raises(InvalidOption, match=rf"has no brackets: write {re.escape(remedy)}$"):
            clients(target)


@pytest.mark.parametrize(
    "target",
    ["", "http://a:1", "grpc://a:1", "/run/a.sock", "a:65536", "a:99999", "dns:///[::1]:123456"],
)
def test_what_is_no_target(clients: Clients, target: str) -> None:
    with pytest.raises(InvalidOption, match=r"^target: must be host:port, such as localhost:50051"):
        clients(target)


@pytest.mark.parametrize(
    "target",
    ["[::1]:1", "a.b:65535", "unix:a", "unix-abstract:99999", "dns:///a", "ipv6:[::1]", "xds:///a"],
)
def test_other_targets_are_left_to_grpc(clients: Clients, target: str) -> None:
    clients(target)


def test_an_option_without_its_name(client: TokenizerClient) -> None:
    for make in (TokenizerClient, AsyncTokenizerClient):
        with pytest.raises(TypeError, match=rf'^{make.__name__}\(\) takes .*encoding="o200k_base"'):
            make("localhost:50051", "gpt-4o")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"encode\(\) takes only text .* encoding="):
        client.encode("x", "gpt-4o")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes only text and max_tokens as positional"):
        client.truncate("x", 3, "gpt-4o")  # type: ignore[call-arg, arg-type]
    with pytest.raises(TypeError, match="takes nothing as positional"):
        client.list_encodings(1)  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [TokenizerClient, AsyncTokenizerClient])
def test_an_option_that_the_client_does_not_have(kind: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\(\) got an unexpected .* 'model'$"):
        kind("nowhere:1", model="gpt-4o")


@pytest.mark.parametrize(
    "act",
    [
        lambda c: c.encode("a"),
        lambda c: c.count("a"),
        lambda c: c.decode([1]),
        lambda c: c.decode_bytes([1]),
        lambda c: c.encode_with_offsets("a"),
        lambda c: c.encode_batch(["a"]),
        lambda c: c.count_batch(["a"]),
        lambda c: c.decode_batch([[1]]),
        lambda c: c.get_encoding(),
    ],
)
def test_no_encoding_is_ever_assumed(clients: Clients, act: Act) -> None:
    with ScriptedServer() as server:
        with pytest.raises(InvalidOption) as caught:
            act(clients(server.target))
        assert caught.value.field == "encoding"
        assert not server.calls


@pytest.mark.parametrize(
    ("offset", "item", "act"),
    [
        (2, None, lambda c: c.encode("é\ud800")),
        (0, None, lambda c: c.count("\udfff")),
        (7, None, lambda c: c.encode(Segments(["é", special("<|a|>"), "\ud83d"]))),
        (1, 2, lambda c: c.encode_batch(["", Segments(["ok"]), Segments(["a", "\ud800"])])),
        (0, 1, lambda c: c.count_batch(["", "\ud800"])),
    ],
)
def test_a_lone_surrogate_is_not_utf8(
    client: TokenizerClient, offset: int, item: int | None, act: Act
) -> None:
    """tiktoken silently replaces them by U+FFFD (core.py)."""
    with pytest.raises(InvalidUtf8) as caught:
        act(client)
    assert (caught.value.byte_offset, caught.value.item) == (offset, item)


@pytest.mark.parametrize("bad", [-1, 2**32, 2**70])
def test_an_id_that_no_encoding_can_have(client: TokenizerClient, bad: int) -> None:
    with pytest.raises(UnknownTokenId) as caught:
        client.decode([0, bad])
    assert (caught.value.index, caught.value.item) == (1, None)
    with pytest.raises(UnknownTokenId) as caught:
        client.decode_batch([[], (i for i in (0, 0, bad))])
    assert (caught.value.index, caught.value.item) == (2, 1)
    with pytest.raises(UnknownTokenId):
        client.get_token(bad)


@pytest.mark.parametrize(
    ("message", "act"),
    [
        ("max_tokens: must be 0 or more, not -1", lambda c: c.truncate("a", -1)),
        ("limit: must be 0 or more, not -1", lambda c: c.count("a", limit=-1)),
        ("limit: is too large: 18446744073709551616", lambda c: c.count("a", limit=2**64)),
        (
            "pinned: must be 0 or more, not [1, -1]",
            lambda c: c.fit_chat([], 1, format="f", pinned=[1, -1]),
        ),
    ],
)
def test_the_message_for_a_number_out_of_range(
    client: TokenizerClient, message: str, act: Act
) -> None:
    with pytest.raises(InvalidOption, match=f"^{re.escape(message)}$"):
        act(client)


def test_a_request_larger_than_the_client_sends(client: TokenizerClient) -> None:
    with pytest.raises(InputTooLarge) as caught:
        client.encode("a" * 2000)
    error = caught.value
    assert (error.field, error.limit, error.code) == ("request", 1000, None)
    assert error.size is not None
    assert error.size > 2000
    assert "aaa" not in str(error)


def test_the_tools_of_a_chat_in_a_batch_are_named(client: TokenizerClient) -> None:
    for tools in (5, b"5"):
        with pytest.raises(InvalidOption, match=r"^item 0: tools: must be a list of tools$"):
            client.count_chat_batch([{"messages": [], "tools": tools}], format="f")


def test_ids_of_many_texts_belong_in_a_batch(client: TokenizerClient) -> None:
    for call in (client.decode, client.decode_bytes):
        with pytest.raises(TypeError, match="decode_batch"):
            call([[1], [2]])  # type: ignore[list-item]
