"""The one wrapper around every unary RPC: bytes in, bytes or a status out.

It finds out who calls, lets calls in and picks where to compute; `outcome.py` counts, logs and
answers. These are functions and no chain of interceptors, each of which would cost every call
several Python frames.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final

from bytepair_server.admission.abuse import Floods
from bytepair_server.admission.executor import Work
from bytepair_server.admission.limiter import Gate
from bytepair_server.admission.queue import RETRY_SECONDS
from bytepair_server.auth.callers import Callers
from bytepair_server.auth.quotas import Quotas
from bytepair_server.errors import InvalidField, Overloaded
from bytepair_server.observability import logs
from bytepair_server.observability.metrics import Metrics
from bytepair_server.rpc import json
from bytepair_server.rpc.call import Call
from bytepair_server.rpc.outcome import Outcomes, trailers
from bytepair_server.rpc.service import RPCS, Service
from bytepair_server.rpc.service import Method as Rpc
from bytepair_server.transport.interface import Kind, Method, UnaryCall

#: Items, segments and allowed special tokens of a request that is computed on the event loop: each
#: costs up to some 25 µs (an item that fails), in as few as two bytes.
INLINE_MAX_PARTS: Final = 64
#: Answers of more are counted for as long as they are being sent.
SMALL_ANSWER_BYTES: Final = 16 * 1024

Handling = Coroutine[Any, Any, None]


class Endpoint:
    """The service, as a transport calls it."""

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

    def methods(self) -> list[Method]:
        """Every RPC, for a transport. None of them has side effects."""
        return [
            Method(
                f"{service}/{rpc}",
                Kind.UNARY,
                self._handler(method, self._outcomes(rpc)),
                has_no_side_effects=True,
            )
            for service, methods in RPCS.items()
            for rpc, method in methods.items()
        ]

    def _handler(self, method: Rpc, outcomes: Outcomes) -> Callable[[UnaryCall], Handling | None]:
        identify, quota_of = self._callers.identify, self._quotas.of
        gate, work = self._gate, self._work

        def handle(incoming: UnaryCall) -> Handling | None:
            raw = incoming.message
            if raw is None or incoming.is_json or not work.is_inline(len(raw)) or not gate.is_clear:
                return self._wait(incoming, outcomes.begin(incoming), method, outcomes)
            call = outcomes.begin(incoming)
            try:
                call.caller = identify(call.authorization, incoming)
                request = method.read(raw)
                if quota_of(call.caller) is not None or method.parts(request) > INLINE_MAX_PARTS:
                    return self._wait(incoming, call, method, outcomes)
                answer = self._compute(method, request, call)
            except BaseException as error:
                return outcomes.refused(incoming, call, error)
            outcomes.answered(call)
            incoming.answer(answer, trailers(call))
            return None

        return handle

    async def _wait(self, incoming: UnaryCall, call: Call, method: Rpc, outcomes: Outcomes) -> None:
        """Answer a call that may have to wait: to be read, for a thread, or for its quota."""
        line = self._gate.line

        async def end() -> None:
            # The call fails and its reading is not cancelled: grpcio would never free what came of
            # a message whose reader is gone.
            with suppress(Exception):
                slow = Overloaded(RETRY_SECONDS, "messages that are not whole")
                await outcomes.failed(incoming, call, slow)

        try:
            call.caller = self._callers.identify(call.authorization, incoming)
            if not line.passes(call):
                await line.turn(call, incoming.time_remaining())
            call.end = end
            raw = await incoming.read()
            call.end = None
            if raw is None:
                line.leave(call)
                raise InvalidField("request", "there is none")
            quota = self._quotas.of(call.caller)
            if quota is None:
                answer = await self._admitted(incoming, call, method, raw)
            else:
                quota.enter(len(raw))
                try:
                    answer = await self._admitted(incoming, call, method, raw)
                finally:
                    quota.leave()
            if len(answer) > SMALL_ANSWER_BYTES:
                self._gate.send(call.flow, len(answer))
                incoming.when_sent(partial(self._gate.sent, call.flow, len(answer)))
        except BaseException as error:
            raw = answer = b""  # nothing holds them while the call waits to be refused
            call.end = None
            line.leave(call)
            if not incoming.is_over:  # otherwise `end` has told its caller
                await outcomes.refused(incoming, call, error)
            return
        outcomes.answered(call)
        incoming.answer(answer, trailers(call))

    async def _admitted(self, incoming: UnaryCall, call: Call, method: Rpc, raw: bytes) -> bytes:
        gate = self._gate
        gate.line.read(call)
        gate.enter()
        try:
            if not gate.is_open:
                await gate.waiting(gate.opened())
            size = len(raw)
            is_json = incoming.is_json
            if self._work.is_inline(size) and not is_json:
                request = method.read(raw)
                if method.parts(request) <= INLINE_MAX_PARTS:
                    return self._compute(method, request, call)
            gate.take_in(size)
            try:
                if self._work.is_inline(size) or not gate.line.was_used:
                    where = self._work.on_thread
                else:
                    where = self._work.in_turn
                step = self._answer_json if is_json else self._answer
                return await gate.waiting(where(call, size, step, method, raw, call))
            finally:
                gate.give_back(size)
        finally:
            gate.leave()

    def _answer(self, method: Rpc, raw: bytes, call: Call) -> bytes:
        return self._compute(method, method.read(raw), call)

    def _answer_json(self, method: Rpc, raw: bytes, call: Call) -> bytes:
        message = json.read(raw, method.request_class)
        return json.write(self._answer(method, message, call), method.response_class)

    def _compute(self, method: Rpc, request: object, call: Call) -> bytes:
        assert self.service is not None  # the gate opens once it is set
        return method.function(self.service, request, call)
