"""The table of commands, which are the entry points of this distribution.

A command is a module with `parser()`, which returns its argument parser, and `run(args)`, which
returns the exit status, or raises Failure or an error of the engine. The module is imported when
the command runs, so listing commands is cheap.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper


@dataclass(frozen=True)
class Command:
    """One command of `bytepair`.

    Attributes:
        name: The name of the command.
        SUMMARY: The description in `bytepair --help`.
        module: The module, relative to this package.
    """

    name: str
    SUMMARY: str
    module: str

    def run(self, arguments: Sequence[str]) -> int:
        """Run the command.

        Args:
            arguments: The arguments after the name.
        Returns:
            The exit status: 0; 1 if input was rejected; 2 for wrong usage; 130 if it was
            interrupted; or a status of the command.
        """
        from bytepair_tools.shared.failure import run_command

        if isinstance(sys.stdout, TextIOWrapper):
            # As the client's commands: UTF-8 in every locale, and file names keep their bytes.
            sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
        command = import_module(f"bytepair_tools.{self.module}")
        args = command.parser().parse_args(arguments)
        return run_command(f"bytepair {self.name}", lambda: int(command.run(args)))


audit = Command(
    "audit",
    "check a vocabulary for problems, such as tokens that are never used",
    "auditing.command",
)
corpus = Command(
    "corpus",
    "count tokens, encode, or count pre-tokens in a corpus of many files",
    "corpus.command",
)
count_pretokens = Command(
    "count-pretokens", "count the pre-tokens of texts, for training", "counts.command"
)
evaluate = Command(
    "evaluate", "compare encodings on texts: bytes per token, tokens per word", "evaluation.command"
)
explain = Command(
    "explain", "show the tokens of a text, and how they are merged", "explanation.command"
)
extend = Command("extend", "add special tokens to an encoding", "training.extend_command")
inspect = Command(
    "inspect", "describe vocabulary files, and print their configuration", "inspection.command"
)
train = Command("train", "train a merge table on texts", "training.train_command")
