"""`bytepair audit` finds the faults that were put into a vocabulary, and no others."""

from __future__ import annotations

import base64
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import get_encoding
from bytepair_tools.auditing.vocabulary import can_be_in_text
from support.in_process import Command
from support.sentencepiece_models import trained

#: Tokens in the order of their ranks, after the single bytes.
TOKENS = [
    *(b"th", b"the", b" t", b"Th", b"The", b" the"),
    *(b"bc", b"abcd"),  # a b c d becomes a bc d, unless the pre-token is "abcd"
    *(b"\xe6\x97", b"\xe6\x97\xa5", b"\xff\xfe", b"a\x82"),
    *(b"a ", b"a b"),  # the pattern splits it between words
    *(b"<|", b"|>", b"<|x", b"<|x|>"),
]
IDS = {token: 256 + number for number, token in enumerate(TOKENS)}
TEXT = "the The abcd the日"


@pytest.fixture
def faulty(tmp_path: Path) -> str:
    """The declaration of a vocabulary with one fault of every kind."""
    tokens = [bytes([byte]) for byte in range(256)] + TOKENS
    lines = [b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens)]
    (tmp_path / "faulty.tiktoken").write_bytes(b"".join(lines))
    (tmp_path / "faulty.toml").write_text(
        '[encodings.faulty]\nfile = "faulty.tiktoken"\npattern = "gpt2"\n'
        'special_tokens = { "<|x|>" = 300, "<|y|>" = 301 }\n'
    )
    return "faulty.toml"


def found(report: dict[str, Any]) -> dict[str, list[int] | None]:
    """Return the found ids of each check."""
    return {
        name: None if check["tokens"] is None else [token["id"] for token in check["tokens"]]
        for name, check in report["checks"].items()
    }


def ids(*tokens: bytes) -> list[int]:
    return [IDS[token] for token in tokens]


def test_every_fault_is_found(shell: Command, tmp_path: Path, faulty: str) -> None:
    (tmp_path / "a.txt").write_text(TEXT + " <|y|> <|y|>", encoding="utf-8")
    report = json.loads(shell("audit", faulty, "--on", "a.txt", "--json"))
    assert found(report) == {
        "unused": ids(
            *(b"th", b" t", b"Th", b"abcd", b"\xe6\x97", b"\xff\xfe", b"a\x82"),
            *(b"a ", b"a b", b"<|", b"|>", b"<|x", b"<|x|>"),
        ),
        "unreachable": ids(b"\xff\xfe", b"a\x82"),
        "only-whole": ids(b"abcd"),
        "split": ids(b"a ", b"a b", b"<|x", b"<|x|>"),
        "incomplete": ids(b"\xe6\x97", b"\xff\xfe", b"a\x82"),
        "duplicates": ids(b"Th", b"The", b" the"),
        "spelled": [301],
        "always-found": [],
        "ambiguous": [300],
    }
    unused = report["checks"]["unused"]
    assert (unused["found"], unused["share"], report["tokens"]) == (13, 13 / 18, 18)
    assert report["checks"]["spelled"]["tokens"] == [
        {"id": 301, "token": "<|y|>", "data": b"<|y|>".hex(), "note": "2 times"}
    ]
    assert (report["longest"][0]["token"], report["longest"][0]["bytes"]) == ("<|x|>", 5)

    table = shell("audit", faulty, "--on", "a.txt", "--limit", "2")
    assert table.startswith("faulty: 18 tokens beside single bytes, 2 special tokens\n")
    assert '  266  "\\xff\\xfe"  its bytes are in no UTF-8\n' in table
    assert '  263  "abcd"  merging stops at 3 parts\n' in table
    assert "  and 11 more: --limit N lists N, --json all\n" in table


def test_flagged_tokens_are_written_as_a_setting_of_the_server(shell: Command, faulty: str) -> None:
    usual = ("audit", faulty, "--flag", "incomplete")
    expected = ids(b"\xe6\x97", b"\xff\xfe", b"a\x82")
    assert tomllib.loads(shell(*usual)) == {"flagged_tokens": {"faulty": expected}}
    both = tomllib.loads(shell(*usual, "--flag", "only-whole"))
    assert both == {"flagged_tokens": {"faulty": sorted([*expected, IDS[b"abcd"]])}}
    shell("audit", faulty, "--flag", "unused", status=1, errors="--flag unused: this check cannot")


def test_checks_that_need_no_texts_run_without_texts(shell: Command, faulty: str) -> None:
    report = json.loads(shell("audit", faulty, "--json"))
    checks = found(report)
    assert checks.pop("unused") is None
    assert checks.pop("spelled") is None
    assert None not in checks.values()
    assert report["text_bytes"] is None
    assert report["checks"]["unused"]["skipped"] == "no texts were given: --on"


@pytest.mark.parametrize(
    ("limits", "exceeded"),
    [
        (("--max-unused", "13"), ""),
        (("--max-unused", "12"), "unused: 13 tokens exceed the limit, 12"),
        (("--max-unused", "72.3%"), ""),
        (("--max-unused", "72.2%"), "unused: 13 tokens exceed the limit, 72.2%"),
        (("--max-unreachable", "0", "--max-split", "4"), "unreachable: 2 tokens"),
        (("--max-always-found", "0", "--max-spelled", "0%"), ""),
    ],
)
def test_the_exit_status_is_for_ci(
    shell: Command, tmp_path: Path, faulty: str, limits: tuple[str, ...], exceeded: str
) -> None:
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    arguments = ("audit", faulty, "--on", "a.txt", *limits)
    printed = shell(*arguments, "--json", status=3 if exceeded else 0, errors=exceeded)
    checks = json.loads(printed)["checks"]
    assert [name for name in checks if checks[name]["is_exceeded"]] == [
        *[exceeded.partition(":")[0]] * bool(exceeded)
    ]


@pytest.mark.slow
def test_a_token_that_occurs_in_no_text(shell: Command, tmp_path: Path) -> None:
    """r50k_base has " SolidGoldMagikarp" (43453), and all of its tokens can be merged."""
    (tmp_path / "a.txt").write_text("An ordinary text.")
    (tmp_path / "b.jsonl").write_text('{"text": "Who is SolidGoldMagikarp?"}\n')
    for files, is_unused in (["a.txt"], True), (["a.txt", "b.jsonl"], False):
        report = json.loads(shell("audit", "gpt2", "--on", *files, "--json"))
        checks = found(report)
        assert (43453 in (checks["unused"] or [])) == is_unused
        assert (checks["unreachable"], checks["only-whole"], checks["split"]) == ([], [], [])
        produced = {
            token_id
            for text in ("An ordinary text.", "Who is SolidGoldMagikarp?")[: len(files)]
            for token_id in get_encoding("gpt2").encode(text)
        }
        tokens = report["tokens"]
        single = sum(len(get_encoding("gpt2").decode_single_token_bytes(i)) == 1 for i in produced)
        assert len(checks["unused"] or []) == tokens - len(produced) + single


def test_a_pipeline(shell: Command, tmp_path: Path) -> None:
    (tmp_path / "a.model").write_bytes(trained("gemma"))
    (tmp_path / "a.txt").write_text("hello <start_of_turn> <bos>")
    report = json.loads(shell("audit", "a.model", "--on", "a.txt", "--json"))
    checks = found(report)
    names = {t["token"] for t in report["checks"]["always-found"]["tokens"]}
    assert {"<start_of_turn>", "<table>"} <= names
    assert checks["split"] is None
    assert checks["unreachable"] == []
    limit = ("audit", "a.model", "--max-split", "0")
    shell(*limit, status=1, errors="--max-split: this check cannot run: the encoding changes text")


def test_bad_input(shell: Command, faulty: str) -> None:
    usual = ("audit", faulty)
    shell(*usual, "--max-unused", "5", status=1, errors="--max-unused: this check cannot run: no")
    shell(*usual, "--max-unused", "many", status=2, errors="'many' is neither a number nor a perc")
    shell(*usual, "--max-unused", "-1", status=2, errors="'-1' is neither a number")
    shell(*usual, "--limit", "-1", status=2, errors="'-1' is not a number of 0 or more")
    shell(*usual, "--on", "none.txt", status=1, errors="none.txt: No such file or directory")
    shell("audit", "none", status=1, errors="unknown encoding 'none'; known: cl100k_base")
    shell("audit", "faulty.tiktoken", status=1, errors="add --pattern")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"abc", True),
        (b"\x82\xac", True),
        (b"\x80\x80\x80a", True),
        (b"\x80\x80\x80\x80", False),
        (b"a\xf0\x9f\x99", True),
        (b"\xf0\x9f\x99a", False),
        (b"\xed\xa0", False),
        (b"\xc0", False),
        (b"\xf5", False),
        (b"\xe0\x80", False),
    ],
)
def test_bytes_that_can_occur_in_utf8_text(data: bytes, expected: bool) -> None:
    assert can_be_in_text(data) is expected
