"""The command `bytepair` in this process, which is faster than starting one for each use."""

from __future__ import annotations

import pytest
from bytepair_client._cli import main


class Command:
    """Runs the command, and returns its output."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, status: int = 0, errors: str = "") -> str:
        """Return standard output. The status must be `status`, and standard error must contain
        `errors`."""
        try:
            ended = main(arguments)
        except SystemExit as ended_by:
            ended = int(ended_by.code or 0)
        printed = self._capsys.readouterr()
        assert ended == status, printed.err
        assert errors in printed.err, printed.err
        assert bool(printed.err) == bool(errors)
        return printed.out
