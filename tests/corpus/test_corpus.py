"""`bytepair corpus` on processes of this machine: results, and the state after an interruption."""

from __future__ import annotations

import json
import os
from pathlib import Path

import bytepair_engine
import pyarrow
import pytest
from bytepair_tools.corpus.job import Job
from pyarrow import parquet
from support.corpus import COUNT, GPT2, TRAIN, WORKERS, part, table
from support.in_process import Command

#: The user of the system without rights.
NOBODY = 65534


@pytest.mark.slow
@pytest.mark.parametrize(("buckets", "ties"), [("3", "lowest"), ("1", "first-seen")])
def test_counts_give_the_table_of_one_machine(
    shell: Command, texts: list[list[str]], buckets: str, ties: str
) -> None:
    counting = ("corpus", "count-pretokens", "corpus", *GPT2, *WORKERS, "--buckets", buckets)
    shell(*counting, "--output", "counts")
    assert len(list(Path("counts").glob("*.parquet"))) == int(buckets)
    assert sorted(path.name for path in Path("counts").glob("_*")) == ["_SUCCESS", "_job.json"]
    how = (*TRAIN, "--ties", ties)
    shell(*how, "--counts", "counts", "--output", "apart")
    files = ("corpus/a.parquet", "corpus/b.jsonl.gz", "corpus/c.jsonl.zst", "corpus/deeper/d.txt")
    shell(*how, *files, "--output", "at-once")
    assert table("apart") == table("at-once")


@pytest.mark.slow
def test_ids_and_counts_equal_those_of_each_document(
    shell: Command, texts: list[list[str]]
) -> None:
    encoding = bytepair_engine.get_encoding("o200k_base")
    common = ("corpus", *WORKERS, "--encoding", "gpt-4o", "--output")
    as_text = ("--disallowed-special", "as-text")
    printed = shell("corpus", "encode", "corpus", *common[1:], "ids", "--json", *as_text)
    shell("corpus", "count", "corpus", *common[1:], "counted")
    for number, documents in enumerate(texts):
        expected = [encoding.encode_ordinary(text) for text in documents]
        assert parquet.read_table(part("ids", number)).to_pydict() == {"ids": expected}
        lengths = {"count": [len(ids) for ids in expected]}
        assert parquet.read_table(part("counted", number)).to_pydict() == lengths
    last = json.loads(printed.splitlines()[-1])
    everything = [text for documents in texts for text in documents]
    assert last["documents"] == len(everything)
    assert last["tokens"] == sum(len(encoding.encode_ordinary(text)) for text in everything)
    assert last["text_bytes"] == sum(len(text.encode()) for text in everything)


@pytest.mark.slow
def test_kept_columns_stand_beside_the_results(shell: Command, texts: list[list[str]]) -> None:
    parquet.write_table(parquet.read_table("corpus/a.parquet").slice(0, 0), "empty.parquet")
    one = ("corpus", "count", "--workers", "1", "--encoding", "gpt2", "--keep", "id")
    twice = (*one, "--keep", "id")
    shell(*twice, "corpus/a.parquet", "empty.parquet", "--output", "kept")
    rows, none = (parquet.read_table(part("kept", number)) for number in (0, 1))
    assert rows.column_names == ["id", "count"]
    assert rows["id"].to_pylist() == [f"id-{number}" for number in range(15)]
    assert none.schema == rows.schema
    assert len(none) == 0
    shell(
        *one,
        "corpus/b.jsonl.gz",
        "--output",
        "x",
        status=2,
        errors="--keep applies only to Parquet",
    )
    shell(*one, "--keep", "count", "corpus", "--output", "x", status=2, errors="has that name")
    other = (*one, "--keep", "nothing", "corpus/a.parquet", "--output", "x")
    shell(*other, status=1, errors="no column 'nothing'; it has text, id")


@pytest.mark.slow
def test_special_tokens_are_rejected_or_text(shell: Command) -> None:
    Path("a.jsonl").write_text('{"text": "fine"}\n{"text": "not <|endoftext|>"}\n')
    one = ("corpus", "encode", "a.jsonl", "--workers", "1", "--encoding", "gpt2", "--output")
    shell(*one, "rejected", status=1, errors="a.jsonl, document 2: ")
    assert sorted(path.name for path in Path("rejected").iterdir()) == ["_job.json"]
    unknown = "--allowed-special: '<|x|>' is not a special token of r50k_base"
    shell(*one, "x", "--allowed-special", "<|x|>", status=1, errors=unknown)
    shell(*one, "control", "--allowed-special", "<|endoftext|>")
    shell(*one, "all", "--allowed-special", "all")
    shell(*one, "text", "--disallowed-special", "as-text")
    encoding = bytepair_engine.get_encoding("gpt2")
    spelled = "not <|endoftext|>"
    for folder, ids in (
        ("control", encoding.encode(spelled, allowed_special="all")),
        ("all", encoding.encode(spelled, allowed_special="all")),
        ("text", encoding.encode_ordinary(spelled)),
    ):
        assert parquet.read_table(part(folder, 0))["ids"].to_pylist()[1] == ids


@pytest.mark.slow
def test_invalid_utf8_is_rejected_or_counted(shell: Command) -> None:
    Path("good.txt").write_text("a word")
    Path("bad.txt").write_bytes(b"a \xff word")
    common = ("corpus", "count", "bad.txt", "good.txt", "--encoding", "gpt2", "--workers", "1")
    shell(*common, "--output", "x", status=1, errors="bad.txt: not UTF-8: byte 2 starts")
    shell(*common, "--invalid", "skip", "--output", "y", errors="0 documents with replacements, 1")
    assert parquet.read_table(part("y", 0)).to_pydict() == {"count": []}
    assert parquet.read_table(part("y", 1)).to_pydict() == {"count": [2]}


@pytest.mark.slow
def test_invalid_utf8_in_parquet_is_rejected_or_counted(shell: Command) -> None:
    data = pyarrow.array([b"a word", b"two \xff words", b"words"])
    invalid = pyarrow.Array.from_buffers(pyarrow.string(), 3, data.buffers())
    for name, texts in (("a", invalid), ("b", invalid.dictionary_encode())):
        parquet.write_table(pyarrow.table({"text": texts, "id": [0, 1, 2]}), f"{name}.parquet")
    keep = ("--keep", "id", "--keep", "text")
    common = ("corpus", "count", "a.parquet", "b.parquet", "--encoding", "gpt2", *keep)
    rejection = ".parquet, row 2: not UTF-8: byte 4 starts"
    shell(*common, *WORKERS, "--output", "x", status=1, errors=rejection)
    for how, note, ids in (
        ("skip", "0 documents with replacements, 2 skipped", [0, 2]),
        ("replace", "2 documents with replacements", [0, 1, 2]),
    ):
        shell(*common, *WORKERS, "--invalid", how, "--output", how, errors=note)
        for number in (0, 1):
            rows = parquet.read_table(part(how, number))
            assert rows["id"].to_pylist() == ids
            kept = ["a word", "two \ufffd words", "words"]
            assert rows["text"].to_pylist() == [kept[row] for row in ids]
    encoding = bytepair_engine.get_encoding("gpt2")
    assert rows["count"].to_pylist()[1] == encoding.count("two \ufffd words")
    shell(*TRAIN, "a.parquet", "--invalid", "skip", "--output", "trained", errors="1 skipped")
    nested = pyarrow.table({"text": pyarrow.ListArray.from_arrays([0, 1, 2, 3], invalid)})
    parquet.write_table(nested, "nested.parquet")
    shell(*COUNT, "nested.parquet", status=1, errors="nested.parquet, row 1: no text in column")
    labelled = ("evaluate", "gpt2", "--on", "c.parquet", "--by", "label")
    parquet.write_table(pyarrow.table({"text": ["a"] * 3, "label": invalid}), "c.parquet")
    shell(*labelled, status=1, errors="c.parquet: not UTF-8: column 'label'")
    parquet.write_table(pyarrow.table({"text": invalid, "label": ["x", "x", None]}), "c.parquet")
    shell(*labelled, "--invalid", "skip", status=1, errors="c.parquet, row 3: no text under")


@pytest.mark.slow
def test_damaged_parquet_files_are_named(shell: Command) -> None:
    rows = pyarrow.table({"text": [str(number**9) for number in range(1000)]})
    parquet.write_table(rows, "a.parquet", use_dictionary=False)
    whole = Path("a.parquet").read_bytes()
    Path("a.parquet").write_bytes(whole[:100] + b"\xff" * 100 + whole[200:])
    shell(*COUNT, "a.parquet", status=1, errors="a.parquet: Corrupt snappy compressed data")


@pytest.mark.slow
def test_a_changed_file_is_rejected(shell: Command) -> None:
    """Also one of the same size, because it would keep its earlier result."""
    counting = ("corpus", "count-pretokens", "a.txt", *GPT2, *WORKERS, "--output", "out")
    Path("a.txt").write_text("ab ab")
    shell(*counting)
    shell(*counting)
    for text in ("a b c", "longer"):
        Path("a.txt").write_text(text)
        shell(*counting, status=1, errors="a.txt: has changed since an earlier run")


@pytest.mark.slow
@pytest.mark.parametrize("task", [("count-pretokens", *GPT2), ("count", "--encoding", "gpt2")])
def test_a_rejected_file_may_be_repaired(shell: Command, task: tuple[str, ...]) -> None:
    """The results of the other files remain, and they may not change."""
    command = ("corpus", *task, "a.jsonl", "b.jsonl", "--workers", "1", "--output", "out")
    Path("a.jsonl").write_text('{"text": "one two"}\n')
    Path("b.jsonl").write_text('{"text": "one"}\n{"text": \n')
    shell(*command, status=1, errors="b.jsonl, line 2: not JSON")
    [first] = Path("out").rglob("part-00000.parquet")
    before = first.stat().st_mtime_ns
    Path("b.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    shell(*command)
    rows = [
        row
        for file in Path("out").glob("*.parquet")
        for row in parquet.read_table(file).to_pylist()
    ]
    if task[0] == "count":
        assert first.stat().st_mtime_ns == before
        assert sorted(row["count"] for row in rows) == [1, 1, 2]
    else:
        counts = {row["pretoken"]: row["count"] for row in rows}
        assert counts == {b"one": 2, b" two": 1, b"two": 1}
    Path("b.jsonl").write_text('{"text": "three"}\n')
    shell(*command, status=1, errors="b.jsonl: has changed since an earlier run")


@pytest.mark.slow
def test_another_job_in_the_same_folder_is_rejected(shell: Command, texts: list[list[str]]) -> None:
    counting = ("corpus", "count", "corpus/a.parquet", "--workers", "1", "--output", "out")
    shell(*counting, "--encoding", "gpt2")
    shell(*counting, "--encoding", "cl100k_base", status=1, errors="with other encoding, fingerp")
    more = (*counting[:3], "corpus/b.jsonl.gz", *counting[3:], "--encoding", "gpt2")
    shell(*more, status=1, errors="with other partitions;")
    shell(*counting, "--encoding", "gpt2")  # all work is done
    part("out", 0).write_bytes(Path("corpus/a.parquet").read_bytes())
    shell(
        *counting,
        "--encoding",
        "gpt2",
        status=1,
        errors="part-00000.parquet: does not belong to this job",
    )
    Path("out/_job.json").write_text("{}")
    shell(*counting, "--encoding", "gpt2", status=1, errors="_job.json: damaged")
    full = (*counting[:-1], "corpus", "--encoding", "gpt2")
    shell(*full, status=1, errors="has other files in it")


@pytest.mark.slow
def test_a_job_without_results_is_replaced(shell: Command) -> None:
    Path("a.jsonl").write_text('{"body": "a word"}\n')
    counting = ("corpus", "count-pretokens", "a.jsonl", *GPT2, *WORKERS, "--output", "out")
    shell(*counting, status=1, errors="a.jsonl, line 1: no text under 'text'")
    usual = ("corpus", "count", "a.jsonl", "--encoding", "gpt2", *WORKERS, "--column", "body")
    shell(*usual, "--output", "out")
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "_SUCCESS",
        "_job.json",
        "part-00000.parquet",
    ]
    part("out", 0).unlink()
    shell(*counting, status=1, errors="a.jsonl, line 1: no text under 'text'")
    assert not Path("out/_SUCCESS").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("nowhere", "--output", "x"), 1, "nowhere: No such file"),
        (("corpus", "corpus/a.parquet", "--output", "x"), 1, "a.parquet: given twice"),
        (("empty", "--output", "x"), 1, "empty: contains no files"),
        (("corpus", "--output", "corpus/x"), 2, "--output corpus/x: is in the corpus corpus"),
        (("corpus/../corpus", "--output", "corpus"), 2, "--output corpus: is in the corpus"),
        (("corpus/a.parquet", "--output", "corpus/a.parquet"), 1, "a.parquet: File exists"),
        (("corpus", "--output", "x", "--buckets", "0"), 2, "--buckets must be from 1"),
        (("corpus", "--output", "x", "--workers", "0"), 2, "--workers must be at least 1"),
    ],
)
def test_bad_input(
    shell: Command, texts: list[list[str]], arguments: tuple[str, ...], status: int, message: str
) -> None:
    Path("empty").mkdir()
    shell("corpus", "count-pretokens", *GPT2, *arguments, status=status, errors=message)
    assert not Path("x").exists()


@pytest.mark.slow
def test_the_output_may_be_where_no_texts_are_read(shell: Command) -> None:
    Path("corpus").mkdir()
    Path("corpus/a.txt").write_text("a word")
    for _ in range(2):
        shell(*COUNT[:-1], "corpus/_deeper/x", "corpus")


def test_a_rank_file_needs_a_declaration(shell: Command) -> None:
    """Because this command has no --pattern."""
    Path("a.txt").write_text("a word")
    Path("x.tiktoken").write_text("YQ== 0\nYg== 1\n")
    count = ("corpus", "count", "a.txt", "--encoding", "x.tiktoken", "--output", "x")
    shell(*count, status=1, errors="use a TOML file that declares it")


def test_linked_folders_are_read_once(shell: Command, texts: list[list[str]]) -> None:
    Path("mixed").mkdir()
    Path("mixed/linked").symlink_to("../corpus", target_is_directory=True)
    files = Job.over(["mixed"], "count", {}).partitions
    assert [Path(file).relative_to(Path.cwd()) for file in files] == [
        Path("mixed/linked", name)
        for name in ("a.parquet", "b.jsonl.gz", "c.jsonl.zst", "deeper/d.txt")
    ]
    Path("corpus/deeper/loop").symlink_to("..", target_is_directory=True)
    shell(*COUNT, "mixed", status=1, errors="deeper/loop: the same folder as mixed/linked")


def test_what_is_not_a_file_is_rejected_in_folders(shell: Command, texts: list[list[str]]) -> None:
    os.mkfifo("corpus/pipe.parquet")
    message = "corpus/pipe.parquet: neither a regular file nor a folder"
    shell(*COUNT, "corpus", status=1, errors=message)
    Path("corpus/a.parquet").unlink()
    shell(*TRAIN, "--counts", "corpus", "--output", "x", status=1, errors=message)


# Semaphores of an earlier test may be removed meanwhile, which another user may not do.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_unreadable_folders_are_rejected(shell: Command, texts: list[list[str]]) -> None:
    Path("corpus/deeper").chmod(0)
    Path.cwd().chmod(0o755)
    user = os.geteuid()
    os.seteuid(user or NOBODY)  # root may read every folder
    try:
        shell(*COUNT, "corpus", status=1, errors="corpus/deeper: Permission denied")
        train = (*TRAIN, "--counts", "corpus/deeper", "--output", ".")
        shell(*train, status=1, errors="corpus/deeper: Permission denied")
    finally:
        os.seteuid(user)
