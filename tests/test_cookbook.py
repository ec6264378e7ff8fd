"""Every recipe of docs/cookbook.md prints what it shows, on a server with its configuration."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from support.serving import RunningServer, write_config

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/cookbook.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
RECIPES = {
    f"{title}-{number}": (code, output)
    for title, body in SECTIONS.items()
    for number, (code, output) in enumerate(
        re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", body, re.DOTALL)
    )
}
#: The recipe whose callers need keys, and which therefore has a server of its own.
WITH_KEYS = "Serve several callers"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def run(arguments: list[str], folder: Path) -> str:
    environment = os.environ | {"PATH": PATH, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def configuration(sections: Iterable[str]) -> str:
    return "\n".join(re.findall(r"```toml\n(.*?)```", "".join(sections), re.DOTALL))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the shell commands have run."""
    folder = tmp_path_factory.mktemp("cookbook")
    (folder / "notes.txt").write_text(PAGE, encoding="utf-8")
    for script in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL):
        run(["bash", "-euo", "pipefail", "-c", script], folder)
    return folder


@pytest.fixture(scope="module")
def kitchen(folder: Path) -> Iterator[RunningServer]:
    """A server with the configuration of all recipes but one."""
    shared = (body for title, body in SECTIONS.items() if title != WITH_KEYS)
    config = write_config(folder, configuration(shared))
    with RunningServer("--config", config) as server:
        yield server


def test_every_program_shows_its_output() -> None:
    assert len(RECIPES) == PAGE.count("```python") >= 6


@pytest.mark.parametrize("recipe", [name for name in RECIPES if WITH_KEYS not in name])
def test_a_recipe_prints_the_shown_output(
    folder: Path, kitchen: RunningServer, recipe: str
) -> None:
    check(recipe, folder, kitchen)


def test_the_recipe_with_keys_prints_the_shown_output(folder: Path) -> None:
    config = write_config(folder, configuration([SECTIONS[WITH_KEYS]]))
    with RunningServer("--config", config) as server:
        check(f"{WITH_KEYS}-0", folder, server)


def check(recipe: str, folder: Path, server: RunningServer) -> None:
    code, output = RECIPES[recipe]
    code = code.replace("localhost:50051", server.target)
    assert run([sys.executable, "-c", code], folder) == output
