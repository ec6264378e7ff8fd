"""The locked crates: licences and sources always, advisories if RustSec's database can be reached.

Licences and sources are in the crates' manifests, which cargo reads in a second. Advisories are
checked by cargo-deny with engine/deny.toml. Compiling it takes ten minutes, so the script checks
first whether RustSec's repository can be reached.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from audit_report import Report
from audit_tools import ROOT, TOOLS, last_line, run
from licences import is_allowed

ENGINE: Final = ROOT / "engine"
#: The folders with a lock file, and the crates that may be locked in two versions. Those of the
#: server come from connectrpc and its dependencies, so no version here can unify them.
FOLDERS: Final = {
    ENGINE: frozenset[str](),
    ROOT / "server": frozenset({"hashbrown", "syn", "windows-sys"}),
}
RULES: Final = ENGINE / "deny.toml"
#: Cargo's name of the only source that is allowed.
SOURCE: Final = "registry+https://github.com/rust-lang/crates.io-index"
#: Time for a repository to answer: many times what one needs that can be reached.
ANSWER_SECONDS: Final = 20.0


def audit_crates(report: Report) -> None:
    """Add the findings about the locked crates to a report."""
    for folder, may_be_twice in FOLDERS.items():
        metadata = ("metadata", "--locked", "--all-features", "--format-version=1")
        ran = run("cargo", *metadata, folder=folder)
        if ran.returncode:
            report.wrong.append(f"crates: cargo cannot read what is locked: {last_line(ran)}")
            return
        packages = json.loads(ran.stdout)["packages"]
        rejected = list(rejected_crates(packages, may_be_twice))
        report.wrong += rejected
        if not rejected:
            report.good.append(
                f"{folder.name}: licences, duplicates and sources of {len(packages)} crates"
            )
    _audit_advisories(report)


def rejected_crates(
    packages: list[dict[str, Any]], may_be_twice: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Return the crates that are not allowed.

    Args:
        packages: As `cargo metadata` lists them.
        may_be_twice: Crates of which there may be several versions.
    Yields:
        One line for each that has another licence or source, or several versions.
    """
    for package in packages:
        crate = f"crate {package['name']} {package['version']}"
        if not is_allowed(package["license"] or ""):
            yield f"{crate}: licence: {package['license'] or 'nothing'}"
        # A crate of this repository has none.
        if package["source"] not in (None, SOURCE):
            yield f"{crate}: source: {package['source']}"
    for name, times in Counter(package["name"] for package in packages).items():
        if times > 1 and name not in may_be_twice:
            yield f"crate {name}: {times} versions"


def answers(repository: str) -> bool:
    """Whether a Git repository can be reached, by the cheapest request."""
    return not run("git", "ls-remote", repository, "HEAD", seconds=ANSWER_SECONDS).returncode


def _audit_advisories(report: Report) -> None:
    rules = tomllib.loads(RULES.read_text(encoding="utf-8"))
    unread = "advisories of crates, for "
    if not all(map(answers, rules["advisories"]["db-urls"])):
        report.unchecked.append(unread + "RustSec's repository did not answer")
        return
    tool = TOOLS / "cargo-deny"
    built = run("make", "--silent", tool.relative_to(ROOT))
    if built.returncode:
        report.unchecked.append(f"{unread}cargo-deny could not be installed: {last_line(built)}")
        return
    deny: tuple[str | Path, ...] = (tool, "--locked", "--all-features")
    fetched = run(*deny, "fetch", "db", folder=ENGINE)
    if fetched.returncode:
        report.unchecked.append(f"{unread}they could not be fetched: {last_line(fetched)}")
        return
    ran = run(*deny, "check", "--disable-fetch", folder=ENGINE)
    if ran.returncode:
        report.wrong.append(f"crates: {ran.stderr.strip()}")
    else:
        report.good.append("advisories of crates were read")
