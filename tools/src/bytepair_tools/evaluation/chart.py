"""The measures of a comparison, drawn: a panel for each, a group of bars for each file."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bytepair_tools.evaluation.comparison import (
    ALL,
    MEASURES,
    Comparison,
    Measure,
    Row,
    Section,
    written,
)
from bytepair_tools.shared.failure import USAGE, Failure
from bytepair_tools.shared.files import write_whole
from bytepair_tools.shared.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: From a row and an encoding's place to what is drawn.
Value = Callable[[Row, int], float | None]

_SUFFIXES: Final = (".svg", ".png")

#: More groups than this are not drawn: no one could read them.
MOST_GROUPS: Final = 40
_LONGEST_NAME: Final = 32

#: Okabe and Ito's, which people who do not see all colours can tell apart.
_COLOURS: Final = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#555555",
)  # fmt: skip


def check(path: Path) -> None:
    """See, before anything is counted, whether a chart can be drawn and written.

    Raises:
        Failure: Its name ends otherwise than charts do, its folder is not there, or matplotlib is
            not installed.
    """
    if path.suffix not in _SUFFIXES:
        raise Failure(f"{path}: a chart must be a .svg or a .png", USAGE)
    if not path.parent.is_dir():
        raise Failure(f"{path}: the folder {path.parent} does not exist")
    # What it has to say of its caches is nothing that a person could act on.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise Failure(
            f"{path}: drawing needs matplotlib: pip install bytepair-tools[chart]"
        ) from None


def write(path: Path, comparison: Comparison) -> None:
    """Draw a comparison, and write it.

    Args:
        path: A name that `check` let pass.
        comparison: What is drawn.
    Raises:
        Failure: The file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    measures = _measures(comparison)
    sections = [section for section in _sections(comparison) if section.rows]
    bars = [len(section.rows) * len(comparison.encodings) for section in sections]
    # Text stays text in SVG, no name is read as a formula, and nothing in the file depends on the
    # day or on chance.
    settings: Any = {
        "font.size": 9,
        "svg.fonttype": "none",
        "svg.hashsalt": "bytepair",
        "text.parse_math": False,
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # names of files, in PNG
        figure = Figure(
            figsize=(3.2 * len(measures) + 1.5, 0.16 * sum(bars) + 1.1 * len(bars) + 0.8),
            layout="constrained",
        )
        grid = figure.subplots(
            len(sections), len(measures), squeeze=False, height_ratios=[n + 3 for n in bars]
        )
        for section, panels in zip(sections, grid, strict=True):
            for (title, value, style), panel in zip(measures, panels, strict=True):
                _draw(panel, section, comparison, value, style)
                panel.set_title(title)
            panels[0].set_yticklabels([_text(row.name) for row in section.rows])
            panels[0].set_ylabel(_text(section.title))
        handles, names = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper left", ncols=4, frameon=False)
        drawn = io.BytesIO()
        metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        figure.savefig(drawn, format=path.suffix[1:], metadata=metadata, dpi=150)
    write_whole(path, [drawn.getvalue()])


def _measures(comparison: Comparison) -> list[tuple[str, Value, str]]:
    """What is drawn: titles, how a row and an encoding's place come to a value, and how values
    are written."""
    found: list[tuple[str, Value, str]] = [(m.title, _value(m), m.format) for m in MEASURES]
    if comparison.is_parallel:
        found.insert(0, ("tokens / first file's", comparison.times_first_file, ".3f"))
    return found


def _value(measure: Measure) -> Value:
    return lambda row, place: measure.value(row.counts[place])


def _sections(comparison: Comparison) -> Iterator[Section]:
    """The files; then the labels, or the scripts where no labels were requested. The files alone
    where these are compared, as that says nothing of the others."""
    for section in comparison.sections[: 1 if comparison.is_parallel else 2]:
        rows = [row for row in section.rows if row.name != ALL or len(section.rows) == 1]
        title = section.title
        if len(rows) > MOST_GROUPS:
            title = f"{title}: {MOST_GROUPS} of {len(rows)}, of the most text"
            rows = sorted(rows, key=lambda row: -row.counts[0].bytes)[:MOST_GROUPS]
        if section.kind == "file" or len(rows) > 1:
            yield Section(section.kind, title, rows)


def _draw(panel: Axes, section: Section, comparison: Comparison, value: Value, style: str) -> None:
    """One panel: a group of bars for each row, the first one on top."""
    encodings = comparison.encodings
    height = 0.8 / len(encodings)
    for place, name in enumerate(encodings):
        at = [number - 0.4 + height * (place + 0.5) for number in range(len(section.rows))]
        values = [value(row, place) for row in section.rows]
        bars = panel.barh(
            at,
            [number or 0 for number in values],
            height=height,
            label=_text(name),
            color=_COLOURS[place % len(_COLOURS)],
        )
        panel.bar_label(bars, [written(v, style) for v in values], padding=2)
    panel.set_yticks(range(len(section.rows)))
    panel.set_yticklabels([])
    panel.invert_yaxis()
    panel.margins(x=0.25, y=0.02)
    panel.spines[["top", "right"]].set_visible(False)


def _text(name: str) -> str:
    """A name as it is drawn: its end, where it is long; and no label that matplotlib would hide."""
    name = visible(name)
    name = name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"
    return f"\u200a{name}" if name.startswith("_") else name
