"""Limits on memory and threads of an encoding are respected and do not change ids."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import (
    EncodingSpec,
    InvalidOption,
    Resources,
    collector,
    get_encoding,
    load_encoding,
)
from bytepair_engine.backends.cores import BackendName
from bytepair_engine.resources import DEFAULT_CACHE_BYTES
from support.hard_text import random_texts
from support.oracle import oracle

MIB = 1 << 20

#: Encodes new words until every cache is full, and prints the largest growth of the process in
#: bytes.
GROWTH = """
import random, sys
from concurrent.futures import ThreadPoolExecutor
from bytepair_engine import get_encoding

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024

rng = random.Random(20261121)
encoding = get_encoding("o200k_base", backend="native", cache_bytes=int(sys.argv[1]), threads=1)
none = get_encoding("o200k_base", backend="native", cache_bytes=0, threads=1)
def words(_):
    data = rng.randbytes(60_000).hex()
    return " ".join(data[i : i + 4 + i % 29] for i in range(0, len(data), 20))
with ThreadPoolExecutor(8) as pool:
    list(pool.map(lambda _: none.count(words(_)), range(100)))
    before = peak()
    list(pool.map(lambda _: encoding.count(words(_)), range(250)))
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("cache_bytes", [0, 6 * MIB, 24 * MIB])
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read in /proc")
def test_the_cache_uses_its_bytes_and_no_more(cache_bytes: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, str(cache_bytes)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    grown = int(done.stdout)
    other = 3 * MIB  # memory of merging and of the interpreter
    inexact = MIB  # Linux adds up page counts per processor with delay
    at_least = cache_bytes // 4 - inexact
    assert at_least <= grown <= cache_bytes + other, f"{grown / MIB:.1f} MiB"


@pytest.mark.slow
def test_limits_do_not_change_ids() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    usual = get_encoding("cl100k_base", backend="native")
    others = [
        get_encoding("cl100k_base", backend="native", cache_bytes=cache_bytes, threads=threads)
        for cache_bytes, threads in ((0, 1), (1 * MIB, 3), (0, 2))
    ]
    texts = list(random_texts(random.Random(seed), usual.token_byte_values(), 2_000))
    # Far above the size from which several threads share a text.
    large = " ".join(texts) * (4 * MIB // len(" ".join(texts).encode()) + 1)
    expected = oracle("cl100k_base").encode_ordinary(large)
    for encoding in (usual, *others):
        assert encoding.encode_ordinary(large) == expected
        assert encoding.encode_array(large, disallowed_special=()).tolist() == expected
        assert encoding.encode_batch(texts, disallowed_special=()) == [
            oracle("cl100k_base").encode_ordinary(text) for text in texts
        ]
        for limit in (None, len(expected), len(expected) - 1, 0):
            count = encoding.count(large, limit=limit, disallowed_special=())
            assert count == min(len(expected), len(expected) if limit is None else limit + 1)


def test_special_tokens_in_a_large_text_are_found_on_several_threads() -> None:
    encoding = get_encoding("cl100k_base", backend="native", threads=3)
    text = ("so <|endoftext|>it goes<|fim_prefix|><|fim_middle|> " * 20 + "on " * 999) * 200
    expected = oracle("cl100k_base").encode(text, allowed_special="all")
    assert encoding.encode(text, allowed_special="all") == expected
    packed = encoding.encode_packed(text, allowed_special="all")
    assert packed == get_encoding("cl100k_base", threads=1).encode_packed(
        text, allowed_special="all"
    )


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize(
    ("option", "value"),
    [("cache_bytes", -1), ("cache_bytes", 1 << 41), ("threads", -1), ("threads", 1025)],
)
def test_more_memory_or_threads_than_any_machine_has_is_rejected(
    backend: BackendName, option: str, value: int
) -> None:
    spec = EncodingSpec(name="x", extends="r50k_base")
    options: dict[str, Any] = {option: value, "backend": backend}
    with pytest.raises(InvalidOption, match=str(value)) as caught:
        get_encoding("r50k_base", **options)
    assert caught.value.option == option
    with pytest.raises(InvalidOption, match=str(value)):
        load_encoding(spec, **options)


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_an_encoding_has_the_resources_it_was_given(backend: BackendName) -> None:
    spec = EncodingSpec(name="x", extends="r50k_base")
    few = Resources(cache_bytes=MIB, threads=2)
    assert get_encoding("r50k_base", backend=backend).resources == Resources(DEFAULT_CACHE_BYTES, 0)
    for encoding in (
        get_encoding("r50k_base", backend=backend, cache_bytes=MIB, threads=2),
        load_encoding(spec, backend=backend, cache_bytes=MIB, threads=2),
    ):
        assert encoding.resources == few
    assert get_encoding("gpt2", backend=backend, threads=2) is get_encoding(
        "r50k_base", backend=backend, threads=2
    )


@pytest.mark.parametrize("enabled", [True, False])
def test_pausing_the_collector_leaves_it_as_it_was(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        with suppress(KeyError), collector.paused():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
