"""A comparison of encodings: groups of text in sections, with the measures of each encoding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from bytepair_tools.evaluation.evaluation import Evaluation
from bytepair_tools.evaluation.measures import Counts, ratio
from bytepair_tools.texts.opening import shown

ALL: Final = "all"

Kind = Literal["file", "label", "script"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure and its representation.

    Attributes:
        name: The key in JSON.
        title: The heading in tables.
        value: Computes the measure from counts; None if the divisor is 0.
        format: The format of the value.
    """

    name: str
    title: str
    value: Callable[[Counts], float | None]
    format: str


MEASURES: Final = (
    Measure("bytes_per_token", "bytes/token", lambda c: c.bytes_per_token, ".2f"),
    Measure("characters_per_token", "chars/token", lambda c: c.characters_per_token, ".2f"),
    Measure("tokens_per_word", "tokens/word", lambda c: c.tokens_per_word, ".2f"),
    Measure("whole_word_share", "whole words", lambda c: c.whole_word_share, ".1%"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A group of text in every encoding.

    Attributes:
        name: The file, the label or the script; ALL for all files.
        counts: The counts of each encoding, in order.
    """

    name: str
    counts: Sequence[Counts]


@dataclass(frozen=True, slots=True)
class Section:
    """One grouping of the texts.

    Attributes:
        kind: The kind of grouping.
        title: The heading in tables.
        rows: The groups in order.
    """

    kind: Kind
    title: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of encodings.

    Attributes:
        encodings: The labels of the encodings.
        sections: The sections, that of files first. Its last row is their total if there are
            several files.
        is_parallel: Whether the files have the same content, so that their numbers of tokens are
            comparable.
    """

    encodings: Sequence[str]
    sections: Sequence[Section]
    is_parallel: bool

    def times_first_encoding(self, row: Row, index: int) -> float | None:
        """Return the ratio of tokens in an encoding to those in the first one, for one text."""
        return ratio(row.counts[index].tokens, row.counts[0].tokens)

    def times_first_file(self, row: Row, index: int) -> float | None:
        """Return the ratio of tokens of a file to those of the first one, in one encoding."""
        return ratio(row.counts[index].tokens, self.sections[0].rows[0].counts[index].tokens)

    def fields(self, section: Section) -> Iterator[dict[str, Any]]:
        """Yield the rows of a section as JSON values."""
        for row in section.rows:
            results = []
            for index, (name, counts) in enumerate(zip(self.encodings, row.counts, strict=True)):
                result = {"encoding": name, **asdict(counts)}
                result |= {measure.name: measure.value(counts) for measure in MEASURES}
                result["times_first_encoding"] = self.times_first_encoding(row, index)
                if self.is_parallel and section.kind == "file" and row.name != ALL:
                    result["times_first_file"] = self.times_first_file(row, index)
                results.append(result)
            yield {section.kind: row.name, "results": results}


def compare(evaluation: Evaluation, *, by: str | None, is_parallel: bool) -> Comparison:
    """Arrange the counts of an evaluation in sections.

    Args:
        evaluation: The counts.
        by: The key or column of labels; None for none.
        is_parallel: See `Comparison`.
    """
    none = [Counts() for _ in evaluation.encodings]
    by_file = evaluation.by(lambda group: group.file)
    files = [Row(shown(file), by_file.get(n, none)) for n, file in enumerate(evaluation.files)]
    if len(files) > 1:
        files.append(Row(ALL, evaluation.by(lambda _: ALL).get(ALL, none)))
    sections = [Section("file", "file", files)]
    if by is not None:
        labels = evaluation.by(lambda group: group.label).items()
        sections.append(Section("label", by, [Row(str(label), row) for label, row in labels]))
    scripts = evaluation.by(lambda group: group.script).items()
    sections.append(Section("script", "script", [Row(str(name), row) for name, row in scripts]))
    return Comparison(evaluation.encodings, sections, is_parallel)


def written(value: float | None, style: str) -> str:
    """Format a measure; a dash for None."""
    return "–" if value is None else format(value, style)
