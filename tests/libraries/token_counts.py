"""LangChain, LlamaIndex and LiteLLM get the same from `bytepair_engine.tiktoken` as from tiktoken.

`make test-libraries` installs them in a virtualenv of their own and runs this.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from bytepair_engine import get_encoding
from support.hard_text import random_texts
from support.oracle import oracle

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build" / "libraries" / "venv" / "bin" / "python"
AS_TIKTOKEN = ROOT / "tests" / "support" / "as_tiktoken"
README = (ROOT / "README.md").read_text(encoding="utf-8")
TEXTS = [
    *("", "hello world", "a <|endoftext|> b", README, "na\u00efve \U0001f642 " * 50),
    *random_texts(random.Random(25), get_encoding("gpt-4o").token_byte_values(), 40),
]


def results(**variables: str) -> dict[str, Any]:
    """Return the results of the libraries for the texts, with these environment variables."""
    oracle("cl100k_base")  # sets where tiktoken finds its tables without a download
    own = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_RUST": "false",  # a codec that replaces tiktoken
        "CUSTOM_TIKTOKEN_CACHE_DIR": os.environ["TIKTOKEN_CACHE_DIR"],
    }
    ran = subprocess.run(
        [PYTHON, Path(__file__).with_name("program.py")],
        input=json.dumps(TEXTS),
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | own | variables,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.fixture(scope="module")
def both() -> tuple[dict[str, Any], dict[str, Any]]:
    """The results with this engine and with tiktoken."""
    return results(PYTHONPATH=str(AS_TIKTOKEN)), results()


def test_the_libraries_run_on_the_intended_module(
    both: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    ours, theirs = both
    assert ours["tiktoken"] == "bytepair_engine.tiktoken.core"
    assert theirs["tiktoken"] == "tiktoken.core"


@pytest.mark.parametrize("library", ["langchain", "llama_index", "litellm"])
def test_the_results_of_a_library_are_equal(
    both: tuple[dict[str, Any], dict[str, Any]], library: str
) -> None:
    ours, theirs = both
    assert len(ours[library]) == len(TEXTS)
    for text, own, other in zip(TEXTS, ours[library], theirs[library], strict=True):
        assert own == other, text
