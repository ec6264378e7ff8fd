"""The declaration of an operator's own encoding.

A declaration is a TOML table, the same in a file of its own and in the server's
configuration:

    file = "llama3.tiktoken"
    format = "tiktoken"             # or "gpt2", with encoder_file
    pattern = "llama3"              # a name in patterns.py, or a regular expression
    special_tokens = { "<|begin_of_text|>" = 128000 }
    sha256 = "…"                    # of the file, uncompressed
    aliases = ["llama-3"]

or extends a built-in encoding:

    extends = "cl100k_base"
    special_tokens = { "<|im_start|>" = 100264, "<|im_end|>" = 100265 }
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from bytepair_engine.errors import VocabularyError

Format = Literal["tiktoken", "gpt2"]


def _is_string(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_string, value))


def _is_ids(value: object) -> bool:
    return isinstance(value, dict) and all(type(i) is int for i in value.values())


def _is_sha256(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("(sha256:)?[0-9a-fA-F]{64}", value) is not None


#: Key of a declaration, what its value must be, and the test for it.
_KEYS: Final[dict[str, tuple[str, Callable[[object], bool]]]] = {
    "file": ("a file name", _is_string),
    "format": ('"tiktoken" or "gpt2"', lambda value: value in ("tiktoken", "gpt2")),
    "encoder_file": ("a file name", _is_string),
    "pattern": ("a known name or a regular expression", _is_string),
    "special_tokens": ("a table from spelling to id", _is_ids),
    "sha256": ("64 hexadecimal digits", _is_sha256),
    "aliases": ("a list of names", _is_strings),
    "extends": ("the name of a built-in encoding", _is_string),
}


@dataclass(frozen=True, kw_only=True)
class EncodingSpec:
    """The declaration of one encoding, checked for its form and not yet for its files.

    Attributes:
        name: Its canonical name.
        file: The rank file, or vocab.bpe for "gpt2"; a name that ends in .gz is
            uncompressed. None if it extends a built-in encoding.
        format: "tiktoken" or "gpt2".
        encoder_file: encoder.json, for "gpt2".
        pattern: A name in `patterns.PATTERNS` or a regular expression. None only if it
            extends a built-in encoding, and then that one's.
        special_tokens: Spelling to id; beside those of the encoding that it extends.
        sha256: The expected hash of `file`, uncompressed; None for no check.
        aliases: Other names for it.
        extends: The built-in encoding whose table, pattern and special tokens it takes.
    """

    name: str
    file: Path | None = None
    format: Format = "tiktoken"
    encoder_file: Path | None = None
    pattern: str | None = None
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    sha256: str | None = None
    aliases: tuple[str, ...] = ()
    extends: str | None = None

    @classmethod
    def from_mapping(cls, name: str, table: Mapping[str, Any], base_dir: Path) -> EncodingSpec:
        """Read a declaration.

        Args:
            name: The encoding's name.
            table: The declaration's keys and values, as TOML gives them.
            base_dir: What relative file names are relative to.
        Raises:
            VocabularyError: A key is unknown, missing, of the wrong type or contradicts
                another one.
        """
        source = f"encoding {name!r}"
        for key, value in table.items():
            if key not in _KEYS:
                raise VocabularyError(
                    source, f"unknown key {key!r}", f"use one of {', '.join(sorted(_KEYS))}"
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
                "aliases": tuple(table.get("aliases", ())),
            },
        )
        spec.check()
        return spec

    def check(self) -> None:
        """Raises VocabularyError: two parts of the declaration contradict each other."""

        def require(condition: bool, problem: str, remedy: str) -> None:
            if not condition:
                raise VocabularyError(f"encoding {self.name!r}", problem, remedy)

        # A request that names no encoding must never find this one.
        require(self.name != "", "its name is empty", "give it a name")
        if self.extends is not None:
            others = ("file", "encoder_file", "pattern", "sha256")
            clash = [key for key in others if getattr(self, key) is not None]
            require(not clash, f"extends is given together with {clash}", "remove one of them")
            return
        require(self.file is not None, "no file is given", "add file, or extends")
        require(
            self.pattern is not None,
            "no pattern is given, and a rank file does not carry one",
            "add pattern: a known name or a regular expression",
        )
        require(
            (self.format == "gpt2") == (self.encoder_file is not None),
            f"format is {self.format!r} and encoder_file is "
            f"{'missing' if self.encoder_file is None else 'given'}",
            'give encoder_file with format "gpt2", and only then',
        )
