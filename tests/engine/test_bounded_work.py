"""Patterns, names and tokens that need no more time and memory than others of their size."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest
from bytepair_engine import (
    Cancelled,
    CancelScope,
    EncodingSpec,
    SpecialTokenFound,
    get_encoding,
    load_encoding,
)

GIB = 1 << 30

#: Loads a pattern or a file with at most 1 GiB of memory, and prints the error, if any.
LOADING = f"""
import resource, sys
from pathlib import Path
from bytepair_engine import EncodingSpec, VocabularyError, load_encoding
resource.setrlimit(resource.RLIMIT_AS, ({GIB}, {GIB}))
file, pattern = Path(sys.argv[1]), sys.argv[2] or None
try:
    print(load_encoding(EncodingSpec(name="v", file=file, pattern=pattern)).count("aab"))
except VocabularyError as error:
    print(error.problem)
"""


def rank_file(folder: Path) -> Path:
    file = folder / "v.tiktoken"
    file.write_bytes(b"".join(b64encode(bytes([i])) + b" %d\n" % i for i in range(256)))
    return file


def loaded(file: Path, pattern: str = "") -> str:
    """Return the output of `LOADING`."""
    command = [sys.executable, "-c", LOADING, str(file), pattern]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50)
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit memory")
@pytest.mark.parametrize("body", ["a?" * 9000, r"\w?" * 3000, "(?:a?b?)?" * 4000])
def test_a_repeat_of_much_that_can_be_empty_is_rejected(body: str, tmp_path: Path) -> None:
    """Its copies are too large before its program is."""
    assert "more than 10000 parts" in loaded(rank_file(tmp_path), f"(?:{body})*|.")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit memory")
def test_a_long_added_token_takes_memory_by_its_length(tmp_path: Path) -> None:
    content = "".join(map(chr, random.Random(1).choices(range(0x20, 0x24F), k=700_000)))
    flags = dict.fromkeys(("special", "lstrip", "rstrip", "single_word", "normalized"), False)
    file = tmp_path / "tokenizer.json"
    file.write_text(
        json.dumps(
            {
                "added_tokens": [{"content": content, "id": 2, **flags}],
                "decoder": {"type": "Fuse"},
                "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},
            }
        )
    )
    assert loaded(file) == "3\n"


def test_a_pattern_stops_in_the_middle_of_its_text(tmp_path: Path) -> None:
    pattern = "a{0,1000}" * 9 + "x|."
    spec = EncodingSpec(name="v", file=rank_file(tmp_path), pattern=pattern)
    encoding = load_encoding(spec, backend="native")
    with CancelScope(seconds=0.05), pytest.raises(Cancelled):  # all of it would take an hour
        encoding.count("a" * 100_000)
    assert encoding.count("aax" * 3) == 9


def test_names_with_a_long_common_prefix_take_linear_time() -> None:
    encoding = get_encoding("cl100k_base", backend="native")
    text = "a" * 3_000_000
    expected = encoding.count(text)
    for names in (("a" * 100_000 + "b", "a" * 100_000 + "c"), ("a" * 100_000 + "b", "ad")):
        assert encoding.count(text, disallowed_special=names) == expected
        with pytest.raises(SpecialTokenFound) as found:
            encoding.count(text + "b", disallowed_special=names)
        assert found.value.byte_offset == len(text) - 100_000
