"""From counted pre-tokens to merges: the native trainer, in steps that can be interrupted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from bytepair_engine.errors import TrainingError
from bytepair_engine.training.reference import Merge, replace, train_reference
from bytepair_engine.training.settings import BYTE_ORDERS, TrainingSettings

if TYPE_CHECKING:
    from bytepair_engine import _core

Phase = Literal["count", "merge", "done"]

#: How long a step may take: so soon an interrupt is noticed, and progress reported.
STEP_SECONDS: Final = 0.1


@dataclass(frozen=True)
class Progress:
    """How far a training has come.

    Attributes:
        phase: "count" while texts are read, "merge" afterwards, "done" at the end.
        text_bytes: How many bytes of text were counted so far.
        text_tokens: How many tokens they have by now; 0 while texts are read.
        tokens: How many ordinary tokens there are.
        wanted: How many there are to be.
    """

    phase: Phase
    text_bytes: int
    text_tokens: int
    tokens: int
    wanted: int

    @property
    def bytes_per_token(self) -> float:
        """How many bytes of the texts one token stands for; 0 while that is not known."""
        return self.text_bytes / self.text_tokens if self.text_tokens else 0.0


Report = Callable[[Progress], object]


def _empty() -> TrainingError:
    return TrainingError("there is no text to train on", "give a text that is not empty")


@dataclass(frozen=True)
class Trained:
    """A merge table, and how it came to be.

    Attributes:
        settings: What was requested.
        tokens: The ordinary tokens by id: the bytes, then what merges made.
        merges: In order; the first made the token 256, and each the next.
        text_bytes: How many bytes of text it was trained on.
        text_tokens: How many tokens they have.
        is_complete: Whether there are as many tokens as requested; if not, no pair was left that
            stands often enough.
    """

    settings: TrainingSettings
    tokens: Sequence[bytes]
    merges: Sequence[Merge]
    text_bytes: int
    text_tokens: int
    is_complete: bool

    @property
    def special_tokens(self) -> dict[str, int]:
        """The special tokens and their ids, which follow those of the ordinary ones."""
        names = self.settings.special_tokens
        return {name: len(self.tokens) + number for number, name in enumerate(names)}


def merge_counts(
    counts: _core.PretokenCounts,
    settings: TrainingSettings,
    report: Report | None = None,
) -> Trained:
    """Train on counted pre-tokens, on the native core.

    Args:
        counts: The pre-tokens in the order of first occurrence, which "first-seen" goes by.
        report: Called some ten times a second; what it raises ends the training.
    Returns:
        The merges. The same counts and settings always give the same ones.
    Raises:
        TrainingError: There is nothing to train on, or more than can be counted.
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
    """The same by the definition.

    Raises:
        TrainingError: There is nothing to train on.
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
