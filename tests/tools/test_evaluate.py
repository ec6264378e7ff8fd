"""`bytepair evaluate`: its numbers by their definitions, its inputs and its output."""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow
import pytest
import yaml
from bytepair_engine import Encoding, EncodingSpec, get_encoding, load_encoding
from bytepair_tools.evaluation.evaluation import evaluate
from bytepair_tools.evaluation.measures import Counts
from bytepair_tools.evaluation.segments import Segmenter
from bytepair_tools.texts.documents import Documents
from pyarrow import parquet
from support.hard_text import random_texts
from support.in_process import Command
from support.sentencepiece_models import trained
from support.tokenizer_json import made

DATA = [{"name": f"worker-{n}", "ports": [8000 + n, 9000], "labels": {"a": "b"}} for n in range(30)]
TEXTS = {"en": ["The cat sat.", "It’s 2024 already!"], "ru": ["Кот сидел."], "ja": ["猫が座った。"]}


def encodings_of_every_kind(folder: Path) -> list[tuple[str, Encoding]]:
    """A named pattern, one that cannot be streamed, and pipelines that normalise text."""
    table = get_encoding("o200k_base")
    own = folder / "own.tiktoken"
    ranks = Path(__file__).parents[2] / "engine/python/bytepair_engine/data/r50k_base.tiktoken"
    own.write_bytes(ranks.read_bytes())
    model, file = folder / "tokenizer.model", folder / "made.json"
    model.write_bytes(trained("default"))
    file.write_bytes(made("byte level, prefix and NFC"))
    specs = [
        EncodingSpec(name="own", file=own, pattern=r"\p{L}+|\P{L}+"),
        EncodingSpec(name="sentencepiece", file=model),
        EncodingSpec(name="tokenizer.json", file=file),
    ]
    return [("o200k_base", table), *((spec.name, load_encoding(spec)) for spec in specs)]


def by_definition(encoding: Encoding, text: str) -> Counts:
    """Compute the numbers that docs/training.md defines, token by token and word by word."""
    size = len(text.encode())
    ids, found = encoding.encode_with_offsets(text, unit="byte", disallowed_special=())
    starts = [min(start, size - 1) for start in found]
    assert ids == encoding.encode_ordinary(text)
    unknown = None if encoding.pipeline is None else encoding.pipeline.model.unknown
    counts = Counts(size, len(text), len(ids), unknown=sum(i == unknown for i in ids))
    for _, block in Segmenter().blocks([text]):
        for spans in block.words.values() if block else ():
            for first, end in zip(spans.starts, spans.ends, strict=True):
                later = sum(first < start < end for start in starts)
                counts.words += 1
                counts.word_tokens += 1 + later
                counts.whole_words += later == 0
    return counts


@pytest.mark.slow
def test_numbers_equal_their_definitions(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    encodings = encodings_of_every_kind(tmp_path)
    tokens = encodings[0][1].token_byte_values()
    text = "\n".join(random_texts(random.Random(seed), tokens, 200)) + " <|endoftext|>"
    for name, encoding in encodings:
        (tmp_path / "text.txt").write_text(text, encoding="utf-8", newline="")
        found = evaluate(
            [(name, encoding)], [str(tmp_path / "text.txt")], Documents(), lambda _: None
        )
        [counts] = found.by(lambda _: "all")["all"]
        assert counts == by_definition(encoding, text)


@pytest.mark.slow
def test_a_large_document_is_read_in_blocks(tmp_path: Path) -> None:
    """Its numbers equal those of the whole, with more than one block and piece."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    text = readme * (1_300_000 // len(readme))
    (tmp_path / "large.txt").write_text(text, encoding="utf-8")
    encoding = get_encoding("cl100k_base")
    reports: list[int] = []
    found = evaluate([("a", encoding)], [str(tmp_path / "large.txt")], Documents(), reports.append)
    [counts] = found.by(lambda _: "all")["all"]
    assert counts.tokens == encoding.count(text)
    assert (counts.bytes, counts.characters) == (len(text.encode()), len(text))
    assert len(reports) > 1
    assert reports == sorted(reports)
    assert reports[-1] == counts.bytes


@pytest.mark.slow
def test_parallel_files_are_compared_in_one_command(shell: Command, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(DATA, indent=2))
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(DATA))
    arguments = ("evaluate", "gpt-4", "gpt-4o", "--parallel", "--on", "a.json", "a.yaml")
    found = json.loads(shell(*arguments, "--json"))
    assert [encoding["name"] for encoding in found["encodings"]] == ["cl100k_base", "o200k_base"]
    first, second, everything = found["files"]
    assert [row["file"] for row in found["files"]] == ["a.json", "a.yaml", "all"]
    for place, name in enumerate(("cl100k_base", "o200k_base")):
        encoding = get_encoding(name)
        counts = [encoding.count((tmp_path / file).read_text()) for file in ("a.json", "a.yaml")]
        results = [row["results"][place] for row in (first, second, everything)]
        assert [result["tokens"] for result in results] == [*counts, sum(counts)]
        assert results[1]["times_first_file"] == counts[1] / counts[0]
        assert "times_first_file" not in results[2]
        assert results[0]["encoding"] == name
    assert (
        sum(row["results"][0]["tokens"] for row in found["scripts"])
        == (everything["results"][0]["tokens"])
    )

    lines = shell(*arguments).splitlines()
    assert lines[0].split()[:7] == ["file", "encoding", "tokens", "x", "cl100k_base", "x", "first"]
    assert lines[3].startswith("a.yaml  cl100k_base ")
    assert len(lines) == 1 + 3 * 2 + 1 + 1 + 2 * 2


@pytest.mark.slow
@pytest.mark.parametrize("file", ["a.jsonl.gz", "a.parquet"])
def test_documents_are_grouped_by_a_field(shell: Command, tmp_path: Path, file: str) -> None:
    rows = [{"lang": lang, "body": text} for lang, texts in TEXTS.items() for text in texts]
    if file == "a.parquet":
        columns = {key: [row[key] for row in rows] for key in ("lang", "body")}
        parquet.write_table(pyarrow.table(columns), tmp_path / file)
    else:
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / file).write_bytes(gzip.compress(lines.encode()))
    usual = ("evaluate", "o200k_base", "--on", file, "--column", "body")
    found = json.loads(shell(*usual, "--by", "lang", "--json"))
    encoding = get_encoding("o200k_base")
    assert {row["label"]: row["results"][0]["tokens"] for row in found["labels"]} == {
        lang: sum(map(encoding.count, texts)) for lang, texts in TEXTS.items()
    }
    japanese = next(row["results"][0] for row in found["labels"] if row["label"] == "ja")
    assert (japanese["words"], japanese["tokens_per_word"]) == (0, None)
    table = shell(*usual, "--by", "lang")
    assert "\nlang  encoding " in table
    assert any(line.startswith("ja ") and line.endswith("–") for line in table.splitlines())
    message = "no text under 'language' to group by"
    if file.endswith(".parquet"):
        message = "no column 'language'; it has "
    shell(*usual, "--by", "language", status=1, errors=message)


@pytest.mark.slow
def test_an_encoding_is_a_name_or_a_file_of_any_kind(shell: Command, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello world, hello")
    encodings_of_every_kind(tmp_path)
    (tmp_path / "bytepair.toml").write_text(
        '[encodings.mine]\nfile = "own.tiktoken"\npattern = "gpt2"\n'
        '[encodings."a b"]\nextends = "cl100k_base"\n'
    )
    names = ("gpt2", "made.json", "tokenizer.model", "own.tiktoken", "bytepair.toml", "gpt2")
    usual = ("evaluate", *names, "--on", "a.txt", "--json")
    found = json.loads(shell(*usual, "--pattern", "gpt2"))
    assert [encoding["name"] for encoding in found["encodings"]] == [
        "r50k_base (1)", "made", tmp_path.name, "own", "mine", "a b", "r50k_base (2)",
    ]  # fmt: skip
    results = {result["encoding"]: result["tokens"] for result in found["files"][0]["results"]}
    assert results["own"] == results["mine"] == results["r50k_base (1)"]
    shell(*usual, status=1, errors="own.tiktoken: this table is built in: use r50k_base instead")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("gpt-9", "--on", "a.txt"),
            "the nearest known: gpt-5, gpt-4, gpt-2; and there is no such file",
        ),
        (("gpt2", "--on", "b.txt"), "b.txt: No such file or directory"),
        (("gpt2", "--on", "bad.txt"), "bad.txt: not UTF-8: byte 1 starts no character"),
        (("gpt2", "--on", "a.txt", "--by", "lang"), "a.txt: plain text has no 'lang'"),
        (("gpt2", "--on", "a.txt", "--chart", "a.pdf"), "a.pdf: a chart must be a .svg or a .png"),
        (
            ("gpt2", "--on", "a.txt", "--chart", "no/a.svg"),
            "no/a.svg: the folder no does not exist",
        ),
        (("a.txt", "--on", "a.txt"), "a.txt: "),
        (("none.toml", "--on", "a.txt"), "none.toml: it declares no encoding"),
        (("broken.toml", "--on", "a.txt"), "broken.toml: it is not TOML"),
    ],
)
def test_bad_input(
    shell: Command, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    status = 2 if "a.pdf" in arguments else 1
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "bad.txt").write_bytes(b"a\xff")
    (tmp_path / "none.toml").write_text("[encodings]")
    (tmp_path / "broken.toml").write_text("[")
    shell("evaluate", *arguments, status=status, errors=message)


def test_no_text_at_all(shell: Command, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    found: dict[str, Any] = json.loads(shell("evaluate", "gpt2", "--on", "empty.txt", "--json"))
    [result] = found["files"][0]["results"]
    assert (result["tokens"], result["bytes_per_token"], result["words"]) == (0, None, 0)
    assert found["scripts"] == []
    _, line = shell("evaluate", "gpt2", "--on", "empty.txt").splitlines()
    assert line.split() == ["empty.txt", "r50k_base", "0", *"––––"]
    (tmp_path / "bad.txt").write_bytes(b"\xff")
    shell("evaluate", "gpt2", "--on", "bad.txt", "--invalid", "skip", errors="1 skipped")


@pytest.mark.slow
def test_a_chart(shell: Command, tmp_path: Path) -> None:
    """File names are arbitrary: they must neither break the drawing nor be parsed as formulas."""
    names = ["_a$b$.txt", "<b>&.txt", "ж\u202e.txt"]
    for name in names:
        (tmp_path / name).write_text("Some words, привет")
    (tmp_path / "a.toml").write_text('[encodings."_$\\\\frac$"]\nextends = "r50k_base"\n')
    usual = ("evaluate", "a.toml", "gpt-4o", "--on", *names, "--chart")
    shell(*usual, "a.svg")
    shell(*usual, "a.png")
    texts = "".join(ElementTree.parse(tmp_path / "a.svg").getroot().itertext())
    for shown in (
        "_a$b$.txt",
        "<b>&.txt",
        "ж\\u202e.txt",
        "Cyrillic",
        "o200k_base",
        "whole words",
        "_$\\\\frac$",
    ):
        assert shown in texts
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_chart_needs_its_extra(
    shell: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("hello")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # as if it were not installed
    message = "a.svg: drawing needs matplotlib: pip install bytepair-tools[chart]"
    shell("evaluate", "gpt2", "--on", "a.txt", "--chart", "a.svg", status=1, errors=message)
    assert shell("evaluate", "gpt2", "--on", "a.txt")
