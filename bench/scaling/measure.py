"""Measure how the service scales: print its curves as tables and draw them.

    make bench-scaling                       all of them: half an hour on two cores, nothing beside
    make bench-scaling CURVES=concurrency    one of them
    make bench-scaling DRAW=1                the pictures again, of the last figures

The figures and the pictures are kept in build/scaling.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

import grpc

from bench.scaling import concurrency, cost, loaded_encodings, open_streams, text_length
from bench.scaling.chart import draw
from bench.scaling.curve import Curve

ROOT = Path(__file__).resolve().parents[2]
FIGURES = PICTURES = ROOT / "build" / "scaling"
CURVES = {
    module.CURVE.name: module.CURVE
    for module in (text_length, concurrency, open_streams, loaded_encodings, cost)
}


def main() -> None:
    """Measure, print and draw the curves."""
    parser = argparse.ArgumentParser(prog="bench.scaling.measure", description=__doc__)
    parser.add_argument("curves", nargs="*", metavar="curve", help=", ".join(CURVES))
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    given = parser.parse_args()
    if unknown := set(given.curves) - set(CURVES):
        parser.error(f"no such curve: {', '.join(unknown)}; there are {', '.join(CURVES)}")
    for name in given.curves or CURVES:
        if not given.draw:
            measure(CURVES[name], given.quick)
        show(CURVES[name])


def measure(curve: Curve, quick: bool) -> None:
    """Measure a curve and save its figures."""
    about = (
        f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, "
        f"grpcio {grpc.__version__}, {os.cpu_count()} cores, "
        f"load average {os.getloadavg()[0]:.1f} at the start"
    )
    rows = curve.measure(quick)
    FIGURES.mkdir(parents=True, exist_ok=True)
    (FIGURES / f"{curve.name}.json").write_text(json.dumps({"about": about, "rows": rows}))


def show(curve: Curve) -> None:
    """Print and draw the saved figures of a curve."""
    kept = json.loads((FIGURES / f"{curve.name}.json").read_text())
    print(f"\n{curve.title} ({kept['about']})\n{curve.table(kept['rows'])}", flush=True)
    if curve.panels:
        draw(PICTURES / f"scaling-{curve.name}.svg", curve, kept["rows"])


if __name__ == "__main__":
    main()
