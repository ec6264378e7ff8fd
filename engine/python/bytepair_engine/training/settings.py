"""The settings of a training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, SupportsIndex

from bytepair_engine.errors import InvalidOption, check_least, check_type, has_surrogate
from bytepair_engine.pipeline.byte_alphabet import BYTE_ALPHABET
from bytepair_engine.vocabulary.patterns import resolve_pattern

Ties = Literal["lowest", "first-seen"]
ByteOrder = Literal["gpt2", "value"]

#: The 256 bytes in the order of their ids.
BYTE_ORDERS: Final[dict[ByteOrder, bytes]] = {
    "gpt2": bytes(BYTE_ALPHABET.values()),
    "value": bytes(range(256)),
}

#: The pattern that makes every text one pre-token.
WHOLE_TEXT: Final = r"[\s\S]+"

#: Maximum of counts and ids.
_MAX_VALUE: Final = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """The settings that determine a vocabulary, together with the texts.

    Attributes:
        vocab_size: Number of tokens: the 256 bytes, the merges, and the special tokens.
        pattern: The split pattern, resolved; None to make each text one pre-token.
        special_tokens: The special tokens in order of ids, which follow those of ordinary tokens.
        min_frequency: Minimum count of a pair to merge, at least 1.
        ties: The rule for pairs with equal counts. "lowest": the pair with the lowest ids, left
            before right, as in Hugging Face's BpeTrainer with the byte order "gpt2".
            "first-seen": the pair that occurs first, as in minbpe.
        byte_order: The order of the ids of bytes: "gpt2", as in the published tables, or "value".
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
        """Check values and create the settings; see the class for the other arguments.

        Args:
            pattern: A name in `patterns.PATTERNS`, a regular expression, or None for whole texts.
        Raises:
            InvalidOption: A value is invalid, or `vocab_size` is smaller than the number of bytes
                and special tokens.
            VocabularyError: The pattern is not a known name and does not compile.
        """
        check_type("pattern", pattern, str | None, "str or None")
        if pattern is not None:
            pattern = resolve_pattern(pattern, "the split pattern")
        if isinstance(special_tokens, str):
            raise InvalidOption("special_tokens", "must be a list of strings, not one string")
        check_type("special_tokens", special_tokens, Sequence, "a sequence of strings")
        names = set[str]()
        for token in special_tokens:
            if not isinstance(token, str) or not token:
                raise InvalidOption("special_tokens", f"{token!r} is not a string, or empty")
            if token.isspace():
                problem = "is only white space, which is part of most texts"
                raise InvalidOption("special_tokens", f"{token!r} {problem}")
            if has_surrogate(token):
                raise InvalidOption("special_tokens", f"{token!r} holds a lone surrogate")
            if token in names:
                raise InvalidOption("special_tokens", f"{token!r} is given twice")
            names.add(token)
        if ties not in ("lowest", "first-seen"):
            raise InvalidOption("ties", 'must be "lowest" or "first-seen"')
        if byte_order not in ("gpt2", "value"):
            raise InvalidOption("byte_order", 'must be "gpt2" or "value"')
        if check_least("min_frequency", min_frequency, 1) > _MAX_VALUE:
            raise InvalidOption("min_frequency", f"must be from 1 to {_MAX_VALUE}")
        check_type("vocab_size", vocab_size, SupportsIndex, "int")
        minimum = 256 + len(special_tokens)
        if not minimum <= vocab_size <= _MAX_VALUE:
            raise InvalidOption(
                "vocab_size",
                f"must be from {minimum} (256 bytes and {len(special_tokens)} special tokens) to "
                f"{_MAX_VALUE}, not {vocab_size}",
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
        """Number of tokens without the special ones."""
        return self.vocab_size - len(self.special_tokens)
