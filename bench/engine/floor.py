"""How far is the core from a plain lookup for each pre-token? Runs `engine/benches/floor.rs`.

    python -m bench.engine.floor [FILE…]

Gives it the pattern and the table of each encoding, and all texts of bench/texts.py.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import bytepair_engine

from bench.engine.engines import NAMES
from bench.texts import NO_TEXTS, REPOSITORY, corpora


def main() -> int:
    texts = [Path(argument).resolve() for argument in sys.argv[1:]] or corpora()
    if not texts:
        sys.exit(NO_TEXTS)
    for name in NAMES:
        table = files("bytepair_engine") / "data" / f"{name}.tiktoken"
        with tempfile.TemporaryDirectory() as folder:
            pattern = Path(folder) / "pattern"
            pattern.write_text(bytepair_engine.get_encoding(name).pattern, encoding="utf-8")
            print(name, flush=True)
            command = ["cargo", "bench", "--quiet", "--locked", "--bench", "floor", "--"]
            subprocess.run(
                [*command, pattern, str(table), *texts], cwd=REPOSITORY / "engine", check=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
