"""A curve: its rows of measurements, its table and its panels."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: One point of every line: its figures, and words that identify the row, by name.
Row = dict[str, float | str]


@dataclass(frozen=True)
class Column:
    """A column of the table.

    Attributes:
        key: In the rows; those that lack it have a dash.
        title: For people, with the unit.
        style: How a number is written.
    """

    key: str
    title: str
    style: str = ",.0f"

    def cell(self, row: Row) -> str:
        """The cell of this column in a row."""
        value = row.get(self.key)
        if value is None:
            return "–"
        return value if isinstance(value, str) else format(value, self.style)


@dataclass(frozen=True)
class Line:
    """A line of a panel.

    Attributes:
        key: The figure that goes up.
        label: For the legend; "" for none.
        where: What else a row must have to be a point of it.
        scale: What the figure is multiplied by.
    """

    key: str
    label: str = ""
    where: tuple[tuple[str, str], ...] = ()
    scale: float = 1.0


@dataclass(frozen=True)
class Panel:
    """One panel of a chart.

    Attributes:
        title: What goes up, with the unit.
        lines: What is drawn.
        logarithmic: Whether what goes up is.
    """

    title: str
    lines: tuple[Line, ...]
    logarithmic: bool = True


@dataclass(frozen=True)
class Curve:
    """A measurement against a variable.

    Attributes:
        name: The stem of its picture.
        title: What the table is of.
        across: The column of what is varied.
        columns: The others.
        panels: The picture; none for a table alone.
        measure: Measures all rows; whether to be quick about it is its argument.
        logarithmic: Whether what is varied is.
    """

    name: str
    title: str
    across: Column
    columns: tuple[Column, ...]
    panels: tuple[Panel, ...]
    measure: Callable[[bool], list[Row]]
    logarithmic: bool = True

    def table(self, rows: Sequence[Row]) -> str:
        """The rows as Markdown."""
        columns = (self.across, *self.columns)
        words = {key for row in rows for key, value in row.items() if isinstance(value, str)}
        rules = ["---" if column.key in words else "---:" for column in columns]
        lines = [[column.title for column in columns], rules]
        lines += [[column.cell(row) for column in columns] for row in rows]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def medians(rounds: Sequence[Sequence[Row]]) -> list[Row]:
    """Combine the rows of several rounds: the median of each figure. Words are kept."""
    return [
        {key: _median([row[key] for row in same]) for key in same[0]}
        for same in zip(*rounds, strict=True)
    ]


def _median(values: Sequence[float | str]) -> float | str:
    numbers = [value for value in values if not isinstance(value, str)]
    return statistics.median(numbers) if numbers else values[0]
