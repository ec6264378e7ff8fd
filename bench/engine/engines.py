"""The engines that the benchmarks compare, and the documents that they are given."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import bytepair_engine
from support.oracle import oracle

NAMES = ("cl100k_base", "o200k_base")

Work = Callable[[Any], object]


def engines_of(name: str) -> dict[str, dict[str, Work]]:
    """Return, for each kind of work and each engine, a function of one document; this engine is
    "ours"."""
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
        table = files("bytepair_engine") / "data" / f"{name}.tiktoken"
        peer = gigatoken.Tokenizer.from_tiktoken(str(table))
        engines["list"]["gigatoken"] = peer.as_tiktoken().encode_ordinary
        engines["buffer"]["gigatoken"] = peer.encode
    if splintr := installed("splintr"):
        engines["list"]["splintr"] = splintr.Tokenizer.from_pretrained(name).encode_ordinary
    return engines


def installed(module: str) -> Any | None:
    """Return the module; None, with a printed line, if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        print(f"{module} is not installed and does not take part")
        return None


def documents_of(path: Path, characters: int, total: int) -> list[str]:
    """Divide the first `total` characters of a text into documents of `characters` each."""
    text = path.read_text(encoding="utf-8")[:total]
    return [text[i : i + characters] for i in range(0, len(text), characters)]
