"""The README is true: its Python code prints what it shows, its shell commands work, its call by
JSON and that of docs/chat.md get their answers, and docs/architecture.md names every folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from support.serving import RunningServer

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "localhost:50051"

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
def test_python_code_prints_the_shown_output(server: RunningServer, code: str, output: str) -> None:
    assert run([sys.executable, "-c", code.replace(ADDRESS, server.target)], server) == output


def test_the_json_call_gets_the_shown_answer(server: RunningServer) -> None:
    ((header, value, body, url, answer),) = re.findall(
        r"curl -H '(.+?): (.+?)' -d '(.+?)' \\\n +(\S+)\n```\n+```json\n(.+)\n```", README
    )
    request = Request(url.replace(ADDRESS, server.target), body.encode(), {header: value})
    with urlopen(request) as response:
        assert response.read().decode() == answer


def test_the_json_call_of_a_chat_gets_the_shown_answer(server: RunningServer) -> None:
    page = (ROOT / "docs/chat.md").read_text(encoding="utf-8")
    ((url, header, value, body, answer),) = re.findall(
        r"curl (\S+) -H '(.+?): (.+?)' -d '(.+?)'\n```\n\nThe answer has (.+?\.)\n", page, re.DOTALL
    )
    shown = json.loads(f"{{{', '.join(re.findall('`(.+?)`', answer))}}}")
    assert len(shown) == 5
    url = f"http://{url.replace(ADDRESS, server.target)}"
    with urlopen(Request(url, body.encode(), {header: value})) as response:
        assert shown.items() <= json.load(response).items()


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in SHELL if "bytepair " in line])
def test_shell_commands_work(server: RunningServer, line: str) -> None:
    assert run(["bash", "-euc", line], server)


@pytest.mark.parametrize("line", [line for line in SHELL if line.startswith("make ")])
def test_make_targets_exist(line: str) -> None:
    target = line.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_architecture_page_names_every_folder_of_source() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    roots = (
        "proto/bytepair",
        "engine/python/bytepair_engine",
        "engine/src",
        "client/src/bytepair_client",
        "tools/src/bytepair_tools",
        "server/python/bytepair_server",
    )
    folders = {
        str(file.parent.relative_to(ROOT / root))
        for root in roots
        for suffix in ("py", "rs", "proto")
        for file in (ROOT / root).rglob(f"*.{suffix}")
    } - {"."}
    assert len(folders) > 20
    assert [name for name in sorted(folders) if f"{name}/`" not in page] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_command_for_one_test_selects_one(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    (arguments,) = re.findall(r"run one test.+`make test PYTEST_ARGS=\"(.+)\"`", text)
    pytest_one = [sys.executable, "-m", "pytest", *arguments.split(), "--collect-only", "--quiet"]
    done = subprocess.run(pytest_one, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    names = {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}
    assert len(names) == 1
