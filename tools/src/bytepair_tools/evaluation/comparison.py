"""What an evaluation says: groups of text in sections, with the measures of each encoding."""

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
    """One measure, and how it is shown.

    Attributes:
        name: Its key in JSON.
        title: Its name for people.
        value: From counts to it; None where there is nothing to divide by.
        format: How a value is written.
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
    """Some text in every encoding.

    Attributes:
        name: The file, the label or the script; ALL for all files.
        counts: For each encoding, in order.
    """

    name: str
    counts: Sequence[Counts]


@dataclass(frozen=True, slots=True)
class Section:
    """Texts grouped in one way.

    Attributes:
        kind: Which way.
        title: What the groups are called, for people.
        rows: In order.
    """

    kind: Kind
    title: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Encodings side by side.

    Attributes:
        encodings: What they are called.
        sections: That of the files comes first, with all of them as its last row if there are
            several.
        is_parallel: Whether the files have the same content, so that their token counts compare.
    """

    encodings: Sequence[str]
    sections: Sequence[Section]
    is_parallel: bool

    def times_first_encoding(self, row: Row, place: int) -> float | None:
        """The tokens of one encoding, in those of the first one, for the same text."""
        return ratio(row.counts[place].tokens, row.counts[0].tokens)

    def times_first_file(self, row: Row, place: int) -> float | None:
        """The tokens of a file, in those of the first one, in one encoding."""
        return ratio(row.counts[place].tokens, self.sections[0].rows[0].counts[place].tokens)

    def fields(self, section: Section) -> Iterator[dict[str, Any]]:
        """The rows of a section as JSON has them."""
        for row in section.rows:
            results = []
            for place, (name, counts) in enumerate(zip(self.encodings, row.counts, strict=True)):
                result = {"encoding": name, **asdict(counts)}
                result |= {measure.name: measure.value(counts) for measure in MEASURES}
                result["times_first_encoding"] = self.times_first_encoding(row, place)
                if self.is_parallel and section.kind == "file" and row.name != ALL:
                    result["times_first_file"] = self.times_first_file(row, place)
                results.append(result)
            yield {section.kind: row.name, "results": results}


def compare(evaluation: Evaluation, *, by: str | None, is_parallel: bool) -> Comparison:
    """Put what was counted in order.

    Args:
        evaluation: What was counted.
        by: What documents were asked about themselves; None for nothing.
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
    """A measure; a dash for none."""
    return "–" if value is None else format(value, style)
