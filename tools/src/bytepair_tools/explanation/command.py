"""The command `bytepair explain`: show the tokens of a text."""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from bytepair_engine import Encoding
from bytepair_engine.context.inspecting import Inspection, inspect
from bytepair_engine.pipeline.derivation import flat
from bytepair_engine.pipeline.describing import Description
from bytepair_engine.streaming.encoder import can_stream

from bytepair_tools.explanation.explanation import Explainer, Piece
from bytepair_tools.explanation.page import MAX_FINDINGS, page
from bytepair_tools.explanation.text import (
    finding_lines,
    piece_lines,
    text_lines,
    tree_lines,
    wants_colour,
)
from bytepair_tools.shared.encodings import (
    add_encoding_option,
    add_file_options,
    allowed_special,
    one_encoding,
)
from bytepair_tools.shared.failure import USAGE, Failure, reason
from bytepair_tools.shared.files import write_atomically
from bytepair_tools.shared.table import counted
from bytepair_tools.shared.visible import visible, visible_bytes
from bytepair_tools.texts.options import natural_number

#: Default number of tokens listed; JSON and the page have all.
DEFAULT_MAX_LISTED: Final = 200

_DESCRIPTION: Final = """\
Show the tokens of a text in colour, each with its id, rank and bytes, and the merges of one of
them. Characters that could affect the terminal (control characters, characters that change the
direction of text) and incomplete characters are shown as escapes.
"""

_EPILOG: Final = """\
examples:
  bytepair explain 'Hello, naïve world' --encoding gpt-4o
  bytepair explain 'Hello, naïve world' --encoding gpt-4o --token 4
  bytepair explain --encoding cl100k_base --token ' world'
  bytepair explain - --encoding tokenizer.json --html tokens.html < text.txt

Colours are decided by --color, else by NO_COLOR, else by whether the output is a terminal.

exit status: 0; 1 if input was rejected; 2 for wrong usage
"""


def run(args: argparse.Namespace) -> int:
    """Run the command, and return its exit status."""
    if args.text is None and args.token is None:
        raise Failure("TEXT or --token is required", USAGE)
    encoding = one_encoding(args.encoding, pattern=args.pattern, encoder_file=args.encoder_file)
    allowed = allowed_special(args.allowed_special, encoding)
    explainer = Explainer(encoding)
    text = _text(args.text)
    pieces = []
    if text is not None:
        pieces = explainer.pieces(
            text,
            allowed_special=allowed,
            add_special_tokens=args.add_special_tokens,
        )
    flagged = () if args.flagged_tokens is None else _flagged(args.flagged_tokens, encoding.name)
    inspection = _inspection(encoding, text, flagged)
    chosen = None
    if args.token is not None:
        chosen = explainer.describe(_token_id(explainer, args.token, text, pieces))
    if args.html is not None:
        ids = dict.fromkeys(piece.id for piece in pieces) | ({chosen.id: None} if chosen else {})
        derivations = [explainer.describe(token_id) for token_id in ids]
        first = chosen.id if chosen else None
        order = explainer.order_name
        written = page(encoding, order, text or "", pieces, derivations, first, inspection)
        write_atomically(args.html, [written.encode()])
    if args.json:
        sys.stdout.write(json.dumps(_fields(explainer, pieces, chosen, inspection)) + "\n")
    elif args.html is None:
        lines = _lines(args, explainer, text, pieces, chosen, inspection)
        sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    return 0


def _flagged(path: Path, name: str) -> list[int]:
    """Read the flagged ids of an encoding from a file, as in the server's configuration."""
    try:
        ids = tomllib.loads(path.read_text(encoding="utf-8"))["flagged_tokens"][name]
    except OSError as error:
        raise Failure(f"{path}: cannot be read: {reason(error)}") from None
    except (ValueError, KeyError, TypeError):
        raise Failure(f"{path}: not TOML with a table flagged_tokens that has {name}") from None
    if not isinstance(ids, list) or not all(type(token_id) is int for token_id in ids):
        raise Failure(f"{path}: flagged_tokens.{name} must be a list of token ids")
    return ids


def _inspection(encoding: Encoding, text: str | None, flagged: Sequence[int]) -> Inspection | None:
    """Inspect the text; None if the encoding does not support it."""
    if text is None or not can_stream(encoding):
        return None
    return inspect(encoding, text, max_findings=MAX_FINDINGS, flagged=flagged)


def _text(argument: str | None) -> str | None:
    if argument is None:
        return None
    source, data = "TEXT", argument.encode(errors="surrogateescape")  # its bytes in every locale
    if argument == "-":
        source, data = "standard input", sys.stdin.buffer.read()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Failure(
            f"{source}: not UTF-8: byte {error.start} starts no character; convert it first"
        ) from None


def _token_id(explainer: Explainer, token: str, text: str | None, pieces: Sequence[Piece]) -> int:
    """Return the id of --token: a number in the list of tokens, an id if there is no text, or the
    text of a token."""
    if not token.isascii() or not token.isdecimal():
        return explainer.token_id(token)
    number = int(token)
    if text is None:
        return number
    if number >= len(pieces):
        tokens = counted(len(pieces), "token")
        raise Failure(f"--token {number}: the text has {tokens}, numbered from 0")
    return pieces[number].id


def _lines(
    args: argparse.Namespace,
    explainer: Explainer,
    text: str | None,
    pieces: Sequence[Piece],
    chosen: Description | None,
    inspection: Inspection | None,
) -> Iterator[str]:
    if text is not None:
        name = visible(explainer.encoding.name)
        yield f"{counted(len(pieces), 'token')} of {name}, {counted(len(text.encode()), 'byte')}"
        yield ""
        yield from text_lines(pieces, colour=wants_colour(args.color))
        yield ""
        yield from piece_lines(pieces, explainer.order_name, args.limit)
        yield ""
        yield from finding_lines(inspection, text, args.limit)
    if chosen is not None:
        if text is not None:
            yield ""
        yield from tree_lines(chosen, explainer.order_name)


def _fields(
    explainer: Explainer,
    pieces: Sequence[Piece],
    chosen: Description | None,
    inspection: Inspection | None,
) -> dict[str, Any]:
    encoding = explainer.encoding
    return {
        "encoding": encoding.name,
        "fingerprint": encoding.fingerprint,
        "order": explainer.order_name,
        "tokens": [asdict(piece) | _shown(piece.data) for piece in pieces],
        "token": None
        if chosen is None
        else {"id": chosen.id, **_shown(chosen.data), "merges": _merges(chosen)},
        "inspection": None
        if inspection is None
        else {
            "findings": [
                asdict(finding) | {"code": finding.code.name} for finding in inspection.findings
            ],
            "totals": {code.name: total for code, total in inspection.totals.items()},
            "count": inspection.count,
            "stable_tokens": inspection.stable_tokens,
            "stable_end": inspection.stable_end,
        },
    }


def _shown(data: bytes) -> dict[str, str]:
    return {"token": visible_bytes(data), "data": data.hex()}


def _merges(derivation: Description) -> list[dict[str, Any]] | None:
    """Return the merges of a token in order; None if merging does not produce it."""
    if len(derivation.parts) != 1:
        return None
    return [
        {
            "left": visible_bytes(part.left.spelling),
            "right": visible_bytes(part.right.spelling),
            "id": part.id,
        }
        for part, _, _ in flat(derivation.parts)
        if part.left and part.right
    ]


def parser() -> argparse.ArgumentParser:
    """Return the argument parser."""
    parser = argparse.ArgumentParser(
        prog="bytepair explain",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("text", nargs="?", metavar="TEXT", help="a text; - for standard input")
    add_encoding_option(parser)
    parser.add_argument(
        "--token",
        metavar="N|TEXT",
        help="show the merges of one token: its number in the list, its id if there is no TEXT, "
        "or its text",
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write an HTML page instead of text"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="whether to use colours; without, bars separate tokens (auto)",
    )
    parser.add_argument(
        "--limit",
        type=natural_number,
        default=DEFAULT_MAX_LISTED,
        metavar="N",
        help=f"list at most N tokens ({DEFAULT_MAX_LISTED})",
    )
    parser.add_argument(
        "--flagged-tokens",
        type=Path,
        metavar="FILE",
        help="report tokens in the table flagged_tokens of this file, as the server does; bytepair "
        "audit --flag prints such a table",
    )
    parser.add_argument(
        "--allowed-special",
        action="append",
        default=[],
        metavar="TOKEN",
        help="a special token to recognise in the text, or 'all'; repeatable",
    )
    parser.add_argument(
        "--add-special-tokens",
        action="store_true",
        help="add the encoding's template around the text",
    )
    add_file_options(parser)
    return parser
