"""The two clients; the servers are in the conftest above."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.clients import Clients


@pytest.fixture(params=["threads", "asyncio"])
def clients(request: pytest.FixtureRequest) -> Iterator[Clients]:
    """Makes clients, of either kind in turn."""
    with ExitStack() as stack:
        yield Clients(request.param, stack)
