"""Small tokenizer.json files of every kind, trained on the fly by `tokenizers`, which is also the
oracle of their ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    processors,
    trainers,
)
from tokenizers import normalizers as norm

from support.sentencepiece_models import character_map

CORPUS = [
    "hello world this is a test of the tokenizer 123 45 6789",
    "Hello, World! don't stop 'til you're done.",
    "日本語のテキスト、日本語",
    "naïve café déjà vu",
    "  spaces   and\ttabs\n\nnewlines",
    "ab ab abc abcd abcde",
] * 3

#: Added tokens with every setting, including tokens that a request must allow.
ADDED = [
    AddedToken("<tool>", normalized=False),
    AddedToken("Wörd", single_word=True),
    AddedToken("lft", lstrip=True),
    AddedToken("rgt", rstrip=True, normalized=False),
    AddedToken("  "),
    AddedToken("\n\n", normalized=False),
]
SPECIAL = [
    AddedToken("<s>", special=True, normalized=False),
    AddedToken("<s>long", special=True, normalized=False),
    AddedToken("<|end|>", special=True, normalized=False, lstrip=True, rstrip=True),
    AddedToken("<S>x", special=True, normalized=True),
]

BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
BEHAVIOURS = ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]

_ALPHABET = pre_tokenizers.ByteLevel.alphabet()
_BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False)
_BYTES = {"decoder": decoders.ByteLevel(), "alphabet": _ALPHABET}
_UNKNOWN = {"model": {"unk_token": "[U]"}, "special": ["[U]"]}
_FALLBACK = {
    "model": {"unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True},
    "special": ["<unk>", *BYTE_TOKENS],
    "size": 600,
}
_LLAMA = decoders.Sequence(
    [
        decoders.Replace("▁", " "),
        decoders.ByteFallback(),
        decoders.Fuse(),
        decoders.Strip(" ", 1, 0),
    ]
)

#: Kind of file to its parts.
KINDS: dict[str, dict[str, Any]] = {
    "byte level": {"pre": _BYTE_LEVEL, **_BYTES},
    "byte level, NFC": {"norm": norm.NFC(), "pre": _BYTE_LEVEL, **_BYTES},
    "byte level, prefix and NFC": {
        "norm": norm.NFC(),
        "pre": pre_tokenizers.ByteLevel(add_prefix_space=True),
        **_BYTES,
    },
    "byte level without all bytes": {
        "pre": _BYTE_LEVEL,
        "decoder": decoders.ByteLevel(),
        "model": {"unk_token": "[U]", "fuse_unk": True},
        "special": ["[U]"],
    },
    "steps after byte level": {
        "pre": pre_tokenizers.Sequence(
            [
                pre_tokenizers.Punctuation("contiguous"),
                _BYTE_LEVEL,
                pre_tokenizers.Digits(False),
                pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
            ]
        ),
        **_BYTES,
    },
    "digits, then byte level": {
        "pre": pre_tokenizers.Sequence([pre_tokenizers.Digits(True), _BYTE_LEVEL]),
        **_BYTES,
    },
    "byte level with an end of word": {
        "norm": norm.Sequence([norm.NFC(), norm.Replace(Regex(r"\s+"), " "), norm.Lowercase()]),
        "pre": pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(CLIP), "removed", invert=True), _BYTE_LEVEL]
        ),
        "model": {"unk_token": "[U]", "end_of_word_suffix": "</w>"},
        "trainer": {"end_of_word_suffix": "</w>"},
        "special": ["[U]"],
        **_BYTES,
    },
    "words, unknown fused": {
        "pre": pre_tokenizers.Whitespace(),
        "model": {"unk_token": "[U]", "fuse_unk": True},
        "special": ["[U]"],
    },
    "words, unknown": {"pre": pre_tokenizers.WhitespaceSplit(), **_UNKNOWN},
    "words, no unknown": {"pre": pre_tokenizers.Whitespace()},
    "a prefix": {
        "pre": pre_tokenizers.Whitespace(),
        "model": {"unk_token": "[U]", "continuing_subword_prefix": "##"},
        "trainer": {"continuing_subword_prefix": "##"},
        "special": ["[U]"],
    },
    "an end of word": {
        "pre": pre_tokenizers.Whitespace(),
        "decoder": decoders.BPEDecoder("</w>"),
        "model": {"unk_token": "[U]", "end_of_word_suffix": "</w>"},
        "trainer": {"end_of_word_suffix": "</w>"},
        "special": ["[U]"],
    },
    **{
        f"metaspace {scheme}, {'split' if split else 'whole'}": {
            "pre": pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split),
            "decoder": decoders.Metaspace(prepend_scheme=scheme, split=split),
            **_FALLBACK,
        }
        for scheme in ("always", "first", "never")
        for split in (True, False)
    },
    "metaspace first, after a prefix": {
        "norm": norm.Sequence([norm.NFKC(), norm.Prepend("▁")]),
        "pre": pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(True), pre_tokenizers.Metaspace("_", "first", False)]
        ),
        **_FALLBACK,
    },
    "metaspace first, stripped": {
        "norm": norm.Strip(),
        "pre": pre_tokenizers.Sequence(
            [pre_tokenizers.Metaspace(), pre_tokenizers.Metaspace("_", "first", True)]
        ),
        "added": ADDED[:4],
        **_UNKNOWN,
    },
    "a map of characters": {
        "norm": norm.Sequence([norm.Precompiled(character_map()), norm.Replace(" ", "▁")]),
        **_FALLBACK,
    },
    "spaces normalised": {
        "norm": norm.Sequence([norm.Prepend("▁"), norm.Replace(" ", "▁")]),
        "decoder": _LLAMA,
        **_FALLBACK,
    },
    "some bytes": {
        "norm": norm.Replace(" ", "▁"),
        "model": {"unk_token": "<unk>", "byte_fallback": True},
        "special": ["<unk>", *BYTE_TOKENS[0x80:0xE0]],
        "size": 600,
    },
    "BERT's words": {
        "norm": norm.BertNormalizer(),
        "pre": pre_tokenizers.BertPreTokenizer(),
        **_UNKNOWN,
    },
    "BERT's words, cased": {
        "norm": norm.BertNormalizer(strip_accents=True, lowercase=False),
        "pre": pre_tokenizers.BertPreTokenizer(),
        **_UNKNOWN,
    },
    "BERT's cleaning, spaces kept": {
        "norm": norm.Sequence(
            [norm.BertNormalizer(strip_accents=False), norm.BertNormalizer(clean_text=False)]
        ),
        "pre": pre_tokenizers.Metaspace(),
        **_UNKNOWN,
    },
    "stripped": {
        "norm": norm.Strip(left=True, right=False),
        "pre": pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        "added": ADDED[:4],
        **_BYTES,
    },
    **{
        f"normalised, {form}": {
            "norm": getattr(norm, form)(),
            "pre": pre_tokenizers.Whitespace(),
            **_UNKNOWN,
        }
        for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase")
    },
    **{
        f"split {behaviour}{', inverted' if inverted else ''}": {
            "pre": pre_tokenizers.Split(Regex(r"\w+|\d"), behaviour, inverted),
            **_UNKNOWN,
        }
        for behaviour in BEHAVIOURS
        for inverted in (False, True)
    },
    **{
        f"punctuation {behaviour}": {"pre": pre_tokenizers.Punctuation(behaviour), **_UNKNOWN}
        for behaviour in BEHAVIOURS
    },
}


@cache
def made(kind: str) -> bytes:
    """Return a tokenizer.json of one of `KINDS`."""
    return trained(**KINDS[kind])


def trained(
    *,
    norm: Any = None,
    pre: Any = None,
    decoder: Any = None,
    model: dict[str, Any] | None = None,
    trainer: dict[str, Any] | None = None,
    special: Sequence[str] = (),
    alphabet: Sequence[str] = (),
    size: int = 400,
    added: Sequence[AddedToken] = ADDED,
) -> bytes:
    """Train a vocabulary with these parts on `CORPUS`."""
    tokenizer = Tokenizer(models.BPE(**(model or {})))
    if norm is not None:
        tokenizer.normalizer = norm
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=size,
            show_progress=False,
            special_tokens=list(special),
            initial_alphabet=list(alphabet),
            **(trainer or {}),
        ),
    )
    if decoder is not None:
        tokenizer.decoder = decoder
    tokenizer.add_tokens(list(added))
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer.to_str().encode()


def oracle_of(data: bytes) -> Tokenizer:
    """Load the file with `tokenizers` itself."""
    return Tokenizer.from_str(data.decode())


def framed(kind: str, post_processor: Any) -> bytes:
    """Return a file of one of `KINDS` whose only added tokens are the special ones `<s>` and
    `</s>`.

    Args:
        kind: One of `KINDS`.
        post_processor: Makes the template, from the ids of the two tokens.
    """
    content = json.loads(made(kind))
    content["added_tokens"] = []
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.add_special_tokens(["<s>", "</s>"])
    ids = [tokenizer.token_to_id(token) for token in ("<s>", "</s>")]
    tokenizer.post_processor = post_processor(*ids)
    return tokenizer.to_str().encode()


def template(single: str) -> Any:
    """Make a TemplateProcessing for `framed`, as `tokenizers` writes it."""
    return lambda start, end: processors.TemplateProcessing(
        single=single, special_tokens=[("<s>", start), ("</s>", end)]
    )
