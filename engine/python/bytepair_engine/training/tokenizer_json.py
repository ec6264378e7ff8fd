r"""A trained encoding as the tokenizer.json that HuggingFace tokenizers loads.

The merges are those of the training, in order. By them HuggingFace's merging gives the ids of the
rank file, on every text: `reference.py` proves that merging a pair of tokens that training never
merged, but whose bytes are a token's, does not come up.

The pattern is the one thing that cannot be written down for certain: HuggingFace runs it by another
engine of regular expressions (Oniguruma), in which some signs mean something else. The named
patterns have a spelling here that means the same in both; any other pattern is written as it is if
it has none of those signs, and refused otherwise.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from bytepair_engine.errors import TrainingError
from bytepair_engine.pipeline.byte_alphabet import write_bytes
from bytepair_engine.training.merging import Trained
from bytepair_engine.vocabulary.patterns import PATTERNS

#: Where the named pattern's own spelling has signs that Oniguruma reads differently.
_SPELLED: Final = {
    PATTERNS["gpt2"]: r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    PATTERNS["cl100k_base"]: (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s+\z|\s*[\r\n]|\s+(?!\S)|\s"
    ),
}

#: Possessive quantifiers, anchors, properties and classes that the two engines read differently.
_READ_DIFFERENTLY: Final = re.compile(
    r"[*+?]\+|\{[\d,]+\}\+|(?<!\[)\^|\$|\\[^\W_pPsSrntdDwW]|\[\[|&&|\(\?[^:=!i]"
)


def tokenizer_json(trained: Trained) -> str:
    """Write a tokenizer.json.

    Raises:
        TrainingError: The pattern may mean something else in HuggingFace's engine.
    """
    tokens = [write_bytes(token) for token in trained.tokens]
    content: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": token_id,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token, token_id in trained.special_tokens.items()
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [*_splits(trained.settings.pattern), _byte_level()],
        },
        "post_processor": None,
        "decoder": _byte_level(),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: token_id for token_id, token in enumerate(tokens)},
            "merges": [[tokens[merge.left], tokens[merge.right]] for merge in trained.merges],
        },
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _byte_level() -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }


def _splits(pattern: str | None) -> list[dict[str, Any]]:
    if pattern is None:
        return []
    spelled = _SPELLED.get(pattern, pattern)
    if pattern not in PATTERNS.values() and _READ_DIFFERENTLY.search(pattern):
        raise TrainingError(
            f"the split pattern {pattern!r} may mean something else to HuggingFace tokenizers",
            "train with a named pattern, or without possessive quantifiers, anchors and the like, "
            "to get a tokenizer.json",
        )
    return [
        {
            "type": "Split",
            "pattern": {"Regex": line},
            "behavior": "Isolated",
            "invert": False,
        }
        for line in spelled.split("\n")
    ]
