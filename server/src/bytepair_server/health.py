"""gRPC's health service, and calls of what there is not: all that is answered to whoever asks."""

from __future__ import annotations

import asyncio
from typing import Any, Final, NoReturn

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2

from bytepair_server.call import Call
from bytepair_server.callers import Callers
from bytepair_server.errors import Overloaded, Refusal, Unauthenticated
from bytepair_server.failures import failure_of
from bytepair_server.floods import Floods
from bytepair_server.outcome import END, GONE_SECONDS

#: Watches of health that each worker keeps open: many times those of probes and proxies.
MAX_WATCHES: Final = 1024
#: When to ask again where there are as many.
WATCH_RETRY_SECONDS: Final = 10.0

Context = grpc.aio.ServicerContext[Any, Any]


class Health(health.aio.HealthServicer):
    """Health for everybody or for known callers. What strangers may ask for is bounded: a watch
    stays for as long as its connection."""

    def __init__(self, callers: Callers | None, floods: Floods) -> None:
        """Answer whom `callers` know; anybody if that is None."""
        super().__init__()
        self._callers: Final = callers
        self._floods: Final = floods
        self._watches = 0

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
        return await self.Check(await self._request(context), context)

    async def _watch(self, _: object, context: Context) -> None:
        await self.Watch(await self._request(context), context)

    async def _request(self, context: Context) -> health_pb2.HealthCheckRequest:
        if self._floods.active:
            self._floods.hear_of(context.peer())
        try:
            raw: bytes = await context.read()
            if raw is END:
                # Also where the caller is gone, of which gRPC tells a moment later.
                await asyncio.sleep(GONE_SECONDS)
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "there is no request")
        except asyncio.CancelledError:
            self._floods.came_to_nothing(context.peer())
            raise
        try:
            return health_pb2.HealthCheckRequest.FromString(raw)
        except DecodeError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "this is no HealthCheckRequest")

    async def Check(  # noqa: N802  # gRPC's name
        self, request: health_pb2.HealthCheckRequest, context: Any
    ) -> health_pb2.HealthCheckResponse:
        await self._admit(context)
        return await super().Check(request, context)

    async def Watch(  # noqa: N802  # gRPC's name
        self, request: health_pb2.HealthCheckRequest, context: Any
    ) -> None:
        await self._admit(context)
        if self._watches >= MAX_WATCHES:
            await _refuse(context, Overloaded(WATCH_RETRY_SECONDS, "watches of health"))
        self._watches += 1
        try:
            await super().Watch(request, context)
        finally:
            self._watches -= 1

    async def _admit(self, context: Any) -> None:
        if self._callers is None:
            return
        call = Call(context.invocation_metadata() or ())
        try:
            self._callers.identify(call.authorization, context.auth_context)
        except Unauthenticated as error:
            self._floods.came_to_nothing(context.peer())
            await _refuse(context, error)


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
