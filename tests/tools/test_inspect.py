"""`bytepair inspect` describes a file, and the lines that it prints load the described encoding."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import EncodingSpec, VocabularyError, get_encoding, load_encoding
from bytepair_engine.inspection import inspect_file
from bytepair_engine.vocabulary.patterns import PATTERNS
from bytepair_tools.commands import inspect
from bytepair_tools.shared.declaration import declaration
from support.sentencepiece_models import trained
from support.tokenizer_json import framed, made, template

RANKS = files("bytepair_engine") / "data" / "r50k_base.tiktoken"
Capture = pytest.CaptureFixture[str]


def inspected(capsys: Capture, *arguments: str, status: int = 0) -> list[dict[str, Any]]:
    assert inspect.run(["--json", *arguments]) == status
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def declared(lines: str) -> EncodingSpec:
    [(name, table)] = tomllib.loads(lines)["encodings"].items()
    return EncodingSpec.from_mapping(name, table, Path("/nowhere"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / 'my "gemma".model'
    file.write_bytes(trained("gemma"))
    return file


def test_the_printed_lines_load_the_described_encoding(capsys: Capture, model: Path) -> None:
    [found] = inspected(capsys, str(model))
    spec = declared(found["configuration"])
    assert (spec.name, spec.format) == ('my "gemma"', "sentencepiece")
    encoding = load_encoding(spec)
    assert encoding.fingerprint == found["fingerprint"] == spec.fingerprint
    assert found["n_vocab"] == encoding.n_vocab
    assert found["special_tokens"] == dict(encoding.special_tokens)
    assert "<start_of_turn>" in found["always_found"]
    assert any(step.startswith("Spacing(") for step in found["steps"])


def test_the_report_warns_of_symbols_that_any_text_can_contain(
    capsys: Capture, model: Path
) -> None:
    assert inspect.run([str(model)]) == 0
    printed = capsys.readouterr().out
    assert "format:         sentencepiece: a SentencePiece model\n" in printed
    assert "# 2: '<start_of_turn>', '<table>'\n" in printed
    lines = printed[printed.index("[encodings") :]
    assert declared(lines).also_special == ()

    assert (
        inspect.run(["--also-special", "<start_of_turn>", "--also-special", "<table>", str(model)])
        == 0
    )
    printed = capsys.readouterr().out
    assert "# 2:" not in printed
    guarded = load_encoding(declared(printed[printed.index("[encodings") :]))
    assert {"<start_of_turn>", "<table>"} <= set(guarded.special_tokens)


def test_a_rank_file_needs_a_pattern(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(RANKS.read_bytes())
    [found] = inspected(capsys, str(file))
    assert (found["format"], found["official"]) == ("tiktoken", ["r50k_base"])
    assert found["missing"].startswith("pattern: ")
    assert "fingerprint" not in found
    # The lines are complete nevertheless, because the table is known.
    assert load_encoding(declared(found["configuration"])).pattern == PATTERNS["gpt2"]

    [found] = inspected(capsys, "--pattern", "gpt2", "--name", "r", str(file))
    assert (found["missing"], found["backend"], found["can_stream_text"]) == ("", "native", True)
    encoding = load_encoding(declared(found["configuration"]))
    text = "Hello, naïve world"
    assert encoding.encode(text) == get_encoding("r50k_base").encode(text)

    assert inspect.run([str(file)]) == 0
    printed = capsys.readouterr().out
    assert '# This table is built in: extends = "r50k_base" needs no file.\n' in printed
    assert "# Not yet complete: pattern: this file does not contain one" in printed


def test_rejected_inputs_are_reported_and_the_others_are_described(
    capsys: Capture, model: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.model"
    page.write_bytes(b"<!DOCTYPE html>")
    rejected, absent, good = inspected(
        capsys, str(page), str(tmp_path / "absent"), str(model), status=1
    )
    assert rejected == {
        "file": str(page),
        "error": f"{page}: it is a web page; fetch the file itself",
    }
    assert "it cannot be read" in absent["error"]
    assert good["format"] == "sentencepiece"
    assert inspect.run([str(page)]) == 1
    assert capsys.readouterr().err == f"bytepair: {rejected['error']}\n"


def test_wrong_usage(capsys: Capture, model: Path) -> None:
    assert inspect.run(["--name", "a", str(model), str(model)]) == 2
    for arguments in ([], ["--unknown"]):
        with pytest.raises(SystemExit, match=r"^2$"):
            inspect.run(arguments)
    with pytest.raises(SystemExit, match=r"^0$"):
        inspect.run(["--help"])
    assert "usage: bytepair inspect" in capsys.readouterr().out


def test_it_is_a_command_of_bytepair(model: Path) -> None:
    program = str(Path(sys.executable).with_name("bytepair"))
    command = [program, "inspect", "--json", str(model)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)[0]["format"] == "sentencepiece"


def test_every_value_round_trips_through_toml() -> None:
    values: dict[str, object] = {
        "text": 'a"b\\c\n\t\r\x00\x7f é 🙂',
        "list": ["<|a|>", '"'],
        "table": {'"<|x|>"': 5},
        "empty": "",
        "nothing": None,
    }
    name = 'an "odd" näme'
    read = tomllib.loads("\n".join(declaration(name, values)))
    kept = {key: value for key, value in values.items() if value}
    assert read == {"encodings": {name: kept}}


def test_gzip_files_are_read(capsys: Capture, tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.model", tmp_path / "b.model.gz"
    plain.write_bytes(trained("llama"))
    packed.write_bytes(gzip.compress(trained("llama")))
    first, second = inspected(capsys, str(plain), str(packed))
    for key in ("sha256", "fingerprint", "format"):
        assert first[key] == second[key]


def test_the_template_is_shown(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "made.json"
    for kind in ("byte level", "spaces normalised"):
        for single, message in (
            ("<s> $A </s>", ["<s> … </s>"]),
            ("$A </s>", ["… </s>"]),
            ("$A", []),
        ):
            file.write_bytes(framed(kind, template(single)))
            [found] = inspected(capsys, str(file))
            frames = [step for step in found["steps"] if "add_special_tokens" in step]
            assert [step.partition(": ")[2] for step in frames] == message


#: What a token at an end of the sequence decodes to.
ENDS = "decode by the position in the sequence: tokens at the start or the end lose a space"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "steps", "streams"),
    [
        (
            trained("gemma"),
            [
                "Spacing(table=<0 bytes>, kept=<6 strings>, tidy=False, pad='nowhere', mark='▁')",
                "merge characters, the highest score first",
                "fall back to the tokens of single bytes",
            ],
            True,
        ),
        (
            trained("default"),
            [
                "Spacing(table=<240007 bytes>, kept=(), tidy=True, pad='before', mark='▁')",
                "merge characters, the highest score first",
                ENDS,
            ],
            True,
        ),
        (
            made("normalised, NFC"),
            [
                "UnicodeForm(form='NFC')",
                r"Split(pattern='\\w+|[^\\w\\s]+', behaviour='removed', inverted=True)",
                "merge characters, by the list of merges",
                ENDS,
            ],
            True,
        ),
        (
            made("stripped"),
            ["Strip(left=True, right=False)", "merge bytes, by the list of merges"],
            False,
        ),
    ],
    ids=["gemma", "default", "normalised", "stripped"],
)
def test_the_steps_are_those_of_the_file(
    capsys: Capture, data: bytes, steps: list[str], streams: bool, tmp_path: Path
) -> None:
    file = tmp_path / "a.model"
    file.write_bytes(data)
    [found] = inspected(capsys, str(file))
    assert (found["steps"], found["can_stream_text"]) == (steps, streams)


def test_all_missing_keys_of_merges_are_named(tmp_path: Path) -> None:
    file = tmp_path / "merges.txt"
    file.write_bytes(b"#version: 0.2\n")
    missing = inspect_file(EncodingSpec(name="m", file=file)).missing
    assert missing.startswith("pattern: ")
    assert "; encoder_file: " in missing
    given = inspect_file(EncodingSpec(name="m", file=file, encoder_file=file)).missing
    assert "encoder_file" not in given


def test_a_declaration_without_a_file_is_rejected() -> None:
    with pytest.raises(VocabularyError, match="no file is given"):
        inspect_file(EncodingSpec(name="m"))


def test_long_values_are_shortened(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "a.tiktoken"
    file.write_bytes(RANKS.read_bytes())
    [found] = inspected(capsys, "--pattern", "(?:" + "a|" * 200 + "b)", str(file))
    assert found["steps"][0] == "split by (?:" + "a|" * 98 + "a…"
