"""Small SentencePiece models of every kind, trained on the fly, with the package as the oracle."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import Any, Final

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

ROOT: Final = Path(__file__).resolve().parents[2]

_messages: Any = sentencepiece_model_pb2

#: The text that pieces are trained on, with prose. Neither may change, or the merges would.
_CORPUS: Final = [
    "hello world, hell hello worlds worldly",
    "naïve é ½ ﬁne ｱｲｳ ①②③ Ǆ é",
    "日本語のテキスト 中文文本 한국어 텍스트 emoji 🙂🙂",
    "  indented    code\tand tabs  12345 2024",
] * 4

#: Name to the trainer's options in addition to `COMMON`. The names are of models with these
#: options.
MODELS: Final[dict[str, dict[str, Any]]] = {
    "llama": {
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "byte_fallback": True,
        "split_digits": True,
        "allow_whitespace_only_pieces": True,
    },
    "gemma": {
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": False,
        "byte_fallback": True,
        "user_defined_symbols": ["▁▁", "▁▁▁", "▁▁▁▁", "<start_of_turn>", "<table>", "\n\n"],
    },
    "default": {},
    "default with bytes": {"byte_fallback": True},
    "default with symbols": {
        "user_defined_symbols": ["<x>", "AB", " y", "aｱ", "  z", "½", "ﬁ"],
        "byte_fallback": True,
    },
    "suffix": {"treat_whitespace_as_suffix": True},
    "suffix, spaces kept": {
        "treat_whitespace_as_suffix": True,
        "remove_extra_whitespaces": False,
        "normalization_rule_name": "nfkc",
        "user_defined_symbols": ["▁▁"],
    },
    "NFKC, spaces kept": {
        "normalization_rule_name": "nfkc",
        "remove_extra_whitespaces": False,
        "byte_fallback": True,
    },
    "case folding": {
        "normalization_rule_name": "nmt_nfkc_cf",
        "add_dummy_prefix": False,
        "control_symbols": ["<sep>", "[MASK]"],
        "unk_surface": "<?>",
    },
    "words that hold spaces": {
        "split_by_whitespace": False,
        "normalization_rule_name": "nfkc_cf",
        "remove_extra_whitespaces": False,
    },
}


_PROSE: Final = ROOT / "LICENSE"


@cache
def trained(name: str) -> bytes:
    """Return the model file of one of `MODELS`."""
    options = MODELS[name]
    written = io.BytesIO()
    prose = _PROSE.read_text(encoding="utf-8").splitlines()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(_CORPUS + prose),
        model_writer=written,
        model_type="bpe",
        vocab_size=700 if options.get("byte_fallback") else 400,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=3,
        **options,
    )
    return written.getvalue()


def edited(data: bytes, edit: Any) -> bytes:
    """Return a model file after applying `edit` to its message."""
    message = _messages.ModelProto()
    message.ParseFromString(data)
    edit(message)
    return bytes(message.SerializeToString())


def character_map() -> bytes:
    """Return SentencePiece's own compiled rules for NFKC."""
    message = _messages.ModelProto()
    message.ParseFromString(trained("default"))
    return bytes(message.normalizer_spec.precompiled_charsmap)


def oracle(data: bytes) -> Any:
    """Return the sentencepiece package's processor of a model file."""
    return sentencepiece.SentencePieceProcessor(model_proto=data)
