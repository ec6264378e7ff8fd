"""A damaged or replaced vocabulary file: the server does not start, or serves the other
encodings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import bytepair_engine
import grpc
import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_engine.pipeline.byte_alphabet import BYTE_ALPHABET
from support.check_config import check_config
from support.context_formats import written
from support.failures import failure
from support.serving import RunningServer, run_to_end, write_config

pytestmark = pytest.mark.slow  # each test starts a process

TABLES = Path(bytepair_engine.__file__).parent / "data"


def table(name: str) -> bytes:
    return (TABLES / f"{name}.tiktoken").read_bytes()


GOOD, OTHER = table("r50k_base"), table("p50k_base")
GOOD_HASH = hashlib.sha256(GOOD).hexdigest()


def corrupted(data: bytes) -> bytes:
    return data[:1000] + bytes([data[1000] ^ 1]) + data[1001:]


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def swapped(_: bytes) -> bytes:
    return OTHER


def emptied(_: bytes) -> bytes:
    return b""


DAMAGES: list[Callable[[bytes], bytes]] = [corrupted, truncated, swapped, emptied]


@pytest.mark.parametrize(
    "kind",
    ["byte level without all bytes", "words, unknown", "normalised, Lowercase", "case folding"],
)
def test_a_vocabulary_that_changes_text_is_rejected_by_name(kind: str, tmp_path: Path) -> None:
    """It loses half of a character, or the whole character; or it maps the case of letters."""
    file = written(kind, tmp_path)
    config = write_config(
        tmp_path, f"builtin_encodings = []\n[encodings.mine]\nfile = '{file.name}'\n"
    )
    ended = check_config("--config", config)
    assert ended.returncode == 2
    assert ended.stderr.startswith("bytepair-server: mine: the self-test's text does not ")
    assert "serve_without_bad_encodings" in ended.stderr
    assert "Traceback" not in ended.stderr


def configure(
    folder: Path, data: bytes, settings: str = "", pin: str = f'sha256 = "{GOOD_HASH}"'
) -> str:
    (folder / "mine.tiktoken").write_bytes(data)
    return write_config(
        folder,
        f"""{settings}
builtin_encodings = ["cl100k_base"]
[encodings.mine]
file = "mine.tiktoken"
pattern = "r50k_base"
{pin}
[ceiling.default]
mine = []
""",
    )


def refused(config: str, *flags: str) -> str:
    """The errors of a server that does not start."""
    addresses = ("--grpc-address", "127.0.0.1:0", "--http-address", "none")
    ended = run_to_end("--config", config, *addresses, *flags)
    assert ended.returncode == 2, ended.stderr
    return ended.stderr


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_changed_between_restarts_is_rejected_with_its_name_and_both_hashes(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    bad = damage(GOOD)
    said = refused(configure(tmp_path, bad), "--workers", "1")
    assert "mine.tiktoken" in said
    assert GOOD_HASH in said
    assert hashlib.sha256(bad).hexdigest() in said


@pytest.mark.parametrize("workers", ["1", "2"])
def test_with_serve_without_bad_encodings_the_others_are_served_and_the_error_is_logged(
    tmp_path: Path, workers: str
) -> None:
    config = configure(tmp_path, truncated(GOOD), "serve_without_bad_encodings = true")
    with RunningServer("--config", config, "--workers", workers) as server:
        request = tokenizer_pb2.CountRequest(encoding="cl100k_base", text="hello world")
        assert server.stub.Count(request).count == 2
        gone = tokenizer_pb2.CountRequest(encoding="mine", text="hello")
        failed = failure(server.stub.Count, gone)
        assert failed.code is grpc.StatusCode.NOT_FOUND
        assert "'mine' is configured, but its encoding could not be loaded" in failed.message
        assert server.get("/readyz") == (200, "ready, without mine\n")
        assert server.metric("bytepair_encoding_failed", encoding="mine") == 1
        assert server.metric("bytepair_encoding_info", encoding="cl100k_base") == 1
        why = server.wait_for_log("an encoding is not served: it cannot be loaded")
        assert why["encoding"] == "mine"
        assert GOOD_HASH in why["why"]
        server.wait_for_log("an encoding that could not be loaded was requested", name="mine")
        assert not any("[aliases]" in line["event"] for line in server.log)


def test_a_server_without_any_good_encoding_does_not_start(tmp_path: Path) -> None:
    config = configure(tmp_path, truncated(GOOD), "serve_without_bad_encodings = true")
    flags = ("--http-address", "none", "--workers", "1", "--builtin-encodings", "")
    assert "no encoding can be served: encodings.mine" in refused(config, *flags)


def test_check_config_reports_a_bad_encoding_that_would_be_left_out(tmp_path: Path) -> None:
    config = configure(tmp_path, truncated(GOOD), "serve_without_bad_encodings = true")
    ended = check_config("--config", config)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert GOOD_HASH in ended.stderr


def test_a_good_file_is_served(tmp_path: Path) -> None:
    with RunningServer("--config", configure(tmp_path, GOOD)) as server:
        request = tokenizer_pb2.CountRequest(encoding="mine", text="hello world")
        assert server.stub.Count(request).count == 2
        assert server.get("/readyz") == (200, "ready\n")
        assert server.metric("bytepair_encoding_failed") == 0


def said_of_good(config: str) -> str:
    """The warnings of `--check-config` for a good configuration."""
    ended = check_config("--config", config)
    assert (ended.returncode, ended.stdout) == (0, "configuration is good\n"), ended.stderr
    return ended.stderr


def test_an_unpinned_file_is_logged_with_the_line_that_pins_it(
    tmp_path: Path,
) -> None:
    unpinned = configure(tmp_path, GOOD, pin="")
    with RunningServer("--config", unpinned) as server:
        warned = server.wait_for_log(
            "this file is not pinned: add this line, so that a replaced file is rejected"
        )
    assert (warned["encoding"], warned["level"]) == ("mine", "warning")
    said = said_of_good(unpinned)
    assert f"{warned['event']} add='{warned['add']}' encoding=mine" in said
    assert "not pinned" not in said_of_good(configure(tmp_path, GOOD, pin=warned["add"]))
    refusal = refused(configure(tmp_path, OTHER, pin=warned["add"]))
    assert warned["add"].removeprefix("fingerprint = ").strip('"') in refusal
    assert f"encoding 'mine', {tmp_path / 'mine.tiktoken'}: " in refusal
    assert "not pinned" not in said_of_good(configure(tmp_path, GOOD))


def test_a_hash_of_one_of_two_files_does_not_pin_the_other(tmp_path: Path) -> None:
    merges = b"#version: 0.2\n"
    (tmp_path / "merges.txt").write_bytes(merges)
    ids = {character: number for number, character in enumerate(BYTE_ALPHABET)}
    (tmp_path / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    config = write_config(
        tmp_path,
        f"""
builtin_encodings = []
[encodings.pair]
file = "merges.txt"
encoder_file = "vocab.json"
pattern = "gpt2"
sha256 = "{hashlib.sha256(merges).hexdigest()}"
""",
    )
    said = said_of_good(config)
    assert "this file is not pinned" in said
    wrong = f'fingerprint = "sha256:{"0" * 64}"'
    Path(config).write_text(Path(config).read_text(encoding="utf-8") + wrong, encoding="utf-8")
    refusal = refused(config)
    assert f"{tmp_path / 'merges.txt'}, {tmp_path / 'vocab.json'}: its fingerprint" in refusal


def test_an_extended_built_in_encoding_needs_no_pin(tmp_path: Path) -> None:
    config = write_config(
        tmp_path,
        """
builtin_encodings = []
[encodings.mine]
extends = "r50k_base"
special_tokens = { "<|mine|>" = 60000 }
""",
    )
    assert "not pinned" not in said_of_good(config)
