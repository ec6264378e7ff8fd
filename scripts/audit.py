"""Compare the content of the image with published advisories, and with the allowed licences and
sources.

    python scripts/audit.py                    exit status 1: something is wrong; 2: something
                                              could not be checked
    python scripts/audit.py --allow-unchecked  0 in place of 2

Advisories of Python packages come from PyPI, those of crates from RustSec's repository. If these
cannot be reached, the report names what was not checked. Licences and sources are always checked.
Needs the tools that `make audit` installs.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from audit_crates import audit_crates
from audit_report import Report
from audit_tools import ROOT, TOOLS, last_line, run
from licences import rejected

PINS: Final = ROOT / "deploy" / "requirements.txt"
#: What is pinned, installed and described.
BOM: Final = ROOT / "build" / "audit" / "python.cdx.json"


def python_advisories(report: Report, found: dict[str, Any]) -> None:
    """Check the report of pip-audit, which passes a package that it does not know.

    Args:
        report: Where it is printed.
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


def audit_python(report: Report) -> None:
    """Check advisories and licences of the pinned Python packages."""
    options = ("--disable-pip", "--require-hashes", "--progress-spinner", "off")
    ran = run(TOOLS / "pip-audit", *options, "--format", "json", "--requirement", PINS)
    if ran.stdout.startswith("{"):
        python_advisories(report, json.loads(ran.stdout))
    else:
        report.unchecked.append(
            f"advisories of Python packages: pip-audit failed: {last_line(ran)}"
        )
    bom = json.loads(BOM.read_text(encoding="utf-8"))
    others = list(rejected(bom))
    report.wrong += others
    if not others:
        report.good.append(f"licences of {len(bom['components'])} Python packages")


def main() -> int:
    """Run all checks. Returns the exit status."""
    report = Report()
    audit_python(report)
    audit_crates(report)
    sys.stdout.write(report.text())
    return report.status(allow_unchecked="--allow-unchecked" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
