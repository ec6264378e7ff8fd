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
        """Add pieces of the present owner. Empty text adds nothing."""
        found, owners, owner = self.pieces, self.owners, self.owner
        for piece in pieces:
            if piece != "":
                found.append(piece)
                owners.append(owner)

    def add_shared(self, parts: Sequence[tuple[int, str]]) -> None:
        """Add one text whose parts belong to several messages. Empty parts add nothing."""
        parts = [part for part in parts if part[1]]
        if len(parts) == 1:
            self.pieces.append(parts[0][1])
            self.owners.append(parts[0][0])
        elif parts:
            run = Run.of(parts[0][1], parts[0][0])
            for owner, text in parts[1:]:
                run = run.extended(text, owner)
            self.pieces.append(run)
            self.owners.append(parts[0][0])

    def join(self) -> None:
        """Put texts that stand side by side together: the runs of a format that is joined. A run
        of several owners becomes a `Run`, which remembers where each of them begins."""
        pieces: list[Piece] = []
        owners: list[int] = []
        for piece, owner in zip(self.pieces, self.owners, strict=True):
            last = pieces[-1] if pieces else None
            if isinstance(piece, str) and isinstance(last, str):
                if owner == owners[-1] and not isinstance(last, Run):
                    pieces[-1] = last + piece
                else:
                    pieces[-1] = Run.of(last, owners[-1]).extended(piece, owner)
            else:
                pieces.append(piece)
                owners.append(owner)
        self.pieces, self.owners = pieces, owners


class Run(str):
    """Text of several owners that is encoded as one.

    Attributes:
        starts: Where each owner's part begins, in code points, increasing.
        parts_owners: The owners of these parts.
    """

    starts: tuple[int, ...]
    parts_owners: tuple[int, ...]

    @classmethod
    def of(cls, text: str, owner: int) -> Run:
        """The run of one owner; `text` itself where it is one already."""
        if isinstance(text, Run):
            return text
        run = cls(text)
        run.starts, run.parts_owners = (0,), (owner,)
        return run

    def extended(self, text: str, owner: int) -> Run:
        """This run with more text behind it."""
        run = Run(str(self) + text)
        run.starts = (*self.starts, len(self))
        run.parts_owners = (*self.parts_owners, owner)
        return run
