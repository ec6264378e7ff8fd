"""What the tests of training share."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [file.read_text(encoding="utf-8") for file in sorted((ROOT / "docs").glob("*.md"))][:8]
USUAL = ("--vocab-size", "1000", "--pattern", "gpt2")


def table(folder: Path) -> bytes:
    """Return the trained rank file."""
    return (folder / f"{folder.name}.tiktoken").read_bytes()
