"""Checkpoints of interrupted work: the counts so far, and the position in the texts.

A checkpoint is one file: a line of JSON, then a line for each pre-token in order of first
occurrence: its bytes in base64, a space, its count. It does not contain merges, which are
deterministic and take a fraction of the time of counting.
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

from bytepair_tools.shared.failure import Failure, reason
from bytepair_tools.shared.files import write_atomically

NAME: Final = "checkpoint"
_VERSION: Final = 4
_SLICE: Final = 1 << 16


@dataclass
class Position:
    """A position in the texts. The documents of a partly counted file are read and reported again.

    Attributes:
        file: Number of files that are completely counted.
        parts: Number of parts of the next file that are counted.
        replaced: Number of documents in these files with replaced bytes that were not UTF-8.
        skipped: Number of skipped documents in these files.
    """

    file: int = 0
    parts: int = 0
    replaced: int = 0
    skipped: int = 0


def write_checkpoint(
    path: Path, *, settings: dict[str, Any], position: Position, counts: PretokenCounts
) -> None:
    """Write a checkpoint.

    Args:
        path: The file.
        settings: The settings that affect the counts; they must be the same when resuming.
        position: The position in the texts.
        counts: The counts so far.
    Raises:
        Failure: The file cannot be written; an earlier one is unchanged.
    """
    head = {
        "version": _VERSION,
        "asked": settings,
        "position": asdict(position),
        "words": len(counts),
    }
    write_atomically(path, _lines(head, counts))


def _lines(head: dict[str, Any], counts: PretokenCounts) -> Iterator[bytes]:
    yield json.dumps(head).encode() + b"\n"
    for start in range(0, len(counts), _SLICE):
        items = counts.items(start, start + _SLICE)
        yield b"".join(b"%s %d\n" % (base64.b64encode(word), count) for word, count in items)


def read_checkpoint(path: Path, settings: dict[str, Any]) -> tuple[Position, PretokenCounts]:
    """Read a checkpoint with the same settings.

    Raises:
        Failure: There is no checkpoint, it is damaged, or its settings differ.
    """
    try:
        with path.open("rb") as file:
            head = json.loads(file.readline())
            _check(path, head, settings)
            counts = PretokenCounts.from_items(_items(file))
            if len(counts) != head["words"]:
                raise ValueError
            return Position(**head["position"]), counts
    except FileNotFoundError:
        raise Failure(f"{path}: there is no checkpoint to resume; train without --resume") from None
    except OSError as error:
        raise Failure(f"{path}: {reason(error)}") from None
    except (ValueError, KeyError, TypeError, binascii.Error):
        raise Failure(f"{path}: damaged; remove it, and train without --resume") from None


def _check(path: Path, head: dict[str, Any], settings: dict[str, Any]) -> None:
    if head["version"] != _VERSION:
        raise Failure(f"{path}: written by another version; remove it, and train without --resume")
    counted = head["position"]["file"] + (head["position"]["parts"] > 0)

    def fixed(asked: dict[str, Any]) -> dict[str, Any]:
        """The settings, of files that are not counted yet only the names: one may be repaired."""
        files = [file if n < counted else file[:1] for n, file in enumerate(asked["files"])]
        return asked | {"files": files}

    now, before = fixed(settings), fixed(head["asked"])
    differ = sorted(key for key in now if before.get(key) != now[key])
    if differ:
        raise Failure(
            f"{path}: belongs to a training with other {', '.join(differ)}; resume with the same "
            "ones, or remove it"
        )


def _items(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    for line in file:
        word, count = line.split()
        yield base64.b64decode(word, validate=True), int(count)
