"""`bytepair_engine.tiktoken` against tiktoken itself: ids, errors and unstable tokens."""

from __future__ import annotations

import copy
import inspect
import pickle
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import bytepair_engine.tiktoken as ours
import bytepair_engine.tiktoken.load
import bytepair_engine.tiktoken.model
import pytest
import tiktoken as theirs
import tiktoken.load
import tiktoken.model
from bytepair_engine import VocabularyError
from hypothesis import example, given
from hypothesis import strategies as st

TEXT = st.text(st.characters(codec=None)) | st.text("ab \n\t<|>'1é中👍", max_size=12)
SHORT = st.text("abc \n\t'1é中", max_size=8)


@pytest.fixture(scope="module")
def ranks() -> dict[bytes, int]:
    """Return a small table: every byte, and a few merges."""
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [b"bcb"]  # a pre-token, and not the result of merges
    tokens += [b"ab", b"abc", b"  ", b" a", b"\n\n", b" \n", b"\xc3\xa9", b"\xe4\xb8", b"a\xc3"]
    return {token: rank for rank, token in enumerate(tokens)}


@pytest.fixture(scope="module")
def pair(ranks: dict[bytes, int]) -> tuple[ours.Encoding, theirs.Encoding]:
    parts: Any = {
        "pat_str": r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\n|\s+(?!\S)|\s+",
        "mergeable_ranks": ranks,
        "special_tokens": {"<|endoftext|>": 300, "<a>": 301},
    }
    return ours.Encoding("small", **parts), theirs.Encoding("small", **parts)


@cache
def peer() -> theirs.Encoding:
    """tiktoken's cl100k_base with the table that ships here, which tiktoken would download."""
    mine = ours.get_encoding("cl100k_base")
    return theirs.Encoding(
        "cl100k_base",
        pat_str=mine._pat_str,
        mergeable_ranks=mine._mergeable_ranks,
        special_tokens=mine._special_tokens,
    )


class Subclass(ours.Encoding):
    pass


def outcome(work: Callable[[], object]) -> object:
    """Return the result of a call, or the type of its exception."""
    try:
        return work()
    except Exception as error:
        builtin = (t for t in type(error).__mro__ if t.__module__ == "builtins")
        return next(builtin)


@given(text=TEXT)
def test_texts_with_and_without_surrogates(text: str) -> None:
    mine, other = ours.get_encoding("cl100k_base"), peer()
    assert mine.encode(text, disallowed_special=()) == other.encode(text, disallowed_special=())
    assert mine.encode(text, allowed_special="all") == other.encode(text, allowed_special="all")
    assert mine.encode_ordinary(text) == other.encode_ordinary(text)
    assert mine.encode_batch([text, "a"], disallowed_special=()) == other.encode_batch(
        [text, "a"], disallowed_special=()
    )


@given(text=SHORT | SHORT.map(lambda text: f"{text}<a>") | SHORT.map(lambda text: f"<a>{text}"))
def test_unstable_tokens_and_completions_are_those_of_tiktoken(
    pair: tuple[ours.Encoding, theirs.Encoding], text: str
) -> None:
    mine, other = pair
    choices: tuple[Any, ...] = ("all", {"<a>"}, set())
    for allowed in choices:
        options: Any = {"allowed_special": allowed, "disallowed_special": ()}
        stable, completions = mine.encode_with_unstable(text, **options)
        expected = other.encode_with_unstable(text, **options)
        assert (stable, sorted(completions)) == (expected[0], sorted(expected[1]))


@given(data=st.binary(max_size=12) | st.text("abé \n", max_size=6).map(lambda t: t.encode()[:-1]))
def test_bytes(pair: tuple[ours.Encoding, theirs.Encoding], data: bytes) -> None:
    mine, other = pair
    assert mine._encode_bytes(data) == other._encode_bytes(data)
    assert mine._encode_single_piece(data + b"a") == other._encode_single_piece(data + b"a")


@pytest.mark.parametrize("size", [None, 0, 257, 258, 259, 302])
def test_the_number_of_tokens_is_checked(size: int | None) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    for special in ({"<a>": 256, "<b>": 257}, {"<a>": 256, "<b>": 301}):
        parts: Any = {"mergeable_ranks": ranks, "special_tokens": special, "explicit_n_vocab": size}
        mine = outcome(lambda: ours.Encoding("x", pat_str="a", **parts).n_vocab)  # noqa: B023
        assert mine == outcome(lambda: theirs.Encoding("x", pat_str="a", **parts).n_vocab)  # noqa: B023


def test_methods_have_the_arguments_of_those_of_tiktoken() -> None:
    for name, method in inspect.getmembers(theirs.Encoding, inspect.isfunction):
        if not name.startswith("__"):
            mine, expected = (
                [(p.name, p.kind, p.default) for p in inspect.signature(each).parameters.values()]
                for each in (getattr(ours.Encoding, name), method)
            )
            assert mine == expected, name


def test_invalid_ranks_are_named(ranks: dict[bytes, int]) -> None:
    for ids, problem in (({b"zz": 0}, "the rank is in an earlier"), ({}, "the single byte 0x00")):
        parts: Any = {"mergeable_ranks": {**ranks, **ids} if ids else ids, "special_tokens": {}}
        with pytest.raises(VocabularyError, match=f"mergeable_ranks of 'x'.*{problem}"):
            ours.Encoding("x", pat_str="a", **parts)


@pytest.mark.parametrize("pattern", ["[^\n]+|\n+", "\\w+\n|\\W+|\\w+", "\\\n+|.", "\\\\\n|[^x]"])
def test_a_line_feed_in_a_pattern_is_a_character(ranks: dict[bytes, int], pattern: str) -> None:
    parts: Any = {
        "pat_str": pattern,
        "mergeable_ranks": ranks | {b"\\\n": 290},
        "special_tokens": {},
    }
    text = "ab\n\nab\\\na"
    assert ours.Encoding("x", **parts).encode(text) == theirs.Encoding("x", **parts).encode(text)


CALLS: dict[str, Callable[[ours.Encoding], object]] = {
    "disallowed": lambda e: e.encode("<|endoftext|>"),
    "disallowed in a batch": lambda e: e.encode_batch(["a", "<|endoftext|>"]),
    "disallowed, read once": lambda e: e.encode_batch(iter(["a", "<|endoftext|>"])),  # type: ignore[arg-type]
    "surrogate, read once": lambda e: e.encode_ordinary_batch(iter(["a", "\ud800"])),  # type: ignore[arg-type]
    "surrogates, unstable": lambda e: e.encode_with_unstable("a\ud83d\ude00b"),
    "disallowed to numpy": lambda e: e.encode_to_numpy("<|endoftext|>"),
    "surrogate to numpy": lambda e: e.encode_to_numpy("\ud800"),
    "to numpy": lambda e: e.encode_to_numpy("hello world").tolist(),
    "numpy's array is read-only": lambda e: e.encode_to_numpy("hello").flags.writeable,
    "bytes of a token": lambda e: e.encode_single_token(b"hello"),
    "unknown token": lambda e: e.encode_single_token("no token of any"),
    "surrogate token": lambda e: e.encode_single_token("\ud800"),
    "unknown id": lambda e: e.decode_single_token_bytes(99_999_999),
    "negative id": lambda e: e.decode_single_token_bytes(-1),
    "negative ids": lambda e: e.decode([1, -1]),
    "ids beyond 32 bits": lambda e: e.decode_bytes([2**32 + 1]),
    "the first id beyond 32 bits": lambda e: e.decode_bytes([2**32]),
    "the last id within 32 bits": lambda e: e.decode_bytes([2**32 - 1]),
    "unknown ids": lambda e: e.decode([1, 99_999_999]),
    "unknown ids in a batch": lambda e: e.decode_bytes_batch([[1], [99_999_999]]),
    "half a character": lambda e: e.decode([9468]),
    "half a character, strict": lambda e: e.decode([9468], errors="strict"),
    "half a character, ignored": lambda e: e.decode([9468], errors="ignore"),
    "offsets of half a character": lambda e: e.decode_with_offsets([9468]),
    "offsets": lambda e: e.decode_with_offsets(e.encode("aé中👍 b")),
    "one thread": lambda e: e.encode_batch(["a"], num_threads=1),
    "no threads": lambda e: e.encode_batch(["a"], num_threads=0),
    "no threads to decode": lambda e: e.decode_batch([[1]], num_threads=0),
    "no threads to decode to bytes": lambda e: e.decode_bytes_batch([[1]], num_threads=0),
    "no text": lambda e: e.encode(None),  # type: ignore[arg-type]
    "eot": lambda e: e.eot_token,
    "sizes": lambda e: (e.n_vocab, e.max_token_value, e.name, repr(e)),
    "special": lambda e: (e.special_tokens_set, e.is_special_token(100257)),
    "bytes of tokens": lambda e: e.token_byte_values()[:1000],
}


@pytest.mark.parametrize("call", CALLS)
def test_results_and_errors_have_the_same_types(call: str) -> None:
    run = CALLS[call]
    mine = outcome(lambda: run(ours.get_encoding("cl100k_base")))
    assert mine == outcome(lambda: run(peer()))  # type: ignore[arg-type]


def test_names_equal_those_of_tiktoken() -> None:
    assert sorted(ours.list_encoding_names()) == sorted(theirs.list_encoding_names())
    for table in ("MODEL_TO_ENCODING", "MODEL_PREFIX_TO_ENCODING"):
        assert getattr(ours.model, table) == getattr(tiktoken.model, table)
    assert ours.encoding_name_for_model("ft:gpt-4o-mini:me") == "o200k_base"
    with pytest.raises(KeyError):
        ours.encoding_for_model("llama")
    for name in ("llama", 7):
        with pytest.raises(ValueError, match="encoding"):
            ours.get_encoding(name)  # type: ignore[arg-type]


def test_a_copy_of_a_named_encoding_is_itself_and_of_a_custom_one_is_equal(
    pair: tuple[ours.Encoding, theirs.Encoding],
) -> None:
    named = ours.get_encoding("cl100k_base")
    assert pickle.loads(pickle.dumps(named)) is named
    assert copy.deepcopy(named) is named
    mine = pair[0]
    for kind in (ours.Encoding, Subclass):
        custom = kind(
            mine.name,
            pat_str=mine._pat_str,
            mergeable_ranks=mine._mergeable_ranks,
            special_tokens=mine._special_tokens,
        )
        other = pickle.loads(pickle.dumps(custom))
        assert type(other) is kind
        assert other.encode("abc <a>", allowed_special="all") == mine.encode(
            "abc <a>", allowed_special="all"
        )


def test_written_rank_files_can_be_read(
    ranks: dict[bytes, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{tmp_path}/small.tiktoken"
    bytepair_engine.tiktoken.load.dump_tiktoken_bpe(ranks, path)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")  # no cache outside of the test
    assert tiktoken.load.load_tiktoken_bpe(path) == ranks
    assert bytepair_engine.tiktoken.load.load_tiktoken_bpe(path) == ranks
    with pytest.raises(ValueError, match="sha256"):
        bytepair_engine.tiktoken.load.load_tiktoken_bpe(path, "0" * 64)
    with pytest.raises(FileNotFoundError):
        bytepair_engine.tiktoken.load.load_tiktoken_bpe(f"{tmp_path}/none.tiktoken")
    with pytest.raises(ValueError, match="network"):
        bytepair_engine.tiktoken.load.load_tiktoken_bpe("https://example.org/a.tiktoken")


PARTS = b"YQ== 0", b"Yg== 1", b"YQ", b" ", b"\t", b"\r", b"\n", b"-", b"!", b"\xff"


@given(st.lists(st.sampled_from(PARTS)))
@example([])
@example([b"YQ== 0\r\n", b"\r\n", b"Yg== 1\r\n"])
@example([b"YQ== 0\n", b"YQ== x\n"])
def test_rank_files_are_read_as_by_tiktoken(parts: list[bytes]) -> None:
    with tempfile.NamedTemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", "")
        Path(file.name).write_bytes(b"".join(parts))
        try:
            expected = tiktoken.load.load_tiktoken_bpe(file.name)
        except ValueError:
            with pytest.raises(ValueError, match=r"line \d+: the line is not a token"):
                bytepair_engine.tiktoken.load.load_tiktoken_bpe(file.name)
        else:
            assert bytepair_engine.tiktoken.load.load_tiktoken_bpe(file.name) == expected
