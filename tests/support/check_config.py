"""`bytepair-server --check-config` in this process, which is faster than starting one."""

from __future__ import annotations

import os
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from subprocess import CompletedProcess
from unittest.mock import patch

from bytepair_server import command

from support.serving import clean_environment


def check_config(*arguments: str, **variables: str) -> CompletedProcess[str]:
    """Check the configuration that flags and `BYTEPAIR_*` variables give."""
    stdout, stderr = StringIO(), StringIO()
    with (
        patch.dict(os.environ, clean_environment(**variables), clear=True),
        redirect_stdout(stdout),
        redirect_stderr(stderr),
    ):
        try:
            status = command.run(["--check-config", "--allow-reference-backend", *arguments])
        except SystemExit as ended_by:  # of --help
            status = int(ended_by.code or 0)
    return CompletedProcess(arguments, status, stdout.getvalue(), stderr.getvalue())
