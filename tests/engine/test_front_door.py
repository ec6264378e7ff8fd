"""`load_encoding` loads every self-describing file, and encodings can be pickled."""

from __future__ import annotations

import base64
import copy
import gzip
import pickle
import subprocess
import sys
from importlib.resources import files
from itertools import islice, product
from pathlib import Path
from typing import Any

import bytepair_engine
import pytest
from bytepair_engine import (
    Encoding,
    EncodingSpec,
    InvalidOption,
    InvalidUnicode,
    VocabularyError,
    extend_encoding,
    load_encoding,
)
from bytepair_engine.backends.cores import BackendName
from bytepair_engine.backends.interface import OffsetUnit
from bytepair_engine.inspection import inspect_file
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Metaspace

TEXT = "ab ba\u0142 <|a|> aab"


@pytest.fixture
def tokenizer_json(tmp_path: Path) -> Path:
    """A vocabulary that is a pipeline and not a rank table."""
    tokens = ["<unk>", "\u2581", "a", "b", "ab", "\u2581ab"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    merges = [("a", "b"), ("\u2581", "ab")]
    tokenizer = Tokenizer(BPE(vocabulary, merges, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Metaspace()
    path = tmp_path / "small.json"
    tokenizer.save(str(path))
    return path


@pytest.fixture
def rank_file(tmp_path: Path) -> Path:
    file = tmp_path / "a.tiktoken"
    tokens = [*(bytes([byte]) for byte in range(256)), b"ab"]
    lines = (b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))
    file.write_bytes(b"".join(lines))
    return file


@pytest.mark.parametrize("of", [str, Path])
def test_a_self_describing_file_is_loaded_by_its_path(
    backend: BackendName, of: type, tokenizer_json: Path
) -> None:
    encoding = load_encoding(of(tokenizer_json), backend=backend)
    declared = EncodingSpec(name="small", file=tokenizer_json)
    assert encoding.name == "small"
    assert encoding.fingerprint == load_encoding(declared, backend=backend).fingerprint


@pytest.mark.parametrize("unit", ["byte", "code_point", "utf16"])
def test_a_pipeline_rejects_lone_surrogates_in_every_unit(
    backend: BackendName, tokenizer_json: Path, unit: OffsetUnit
) -> None:
    encoding = load_encoding(tokenizer_json, backend=backend)
    with pytest.raises(InvalidUnicode):
        encoding.encode_with_offsets("a\ud800", unit=unit)


def test_the_error_for_a_rank_file_lists_possible_patterns(rank_file: Path) -> None:
    with pytest.raises(VocabularyError, match="one of gpt2, cl100k_base, o200k_base"):
        load_encoding(rank_file)


def test_other_files_are_rejected_with_the_fault(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("name = ")
    with pytest.raises(VocabularyError, match="not TOML"):
        load_encoding(file)
    with pytest.raises(VocabularyError, match="its format is unknown"):
        load_encoding(file.rename(tmp_path / "a.txt"))
    (tmp_path / "empty.json").touch()
    with pytest.raises(VocabularyError, match="the file is empty"):
        load_encoding(tmp_path / "empty.json")
    with pytest.raises(InvalidOption, match=r"file: must be a pathlib\.Path"):
        EncodingSpec(name="x", file="x")  # type: ignore[arg-type]
    with pytest.raises(VocabularyError, match="its name is not Unicode"):
        load_encoding("\ud800")


def test_only_small_files_with_the_suffix_of_toml_are_parsed_as_toml(tmp_path: Path) -> None:
    """Parsing takes memory that grows with the square of the number of dots."""
    file = tmp_path / "a.tiktoken"
    file.write_text("a.a = 1")
    with pytest.raises(VocabularyError, match="its format is unknown"):
        load_encoding(file)
    file = tmp_path / "a.toml"
    file.write_text('name = "a"\nextends = "gpt2"\n' + "#" * 2**20)
    with pytest.raises(VocabularyError, match="it holds more than 1048576 bytes"):
        load_encoding(file)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("special_tokens", {"<a>": 2e5}),
        ("special_tokens", {"<a>": "200000"}),
        ("special_tokens", {"<a>": True}),
        ("special_tokens", {5: 200000}),
        ("special_tokens", ["<a>"]),
        ("special_tokens", None),
        ("also_special", "abc"),
        ("also_special", [5]),
        ("aliases", "abc"),
        ("pattern", 5),
        ("format", "toml"),
        ("extends", 5),
        ("sha256", "5"),
        ("fingerprint", 5),
    ],
)
def test_a_declaration_with_a_value_of_a_wrong_type_is_rejected(option: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=f"^{option}: must be "):
        EncodingSpec(name="x", **{option: value})


@pytest.fixture(params=["built in", "extended", "renamed", "ranks", "pipeline"])
def pickled(
    request: pytest.FixtureRequest, backend: BackendName, tokenizer_json: Path, rank_file: Path
) -> Encoding:
    if request.param == "built in":
        return bytepair_engine.get_encoding("r50k_base", backend=backend, threads=1)
    if request.param == "pipeline":
        return load_encoding(tokenizer_json, backend=backend)
    if request.param == "ranks":
        return load_encoding(
            EncodingSpec(name="r", file=rank_file, pattern="gpt2"), backend=backend
        )
    builtin = bytepair_engine.get_encoding("r50k_base", backend=backend)
    if request.param == "renamed":
        return extend_encoding(builtin, [], name="p50k_base")
    return extend_encoding(builtin, ["<|a|>"], name="extended")


def test_an_extended_encoding_names_its_source(rank_file: Path) -> None:
    loaded = load_encoding(EncodingSpec(name="r", file=rank_file, pattern="gpt2"))
    builtin = bytepair_engine.get_encoding("r50k_base")
    for encoding, source in ((builtin, "builtin:r50k_base"), (loaded, f"file:{rank_file}")):
        once = extend_encoding(encoding, ["<|a|>"], name="once")
        twice = extend_encoding(once, ["<|b|>"], name="twice")
        assert once.source == twice.source == source


@pytest.mark.slow
def test_a_copy_of_an_encoding_is_the_same_object(pickled: Encoding) -> None:
    assert pickle.loads(pickle.dumps(pickled)) is pickled
    assert copy.deepcopy(pickled) is pickled


_OTHER_PROCESS = """
import pickle, sys
encoding = pickle.load(sys.stdin.buffer)
assert encoding is pickle.loads(pickle.dumps(encoding))
ids = encoding.encode(sys.argv[1], disallowed_special=())
print((encoding.name, encoding.source, encoding.backend, encoding.resources.threads,
       encoding.fingerprint, encoding.special_tokens == {}, ids), flush=True)
sys.stdout.buffer.write(pickle.dumps(encoding))
"""


@pytest.mark.slow
def test_another_process_unpickles_an_equal_encoding(pickled: Encoding) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _OTHER_PROCESS, TEXT],
        input=pickle.dumps(pickled),
        capture_output=True,
        check=True,
    )
    expected = (
        pickled.name,
        pickled.source,
        pickled.backend,
        pickled.resources.threads,
        pickled.fingerprint,
        pickled.special_tokens == {},
        pickled.encode(TEXT, disallowed_special=()),
    )
    found, _, returned = done.stdout.partition(b"\n")
    assert found.decode() == str(expected)
    assert pickle.loads(returned) is pickled


def test_inspection_proposes_the_pattern_of_a_known_table(rank_file: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.gz"
    data = files("bytepair_engine") / "data" / "r50k_base.tiktoken"
    known.write_bytes(gzip.compress(data.read_bytes(), 1))
    found = inspect_file(EncodingSpec(name="known", file=known))
    assert 'pattern = "r50k_base"' in found.missing
    proposed = EncodingSpec(name="known", file=known, pattern="r50k_base")
    assert load_encoding(proposed).pattern == bytepair_engine.get_encoding("r50k_base").pattern
    assert "one of gpt2, " in inspect_file(EncodingSpec(name="other", file=rank_file)).missing


@pytest.mark.slow
@pytest.mark.parametrize(("tokens", "pattern"), [(128_000, "llama3"), (151_643, "qwen2")])
def test_inspection_proposes_a_pattern_by_the_size_of_a_table(
    tmp_path: Path, tokens: int, pattern: str
) -> None:
    file = tmp_path / "a.tiktoken"
    three = (bytes(each) for each in product(range(256), repeat=3))
    spelled = [bytes([byte]) for byte in range(256)] + list(islice(three, tokens - 256))
    file.write_bytes(b"".join(b"%s %d\n" % (base64.b64encode(t), n) for n, t in enumerate(spelled)))
    found = inspect_file(EncodingSpec(name="a", file=file))
    assert f'pattern = "{pattern}" may be right' in found.missing
    assert found.known_pattern is None
    with pytest.raises(VocabularyError, match=f'pattern = "{pattern}" may be right'):
        load_encoding(file)
