"""Find encodings by name: built-in encodings, declarations and vocabulary files."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from bytepair_engine import Encoding, EncodingSpec, UnknownEncoding, get_encoding, load_encoding
from bytepair_engine.inspection import Inspection, inspect_file
from bytepair_engine.loading import declarations

from bytepair_tools.shared.failure import Failure

#: The help text of ENCODING.
ENCODING_HELP = (
    "a built-in encoding or an alias, such as o200k_base or gpt-4o; a vocabulary file in any "
    "format that bytepair inspect supports; or a TOML file with declarations, such as those of "
    "bytepair train"
)


def add_encoding_option(parser: argparse.ArgumentParser) -> None:
    """Add --encoding, with the same aliases and the same variable as in the commands for a
    server."""
    default = os.environ.get("BYTEPAIR_ENCODING") or None
    parser.add_argument(
        "-e",
        "--encoding",
        "--model",
        default=default,
        required=default is None,
        metavar="ENCODING",
        help=f"{ENCODING_HELP} (default: BYTEPAIR_ENCODING)",
    )


def named_encodings(
    name: str, *, pattern: str | None = None, encoder_file: Path | None = None
) -> list[Encoding]:
    """Load the encodings that a name refers to.

    Args:
        name: A built-in encoding or an alias; a TOML file of declarations; or a vocabulary file.
        pattern: The split pattern, for a file that contains none.
        encoder_file: vocab.json, for a file with GPT-2's merges.
    Returns:
        One encoding, or all that a TOML file declares; at least one.
    Raises:
        Failure: The name is unknown, or the file needs another argument.
        BytepairError: The file is invalid.
    """
    try:
        return [get_encoding(name)]
    except UnknownEncoding as error:
        unknown = error
    path = Path(name)
    if path.suffix == ".toml":
        return [load_encoding(spec) for spec in declarations(path)]
    if not path.exists():
        raise Failure(f"{unknown}; and there is no such file")
    found = _inspected(path, None, None)
    if found.encoding is None:
        found = _inspected(path, pattern, encoder_file)
    if found.encoding is None:
        raise Failure(f"{name}: {_remedy(found)}")
    return [found.encoding]


def one_encoding(
    name: str, *, pattern: str | None = None, encoder_file: Path | None = None
) -> Encoding:
    """Load a single encoding; see `named_encodings`.

    Raises:
        Failure: See `named_encodings`; or a TOML file declares several.
    """
    encodings = named_encodings(name, pattern=pattern, encoder_file=encoder_file)
    if len(encodings) > 1:
        raise Failure(f"{name}: declares several encodings; use a file with a single one")
    return encodings[0]


def allowed_special(given: Sequence[str], encoding: Encoding) -> Literal["all"] | list[str]:
    """Return the tokens of --allowed-special; "all" if it is among them.

    Raises:
        Failure: One is not a special token of the encoding.
    """
    if "all" in given:
        return "all"
    for token in given:
        if token not in encoding.special_tokens:
            raise Failure(f"--allowed-special: {token!r} is not a special token of {encoding.name}")
    return sorted(set(given))


def name_of_file(file: Path) -> str:
    """Return the default name of an encoding from a file: the name of the file, or of its folder
    for files that usually have the same name."""
    stem = re.sub(r"(\.(gz|json|model|tiktoken|txt|bpe))+$", "", file.name) or file.name
    return stem if stem not in ("tokenizer", "merges", "vocab") else file.absolute().parent.name


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for vocabulary files that are incomplete."""
    parser.add_argument(
        "--pattern",
        metavar="NAME|REGEX",
        help="the split pattern of files without one: rank files and GPT-2's merges",
    )
    parser.add_argument(
        "--encoder-file", metavar="FILE", type=Path, help="vocab.json, for GPT-2's merges"
    )


def labels(encodings: Sequence[Encoding]) -> list[str]:
    """Return labels of encodings: their names, numbered if several have the same name."""
    names = [encoding.name for encoding in encodings]
    return [
        name if names.count(name) == 1 else f"{name} ({names[: number + 1].count(name)})"
        for number, name in enumerate(names)
    ]


def _inspected(path: Path, pattern: str | None, encoder_file: Path | None) -> Inspection:
    return inspect_file(
        EncodingSpec(name=name_of_file(path), file=path, pattern=pattern, encoder_file=encoder_file)
    )


def _remedy(found: Inspection) -> str:
    if found.official:
        return f"this table is built in: use {found.official[0]} instead"
    return (
        f"{found.missing}; use a TOML file that declares it, or where the command has these "
        "options, add --pattern, and --encoder-file for GPT-2's merges"
    )
