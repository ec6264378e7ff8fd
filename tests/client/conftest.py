"""A fixture of both clients; those of servers are in `tests/conftest.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.clients import Clients


@pytest.fixture(params=["threads", "asyncio"])
def clients(request: pytest.FixtureRequest) -> Iterator[Clients]:
    """A factory of clients. Each test runs once with synchronous clients and once with asyncio."""
    with ExitStack() as stack:
        yield Clients(request.param, stack)
