"""The command `bytepair` streams large inputs, with the results of small ones."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from support.oracle import oracle
from support.serving import RunningServer, clean_environment
from support.shell import Shell, command

END = "<|endoftext|>"
TEXT = "naïve 日本語 🙂🙂 don't, 12345\r\n" * 40_000  # 1.6 MB


@pytest.fixture(scope="module")
def ids() -> list[int]:
    return oracle("o200k_base").encode(TEXT)


@pytest.fixture
def shell(server: RunningServer, tmp_path: Path) -> Shell:
    (tmp_path / "large.txt").write_bytes(TEXT.encode())
    (tmp_path / "small.txt").write_bytes(b"one two three")
    return Shell(tmp_path, server.target)


@pytest.mark.slow
def test_a_large_file_is_counted_as_a_small_one(shell: Shell, ids: list[int]) -> None:
    assert shell("count", "large.txt") == f"{len(ids)} large.txt\n"
    assert shell("count", stdin=TEXT.encode()) == f"{len(ids)}\n"
    counted = json.loads(shell("count", "--json", "small.txt", "large.txt"))
    assert counted["encoding"] == "o200k_base"
    assert [file["count"] for file in counted["files"]] == [3, len(ids)]


@pytest.mark.slow
def test_large_files_are_encoded_and_decoded(shell: Shell, ids: list[int]) -> None:
    written = shell("encode", "large.txt", "small.txt")
    assert written.splitlines()[0] == " ".join(map(str, ids))
    assert written.splitlines()[1] == shell("encode", "small.txt").strip()
    assert json.loads(shell("encode", "--json", "large.txt"))["files"][0]["ids"] == ids
    (shell.folder / "ids").write_text(" ".join(map(str, ids)) + "\n")
    (shell.folder / "json").write_text(json.dumps(ids, indent=1))
    for name in ("ids", "json"):
        assert (shell.folder / name).stat().st_size > 1 << 20
        assert shell("decode", name) == TEXT
    assert shell("decode", "--errors", "bytes", "ids") == TEXT
    decoded = json.loads(shell("decode", "--json", "ids"))
    assert (decoded["encoding"], decoded["files"][0]["text"]) == ("o200k_base", TEXT)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "before", "after", "said"),
    [
        ("words", "64 " * 500_000, "x 64", "index 500000 "),
        ("unknown", "64 " * 500_000, "4000000000 64", "at index 500000"),
        ("list", "[" + "64, " * 400_000, '"x", 64]', "index 400000 "),
        ("open", "[" + "64, " * 400_000, "64", "not a JSON list"),
        ("hole", "[" + "64, " * 400_000, ", 64]", "not a JSON list"),
        ("end", "[" + "64, " * 400_000, "]", "not a JSON list"),
        ("digits", "", "9" * 2_000_000, "index 0 "),
    ],
)
def test_an_error_names_the_position_of_an_invalid_id_in_a_large_file(
    shell: Shell, name: str, before: str, after: str, said: str
) -> None:
    (shell.folder / name).write_text(before + after)
    written = shell("decode", name, status=1, errors=said)
    assert set(written) <= {"a"}  # the ids before it


@pytest.mark.slow
def test_a_large_input_that_fails_in_the_middle(shell: Shell) -> None:
    (shell.folder / "end.txt").write_bytes(f"{TEXT}{END}{TEXT}".encode())
    size = len(TEXT.encode())
    written = shell("encode", "end.txt", "small.txt", status=1, errors=f"at byte {size}")
    first, second = written.splitlines()
    assert TEXT.startswith(oracle("o200k_base").decode(list(map(int, first.split()))))
    assert second == shell("encode", "small.txt").strip()
    assert shell("count", "--disallowed-special", "reject", "end.txt", status=1, errors=END) == ""
    (shell.folder / "latin.txt").write_bytes(TEXT.encode() + b"caf\xe9")
    output = shell("count", "latin.txt", "small.txt", status=1, errors=f"byte {size + 3} (0xe9)")
    assert output == f"{3:9} small.txt\n{3:9} total\n"


def feed(running: subprocess.Popen[bytes], text: bytes, end: threading.Event) -> None:
    """Write to its input from a thread, and close it once `end` is set."""

    def write() -> None:
        assert running.stdin is not None
        with suppress(BrokenPipeError), running.stdin as stdin:
            stdin.write(text)
            stdin.flush()
            end.wait()

    threading.Thread(target=write, daemon=True).start()


@pytest.mark.slow
def test_output_is_written_while_input_is_read(shell: Shell) -> None:
    text = "one two " * 300_000
    end = threading.Event()
    with shell.start("encode") as running:
        feed(running, text.encode(), end)
        assert running.stdout is not None
        first = running.stdout.read(10)  # before the input has ended
        end.set()
        rest = running.stdout.read()
        assert running.wait() == 0
    assert oracle("o200k_base").decode(list(map(int, (first + rest).split()))) == text


def test_an_interrupt_while_it_waits_for_input(shell: Shell) -> None:
    end = threading.Event()
    with shell.start("encode") as running:
        feed(running, b"one two " * 300_000, end)
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.send_signal(signal.SIGINT)
        running.stdout.read()
        output = running.stderr.read()
        assert (running.wait(), output) == (130, b"")
        end.set()


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_and_erased(shell: Shell) -> None:
    terminal, stderr = pty.openpty()
    os.set_blocking(terminal, False)
    shown = b""
    with shell.start("count", stderr=stderr) as running:
        os.close(stderr)
        assert running.stdin is not None
        assert running.stdout is not None
        pieces = 0
        while b" MB" not in shown:  # shown after PROGRESS_INTERVAL_S
            running.stdin.write(b"one two " * 20_000)
            pieces += 1
            time.sleep(0.02)
            shown += read_now(terminal)
        running.stdin.close()
        counted = running.stdout.read()
        assert running.wait() == 0
    while piece := read_now(terminal):
        shown += piece
    os.close(terminal)
    assert shown.startswith(b"\r\x1b[Kstandard input: ")
    assert shown.endswith(b"\r\x1b[K")
    assert int(counted) == len(oracle("o200k_base").encode("one two " * 20_000 * pieces))


def read_now(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # nothing yet, or the other end is closed
        return b""


PEAK = """
import sys
from bytepair_client._cli import main
status = main()
# Its own: `ru_maxrss` begins with that of the process that started it.
with open("/proc/self/status") as file:
    sys.stderr.write(next(line.split()[1] for line in file if line.startswith("VmHWM")))
sys.exit(status)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read in /proc")
def test_memory_does_not_grow_with_the_input(shell: Shell) -> None:
    def peak(megabytes: int) -> int:
        (shell.folder / "input").write_bytes(b"one two three four\n" * (megabytes * 50_000))
        ran = subprocess.run(
            [*command()[:2], PEAK, "count", "input"],
            capture_output=True,
            cwd=shell.folder,
            env=clean_environment(**shell.variables),
            check=True,
        )
        return int(ran.stderr) // 1024

    assert peak(150) - peak(3) < 50
