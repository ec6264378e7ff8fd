"""Builds and imports without Rust, or without the compiled core."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.slow import WITHOUT_CORE

BUILD_BACKEND = Path(__file__).resolve().parents[2] / "engine" / "build_backend"


def test_a_missing_toolchain_is_named(tmp_path: Path) -> None:
    """The first call that pip makes to the backend, with an empty PATH."""
    ask = "import bytepair_build; bytepair_build.get_requires_for_build_wheel()"
    asked = subprocess.run(
        [sys.executable, "-c", ask],
        env={"PATH": str(tmp_path), "PYTHONPATH": str(BUILD_BACKEND)},
        capture_output=True,
        text=True,
    )
    assert asked.returncode == 1
    assert "no `cargo` on PATH" in asked.stderr
    assert "Install Rust 1.91" in asked.stderr
    assert "Traceback" not in asked.stderr


def test_without_the_core_the_reference_is_used() -> None:
    ask = """
import bytepair_engine
assert bytepair_engine.get_encoding("gpt2").backend == "reference"
try:
    bytepair_engine.get_encoding("gpt2", backend="native")
except bytepair_engine.InvalidOption as error:
    print(error)
"""
    asked = subprocess.run(
        [sys.executable, "-c", ask],
        env=os.environ | WITHOUT_CORE,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "the native core cannot be loaded" in asked.stdout
