"""gRPC's health service, and calls of what there is not: all that is answered to whoever asks."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic
from typing import Any, Final, NoReturn

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2

from bytepair_server.admission.abuse import Floods
from bytepair_server.admission.queue import RETRY_SECONDS
from bytepair_server.auth.callers import Callers
from bytepair_server.errors import Overloaded, Refusal, Unauthenticated
from bytepair_server.rpc.call import Call
from bytepair_server.rpc.outcome import END, NO_MESSAGE_SECONDS
from bytepair_server.rpc.status import failure_of

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

Context = grpc.aio.ServicerContext[Any, Any]
Status = int


class Health:
    """Health for everybody or for known callers, as grpc.health.v1 has it. What strangers may ask
    for is bounded, and nobody waits for them: grpcio-health-checking writes to a watcher with a
    lock that all others and every change wait for."""

    def __init__(self, callers: Callers | None, floods: Floods) -> None:
        """Answer whom `callers` know; anybody if that is None."""
        self._callers: Final = callers
        self._floods: Final = floods
        self._statuses: Final[dict[str, Status]] = {}
        self._is_shut_down = False
        #: Set once, at the next change.
        self._changed = asyncio.Event()
        #: Since when.
        self._reading: Final[dict[Context, float]] = {}
        self._ending: Final[set[asyncio.Future[None]]] = set()
        self._watches = 0

    def set(self, service: str, status: Status) -> None:
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

    def register(self, server: grpc.aio.Server) -> None:
        """Register with a gRPC server, as generated code would, but that a call is heard of whose
        message never comes. By name, for such RPCs have queues of their own: health is answered
        however many calls of the service nobody has heard of yet."""
        write = health_pb2.HealthCheckResponse.SerializeToString
        handlers: dict[str, Any] = {
            "Check": grpc.stream_unary_rpc_method_handler(self._check, None, write),
            "Watch": grpc.stream_stream_rpc_method_handler(self._watch, None, write),
        }
        server.add_registered_method_handlers(health.SERVICE_NAME, handlers)

    async def _check(self, _: object, context: Context) -> health_pb2.HealthCheckResponse:
        status = self._statuses.get(await self._admit(context))
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND)
        return health_pb2.HealthCheckResponse(status=status)

    async def _watch(self, _: object, context: Context) -> None:
        service = await self._admit(context)
        if self._watches >= MAX_WATCHES:
            await _refuse(context, Overloaded(WATCH_RETRY_SECONDS, "watches of health"))
        self._watches += 1
        try:
            last = None
            while True:
                changed = self._changed
                unknown = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
                status = self._statuses.get(service, unknown)
                if status != last:
                    await context.write(health_pb2.HealthCheckResponse(status=status))
                    last = status
                await changed.wait()
        finally:
            self._watches -= 1

    async def _admit(self, context: Context) -> str:
        """Which service is asked for, by somebody who may ask."""
        call = Call(context.invocation_metadata() or (), context.peer())
        if self._floods.active:
            self._floods.hear_of(call.peer)
        if self._callers is not None:
            try:
                self._callers.identify(call.authorization, context.auth_context)
            except Unauthenticated as error:
                self._floods.came_to_nothing(call.peer)
                await _refuse(context, error)
        raw = await self._read(context, call.peer)
        if raw is END:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "there is no request")
        try:
            service = health_pb2.HealthCheckRequest.FromString(raw).service
        except DecodeError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "this is no HealthCheckRequest")
        if len(service) > MAX_NAME_BYTES:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no service has such a long name")
        return service

    async def _read(self, context: Context, peer: str) -> bytes:
        """Read a message, for which the first of too many others that are not whole are ended."""
        now = self._reading[context] = monotonic()
        while len(self._reading) > MAX_READING:
            first, began = next(iter(self._reading.items()))
            if len(self._reading) <= MAX_AT_ONCE and now - began < READ_SECONDS:
                break
            del self._reading[first]
            self._ending.add(ending := asyncio.ensure_future(_end(first)))
            ending.add_done_callback(self._ending.discard)
        try:
            try:
                raw: bytes = await context.read()
            finally:
                self._reading.pop(context, None)
            if raw is END:
                # Also where the caller is gone, of which gRPC tells a moment later.
                await asyncio.sleep(NO_MESSAGE_SECONDS)
        except asyncio.CancelledError:
            self._floods.came_to_nothing(peer)
            raise
        return raw


async def _end(context: Context) -> None:
    """Abort a call that is being read, whose handler then ends by itself: were its reading
    cancelled, gRPC would never free what came of the message."""
    with suppress(Exception):
        await _refuse(context, Overloaded(RETRY_SECONDS, "requests of health that are not whole"))


class Elsewhere(grpc.GenericRpcHandler):
    """Calls of RPCs that there are not, of which gRPC would tell nobody. To be registered last."""

    def __init__(self, floods: Floods) -> None:
        self._handler: Final[Any] = grpc.stream_stream_rpc_method_handler(self._unimplemented)
        self._floods: Final = floods

    def service(self, _: grpc.HandlerCallDetails) -> Any:
        """The same for any."""
        return self._handler

    async def _unimplemented(self, _: object, context: Context) -> None:
        if self._floods.active:
            self._floods.hear_of(context.peer())
        self._floods.came_to_nothing(context.peer())
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")


async def _refuse(context: Context, error: Refusal) -> NoReturn:
    failure = failure_of(error)
    assert failure is not None  # it has a row
    details = ("grpc-status-details-bin", failure.status().SerializeToString())
    await context.abort(failure.code, failure.message, (details,))
