"""The one wrapper around every unary RPC: bytes in, bytes or a status out.

It finds out who calls, lets calls in and picks where to compute; `outcome.py` counts, logs and
tells. These are functions and no chain of gRPC interceptors, each of which would cost every
call several Python frames.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import grpc
from google.protobuf.message import Message

from bytepair_server import logs, wire
from bytepair_server.call import Call
from bytepair_server.callers import Callers
from bytepair_server.gate import Gate
from bytepair_server.metrics import Metrics
from bytepair_server.outcome import Context, Outcomes
from bytepair_server.service import METHODS, SERVICE_NAME, Method, Service
from bytepair_server.work import Work

Handler = Callable[[bytes, Context], Awaitable[bytes]]


class Endpoint:
    """The service, as gRPC calls it."""

    def __init__(
        self,
        *,
        gate: Gate,
        callers: Callers,
        work: Work,
        metrics: Metrics,
        log: logs.Log,
        log_calls: str | None,
    ) -> None:
        """Serve nothing until `service` is set and the gate opens.

        Args:
            gate: Who gets in.
            callers: Who may call.
            work: Where requests are computed.
            metrics: What is counted.
            log: Where calls and faults are logged.
            log_calls: The level of the line for each call; None for no such lines.
        """
        self.service: Service | None = None
        self._gate: Final = gate
        self._callers: Final = callers
        self._work: Final = work
        self._outcomes: Final = partial(
            Outcomes, gate=gate, metrics=metrics, log=log, log_calls=log_calls
        )

    def handlers(self) -> grpc.GenericRpcHandler:
        """What to register with a gRPC server. Messages stay bytes until `_answer`."""
        return grpc.method_handlers_generic_handler(
            SERVICE_NAME,
            {rpc: grpc.unary_unary_rpc_method_handler(self._handler(rpc)) for rpc in METHODS},
        )

    def _handler(self, rpc: str) -> Handler:
        method = METHODS[rpc]
        outcomes, admitted = self._outcomes(rpc), self._admitted

        async def handle(raw: bytes, context: Context) -> bytes:
            call = outcomes.begin(context)
            try:
                answer = await admitted(call, method, raw)
            except BaseException as error:
                await outcomes.failed(context, call, error)
            outcomes.answered(context, call)
            return answer

        return handle

    async def _admitted(self, call: Call, method: Method, raw: bytes) -> bytes:
        call.caller = self._callers.authenticate(call.authorization)
        gate = self._gate
        gate.enter()
        try:
            if not gate.is_open:
                await gate.waiting(gate.opened())
            if self._work.is_inline(len(raw)):
                return self._answer(method, raw, call)
            return await gate.waiting(self._work.on_thread(self._answer, method, raw, call))
        finally:
            gate.leave()

    def _answer(self, method: Method, raw: bytes, call: Call) -> bytes:
        assert self.service is not None  # the gate opens once it is set
        request: Message = wire.parse(method.request_class, raw)
        response: Message = method.function(self.service, request, call)
        return response.SerializeToString()
