"""tokenizer.json files in the shapes of published models: their steps, settings and added tokens,
with small vocabularies that are trained on the fly."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from bytepair_engine.vocabulary.patterns import PATTERNS
from tokenizers import AddedToken, Tokenizer, trainers

from support.tokenizer_json import BYTE_TOKENS, CLIP, CORPUS

Step = dict[str, Any]


def sequence(members: str, *steps: Step) -> Step:
    return {"type": "Sequence", members: list(steps)}


def split(pattern: str, behavior: str = "Isolated", *, invert: bool = False) -> Step:
    return {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": behavior,
        "invert": invert,
    }


def replace(old: str, new: str) -> Step:
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


def byte_level(*, use_regex: bool = True, add_prefix_space: bool = False) -> Step:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def digits(*, individual: bool) -> Step:
    return {"type": "Digits", "individual_digits": individual}


def special(*names: str, **settings: bool) -> list[AddedToken]:
    return [AddedToken(name, special=True, normalized=False, **settings) for name in names]


def added(*names: str, **settings: bool) -> list[AddedToken]:
    return [AddedToken(name, **settings) for name in names]


def pre(*steps: Step) -> Step:
    return sequence("pretokenizers", *steps)


_BYTES: Final[Step] = {"decoder": byte_level()}
_FALLBACK: Final[Step] = {
    "model": {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True},
    "reserved": ["<unk>", *BYTE_TOKENS],
}
_SPACES_FIRST: Final = sequence(
    "decoders",
    replace("▁", " "),
    {"type": "ByteFallback"},
    {"type": "Fuse"},
)
_LLAMA: Final = sequence(
    "decoders",
    *_SPACES_FIRST["decoders"],
    {"type": "Strip", "content": " ", "start": 1, "stop": 0},
)
_RUNS: Final = ["  ", "   ", "    ", "\t\t"]

#: Model to the parts of its file. `frame` has the tokens before and after a text.
SHAPES: Final[dict[str, Step]] = {
    "GPT-NeoX, OLMo": {
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": byte_level(),
        "added": [*special("<|endoftext|>", "<|padding|>"), *added(*_RUNS[:3])],
        **_BYTES,
    },
    "Phi-1, CodeGen": {
        "pre_tokenizer": byte_level(),
        "added": [*special("<|endoftext|>"), *added(*_RUNS)],
        **_BYTES,
    },
    "Phi-3": {
        "normalizer": sequence(
            "normalizers", {"type": "Prepend", "prepend": "▁"}, replace(" ", "▁")
        ),
        "decoder": _LLAMA,
        "added": [
            *special("<s>", "<|endoftext|>"),
            *special("<|user|>", "<|end|>", rstrip=True),
            *added("</s>", rstrip=True, normalized=False),
        ],
        "frame": (["<s>"], []),
        **_FALLBACK,
    },
    "StarCoder, SmolLM": {
        "pre_tokenizer": pre(digits(individual=True), byte_level()),
        "added": special("<|endoftext|>", "<fim_prefix>", "<fim_middle>"),
        **_BYTES,
    },
    "Falcon": {
        "pre_tokenizer": pre(
            {"type": "Punctuation", "behavior": "Contiguous"},
            byte_level(),
            digits(individual=False),
            split("[0-9][0-9][0-9]"),
        ),
        "added": special(">>TITLE<<", "<|endoftext|>"),
        **_BYTES,
    },
    "BLOOM": {
        "pre_tokenizer": pre(
            split(r" ?[^(\s|[.,!?…。，、।۔،])]+"),
            byte_level(use_regex=False),
        ),
        "added": special("<unk>", "<s>", "</s>", "<pad>"),
        **_BYTES,
    },
    "CLIP": {
        "normalizer": sequence(
            "normalizers",
            {"type": "NFC"},
            {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
            {"type": "Lowercase"},
        ),
        "pre_tokenizer": pre(split(CLIP, "Removed", invert=True), byte_level()),
        "model": {
            "unk_token": "<|endoftext|>",
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "</w>",
        },
        "reserved": ["<|startoftext|>", "<|endoftext|>"],
        "added": [
            AddedToken("<|startoftext|>", special=True, normalized=True),
            AddedToken("<|endoftext|>", special=True, normalized=False),
        ],
        "frame": (["<|startoftext|>"], ["<|endoftext|>"]),
        **_BYTES,
    },
    "RoBERTa, BART": {
        "pre_tokenizer": byte_level(),
        "added": [
            *special("<s>", "<pad>", "</s>"),
            *special("<mask>", lstrip=True),
        ],
        "frame": (["<s>"], ["</s>"]),
        **_BYTES,
    },
    "Llama-3": {
        "pre_tokenizer": pre(split(PATTERNS["llama3"]), byte_level(use_regex=False)),
        "model": {"ignore_merges": True},
        "added": special("<|begin_of_text|>", "<|eot_id|>"),
        "frame": (["<|begin_of_text|>"], []),
        **_BYTES,
    },
    "Gemma": {
        "normalizer": replace(" ", "▁"),
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"String": " "},
            "behavior": "MergedWithPrevious",
            "invert": False,
        },
        "decoder": _SPACES_FIRST,
        "added": [
            *special("<bos>", "<start_of_turn>"),
            *added("\n\n", "▁▁", "<table>", normalized=False),
        ],
        "frame": (["<bos>"], []),
        **_FALLBACK,
    },
    "Qwen": {
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": pre(split(PATTERNS["qwen2"]), byte_level(use_regex=False)),
        "added": [*special("<|im_start|>"), *added("<tool_call>", normalized=False)],
        **_BYTES,
    },
    "DeepSeek LLM": {
        "normalizer": sequence("normalizers"),
        "pre_tokenizer": pre(
            split("[\r\n]"),
            split(r"\s?\p{L}+"),
            split(r"\s?\p{P}+"),
            split("[一-龥ࠀ-一가-퟿]+"),
            digits(individual=True),
            byte_level(use_regex=False),
        ),
        "added": [
            AddedToken("<｜end▁of▁sentence｜>", special=True, normalized=True),
            *added("ü", "é"),
        ],
        **_BYTES,
    },
    "DeepSeek Coder": {
        "pre_tokenizer": pre(
            split("[\r\n]"),
            split(r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-Ֆ]+"),
            split(r"\s?[!-/:-~！-／：-～‘-‟\u3000-。]+"),
            split(r"\s+$"),
            split("[一-龥ࠀ-一가-퟿]+"),
            digits(individual=True),
            byte_level(use_regex=False),
        ),
        "added": special("<|EOT|>"),
        **_BYTES,
    },
    "GPT-4o": {
        "pre_tokenizer": pre(
            split(PATTERNS["o200k_base"], "Removed", invert=True), byte_level(use_regex=False)
        ),
        "added": special("<|endoftext|>"),
        **_BYTES,
    },
    "Kimi K2": {
        "pre_tokenizer": pre(
            split(
                r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
                r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
                r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            ),
            byte_level(use_regex=False),
        ),
        "added": special("[BOS]", "<|im_end|>"),
        **_BYTES,
    },
    "Command-R": {
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": pre(digits(individual=True), byte_level()),
        "added": special("<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>"),
        "frame": (["<BOS_TOKEN>"], []),
        **_BYTES,
    },
    "Whisper": {
        "pre_tokenizer": byte_level(),
        "added": [*special("<|sot|>", "<|notimestamps|>", "<|eot|>"), *added("<|0.00|>")],
        "frame": (["<|sot|>", "<|notimestamps|>"], ["<|eot|>"]),
        **_BYTES,
    },
    "Mistral v3": {
        "pre_tokenizer": {
            "type": "Metaspace",
            "replacement": "▁",
            "prepend_scheme": "first",
            "split": False,
        },
        "decoder": _LLAMA,
        "added": special("<s>", "[INST]", "[/INST]"),
        "frame": (["<s>"], []),
        **_FALLBACK,
    },
}


@cache
def shaped(model: str) -> bytes:
    """Return a tokenizer.json in the shape of one of `SHAPES`."""
    shape = SHAPES[model]
    empty: Step = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": shape.get("normalizer"),
        "pre_tokenizer": shape.get("pre_tokenizer"),
        "post_processor": None,
        "decoder": shape["decoder"],
        "model": {"type": "BPE", "vocab": {}, "merges": [], **shape.get("model", {})},
    }
    tokenizer = Tokenizer.from_str(json.dumps(empty))
    bytes_alone = shape["decoder"]["type"] == "ByteLevel"
    suffixed = {key: value for key, value in shape.get("model", {}).items() if "suffix" in key}
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=600,
            show_progress=False,
            special_tokens=shape.get("reserved", []),
            initial_alphabet=alphabet() if bytes_alone else [],
            **suffixed,
        ),
    )
    tokenizer.add_tokens(shape["added"])
    content = json.loads(tokenizer.to_str())
    before, after = shape.get("frame", ([], []))
    frame = {
        name: {"id": name, "ids": [tokenizer.token_to_id(name)], "tokens": [name]}
        for name in (*before, *after)
    }
    content["post_processor"] = sequence(
        "processors",
        byte_level(),
        {
            "type": "TemplateProcessing",
            "single": [
                *({"SpecialToken": {"id": name, "type_id": 0}} for name in before),
                {"Sequence": {"id": "A", "type_id": 0}},
                *({"SpecialToken": {"id": name, "type_id": 0}} for name in after),
            ],
            "pair": [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"],
            "special_tokens": frame,
        },
    )
    return json.dumps(content, ensure_ascii=False).encode()


def alphabet() -> list[str]:
    """Return the characters that represent bytes."""
    from tokenizers import pre_tokenizers

    return sorted(pre_tokenizers.ByteLevel.alphabet())
