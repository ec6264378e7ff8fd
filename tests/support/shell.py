"""The command `bytepair` as a shell runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from support.serving import clean_environment


def command(*arguments: str | Path, largest_file: int | None = None) -> list[str]:
    """Return the command line of `bytepair` with arguments.

    Args:
        arguments: The arguments after the program's name.
        largest_file: Maximum size in bytes of a written file, as on a full disk; None for no limit.
            The process sets it itself, because code between fork and exec is not safe with gRPC.
    """
    patient = "from bytepair_client import _options; _options._PROBE_S = 60"
    run = f"import sys; from bytepair_client._cli import main; {patient}; sys.exit(main())"
    if largest_file is not None:
        limit = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({largest_file}, {largest_file}))"
        run = f"import resource; {limit}; {run}"
    return [sys.executable, "-c", run, *map(str, arguments)]


class Shell:
    """Runs the command in a folder, with environment variables for server and encoding."""

    def __init__(self, folder: Path, target: str) -> None:
        self.folder = folder
        self.variables = {"BYTEPAIR_TARGET": target, "BYTEPAIR_ENCODING": "o200k_base"}

    def __call__(
        self, *arguments: str | Path, stdin: bytes = b"", status: int = 0, errors: str = ""
    ) -> str:
        """Return standard output. The status must be `status`, and standard error must contain
        `errors`."""
        ran = subprocess.run(
            command(*arguments),
            input=stdin,
            capture_output=True,
            cwd=self.folder,
            env=clean_environment(**self.variables),
            check=False,
        )
        stderr = ran.stderr.decode()
        assert "Traceback" not in stderr
        assert ran.returncode == status, stderr
        assert errors in stderr, stderr
        assert bool(stderr) == bool(errors)
        return ran.stdout.decode()

    def start(
        self, *arguments: str | Path, stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE
    ) -> subprocess.Popen[bytes]:
        """Start the command, with a pipe as standard input."""
        return subprocess.Popen(
            command(*arguments),
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            cwd=self.folder,
            env=clean_environment(**self.variables),
        )
