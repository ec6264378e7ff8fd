"""The template of an encoding, added by both clients and the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bytepair_client import SpecialTokenNotPermitted
from support.clients import Clients
from support.serving import RunningServer, write_config
from support.shell import Shell
from support.tokenizer_json import framed, oracle_of, template

pytestmark = pytest.mark.slow  # it starts servers for few tests

DATA = framed("byte level", template("<s> $A </s>"))
TEXT = "hello </s> world"
FRAMED: dict[str, Any] = {"add_special_tokens": True, "disallowed_special": ()}


@pytest.fixture(scope="module")
def framing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("templates")
    (folder / "made.json").write_bytes(DATA)
    declared = '[encodings.{0}]\nfile = "made.json"\n'
    config = declared.format("made") + declared.format("guarded")
    config += '[ceiling.default]\nmade = "ALL"\n'
    with RunningServer("--config", write_config(folder, config)) as running:
        yield running


def oracle(text: str) -> list[int]:
    judged = oracle_of(DATA)
    judged.encode_special_tokens = True  # special tokens in the text stay text
    ids: list[int] = judged.encode(text).ids
    return ids


@pytest.mark.parametrize("max_unary_bytes", [2**20, 4])  # in one request, and in a stream
def test_every_method_adds_the_template(
    framing: RunningServer, clients: Clients, max_unary_bytes: int
) -> None:
    client = clients(framing.target, encoding="made", max_unary_bytes=max_unary_bytes)
    ids = oracle(TEXT)
    assert client.encode(TEXT, **FRAMED) == ids
    assert client.count(TEXT, **FRAMED) == len(ids)
    assert client.count(TEXT, limit=3, **FRAMED) == 4
    assert client.encode_batch([TEXT, ""], **FRAMED) == [ids, oracle("")]
    assert client.count_batch([TEXT, ""], **FRAMED) == [len(ids), 2]
    assert client.encode_with_offsets("ab", **FRAMED).offsets[-1] == 2
    assert [i for piece in client.encode_stream([TEXT], **FRAMED) for i in piece] == ids
    assert client.count_stream([TEXT], **FRAMED) == len(ids)
    assert client.encode(TEXT, disallowed_special=()) == ids[1:-1]


def test_the_server_must_permit_it(framing: RunningServer, clients: Clients) -> None:
    client = clients(framing.target, encoding="guarded")
    with pytest.raises(SpecialTokenNotPermitted, match="<s>"):
        client.count(TEXT, add_special_tokens=True)


def test_a_template_is_described(framing: RunningServer, clients: Clients) -> None:
    info = clients(framing.target).get_encoding("guarded")
    assert (info.template_before, info.template_after) == (("<s>",), ("</s>",))


def test_the_command_adds_the_template(framing: RunningServer, tmp_path: Path) -> None:
    shell = Shell(tmp_path, framing.target)
    shell.variables["BYTEPAIR_ENCODING"] = "made"
    ids = oracle("ab")
    assert shell("encode", "--add-special-tokens", stdin=b"ab").split() == [*map(str, ids)]
    assert shell("count", "--add-special-tokens", stdin=b"ab") == f"{len(ids)}\n"
    assert json.loads(shell("encodings", "--json", "made"))[0]["template_before"] == ["<s>"]
    assert "template_after:" in shell("encodings", "made")
