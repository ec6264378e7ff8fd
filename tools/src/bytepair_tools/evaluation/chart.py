"""Draw the measures of a comparison: a panel per measure, a group of bars per file."""

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
from bytepair_tools.shared.files import write_atomically
from bytepair_tools.shared.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Returns the value to draw for a row and the index of an encoding.
Value = Callable[[Row, int], float | None]

_SUFFIXES: Final = (".svg", ".png")

#: Maximum number of groups: more would not be legible.
MAX_GROUPS: Final = 40
_MAX_NAME_LENGTH: Final = 32

#: Okabe and Ito's palette, which is safe for colour-blind readers.
_COLOURS: Final = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#555555",
)  # fmt: skip


def check(path: Path) -> None:
    """Check, before anything is counted, that a chart can be drawn and written.

    Raises:
        Failure: The suffix is not supported, the folder does not exist, or matplotlib is not
            installed.
    """
    if path.suffix not in _SUFFIXES:
        raise Failure(f"{path}: a chart must be a .svg or a .png", USAGE)
    if not path.parent.is_dir():
        raise Failure(f"{path}: the folder {path.parent} does not exist")
    # Its messages about caches are of no use to the user.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise Failure(
            f"{path}: drawing needs matplotlib: pip install bytepair-tools[chart]"
        ) from None


def write(path: Path, comparison: Comparison) -> None:
    """Draw a comparison, and write it to a file.

    Args:
        path: The file, already checked by `check`.
        comparison: The comparison.
    Raises:
        Failure: The file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    measures = _measures(comparison)
    sections = [section for section in _sections(comparison) if section.rows]
    bars = [len(section.rows) * len(comparison.encodings) for section in sections]
    # Text stays text in SVG, names are not parsed as formulas, and the file is reproducible.
    settings: Any = {
        "font.size": 9,
        "svg.fonttype": "none",
        "svg.hashsalt": "bytepair",
        "text.parse_math": False,
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # file names in PNG
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
    write_atomically(path, [drawn.getvalue()])


def _measures(comparison: Comparison) -> list[tuple[str, Value, str]]:
    """Return the measures to draw: title, value and format."""
    found: list[tuple[str, Value, str]] = [(m.title, _value(m), m.format) for m in MEASURES]
    if comparison.is_parallel:
        found.insert(0, ("tokens / first file's", comparison.times_first_file, ".3f"))
    return found


def _value(measure: Measure) -> Value:
    return lambda row, index: measure.value(row.counts[index])


def _sections(comparison: Comparison) -> Iterator[Section]:
    """Yield the sections to draw: the files; then the labels, or else the scripts. Only the files
    if these are parallel."""
    for section in comparison.sections[: 1 if comparison.is_parallel else 2]:
        rows = [row for row in section.rows if row.name != ALL or len(section.rows) == 1]
        title = section.title
        if len(rows) > MAX_GROUPS:
            title = f"{title}: the largest {MAX_GROUPS} of {len(rows)}"
            rows = sorted(rows, key=lambda row: -row.counts[0].bytes)[:MAX_GROUPS]
        if section.kind == "file" or len(rows) > 1:
            yield Section(section.kind, title, rows)


def _draw(panel: Axes, section: Section, comparison: Comparison, value: Value, style: str) -> None:
    """Draw a panel: a group of bars for each row, the first one at the top."""
    encodings = comparison.encodings
    height = 0.8 / len(encodings)
    for index, name in enumerate(encodings):
        at = [number - 0.4 + height * (index + 0.5) for number in range(len(section.rows))]
        values = [value(row, index) for row in section.rows]
        bars = panel.barh(
            at,
            [number or 0 for number in values],
            height=height,
            label=_text(name),
            color=_COLOURS[index % len(_COLOURS)],
        )
        panel.bar_label(bars, [written(v, style) for v in values], padding=2)
    panel.set_yticks(range(len(section.rows)))
    panel.set_yticklabels([])
    panel.invert_yaxis()
    panel.margins(x=0.25, y=0.02)
    panel.spines[["top", "right"]].set_visible(False)


def _text(name: str) -> str:
    """Return a name to draw: shortened to its end, and not starting with `_`, which would hide a
    label in matplotlib."""
    name = visible(name)
    name = name if len(name) <= _MAX_NAME_LENGTH else f"…{name[1 - _MAX_NAME_LENGTH :]}"
    return f"\u200a{name}" if name.startswith("_") else name
