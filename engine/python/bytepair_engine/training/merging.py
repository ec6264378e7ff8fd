"""Train merges on counted pre-tokens, in steps that can be interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Final, Literal, SupportsIndex

from bytepair_engine.backends.reference import check_unicode
from bytepair_engine.errors import InvalidOption, TrainingError, check_type
from bytepair_engine.training.reference import Merge, replace, train_reference
from bytepair_engine.training.settings import BYTE_ORDERS, TrainingSettings

if TYPE_CHECKING:
    from bytepair_engine import _core

Phase = Literal["count", "merge", "done"]

#: Maximum duration of a step, after which interrupts are handled and progress is reported.
STEP_SECONDS: Final = 0.1


@dataclass(frozen=True)
class Progress:
    """The progress of a training.

    Attributes:
        phase: "count" while texts are read, "merge" afterwards, "done" at the end.
        text_bytes: Number of bytes of text counted so far.
        text_tokens: Current number of tokens of the text; 0 while texts are read.
        tokens: Current number of ordinary tokens.
        wanted: Requested number of ordinary tokens.
    """

    phase: Phase
    text_bytes: int
    text_tokens: int
    tokens: int
    wanted: int

    @property
    def bytes_per_token(self) -> float:
        """Average number of bytes of a token in the texts; 0 if it is not known yet."""
        return self.text_bytes / self.text_tokens if self.text_tokens else 0.0


Report = Callable[[Progress], object]


def _empty() -> TrainingError:
    return TrainingError("there is no text to train on", "give a non-empty text")


def checked_counts(
    counts: Mapping[bytes, int] | Mapping[str, int],
) -> Iterator[tuple[bytes, int]]:
    """Yield the pre-tokens of a mapping with their counts, without those that occur 0 times.

    Raises:
        TypeError: A pre-token is neither text nor bytes.
        InvalidOption: A pre-token is empty, or a count is not an integer from 0 to 2⁶³ - 1.
        InvalidUnicode: A pre-token has a lone surrogate; the error has its index.
    """
    items: Iterable[tuple[str | bytes, int]] = counts.items()
    for position, (word, count) in enumerate(items):
        check_type("corpus: each pre-token", word, str | bytes, "str or bytes")
        if not word:
            raise InvalidOption("corpus", "a pre-token is empty")
        if not isinstance(count, SupportsIndex) or not 0 <= (number := index(count)) < 2**63:
            raise InvalidOption("corpus", f"{count!r} is not an integer from 0 to 2**63 - 1")
        if isinstance(word, str):
            check_unicode(word, position)
        if number:
            yield (word.encode() if isinstance(word, str) else word), number


@dataclass(frozen=True)
class Trained:
    """The result of a training.

    Attributes:
        settings: The settings of the training.
        tokens: The ordinary tokens by id: the bytes, then the results of the merges.
        merges: The merges in order. The first produced the token 256, each further one the next.
        text_bytes: Number of bytes of the texts.
        text_tokens: Number of tokens of the texts.
        is_complete: Whether the requested number of tokens was reached; if not, no remaining pair
            is frequent enough.
    """

    settings: TrainingSettings
    tokens: Sequence[bytes]
    merges: Sequence[Merge]
    text_bytes: int
    text_tokens: int
    is_complete: bool

    @property
    def special_tokens(self) -> dict[str, int]:
        """The special tokens with their ids, which follow those of the ordinary tokens."""
        names = self.settings.special_tokens
        return {name: len(self.tokens) + number for number, name in enumerate(names)}


def merge_counts(
    counts: _core.PretokenCounts,
    settings: TrainingSettings,
    report: Report | None = None,
) -> Trained:
    """Train on counted pre-tokens, on the native core.

    Args:
        counts: The pre-tokens in order of first occurrence, which "first-seen" depends on.
        settings: The settings.
        report: Called about ten times per second; an exception that it raises ends the training.
    Returns:
        The result, which is deterministic.
    Raises:
        TrainingError: There is no text, or too much to count.
    """
    from bytepair_engine import _core

    text_bytes, wanted = counts.total_bytes, settings.ordinary_tokens
    if not text_bytes:
        raise _empty()
    trainer = _core.MergeTrainer(counts, BYTE_ORDERS[settings.byte_order], settings.ties)
    while True:
        reason = trainer.step(wanted, settings.min_frequency, STEP_SECONDS)
        if report is not None:
            phase: Phase = "merge" if reason == "time" else "done"
            report(Progress(phase, text_bytes, trainer.length, len(trainer), wanted))
        if reason != "time":
            break
    return Trained(
        settings,
        tuple(trainer.tokens()),
        tuple(Merge(*merge) for merge in trainer.merges()),
        text_bytes,
        trainer.length,
        is_complete=reason == "enough",
    )


def merge_by_reference(counts: Mapping[bytes, int], settings: TrainingSettings) -> Trained:
    """Train on counted pre-tokens with the reference implementation.

    Raises:
        TrainingError: There is no text.
    """
    text_bytes = sum(len(word) * count for word, count in counts.items())
    if not text_bytes:
        raise _empty()
    byte_order, wanted = BYTE_ORDERS[settings.byte_order], settings.ordinary_tokens
    merges = train_reference(
        counts,
        tokens=wanted,
        byte_order=byte_order,
        min_frequency=settings.min_frequency,
        ties=settings.ties,
    )
    tokens = [bytes([byte]) for byte in byte_order]
    for merge in merges:
        tokens.append(tokens[merge.left] + tokens[merge.right])
    words = [([byte_order.index(byte) for byte in word], n) for word, n in counts.items()]
    for number, merge in enumerate(merges):
        words = [(replace(word, merge.left, merge.right, 256 + number), n) for word, n in words]
    return Trained(
        settings,
        tuple(tokens),
        tuple(merges),
        text_bytes,
        text_tokens=sum(len(word) * n for word, n in words),
        is_complete=len(tokens) >= wanted,
    )
