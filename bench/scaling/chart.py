"""The chart of a curve: its panels side by side, as SVG that depends only on the figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from bench.scaling.curve import Curve, Panel, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Okabe and Ito's, which people who do not see all colours can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7")
MARKERS = "osD^v"
WIDTH, HEIGHT = 3.9, 2.9
_SETTINGS: Any = {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "bytepair"}


def draw(path: Path, curve: Curve, rows: Sequence[Row]) -> None:
    """Draw a curve.

    Args:
        path: The SVG that is written.
        curve: What is drawn.
        rows: Its figures.
    """
    with mpl.rc_context(_SETTINGS):
        number = len(curve.panels)
        figure = Figure(figsize=(WIDTH * number, HEIGHT), layout="constrained")
        for panel, axes in zip(
            curve.panels, figure.subplots(1, number, squeeze=False)[0], strict=True
        ):
            _panel(axes, curve, panel, rows)
        figure.savefig(path, format="svg", metadata={"Date": None})
    # matplotlib ends lines of paths with spaces.
    path.write_text("".join(f"{line.rstrip()}\n" for line in path.read_text().splitlines()))


def _panel(axes: Axes, curve: Curve, panel: Panel, rows: Sequence[Row]) -> None:
    for line, colour, marker in zip(panel.lines, COLOURS, MARKERS, strict=False):
        points = [
            (float(row[curve.across.key]), float(row[line.key]) * line.scale)
            for row in rows
            if line.key in row and all(row.get(key) == value for key, value in line.where)
        ]
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            color=colour,
            marker=marker,
            markersize=3.5,
            linewidth=1.2,
            label=line.label,
        )
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(curve.across.title)
    if curve.logarithmic:
        axes.set_xscale("log")
    if panel.logarithmic:
        axes.set_yscale("log")
    else:
        axes.margins(y=0.15)
        axes.set_ylim(bottom=0)
    for axis, is_logarithmic in ((axes.xaxis, curve.logarithmic), (axes.yaxis, panel.logarithmic)):
        axis.set_major_formatter(FuncFormatter(_short))
        if is_logarithmic:
            axis.set_minor_locator(NullLocator())
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if any(line.label for line in panel.lines):
        axes.legend(frameon=False, fontsize=8)


def _short(value: float, _: object) -> str:
    for unit, suffix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:g}{suffix}"
    return f"{value:g}"
