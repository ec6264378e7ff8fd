"""The result of each input: printed at once, or collected for JSON; failures go to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from bytepair_client._cli.inputs import shown
from bytepair_client._cli.output import (
    CommandError,
    ExitStatus,
    in_options,
    write,
    write_text,
)
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
