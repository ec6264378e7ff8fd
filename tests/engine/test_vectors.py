"""Cases as data, run on every engine; `tests/vectors/README.md` describes them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import bytepair_engine
import pytest
from support.engines import Load

VECTORS = Path(__file__).parents[1] / "vectors"


def cases(file: str) -> list[Any]:
    table = tomllib.loads((VECTORS / file).read_text(encoding="utf-8"))
    return [
        pytest.param(case, id=f"{number}-{case['encoding']}")
        for number, case in enumerate(table["case"], 1)
    ]


@pytest.mark.parametrize("case", [*cases("ordinary.toml"), *cases("special.toml")])
def test_ids(load: Load, case: dict[str, Any]) -> None:
    encoding = load(case["encoding"])
    chosen: dict[str, Any] = {
        "allowed_special": set(case.get("allowed_special", ())),
        "disallowed_special": (),
    }
    assert encoding.encode(case["text"], **chosen) == case["ids"], case["why"]
    assert encoding.count(case["text"], **chosen) == len(case["ids"])
    if case["encoding"] != "o200k_harmony" or "reserved" not in case["text"]:
        assert encoding.decode(case["ids"]) == case["text"]


@pytest.mark.slow
@pytest.mark.parametrize("case", cases("long.toml"))
def test_long_texts(case: dict[str, Any]) -> None:
    encoding = bytepair_engine.get_encoding(case["encoding"], backend="native")
    text = case["text"] * case["repeat"]
    assert encoding.count(text) == case["count"], case["why"]
    ids = encoding.encode(text)
    assert len(ids) == case["count"]
    assert encoding.decode(ids) == text


@pytest.mark.slow
def test_a_megabyte_of_spaces_before_a_letter() -> None:
    """tiktoken #258 and 0.14: a panic in its regular expression engine, so there is no oracle. The
    run is one pre-token, without its last space."""
    for name in ("r50k_base", "cl100k_base", "o200k_base"):
        encoding = bytepair_engine.get_encoding(name, backend="native")
        spaces, tail = " " * 1_099_999, " x"
        ids = encoding.encode(spaces + tail)
        assert ids == encoding.encode(spaces) + encoding.encode(tail)
        assert encoding.decode(ids) == spaces + tail
