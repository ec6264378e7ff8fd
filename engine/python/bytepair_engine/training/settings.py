"""The settings of a training: one frozen object, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bytepair_engine.errors import InvalidOption
from bytepair_engine.pipeline.byte_alphabet import BYTE_ALPHABET
from bytepair_engine.vocabulary.patterns import resolve_pattern

Ties = Literal["lowest", "first-seen"]
ByteOrder = Literal["gpt2", "value"]

#: The 256 bytes in the order of their ids.
BYTE_ORDERS: Final[dict[ByteOrder, bytes]] = {
    "gpt2": bytes(BYTE_ALPHABET.values()),
    "value": bytes(range(256)),
}

#: The pattern by which every text is one pre-token, whatever it holds.
WHOLE_TEXT: Final = r"[\s\S]+"

#: Counts and ids are that large at the most.
_MOST: Final = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """What decides a merge table, beside the texts.

    Attributes:
        vocab_size: How many tokens there are to be: the 256 bytes, the merges, and the special
            tokens.
        pattern: The split pattern, resolved; None for none, so that each text is one pre-token.
        special_tokens: In the order of their ids, which follow those of the ordinary tokens.
        min_frequency: How often a pair must stand to be merged, from 1.
        ties: Which of several most frequent pairs is merged: "lowest", the one of the lowest ids,
            left before right, as HuggingFace's BpeTrainer does where the bytes have the order
            "gpt2"; "first-seen", the one that stands first, as minbpe does.
        byte_order: The order of the bytes' ids: "gpt2", as in the published tables, or "value".
    """

    vocab_size: int
    pattern: str | None
    special_tokens: tuple[str, ...] = ()
    min_frequency: int = 1
    ties: Ties = "lowest"
    byte_order: ByteOrder = "gpt2"

    @classmethod
    def checked(
        cls,
        *,
        vocab_size: int,
        pattern: str | None,
        special_tokens: Sequence[str] = (),
        min_frequency: int = 1,
        ties: Ties = "lowest",
        byte_order: ByteOrder = "gpt2",
    ) -> TrainingSettings:
        """Make settings of what a caller asks for.

        Args:
            pattern: A name of `patterns.PATTERNS`, a regular expression, or None for whole texts.
        Raises:
            InvalidOption: A value is outside its domain, or the vocabulary is smaller than the
                bytes and the special tokens.
            VocabularyError: The pattern is no name and does not compile.
        """
        if pattern is not None:
            pattern = resolve_pattern(pattern, "the split pattern")
        if isinstance(special_tokens, str):
            raise InvalidOption("special_tokens", "must be a list of strings, not one string")
        for number, token in enumerate(special_tokens):
            if not isinstance(token, str) or not token:
                raise InvalidOption("special_tokens", f"{token!r} is not a text, or empty")
            if token in special_tokens[:number]:
                raise InvalidOption("special_tokens", f"{token!r} is given twice")
        if ties not in ("lowest", "first-seen"):
            raise InvalidOption("ties", 'must be "lowest" or "first-seen"')
        if byte_order not in BYTE_ORDERS:
            raise InvalidOption("byte_order", 'must be "gpt2" or "value"')
        if not 1 <= min_frequency <= _MOST:
            raise InvalidOption("min_frequency", f"must be from 1 to {_MOST}")
        least = 256 + len(special_tokens)
        if not least <= vocab_size <= _MOST:
            raise InvalidOption(
                "vocab_size",
                f"must be from {least} to {_MOST}: the 256 bytes and {len(special_tokens)} special "
                f"tokens have their place in it, and it is {vocab_size}",
            )
        return cls(
            vocab_size=vocab_size,
            pattern=pattern,
            special_tokens=tuple(special_tokens),
            min_frequency=min_frequency,
            ties=ties,
            byte_order=byte_order,
        )

    @property
    def ordinary_tokens(self) -> int:
        """How many tokens there are to be without the special ones."""
        return self.vocab_size - len(self.special_tokens)
