"""Measure vocabularies of other formats beside their publishers' libraries, in one run.

    make bench-formats                      all of them
    python -m bench.formats.speed NAME…     some of them

Each vocabulary is loaded in a new process: CPU seconds, and the memory of the process afterwards.
Then documents of 10,000 characters of each text are encoded into lists, after the ids were
compared: MB per second of CPU time of the third pass on one thread, and the ratio to the
publisher's library.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bytepair_engine import EncodingSpec, load_encoding

from bench.formats.vocabularies import SENTENCEPIECE, TOKENIZER_JSON, fetched
from bench.texts import NO_TEXTS, corpora

DOCUMENT = 10_000
#: Characters of each text: some hundred milliseconds for the slowest library.
SAMPLE = 100_000

Encode = Callable[[str], list[int]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="vocabularies; by default all")
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        return load(options.load)
    if not corpora():
        parser.error(NO_TEXTS)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    names = options.names or [*TOKENIZER_JSON, *(f"{name}.model" for name in SENTENCEPIECE)]
    print(
        "vocabulary        backend    load     memory   MB/s: median  least   times: median  least"
    )
    for name in names:
        file = file_of(name)
        loading = subprocess.run(
            [sys.executable, "-m", "bench.formats.speed", "--load", str(file)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        ours = load_encoding(EncodingSpec(name=name, file=file))
        peer = peer_of(file)
        speeds, ratios = [], []
        for text in corpora():
            sample = text.read_text(encoding="utf-8", errors="replace")[:SAMPLE]
            documents = [sample[i : i + DOCUMENT] for i in range(0, len(sample), DOCUMENT)]
            if any(ours.encode_ordinary(document) != peer(document) for document in documents):
                print(f"{name}: ids differ on {text.name}")
                return 1
            mine, other = seconds(ours.encode_ordinary, documents), seconds(peer, documents)
            speeds.append(len(sample.encode()) / mine / 1e6)
            ratios.append(other / mine)
        print(
            f"{name:18}{ours.backend:9}{loading[0]:>5} s{loading[1]:>7} MiB"
            f"{statistics.median(speeds):>15.0f}{min(speeds):>7.0f}"
            f"{statistics.median(ratios):>16.1f}{min(ratios):>7.1f}",
            flush=True,
        )
    return 0


def file_of(name: str) -> Path:
    if name.endswith(".model"):
        return fetched(name[:-6], SENTENCEPIECE[name[:-6]], ".model")
    return fetched(name, TOKENIZER_JSON[name], ".json")


def peer_of(file: Path) -> Encode:
    """The publisher's library, for text without special tokens."""
    if file.suffix == ".model":
        from sentencepiece import SentencePieceProcessor

        encode: Encode = SentencePieceProcessor(model_file=str(file)).encode
        return encode
    from tokenizers import Tokenizer

    peer = Tokenizer.from_file(str(file))
    peer.encode_special_tokens = True
    return lambda text: peer.encode(text, add_special_tokens=False).ids


def seconds(encode: Encode, documents: list[str]) -> float:
    """CPU seconds of the third of three passes."""
    for _ in range(3):
        start = time.process_time()
        for document in documents:
            encode(document)
    return time.process_time() - start


def load(file: Path) -> int:
    """Load a vocabulary; print the seconds and the process's MiB."""
    start = time.process_time()
    loaded = load_encoding(EncodingSpec(name="loaded", file=file))
    elapsed = time.process_time() - start
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    print(f"{elapsed:.2f} {pages * os.sysconf('SC_PAGE_SIZE') >> 20}")
    return 0 if loaded.n_vocab else 1


if __name__ == "__main__":
    sys.exit(main())
