"""The output of the command: results, errors and the exit status.

It does not use `sys.stdout`, which under PYTHONUNBUFFERED drops data if a pipe is full, and rejects
file names that are not UTF-8.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

from bytepair_client import _errors as errors
from bytepair_client._operations.batches import OF_ONE_ITEM

STANDARD_INPUT = "-"
_STANDARD_OUTPUT = 1
# Above this number, special tokens are listed in JSON only.
MAX_LISTED = 20
# Remedies in messages of the library and the server, as options of the command.
_REMEDIES = {
    "disallowed_special=()": "--disallowed-special as-text",
    'disallowed_special="all"': "--disallowed-special reject",
    'errors="replace"': "--errors replace",
    'keep="both"': "--keep both",
    'keep="start" and keep="end" do not': "--keep start and --keep end do not",
    "decode_bytes() (in a stream, as_bytes=True)": "--errors bytes",
    "tls=Tls(root_certificates=…)": "--tls-ca FILE",
    "Tls(root_certificates=…)": "--tls-ca FILE",
    "Tls(server_name=…)": "--tls-server-name NAME",
    "Tls(client_certificate=…, client_key=…)": "--tls-cert FILE and --tls-key FILE",
    "tls=True": "--tls",
    "leave out tls": "leave out --tls and its files",
    "list_encodings()": "'bytepair encodings'",
    "list_chat_formats()": "'bytepair chat-formats'",
    "the server's max_input_bytes and max_ids": "the server's --max-input-bytes and --max-ids",
    "the operator's max_pending_bytes decides": "the server's --max-pending-bytes decides",
    ", or None for no deadline": "",
    " (max_unary_bytes of the client)": "",
    " (max_request_bytes)": "",
    " (max_response_bytes)": "",
}
#: The arguments of the client's methods that are options of commands.
ARGUMENTS = (
    *("add_special_tokens", "allowed_special", "disallowed_special", "format", "keep", "level"),
    *("marker", "max_tokens", "overlap_tokens", "skip_special_tokens"),
    "expected_format_fingerprint",
)
# Arguments in messages, as options of the command.
_OPTIONS = {
    "api_key": "--api-key-file",
    "client_certificate": "--tls-cert",
    "client_key": "--tls-key",
    "root_certificates": "--tls-ca",
} | {
    name: "--" + name.replace("_", "-")
    for name in ("expected_fingerprint", *ARGUMENTS)
    if "_" in name
}
_ARGUMENT = re.compile(rf"\b(?:tls: |tls\.)?({'|'.join(_OPTIONS)})\b")
# Words that are arguments only at the start of a message.
_FIELD = re.compile(r"^(encoding|errors|format|keep|level|marker|target|timeout)(?=: )")


class ExitStatus(IntEnum):
    """The exit status. `bytepair --help` describes it."""

    OK = 0
    FAILED = 1
    USAGE = 2  # argparse's own
    TRY_LATER = 3
    INTERRUPTED = 130  # 128 + SIGINT, as shells say it
    BROKEN_PIPE = 141  # 128 + SIGPIPE


class CommandError(Exception):
    """An error message for the user, with the exit status. `Results` adds the name of the input."""

    def __init__(self, message: str, status: ExitStatus = ExitStatus.FAILED) -> None:
        super().__init__(message)
        self.status = status


def shown(name: str) -> str:
    """The name of an input in messages."""
    return "standard input" if name == STANDARD_INPUT else name


def in_options(message: str) -> str:
    """A message of the library, with the options of the command instead of arguments."""
    for remedy, option in _REMEDIES.items():
        message = message.replace(remedy, option)
    message = _ARGUMENT.sub(lambda found: _OPTIONS[found[1]], message)
    return _FIELD.sub(r"--\1", message)


def write(data: str | bytes) -> None:
    """Write all of `data`, text as UTF-8; file names in it keep their bytes.

    Raises:
        OSError: It cannot be written; BrokenPipeError if the reader has ended.
    """
    left = memoryview(data.encode(errors="surrogateescape") if isinstance(data, str) else data)
    while left:
        left = left[os.write(_STANDARD_OUTPUT, left) :]


def write_json(value: object, *, ensure_ascii: bool = True) -> None:
    """Write a value as a line of JSON."""
    write(json.dumps(value, ensure_ascii=ensure_ascii, default=dict) + "\n")


def write_ids(stream: Iterable[list[int]]) -> None:
    """Write ids when they arrive, on one line, and end the line in any case."""
    separator = ""
    try:
        for ids in stream:
            write(separator + " ".join(map(str, ids)))
            separator = " "
    finally:
        if separator:
            write("\n")


def described(info: Any) -> str:
    """A line for each field of a description."""
    lines = []
    for name, value in fields_of(info).items():
        if isinstance(value, Mapping):
            value = [f"{token} {token_id}" for token, token_id in value.items()]
            if len(value) > MAX_LISTED:
                value = [f"{len(value)}; --json lists them"]
        if isinstance(value, list | tuple):
            value = ", ".join(value) or "none"
        lines.append(f"{name + ':':16} {value}\n")
    return "".join(lines)


def fields_of(info: Any) -> dict[str, Any]:
    """The fields of a dataclass by name."""
    return {field.name: getattr(info, field.name) for field in fields(info)}


#: Errors after which a later attempt may succeed. They end the command.
LATER = (errors.Unavailable, errors.DeadlineExceeded, errors.Overloaded, errors.QuotaExceeded)
# Errors of a single input. Any other error ends the command.
_OF_ONE_INPUT = (*OF_ONE_ITEM, errors.ResourceExhausted, CommandError)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one input."""

    fields: dict[str, Any]  # for JSON
    response: Any = None  # names the encoding
    output: str | bytes = b""  # for people


class Results:
    """The results of all inputs. An input that fails is reported and skipped, like in wc."""

    def __init__(self, inputs: int, *, as_json: bool) -> None:
        self._inputs = inputs
        self._status = ExitStatus.OK
        self._as_json = as_json
        self._encoding: dict[str, str] = {}
        self._files: list[dict[str, Any]] = []

    def add(self, name: str, result: Result) -> None:
        """Print the result of an input, or keep it for JSON."""
        response = result.response
        if response is not None:
            self._encoding = {"encoding": response.encoding, "fingerprint": response.fingerprint}
        if not self._as_json:
            write(result.output)
        self._files.append({"file": name, **result.fields})

    @contextmanager
    def errors_of(self, name: str) -> Iterator[None]:
        """Report an error of the input, and continue with the next. Any other error gets a note of
        the inputs that are left."""
        try:
            yield
        except Exception as error:
            if isinstance(error, LATER) or not isinstance(error, _OF_ONE_INPUT):
                if self._inputs > 1:
                    left = f"{self._inputs - len(self._files)} of {self._inputs} inputs not done"
                    error.add_note(f"; stopped at {shown(name)}: {left}")
                raise
            reason, problem = None, str(error)
            if isinstance(error, errors.TokenizerError):
                reason, problem = error.reason, in_options(problem)
            message = f"{shown(name)}: {problem}"
            # Only a limit of the size is the server's to raise.
            if (
                isinstance(error, errors.InputTooLarge)
                and error.code is not None
                and "size" in error.metadata
                and "follows from" not in error.message
            ):
                message += "; have the server's limit raised"
            self._status = ExitStatus.FAILED
            self._files.append({"file": name, "error": {"reason": reason, "message": message}})
            sys.stderr.write(f"bytepair: {message}\n")

    def end(self, *, sums: bool) -> ExitStatus:
        """Print the JSON or the total. Returns the exit status."""
        total = sum(fields.get("count", 0) for fields in self._files)
        if self._as_json:
            value = {**self._encoding, "files": self._files}
            write_json(value | {"total": total} if sums else value)
        elif sums and len(self._files) > 1:
            write(f"{total:9} total\n")
        return self._status
