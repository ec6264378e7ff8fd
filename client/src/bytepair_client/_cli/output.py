"""Errors in the words of the command line, and exit statuses.

`sys.stdout` will not do: under PYTHONUNBUFFERED, as in container images, it drops what a pipe
does not take at once, and it refuses file names that are not UTF-8.
"""

from __future__ import annotations

import os
from enum import IntEnum

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
