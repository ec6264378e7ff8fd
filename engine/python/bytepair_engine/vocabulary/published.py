"""The split patterns of published rank files, which do not contain them.

The hash of a file identifies its pattern. The number of its lines only suggests one, which the
operator must check.
"""

from __future__ import annotations

import hashlib
from typing import Final

from bytepair_engine.vocabulary.builtin import SHA256
from bytepair_engine.vocabulary.patterns import PATTERN_NAMES

#: SHA-256 of the file, uncompressed, to a description and the name of the pattern.
_BY_HASH: Final = {
    **{sha256: (f"the table of {name}", name) for name, sha256 in SHA256.items()},
    # From the package llama-models 0.3.0.
    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": ("Llama 3's", "llama3"),
    "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed": ("Llama 4's", "llama4"),
    # Pinned by LiteLLM 1.106.
    "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103": ("Kimi K3's", "kimi_k2"),
}
#: Number of lines to a vocabulary with that many tokens or merges, and the name of its pattern.
_BY_LINES: Final = {
    50_000: ("GPT-2's merges have", "gpt2"),
    50_001: ("GPT-2's merges have", "gpt2"),  # with a line for the version
    50_256: ("r50k_base has", "r50k_base"),
    50_280: ("p50k_base has", "p50k_base"),
    100_256: ("cl100k_base has", "cl100k_base"),
    128_000: ("Llama 3's has", "llama3"),
    151_643: ("Qwen's has", "qwen2"),
    163_584: ("Kimi K2's has", "kimi_k2"),
    199_998: ("o200k_base has", "o200k_base"),
    200_000: ("Llama 4's has", "llama4"),
}


def known_pattern(data: bytes) -> str | None:
    """Return the name of the pattern of a published rank file; None for any other file.

    Args:
        data: The file, uncompressed.
    """
    found = _BY_HASH.get(hashlib.sha256(data).hexdigest())
    return None if found is None else found[1]


def proposed_pattern(data: bytes) -> str:
    """Return advice on the pattern of a rank file: the known one, or candidates.

    Args:
        data: The file, uncompressed.
    """
    found = _BY_HASH.get(hashlib.sha256(data).hexdigest())
    if found is not None:
        return f'this is {found[0]}, so pattern = "{found[1]}"'
    named = f"one of {PATTERN_NAMES}, or a regular expression"
    found = _BY_LINES.get(len(data.splitlines()))
    if found is None:
        return named
    return (
        f'it has as many lines as {found[0]}, so pattern = "{found[1]}" may be right: compare ids '
        f"with the publisher's; else {named}"
    )
