"""The image's pinned packages are the dependencies of the distributions; each has the licence."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("engine", "proto/python", "client", "tools", "server")


def pinned(name: str) -> dict[str, str]:
    """Return version by package of a requirements file."""
    text = (ROOT / "deploy" / name).read_text(encoding="utf-8")
    pins = re.findall(r"^([\w.-]+)==(\S+) \\$", text, re.MULTILINE)
    return {canonicalize_name(package): version for package, version in pins}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("table", "key", "file"),
    [
        ("project", "dependencies", "requirements.txt"),
        ("build-system", "requires", "requirements-build.txt"),
    ],
)
def test_pins_satisfy_the_requirements_of_each_distribution(
    part: str, table: str, key: str, file: str
) -> None:
    pyproject = tomllib.loads((ROOT / part / "pyproject.toml").read_text(encoding="utf-8"))
    versions = pinned(file)
    for line in pyproject[table][key]:
        requirement = Requirement(line)
        if requirement.name.startswith("bytepair-"):
            continue
        version = versions.get(canonicalize_name(requirement.name))
        assert version is not None, f"{line}: run python scripts/lock.py"
        assert requirement.specifier.contains(version), f"{line}: run python scripts/lock.py"


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-build.txt"])
def test_every_pin_has_hashes_and_names_no_registry(file: str) -> None:
    text = (ROOT / "deploy" / file).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for previous, line in zip(lines, [*lines[1:], ""], strict=True):
        if "==" in previous:
            assert "--hash=sha256:" in line, previous
    assert "://" not in text


@pytest.mark.parametrize("part", PARTS)
def test_each_distribution_has_the_licence(part: str) -> None:
    """Build backends put it into wheels and source distributions, from the folder alone."""
    licence = (ROOT / "LICENSE").read_bytes()
    assert (ROOT / part / "LICENSE").read_bytes() == licence
