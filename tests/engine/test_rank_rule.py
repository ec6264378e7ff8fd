"""Rank files of arbitrary content against tiktoken. A pre-token that is a token is taken whole,
even if merging does not reach it. Llama-3 depends on this (llama.cpp #7193, tokenizers #1537); a
similar but wrong shortcut broke others (rust-gems #95)."""

from __future__ import annotations

import base64
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import tiktoken
from bytepair_engine import Encoding, EncodingSpec, load_encoding
from bytepair_engine.backends.cores import BackendName
from hypothesis import given
from hypothesis import strategies as st
from support.engines import BACKENDS

PATTERN = r" ?[^\s]+|\s+"

#: Scripts, of which the engine merges some in other ways.
ALPHABETS = ("abc ", "aการ่ ", "a中のん ", "aकखा ", "a한국어 ", "😀😁é ")


@st.composite
def vocabularies_and_texts(draw: st.DrawFn) -> tuple[list[bytes], list[str]]:
    """Tokens of several bytes in any order of rank: most are merged from others, but many are not,
    and some begin or end within characters. Then texts, most of them of such tokens."""
    alphabet = draw(st.sampled_from(ALPHABETS))
    characters = st.text(alphabet, min_size=2, max_size=6).map(str.encode)
    cut = st.builds(lambda token, n: token[n:] or token, characters, st.sampled_from((0, 0, 0, 1)))
    cut = st.builds(lambda token, n: token[: len(token) - n], cut, st.sampled_from((0, 0, 0, 1)))
    tokens = draw(st.lists(cut.filter(lambda token: len(token) > 1), unique=True, max_size=25))
    words = [token.decode() for token in tokens if _is_text(token)] or ["a"]
    parts = st.one_of(st.sampled_from(words), st.text(f"{alphabet}xé", max_size=8))
    texts = st.lists(parts, max_size=8).map("".join)
    return tokens, [*draw(st.lists(texts, min_size=1, max_size=5)), *words]


def _is_text(token: bytes) -> bool:
    return token.decode(errors="ignore").encode() == token


def load(tokens: list[bytes], backend: BackendName) -> Encoding:
    table = [bytes([b]) for b in range(256)] + tokens
    with TemporaryDirectory() as folder:
        file = Path(folder) / "v.tiktoken"
        lines = (base64.b64encode(token) + b" %d\n" % i for i, token in enumerate(table))
        file.write_bytes(b"".join(lines))
        return load_encoding(EncodingSpec(name="v", file=file, pattern=PATTERN), backend=backend)


def oracle(tokens: list[bytes]) -> tiktoken.Encoding:
    ranks = {bytes([b]): b for b in range(256)} | {t: 256 + i for i, t in enumerate(tokens)}
    return tiktoken.Encoding("v", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})


def test_a_token_unreachable_by_merging_is_found_as_a_whole_pre_token(
    backend: BackendName,
) -> None:
    """Such as " Việt", 101798 in Llama-3."""
    tokens = [b"bc", b"abca"]
    encoding = load(tokens, backend)
    assert encoding.encode("abca") == oracle(tokens).encode("abca") == [257]
    assert encoding.encode("babca") == oracle(tokens).encode("babca") == [98, 97, 256, 97]
    assert encoding.count("abca babca") == len(oracle(tokens).encode("abca babca"))


def test_a_token_unreachable_by_merging_is_no_part_of_a_pre_token(backend: BackendName) -> None:
    words = ["のん", "のんのんのん", "abc"]
    encoding = load([word.encode() for word in words], backend)
    for _ in range(3):  # new and cached
        for text in ("中のん", "中のん中のんのん", "中のんのんのん", "中abc"):
            assert encoding.encode(text) == [*text.encode()]
        assert [encoding.encode(word) for word in words] == [[256], [257], [258]]


@pytest.mark.slow
@given(vocabularies_and_texts())
def test_every_rank_file_gives_tiktoken_s_ids(drawn: tuple[list[bytes], list[str]]) -> None:
    tokens, samples = drawn
    peer = oracle(tokens)
    for backend in BACKENDS:
        encoding = load(tokens, backend)
        for text in samples * 2:  # the second time, from the cache
            ids = peer.encode_ordinary(text)
            assert encoding.encode_ordinary(text) == ids
            assert encoding.count(text) == len(ids)
            assert encoding.decode(ids) == text
