"""The encodings that a server loads: their self-test, resources and backend."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import Resources, get_encoding
from bytepair_server.catalog import SELF_TEST_IDS, SELF_TEST_TEXT, SelfTestFailed, load, verified
from bytepair_server.config.settings import Settings
from support.oracle import oracle
from support.serving import run_to_end
from support.slow import WITHOUT_CORE


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SELF_TEST_IDS))
def test_the_self_test_has_the_ids_of_the_oracle(name: str) -> None:
    assert tuple(oracle(name).encode_ordinary(SELF_TEST_TEXT)) == SELF_TEST_IDS[name]


def test_every_encoding_uses_the_threads_and_memory_of_the_settings() -> None:
    names: dict[str, Any] = {
        "builtin_encodings": ("r50k_base",),
        "encodings": {"mine": {"extends": "r50k_base"}},
    }
    settings = Settings(**names, cache_bytes=1 << 20, threads_per_call=3)
    catalog = load(settings, Path())
    used = [entry.encoding.resources for entry in catalog.entries]
    assert used == [Resources(cache_bytes=1 << 20, threads=3)] * 2
    # By default a call has one thread; the others are for other calls.
    assert load(Settings(**names), Path()).entries[0].encoding.resources.threads == 1


def test_an_encoding_with_wrong_ids_is_not_served() -> None:
    """Its table, pattern or core differs from the published one."""
    right = get_encoding("r50k_base")
    assert verified(right, ["gpt2"]).aliases == ("gpt2",)
    with pytest.raises(SelfTestFailed, match="cl100k_base: the self-test's text has the wrong ids"):
        verified(replace(right, name="cl100k_base"), [])


@pytest.mark.slow
def test_without_the_core_the_server_needs_a_setting() -> None:
    flags = "--check-config", "--builtin-encodings", "r50k_base"
    refused = run_to_end(*flags, **WITHOUT_CORE)
    assert refused.returncode == 2
    assert "allow_reference_backend" in refused.stderr
    assert "core cannot be loaded (import of bytepair_engine._core halted" in refused.stderr
    assert not refused.stdout
    allowed = run_to_end(*flags, "--allow-reference-backend", **WITHOUT_CORE)
    assert (allowed.returncode, allowed.stdout) == (0, "configuration is good\n")
