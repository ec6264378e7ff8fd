"""The command `bytepair` as a process: outputs that fail or are closed, and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.scripted import HeldAnswer, ScriptedServer
from support.serving import RunningServer, clean_environment
from support.shell import Shell, command

pytestmark = pytest.mark.slow  # each test starts a process


@pytest.fixture
def shell(server: RunningServer, tmp_path: Path) -> Shell:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_bytes(b"one two three")
    return Shell(tmp_path, server.target)


def test_an_output_that_cannot_be_written(shell: Shell) -> None:
    said = b"bytepair: cannot write the output: No space left on device\n"
    with Path("/dev/full").open("wb") as full, shell.start("count", "a.txt", stdout=full) as run:
        assert run.communicate()[1] == said
    assert run.returncode == 1
    with (
        Path("/dev/full").open("wb") as full,
        shell.start("count", *["b.txt"] * 2, stdout=full) as run,
    ):
        said = said.rstrip() + b"; stopped at b.txt: 2 of 2 inputs not done\n"
        assert run.communicate()[1] == said


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("count", "--help")])
def test_help_that_cannot_be_written(shell: Shell, arguments: tuple[str, ...]) -> None:
    said = b"bytepair: cannot write the output: No space left on device\n"
    shell.variables["PYTHONUNBUFFERED"] = ""  # unbuffered, argparse ignores the error
    end, pipe = os.pipe()
    os.close(end)
    full = os.open("/dev/full", os.O_WRONLY)
    for output, status, error in ((full, 1, said), (pipe, 141, b"")):
        run = shell.start(*arguments, stdout=output)
        os.close(output)
        assert (run.communicate()[1], run.returncode) == (error, status)


def test_standard_error_may_be_closed(shell: Shell) -> None:
    for name, status, output in (("b.txt", 0, b"3 b.txt\n"), ("missing", 1, b"")):
        ran = subprocess.run(
            ["sh", "-c", 'exec "$@" 2>&-', "sh", *command("count", name)],
            stdout=subprocess.PIPE,
            cwd=shell.folder,
            env=clean_environment(**shell.variables),
            check=False,
        )
        assert (ran.returncode, ran.stdout) == (status, output)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_all_of_a_long_output_arrives(shell: Shell, unbuffered: str) -> None:
    shell.variables["PYTHONUNBUFFERED"] = unbuffered
    (shell.folder / "ids").write_text("64 " * 200_000)
    with shell.start("decode", "ids") as running:
        assert len(running.communicate()[0]) == 200_000


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_ends_the_command_silently(shell: Shell, unbuffered: str) -> None:
    shell.variables["PYTHONUNBUFFERED"] = unbuffered
    (shell.folder / "ids").write_text("64 " * 200_000)
    with shell.start("decode", "ids") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 141


def test_an_interrupt_prints_no_traceback(shell: Shell) -> None:
    held = HeldAnswer()
    with (
        ScriptedServer(held) as server,
        shell.start("count", "--target", server.target, "a.txt") as running,
    ):
        held.arrived.wait()
        running.send_signal(signal.SIGINT)
        assert running.communicate() == (b"", b"")
        assert running.returncode == 130


def test_an_interrupt_while_modules_are_imported_prints_no_traceback() -> None:
    program = """
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "grpc":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from bytepair_command import main
sys.exit(main())
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (130, b"")
