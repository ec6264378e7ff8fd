"""The two clients; the servers are in the conftest above."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from bytepair_client import lanes
from support.clients import Clients


@pytest.fixture(params=["threads", "asyncio"])
def clients(request: pytest.FixtureRequest) -> Iterator[Clients]:
    """Makes clients, of either kind in turn."""
    with ExitStack() as stack:
        yield Clients(request.param, stack)


@pytest.fixture
def gather(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let clients that are made from then on send nothing until so many calls have come."""

    def choose(number: int) -> None:
        monkeypatch.setattr(lanes, "MAX_AT_ONCE", 0)
        monkeypatch.setattr(lanes, "MAX_WAIT_S", 60.0)
        monkeypatch.setattr(lanes, "MAX_ITEMS", number)

    return choose
