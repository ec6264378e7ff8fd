"""What the command prints: results, errors in its own words, and the exit status.

`sys.stdout` will not do: under PYTHONUNBUFFERED, as in container images, it drops what a pipe
does not take at once, and it refuses file names that are not UTF-8.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, Protocol

from bytepair_client._errors import (
    InputTooLarge,
    InvalidUtf8,
    Overloaded,
    QuotaExceeded,
    ResourceExhausted,
    SpecialTokenInText,
    TokenizerError,
    UnknownTokenId,
)

STANDARD_INPUT = "-"
_STANDARD_OUTPUT = 1
# The library names remedies by its arguments; these are the options of the command line.
_OPTIONS = {
    "disallowed_special=()": "--disallowed-special as-text",
    'errors="replace"': "--errors replace",
    "as_bytes": "--errors bytes",
    "tls=Tls(root_certificates=…)": "--tls-ca FILE",
    "Tls(root_certificates=…)": "--tls-ca FILE",
    "Tls(server_name=…)": "--tls-server-name NAME",
    "Tls(client_certificate=…, client_key=…)": "--tls-cert FILE and --tls-key FILE",
    "tls=True": "--tls",
    "leave out tls": "leave out --tls and its files",
    "list_encodings()": "'bytepair encodings'",
}


class ExitStatus(IntEnum):
    """What the shell sees. `bytepair --help` describes them."""

    OK = 0
    FAILED = 1
    USAGE = 2  # argparse's own
    TRY_LATER = 3
    INTERRUPTED = 130  # 128 + SIGINT, as shells say it
    BROKEN_PIPE = 141  # 128 + SIGPIPE


class CommandError(Exception):
    """A message for the person at the terminal, and how the command ends after it."""

    def __init__(self, message: str, status: ExitStatus = ExitStatus.FAILED) -> None:
        super().__init__(message)
        self.status = status


def shown(name: str) -> str:
    """What messages call a file."""
    return "standard input" if name == STANDARD_INPUT else name


def in_options(message: str) -> str:
    """A message of the library, with options in the place of arguments."""
    for argument, option in _OPTIONS.items():
        message = message.replace(argument, option)
    return message


def write(data: bytes) -> None:
    """Write all of `data`.

    Raises:
        OSError: It cannot be written; BrokenPipeError if its reader has ended.
    """
    left = memoryview(data)
    while left:
        left = left[os.write(_STANDARD_OUTPUT, left) :]


def write_text(text: str) -> None:
    """Write text as UTF-8, and file names in it as the bytes that they are."""
    write(text.encode(errors="surrogateescape"))


_TOO_LARGE = (InputTooLarge, ResourceExhausted)
# What is wrong with one input; any other error would hit all of them and ends the command.
_OF_ONE_INPUT = (InvalidUtf8, SpecialTokenInText, UnknownTokenId, *_TOO_LARGE, CommandError)


class _Answer(Protocol):
    """What every answer about text or ids says of its encoding."""

    encoding: str
    fingerprint: str


class Result:
    """What one input gave.

    Attributes:
        fields: For JSON.
        line: For people, if there is one.
        data: What goes out as it is, without a line end.
    """

    def __init__(self, name: str) -> None:
        self.fields: dict[str, Any] = {"file": name}
        self.line: str | None = None
        self.data = b""
        self.encoding: dict[str, str] = {}

    def answered(self, answer: _Answer) -> None:
        """Note what answered."""
        self.encoding = {"encoding": answer.encoding, "fingerprint": answer.fingerprint}


class Results:
    """The results of all inputs. One that fails is reported and skipped, as by wc."""

    def __init__(self, as_json: bool) -> None:
        self.status = ExitStatus.OK
        self._as_json = as_json
        self._encoding: dict[str, str] = {}
        self._files: list[dict[str, Any]] = []

    @contextmanager
    def of(self, name: str) -> Iterator[Result]:
        """Print the result that is filled in here, or tell why there is none."""
        result = Result(name)
        try:
            yield result
        except (Overloaded, QuotaExceeded):  # what the next input would meet too
            raise
        except _OF_ONE_INPUT as error:
            message = str(error) if isinstance(error, CommandError) else f"{shown(name)}: {error}"
            if isinstance(error, _TOO_LARGE):
                message += "; have the server's limit raised"
            message = in_options(message)
            self.status = ExitStatus.FAILED
            reason = error.reason if isinstance(error, TokenizerError) else None
            result.fields["error"] = {"reason": reason, "message": message}
            sys.stderr.write(f"bytepair: {message}\n")
        else:
            self._encoding = result.encoding
            if result.line is not None:
                self.print_line(result.line)
            if not self._as_json:
                write(result.data)
        self._files.append(result.fields)

    def print_line(self, line: str) -> None:
        """Print a line for people."""
        if not self._as_json:
            write_text(line + "\n")

    def print_json(self, **more: object) -> None:
        """Print everything, if JSON was requested."""
        if self._as_json:
            value = {**self._encoding, "files": self._files, **more}
            write_text(json.dumps(value) + "\n")
