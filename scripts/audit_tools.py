"""Run the tools of an audit."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
#: Where the Makefile installs them.
TOOLS: Final = ROOT / "build" / "audit" / "bin"
#: Time limit of a tool: more than compiling cargo-deny on one core takes.
SECONDS: Final = 3600.0


def run(
    *command: str | Path, folder: Path = ROOT, seconds: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end.

    Args:
        command: The command.
        folder: The working directory.
        seconds: The time limit.
    Returns:
        The result with its output. A tool that exceeds the limit has failed, as `stderr` says.
    """
    # In a session of its own it has no terminal to ask for a password, and can be ended together
    # with its children.
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as tool:
        try:
            out, error = tool.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(tool.pid, signal.SIGKILL)
            return subprocess.CompletedProcess(command, 1, "", f"no answer within {seconds:g} s")
        except BaseException:
            os.killpg(tool.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, tool.returncode, out, error)


def last_line(ran: subprocess.CompletedProcess[str]) -> str:
    """Return the last line that a tool wrote to standard error, which usually says why it
    failed."""
    return (ran.stderr.strip().splitlines() or ["it said nothing"])[-1]
