"""The command `bytepair` as a shell runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any
from unittest.mock import patch

from bytepair_client import _options
from bytepair_client._cli import main

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
        """Run the command in this process, which is faster than starting one, and return what it
        wrote to descriptor 1. The status must be `status`, and standard error must contain
        `errors`."""
        stderr = StringIO()
        with TemporaryFile() as given, TemporaryFile() as printed:
            given.write(stdin)
            given.seek(0)
            with (
                chdir(self.folder),
                patch.dict(os.environ, clean_environment(**self.variables), clear=True),
                # The server may be busy: the command waits longer for its certificate.
                patch.object(_options, "_PROBE_S", 60.0),
                _descriptor(0, given),
                _descriptor(1, printed),
                os.fdopen(1, "w", encoding="utf-8", closefd=False) as stdout,
                redirect_stdout(stdout),
                redirect_stderr(stderr),
            ):
                try:
                    ended = main([*map(str, arguments)])
                except SystemExit as ended_by:
                    ended = int(ended_by.code or 0)
            printed.seek(0)
            output = printed.read().decode()
        assert ended == status, stderr.getvalue()
        assert errors in stderr.getvalue(), stderr.getvalue()
        assert bool(stderr.getvalue()) == bool(errors)
        return output

    def start(
        self, *arguments: str | Path, stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE
    ) -> subprocess.Popen[bytes]:
        """Start the command in a process of its own, with a pipe as standard input."""
        return subprocess.Popen(
            command(*arguments),
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            cwd=self.folder,
            env=clean_environment(**self.variables),
        )


@contextmanager
def _descriptor(number: int, file: IO[bytes]) -> Iterator[None]:
    """Let a descriptor of this process stand for a file."""
    saved = os.dup(number)
    os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        os.dup2(saved, number)
        os.close(saved)
