"""The README is true: its Python prints what it says, its shell commands work, its links and its
list of files match the repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.serving import RunningServer

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "localhost:50051"
FLAGS = re.MULTILINE | re.DOTALL

#: Each Python block with the output that follows it.
EXAMPLES = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", README, re.DOTALL)
SHELL = [
    line
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
]


def run(arguments: list[str], server: RunningServer) -> str:
    folder = Path(sys.executable).parent
    environment = os.environ | {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "BYTEPAIR_TARGET": server.target,
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        arguments, capture_output=True, text=True, encoding="utf-8", env=environment, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == README.count("```python") >= 2


@pytest.mark.parametrize(("code", "output"), EXAMPLES)
def test_python_prints_what_the_readme_says(server: RunningServer, code: str, output: str) -> None:
    assert run([sys.executable, "-c", code.replace(ADDRESS, server.target)], server) == output


@pytest.mark.parametrize("line", [line for line in SHELL if "bytepair " in line])
def test_shell_commands_work(server: RunningServer, line: str) -> None:
    assert run(["bash", "-euc", line], server)


@pytest.mark.parametrize("line", [line for line in SHELL if line.startswith("make ")])
def test_make_targets_exist(line: str) -> None:
    target = line.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)", README)
    assert links
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_the_reading_order_names_every_source_file() -> None:
    listed = []
    for folder, table in re.findall(r"^### [^\n]*?(?:\(`(.*?)`\))?\n(.*?)(?=^#)", README, FLAGS):
        files = re.findall(r"^\| `([\w/.]+)` \|", table, re.MULTILINE)
        listed += [folder + file for file in files]
    sources = {
        str(file.relative_to(ROOT))
        for folder in (
            "proto",
            "engine/python",
            "engine/src",
            "client/src",
            "tools/src",
            "server/python",
        )
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".py", ".rs", ".proto")
        and "_pb2" not in file.name
        and file.name not in ("__init__.py", "tests.rs")
    }
    assert sorted(listed) == sorted(sources)
