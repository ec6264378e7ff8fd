"""Installing the engine where there is no Rust says what is missing and what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BUILD_BACKEND = Path(__file__).resolve().parents[2] / "engine" / "build_backend"


def test_a_missing_toolchain_is_named(tmp_path: Path) -> None:
    """pip's first question to the backend; there is no program at all on this PATH."""
    ask = "import bytepair_build; bytepair_build.get_requires_for_build_wheel()"
    asked = subprocess.run(
        [sys.executable, "-c", ask],
        env={"PATH": str(tmp_path), "PYTHONPATH": str(BUILD_BACKEND)},
        capture_output=True,
        text=True,
    )
    assert asked.returncode == 1
    assert "no `cargo` on PATH" in asked.stderr
    assert "Install Rust 1.88" in asked.stderr
    assert "Traceback" not in asked.stderr
