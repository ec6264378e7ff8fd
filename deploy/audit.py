"""Compare what the image is made of with published advisories, and with the licences and sources
that are allowed.

    python deploy/audit.py                    exit status 1: something is wrong; 2: something
                                              could not be checked
    python deploy/audit.py --allow-unchecked  0 in place of 2

Advisories are data of others: those of Python packages come from PyPI, those of crates from
RustSec's repository. Where they cannot be had nothing is known, which is not the same as
nothing being wrong: what was not checked is named. Needs what `make audit` installs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from licences import refused

ROOT: Final = Path(__file__).resolve().parents[1]
PINS: Final = ROOT / "deploy" / "requirements.txt"
TOOLS: Final = ROOT / "build" / "audit" / "bin"
BOM: Final = ROOT / "build" / "sbom" / "python.cdx.json"
SECONDS: Final = 300


@dataclass
class Report:
    """What came out.

    Attributes:
        good: What was checked and is right, one line each.
        wrong: What is wrong.
        unchecked: What could not be checked, and why.
    """

    good: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    def text(self) -> str:
        """For people."""
        marked = {"ok": self.good, "WRONG": self.wrong, "NOT CHECKED": self.unchecked}
        return "".join(f"{mark}: {line}\n" for mark, lines in marked.items() for line in lines)

    def status(self, *, allow_unchecked: bool) -> int:
        """The exit status."""
        if self.wrong:
            return 1
        return 2 if self.unchecked and not allow_unchecked else 0


def python_advisories(report: Report, found: dict[str, Any]) -> None:
    """Judge what pip-audit says, which counts a package that it knows nothing of as good.

    Args:
        report: Where it is told.
        found: The document that `pip-audit --format json` prints.
    """
    packages = found["dependencies"]
    skipped = [package for package in packages if "skip_reason" in package]
    for package in packages:
        report.wrong.extend(
            f"{package['name']} {package['version']}: {advisory['id']}, fixed in "
            f"{', '.join(advisory['fix_versions']) or 'no version'}"
            for advisory in package.get("vulns", [])
        )
    checked = len(packages) - len(skipped)
    if checked:
        report.good.append(f"advisories of {checked} Python packages were read")
    if skipped:
        names = ", ".join(package["name"] for package in skipped)
        report.unchecked.append(
            f"advisories of {len(skipped)} of {len(packages)} Python packages, for PyPI did not "
            f"answer: {names}"
        )


def run(*command: str | Path, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end."""
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def audit_python(report: Report) -> None:
    """Advisories and licences of the pinned Python packages."""
    options = ("--disable-pip", "--require-hashes", "--progress-spinner", "off")
    ran = run(TOOLS / "pip-audit", *options, "--format", "json", "--requirement", PINS)
    if ran.stdout.startswith("{"):
        python_advisories(report, json.loads(ran.stdout))
    else:
        last = (ran.stderr.strip().splitlines() or ["it said nothing"])[-1]
        report.unchecked.append(f"advisories of Python packages: pip-audit failed: {last}")
    bom = json.loads(BOM.read_text(encoding="utf-8"))
    others = list(refused(bom))
    report.wrong += others
    if not others:
        report.good.append(f"licences of {len(bom['components'])} Python packages")


def audit_crates(report: Report) -> None:
    """Advisories, licences and sources of the locked crates."""
    engine = ROOT / "engine"
    deny = (TOOLS / "cargo-deny", "--locked", "--all-features")
    ran = run(*deny, "--offline", "check", "licenses", "bans", "sources", folder=engine)
    if ran.returncode:
        report.wrong.append(f"crates: {ran.stderr.strip()}")
    else:
        report.good.append("licences, duplicates and sources of crates")
    if run(*deny, "fetch", "db", folder=engine).returncode:
        report.unchecked.append("advisories of crates, for RustSec's repository did not answer")
        return
    ran = run(*deny, "check", "--disable-fetch", "advisories", folder=engine)
    if ran.returncode:
        report.wrong.append(f"crates: {ran.stderr.strip()}")
    else:
        report.good.append("advisories of crates were read")


def main() -> int:
    """Do all of it; the exit status."""
    report = Report()
    audit_python(report)
    audit_crates(report)
    sys.stdout.write(report.text())
    return report.status(allow_unchecked="--allow-unchecked" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
