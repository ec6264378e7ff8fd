"""Files and standard input, as text or as token ids."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from bytepair_client.cli.status import CommandError
from bytepair_client.options import DEFAULT_MAX_REQUEST_BYTES

STANDARD_INPUT = "-"

# Longer ones are no ids of any encoding, and Python refuses to read them from 4,300 digits on.
_NUMBER = re.compile(r"[0-9]{1,20}")


def read_text(name: str) -> str:
    """The text of a file, byte for byte: line ends and a byte order mark stay.

    Raises:
        CommandError: It cannot be read, is larger than a request may be, or is not UTF-8.
    """
    content = _read(name)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{shown(name)}: not UTF-8: byte {error.start} (0x{content[error.start]:02x}) "
            f"starts no character; convert it first, for example by iconv"
        ) from None


def read_ids(name: str) -> list[int]:
    """The token ids in a file: a JSON list, or numbers between white space and commas.

    Raises:
        CommandError: It cannot be read, is larger than a request may be, or holds something
            that is not a token id.
    """
    content = _read(name).decode(errors="replace").strip()
    words: list[object] = [*re.split(r"[\s,]+", content)] if content else []
    if content.startswith("["):
        try:
            words = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise CommandError(f"{shown(name)}: not a JSON list of token ids: {error}") from None
    ids = []
    for index, word in enumerate(words):
        if isinstance(word, str) and _NUMBER.fullmatch(word):
            ids.append(int(word))
        elif isinstance(word, int) and not isinstance(word, bool):
            ids.append(word)
        else:
            raise CommandError(f"{shown(name)}: number {index + 1} of the list is not a token id")
    return ids


def shown(name: str) -> str:
    """What messages call a file."""
    return "standard input" if name == STANDARD_INPUT else name


def _read(name: str) -> bytes:
    most = DEFAULT_MAX_REQUEST_BYTES
    try:
        if name == STANDARD_INPUT:
            content = sys.stdin.buffer.read(most + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(most + 1)
    except OSError as error:
        raise CommandError(f"{shown(name)}: {error.strerror}") from None
    if len(content) > most:
        raise CommandError(
            f"{shown(name)}: more than {most} bytes do not fit one request; split it"
        )
    return content
