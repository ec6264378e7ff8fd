"""A rendered chat: texts and control tokens, each with its owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: Owners of pieces that belong to no message. They index the last two entries of a list of counts.
TOOLS: Final = -2
FRAME: Final = -1


class Control:
    """A control token, by its exact name. Only formats create them; text never becomes one."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Control({self.name!r})"


Piece = str | int | Control


class Layout:
    """The pieces of a chat in order.

    Attributes:
        pieces: Texts, control tokens, and numbers of tokens that the caller or the format counted.
        owners: The owner of each piece: the index of a message, TOOLS or FRAME.
        owner: The owner of the pieces that are added next.
    """

    __slots__ = ("owner", "owners", "pieces")

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.owners: list[int] = []
        self.owner = FRAME

    def add(self, *pieces: Piece) -> None:
        """Add pieces of the current owner. Empty text has no tokens and is not a segment."""
        self.pieces += pieces
        self.owners += [self.owner] * len(pieces)

    def add_shared(self, parts: Sequence[tuple[int, str]]) -> None:
        """Add one text whose parts belong to several messages. Empty parts are skipped."""
        parts = [part for part in parts if part[1]]
        if parts:
            self.pieces.append(_run(parts))
            self.owners.append(parts[0][0])

    def join(self) -> None:
        """Join adjacent texts, for formats that encode runs. A text with several owners becomes a
        `Run`."""
        pieces: list[Piece] = []
        owners: list[int] = []
        parts: list[tuple[int, str]] = []
        for piece, owner in zip([*self.pieces, 0], [*self.owners, FRAME], strict=True):
            if isinstance(piece, str):
                if piece:
                    parts.append((owner, piece))
                continue
            if parts:
                pieces.append(_run(parts))
                owners.append(parts[0][0])
                parts = []
            pieces.append(piece)
            owners.append(owner)
        self.pieces, self.owners = pieces[:-1], owners[:-1]


class Run(str):
    """A text with several owners that is encoded as one.

    Attributes:
        starts: The start of each part in code points, increasing.
        parts_owners: The owner of each part.
    """

    starts: tuple[int, ...]
    parts_owners: tuple[int, ...]


def _run(parts: Sequence[tuple[int, str]]) -> str:
    """Join the parts into one text: a `Run` if they have several owners."""
    text = "".join([part for _, part in parts])
    starts: list[int] = []
    owners: list[int] = []
    end = 0
    for owner, part in parts:
        if not owners or owner != owners[-1]:
            starts.append(end)
            owners.append(owner)
        end += len(part)
    if len(owners) == 1:
        return text
    run = Run(text)
    run.starts, run.parts_owners = tuple(starts), tuple(owners)
    return run
