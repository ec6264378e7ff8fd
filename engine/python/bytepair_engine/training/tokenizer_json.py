r"""Write a trained encoding as a tokenizer.json for Hugging Face's tokenizers.

The merges are those of the training, in order. With them, tokenizers produces the ids of the rank
file for every text: `reference.py` proves that a pair which training never merged, but whose
concatenation is a token, does not occur.

The split pattern may not be portable: tokenizers runs it on another regex engine (Oniguruma), which
interprets some constructs differently. Named patterns are written in an equivalent spelling. Any
other pattern is written only if the reader of such files would run it unchanged.
"""

from __future__ import annotations

import json
from typing import Any

from bytepair_engine.errors import TrainingError
from bytepair_engine.formats.oniguruma import PatternFault, translate
from bytepair_engine.pipeline.byte_alphabet import write_bytes
from bytepair_engine.training.merging import Trained
from bytepair_engine.vocabulary.patterns import ONIGURUMA_SPELLINGS


def tokenizer_json(trained: Trained) -> str:
    """Write a tokenizer.json.

    Raises:
        TrainingError: The pattern may have another meaning in Oniguruma, or a special token is
            spelled like an ordinary one.
    """
    tokens = [write_bytes(token) for token in trained.tokens]
    for shared in sorted(trained.special_tokens.keys() & set(tokens)):
        raise TrainingError(
            f"Hugging Face's tokenizers would give the special token {shared!r} the id of the "
            "ordinary token that is spelled like it",
            "for a tokenizer.json, spell it as no text does, such as <|user|>",
        )
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
    return [
        {
            "type": "Split",
            "pattern": {"Regex": ONIGURUMA_SPELLINGS.get(line) or _portable(line)},
            "behavior": "Isolated",
            "invert": False,
        }
        for line in pattern.split("\n")
    ]


def _portable(pattern: str) -> str:
    try:
        if (meaning := translate(pattern)) == pattern:
            return pattern
        difference = f"it is read as {meaning!r}"
    except PatternFault as fault:
        difference = str(fault)
    raise TrainingError(
        f"the split pattern {pattern!r} may have another meaning in Hugging Face's tokenizers: "
        f"{difference}",
        "for a tokenizer.json, train with a named pattern, or without such a construct",
    )
