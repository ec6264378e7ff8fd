"""A rendered chat: control tokens by name and text as text, each with what it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: Owners of what belongs to no message. They index the two places behind the messages' counts.
TOOLS: Final = -2
FRAME: Final = -1


class Control:
    """One control token, by its exact name. Only formats make them; no text becomes one."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Control({self.name!r})"


Piece = str | int | Control


class Layout:
    """The pieces of a chat in order.

    Attributes:
        pieces: Text, control tokens, and numbers for parts that the caller has counted.
        owners: For each piece the message that it belongs to, or TOOLS or FRAME.
        owner: What the next pieces belong to.
    """

    __slots__ = ("owner", "owners", "pieces")

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.owners: list[int] = []
        self.owner = FRAME

    def add(self, *pieces: Piece) -> None:
        """Add pieces of the present owner. Empty text has no tokens, and is no segment."""
        self.pieces += pieces
        self.owners += [self.owner] * len(pieces)

    def add_shared(self, parts: Sequence[tuple[int, str]]) -> None:
        """Add one text whose parts belong to several messages. Empty parts add nothing."""
        parts = [part for part in parts if part[1]]
        if parts:
            self.pieces.append(_run(parts))
            self.owners.append(parts[0][0])

    def join(self) -> None:
        """Put texts that stand side by side together: the runs of a format that is joined. A run
        of several owners becomes a `Run`, which remembers where each of them begins."""
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
    """Text of several owners that is encoded as one.

    Attributes:
        starts: Where each owner's part begins, in code points, increasing.
        parts_owners: The owners of these parts.
    """

    starts: tuple[int, ...]
    parts_owners: tuple[int, ...]


def _run(parts: Sequence[tuple[int, str]]) -> str:
    """The parts as one text; a `Run` if they belong to several owners."""
    text = "".join([part for _, part in parts])
    starts: list[int] = []
    owners: list[int] = []
    place = 0
    for owner, part in parts:
        if not owners or owner != owners[-1]:
            starts.append(place)
            owners.append(owner)
        place += len(part)
    if len(owners) == 1:
        return text
    run = Run(text)
    run.starts, run.parts_owners = tuple(starts), tuple(owners)
    return run
