"""The command `bytepair extend`: add special tokens to an encoding."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from bytepair_engine import (
    Encoding,
    UnknownEncoding,
    extend_encoding,
    get_encoding,
    load_encoding,
)
from bytepair_engine.extending import ordinary_tokens
from bytepair_engine.training.output import configuration, rank_file
from bytepair_engine.vocabulary.builtin import BUILTINS

from bytepair_tools.shared.failure import Failure
from bytepair_tools.training.output import CONFIGURATION, check_name, create_folder, write_files


def run(args: argparse.Namespace) -> int:
    """Run the command, and return its exit status."""
    base = _base(args.encoding)
    if base.template:
        raise Failure(
            f"{args.encoding}: {base.name} has a template ({', '.join(base.template_names)}), "
            "which a rank file cannot contain; add the tokens to its own file instead"
        )
    folder: Path = args.output
    name = args.name or folder.resolve().name
    check_name(name, "extended")
    file = f"{name}.tiktoken"
    extended = extend_encoding(base, _tokens(args.special, base.n_vocab), name=name)
    create_folder(folder, (file, CONFIGURATION))
    ranks = rank_file(ordinary_tokens(extended))
    lines = configuration(
        name,
        file=file,
        data=ranks,
        pattern=extended.pattern,
        special_tokens=extended.special_tokens,
    )
    write_files(folder, {file: ranks, CONFIGURATION: lines.encode()})
    sys.stdout.write(f"{extended.n_vocab:,} tokens\n{lines}")
    return 0


def _base(name: str) -> Encoding:
    """Load the encoding to extend: a built-in one, or the only one that a file declares."""
    path = Path(name)
    if path.suffix == ".toml":
        return load_encoding(path)
    try:
        return get_encoding(name)
    except UnknownEncoding as error:
        raise Failure(f"{error}; or use a TOML file that declares an encoding") from None


def _tokens(given: Sequence[str], free: int) -> dict[str, int]:
    """Return spelling to id; tokens without an id get the next free ones."""
    tokens: dict[str, int] = {}
    for item in given:
        spelling, equals, number = item.rpartition("=")
        has_id = bool(equals and spelling and re.fullmatch(r"[-+]?\d[\d._]*", number))
        if has_id and not number.isdecimal():
            raise Failure(
                f"--special {item!r}: {number!r} is not an id, which is a number of 0 or more; if "
                "the token ends so, add its id after another ="
            )
        token = spelling if has_id else item
        if token in tokens:
            raise Failure(f"--special {token!r} is given twice")
        tokens[token] = int(number) if has_id else max([free, *(i + 1 for i in tokens.values())])
    return tokens


def parser() -> argparse.ArgumentParser:
    """Return the argument parser."""
    parser = argparse.ArgumentParser(
        prog="bytepair extend",
        allow_abbrev=False,
        description="Write a copy of an encoding with additional special tokens. Ids must be "
        "unused. Ordinary text has the same ids in both encodings.",
    )
    parser.add_argument(
        "encoding",
        metavar="ENCODING",
        help=f"a built-in encoding ({', '.join(sorted(BUILTINS))}) or an alias, or a TOML file "
        "that declares one encoding, such as that of bytepair train",
    )
    parser.add_argument(
        "--special",
        action="append",
        required=True,
        metavar="TOKEN[=ID]",
        help="a special token with its id; by default the next free id; repeatable",
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="the folder to write to"
    )
    parser.add_argument("--name", help="the new encoding's name (default: that of the folder)")
    return parser
