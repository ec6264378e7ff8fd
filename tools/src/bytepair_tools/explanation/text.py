"""Write an explanation as lines for a terminal, with or without colours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from bytepair_engine.context.inspecting import Inspection
from bytepair_engine.pipeline.describing import Description

from bytepair_tools.explanation.explanation import Piece, order_of, shown_order
from bytepair_tools.explanation.tree import nodes
from bytepair_tools.shared.table import table
from bytepair_tools.shared.visible import visible, visible_bytes

Colour = Literal["auto", "always", "never"]

#: Background colours (of 256) for black text; adjacent ones also differ in lightness.
_BACKGROUNDS: Final = (153, 222, 158, 217, 189, 229)
_SPECIAL: Final = "\x1b[97;41m"
_RESET: Final = "\x1b[0m"

#: Maximum number of characters of the text that a finding shows.
_MAX_EXCERPT: Final = 40


def wants_colour(choice: Colour) -> bool:
    """Whether to write colours to standard output; "auto" follows https://no-color.org."""
    if choice != "auto":
        return choice == "always"
    is_dumb = os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and not is_dumb


def text_lines(pieces: Sequence[Piece], *, colour: bool) -> Iterator[str]:
    """Yield the text token by token, with alternating colours or with bars between tokens. A line
    ends after each token that contains a line feed."""
    line: list[str] = []
    for piece in pieces:
        shown = visible_bytes(piece.data)
        if colour:
            background = _BACKGROUNDS[piece.number % len(_BACKGROUNDS)]
            style = _SPECIAL if piece.kind == "special" else f"\x1b[30;48;5;{background}m"
            shown = f"{style}{shown}{_RESET}"
        line.append(shown)
        if b"\n" in piece.data:
            yield _joined(line, colour)
            line = []
    if line:
        yield _joined(line, colour)


def _joined(shown: Sequence[str], colour: bool) -> str:
    return ("" if colour else "|").join(shown)


def piece_lines(pieces: Sequence[Piece], order_name: str, max_listed: int) -> Iterator[str]:
    """Yield a table of the first `max_listed` tokens, with a column of shared characters if there
    are any."""
    has_shared = any(piece.shared for piece in pieces[:max_listed])
    rows = [
        [
            str(piece.number),
            str(piece.start),
            str(piece.id),
            shown_order(piece.order) if piece.kind in ("token", "byte") else piece.kind,
            f'"{visible_bytes(piece.data)}"',
            piece.data.hex(" "),
            *([f'"{visible(piece.shared)}"' if piece.shared else ""] if has_shared else []),
        ]
        for piece in pieces[:max_listed]
    ]
    heads = ["#", "byte", "id", order_name, "token", "bytes"]
    heads += ["part of"] if has_shared else []
    yield from table(heads, rows, left=(4, 5, 6))
    if (more := len(pieces) - max_listed) > 0:
        yield f"and {more:,} more: --limit N lists N, --json all"


def finding_lines(inspection: Inspection | None, text: str, max_listed: int) -> Iterator[str]:
    """Yield a table of the first `max_listed` findings in `text`, with ranges in code points; or
    the reason why there is none."""
    if inspection is None:
        yield "no findings: the split points of this encoding are not known"
        return
    stable = f"{inspection.stable_tokens:,} of {inspection.count:,} tokens"
    yield f"{stable} stay the same whatever text follows"
    rows = [
        [
            f"{finding.start}-{finding.end}",
            finding.code.name,
            visible(finding.token)
            if finding.token is not None
            else f"U+{finding.code_point:04X}"
            if finding.code_point is not None
            else f"id {finding.token_id}"
            if finding.token_id is not None
            else f'"{visible(text[finding.start : finding.end][:_MAX_EXCERPT])}"',
        ]
        for finding in inspection.findings[:max_listed]
    ]
    if rows:
        yield from table(["characters", "finding", "what"], rows, left=(0, 1, 2))
    if (more := sum(inspection.totals.values()) - len(rows)) > 0:
        yield f"and {more:,} more findings"


def tree_lines(derivation: Description, name: str) -> Iterator[str]:
    """Yield the tree of merges of one token, or the reason why there is none."""
    shown = f'"{visible_bytes(derivation.data)}", id {derivation.id}'
    parts = derivation.parts
    if not parts:
        yield f"{shown}: it is not merged"
        return
    if len(parts) > 1:
        left = " ".join(f'"{visible_bytes(part.spelling)}"' for part in parts)
        yield f"{shown}: merging its own bytes does not make it; it leaves {left}"
        return
    yield f"{shown}: how it is merged"
    for node in nodes(parts[0]):
        branch = "".join("    " if last else "│   " for last in node.is_last[:-1])
        branch += ("└── " if node.is_last[-1] else "├── ") if node.is_last else ""
        part = node.part
        described = "" if part.id is None else f"  id {part.id}"
        described += f"  {name} {order_of(part, name)}" if part.left else ""
        described += f"  … and {node.hidden} parts below" if node.hidden else ""
        yield f'{branch}"{visible_bytes(part.spelling)}"{described}'
