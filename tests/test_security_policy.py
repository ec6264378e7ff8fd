"""The tests and settings that SECURITY.md names exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
THREATS = PAGE.partition("## Threats")[2].partition("## What is not")[0]


def test_each_defence_names_existing_tests() -> None:
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "tests" / "page").glob("page_*.py")]
    tests = "".join(path.read_text(encoding="utf-8") for path in files)
    rows = re.findall(r"^\| (?!threat |---)(.+) \|$", THREATS, re.MULTILINE)
    assert len(rows) > 15
    for row in rows:
        threat, defence, held_by = row.split(" | ")
        names = re.findall(r"`(\w+)`", held_by)
        assert names, threat
        assert defence
        assert [name for name in names if f"def {name}(" not in tests] == []
