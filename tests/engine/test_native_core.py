"""Features of the native core only: scanners, whole pre-tokens, bounded memory."""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from functools import partial
from itertools import product
from pathlib import Path
from time import sleep
from typing import Any

import bytepair_engine
import pytest
from bytepair_engine import _core
from bytepair_engine.backends.reference import split
from bytepair_engine.vocabulary.patterns import PATTERNS
from support.hard_text import HARD_CHARACTERS, random_texts

BYTES = _core.RankTable.from_items((bytes([byte]), byte) for byte in range(256))

CPU = Path("/proc/cpuinfo")
HAS_AVX2 = CPU.exists() and " avx2 " in CPU.read_text(encoding="utf-8")

#: Size of its blocks in bytes.
BLOCK = 64


def _core_of(pattern: str) -> _core.Bpe:
    return _core.Bpe(BYTES, pattern, {}, cache_bytes=1 << 20, threads=1)


@pytest.mark.parametrize("name", PATTERNS)
def test_each_named_pattern_has_a_scanner(name: str) -> None:
    assert _core_of(PATTERNS[name]).splitter != "regex"


@pytest.mark.parametrize("name", PATTERNS)
def test_scanners_split_as_the_reference(name: str) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    core = _core_of(PATTERNS[name])
    tokens = bytepair_engine.get_encoding("cl100k_base").token_byte_values()
    for text in random_texts(random.Random(seed), tokens, 300):
        assert core.split(text) == split(text, PATTERNS[name]), text


def test_punctuation_among_kana_is_split_from_the_line_end() -> None:
    """DeepSeek isolates Han and kana first, so no piece contains both them and a line end."""
    core = _core_of(PATTERNS["deepseek_v3"])
    characters = "\u30a0\u30fb\u309b\u3040\u30ff\u4e00\u9fa5\u9fa6\u3001.a1 \n\r\u0301"
    for size in (1, 2, 3):
        for text in map("".join, product(characters, repeat=size)):
            assert core.split(text) == split(text, PATTERNS["deepseek_v3"]), ascii(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", PATTERNS)
def test_scanners_split_as_the_reference_at_every_alignment(name: str) -> None:
    core = _core_of(PATTERNS[name])
    rng = random.Random(20261120)
    for shift in range(2 * BLOCK + 2):
        hard = "".join(rng.choice(HARD_CHARACTERS) for _ in range(12))
        for before in ("a", " x", "é", "中", "1", " "):
            text = before * shift + hard + "word" * (shift % 5)
            assert core.split(text) == split(text, PATTERNS[name]), text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r50k_base", "p50k_base", "cl100k_base", "o200k_base"])
def test_every_built_in_token_merges_to_itself(name: str) -> None:
    """`backends/reference.py` states this: looking whole pre-tokens up does not change their
    ids."""
    encoding = bytepair_engine.get_encoding(name, backend="native")
    core = _core.Bpe(
        _core.RankTable.from_items(
            (token, encoding.encode_single_token(token)) for token in encoding.token_byte_values()
        ),
        encoding.pattern,
        {},
        cache_bytes=0,
        threads=1,
    )
    assert core.unreachable_ids() == []


def test_tokens_that_merging_does_not_produce_are_known() -> None:
    """abc could only be merged from ab or bc."""
    table = _core.RankTable.from_items([*BYTES.items(), (b"abc", 256), (b"de", 257), (b"def", 258)])
    core = _core.Bpe(table, PATTERNS["gpt2"], {}, cache_bytes=0, threads=1)
    assert core.unreachable_ids() == [256]


def test_the_cache_does_not_change_the_ids() -> None:
    table = _core.RankTable.from_items([*BYTES.items(), (b"ab", 256), (b"abc", 257)])
    texts = list(random_texts(random.Random(1), [b"ab", b"abc", b"cb"], 200))
    every = [
        [core.encode(text, none, none) for text in texts for _ in range(2)]
        for size in (0, 1 << 16, 1 << 24)
        for core in [_core.Bpe(table, PATTERNS["cl100k_base"], {}, cache_bytes=size, threads=1)]
        for none in [core.special_set(frozenset())]
    ]
    assert every[0] == every[1] == every[2]


def test_more_threads_than_scratch_buffers() -> None:
    encoding = bytepair_engine.get_encoding("cl100k_base", backend="native")
    texts = list(random_texts(random.Random(2), encoding.token_byte_values(), 64))
    long = [text * (20_000 // (len(text) + 1) + 1) for text in texts]
    alone = [encoding.encode_ordinary(text) for text in long]
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(encoding.encode_ordinary, long)) == alone


@pytest.mark.parametrize("widest", ["a", "é", "中", "👍"])
def test_the_characters_of_a_string_are_those_of_its_utf8(widest: str) -> None:
    """The core reads them in the width in which CPython stores them."""
    core = _core_of(PATTERNS["gpt2"])
    none = core.special_set(frozenset())
    rng = random.Random(widest)
    borders = "\0a\x7f\x80ÿ\u0100\u07ff\u0800中\ud7ff\ue000\uffff\U00010000👍\U0010ffff"
    members = [c for c in borders if c <= widest] + [widest]
    for size in [*range(70), 10_000]:
        text = "".join(rng.choice(members) for _ in range(size)) + widest
        at = rng.randrange(size + 1)
        for same in (text, type("Text", (str,), {})(text), widest * size + text):
            assert core.encode(same, none, none) == list(same.encode())
        with pytest.raises(bytepair_engine.InvalidUnicode) as caught:
            core.encode(text[:at] + "\udfff" + text[at:], none, none)
        assert caught.value.byte_offset == len(text[:at].encode())


def test_a_string_is_read_the_same_with_its_utf8_and_without() -> None:
    core = _core_of(PATTERNS["gpt2"])
    none = core.special_set(frozenset())
    for text in ("é" * 40, "中a" * 40, "👍" * 40):
        size = sys.getsizeof(text)
        ids = core.encode(text, none, none)
        if HAS_AVX2:
            assert sys.getsizeof(text) == size, "the string keeps its UTF-8"
        core.split(text)  # CPython makes it, and keeps it.
        assert core.encode(text, none, none) == ids == list(text.encode())


@pytest.mark.parametrize("bad", [-1, 2**31, 2**32, 2**32 + 1, 2**70, -(2**70), 100256])
def test_an_unknown_id_is_reported_with_its_index(bad: int) -> None:
    encoding = bytepair_engine.get_encoding("cl100k_base", backend="native")
    with pytest.raises(bytepair_engine.UnknownTokenId) as caught:
        encoding.decode([1, 2, bad, -5])
    assert (caught.value.token_id, caught.value.index) == (bad, 2)


def test_ids_of_every_size_and_type_are_read() -> None:
    """Integers of one digit of 30 bits are read by CPython's layout, others by its functions."""

    class Number(int):
        pass

    edges = (2**8, 2**15, 2**16, 2**30, 2**31, 2**32 - 2)
    names = {f"<{edge + more}>": edge + more for edge in edges for more in (0, 1)}
    names |= {f"<{edge - 1}>": edge - 1 for edge in edges[1:]}
    core = _core.Bpe(BYTES, PATTERNS["cl100k_base"], names, cache_bytes=0, threads=1)
    tokens = {id_: bytes([id_]) for id_ in range(256)} | {v: k.encode() for k, v in names.items()}
    new_enum: Any = IntEnum
    for types in ([int], [Number], [new_enum("Id", {f"id{id_}": id_ for id_ in tokens}), int]):
        ids = [types[index % len(types)](id_) for index, id_ in enumerate(tokens)]
        assert core.decode_bytes(ids) == b"".join(tokens.values())
    assert core.decode_bytes([1, True, False, 2]) == b"\x01\x01\x00\x02"
    for bad in (-1, -(2**15), 1 - 2**30, -(2**30), -(2**31), 2**32, 2**32 + 1, 2**60 + 1, 2**90):
        with pytest.raises(bytepair_engine.UnknownTokenId) as caught:
            core.decode_bytes([1, bad])
        assert caught.value.token_id == bad


@pytest.mark.parametrize("end", [2**8, 2**18, 2**32])
def test_ids_in_lists_are_integers_like_any_other(end: int) -> None:
    """Lists of ids below 2**18 have integers that are made by their layout and never freed."""
    near = {2**bits + more for bits in (12, 16, 17, 18, 30, 31, 32) for more in (-1, 0, 1)}
    names = {f"<{id_}>": id_ for id_ in sorted(near) if id_ < end}
    core = _core.Bpe(BYTES, PATTERNS["cl100k_base"], names, cache_bytes=0, threads=1)
    allowed, none = core.special_set(frozenset(names)), core.special_set(frozenset())
    expected = [*range(128), *names.values()]
    for _ in range(10):
        made = core.encode("".join(map(chr, range(128))) + "".join(names), allowed, none)
        assert made == expected
    for found, plain in zip(made, expected, strict=True):
        assert (type(found), str(found), hash(found)) == (int, str(plain), hash(plain))
        assert bool(found) == bool(plain)
        assert (-found, found * found, found // 3) == (-plain, plain * plain, plain // 3)
        assert ({found: 1}[plain], pickle.loads(pickle.dumps(found))) == (1, plain)
    if end <= 2**18:
        assert all(sys.getrefcount(found) > 2**31 for found in made)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_lists_from_before_a_fork_and_after_it_are_equal() -> None:
    encoding = bytepair_engine.get_encoding("o200k_base")
    text = "Grüße, 世界! 0 1 2 " * 100
    before = encoding.encode(text)

    def are_equal(generation: int) -> bool:
        child = os.fork()
        if child == 0:
            after = [encoding.encode(text) for _ in range(3)]
            new = encoding.encode(f"{text}generation {generation}")
            equal = after == [before] * 3 and sum(before) == sum(after.pop())
            equal &= encoding.decode(new) == f"{text}generation {generation}"
            os._exit(0 if equal and (generation == 3 or are_equal(generation + 1)) else 1)
        return os.waitpid(child, 0)[1] == 0

    assert are_equal(1)
    assert encoding.encode(text) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("work", ["fingerprint", "decode"])
def test_a_child_does_not_wait_for_what_a_thread_of_its_parent_makes(work: str) -> None:
    """Some tables are made on first use. The child has no such thread."""
    ids = range(20_000)
    for number in range(10):
        # Another size of the cache, so that it is another encoding.
        encoding = bytepair_engine.get_encoding("o200k_base", cache_bytes=10_000_000 + number)
        use = partial(getattr, encoding, work) if work == "fingerprint" else encoding.decode_bytes
        arguments = () if work == "fingerprint" else (ids,)
        thread = threading.Thread(target=use, args=arguments)
        thread.start()
        sleep(0.0003 * number)
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            use(*arguments)
            os._exit(0)
        thread.join()
        assert os.waitpid(child, 0)[1] == 0


#: Loads the file of the first argument. In each child, a thread makes a table of the core that is
#: made on first use; a child of that child uses the same table.
FORKING = """
import os, signal, sys, threading, time
from bytepair_engine import load_encoding

encoding = load_encoding(sys.argv[1])
def use():
    encoding.encode_with_offsets("\u4e2d " * 6000)
def in_child(work):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        work()
        os._exit(0)
    return child
def use_twice(delay):
    thread = threading.Thread(target=use)
    thread.start()
    time.sleep(delay)
    child = in_child(use)
    thread.join()
    os._exit(os.waitpid(child, 0)[1] != 0)
for number in range(10):
    child = in_child(lambda: use_twice(0.002 * number))
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_does_not_wait_for_the_table_of_a_normalisation_form(tmp_path: Path) -> None:
    """That of the whole process, which another test may have used already."""
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}
    file = tmp_path / "tokenizer.json"
    file.write_text(
        json.dumps({"normalizer": {"type": "NFC"}, "decoder": {"type": "Fuse"}, "model": model})
    )
    subprocess.run([sys.executable, "-c", FORKING, str(file)], check=True, timeout=50)
