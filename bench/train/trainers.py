"""The trainers to measure, each as a function from documents to tokens in order."""

from __future__ import annotations

import io
from collections.abc import Callable
from importlib import import_module
from typing import Any

from bytepair_engine.pipeline.byte_alphabet import read_bytes

#: GPT-2's pattern as published, which all these engines interpret alike.
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

Train = Callable[[list[str], int], list[bytes] | None]


def bytepair(documents: list[str], size: int, **options: Any) -> list[bytes]:
    import bytepair_engine

    encoding = bytepair_engine.train(documents, vocab_size=size, pattern="gpt2", **options)
    return [encoding.decode_single_token_bytes(token) for token in range(encoding.n_vocab)]


def bytepair_by_value(documents: list[str], size: int) -> list[bytes]:
    return bytepair(documents, size, byte_order="value")


def huggingface(documents: list[str], size: int) -> list[bytes]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(documents, trainer)
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return [read_bytes(token) or b"" for token, _ in vocabulary]


def rustbpe(documents: list[str], size: int) -> list[bytes]:
    tokenizer = import_module("rustbpe").Tokenizer()
    tokenizer.train_from_iterator(iter(documents), size, pattern=GPT2)
    return [bytes(token) for token, _ in tokenizer.get_mergeable_ranks()]


def bpeasy(documents: list[str], size: int) -> None:
    import_module("bpeasy").train_bpe(iter(documents), GPT2, 1_000_000, size)


def sentencepiece(documents: list[str], size: int) -> None:
    import_module("sentencepiece").SentencePieceTrainer.train(
        sentence_iterator=(line for text in documents for line in text.split("\n") if line),
        model_writer=io.BytesIO(),
        model_type="bpe",
        vocab_size=size,
        byte_fallback=True,
        num_threads=2,
        max_sentence_length=1 << 30,
        minloglevel=2,
    )


TRAINERS: dict[str, Train] = {
    "bytepair": bytepair,
    "tokenizers": huggingface,
    "rustbpe": rustbpe,
    "bpeasy": bpeasy,
    "sentencepiece": sentencepiece,
}

#: Peers whose table must be identical to that of one of our trainers.
SAME: dict[str, Train] = {"tokenizers": bytepair, "rustbpe": bytepair_by_value}
