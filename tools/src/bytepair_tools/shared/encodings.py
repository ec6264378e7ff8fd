"""Find encodings by what a person names: built-in ones, declarations and vocabulary files."""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from bytepair_engine import Encoding, EncodingSpec, get_encoding, load_encoding
from bytepair_engine.inspection import Inspection, inspect_file
from bytepair_engine.vocabulary.aliases import MODEL_NAMES
from bytepair_engine.vocabulary.builtin import BUILTINS

from bytepair_tools.shared.failure import Failure

#: What `--help` says an ENCODING may be.
ENCODING_HELP = (
    "a built-in encoding or an alias of one, such as o200k_base or gpt-4o; a vocabulary file of "
    "any format that bytepair inspect knows; or a TOML file that declares encodings, such as "
    "bytepair train writes"
)


def add_encoding_option(parser: argparse.ArgumentParser) -> None:
    """--encoding, by all the names that the commands for a server have for it."""
    parser.add_argument(
        "-e", "--encoding", "--model", required=True, metavar="ENCODING", help=ENCODING_HELP
    )


def named_encodings(
    name: str, *, pattern: str | None = None, encoder_file: Path | None = None
) -> list[Encoding]:
    """The encodings that a name stands for.

    Args:
        name: A built-in encoding or an alias; a TOML file of declarations; or a vocabulary file.
        pattern: The split pattern, for a file that carries none.
        encoder_file: vocab.json, for a file that is GPT-2's merges.
    Returns:
        One encoding, or all that a TOML file declares; at least one.
    Raises:
        Failure: It is none of these, or more must be said about the file.
        BytepairError: The file is not what it must be.
    """
    if name in BUILTINS or MODEL_NAMES.find(name) is not None:
        return [get_encoding(name)]
    path = Path(name)
    if path.suffix == ".toml":
        return declared_encodings(path)
    if not path.exists():
        raise Failure(
            f"{name}: neither a built-in encoding nor a file; built in are "
            f"{', '.join(sorted(BUILTINS))}"
        )
    found = _inspected(path, None, None)
    if found.encoding is None:
        found = _inspected(path, pattern, encoder_file)
    if found.encoding is None:
        raise Failure(f"{name}: {_remedy(found)}")
    return [found.encoding]


def one_encoding(
    name: str, *, pattern: str | None = None, encoder_file: Path | None = None
) -> Encoding:
    """As `named_encodings`, where there must be one.

    Raises:
        Failure: Also where a TOML file declares several.
    """
    return only_one(name, named_encodings(name, pattern=pattern, encoder_file=encoder_file))


def only_one(name: str, encodings: Sequence[Encoding]) -> Encoding:
    """The one of them.

    Raises:
        Failure: There are several.
    """
    if len(encodings) > 1:
        raise Failure(f"{name}: declares several encodings; give a file with the one that is meant")
    return encodings[0]


def declared_encodings(path: Path) -> list[Encoding]:
    """The encodings of a TOML file: the tables `[encodings.NAME]`, or the one declaration.

    Raises:
        Failure: It cannot be read, is no TOML, or declares nothing.
        BytepairError: A declaration or one of its files is not what it must be.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise Failure(f"{path}: not TOML: {error}") from None
    tables = content.get("encodings")
    if not isinstance(tables, dict):
        return [load_encoding(path)]
    if not tables:
        raise Failure(f"{path}: declares no encoding")
    return [
        load_encoding(EncodingSpec.from_mapping(name, table, path.parent))
        for name, table in tables.items()
    ]


def name_of_file(file: Path) -> str:
    """What an encoding from a file is called by default: after the file, or after its
    folder where all files are called the same."""
    stem = re.sub(r"(\.(gz|json|model|tiktoken|txt|bpe))+$", "", file.name) or file.name
    return stem if stem not in ("tokenizer", "merges", "vocab") else file.absolute().parent.name


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for vocabulary files that do not say everything themselves."""
    parser.add_argument(
        "--pattern",
        metavar="NAME|REGEX",
        help="the split pattern of files that carry none: rank files, and GPT-2's merges",
    )
    parser.add_argument(
        "--encoder-file", metavar="FILE", type=Path, help="vocab.json, for GPT-2's merges"
    )


def labels(encodings: Sequence[Encoding]) -> list[str]:
    """What to call each of several encodings: its name, with a number where that is not the only
    one of that name."""
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
        return f"this table is built in: name {found.official[0]} in its place"
    return f"{found.missing}; give --pattern, and --encoder-file for GPT-2's merges"
