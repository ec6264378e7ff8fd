"""Fixtures of the tests of the server; those of several parts are in `tests/conftest.py`."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from support.serving import RunningServer, write_config


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """Restore what `logs.configure` replaces: the root logger's handlers and level."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = True


@pytest.fixture(scope="session")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose callers may encode harmony."""
    config = write_config(
        tmp_path_factory.mktemp("chat"),
        """
        builtin_encodings = ["o200k_harmony", "o200k_base"]
        [ceiling.default]
        formats = ["harmony", "openai-chat"]
        """,
    )
    with RunningServer("--config", config) as running:
        yield running
