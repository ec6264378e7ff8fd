"""Write the image's dependency pins: every package with its version and the hashes of its files.

    python scripts/lock.py            pin anew, keeping versions that still satisfy the projects
    python scripts/lock.py --upgrade  pin the newest that satisfy them

Reads what the five distributions declare in their pyproject.toml and writes, beside this file,
requirements.txt (what runs) and requirements-build.txt (what builds the wheels). Needs `uv` on
PATH.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
PARTS = ("engine", "proto/python", "client", "tools", "server")
OWN_PREFIX = "bytepair-"
# The Python of the image (PYTHON_IMAGE in the Dockerfile).
PYTHON_VERSION = "3.11"


def declared(table: str, key: str) -> list[str]:
    """Return the requirements that the parts declare, without the parts themselves.

    Args:
        table: A top-level table of pyproject.toml.
        key: The list in it.
    Returns:
        Sorted requirement lines, each once.
    """
    found: set[str] = set()
    for part in PARTS:
        pyproject = tomllib.loads((DEPLOY.parent / part / "pyproject.toml").read_text())
        found.update(pyproject[table][key])
    return sorted(line for line in found if not line.startswith(OWN_PREFIX))


def pin(requirements: list[str], output: Path, options: list[str]) -> None:
    """Resolve `requirements` and write the pinned set with hashes to `output`.

    Raises:
        subprocess.CalledProcessError: They cannot be satisfied together; uv has said why.
    """
    command = ["uv", "pip", "compile", "-", "--generate-hashes", "--python-version", PYTHON_VERSION]
    command += ["--python-platform", "linux", "--no-annotate", "--custom-compile-command"]
    command += ["python scripts/lock.py", "--quiet", "--output-file", str(output), *options]
    subprocess.run(command, input="\n".join(requirements), text=True, check=True)


def main() -> None:
    options = sys.argv[1:]
    pin(declared("project", "dependencies"), DEPLOY / "requirements.txt", options)
    pin(declared("build-system", "requires"), DEPLOY / "requirements-build.txt", options)


if __name__ == "__main__":
    main()
