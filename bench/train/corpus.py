"""A corpus of any size: documents of some thousand characters, cut from the texts by a seed.

A corpus larger than the texts repeats them with new words: in each further pass, one long word in
eight gets the second half of another one. So the number of distinct pre-tokens grows with the size,
as in real text; plain repetition would add none.
"""

from __future__ import annotations

import random
import re

from bench.texts import NO_TEXTS, REPOSITORY, corpora

CHARACTERS = 3000
SEED = 20261121

_WORD = re.compile(r"[^\W\d_]{4,}")


def documents(megabytes: int) -> list[str]:
    """Documents with this many megabytes of UTF-8 in all; kept in build/."""
    file = REPOSITORY / "build" / "bench-train" / f"{megabytes}.txt"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\0".join(_make(megabytes * 1_000_000)), encoding="utf-8", newline="")
    return file.read_bytes().decode().split("\0")


def _make(size: int) -> list[str]:
    rng = random.Random(SEED)
    cut = []
    for path in corpora():
        text = path.read_text(encoding="utf-8").replace("\0", "")
        cut += [text[start : start + CHARACTERS] for start in range(0, len(text), CHARACTERS)]
    if not cut:
        raise SystemExit(NO_TEXTS)
    words: list[str] = [word for text in rng.sample(cut, 200) for word in _WORD.findall(text)]

    def renew(match: re.Match[str]) -> str:
        word: str = match.group()
        if rng.random() >= 1 / 8:
            return word
        other = words[int(rng.random() * len(words))]
        return word[: len(word) // 2] + other[len(other) // 2 :]

    made: list[str] = []
    passes = 0
    while True:
        rng.shuffle(cut)
        for text in cut:
            document = _WORD.sub(renew, text) if passes else text
            size -= len(document.encode())
            if size < 0:
                return made
            made.append(document)
        passes += 1
