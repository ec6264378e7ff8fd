"""The table of commands, which the entry points of this distribution name.

A command is a module with `parser()`, what it takes, and `run(args)`, which returns the exit status
or raises Failure or an error of the engine. It is imported when it is run, so that the list of
commands costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Command:
    """One command of `bytepair`.

    Attributes:
        name: What a person calls.
        SUMMARY: What `bytepair --help` says of it.
        module: Where it is, below this package.
    """

    name: str
    SUMMARY: str
    module: str

    def run(self, arguments: Sequence[str]) -> int:
        """Run the command.

        Args:
            arguments: What follows its name.
        Returns:
            The exit status: 0; 1 if something was rejected; 2 for wrong usage; 130 if it was
            interrupted; what the command says otherwise.
        """
        from bytepair_tools.shared.failure import run_command

        command = import_module(f"bytepair_tools.{self.module}")
        args = command.parser().parse_args(arguments)
        return run_command(f"bytepair {self.name}", lambda: int(command.run(args)))


audit = Command(
    "audit",
    "find what is wrong with a vocabulary: tokens that are never used, and others",
    "auditing.command",
)
corpus = Command(
    "corpus",
    "count, encode or count the pre-tokens of a corpus of many files",
    "corpus.command",
)
count_pretokens = Command(
    "count-pretokens", "count the pre-tokens of texts, to train on later", "counts.command"
)
evaluate = Command(
    "evaluate", "compare encodings on texts: bytes per token, tokens per word", "evaluation.command"
)
explain = Command(
    "explain", "show the tokens of a text, and how they are merged", "explanation.command"
)
extend = Command("extend", "add special tokens to an encoding", "training.extend_command")
inspect = Command(
    "inspect", "what a vocabulary file is, and the lines that serve it", "inspection.command"
)
train = Command("train", "train a merge table on texts", "training.train_command")
