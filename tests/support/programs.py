"""Programs that call real servers: how they are built and run."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
WORK: Final = ROOT / "build/interop"
#: The first build downloads dependencies.
BUILD_SECONDS: Final = 900
RUN_SECONDS: Final = 60


@dataclass(frozen=True)
class Served:
    """A server, and the variables for calling it.

    Attributes:
        target: Host and port.
        variables: The environment of a program.
    """

    target: str
    variables: dict[str, str]


def need(*programs: str) -> None:
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def call(
    *command: str,
    cwd: Path = ROOT,
    seconds: float = RUN_SECONDS,
    variables: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program with this test's tools in its path."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("BYTEPAIR_")}
    path = f"{WORK / 'bin'}{os.pathsep}{kept['PATH']}"
    return subprocess.run(
        command,
        cwd=cwd,
        env=kept | {"PATH": path, "GOBIN": str(WORK / "bin")} | (variables or {}),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def made(*command: str, cwd: Path = ROOT) -> None:
    done = call(*command, cwd=cwd, seconds=BUILD_SECONDS)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
