"""Texts through several encodings at once: what was counted of each file and each script."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import eq
from typing import Final, NamedTuple

from bytepair_engine import Encoding

from bytepair_tools.evaluation.measures import Counts
from bytepair_tools.evaluation.segments import Block, Segmenter, Spans
from bytepair_tools.evaluation.token_starts import TokenStarts
from bytepair_tools.texts.documents import Documents


class Group(NamedTuple):
    """What is counted apart.

    Attributes:
        file: The file's place among those that were read.
        label: What the document says of itself; "" where it was not asked.
        script: One of `scripts`.
    """

    file: int
    label: str
    script: str


@dataclass(slots=True)
class Evaluation:
    """What was counted.

    Attributes:
        encodings: What they are called, in order.
        files: What they are called, in order.
        counts: For each encoding, in order.
    """

    encodings: Sequence[str]
    files: Sequence[str]
    counts: list[dict[Group, Counts]] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = [defaultdict(Counts) for _ in self.encodings]

    def by(self, key: Callable[[Group], int | str]) -> dict[int | str, list[Counts]]:
        """The groups in larger ones: for each, what was counted in each encoding.

        Args:
            key: From a group to what the larger one is called.
        Returns:
            That of the most bytes first.
        """
        found: defaultdict[int | str, list[Counts]] = defaultdict(
            lambda: [Counts() for _ in self.encodings]
        )
        for place, counts in enumerate(self.counts):
            for group, counted in counts.items():
                found[key(group)][place] += counted
        return dict(sorted(found.items(), key=lambda item: -item[1][0].bytes))


def evaluate(
    encodings: Sequence[tuple[str, Encoding]],
    files: Sequence[str],
    documents: Documents,
    report: Callable[[int], None],
) -> Evaluation:
    """Read files, and count their tokens in each encoding.

    Args:
        encodings: Name and encoding; at least one.
        files: Names, or STANDARD_INPUT.
        documents: Reads them.
        report: Called with the bytes of text that were read so far, again and again.
    Returns:
        What was counted; an empty file has no group.
    Raises:
        Failure: A file cannot be read, or is not what it must be.
    """
    result = Evaluation([name for name, _ in encodings], files)
    segmenter = Segmenter()
    counters = [
        _Counter(encoding, counts)
        for (_, encoding), counts in zip(encodings, result.counts, strict=True)
    ]
    read = 0
    for number, file in enumerate(files):
        for document in documents.read(file):
            for counter in counters:
                counter.begin(number, documents.label)
            end = 0
            for piece, block in segmenter.blocks(document):
                for counter in counters:
                    counter.feed(piece, block)
                if block is not None:
                    end = block.end
                    report(read + end)
            for counter in counters:
                counter.finish()
            read += end
    return result


class _Counter:
    """Counts documents in one encoding."""

    def __init__(self, encoding: Encoding, counts: dict[Group, Counts]) -> None:
        self._tokens: Final = TokenStarts(encoding)
        self._counts: Final = counts
        self._blocks: Final[deque[Block]] = deque()  # whose tokens are not all known yet

    def begin(self, file: int, label: str) -> None:
        self._file, self._label = file, label
        self._tokens.begin()

    def feed(self, piece: str, block: Block | None) -> None:
        if piece:
            self._tokens.feed(piece)
        if block is not None:
            self._blocks.append(block)
        self._settle()

    def finish(self) -> None:
        self._tokens.finish()
        self._settle()

    def _settle(self) -> None:
        tokens = self._tokens
        while self._blocks and self._blocks[0].end <= tokens.known:
            block = self._blocks.popleft()
            for script, spans in block.stretches.items():
                counts = self._counts[Group(self._file, self._label, script)]
                counts.bytes += spans.bytes
                counts.characters += spans.characters
                counts.tokens += _starting_in(tokens.starts, spans)
                counts.unknown += _starting_in(tokens.unknown, spans)
            for script, words in block.words.items():
                counts = self._counts[Group(self._file, self._label, script)]
                # One token holds a word's first byte, and each that starts later in it another one.
                before = [*map(bisect_right, repeat(tokens.starts), words.starts)]
                after = [*map(bisect_left, repeat(tokens.starts), words.ends)]
                counts.words += len(before)
                counts.word_tokens += len(before) + sum(after) - sum(before)
                counts.whole_words += sum(map(eq, before, after))
            tokens.drop(block.end)


def _starting_in(starts: Sequence[int], spans: Spans) -> int:
    return sum(map(bisect_left, repeat(starts), spans.ends)) - sum(
        map(bisect_left, repeat(starts), spans.starts)
    )
