"""The one wrapper around every RPC: bytes in, bytes or a status out.

It lets calls in, finds out who calls, picks where to compute, and afterwards counts and logs.
It is one coroutine and no chain of gRPC interceptors, each of which would cost every call
several Python frames.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final, NoReturn

import grpc
from google.protobuf.message import Message

from bytepair_server import logs, wire
from bytepair_server.call import REQUEST_ID, Call
from bytepair_server.callers import Callers
from bytepair_server.errors import Draining, Failure, failure_of, internal
from bytepair_server.gate import Gate
from bytepair_server.metrics import Metrics, RpcMetrics
from bytepair_server.service import METHODS, Method, Service
from bytepair_server.work import Work

SERVICE_NAME: Final = "bytepair.v1.TokenizerService"

Context = grpc.aio.ServicerContext[bytes, bytes]
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
        self._metrics: Final = metrics
        self._log: Final = log
        self._log_call: Final = None if log_calls is None else getattr(log, log_calls)

    def handlers(self) -> grpc.GenericRpcHandler:
        """What to register with a gRPC server. Messages stay bytes until `_answer`."""
        return grpc.method_handlers_generic_handler(
            SERVICE_NAME,
            {rpc: grpc.unary_unary_rpc_method_handler(self._handler(rpc)) for rpc in METHODS},
        )

    def _handler(self, rpc: str) -> Handler:
        method = METHODS[rpc]
        metrics = RpcMetrics(self._metrics, rpc)

        async def handle(raw: bytes, context: Context) -> bytes:
            started = perf_counter()
            call = Call(context.invocation_metadata() or ())
            try:
                answer = await self._admitted(method, raw, call)
            except asyncio.CancelledError:
                if self._gate.cut_off:
                    failure = failure_of(Draining())
                    assert failure is not None
                else:
                    metrics.cancelled(call.encoding, perf_counter() - started)
                    self._tell(rpc, call, started, "CANCELLED", "")
                    raise
            except (KeyboardInterrupt, SystemExit, GeneratorExit):
                raise
            except BaseException as error:  # a panic of the compiled core is no Exception
                failure = failure_of(error) or self._unexpected(rpc, call, error)
            else:
                metrics.succeeded(
                    call.encoding, perf_counter() - started, call.input_bytes, call.tokens
                )
                if call.allowed_special:
                    metrics.policy(call.encoding, "allowed")
                if self._log_call is not None:
                    self._tell(rpc, call, started, "OK", "")
                context.set_trailing_metadata(((REQUEST_ID, call.request_id),))
                return answer
            code = failure.code.name
            metrics.failed(call.encoding, perf_counter() - started, code, failure.reason)
            self._tell(rpc, call, started, code, failure.reason)
            return await _abort(context, failure, call.request_id)

        return handle

    async def _admitted(self, method: Method, raw: bytes, call: Call) -> bytes:
        call.caller = self._callers.authenticate(call.authorization)
        gate = self._gate
        gate.enter()
        try:
            if not gate.is_open:
                await gate.opened()
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

    def _unexpected(self, rpc: str, call: Call, error: BaseException) -> Failure:
        self._log.error(
            "unexpected error",
            rpc=rpc,
            caller=call.caller,
            encoding=call.encoding,
            request_id=call.request_id,
            error=logs.frames(error),
        )
        return internal(call.request_id)

    def _tell(self, rpc: str, call: Call, started: float, code: str, reason: str) -> None:
        if self._log_call is not None:
            self._log_call(
                "call",
                rpc=rpc,
                caller=call.caller,
                encoding=call.encoding,
                code=code,
                reason=reason,
                ms=round((perf_counter() - started) * 1000, 3),
                input_bytes=call.input_bytes,
                tokens=call.tokens,
                request_id=call.request_id,
            )


async def _abort(context: Context, failure: Failure, request_id: str) -> NoReturn:
    details = ("grpc-status-details-bin", failure.status().SerializeToString())
    metadata = ((REQUEST_ID, request_id), details)
    await context.abort(failure.code, failure.message, metadata)
