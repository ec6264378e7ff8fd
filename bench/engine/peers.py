"""How fast is the engine beside its peers? Encode, count and decode, in one run.

    make bench-engine                                           all texts of the corpora folder
    PYTHONPATH=tests python bench/engine/peers.py FILE…         texts of your own

The corpora are looked for in $BYTEPAIR_CORPORA, or in ../shared/corpora beside the repository.
Peers that are installed take part: tiktoken, gigatoken, quicktok-v1, toktok-rs. Ids are compared
with tiktoken's before anything is timed. Documents of a fixed number of characters are given one
by one, and each engine's best pass counts: warm, since the comparison was the first. Time is the
process's CPU time, so that a busy machine shows less; figures are MB of UTF-8 per second.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from gzip import decompress
from importlib.resources import files
from pathlib import Path
from typing import Any

import bytepair_engine
from support.oracle import oracle

REPOSITORY = Path(__file__).resolve().parents[2]
NAMES = ("cl100k_base", "o200k_base")
WARM_PASSES = 3

Work = Callable[[Any], object]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="UTF-8 texts")
    parser.add_argument("--characters", type=int, default=10_000, help="of each document")
    parser.add_argument("--total", type=int, default=600_000, help="characters of each text")
    arguments = parser.parse_args()
    texts = arguments.files or corpora()
    if not texts:
        parser.error("no texts: name files, or set BYTEPAIR_CORPORA to a folder of *.txt")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name in NAMES:
        engines = engines_of(name)
        ratios: dict[str, list[float]] = {}
        for path in texts:
            text = path.read_text(encoding="utf-8")[: arguments.total]
            step = arguments.characters
            documents = [text[i : i + step] for i in range(0, len(text), step)]
            compare(name, path.stem, documents, engines, ratios)
        print(f"\n{name}: this engine, as a multiple of each (median, worst text)")
        for label, values in ratios.items():
            print(f"  {label:32} {statistics.median(values):6.2f} {min(values):6.2f}")
    return 0


def corpora() -> list[Path]:
    """The texts of the corpora folder; none where there is no such folder."""
    folder = os.environ.get("BYTEPAIR_CORPORA")
    return sorted((Path(folder) if folder else REPOSITORY / "../shared/corpora").glob("*.txt"))


def engines_of(name: str) -> dict[str, dict[str, Work]]:
    """Kind of work to engine to a function of one document; this engine is "ours"."""
    ours = bytepair_engine.get_encoding(name, backend="native")
    tiktoken = oracle(name)
    engines: dict[str, dict[str, Work]] = {
        "list": {"ours": ours.encode_ordinary, "tiktoken": tiktoken.encode_ordinary},
        "buffer": {"ours": lambda text: ours.encode_array(text, disallowed_special=())},
        "count": {"ours": lambda text: ours.count(text, disallowed_special=())},
        "decode": {"ours": ours.decode, "tiktoken": tiktoken.decode},
    }
    if quicktok := installed("quicktok"):
        peer = quicktok.get_encoding(name)
        engines["list"]["quicktok"] = peer.encode_ordinary
        engines["count"]["quicktok"] = peer.count
        engines["decode"]["quicktok"] = peer.decode
    if toktok := installed("toktok"):
        engines["count"]["toktok"] = lambda text: toktok.batch_count([text], name)
    if gigatoken := installed("gigatoken"):
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / f"{name}.tiktoken"
            data = files("bytepair_engine") / "data" / f"{name}.tiktoken.gz"
            table.write_bytes(decompress(data.read_bytes()))
            peer = gigatoken.Tokenizer.from_tiktoken(str(table))
        engines["list"]["gigatoken"] = peer.as_tiktoken().encode_ordinary
        engines["buffer"]["gigatoken"] = peer.encode
    return engines


def installed(module: str) -> Any | None:
    """The module, or None with a line that says so."""
    try:
        return importlib.import_module(module)
    except ImportError:
        print(f"{module} is not installed and does not take part")
        return None


def compare(
    name: str,
    title: str,
    documents: Sequence[str],
    engines: dict[str, dict[str, Work]],
    ratios: dict[str, list[float]],
) -> None:
    """Measure one text and print its lines; add the ratios."""
    expected = [oracle(name).encode_ordinary(document) for document in documents]
    for engine, encode in engines["list"].items():
        if [encode(document) for document in documents] != expected:
            sys.exit(f"{name}, {title}: the ids of {engine} differ from tiktoken's")
    size = sum(len(document.encode()) for document in documents)
    print(f"\n{name}, {title}: MB/s warm")
    for kind, works in engines.items():
        items: Sequence[Any] = expected if kind == "decode" else documents
        speeds = {
            engine: max(size / seconds(work, items) / 1e6 for _ in range(WARM_PASSES))
            for engine, work in works.items()
        }
        print(
            f"  {kind:8}" + "".join(f" {engine} {speed:6.0f}" for engine, speed in speeds.items())
        )
        for engine, speed in speeds.items():
            if engine != "ours":
                ratios.setdefault(f"{kind} / {engine}", []).append(speeds["ours"] / speed)


def seconds(work: Work, items: Sequence[Any]) -> float:
    """CPU time of one pass."""
    start = time.process_time()
    for item in items:
        work(item)
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
