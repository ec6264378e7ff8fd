"""Tests that run parts of the server in this process leave its logging as it was."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """`logs.configure` replaces the handlers of the root logger, and its level."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = True
