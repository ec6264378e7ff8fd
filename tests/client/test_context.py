"""Truncate, split and inspect: both clients and the command return what the engine returns."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from bytepair_client import BudgetTooSmall, InputTooLarge, InvalidOption, InvalidUtf8
from bytepair_engine import get_encoding
from bytepair_engine.context.inspecting import FindingCode
from bytepair_engine.context.truncating import truncated
from support.clients import Clients
from support.context_laws import AWKWARD
from support.serving import RunningServer
from support.shell import Shell

NAME = "cl100k_base"
TEXT = "One two. Three 🧠 four!\n\nFive six seven, eight. " * 40


@pytest.mark.slow
def test_methods_return_what_the_engine_returns(clients: Clients, server: RunningServer) -> None:
    client, engine = clients(server.target, encoding=NAME), get_encoding(NAME)
    for text in AWKWARD:
        for keep in ("start", "end", "both"):
            given: dict[str, Any] = {"keep": keep, "level": "word", "marker": "~"}
            assert client.truncate(text, 7, **given) == engine.truncate(text, 7, **given)
        expected = engine.split(text, 20, overlap_tokens=5, level="sentence")
        found = client.split(text, 20, overlap_tokens=5, level="sentence")
        assert [fields(chunk) for chunk in found] == [fields(chunk) for chunk in expected]
        inspection, inspected = client.inspect(text), engine.inspect(text)
        assert inspection.totals == {code.name: n for code, n in inspected.totals.items()}
        assert (inspection.count, inspection.stable_end) == (inspected.count, inspected.stable_end)
        places = [(f.code, f.start, f.end) for f in inspection.findings]
        assert places == [(f.code.name, f.start, f.end) for f in inspected.findings]
    whole = client.truncate_batch([*AWKWARD, TEXT], 9)
    assert whole == [engine.truncate(text, 9) for text in [*AWKWARD, TEXT]]


def fields(chunk: Any) -> tuple[Any, ...]:
    return chunk.start, chunk.end, chunk.count, chunk.level, chunk.overlap, chunk.text


def test_a_stream_gives_the_chunks_of_the_whole(clients: Clients, server: RunningServer) -> None:
    client = clients(server.target, encoding=NAME)
    data = TEXT.encode()
    pieces = [data[i : i + 97] for i in range(0, len(data), 97)]
    stream = client.split_stream(pieces, 30, overlap_tokens=10)
    assert list(stream) == client.split(TEXT, 30, overlap_tokens=10)
    assert stream.last.bytes_consumed == len(data)
    assert stream.last.finished


def test_a_large_text_is_streamed(clients: Clients, server: RunningServer) -> None:
    small = clients(server.target, encoding=NAME, max_unary_bytes=500)
    large = clients(server.target, encoding=NAME)
    assert small.split(TEXT, 30) == large.split(TEXT, 30)


@pytest.mark.slow
def test_a_part_of_a_large_text_is_truncated(clients: Clients, server: RunningServer) -> None:
    """Beyond the client's limit, and beyond the server's."""
    engine = get_encoding(NAME)
    text = "é🧠 " * 200 + TEXT * 3000 + "The end. 🇩🇪"
    assert len(text.encode()) > 5_000_000  # more than the server's message limit
    for client in (
        clients(server.target, encoding=NAME, max_unary_bytes=4000),
        clients(server.target, encoding=NAME, max_unary_bytes=100_000_000),
    ):
        for keep in ("start", "end"):
            options: Any = {"keep": keep, "level": "word", "marker": " …"}
            expected = truncated(engine, text, 50, **options)
            answer = client.with_raw_response.truncate(text, 50, **options)
            assert (answer.text, answer.count) == (expected.text, expected.count)
            kept = [(part.start, part.end) for part in answer.kept]
            assert kept == list(expected.kept)
            assert client.truncate_batch(["a b", text], 50, **options) == ["a b", expected.text]
        with pytest.raises(
            InputTooLarge, match="bytes is too short to decide where the text is cut"
        ):
            client.truncate(text, 1_500_000)
    small = clients(server.target, encoding=NAME, max_unary_bytes=4000)
    with pytest.raises(InputTooLarge, match='; keep="both" needs all of the text in one request'):
        small.truncate(text, 50, keep="both")
    specials: list[Any] = [{"disallowed_special": "all"}, {"allowed_special": "all"}]
    for special in specials:
        with pytest.raises(InputTooLarge, match='disallowed_special="all" need all of the text'):
            small.truncate(text, 50, **special)
    with pytest.raises(InvalidUtf8) as surrogate:
        small.truncate("é" * 5000 + "\ud800", 50, keep="end")
    assert surrogate.value.byte_offset == 10_000


def test_errors_name_the_argument(clients: Clients, server: RunningServer) -> None:
    client: Any = clients(server.target, encoding=NAME)
    with pytest.raises(BudgetTooSmall) as small:
        client.split("a 🧠", 1)
    assert (small.value.needed, small.value.budget) == (3, 1)
    calls: list[Any] = [
        lambda: client.truncate("a", 1, keep="middle"),
        lambda: client.split("a", 1, level="letter"),
        lambda: client.split("a", 4, overlap_tokens=3),
    ]
    for call in calls:
        with pytest.raises(InvalidOption):
            call()


@pytest.mark.slow
def test_commands(server: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    shell = Shell(tmp_path, server.target)
    engine = get_encoding("o200k_base")
    assert shell("truncate", "--max-tokens", "9", "a.txt") == engine.truncate(TEXT, 9)
    output = json.loads(shell("truncate", "--max-tokens", "9", "--keep", "end", "--json", "a.txt"))
    assert output["files"][0]["text"] == engine.truncate(TEXT, 9, keep="end")
    several = ("truncate", "--max-tokens", "9", "a.txt", "a.txt")
    assert shell(*several, status=2, errors="several files needs --json") == ""
    assert len(json.loads(shell(*several, "--json"))["files"]) == 2
    lines = shell("split", "--max-tokens", "30", "--level", "sentence", "a.txt").splitlines()
    chunks = engine.split(TEXT, 30, level="sentence")
    assert [json.loads(line)["text"] for line in lines] == [chunk.text for chunk in chunks]
    assert json.loads(lines[0])["file"] == "a.txt"
    assert "0-13 SPECIAL_TOKEN_SPELLED <|endoftext|>\n" in shell(
        "inspect-text", stdin=b"<|endoftext|> "
    )
    assert set(re.findall("^[A-Z_]+(?= {2})", shell("inspect-text", "--help"), re.MULTILINE)) == {
        code.name for code in FindingCode
    }
    shell(
        "split",
        "--max-tokens",
        "1",
        stdin="🧠".encode(),
        status=1,
        errors="needs 3 tokens, and the limit is 1",
    )
