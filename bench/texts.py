"""The texts of the benchmarks: files named on the command line, or the texts of a folder.

The folder is `$BYTEPAIR_CORPORA`. Without it, texts are made in build/texts of what every clone
has: the documentation and code of this repository, and of Python's standard library. The same
commit and the same Python give the same texts. They hold English and code, few other languages, and
no special token: Encode rejects text with one. Texts in Hindi and Thai are made of the translations
of Plone, Django and pretix, which `make bench-engine` installs.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
NO_TEXTS = "no texts: name files, or set BYTEPAIR_CORPORA to a folder of *.txt"

_MADE = REPOSITORY / "build" / "texts"
_LIBRARY = Path(sysconfig.get_path("stdlib"))
_MAX_BYTES = 1_500_000
_TRANSLATED = ("plone.app.locales", "Django", "pretix")
_LANGUAGES = {"hindi": "hi", "thai": "th"}
_TRANSLATION = re.compile(r'^msgstr(?:\[\d\])? ((?:"[^\n]*"\n)+)', re.MULTILINE)


def corpora() -> list[Path]:
    """The texts, sorted by name; none if `$BYTEPAIR_CORPORA` names a folder without texts."""
    named = os.environ.get("BYTEPAIR_CORPORA")
    return sorted((Path(named) if named else _made()).glob("*.txt"))


def english() -> bytes:
    """All texts named english_*.txt, joined; b"" if there are none."""
    return b"".join(file.read_bytes() for file in corpora() if file.name.startswith("english_"))


def translations() -> list[Path]:
    """Write the texts in Hindi and Thai. Returns none if their packages are not installed."""
    _MADE.mkdir(parents=True, exist_ok=True)
    made = []
    for name, code in _LANGUAGES.items():
        # Each once: packages share many.
        lines = [f"{line}\n".encode() for line in dict.fromkeys(_translations(code))]
        if lines:
            made.append(_MADE / f"{name}_translations.txt")
            _write(made[-1], lines)
    return made


def parsed(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, list[Path]]:
    """Parse the arguments of a command and read its texts; ends the command if there are none."""
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="UTF-8 texts")
    arguments = parser.parse_args()
    texts: list[Path] = arguments.files or corpora()
    if not texts:
        parser.error(NO_TEXTS)
    return arguments, texts


def _translations(code: str) -> Iterator[str]:
    """Yield the translations into a language, in the order of the packages."""
    for package in _TRANSLATED:
        try:
            found = files(package) or []
        except PackageNotFoundError:
            continue
        for file in found:
            if file.match(f"{code}/LC_MESSAGES/*.po"):
                for literals in _TRANSLATION.findall(file.read_text(encoding="utf-8")):
                    text = ast.literal_eval(f"({literals})")
                    if not text.isascii():
                        yield text


def _made() -> Path:
    """Write the texts of a fresh clone. Returns their folder."""
    _MADE.mkdir(parents=True, exist_ok=True)
    for name, parts in {
        "english_docs": [REPOSITORY / "README.md", *REPOSITORY.glob("docs/**/*.md")],
        "english_python": [_LIBRARY / "pydoc_data" / "topics.py"],
        "code_python": _LIBRARY.glob("*.py"),
        "code_rust": REPOSITORY.glob("*/src/**/*.rs"),
        "code_tests": REPOSITORY.glob("tests/**/*.py"),
    }.items():
        _write(_MADE / f"{name}.txt", (part.read_bytes() for part in sorted(parts)))
    translations()
    return _MADE


def _write(file: Path, parts: Iterable[bytes]) -> None:
    data = b"".join(parts)[:_MAX_BYTES]
    data = data.replace(b"<|", b"< |")
    data = data.decode(errors="ignore").encode()
    if not file.exists() or file.read_bytes() != data:
        file.write_bytes(data)
