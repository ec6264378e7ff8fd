"""Builds and imports without Rust, or without the compiled core."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from support.slow import WITHOUT_CORE

ROOT = Path(__file__).resolve().parents[2]
BUILD_BACKEND = ROOT / "engine" / "build_backend"


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


def test_a_python_too_new_for_the_compiler_of_stubs_is_named(tmp_path: Path) -> None:
    """Without a wheel, pip would compile grpcio-tools, silently and for many minutes."""
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "import sys; sys.version_info = (3, 13); $2"\n'
    )
    python.chmod(0o755)
    shutil.copy(ROOT / "Makefile", tmp_path)
    made = subprocess.run(
        ["make", "build/proto/.installed", f"PYTHON={python}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 2
    assert "no wheel for Python 3.13 or newer" in made.stderr


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
