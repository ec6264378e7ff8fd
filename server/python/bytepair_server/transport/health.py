"""The health service, `grpc.health.v1.Health`. It needs no credentials unless `health_needs_caller`
is set."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic
from typing import Final

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2

from bytepair_server.admission.abuse import Floods
from bytepair_server.admission.queue import RETRY_SECONDS
from bytepair_server.auth.callers import Callers
from bytepair_server.errors import Overloaded, Refusal, Unauthenticated
from bytepair_server.rpc.call import AUTHORIZATION
from bytepair_server.rpc.status import failure_of
from bytepair_server.transport.interface import (
    BrokenStream,
    Kind,
    Method,
    Status,
    StreamCall,
    UnaryCall,
)

#: Watches of health that each worker keeps open: many times those of probes and proxies.
MAX_WATCHES: Final = 1024
#: When to ask again where there are as many.
WATCH_RETRY_SECONDS: Final = 10.0

#: Longer names of services there are not; a watch keeps its name.
MAX_NAME_BYTES: Final = 256
#: So many requests may be on their way in: of more, the first is ended. What has come of each is
#: held, up to the most that any message may have.
MAX_AT_ONCE: Final = 256
#: And so many where the first has been for longer than READ_SECONDS.
MAX_READING: Final = 64
READ_SECONDS: Final = 1.0

#: gRPC's numbers.
_INVALID_ARGUMENT, _NOT_FOUND = 3, 5


class Health:
    """Health for everybody or for known callers, as grpc.health.v1 has it. What strangers may ask
    for is bounded, and nobody waits for them: grpcio-health-checking writes to a watcher with a
    lock that all others and every change wait for."""

    def __init__(self, callers: Callers | None, floods: Floods) -> None:
        """Answer whom `callers` know; anybody if that is None."""
        self._callers: Final = callers
        self._floods: Final = floods
        self._statuses: Final[dict[str, int]] = {}
        self._is_shut_down = False
        #: Set once, at the next change.
        self._changed = asyncio.Event()
        #: Since when.
        self._reading: Final[dict[UnaryCall | StreamCall, float]] = {}
        self._ending: Final[set[asyncio.Future[None]]] = set()
        self._watches = 0

    def set(self, service: str, status: int) -> None:
        """Say from now on how a service is; after `shut_down` nothing changes."""
        if not self._is_shut_down:
            self._statuses[service] = status
            self._changed.set()
            self._changed = asyncio.Event()

    def shut_down(self) -> None:
        """Say of every service that it serves no more."""
        for service in self._statuses:
            self.set(service, health_pb2.HealthCheckResponse.NOT_SERVING)
        self._is_shut_down = True

    def methods(self) -> list[Method]:
        """The RPCs, for a transport."""
        name = health.SERVICE_NAME
        return [
            Method(f"{name}/Check", Kind.UNARY, self._check),
            Method(f"{name}/Watch", Kind.SERVER_STREAM, self._watch),
        ]

    async def _check(self, incoming: UnaryCall) -> None:
        service = await self._admit(incoming)
        if service is None:
            return
        status = self._statuses.get(service)
        if status is None:
            await incoming.fail(Status(_NOT_FOUND, ""))
            return
        incoming.answer(_written(status, incoming))

    async def _watch(self, incoming: StreamCall) -> None:
        service = await self._admit(incoming)
        if service is None:
            return
        if self._watches >= MAX_WATCHES:
            await _refuse(incoming, Overloaded(WATCH_RETRY_SECONDS, "watches of health"))
            return
        self._watches += 1
        try:
            last = None
            while True:
                changed = self._changed
                unknown = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
                status = self._statuses.get(service, unknown)
                if status != last:
                    await incoming.write(_written(status, incoming))
                    last = status
                await changed.wait()
        finally:
            self._watches -= 1

    async def _admit(self, incoming: UnaryCall | StreamCall) -> str | None:
        """Which service is asked for; None where the call has failed."""
        peer = incoming.peer
        if self._floods.active:
            self._floods.hear_of(peer)
        if self._callers is not None:
            try:
                self._callers.identify(incoming.header(AUTHORIZATION), incoming)
            except Unauthenticated as error:
                self._floods.came_to_nothing(peer)
                await _refuse(incoming, error)
                return None
        try:
            raw = await self._read(incoming, peer)
        except BrokenStream:
            return None  # it was ended, for others
        problem = None
        if raw is None:
            problem = "there is no request"
        else:
            service = _service(raw, incoming)
            if service is None:
                problem = "this is no HealthCheckRequest"
            elif len(service) > MAX_NAME_BYTES:
                problem = "no service has such a long name"
            else:
                return service
        await incoming.fail(Status(_INVALID_ARGUMENT, problem))
        return None

    async def _read(self, incoming: UnaryCall | StreamCall, peer: str) -> bytes | None:
        """Read a message, for which the first of too many others that are not whole are ended."""
        now = self._reading[incoming] = monotonic()
        while len(self._reading) > MAX_READING:
            first, began = next(iter(self._reading.items()))
            if len(self._reading) <= MAX_AT_ONCE and now - began < READ_SECONDS:
                break
            del self._reading[first]
            self._ending.add(ending := asyncio.ensure_future(_end(first)))
            ending.add_done_callback(self._ending.discard)
        try:
            return await incoming.read()
        except asyncio.CancelledError:
            self._floods.came_to_nothing(peer)
            raise
        finally:
            self._reading.pop(incoming, None)


def _service(raw: bytes, incoming: UnaryCall | StreamCall) -> str | None:
    try:
        if incoming.is_json:
            return json_format.Parse(raw or b"{}", health_pb2.HealthCheckRequest()).service
        return health_pb2.HealthCheckRequest.FromString(raw).service
    except (DecodeError, json_format.ParseError, UnicodeDecodeError):
        return None


def _written(status: int, incoming: UnaryCall | StreamCall) -> bytes:
    response = health_pb2.HealthCheckResponse(status=status)
    if incoming.is_json:
        return json_format.MessageToJson(response, indent=None).encode()
    return response.SerializeToString()


async def _end(incoming: UnaryCall | StreamCall) -> None:
    """End a call that is being read, whose handler then ends by itself: were its reading
    cancelled, grpcio would never free what came of the message."""
    with suppress(Exception):
        await _refuse(incoming, Overloaded(RETRY_SECONDS, "requests of health that are not whole"))


async def _refuse(incoming: UnaryCall | StreamCall, error: Refusal) -> None:
    failure = failure_of(error)
    assert failure is not None  # it has a row
    await incoming.fail(failure.told())
