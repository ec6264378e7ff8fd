"""What `make audit` concludes: what is not known is not good."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from audit import Report, python_advisories
from licences import ALLOWED, refused

KNOWN = {"name": "grpcio", "version": "1.0", "vulns": []}
UNKNOWN = {"name": "regex", "skip_reason": "Dependency not found on PyPI: regex (1.0)"}
WEAK = {
    "name": "protobuf",
    "version": "1.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1", "2.0"]}],
}


def judged(*packages: dict[str, Any]) -> Report:
    report = Report()
    python_advisories(report, {"dependencies": list(packages)})
    return report


def test_what_could_not_be_checked_is_said_and_fails() -> None:
    report = judged(KNOWN, UNKNOWN)
    assert "NOT CHECKED: advisories of 1 of 2 Python packages" in report.text()
    assert "regex" in report.text()
    assert report.status(allow_unchecked=False) == 2
    assert report.status(allow_unchecked=True) == 0
    assert judged(KNOWN).status(allow_unchecked=False) == 0


def test_a_known_weakness_fails_whatever_else_is_allowed() -> None:
    report = judged(KNOWN, UNKNOWN, WEAK)
    assert "WRONG: protobuf 1.0: PYSEC-1, fixed in 1.1, 2.0\n" in report.text()
    assert report.status(allow_unchecked=True) == 1


@pytest.mark.parametrize(
    ("licences", "is_allowed"),
    [
        ([{"license": {"id": "MIT"}}], True),
        ([{"expression": "MIT OR GPL-3.0-only"}], True),
        ([{"expression": "Apache-2.0 AND CNRI-Python"}], True),
        ([{"license": {"name": "License :: OSI Approved :: MIT License"}}], True),
        ([{"expression": "MIT AND GPL-3.0-only"}], False),
        ([{"license": {"id": "GPL-3.0-only"}}], False),
        ([{"license": {"id": "MIT"}}, {"license": {"id": "GPL-3.0-only"}}], False),
        ([{"license": {"name": "MITish"}}], False),
        ([], False),
    ],
)
def test_licences_are_allowed_by_name(licences: list[Any], is_allowed: bool) -> None:
    component = {"name": "package", "version": "1", "licenses": licences}
    assert (list(refused({"components": [component]})) == []) is is_allowed


def test_crates_and_packages_may_have_the_same_licences() -> None:
    path = Path(__file__).parents[2] / "engine/deny.toml"
    rules = tomllib.loads(path.read_text(encoding="utf-8"))
    assert set(rules["licenses"]["allow"]) == ALLOWED
