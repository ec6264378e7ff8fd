"""The signals that stop a server."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bytepair_server.observability import logs


def stopping_signals() -> list[signal.Signals]:
    """The signals that stop a server."""
    found = [signal.SIGTERM, signal.SIGINT]
    # A server that nohup started outlives its terminal.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        found.append(signal.SIGHUP)
    return found


@contextmanager
def stop_signals(
    stopping: asyncio.Event, log: logs.Log, again: Callable[[], None]
) -> Iterator[None]:
    """Let SIGTERM, SIGINT and SIGHUP set `stopping` while the block runs. Every further SIGTERM or
    SIGINT calls `again`, to end the grace time. A terminal that closes may send several SIGHUP."""
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        if not stopping.is_set():
            then = "a second SIGINT or SIGTERM ends running calls and streams at once"
            if number == signal.SIGHUP:
                then += "; changed key and TLS files are reloaded without a signal"
            log.info("caught a signal", signal=number.name, hint=then)
        else:
            log.info("caught a signal", signal=number.name)
            if number != signal.SIGHUP:
                again()
        stopping.set()

    before = {number: signal.getsignal(number) for number in stopping_signals()}
    for number in before:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number in before:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])
