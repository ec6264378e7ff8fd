"""Commands of other distributions are found by entry points, and imported when they are run."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from bytepair_client._cli import main
from bytepair_client._cli.main import GROUP, TOOLS

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = tomllib.loads((ROOT / "tools" / "pyproject.toml").read_text())["project"]["entry-points"]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A distribution with three commands: one works, one cannot be imported, and one has the
    name of a command of the client."""
    (tmp_path / "parrot.py").write_text(
        "import os\n"
        "SUMMARY = 'says 100% of it again'\n"
        "def run(arguments):\n"
        "    if arguments == ['fail']:\n"
        "        raise BrokenPipeError\n"
        "    os.write(1, ' '.join(arguments).encode())\n"
        "    return 7\n"
    )
    metadata = tmp_path / "parrot-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: parrot\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        f"[{GROUP}]\nsay = parrot\nbroken = no_such_module\ncount = parrot\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("parrot", None)


def test_a_command_gets_its_arguments_and_gives_the_status(
    installed: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["say", "--help", "a b", "--target"]) == 7
    assert capfd.readouterr().out == "--help a b --target"


def test_its_broken_pipe_is_handled_as_in_any_command(installed: Path) -> None:
    assert main(["say", "fail"]) == 141


def test_help_lists_it(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert " say says 100% of it again" in printed
    assert " broken the command 'broken' cannot be imported: No module named" in printed


def test_one_that_cannot_be_imported_is_named(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["broken"]) == 1
    assert "'broken' cannot be imported: No module named 'no_such_module'" in (
        capsys.readouterr().err
    )


def test_it_cannot_replace_a_command_of_the_client(
    installed: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BYTEPAIR_ENCODING", raising=False)
    assert main(["count"]) == 2
    assert "which encoding?" in capfd.readouterr().err


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["xyz"], ["cuont"], [], ["--encoding"]):
        with pytest.raises(SystemExit, match=r"^2$"):
            main(arguments)
    printed = capsys.readouterr().err
    assert "invalid choice: 'xyz' (choose from" in printed
    assert "unknown command 'cuont'; did you mean count?" in printed


def test_a_command_that_is_not_installed_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [])
    for command in TOOLS:
        assert main([command, "file"]) == 2
        assert "pip install ./tools ./engine" in capsys.readouterr().err


def test_the_known_commands_are_those_of_the_tools() -> None:
    assert ENTRIES[GROUP].keys() == TOOLS


@pytest.mark.slow
def test_no_command_of_the_client_imports_them_or_looks_for_them() -> None:
    """Nor do the tools import the engine before they run: `--help` must be fast."""
    code = (
        "import sys\nfrom bytepair_client._cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('bytepair_tools', 'bytepair_engine', 'importlib.metadata')\n"
        "    if name in sys.modules])"
    )
    for arguments, imported in (
        (["count"], "[]"),
        (["count", "--help"], "[]"),
        (["--help"], "['bytepair_tools', 'importlib.metadata']"),
    ):
        ran = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            check=True,
            env={key: os.environ[key] for key in os.environ if key != "BYTEPAIR_ENCODING"},
        )
        assert ran.stdout.splitlines()[-1] == imported
