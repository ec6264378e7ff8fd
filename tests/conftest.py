"""Fixtures of several parts: the command `bytepair`, and real servers in separate processes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from support import serving
from support.in_process import Command
from support.serving import RunningServer

# The duration of an example depends more on the load of the machine than on the code.
settings.register_profile("untimed", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=20)  # of `make check`
settings.load_profile("untimed")

# A shell that starts the tests in the background makes them ignore Ctrl-C. Their programs would
# inherit that, and could not be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

Serve = Callable[..., RunningServer]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--transport",
        choices=("auto", "grpcio", "native"),
        default=serving.transport,
        help="what carries calls in the servers that tests start",
    )


def pytest_configure(config: pytest.Config) -> None:
    serving.transport = config.getoption("--transport")
    serving.starters = {}


def pytest_unconfigure() -> None:
    for starter in (serving.starters or {}).values():
        starter.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"serve", "replicas"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)  # it starts its own servers


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Run `bytepair` in a temporary folder."""
    monkeypatch.chdir(tmp_path)
    return Command(capsys)


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """A folder with a short path: the address of a Unix socket may have 107 bytes."""
    with TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def server() -> Iterator[RunningServer]:
    """A server with the default settings and all built-in encodings. Tests only call it."""
    with RunningServer() as running:
        yield running


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers with a test's own settings, and stop them afterwards.

    By default they serve cl100k_base only.
    """
    with ExitStack() as stack:

        def start(*arguments: str, environment: dict[str, str] | None = None) -> RunningServer:
            chosen = "--builtin-encodings" in arguments or environment is not None
            usual = () if chosen else ("--builtin-encodings", "cl100k_base")
            return stack.enter_context(RunningServer(*usual, *arguments, environment=environment))

        yield start
