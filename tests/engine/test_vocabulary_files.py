"""Untrusted files: each fault is rejected with file, line and remedy, and the
two readers, the reference's and the native core's, find the same one."""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import bytepair_engine
import pytest
from bytepair_engine import EncodingSpec, UnknownEncoding, VocabularyError, load_encoding
from bytepair_engine.backends.cores import BackendName, resolve
from bytepair_engine.vocabulary.builtin import BUILTINS, SHA256, builtin_table
from bytepair_engine.vocabulary.rank_table import TableFault
from hypothesis import given
from hypothesis import strategies as st
from support.engines import BACKENDS, Load


def line(token: bytes, rank: int | str) -> bytes:
    return base64.b64encode(token) + f" {rank}\n".encode()


BYTES = [line(bytes([b]), b) for b in range(256)]
WHOLE = b"".join([*BYTES, line(b"ab", 256), line(b"abc", 300)])

FAULTS = {
    "empty file": (b"", "empty_file", 1),
    "CRLF line ends": (WHOLE.replace(b"\n", b"\r\n"), "crlf", 1),
    "one CRLF line end": (WHOLE + b"eHk= 301\r\n", "crlf", 259),
    "wrong base64": (WHOLE + b"e*k= 301\n", "not_base64", 259),
    "base64 without padding": (WHOLE + b"eHk 301\n", "not_base64", 259),
    "padding within base64": (WHOLE + b"eH=k 301\n", "not_base64", 259),
    "padding before the end": (WHOLE + b"eHk=eHk= 301\n", "not_base64", 259),
    "three padding characters": (WHOLE + b"e=== 301\n", "not_base64", 259),
    "base64 with stray bits": (WHOLE + b"eHl= 301\n", "not_base64", 259),
    "url-safe base64": (WHOLE + b"__8= 301\n", "not_base64", 259),
    "no rank": (WHOLE + b"eHk=\n", "malformed_line", 259),
    "nothing after the space": (WHOLE + b"eHk= \n", "malformed_line", 259),
    "two spaces": (WHOLE + b"eHk=  301\n", "malformed_line", 259),
    "three fields": (WHOLE + b"eHk= 301 5\n", "malformed_line", 259),
    "a blank line": (WHOLE + b"\n" + line(b"xy", 301), "malformed_line", 259),
    "a blank line at the end": (WHOLE + b"\n", "malformed_line", 259),
    "an empty token": (WHOLE + b" 301\n", "empty_token", 259),
    "a rank in words": (WHOLE + b"eHk= many\n", "rank_not_a_number", 259),
    "a negative rank": (WHOLE + b"eHk= -1\n", "rank_not_a_number", 259),
    "a rank with a sign": (WHOLE + b"eHk= +5\n", "rank_not_a_number", 259),
    "an id over 2^31": (WHOLE + line(b"xy", 2**31), "rank_too_large", 259),
    "an id of many digits": (WHOLE + line(b"xy", "9" * 5000), "rank_too_large", 259),
    "a duplicate token": (WHOLE + line(b"ab", 301), "duplicate_token", 259),
    "a duplicate rank": (WHOLE + line(b"xy", 256), "duplicate_rank", 259),
    "a tab": (WHOLE + b"eHk=\t301\n", "malformed_line", 259),
    "html": (b"<!DOCTYPE html>\n<title>404</title>\n", "not_base64", 1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_reported_with_its_line(
    backend: BackendName, fault: str, tmp_path: Path
) -> None:
    data, kind, number = FAULTS[fault]
    with pytest.raises(TableFault) as caught:
        resolve(backend).parse_tiktoken(data)
    assert (caught.value.kind, caught.value.line) == (kind, number)

    file = tmp_path / "bad.tiktoken"
    file.write_bytes(data)
    spec = EncodingSpec(name="bad", file=file, format="tiktoken", pattern="gpt2")
    with pytest.raises(VocabularyError) as rejected:
        load_encoding(spec, backend=backend)
    assert str(rejected.value).startswith(f"{file}, line {number}: ")
    assert rejected.value.remedy


@given(
    edits=st.lists(
        st.tuples(
            st.integers(0, len(WHOLE)),
            st.integers(0, 4),
            st.sampled_from([b"", b"\n", b"\r\n", b" ", b"=", b"A", b"9", b"\xff", b"YQ== 5\n"]),
        ),
        max_size=3,
    )
)
def test_both_readers_agree_on_damaged_files(edits: list[tuple[int, int, bytes]]) -> None:
    data = WHOLE
    for start, removed, inserted in edits:
        data = data[:start] + inserted + data[start + removed :]
    outcomes = []
    for backend in BACKENDS:
        try:
            outcomes.append(resolve(backend).parse_tiktoken(data).items())
        except TableFault as fault:
            outcomes.append((fault.kind, fault.line))
    assert outcomes[0] == outcomes[1]


def test_a_file_without_a_final_line_feed(backend: BackendName, tmp_path: Path) -> None:
    file = tmp_path / "v.tiktoken"
    file.write_bytes(WHOLE[:-1])
    encoding = load_encoding(
        EncodingSpec(name="v", file=file, pattern="gpt2", special_tokens={"<|x|>": 7000}),
        backend=backend,
    )
    assert encoding.encode("abcab<|x|>", allowed_special="all") == [300, 256, 7000]
    assert (encoding.max_token_id, encoding.n_vocab) == (7000, 7001)
    assert encoding.source == f"file:{file}"


def test_a_missing_single_byte(backend: BackendName, tmp_path: Path) -> None:
    """tiktoken #583, tokenizers #2466: a panic."""
    file = tmp_path / "v.tiktoken"
    file.write_bytes(WHOLE.replace(BYTES[65], b""))
    with pytest.raises(VocabularyError, match=r"v.tiktoken: the single byte 0x41"):
        load_encoding(EncodingSpec(name="v", file=file, pattern="gpt2"), backend=backend)


def test_a_wrong_hash_is_reported_with_both_hashes(tmp_path: Path) -> None:
    file = tmp_path / "v.tiktoken"
    file.write_bytes(WHOLE)
    actual = hashlib.sha256(WHOLE).hexdigest()
    good = EncodingSpec(name="v", file=file, pattern="gpt2", sha256=actual)
    assert load_encoding(good).n_vocab == 301
    bad = EncodingSpec(name="v", file=file, pattern="gpt2", sha256="0" * 64)
    with pytest.raises(VocabularyError) as caught:
        load_encoding(bad)
    assert actual in str(caught.value)
    assert "0" * 64 in str(caught.value)


def test_gzip(tmp_path: Path) -> None:
    file = tmp_path / "v.tiktoken.gz"
    file.write_bytes(gzip.compress(WHOLE))
    spec = EncodingSpec(name="v", file=file, pattern="gpt2")
    assert load_encoding(spec).n_vocab == 301
    file.write_bytes(WHOLE)  # the name does not decide the format
    assert load_encoding(spec).n_vocab == 301
    whole = gzip.compress(WHOLE)
    for damaged, problem in (
        (whole[:-9], "it is cut off"),
        (whole[:40] + bytes(100), "it is damaged gzip"),
        (gzip.compress(WHOLE[:2000]) + gzip.compress(WHOLE[2000:]), "it goes on after its gzip"),
        (whole + b"x", "it goes on after its gzip"),
    ):
        file.write_bytes(damaged)
        with pytest.raises(VocabularyError, match=f"{file}: {problem}"):
            load_encoding(spec)


def test_a_missing_file(tmp_path: Path) -> None:
    for file in (tmp_path / "no.tiktoken", tmp_path):
        with pytest.raises(VocabularyError, match=str(file)):
            load_encoding(EncodingSpec(name="v", file=file, pattern="gpt2"))


def test_a_damaged_built_in_table_asks_for_a_new_installation(tmp_path: Path) -> None:
    """No declaration has the hash of a built-in table."""
    package = tmp_path / "bytepair_engine"
    package.mkdir()
    for part in Path(bytepair_engine.__file__).parent.iterdir():
        (package / part.name).symlink_to(part)
    (package / "data").unlink()
    (package / "data").mkdir()
    (package / "data" / "r50k_base.tiktoken").write_bytes(WHOLE)
    for name, problem in {"r50k_base": "its sha256 is", "p50k_base": "No such file"}.items():
        done = subprocess.run(
            [sys.executable, "-c", f"import bytepair_engine as e; e.get_encoding({name!r})"],
            cwd=tmp_path,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            text=True,
            timeout=60,
        )
        last = done.stderr.splitlines()[-1]
        assert f"{package}/data/{name}.tiktoken: {problem}" in last
        assert last.endswith("; reinstall bytepair-engine: its files are damaged")


def test_every_built_in_encoding_names_its_pattern(tmp_path: Path) -> None:
    """They once were regular expressions that matched only themselves."""
    file = tmp_path / "v.tiktoken"
    file.write_bytes(WHOLE)
    for name, builtin in BUILTINS.items():
        assert load_encoding(EncodingSpec(name="v", file=file, pattern=name)).pattern == (
            builtin.pattern
        )


@pytest.mark.parametrize("pattern", ["a(b", "[z-a]", "\\p{Nope}", "a\n\nb", "cl100k", "qwen2.5"])
def test_a_pattern_that_is_neither_valid_nor_a_name(
    backend: BackendName, tmp_path: Path, pattern: str
) -> None:
    file = tmp_path / "v.tiktoken"
    file.write_bytes(WHOLE)
    with pytest.raises(VocabularyError) as caught:
        load_encoding(EncodingSpec(name="v", file=file, pattern=pattern), backend=backend)
    assert "'v'" in str(caught.value)
    assert "cl100k_base" in caught.value.remedy


@pytest.mark.parametrize(
    ("special_tokens", "problem"),
    [({"": 9000}, "empty"), ({"<x>": 256}, "ordinary"), ({"<x>": -1}, "-1"), ({"<x>": 2**31}, "2")],
)
def test_invalid_special_tokens(
    backend: BackendName, tmp_path: Path, special_tokens: dict[str, int], problem: str
) -> None:
    file = tmp_path / "v.tiktoken"
    file.write_bytes(WHOLE)
    spec = EncodingSpec(name="v", file=file, pattern="gpt2", special_tokens=special_tokens)
    with pytest.raises(VocabularyError, match=problem):
        load_encoding(spec, backend=backend)


# Declarations


def declare(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "encoding.toml"
    file.write_text(text)
    return file


def test_a_built_in_encoding_can_be_extended_in_a_few_lines(
    backend: BackendName, load: Load, tmp_path: Path
) -> None:
    file = declare(
        tmp_path,
        """
        name = "chatml"
        extends = "cl100k_base"
        special_tokens = { "<|im_start|>" = 100264, "<|im_end|>" = 100265 }
        """,
    )
    encoding, base = load_encoding(file, backend=backend), load("cl100k_base")
    assert encoding.encode("<|im_start|>x<|im_end|>", allowed_special="all") == [100264, 87, 100265]
    assert encoding.encode_ordinary("<|im_end|>") == base.encode_ordinary("<|im_end|>")
    assert dict(base.special_tokens).items() <= dict(encoding.special_tokens).items()
    assert encoding.fingerprint != base.fingerprint
    assert encoding.source == "builtin:cl100k_base"


@pytest.mark.parametrize("key", ['name = "v"', "max_ids = 5\n[encodings.v]"])
def test_a_declared_path_is_relative_to_the_declaration(tmp_path: Path, key: str) -> None:
    (tmp_path / "v.tiktoken").write_bytes(WHOLE)
    file = declare(tmp_path, f'{key}\nfile = "v.tiktoken"\npattern = "[a-z]+|."\n')
    encoding = load_encoding(file)
    assert encoding.name == "v"
    assert encoding.encode("abc\nab") == [300, 10, 256]
    assert encoding.splitter == "regex"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('name = "v"', "no file"),
        ('file = "v"\npattern = "gpt2"', "name is missing"),
        ('name = ""\nextends = "gpt2"', "name is missing"),
        ('name = "v"\nfile = "v"\nformat = "tiktoken"', "no pattern"),
        ('name = "v"\nfile = "v"\npatern = "gpt2"', "unknown key 'patern'; did you mean pattern?"),
        ('name = "v"\nfile = 5', "file must be"),
        ('name = "v"\nfile = "v"\npattern = "gpt2"\nformat = "bpe"', "format must be"),
        ('name = "v"\nfile = "v"\npattern = "gpt2"\nformat = "gpt2"', "encoder_file is missing"),
        ('name = "v"\nfile = "v"\npattern = "gpt2"\nsha256 = "abc"', "sha256 must be"),
        ('name = "v"\nfile = "v"\npattern = "gpt2"\naliases = "x"', "aliases must be"),
        ('name = "v"\nextends = "gpt2"\npattern = "gpt2"', "extends is given together"),
        ('name = "v"\nextends = "gpt2"\nspecial_tokens = { x = 1.5 }', "special_tokens must be"),
        ('name = "v"\nextends = "gpt2"\nspecial_tokens = { "<|endoftext|>" = 9 }', "50256"),
        ('name = "v"\nextends = "gpt2"\nspecial_tokens = { "<x>" = 50256 }', "'<.endoftext.>' has"),
        (
            'name = "v"\nextends = "gpt2"\nspecial_tokens = { a = 60000, b = 60000 }',
            "which 'a' has",
        ),
        ('name = "v\\n"\nextends = "gpt2"', "is not printable"),
        ('name = "v"\nextends = "gpt2"\naliases = ["a\\u0000"]', "is not printable"),
        ('name = "v"\nfile = "a\\u0000"\npattern = "gpt2"', "no NUL"),
        ("encodings = 5", "encodings has no tables"),
        ("encodings = { v = 5 }", "encodings has no tables"),
        ("[encodings]", "declares no encoding"),
        (
            'name = "v"\nextends = "gpt2"\n[encodings.w]\nextends = "gpt2"',
            "both name and encodings",
        ),
        (
            '[encodings.v]\nextends = "gpt2"\n[encodings.w]\nextends = "gpt2"',
            "declares 2 encodings",
        ),
        ("name = ", "not TOML"),
        ("name = " + "[" * 10_000, "not TOML"),
        ("name = " + "9" * 5000, "not TOML"),
    ],
)
def test_a_declaration_with_a_fault(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(VocabularyError, match=problem):
        load_encoding(declare(tmp_path, text))


def test_a_declaration_without_a_name(tmp_path: Path) -> None:
    """A request without an encoding must never select one."""
    with pytest.raises(VocabularyError, match="name is empty"):
        EncodingSpec.from_mapping("", {"extends": "gpt2"}, tmp_path)


def test_two_published_names_of_one_id_are_kept(tmp_path: Path) -> None:
    declared = (
        'name = "v"\nextends = "o200k_harmony"\nspecial_tokens = { "<|endofprompt|>" = 200018 }'
    )
    ids = load_encoding(declare(tmp_path, declared)).special_tokens
    assert ids["<|endofprompt|>"] == ids["<|reserved_200018|>"] == 200018


def test_extending_an_unknown_encoding(tmp_path: Path) -> None:
    with pytest.raises(UnknownEncoding):
        load_encoding(declare(tmp_path, 'name = "v"\nextends = "gpt5"\n'))


def test_the_shipped_tables_are_the_official_ones() -> None:
    """r50k_base's file is a byte prefix of p50k_base's, and each file has its pinned hash."""
    tables = {name: builtin_table(resolve("reference"), name) for name in SHA256}
    r50k, p50k = tables["r50k_base"].items(), tables["p50k_base"].items()
    assert p50k[: len(r50k)] == r50k
    assert [len(table) for table in tables.values()] == [50256, 50280, 100256, 199998]


def test_the_name_of_a_built_in_encoding_is_no_file() -> None:
    with pytest.raises(VocabularyError, match=r"use get_encoding\('gpt-4o'\)"):
        load_encoding("gpt-4o")


def test_a_file_that_is_not_regular_is_rejected_and_not_opened(tmp_path: Path) -> None:
    """Opening a FIFO would wait for a writer."""
    os.mkfifo(tmp_path / "vocabulary")
    for path in (tmp_path / "vocabulary", tmp_path):
        with pytest.raises(VocabularyError, match="it is not a regular file"):
            load_encoding(path)
