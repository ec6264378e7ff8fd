"""The command `bytepair-server`, apart from its settings."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import bytepair_server
import pytest
from support.serving import run_to_end


@pytest.mark.slow
def test_a_transport_that_is_older_than_its_sources_is_reported(tmp_path: Path) -> None:
    python, source = tmp_path / "python", tmp_path / "src" / "lib.rs"
    path = os.pathsep.join([str(python), os.environ.get("PYTHONPATH", "")])
    shutil.copytree(Path(bytepair_server.__file__).parent, python / "bytepair_server")
    assert run_to_end("--help", PYTHONPATH=path).stderr == ""  # there are no sources
    source.parent.mkdir()
    source.touch()
    warning = "the compiled transport is older than server/src: run `make install`"
    for age, expected in ((0, f"bytepair-server: {warning}\n"), (10**9, "")):
        os.utime(source, (source.stat().st_atime, source.stat().st_mtime - age))
        done = run_to_end("--help", PYTHONPATH=path)
        assert (done.returncode, done.stderr) == (0, expected)
