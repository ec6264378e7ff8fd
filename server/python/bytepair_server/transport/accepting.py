"""gRPC's server, but for how it takes calls.

grpcio's own loop (`AioServer._server_main_loop` of grpcio 1.84 and 1.85) decodes the path of each
call whose RPC is not registered by name, and ends for good, unnoticed, at the first that is not
UTF-8: one packet of a stranger and the port is closed. Here each RPC that is registered has a task
that takes its calls, and another takes all others, whose path is never looked at. So no RPC waits
behind the calls of another that the event loop has not heard of; and a call costs less, as grpcio's
loop waits for all RPCs anew each time.

It takes private names of grpcio, which are those of the versions that pyproject.toml allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, cast

import grpc
from grpc._cython import cygrpc
from grpc.aio import _server

#: What calls of RPCs that there are not are called.
_UNKNOWN: Final = ""


def server(
    options: Sequence[tuple[str, int]], broken: Callable[[Exception], None]
) -> grpc.aio.Server:
    """A server without a handler, as `grpc.aio.server` makes it. Every RPC is to be registered by
    name (`add_registered_method_handlers`); generic handlers get the calls of all that are not,
    with the path "".

    Args:
        options: The arguments of gRPC's C core.
        broken: Called with the reason where no more calls of an RPC are taken, which must not be
            but where the server stops.
    """
    return cast(grpc.aio.Server, _Server(options, broken))


class _Server(_server.Server):
    def __init__(
        self, options: Sequence[tuple[str, int]], broken: Callable[[Exception], None]
    ) -> None:
        # Not super's, which would make the server of the C core that is to be another here.
        self._loop = cygrpc.get_working_loop()
        self._server = _Core(broken, self._loop, None, (), (), tuple(options), None)


class _Core(cygrpc.AioServer):  # type: ignore[misc]
    def __init__(
        self,
        broken: Callable[[Exception], None],
        loop: asyncio.AbstractEventLoop,
        *rest: object,
    ) -> None:
        self._broken: Final = broken
        self._own_loop: Final = loop
        self._generic: Final[list[Any]] = []
        self._by_name: Final[dict[str, Any]] = {}
        self._calls: Final[set[asyncio.Task[None]]] = set()
        self._is_stopping = False
        super().__init__(loop, *rest)

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        self._generic.extend(handlers)

    def add_registered_method_handlers(self, handlers: Mapping[str, Any]) -> None:
        self._by_name.update(handlers)
        super().add_registered_method_handlers(handlers)

    async def shutdown(self, grace: float | None) -> None:
        self._is_stopping = True
        await super().shutdown(grace)

    def _make_request_call_future(self, method: bytes | None) -> asyncio.Task[None]:
        """Called by grpcio's loop once for each RPC, and for all that are not registered."""
        return self._own_loop.create_task(self._take(method))

    async def _take(self, method: bytes | None) -> None:
        """Take calls. grpcio's loop waits for this to end, which it does by the error that says
        that the server stops."""
        loop, calls = self._own_loop, self._calls
        resolver = cygrpc._MethodResolver(self._generic, self._by_name)
        name = _UNKNOWN if method is None else method.decode()
        while True:
            request: Awaitable[Any] = (
                self._request_call() if method is None else self._request_registered_call(method)
            )
            try:
                state = await request
            except cygrpc._RequestCallError:
                if self._is_stopping:
                    raise
                continue
            except Exception as error:
                # Told to grpcio's loop, it would end, and with calls open neither stop nor tell.
                self._broken(error)
                await asyncio.Event().wait()
                continue
            handling = cygrpc._handle_rpc(name, resolver, (), state, loop, False)
            call = loop.create_task(cygrpc._schedule_rpc_coro(handling, state, loop, name))
            calls.add(call)
            call.add_done_callback(calls.discard)
            del state, handling, call  # or the last call of each RPC would be held, and its message
