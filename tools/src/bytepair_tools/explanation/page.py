"""An explanation as one page of HTML that needs nothing else: no script, no font, no other file.

The text is anybody's. What is shown of it has been made visible first (`visible.py`) and is
escaped; nothing of it becomes a tag, an attribute's name or a style, and the page's policy lets no
script run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from bytepair_engine import Encoding

from bytepair_tools.explanation.explanation import Derivation, Piece, order_of, shown_order
from bytepair_tools.explanation.tree import nodes
from bytepair_tools.shared.visible import visible, visible_bytes

_STYLE: Final = """\
:root { color-scheme: light dark; --line: #8888; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
code, td, .text, .tree { font-family: ui-monospace, Menlo, Consolas, monospace; }
.text { font-size: 1.1rem; line-height: 2; white-space: pre-wrap; overflow-wrap: anywhere; }
.text a { color: #111; text-decoration: none; border-radius: 3px; padding: 2px 0; }
.text a:hover, .text a:focus { outline: 2px solid currentColor; }
.c0 { background: #a6cee3; } .c1 { background: #fdd49e; } .c2 { background: #b2df8a; }
.c3 { background: #f4b6c2; } .c4 { background: #d5c7ec; } .c5 { background: #fff3a6; }
.text a.special { background: #b3001b; color: #fff; }
table { border-collapse: collapse; } th, td { padding: .15rem .7rem; text-align: left; }
th { border-bottom: 1px solid var(--line); font-weight: 600; }
td { white-space: pre-wrap; overflow-wrap: anywhere; }
td a { color: inherit; text-decoration: none; } td.n, th.n { text-align: right; }
tr:nth-child(even) { background: var(--soft); } code { overflow-wrap: anywhere; }
.wide, .tree { overflow-x: auto; }
.tree { display: none; } .tree:target, .tree.chosen { display: block; }
body:has(.tree:target) .tree.chosen:not(:target) { display: none; }
.tree ul { list-style: none; margin: 0; padding-left: 1.6rem; border-left: 1px solid var(--line); }
.tree > ul { padding-left: 0; border: 0; } .tree li::before { content: "─ "; color: var(--line); }
.tree > ul > li::before { content: ""; }
.tree b { background: var(--soft); font-weight: inherit; white-space: pre-wrap; padding: 0 .2em; }
.tree span, .about, td span { opacity: .7; }
@media (max-width: 40rem) {
  body { margin: 1rem auto; } th, td { padding: .15rem .3rem; font-size: .8rem; }
  .text a { padding: .3rem 0; } .tree ul { padding-left: .6rem; }
}
"""


def page(
    encoding: Encoding,
    order_name: str,
    pieces: Sequence[Piece],
    derivations: Sequence[Derivation],
    chosen: int | None,
) -> Iterator[str]:
    """The lines of the page.

    Args:
        encoding: What the text was encoded into.
        order_name: What the order of a token is: a rank, a priority or a score.
        pieces: The tokens of the text.
        derivations: Of each id in `pieces`, once.
        chosen: The id of the token whose tree is shown first; None for the first token of several
            parts.
    """
    name = escape(visible(encoding.name))
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield (
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    )
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{len(pieces)} tokens of {name}</title>"
    yield f"<style>\n{_STYLE}</style></head><body>"
    size = sum(len(piece.data) for piece in pieces)
    yield f"<h1>{len(pieces):,} tokens of {name}</h1>"
    yield (
        f'<p class="about">{size:,} bytes, {size / max(1, len(pieces)):.2f} bytes per token; '
        f"fingerprint <code>{escape(encoding.fingerprint)}</code></p>"
    )
    yield f'<div class="text" dir="auto">{"".join(map(_span, pieces))}</div>'
    yield "<h2>How a token is merged</h2>"
    yield '<p class="about">Choose a token in the text or in the table.</p>'
    if chosen is None:
        chosen = next((d.id for d in derivations if len(d.data) > 1 and d.parts), None)
    for derivation in derivations:
        yield from _tree(derivation, is_chosen=derivation.id == chosen)
    yield "<h2>Tokens</h2>"
    yield '<div class="wide"><table><tr><th class="n">#<th class="n">byte<th class="n">id'
    yield f'<th class="n">{order_name}'
    yield "<th>token<th>bytes</tr>"
    yield from map(_row, pieces)
    yield "</table></div></body></html>"


def _span(piece: Piece) -> str:
    shown = escape(visible_bytes(piece.data))
    style = "special" if piece.kind == "special" else f"c{piece.number % 6}"
    title = f"id {piece.id}, bytes {piece.data.hex(' ')}{escape(_part_of(piece))}"
    # An escape reads from the left within text that reads from the right.
    direction = ' dir="ltr"' if "\\" in shown else ""
    ended = "<br>" if b"\n" in piece.data else ""
    return f'<a class="{style}" href="#t{piece.id}" title="{title}"{direction}>{shown}</a>{ended}'


def _row(piece: Piece) -> str:
    order = shown_order(piece.order) if piece.kind in ("token", "byte") else piece.kind
    numbers = (str(piece.number), str(piece.start), str(piece.id), order)
    cells = [f'<td class="n">{number}' for number in numbers]
    shown = f'<td><a href="#t{piece.id}">{escape(visible_bytes(piece.data)) or "(nothing)"}</a>'
    shown += f"<span>{escape(_part_of(piece))}</span>"
    return f"<tr>{''.join(cells)}{shown}<td>{piece.data.hex(' ')}</tr>"


def _part_of(piece: Piece) -> str:
    return f", part of {visible(piece.shared)}" if piece.shared else ""


def _tree(derivation: Derivation, *, is_chosen: bool) -> Iterator[str]:
    """The tree as lists within lists."""
    style = "tree chosen" if is_chosen else "tree"
    shown = f"<b>{escape(visible_bytes(derivation.data))}</b>"
    yield f'<section class="{style}" id="t{derivation.id}">'
    yield f"<p>{shown} <span>id {derivation.id}</span>"
    parts = derivation.parts
    if len(parts) == 1:
        level = -1
        for node in nodes(parts[0]):
            # Down by one list, or up again by as many as are ended.
            yield "<ul>" if node.level > level else "</ul>" * (level - node.level)
            level = node.level
            part = node.part
            told = "" if part.id is None else f" id {part.id}"
            if part.left is not None:
                told += f" {derivation.order_name} {order_of(part, derivation.order_name)}"
            told += f" … and {node.hidden} parts below" if node.hidden else ""
            yield f"<li><b>{escape(visible_bytes(part.spelling))}</b><span>{told}</span>"
        yield "</ul>" * (level + 1)
    elif parts:
        left = " ".join(f"<b>{escape(visible_bytes(part.spelling))}</b>" for part in parts)
        yield f"<p>Merging its own bytes does not make it; it leaves {left}"
    else:
        yield "<p>It is not merged."
    yield "</section>"
