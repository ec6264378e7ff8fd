"""The checkpoint of a training that was stopped: the counts so far, and where reading stopped.

A checkpoint is one file: a line of JSON, then a line for each pre-token in the order of first
occurrence, its bytes in base64, a space, its count. The merges are not in it: they follow from the
counts, always the same, in a fraction of the time that counting takes.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from bytepair_engine._core import PretokenCounts

from bytepair_tools.shared.failure import Failure
from bytepair_tools.shared.files import write_whole

NAME: Final = "checkpoint"
_VERSION: Final = 2
_SLICE: Final = 1 << 16


@dataclass
class Position:
    """How far reading has come.

    Attributes:
        file: How many files were read wholly.
        parts: How many parts of the next one were counted.
        replaced, skipped: How many documents had something replaced, or were left out.
    """

    file: int = 0
    parts: int = 0
    replaced: int = 0
    skipped: int = 0


def write_checkpoint(
    path: Path, *, asked: dict[str, Any], position: Position, counts: PretokenCounts
) -> None:
    """Write a checkpoint.

    Args:
        asked: What the counts depend on; resuming must ask for the same.
    Raises:
        Failure: It cannot be written; an earlier one is there still.
    """
    head = {"version": _VERSION, "asked": asked, "position": asdict(position), "words": len(counts)}
    write_whole(path, _lines(head, counts))


def _lines(head: dict[str, Any], counts: PretokenCounts) -> Iterator[bytes]:
    yield json.dumps(head).encode() + b"\n"
    for start in range(0, len(counts), _SLICE):
        items = counts.items(start, start + _SLICE)
        yield b"".join(b"%s %d\n" % (base64.b64encode(word), count) for word, count in items)


def read_checkpoint(path: Path, asked: dict[str, Any]) -> tuple[Position, PretokenCounts]:
    """Read a checkpoint of the same training.

    Raises:
        Failure: There is none, it is damaged, or it is of another training.
    """
    try:
        with path.open("rb") as file:
            head = json.loads(file.readline())
            _check(path, head, asked)
            counts = PretokenCounts.from_items(_items(file))
            if len(counts) != head["words"]:
                raise ValueError
            return Position(**head["position"]), counts
    except FileNotFoundError:
        raise Failure(f"{path}: there is no checkpoint to resume; train without --resume") from None
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, binascii.Error):
        raise Failure(f"{path}: damaged; remove it, and train without --resume") from None


def _check(path: Path, head: dict[str, Any], asked: dict[str, Any]) -> None:
    if head["version"] != _VERSION:
        raise Failure(f"{path}: written by another version; remove it, and train without --resume")
    differ = sorted(key for key in asked if head["asked"].get(key) != asked[key])
    if differ:
        raise Failure(
            f"{path}: belongs to a training with other {', '.join(differ)}; resume with the same "
            "ones, or remove it"
        )


def _items(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    for line in file:
        word, count = line.split()
        yield base64.b64decode(word, validate=True), int(count)
