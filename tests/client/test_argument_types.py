"""Arguments of a wrong type: the error names the argument."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from bytepair_client import (
    InvalidOption,
    RawResponses,
    Segments,
    Tls,
    TokenizerClient,
    error_of,
    special,
)
from support.clients import Clients
from support.scripted import ScriptedServer

Act = Callable[[TokenizerClient], object]


MANY = "Many texts go to count_batch or encode_batch; Segments([...]) is one text in several parts"


@pytest.fixture
def client(clients: Clients) -> Iterator[TokenizerClient]:
    with ScriptedServer() as server:
        yield clients(server.target, encoding="e", max_request_bytes=1000)
        assert not server.calls


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("target", 50051),
        ("max_attempts", "1"),
        ("max_attempts", True),
        ("wait_for_quota", "no"),
        ("api_key", 5),
        ("tls", "ca.pem"),
        ("timeout", "3"),
        ("timeout", True),
        ("keepalive", "1"),
        ("encoding", 5),
        ("expected_fingerprint", b"sha256:1"),
        ("user_agent", 5),
        ("metadata", None),
        ("metadata", ["name"]),
        ("metadata: each name must be", {5: "value"}),
        ("tls.root_certificates", Tls(root_certificates=5)),  # type: ignore[arg-type]
        ("tls.server_name", Tls(server_name=5)),  # type: ignore[arg-type]
    ],
)
def test_an_option_of_the_client_of_a_wrong_type(
    clients: Clients, field: str, value: object
) -> None:
    with pytest.raises(TypeError, match=field):
        clients(**{re.split("[.:]", field)[0]: value})


@pytest.mark.parametrize(
    ("argument", "act"),
    [
        ("text", lambda c: c.encode(b"bytes")),
        ("text", lambda c: c.count(None)),
        ("text", lambda c: c.encode({"a": "b"})),
        ("text", lambda c: c.encode(["a", special("<|a|>")])),
        ("segment", lambda c: c.encode(Segments([b"bytes"]))),  # type: ignore[list-item]
        ("segment", lambda c: c.encode(Segments(["a", 1]))),  # type: ignore[list-item]
        ("Segments", lambda c: c.encode(Segments("one text"))),
        ("token", lambda c: c.encode(Segments([special(5)]))),  # type: ignore[arg-type]
        ("texts", lambda c: c.encode_batch("one text")),
        ("texts", lambda c: c.count_batch(b"one text")),
        ("texts", lambda c: c.count_batch(Segments(["one text"]))),
        ("texts", lambda c: c.encode_batch([["a", "b"]])),
        ("ids", lambda c: c.decode("12")),
        ("ids", lambda c: c.decode(b"12")),
        ("ids", lambda c: c.decode_bytes(bytearray(b"12"))),
        ("batch", lambda c: c.decode_batch([b"12"])),
        ("ids", lambda c: c.decode_stream(bytearray(b"12"))),
        ("ids", lambda c: c.decode([1.5])),
        ("ids", lambda c: c.decode(["1"])),
        ("ids", lambda c: c.decode([None])),
        ("ids", lambda c: c.decode(1)),
        ("ids", lambda c: c.decode([True])),
        ("ids", lambda c: c.decode_stream(5)),
        ("stop", lambda c: c.decode_stream([], stop=5)),
        ("pinned", lambda c: c.fit_chat([], 5, format="f", pinned=5)),
        ("pieces", lambda c: c.encode_stream(5)),
        ("texts", lambda c: c.count_batch(5)),
        ("batch", lambda c: c.decode_batch(5)),
        ("chats", lambda c: c.count_chat_batch(5, format="f")),
        ("messages", lambda c: c.count_chat_batch([5], format="f")),
        ("token_id", lambda c: c.get_token("1")),
        ("service", lambda c: c.health(5)),
        ("encoding", lambda c: c.count("a", encoding=5)),
        ("allowed_special", lambda c: c.count("a", allowed_special=5)),
        ("allowed_special", lambda c: c.count("a", allowed_special=[5])),
        ("timeout", lambda c: c.count("a", timeout="3")),
        ("timeout", lambda c: c.count("a", timeout=True)),
        ("max_tokens", lambda c: c.truncate("a", "x")),
        ("max_tokens", lambda c: c.truncate("a", None)),
        ("max_tokens", lambda c: c.truncate_batch(["a"], None)),
        ("max_tokens", lambda c: c.split("a", None)),
        ("max_tokens", lambda c: c.split_stream(["a"], None)),
        ("max_tokens", lambda c: c.fit_chat([], None, format="f")),
        ("batch", lambda c: c.decode_batch("12")),
        ("batch", lambda c: c.decode_batch(b"12")),
        ("chats", lambda c: c.count_chat_batch("hi", format="f")),
        ("prefill_ids", lambda c: c.decode_stream([], prefill_ids=5)),
        ("prefill_ids", lambda c: c.decode_stream([], prefill_ids=["x"])),
        ("prefill_ids", lambda c: c.decode_stream([], prefill_ids=b"12")),
        ("allowed_special", lambda c: c.count("a", allowed_special=b"x")),
        ("add_special_tokens", lambda c: c.count("a", add_special_tokens=2**99)),
        ("progress", lambda c: c.count_batch(["a"], progress=5)),
        ("token_id", lambda c: c.get_token(True)),
        ("stop", lambda c: c.decode_stream([], stop=[b"x"])),
        ("marker", lambda c: c.truncate("a", 5, marker=b"x")),
        ("format", lambda c: c.get_chat_format(b"f")),
        (
            "format_options",
            lambda c: c.count_chat([], format="f", format_options={"a": b"x"}),
        ),
        (
            "format_options",
            lambda c: c.count_chat([], format="f", format_options={b"a": "x"}),
        ),
        ("Segments", lambda c: c.count(Segments(5))),  # type: ignore[arg-type]
        ("Segments", lambda c: c.count(Segments(bytearray(b"a")))),  # type: ignore[arg-type]
        ("result", lambda c: error_of(None)),  # type: ignore[arg-type]
    ],
)
def test_an_argument_of_a_wrong_type(client: TokenizerClient, argument: str, act: Act) -> None:
    with pytest.raises(TypeError, match=rf"\b{argument}\b"):
        act(client)


@pytest.mark.parametrize("name", [name for name in dir(RawResponses) if name[0] != "_"])
def test_an_error_names_the_argument_of_a_wrong_type(client: TokenizerClient, name: str) -> None:
    parameters = inspect.signature(getattr(RawResponses, name)).parameters.keys() - {"self"}
    valid = {"text": "", "texts": [], "messages": [], "chats": [], "pieces": [], "max_tokens": 1}
    valid |= {"ids": [], "batch": [], "format": "f", "token_id": 1}
    for argument in parameters - {"return_exceptions"}:  # which may be any object
        arguments: dict[str, Any] = {each: valid[each] for each in valid.keys() & parameters}
        with pytest.raises((TypeError, InvalidOption), match=argument):
            getattr(client, name)(**(arguments | {argument: object()}))


@pytest.mark.parametrize(
    ("message", "act"),
    [
        ("texts[1] must be a str or Segments, not int", lambda c: c.count_batch(["a", 5])),
        (
            "texts[1]: segment 0 must be a str or special(...), not int",
            lambda c: c.count_batch(["a", Segments([5])]),  # type: ignore[list-item]
        ),
        ("batch[1] must be a list of integers, not int", lambda c: c.decode_batch([[1], 5])),
        ("batch[1] must be a list of integers", lambda c: c.decode_batch([[1], ["a"]])),
        (
            "messages of chats[1] must be a list of dicts, not int",
            lambda c: c.count_chat_batch([[], 5], format="f"),
        ),
        ("not bytes: decode it first, such as by data.decode()", lambda c: c.count(b"abc")),
        (f"not list. {MANY}", lambda c: c.count(["a", "b"])),
        (f"not list. {MANY}", lambda c: c.encode(["a", "b"])),
        (f"not list. {MANY}", lambda c: c.encode_with_offsets(["a", "b"])),
        ("text must be one str, not list", lambda c: c.truncate(["a", "b"], 3)),
        ("text must be one str, not list", lambda c: c.split(["a", "b"], 3)),
        ("text must be one str, not bytes", lambda c: c.truncate(b"a", 1)),
        ("texts must be a list of items, not one str", lambda c: c.count_batch("a")),
        (
            "allowed_special: each token must be a str, not bytes",
            lambda c: c.count("a", allowed_special=[b"x"]),
        ),
        ("batch must be a list of items, not one bytes", lambda c: c.decode_batch(b"a")),
        ("ids must be a list of integers, not bytes", lambda c: c.decode(b"12")),
        ("messages must be a list of dicts, not str", lambda c: c.count_chat("hi", format="f")),
        ("messages must be a list of dicts, not dict", lambda c: c.count_chat({}, format="f")),
        ("messages must be a list of dicts, not int", lambda c: c.count_chat(5, format="f")),
        ("max_tokens must be an int, not str", lambda c: c.truncate("a", "5")),
        ("stop holds a value of a wrong type", lambda c: c.decode_stream([1], stop=[5])),
        ("limit must be an int, not list", lambda c: c.count("a", limit=[5])),
        ("marker must be a str, not dict", lambda c: c.truncate("a", 5, marker={})),
        (
            "format_options must be a mapping, not int",
            lambda c: c.count_chat([], format="f", format_options=5),
        ),
        (
            "format_options must be a mapping, not list",
            lambda c: c.count_chat([], format="f", format_options=[5]),
        ),
    ],
)
def test_the_message_for_a_wrong_type(client: TokenizerClient, message: str, act: Act) -> None:
    with pytest.raises(TypeError, match=re.escape(message) + "$"):
        act(client)
