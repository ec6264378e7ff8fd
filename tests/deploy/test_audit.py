"""`make audit` fails if a check could not run."""

from __future__ import annotations

import errno
import os
import subprocess
import tomllib
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from audit import python_advisories
from audit_crates import SOURCE, answers, rejected_crates
from audit_report import Report
from audit_tools import last_line, run
from licences import ALLOWED, rejected

KNOWN = {"name": "grpcio", "version": "1.0", "vulns": []}
UNKNOWN = {"name": "regex", "skip_reason": "Dependency not found on PyPI: regex (1.0)"}
WEAK = {
    "name": "protobuf",
    "version": "1.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1", "2.0"]}],
}


def checked(*packages: dict[str, Any]) -> Report:
    report = Report()
    python_advisories(report, {"dependencies": list(packages)})
    return report


def test_unchecked_advisories_are_reported_and_fail() -> None:
    report = checked(KNOWN, UNKNOWN)
    assert "NOT CHECKED: advisories of 1 of 2 Python packages" in report.text()
    assert "regex" in report.text()
    assert report.status(allow_unchecked=False) == 2
    assert report.status(allow_unchecked=True) == 0
    assert checked(KNOWN).status(allow_unchecked=False) == 0


def test_a_known_vulnerability_always_fails() -> None:
    report = checked(KNOWN, UNKNOWN, WEAK)
    assert "WRONG: protobuf 1.0: PYSEC-1, fixed in 1.1, 2.0\n" in report.text()
    assert report.status(allow_unchecked=True) == 1


@pytest.mark.parametrize(
    ("licences", "is_allowed"),
    [
        ([{"license": {"id": "MIT"}}], True),
        ([{"expression": "MIT OR GPL-3.0-only"}], True),
        ([{"expression": "Apache-2.0 AND CNRI-Python"}], True),
        ([{"license": {"name": "License :: OSI Approved :: MIT License"}}], True),
        ([{"expression": "(MIT OR Apache-2.0) AND Unicode-3.0"}], True),
        ([{"expression": "MIT AND GPL-3.0-only"}], False),
        ([{"expression": "(MIT OR Apache-2.0) AND GPL-3.0-only"}], False),
        ([{"license": {"id": "GPL-3.0-only"}}], False),
        ([{"license": {"id": "MIT"}}, {"license": {"id": "GPL-3.0-only"}}], False),
        ([{"license": {"name": "MITish"}}], False),
        ([{"license": {"name": "License :: OSI Approved :: BSD License"}}], False),
        ([], False),
    ],
)
def test_licences_are_allowed_by_name(licences: list[Any], is_allowed: bool) -> None:
    component = {"name": "package", "version": "1", "licenses": licences}
    assert (list(rejected({"components": [component]})) == []) is is_allowed


def test_a_vague_licence_is_resolved_by_the_licence_file() -> None:
    vague = {"license": {"name": "License :: OSI Approved :: BSD License"}}
    component = {"name": "Jinja2", "version": "3.1.6", "licenses": [vague]}
    assert list(rejected({"components": [component]})) == []
    component["licenses"] = [vague, {"license": {"id": "GPL-3.0-only"}}]
    assert list(rejected({"components": [component]})) != []


def test_crates_and_packages_may_have_the_same_licences() -> None:
    path = Path(__file__).parents[2] / "engine/deny.toml"
    rules = tomllib.loads(path.read_text(encoding="utf-8"))
    assert set(rules["licenses"]["allow"]) == ALLOWED


def crate(name: str, *, source: str | None = SOURCE, licence: str | None = "MIT") -> dict[str, Any]:
    return {"name": name, "version": "1.0.0", "source": source, "license": licence}


def test_crates_are_rejected_by_licence_source_and_number() -> None:
    good = [crate("mine", source=None), crate("a"), crate("b", licence="Unlicense OR MIT")]
    assert list(rejected_crates(good)) == []
    bad = [
        crate("a", licence="GPL-3.0-only"),
        crate("b", licence=None),
        crate("c", source="git+file:///elsewhere"),
        crate("d"),
        crate("d"),
    ]
    assert list(rejected_crates(bad)) == [
        "crate a 1.0.0: licence: GPL-3.0-only",
        "crate b 1.0.0: licence: nothing",
        "crate c 1.0.0: source: git+file:///elsewhere",
        "crate d: 2 versions",
    ]


def test_a_missing_advisory_database_is_noticed(tmp_path: Path) -> None:
    assert not answers(f"file://{tmp_path}")
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path], check=True)
    assert answers(f"file://{tmp_path}")


@pytest.mark.slow
def test_a_tool_that_times_out_fails_and_leaves_no_process(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    ran = run("sh", "-c", 'sleep 600 > "$1" & cat "$1"', "sh", held, seconds=0.5)
    assert ran.returncode
    assert last_line(ran) == "no answer within 0.5 s"
    # The shell and its children are gone when no process has the pipe open for reading.
    while is_read(held):
        sleep(0.01)


def is_read(pipe: Path) -> bool:
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return False
    return True
