"""The native transport: HTTP in Rust, calls in batches on the event loop.

Rust writes to a descriptor when there is something new; the event loop then takes everything at
once. A call that can be answered at once is answered within that callback, without a task.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from dataclasses import asdict, astuple
from functools import partial
from time import perf_counter
from typing import Any, Final

from bytepair_server import _transport
from bytepair_server.transport import ports
from bytepair_server.transport.interface import (
    AtOnce,
    Kind,
    Setup,
    TlsFiles,
    Trailers,
    UnreadableMessage,
)

#: Maximum events that one round of the event loop processes.
BATCH: Final = 256

#: Answers of large calls are sent together, at the latest after this time. Sending one alone costs
#: a third of counting 64 KB (`make bench-service PARTS=BatchCount`). A full batch of small answers
#: takes about as long.
TOGETHER_SECONDS: Final = 0.0005

#: Messages that a stream processes before Rust reads as many more: half of its read-ahead.
CREDITS: Final = 8
#: A larger message is acknowledged at once, so that Rust reads ahead again.
ACKNOWLEDGED_AT_ONCE_BYTES: Final = 1024

#: A drain keeps connections open at least this long: a request that reaches an idle HTTP/1.1
#: connection while it closes is lost. Each connection ends with its next answer.
LAST_CALLS_SECONDS: Final = 0.5

#: Time for connections to close once all answers are sent.
STOP_SECONDS: Final = 1.0
#: The same, from the start of the stop, even with unsent answers. A second later the supervisor
#: kills the worker.
MAX_STOP_SECONDS: Final = 4.0

_OPENED, _MESSAGE, _END = _transport.OPENED, _transport.MESSAGE, _transport.END
_CANCELLED, _WRITABLE = _transport.CANCELLED, _transport.WRITABLE
_BROKEN, _ENDED, _CLOSED = _transport.BROKEN, _transport.ENDED, _transport.CLOSED


class NativeTransport:
    """A transport for the current event loop. Make it after forking."""

    def __init__(self, setup: Setup) -> None:
        """See `Transport`."""
        self._methods: Final = tuple(setup.methods)
        self._on_fault: Final = setup.on_fault
        self._on_closed: Final = setup.on_closed
        self._calls: Final[dict[int, NativeUnaryCall | NativeStreamCall]] = {}
        self._wake: Final = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._loop: Final = asyncio.get_running_loop()
        self._open_until = 0.0  # the event loop's time
        self._native: Final = _transport.Transport(
            [
                (each.path, str(each.kind), each.has_no_side_effects, each.is_small)
                for each in setup.methods
            ],
            [(file.path, list(file.headers), file.content) for file in setup.files],
            self._wake,
            None if setup.tls is None else astuple(setup.tls),
            **asdict(setup.limits),
        )

    async def start(self, address: str, *, shares_port: bool, unix_socket_mode: str) -> str:
        """See `Transport`."""
        listener = ports.listen(address, share=shares_port, unix_socket_mode=unix_socket_mode)
        is_unix = listener.family == socket.AF_UNIX
        if not is_unix:
            address = ports.with_port(address, listener)
        self._loop.add_reader(self._wake, self._ready)
        self._native.start(listener.detach(), is_unix)
        return address

    def replace_tls(self, tls: TlsFiles) -> None:
        """See `Transport`.

        Raises:
            ConfigurationError: As the constructor; the previous files stay in use.
        """
        self._native.replace_tls(astuple(tls))

    def drain(self) -> None:
        """Accept no more connections, and send GOAWAY on every open one."""
        self._open_until = self._loop.time() + LAST_CALLS_SECONDS
        self._native.drain()

    async def stop(self) -> None:
        """Close all connections, once their peers have read all answers."""
        now = self._loop.time()
        last = now + MAX_STOP_SECONDS
        while self._native.connections and now < self._open_until:
            await asyncio.sleep(0.01)
            now = self._loop.time()
        self._native.close_connections()
        until = now + STOP_SECONDS
        while self._native.connections and now < min(until, last):
            await asyncio.sleep(0.01)
            now = self._loop.time()
            if self._native.held_bytes:
                until = now + STOP_SECONDS
        self._loop.remove_reader(self._wake)
        await asyncio.to_thread(self._native.stop)
        os.close(self._wake)

    def _ready(self) -> None:
        os.eventfd_read(self._wake)
        self._take()

    def _take(self) -> None:
        until = perf_counter() + TOGETHER_SECONDS
        events, has_more = self._native.take(BATCH)
        self._process(events)
        # One event, and there are more: it is a large call, or a large message.
        while has_more and len(events) == 1 and perf_counter() < until:
            events, has_more = self._native.take(BATCH)
            self._process(events)
        self._native.flush()
        if has_more:
            self._loop.call_soon(self._take)

    def _process(self, events: Sequence[tuple[int, int, Any]]) -> None:
        for number, kind, payload in events:
            try:
                if kind == _OPENED:
                    self._open(number, payload)
                elif kind == _CLOSED:
                    self._on_closed(*payload)
                elif (call := self._calls.get(number)) is not None:
                    if kind == _CANCELLED:
                        # After its first step: a task that never began would clean nothing up.
                        self._loop.call_soon(call.task.cancel)
                    else:
                        call.happened(kind, payload)
            except Exception as error:  # one call's fault is no other's
                self._native.fail(number)
                self._on_fault(error)

    def _open(self, number: int, incoming: _transport.Call) -> None:
        method = self._methods[incoming.method]
        call = _CLASSES.get(method.kind, NativeStreamCall)(incoming)
        handling = method.handler(call)
        if handling is not None:
            self._calls[number] = call
            call.task = self._loop.create_task(handling)
            call.task.add_done_callback(partial(self._ended, number))

    def _ended(self, number: int, task: asyncio.Task[None]) -> None:
        call = self._calls.pop(number)
        del call.task  # refers to the call
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            self._on_fault(fault)
        if not call.is_over:
            self._native.fail(number)


class NativeUnaryCall(_transport.Call):
    """A `UnaryCall`."""

    __slots__ = ("_reading", "task")

    #: Set by `read`, before which no message comes.
    _reading: asyncio.Future[bytes]
    task: asyncio.Task[None]

    async def read(self) -> bytes | None:
        if self.message is not None:
            return self.message
        self._reading = asyncio.get_running_loop().create_future()
        self.request()
        return await self._reading

    def happened(self, kind: int, payload: Any) -> None:
        """Handle an event of this call."""
        if self._reading.done():
            return
        if kind == _MESSAGE:
            self._reading.set_result(payload)
        elif kind == _BROKEN:
            self._reading.set_exception(UnreadableMessage(*payload))


class NativeStreamCall(_transport.Call):
    """A `StreamCall`."""

    __slots__ = (
        "_arrived",
        "_at_once",
        "_has_begun",
        "_has_ended",
        "_owed",
        "_trailers",
        "_waiter",
        "_writable",
        "task",
    )

    task: asyncio.Task[None]

    def __init__(self, _: _transport.Call) -> None:
        #: Messages that have arrived and are unread: few, because Rust bounds its read-ahead. A
        #: deque would take more memory than the rest of an idle call.
        self._arrived: Final[list[tuple[int, Any]]] = []
        self._owed = 0
        self._at_once: AtOnce | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._writable = True
        self._has_begun = self._has_ended = False
        self._trailers: Trailers = ()

    async def read(self, at_once: AtOnce | None = None) -> bytes | None:
        arrived = self._arrived
        self._at_once = at_once
        try:
            while not arrived:
                await self._wait()
        finally:
            self._at_once = None
        kind, payload = arrived[0]
        if kind == _MESSAGE:
            arrived.pop(0)
            message: bytes = payload
            self._has_read(message)
            return message
        if kind == _END:
            return None
        raise UnreadableMessage(*payload)

    def begin(self, headers: Trailers = ()) -> None:
        """Send headers before the first answer. Otherwise `write` sends them."""
        self._has_begun = True
        self.start(self._trailers, headers)

    async def write(self, message: bytes) -> None:
        self._send(message)
        while not self._writable:
            await self._wait()

    def promise(self, trailers: Trailers) -> None:
        """Set the trailers after the last answer, before the first answer is written."""
        self._trailers = trailers

    async def close(self) -> None:
        if not self.is_over:
            if not self._has_begun:
                self.begin()
            self.finish()
        while self._has_begun and not self._has_ended:
            await self._wait()

    def happened(self, kind: int, payload: Any) -> None:
        """Handle an event of this stream."""
        is_awaited = self._waiter is not None and not self._waiter.done()
        if kind == _WRITABLE:
            self._writable = True
        elif kind == _ENDED:
            self._has_ended = True
        elif kind == _MESSAGE and is_awaited and self._answers_at_once(payload):
            return
        else:
            self._arrived.append((kind, payload))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _answers_at_once(self, message: bytes) -> bool:
        if self._at_once is None or self._arrived or not self._writable:
            return False
        answer = self._at_once(message)
        if answer is None:
            return False
        self._has_read(message)
        self._send(answer)
        return True

    def _has_read(self, message: bytes) -> None:
        self._owed += 1
        if self._owed == CREDITS or len(message) > ACKNOWLEDGED_AT_ONCE_BYTES:
            self.request(self._owed)
            self._owed = 0

    def _send(self, message: bytes) -> None:
        if not self._has_begun:
            self.begin()
        self._writable = self.send(message)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter


class NativeClientStreamCall(NativeStreamCall):
    """A `StreamCall` with one answer, which is sent at the end."""

    __slots__ = ("_answer",)

    def __init__(self, incoming: _transport.Call) -> None:
        super().__init__(incoming)
        self._answer = b""

    async def close(self) -> None:
        if not self.is_over:
            self.answer(self._answer, self._trailers)

    def _send(self, message: bytes) -> None:
        self._answer = message


_CLASSES: Final[dict[Kind, type[NativeUnaryCall | NativeStreamCall]]] = {
    Kind.UNARY: NativeUnaryCall,
    Kind.CLIENT_STREAM: NativeClientStreamCall,
}
