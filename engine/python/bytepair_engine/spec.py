"""The declaration of a custom encoding.

A declaration is a TOML table, in its own file or in the server's configuration:

    file = "llama3.tiktoken"
    format = "tiktoken"             # a format of formats/detect.py; detected by default
    pattern = "llama3"              # a name in patterns.py, or a regular expression
    special_tokens = { "<|begin_of_text|>" = 128000 }
    sha256 = "…"                    # of the file, uncompressed
    fingerprint = "sha256:…"        # of the encoding
    aliases = ["llama-3"]

A file that contains its pattern and special tokens needs neither:

    file = "tokenizer.model"
    also_special = ["<start_of_turn>"]   # user-defined symbols that a request must allow

A declaration can also extend a built-in encoding:

    extends = "cl100k_base"
    special_tokens = { "<|im_start|>" = 100264, "<|im_end|>" = 100265 }
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, SupportsIndex

from bytepair_engine.errors import InvalidOption, VocabularyError
from bytepair_engine.formats.detect import FORMATS, Format
from bytepair_engine.vocabulary.names import nearest


def _is_string(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_strings(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_string, value))


def _is_ids(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(key, str) and isinstance(i, SupportsIndex) and not isinstance(i, bool)
        for key, i in value.items()
    )


def _is_sha256(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("(sha256:)?[0-9a-fA-F]{64}", value) is not None


def _is_fingerprint(value: object) -> bool:
    return _is_sha256(value) and str(value).startswith("sha256:")


#: Key of a declaration: description of its value, and the check.
_KEYS: Final[dict[str, tuple[str, Callable[[object], bool]]]] = {
    "file": ("a file name", _is_string),
    "format": (f"one of {', '.join(FORMATS)}", lambda value: value in [*FORMATS]),
    "encoder_file": ("a file name", _is_string),
    "pattern": ("a known name or a regular expression", _is_string),
    "special_tokens": ("a table from spelling to id, an integer", _is_ids),
    "also_special": ("a list of tokens", _is_strings),
    "sha256": ("64 hexadecimal digits", _is_sha256),
    "fingerprint": ('"sha256:" and 64 hexadecimal digits', _is_fingerprint),
    "aliases": ("a list of names", _is_strings),
    "extends": ("the name of a built-in encoding", _is_string),
}


@dataclass(frozen=True, kw_only=True)
class EncodingSpec:
    """The declaration of one encoding. Its files are read and checked when it is loaded.

    Attributes:
        name: The canonical name.
        file: The vocabulary file (vocab.bpe for "gpt2"), plain or gzip. None if the declaration
            extends a built-in encoding.
        format: The required format of the file; None to detect it from the content.
        encoder_file: encoder.json, for "gpt2".
        pattern: A name in `patterns.PATTERNS` or a regular expression; only for files that
            contain no pattern.
        special_tokens: Spelling to id, for files that define none; or in addition to those of
            the extended encoding.
        also_special: Tokens that are not special in the file but must be allowed by a request.
        sha256: The expected hash of `file`, uncompressed; None for no check.
        fingerprint: The expected fingerprint of the encoding; None for no check.
        aliases: Other names of the encoding.
        extends: The built-in encoding that provides the table, pattern and special tokens.
    """

    name: str
    file: Path | None = None
    format: Format | None = None
    encoder_file: Path | None = None
    pattern: str | None = None
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    also_special: tuple[str, ...] = ()
    sha256: str | None = None
    fingerprint: str | None = None
    aliases: tuple[str, ...] = ()
    extends: str | None = None

    def __post_init__(self) -> None:
        """Raise InvalidOption if a value has a wrong type."""
        for option, (kind, is_kind) in _KEYS.items():
            value = getattr(self, option)
            if option in ("file", "encoder_file"):
                if not isinstance(value, Path | None):
                    problem = f"must be a pathlib.Path, not a {type(value).__name__}"
                    raise InvalidOption(option, problem)
            elif value is not getattr(type(self), option, ()) and not is_kind(value):
                raise InvalidOption(option, f"must be {kind}")

    @classmethod
    def from_mapping(cls, name: str, table: Mapping[str, Any], base_dir: Path) -> EncodingSpec:
        """Create a declaration from a parsed TOML table.

        Args:
            name: The encoding's name.
            table: The keys and values of the declaration.
            base_dir: The folder that relative file names start from.
        Raises:
            VocabularyError: A key is unknown, missing, of the wrong type or conflicts with
                another one.
        """
        source = f"encoding {name!r}"
        for key, value in table.items():
            if key not in _KEYS:
                similar = nearest(key, _KEYS)
                hint = f"did you mean {similar[0]}? The keys" if similar else "the keys"
                raise VocabularyError(
                    source, f"unknown key {key!r}", f"{hint} are {', '.join(sorted(_KEYS))}"
                )
            kind, is_kind = _KEYS[key]
            if not is_kind(value):
                raise VocabularyError(source, f"{key} must be {kind}", "correct it")
        spec = cls(
            name=name,
            **{
                **table,
                "file": base_dir / table["file"] if "file" in table else None,
                "encoder_file": (
                    base_dir / table["encoder_file"] if "encoder_file" in table else None
                ),
                "also_special": tuple(table.get("also_special", ())),
                "aliases": tuple(table.get("aliases", ())),
            },
        )
        spec.check()
        return spec

    def check(self) -> None:
        """Raise VocabularyError if keys are missing or conflict with each other."""

        def require(condition: bool, problem: str, remedy: str) -> None:
            if not condition:
                raise VocabularyError(f"encoding {self.name!r}", problem, remedy)

        # A request without an encoding must never match this one.
        require(self.name != "", "its name is empty", "give it a name")
        for name in (self.name, *self.aliases):
            require(name.isprintable(), f"the name {name!r} is not printable", "correct it")
        if self.extends is not None:
            others = ("file", "format", "encoder_file", "pattern", "also_special", "sha256")
            clash = [key for key in others if getattr(self, key)]
            require(not clash, f"extends is given together with {clash}", "remove one of them")
            return
        require(self.file is not None, "no file is given", "add file, or extends")
        if self.format in ("tiktoken", "gpt2"):
            require(
                self.pattern is not None,
                "no pattern is given, and a rank file does not contain one",
                "add pattern: a known name or a regular expression",
            )
        if self.format is not None:
            require(
                (self.format == "gpt2") == (self.encoder_file is not None),
                f"format is {self.format!r} and encoder_file is "
                f"{'missing' if self.encoder_file is None else 'given'}",
                'give encoder_file with format "gpt2", and only then',
            )
