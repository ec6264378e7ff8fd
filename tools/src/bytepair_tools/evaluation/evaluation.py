"""Count texts in several encodings, by file, label and script."""

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
    """A group of text that is counted separately.

    Attributes:
        file: The index of the file.
        label: The label of the document; "" for none.
        script: The script.
    """

    file: int
    label: str
    script: str


@dataclass(slots=True)
class Evaluation:
    """The counts of an evaluation.

    Attributes:
        encodings: The labels of the encodings.
        files: The names of the files.
        counts: For each encoding, the counts of each group.
    """

    encodings: Sequence[str]
    files: Sequence[str]
    counts: list[dict[Group, Counts]] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = [defaultdict(Counts) for _ in self.encodings]

    def by(self, key: Callable[[Group], int | str]) -> dict[int | str, list[Counts]]:
        """Sum the groups with the same key, for each encoding.

        Args:
            key: Returns the key of a group.
        Returns:
            Key to the counts of each encoding, sorted by bytes in descending order.
        """
        found: defaultdict[int | str, list[Counts]] = defaultdict(
            lambda: [Counts() for _ in self.encodings]
        )
        for index, counts in enumerate(self.counts):
            for group, counted in counts.items():
                found[key(group)][index] += counted
        return dict(sorted(found.items(), key=lambda item: -item[1][0].bytes))


def evaluate(
    encodings: Sequence[tuple[str, Encoding]],
    files: Sequence[str],
    documents: Documents,
    report: Callable[[int], None],
) -> Evaluation:
    """Read files, and count their tokens in each encoding.

    Args:
        encodings: Labels and encodings, at least one.
        files: File names, or STANDARD_INPUT.
        documents: The reader of the files.
        report: Called repeatedly with the number of bytes of text read so far.
    Returns:
        The counts; an empty file has no group.
    Raises:
        Failure: A file cannot be read, or is invalid.
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
        self._blocks: Final[deque[Block]] = deque()  # blocks with tokens that are not known yet

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
                # The tokens of a word are the one that contains its first byte, and those that
                # start later in it.
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
