"""`bytepair train` and `bytepair extend`: their files can be served and used by a client."""

from __future__ import annotations

import codecs
import gzip
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bytepair_engine
import pyarrow
import pytest
import zstandard
from bytepair_client import TokenizerClient
from pyarrow import parquet
from support.in_process import Command
from support.serving import RunningServer, clean_environment
from support.shell import command
from support.tokenizer_json import framed, template
from support.training import TEXTS, USUAL


def test_a_trained_vocabulary_is_served(
    shell: Command, tmp_path: Path, serve: Callable[..., RunningServer]
) -> None:
    for number, text in enumerate(TEXTS):
        (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
    files = [f"{number}.txt" for number in range(len(TEXTS))]
    printed = shell("train", *files, *USUAL, "--special", "<|end|>", "--output", "mine")
    assert printed.startswith("1,000 tokens, ")
    addresses = "--grpc-address 127.0.0.1:50051 --http-address 127.0.0.1:9464"
    assert printed.endswith(f"--config mine/bytepair.toml {addresses}\n")
    expected = bytepair_engine.train(
        TEXTS, vocab_size=1000, pattern="gpt2", special_tokens=["<|end|>"]
    )
    loaded = bytepair_engine.load_encoding(tmp_path / "mine/bytepair.toml")
    assert (loaded.name, loaded.fingerprint) == ("mine", expected.fingerprint)
    shell("extend", "mine/bytepair.toml", "--special", "<|user|>", "--output", "chat")
    lines = [tmp_path / name / "bytepair.toml" for name in ("mine", "chat")]
    for file in ("mine/mine.tiktoken", "chat/chat.tiktoken"):
        (tmp_path / file).rename(tmp_path / Path(file).name)
    (tmp_path / "both.toml").write_text("".join(file.read_text() for file in lines))
    server = serve("--config", str(tmp_path / "both.toml"))
    with TokenizerClient(server.target, encoding="mine") as client:
        assert client.encode(TEXTS[0]) == expected.encode(TEXTS[0])
        assert client.get_encoding("mine").fingerprint == expected.fingerprint
        about = client.get_encoding("chat")
        assert about.special_tokens == {"<|end|>": 999, "<|user|>": 1000}


def test_every_format_gives_the_same_table(shell: Command, tmp_path: Path) -> None:
    """One document per text. The distribution over files and the compression do not matter."""
    rows = "".join(json.dumps({"body": text}) + "\n" for text in TEXTS).encode()
    (tmp_path / "a.jsonl").write_bytes(codecs.BOM_UTF8 + rows)
    (tmp_path / "a.ndjson.gz").write_bytes(gzip.compress(rows))
    half = len(rows) // 2
    frames = [zstandard.ZstdCompressor().compress(part) for part in (rows[:half], rows[half:])]
    (tmp_path / "a.jsonl.zst").write_bytes(b"".join(frames))
    parquet.write_table(
        pyarrow.table({"n": [1] * len(TEXTS), "body": TEXTS}), tmp_path / "a.parquet"
    )
    for number, text in enumerate(TEXTS):
        (tmp_path / f"{number}.txt.gz").write_bytes(gzip.compress(text.encode()))
    texts = [f"{number}.txt.gz" for number in reversed(range(len(TEXTS)))]
    made: list[bytes] = []
    for inputs, more in (
        (["a.jsonl"], ()),
        (["a.ndjson.gz"], ("--threads", "3")),
        (["a.jsonl.zst"], ("--memory", "1")),
        (["a.parquet"], ()),
        (texts, ()),
    ):
        folder = str(len(made))
        shell(
            "train", *inputs, *USUAL, *more, "--column", "body", "--output", folder, "--name", "x"
        )
        made.append((tmp_path / folder / "x.tiktoken").read_bytes())
    assert set(made) == {made[0]}


def test_lines_are_documents_if_requested(shell: Command, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ab\nab\nab\n")
    usual = ("train", "a.txt", "--vocab-size", "259", "--no-pattern", "--output")
    assert shell(*usual, "whole").startswith("259 tokens")
    lines = shell(*usual, "lines", "--format", "lines", errors="after 2 merges, because no pair")
    assert lines.startswith("258 tokens")


@pytest.mark.parametrize(
    ("invalid", "message"), [("replace", "1 documents with repl"), ("skip", "1 skipped")]
)
def test_invalid_utf8_is_rejected_replaced_or_skipped(
    shell: Command, tmp_path: Path, invalid: str, message: str
) -> None:
    (tmp_path / "good.txt").write_text("a word and a word")
    (tmp_path / "bad.txt").write_bytes(b"x" * 70_000 + b"\xe4\xb8" + b"a word" * 200_000)
    files = ("train", "good.txt", "bad.txt", *USUAL, "--output", "out")
    rejection = "bad.txt: not UTF-8: byte 70000 starts no character"
    shell(*files, status=1, errors=rejection)
    shell(*files, "--invalid", invalid, errors=message)
    (tmp_path / "bad.jsonl").write_bytes(b'{"text": "a"}\n{"text": "\\ud800"}\n{"text": "\xff"}\n')
    lines = ("train", "bad.jsonl", "good.txt", *USUAL, "--output", "rows")
    shell(*lines, status=1, errors="bad.jsonl, line 2: a lone surrogate at character 0")
    shell(*lines, "--invalid", invalid, errors=message.replace("1", "2"))


@pytest.mark.parametrize(
    ("invalid", "message"),
    [("replace", "2 documents with replacements, 0 skip"), ("skip", "replacements, 2 skipped")],
)
def test_invalid_documents_are_reported_once(
    shell: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invalid: str, message: str
) -> None:
    """Also those of a file that is read again from its start."""
    monkeypatch.setattr("bytepair_tools.counts.reading.BATCH_CHARACTERS", 1)
    rows = b'{"text": "\\ud800"}\n{"text": "a word"}\n'
    (tmp_path / "a.jsonl").write_bytes(rows)
    (tmp_path / "b.jsonl").write_bytes(rows + b'{"text": ?? }\n')
    train = ("train", "a.jsonl", "b.jsonl", *USUAL, "--invalid", invalid, "--output", "out")
    shell(*train, status=1, errors="b.jsonl, line 3: not JSON")
    modified = (tmp_path / "b.jsonl").stat().st_mtime_ns
    (tmp_path / "b.jsonl").write_bytes(rows + b'{"text": ""}\n\n')
    later = modified + 2_000_000_000  # whatever the resolution of the file system's times
    os.utime(tmp_path / "b.jsonl", ns=(later, later))
    changed = "belongs to a training with other files"
    shell(*train, "--resume", status=1, errors=changed)  # also one of the same size
    os.utime(tmp_path / "b.jsonl", ns=(modified, modified))
    shell(*train, "--resume", errors=message)


def test_a_training_resumes_with_a_repaired_file(
    shell: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its earlier version was not counted; that of an earlier file was."""
    monkeypatch.setattr("bytepair_tools.counts.reading.BATCH_CHARACTERS", 1)
    first, second, rows = tmp_path / "a.jsonl", tmp_path / "b.jsonl", b'{"text": "a word"}\n'
    first.write_bytes(rows)
    second.write_bytes(b"?\n")
    train = ("train", "a.jsonl", "b.jsonl", *USUAL, "--output")
    shell(*train, "out", status=1, errors="b.jsonl, line 1: not JSON")
    second.write_bytes(rows * 2)
    for changed in [*train[:2], *train[3:]], ["train", "a.jsonl", *train[1:]]:
        shell(
            *changed, "out", "--resume", status=1, errors="belongs to a training with other files"
        )
    modified = first.stat().st_mtime_ns
    first.write_bytes(rows * 2)
    shell(*train, "out", "--resume", status=1, errors="belongs to a training with other files")
    first.write_bytes(rows)
    os.utime(first, ns=(modified, modified))
    shell(*train, "out", "--resume", errors="instead of 1,000")
    shell(*train, "whole/out", errors="instead of 1,000")
    for file in "out.tiktoken", "tokenizer.json":
        assert (tmp_path / "out" / file).read_bytes() == (
            tmp_path / "whole/out" / file
        ).read_bytes()


def in_parquet(*columns: list[Any]) -> bytes:
    """A Parquet file of columns with the same name."""
    file = pyarrow.BufferOutputStream()
    names = ["text"] * len(columns)
    parquet.write_table(pyarrow.Table.from_arrays([*map(pyarrow.array, columns)], names), file)
    data: bytes = file.getvalue().to_pybytes()
    return data


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("no.txt", None, "no.txt: No such file or directory"),
        ("empty.txt", b"", "there is no text to train on"),
        ("a.jsonl", b'{"text": 5}\n', "a.jsonl, line 1: no text under 'text'"),
        ("a.jsonl", b'{"text": "a"}\n{"te', "a.jsonl, line 2: not JSON"),
        ("a.txt.gz", gzip.compress(b"a" * 5000, mtime=0)[:-9], "a.txt.gz: incomplete"),
        ("a.zst", zstandard.ZstdCompressor().compress(b"a" * 50)[:4] + b"\x00" * 9, "incomplete"),
        ("a.parquet", b"PAR1 and no more", "a.parquet: not a Parquet file"),
        ("a.bin", b"PAR1", "a Parquet file; use --format parquet"),
        ("b.parquet", in_parquet([b"a"]), "b.parquet, row 1: no text in column 'text', but binary"),
        ("n.parquet", in_parquet(["a", None]), "row 2: no text in column 'text', but null; set"),
        ("t.parquet", in_parquet(["a"], ["b"]), "t.parquet: several columns 'text'; rename them"),
    ],
)
def test_bad_input(
    shell: Command, tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    shell("train", name, *USUAL, "--output", "out", status=1, errors=message)
    assert list((tmp_path / "out").glob("*.tiktoken")) == []


def test_wrong_arguments(shell: Command, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some text")
    few = ("train", "a.txt", "--vocab-size", "256", "--pattern", "gpt2", "--output", "out")
    shell(*few, "--special", "<s>", status=2, errors="must be from 257")
    shell(*few, "--threads", "-1", status=2, errors="argument --threads: '-1' is not a number of 0")
    shell(*few, "--memory", "0", status=2, errors="train: --memory must be at least 1")
    shell("train", "a.txt", *USUAL, "--output", "o", "--resume", status=1, errors="no checkpoint")
    left = "because no pair is left: 263 tokens instead of 1,000"
    made = shell("train", "a.txt", *USUAL, "--output", "out", errors=left)
    often = ("--min-frequency", "2", "--output", "often")
    shell("train", "a.txt", *USUAL, *often, errors="because no pair occurs 2 times or more: 256 ")
    assert "to serve it: bytepair-server --config out/bytepair.toml --grpc" in made
    spaced = ("train", "a.txt", *USUAL, "--output", "a b/out")
    assert "--config 'a b/out/bytepair.toml' --grpc" in shell(*spaced, errors="instead")
    shell("train", "a.txt", *USUAL, "--output", "out", status=1, errors="already")
    for special in ("x=-1", "x=1.5", "x=+5"):
        extend = ("extend", "cl100k_base", "--special", special, "--output", "y")
        shell(*extend, status=1, errors=f"--special '{special}': '{special[2:]}' is not an id")
    shell("extend", "cl100k_base", "--special", "x=3", "--output", "y", status=1, errors="its id 3")
    shell("extend", "r9k_base", "--special", "x", "--output", "y", status=1, errors="unknown enc")
    ranks = ("extend", "out/out.tiktoken", "--special", "x", "--output", "y")
    shell(*ranks, status=1, errors="or use a TOML file that declares an encoding")


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "-", "-", *USUAL, "--output", "out"),
        ("count-pretokens", "-", "-", "--pattern", "gpt2", "--output", "out"),
        ("evaluate", "gpt2", "--on", "-", "-"),
    ],
)
def test_standard_input_is_read_once(shell: Command, arguments: tuple[str, ...]) -> None:
    shell(*arguments, status=2, errors="standard input: given twice")


def test_no_existing_file_is_replaced(shell: Command, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some text")
    train = ("train", "a.txt", "--vocab-size", "258", "--pattern", "gpt2", "--output")
    extend = ("extend", "gpt2", "--special", "x", "--output")
    for name, commands in (("bytepair.toml", (train, extend)), ("tokenizer.json", (train,))):
        file = tmp_path / name.partition(".")[0] / name
        file.parent.mkdir()
        file.write_text("mine")
        for arguments in commands:
            folder = file.parent.name
            shell(*arguments, folder, status=1, errors=f"{folder}: {name} already exists")
        assert list(file.parent.iterdir()) == [file]
        assert file.read_text() == "mine"


@pytest.mark.slow
def test_output_is_utf_8_in_every_locale(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some text")
    folder = os.fsdecode(b"\xffout")
    training = ("train", "a.txt", "--vocab-size", "257", "--pattern", "gpt2", "--name", "x")
    for arguments, encoding, printed in (
        ((*training, "--output", folder), "utf-8:strict", b"\xffout: x.tiktoken"),
        (("explain", "caf\xe9", "--encoding", "gpt2"), "ascii", b'"caf\xc3\xa9"'),
    ):
        run = subprocess.run(
            command(*arguments),
            cwd=tmp_path,
            capture_output=True,
            env=clean_environment(PYTHONIOENCODING=encoding),
            check=False,
        )
        assert (run.returncode, run.stderr) == (0, b"")
        assert printed in run.stdout


def test_the_command_proposes_a_pattern_and_a_name(shell: Command, tmp_path: Path) -> None:
    (tmp_path / "My notes.txt").write_text(TEXTS[0], encoding="utf-8")
    usual = ("train", "My notes.txt", "--vocab-size", "32000")
    proposed = "--pattern o200k_base suits"
    shell(*usual, "--output", "mine", status=2, errors=proposed)
    rejected = shell(*usual, "--pattern", "gpt2", "--output", "/", status=2, errors="my-notes-32k")
    assert rejected == ""
    counted = ("count-pretokens", "My notes.txt", "--output", "counts.parquet")
    shell(*counted, status=2, errors="--pattern o200k_base suits")


@pytest.mark.parametrize("name", ["a/b", "two\nlines", os.fsdecode(b"\xff")])
def test_invalid_names_are_rejected_before_the_work(
    shell: Command, tmp_path: Path, name: str
) -> None:
    message = f"{name!r} is not a valid name for an encoding"
    for work in (("train", "missing.txt", *USUAL), ("extend", "gpt2", "--special", "x")):
        shell(*work, "--output", "out", "--name", name, status=2, errors=message)
    assert not (tmp_path / "out").exists()


def test_extending_a_vocabulary_with_a_template_is_rejected(shell: Command, tmp_path: Path) -> None:
    """The written rank file would lack the template."""
    (tmp_path / "tokenizer.json").write_bytes(framed("byte level", template("<s> $A")))
    (tmp_path / "framed.toml").write_text('name = "framed"\nfile = "tokenizer.json"\n')
    extend = ("extend", "framed.toml", "--special", "x", "--output", "more")
    shell(*extend, status=1, errors="has a template (<s>")
    assert not (tmp_path / "more").exists()


def test_progress_is_machine_readable(shell: Command, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXTS[0])
    lines = shell("train", "a.txt", *USUAL, "--json", "--output", "out").splitlines()
    done, written = map(json.loads, lines[-2:])
    assert (done["phase"], done["merges"], done["merges_wanted"]) == ("done", 744, 744)
    assert written["phase"] == "written"
    assert written["complete"] is True
    assert written["text_bytes"] == len(TEXTS[0].encode())
    ratio = written["text_bytes"] / written["text_tokens"]
    assert done["bytes_per_token"] == pytest.approx(ratio, abs=1e-4)
