"""The format of a file is detected from its content. Errors name the declaration."""

from __future__ import annotations

import base64
import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from bytepair_engine import EncodingSpec, VocabularyError, load_encoding
from bytepair_engine.formats.detect import detect
from bytepair_engine.formats.json_file import MAX_VALUES, read_json
from support.sentencepiece_models import trained

RANKS = b"".join(base64.b64encode(bytes([b])) + f" {b}\n".encode() for b in range(256))


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (RANKS, "tiktoken"),
        (RANKS[:6], "tiktoken"),
        (RANKS.replace(b"\n", b"\r\n"), "tiktoken"),
        (b"#version: 0.2\nh e\n", "gpt2"),
        (b'{"config": {}, "vocab": []}', "tekken"),
        (b' \n{"model": {"type": "BPE"}, "version": "1.0"}', "tokenizer.json"),
        (b'       \n{"model": {}}', "tokenizer.json"),
        (trained("llama"), "sentencepiece"),
        (trained("default"), "sentencepiece"),
    ],
)
def test_the_format_is_detected_from_the_content(data: bytes, found: str) -> None:
    assert detect(data, "a").format == found


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the file is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "a pointer of Git LFS"),
        (b"\n <!DOCTYPE html><title>404</title>", "a web page"),
        (b"<HTML>", "a web page"),
        (b"PK\x03\x04abc", "a ZIP archive"),
        (b"\x80\x04\x95", "a Python pickle"),
        (b"GGUF\x03\0\0\0", "a GGUF model"),
        (b"# ours\n\n[encodings.a]\nfile = 'a.tiktoken'\n", "TOML"),
        (b'[encodings."a b"] # ours\n', "TOML"),
        (b'\x10\0\0\0\0\0\0\0{"__metadata__":{}}', "a safetensors file"),
        (b"just some text", "its format is unknown"),
        (b"\nhello\n", "its format is unknown"),
        (b"\xff\xfe", "its format is unknown"),
        (b"\x08\x08\x01\0", "its format is unknown"),  # a message, whose first field is a number
        (b"\x32\x02\x08\x01", "its format is unknown"),  # or has no number of a model's
        (b"\x0a\0", "its format is unknown"),  # or is empty
        (b'{"config": {}}', "JSON of an unknown format"),
        (b'{"vocab": []}', "JSON of an unknown format"),
        (b'{"a": 1, "b": 2}', "without its merges"),
        (b'{"a": "b"}', "JSON of an unknown format"),
        (b"{}", "JSON of an unknown format"),
        (b"[1, 2]", "JSON of an unknown format"),
        (b'{"model": ', "line 1: it is not JSON: Expecting value"),
        (b'{"a": 1, "a": 2}', "the key 'a' twice"),
        (b'{"a": NaN}', "holds NaN, which is not JSON"),
        (b'{"a":\n"\xff"}', "line 2: the line is not UTF-8"),
        ('{"model": {}}'.encode("utf-16-le"), "line 1: it is not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_a_file_of_another_kind_is_named_in_the_error(data: bytes, problem: str) -> None:
    with pytest.raises(VocabularyError, match=problem) as caught:
        detect(data, "a")
    assert str(caught.value).startswith("a")
    assert caught.value.remedy


def test_values_are_counted_before_they_use_memory() -> None:
    """As Python objects, these eight megabytes would take most of a gigabyte."""
    data = b"[" + b"0," * (MAX_VALUES + 1) + b"0]"
    tracemalloc.start()
    try:
        with pytest.raises(VocabularyError, match=f"more than {MAX_VALUES} values"):
            read_json(data, "a", "shrink it")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    file = tmp_path / "tokenizer.json"  # the name claims another format
    file.write_bytes(gzip.compress(RANKS))
    return file


def test_the_name_of_a_file_does_not_decide_its_format(ranks: Path) -> None:
    assert load_encoding(EncodingSpec(name="r", file=ranks, pattern="gpt2")).n_vocab == 256


def test_a_declared_format_must_be_that_of_the_file(ranks: Path) -> None:
    with pytest.raises(VocabularyError, match="a rank file in tiktoken's format, and the decl"):
        load_encoding(EncodingSpec(name="r", file=ranks, format="tokenizer.json"))
    with pytest.raises(VocabularyError, match="no pattern is given, and the file, a rank file"):
        load_encoding(EncodingSpec(name="r", file=ranks))
    with pytest.raises(VocabularyError, match="also_special is given, and a rank file"):
        load_encoding(EncodingSpec(name="r", file=ranks, pattern="gpt2", also_special=("<a>",)))
    with pytest.raises(VocabularyError, match="encoder_file is given"):
        load_encoding(EncodingSpec(name="r", file=ranks, pattern="gpt2", encoder_file=ranks))


def test_a_fingerprint_covers_pattern_and_special_tokens(ranks: Path, tmp_path: Path) -> None:
    def declared(keys: dict[str, object]) -> EncodingSpec:
        table = {"file": str(ranks), "pattern": "gpt2", **keys}
        return EncodingSpec.from_mapping("r", table, tmp_path)

    fingerprint = load_encoding(declared({})).fingerprint
    assert load_encoding(declared({"fingerprint": fingerprint})).fingerprint == fingerprint
    for other in ({"pattern": "cl100k_base"}, {"special_tokens": {"<|a|>": 300}}):
        with pytest.raises(VocabularyError, match=f"and {fingerprint} was expected"):
            load_encoding(declared({"fingerprint": fingerprint, **other}))
    with pytest.raises(VocabularyError, match="fingerprint must be"):
        declared({"fingerprint": fingerprint.removeprefix("sha256:")})
    extended = {"extends": "r50k_base", "fingerprint": fingerprint}
    with pytest.raises(VocabularyError, match="was expected"):
        load_encoding(EncodingSpec.from_mapping("r", extended, tmp_path))


def test_a_parsed_document_is_not_parsed_again() -> None:
    found = detect(json.dumps({"config": {}, "vocab": []}).encode(), "a")
    assert found.root is not None
    assert found.root["config"].path == "config"
