"""The one wrapper around every unary RPC: bytes in, bytes or a status out.

It finds out who calls, lets calls in and picks where to compute; `outcome.py` counts, logs and
tells. These are functions and no chain of gRPC interceptors, each of which would cost every
call several Python frames.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, NoReturn

import grpc
from grpc.aio import AbortError

from bytepair_server.admission.abuse import Floods
from bytepair_server.admission.executor import Work
from bytepair_server.admission.limiter import Gate
from bytepair_server.admission.queue import RETRY_SECONDS
from bytepair_server.auth.callers import Callers
from bytepair_server.auth.quotas import Quotas
from bytepair_server.errors import InvalidField, Overloaded
from bytepair_server.observability import logs
from bytepair_server.observability.metrics import Metrics
from bytepair_server.rpc.call import Call
from bytepair_server.rpc.outcome import END, NO_MESSAGE_SECONDS, Context, Outcomes
from bytepair_server.rpc.service import CHAT_METHODS, METHODS, Method, Service

Handler = Callable[[object, Context], Awaitable[bytes]]

#: Items, segments and allowed special tokens of a request that is computed on the event loop: each
#: costs up to some 25 µs (an item that fails), in as few as two bytes.
INLINE_MAX_PARTS: Final = 64
#: Answers of more are counted for as long as they are being sent.
SMALL_ANSWER_BYTES: Final = 16 * 1024


class Endpoint:
    """The service, as gRPC calls it."""

    def __init__(
        self,
        *,
        gate: Gate,
        floods: Floods,
        callers: Callers,
        quotas: Quotas,
        work: Work,
        metrics: Metrics,
        log: logs.Log,
        log_calls: str | None,
        log_denials: bool,
    ) -> None:
        """Serve nothing until `service` is set and the gate opens.

        Args:
            gate: Who gets in.
            floods: Who is refused.
            callers: Who may call.
            quotas: How much each caller may ask for.
            work: Where requests are computed.
            metrics: What is counted.
            log: Where calls and faults are logged.
            log_calls: The level of the line for each call; None for no such lines.
            log_denials: Log what is denied, for audits.
        """
        self.service: Service | None = None
        self._gate: Final = gate
        self._callers: Final = callers
        self._quotas: Final = quotas
        self._work: Final = work
        self._outcomes: Final = partial(
            Outcomes,
            gate=gate,
            floods=floods,
            metrics=metrics,
            log=log,
            log_calls=log_calls,
            log_denials=log_denials,
        )

    def handlers(self) -> dict[str, Any]:
        """By RPC, what to register with a gRPC server. Messages stay bytes until `_answer`."""
        # To the wire a stream of one message is no other than a call; but gRPC reads the message
        # of a call first, and of a stream nothing that is not asked for.
        handler = grpc.stream_unary_rpc_method_handler
        return {rpc: handler(self._handler(rpc, method)) for rpc, method in METHODS.items()}

    def chat_handlers(self) -> dict[str, Any]:
        """As `handlers`, for the service on chats."""
        handler = grpc.stream_unary_rpc_method_handler
        return {rpc: handler(self._handler(rpc, method)) for rpc, method in CHAT_METHODS.items()}

    def _handler(self, rpc: str, method: Method) -> Handler:
        outcomes, admitted = self._outcomes(rpc), self._admitted
        identify, quota_of = self._callers.identify, self._quotas.of
        line = self._gate.line

        async def handle(_: object, context: Context) -> bytes:
            call = outcomes.begin(context)

            async def end() -> None:
                # The call is aborted and its reading not cancelled: gRPC would never free what came
                # of a message whose reader is gone.
                with suppress(Exception):
                    slow = Overloaded(RETRY_SECONDS, "messages that are not whole")
                    await outcomes.failed(context, call, slow)

            try:
                call.caller = identify(call.authorization, context.auth_context)
                if not line.passes(call):
                    await line.turn(call, context.time_remaining())
                call.end = end
                raw = await context.read()
                call.end = None
                if raw is END:
                    line.leave(call)
                    await _no_message()
                quota = quota_of(call.caller)
                if quota is None:
                    answer = await admitted(call, method, raw)
                else:
                    quota.enter(len(raw))
                    try:
                        answer = await admitted(call, method, raw)
                    finally:
                        quota.leave()
                if len(answer) > SMALL_ANSWER_BYTES:
                    self._gate.send(call.flow, len(answer))
                    context.add_done_callback(self._sent(call.flow, len(answer)))
            except BaseException as error:
                raw = answer = b""  # nothing holds them while the call waits to be told
                call.end = None
                line.leave(call)
                if isinstance(error, AbortError):
                    raise  # by `end`: its caller has been told
                await outcomes.refused(context, call, error)
            outcomes.answered(context, call)
            return answer

        return handle

    async def _admitted(self, call: Call, method: Method, raw: bytes) -> bytes:
        gate = self._gate
        gate.line.read(call)
        gate.enter()
        try:
            if not gate.is_open:
                await gate.waiting(gate.opened())
            size = len(raw)
            if self._work.is_inline(size):
                request = method.read(raw)
                if method.parts(request) <= INLINE_MAX_PARTS:
                    return self._compute(method, request, call)
            gate.take_in(size)
            try:
                if self._work.is_inline(size) or not gate.line.was_used:
                    where = self._work.on_thread
                else:
                    where = self._work.in_turn
                return await gate.waiting(where(call, size, self._answer, method, raw, call))
            finally:
                gate.give_back(size)
        finally:
            gate.leave()

    def _sent(self, flow: str, size: int) -> Any:
        return lambda _: self._gate.sent(flow, size)

    def _answer(self, method: Method, raw: bytes, call: Call) -> bytes:
        return self._compute(method, method.read(raw), call)

    def _compute(self, method: Method, request: object, call: Call) -> bytes:
        assert self.service is not None  # the gate opens once it is set
        return method.function(self.service, request, call)


async def _no_message() -> NoReturn:
    # gRPC gives no message also where the caller is gone, of which it tells a moment later.
    await asyncio.sleep(NO_MESSAGE_SECONDS)
    raise InvalidField("request", "there is none")
