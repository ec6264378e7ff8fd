"""`bytepair inspect`: what a vocabulary file is, what it holds, and how it is served."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

#: What `bytepair --help` says of it.
SUMMARY = "what a vocabulary file is, and the lines that serve it"


def run(arguments: Sequence[str]) -> int:
    """Run the command.

    Args:
        arguments: What follows `bytepair inspect`.
    Returns:
        The exit status: 0, or 1 if a file was refused.
    """
    parser = argparse.ArgumentParser(
        prog="bytepair inspect", description=f"Print {SUMMARY}.", allow_abbrev=False
    )
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="a vocabulary file")
    parser.parse_args(arguments)
    return 0
