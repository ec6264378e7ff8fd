"""The built-in encodings: the table, pattern and special tokens of each.

The definitions are those of tiktoken_ext/openai_public.py. The tables are in `data/`; see its
NOTICE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from bytepair_engine.backends.cores import Core
from bytepair_engine.errors import VocabularyError
from bytepair_engine.vocabulary.file import check_sha256, rejection
from bytepair_engine.vocabulary.patterns import PATTERNS
from bytepair_engine.vocabulary.rank_table import TableFault

_DATA: Final = Path(__file__).parents[1] / "data"


@dataclass(frozen=True)
class Builtin:
    """The definition of a built-in encoding.

    Attributes:
        table: The name of the rank file, a key of `SHA256`.
        pattern: The split pattern.
        special_tokens: Spelling to id.
    """

    table: str
    pattern: str
    special_tokens: Mapping[str, int]


#: The official hash of each table.
SHA256: Final = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "p50k_base": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}

_O200K_SPECIAL: Final = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}

_HARMONY_SPECIAL: Final = {
    "<|startoftext|>": 199998,
    "<|endoftext|>": 199999,
    "<|return|>": 200002,
    "<|constrain|>": 200003,
    "<|channel|>": 200005,
    "<|start|>": 200006,
    "<|end|>": 200007,
    "<|message|>": 200008,
    "<|call|>": 200012,
    # 200018 has two names: o200k_base's, and the reserved one.
    "<|endofprompt|>": 200018,
    **{
        f"<|reserved_{i}|>": i
        for i in (200000, 200001, 200004, 200009, 200010, 200011, *range(200013, 201088))
    },
}

BUILTINS: Final[dict[str, Builtin]] = {
    "r50k_base": Builtin("r50k_base", PATTERNS["gpt2"], {"<|endoftext|>": 50256}),
    "p50k_base": Builtin("p50k_base", PATTERNS["gpt2"], {"<|endoftext|>": 50256}),
    "p50k_edit": Builtin(
        "p50k_base",
        PATTERNS["gpt2"],
        {
            "<|endoftext|>": 50256,
            "<|fim_prefix|>": 50281,
            "<|fim_middle|>": 50282,
            "<|fim_suffix|>": 50283,
        },
    ),
    "cl100k_base": Builtin(
        "cl100k_base",
        PATTERNS["cl100k_base"],
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "o200k_base": Builtin("o200k_base", PATTERNS["o200k_base"], _O200K_SPECIAL),
    "o200k_harmony": Builtin("o200k_base", PATTERNS["o200k_base"], _HARMONY_SPECIAL),
}


@cache
def builtin_table(core: Core, name: str) -> Any:
    """Return the installed rank table `name`. Each backend loads it once and shares it between
    encodings.

    Raises:
        VocabularyError: The installed file is not the official one.
    """
    resource = _DATA / f"{name}.tiktoken"
    remedy = "reinstall bytepair-engine: its files are damaged"
    try:
        data = resource.read_bytes()
    except OSError as error:
        raise VocabularyError(str(resource), error.strerror or str(error), remedy) from error
    check_sha256(data, SHA256[name], str(resource), remedy)
    try:
        return core.parse_tiktoken(data)
    except TableFault as fault:
        raise rejection(fault, str(resource)) from None
