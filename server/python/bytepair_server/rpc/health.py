"""The health service, `grpc.health.v1.Health`. It needs no credentials unless `health_needs_caller`
is set."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Coroutine
from typing import Any, Final

from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2

from bytepair_server.auth.callers import Callers
from bytepair_server.call import AUTHORIZATION
from bytepair_server.errors import Draining, Overloaded, RequestRejected
from bytepair_server.failure import Failure
from bytepair_server.observability import logs
from bytepair_server.rpc import json
from bytepair_server.rpc.status import failure_of
from bytepair_server.transport.interface import Code, Kind, Method, Status, StreamCall, UnaryCall

#: Maximum open watches of each worker: many times those of probes and proxies.
MAX_WATCHES: Final = 1024
#: Suggested wait if there are as many.
WATCH_RETRY_SECONDS: Final = 10.0
#: Maximum length of a service's name, which a watch holds.
MAX_NAME_BYTES: Final = 256


class Health:
    """The health service for all or for known callers. The number of watches is bounded, and a
    watcher that does not read does not delay others."""

    def __init__(
        self, services: Collection[str], callers: Callers | None, denials: logs.Denials | None
    ) -> None:
        """Report NOT_SERVING for all of `services` until `set`. Answer the callers that `callers`
        identifies, and log others to `denials`; answer everyone if it is None."""
        self._services: Final = services
        self._callers: Final = callers
        self._denials: Final = denials
        self._status: int = health_pb2.HealthCheckResponse.NOT_SERVING
        #: Set once, at the next change.
        self._changed = asyncio.Event()
        self._has_ended = False
        #: The open watches with their addresses, oldest first.
        self._watches: Final[dict[asyncio.Timeout, str]] = {}

    def set(self, *, is_serving: bool) -> None:
        """Change the status of all services."""
        statuses = health_pb2.HealthCheckResponse
        self._status = statuses.SERVING if is_serving else statuses.NOT_SERVING
        self._changed.set()
        self._changed = asyncio.Event()

    def end(self) -> None:
        """End the watches with DRAINING, once they have the last status. Call it after a drain:
        clients whose watches end open them again at once."""
        self._has_ended = True
        self._changed.set()

    def methods(self) -> list[Method]:
        """The RPCs of the service."""
        name = health.SERVICE_NAME
        return [
            Method(f"{name}/Check", Kind.UNARY, self._check, is_small=True),
            Method(f"{name}/Watch", Kind.SERVER_STREAM, self._watch, is_small=True),
        ]

    def _check(self, incoming: UnaryCall) -> Coroutine[Any, Any, None] | None:
        # A message that is not yet read is larger than any request of health.
        service = self._admit(incoming, incoming.message)
        if service in self._services:
            incoming.answer(_written(self._status, incoming))
        elif service is not None:
            incoming.fail(Status(Code.NOT_FOUND, "unknown service"))
        return None

    async def _watch(self, incoming: StreamCall) -> None:
        service = self._admit(incoming, await incoming.read())
        if service is None:
            return
        address = incoming.peer.rpartition(":")[0]
        if not self._make_room(address):
            _reject(incoming, Overloaded(WATCH_RETRY_SECONDS, "health watches"))
            return
        try:
            async with asyncio.timeout(None) as watch:
                self._watches[watch] = address
                await self._tell(incoming, service)
            _reject(incoming, Draining())
        except TimeoutError:  # by `_make_room`
            _reject(incoming, Overloaded(WATCH_RETRY_SECONDS, "health watches"))
        finally:
            self._watches.pop(watch, None)
            del watch  # refers to the task

    def _make_room(self, address: str) -> bool:
        """Return whether an address may have another watch. If there are too many, the oldest of
        the address with the most ends, unless this one would then have as many: clients whose
        watches end open them again at once, and would end each other's without end."""
        if len(self._watches) < MAX_WATCHES:
            return True
        counts = Counter(self._watches.values())
        busiest, most = counts.most_common(1)[0]
        if counts[address] + 1 >= most:
            return False
        oldest = next(watch for watch, owner in self._watches.items() if owner == busiest)
        del self._watches[oldest]
        oldest.reschedule(0)
        return True

    async def _tell(self, incoming: StreamCall, service: str) -> None:
        """Write each status until `end`."""
        last = None
        while True:
            changed = self._changed
            status = self._status
            if service not in self._services:
                status = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
            if status != last:
                await incoming.write(_written(status, incoming))
                last = status
            if self._has_ended:
                return
            await changed.wait()

    def _admit(self, incoming: UnaryCall | StreamCall, raw: bytes | None) -> str | None:
        """The requested service; None if the call has failed."""
        problem = "the message is not a HealthCheckRequest"
        try:
            if self._callers is not None:
                self._callers.identify(incoming.header(AUTHORIZATION), incoming)
            if raw is not None:
                if incoming.is_json:
                    raw = json.read(raw, health_pb2.HealthCheckRequest)
                service: str = health_pb2.HealthCheckRequest.FromString(raw).service
                if len(service.encode()) <= MAX_NAME_BYTES:
                    return service
                problem = "the service name is too long"
        except RequestRejected as error:
            failure = _reject(incoming, error)
            if self._denials is not None:
                self._denials.write(
                    reason=failure.reason,
                    rpc="health",
                    peer=incoming.peer,
                    why=failure.message,
                )
            return None
        except DecodeError:
            pass
        incoming.fail(Status(Code.INVALID_ARGUMENT, problem))
        return None


def _written(status: int, incoming: UnaryCall | StreamCall) -> bytes:
    raw = health_pb2.HealthCheckResponse(status=status).SerializeToString()
    return json.write(raw, health_pb2.HealthCheckResponse) if incoming.is_json else raw


def _reject(incoming: UnaryCall | StreamCall, error: RequestRejected) -> Failure:
    failure = failure_of(error)
    assert failure is not None  # it has a row
    incoming.fail(failure.for_transport(is_json=incoming.is_json))
    return failure
