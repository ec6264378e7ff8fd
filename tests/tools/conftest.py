"""The offline commands, run in this process: starting one for each would take longer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from bytepair_client._cli import main

#: Arguments, and the exit status and the words of an error that are expected; what was printed.
Shell = Callable[..., str]


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """Run `bytepair` in a folder of the test's own."""
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
