"""Runs the offline commands in this process, which is faster than starting one for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from bytepair_client._cli import main

#: Arguments, and the expected exit status and words of the error. Returns the output.
Shell = Callable[..., str]


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """Run `bytepair` in a temporary folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, status: int = 0, errors: str = "") -> str:
        try:
            ended = main(arguments)
        except SystemExit as ended_by:
            ended = int(ended_by.code or 0)
        printed = capsys.readouterr()
        assert ended == status, printed.err
        assert errors in printed.err
        assert bool(printed.err) == bool(errors)
        return printed.out

    return run
