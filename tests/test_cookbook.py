"""Every recipe of docs/cookbook.md prints what it shows, on a server with its configuration."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.serving import RunningServer, write_config

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/cookbook.md").read_text(encoding="utf-8")
RECIPES = {
    f"{title}-{number}": (code, output)
    for title, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    for number, (code, output) in enumerate(
        re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", body, re.DOTALL)
    )
}
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def run(arguments: list[str], folder: Path) -> str:
    environment = os.environ | {"PATH": PATH, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, RunningServer]]:
    """A folder where the shell commands have run, and a server with the configuration."""
    folder = tmp_path_factory.mktemp("cookbook")
    (folder / "notes.txt").write_text(PAGE, encoding="utf-8")
    for script in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL):
        run(["bash", "-euo", "pipefail", "-c", script], folder)
    config = write_config(folder, "\n".join(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)))
    with RunningServer("--config", config) as server:
        yield folder, server


def test_every_program_shows_its_output() -> None:
    assert len(RECIPES) == PAGE.count("```python") >= 6


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_prints_the_shown_output(kitchen: tuple[Path, RunningServer], recipe: str) -> None:
    folder, server = kitchen
    code, output = RECIPES[recipe]
    code = code.replace("localhost:50051", server.target)
    assert run([sys.executable, "-c", code], folder) == output
