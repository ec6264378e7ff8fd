"""The wrapper around every unary RPC: bytes in, bytes or a status out.

It authenticates the caller, admits the call and decides where to compute it; `outcome.py` counts,
logs and answers. It is not a chain of interceptors, because each would cost every call several
Python frames.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any, Final

from bytepair_engine import Cancelled, CancelScope

from bytepair_server.admission.executor import TRIED_SECONDS
from bytepair_server.auth.quotas import Quota
from bytepair_server.call import Call
from bytepair_server.errors import RETRY_SECONDS, InvalidField, Overloaded
from bytepair_server.rpc import json, limits
from bytepair_server.rpc.methods import METHODS, Rpc
from bytepair_server.rpc.outcome import Outcomes, Shared
from bytepair_server.rpc.service import Service
from bytepair_server.transport.interface import Kind, Method, UnaryCall, UnreadableMessage

#: Maximum elements (see `methods.Read`) of a request that is computed on the event loop. An
#: element of two bytes can cost 25 µs: an item that fails.
INLINE_MAX_PARTS: Final = 64
#: JSON counts as this many times its bytes: parsing it and writing the answer take longer.
JSON_COST: Final = 4

Handling = Coroutine[Any, Any, None]


class UnaryHandlers:
    """The unary RPCs for a transport. Calls wait until `service` is set and the limiter opens."""

    def __init__(self, shared: Shared) -> None:
        """Make the handlers."""
        self.service: Service | None = None
        self._shared: Final = shared
        self._compute: Final = self._compute_plain if shared.tracer is None else self._compute_timed

    def methods(self) -> list[Method]:
        """All unary RPCs. None has side effects."""
        return [
            Method(
                method.path,
                Kind.UNARY,
                self._handler(method, Outcomes(method.path, self._shared)),
                has_no_side_effects=True,
            )
            for method in METHODS.values()
        ]

    def _handler(self, method: Rpc, outcomes: Outcomes) -> Callable[[UnaryCall], Handling | None]:
        shared = self._shared
        identify, quota_of = shared.callers.identify, shared.quotas.of
        limiter, executor = shared.limiter, shared.executor

        def handle(incoming: UnaryCall) -> Handling | None:
            call = outcomes.begin(incoming)
            try:
                call.caller = identify(call.authorization, incoming)
                raw = incoming.message
                if raw is None and incoming.is_excess:
                    raise Overloaded(RETRY_SECONDS, "queued calls of one connection")
                if raw is None or not limiter.accepts:
                    return self._admit(incoming, call, method, outcomes)
                received = len(raw)
                size = JSON_COST * received if incoming.is_json else received
                is_small = size <= executor.inline_max_bytes
                if is_small:
                    executor.last_small = call.started
                    if method.is_costly and not executor.may_try_costly(
                        call.fairness_key, call.started
                    ):
                        return self._admit(incoming, call, method, outcomes)
                elif not method.is_count or not executor.may_try(size, call.started):
                    return self._admit(incoming, call, method, outcomes)
                quota = quota_of(call.caller)
                if quota is not None:
                    # Before it is parsed: an invalid request costs as much as a valid one.
                    quota.enter(received)
                try:
                    if incoming.is_json:
                        raw = json.read(raw, method.request_class)
                    request, parts = method.read(raw)
                    if parts > INLINE_MAX_PARTS:
                        entered, quota = quota, None
                        return self._admit(incoming, call, method, outcomes, entered)
                    if is_small and not method.is_costly:
                        answer = self._compute(method, request, call)
                    else:
                        with CancelScope(TRIED_SECONDS):
                            answer = self._compute(method, request, call)
                except Cancelled:
                    executor.remember_long_try(call.fairness_key, perf_counter())
                    call.tokens = 0
                    entered, quota = quota, None
                    return self._admit(incoming, call, method, outcomes, entered)
                finally:
                    if quota is not None:
                        quota.leave()
                if incoming.is_json:
                    answer = json.write(answer, method.response_class)
            except BaseException as error:
                outcomes.failed(incoming, call, error)
                return None
            outcomes.answer(incoming, call, answer)
            return None

        return handle

    async def _admit(
        self,
        incoming: UnaryCall,
        call: Call,
        method: Rpc,
        outcomes: Outcomes,
        entered: Quota | None = None,
    ) -> None:
        """Answer a call that has to wait for admission, for its message or for a thread; `entered`
        is its caller's quota if it was charged before."""
        shared, limiter, raw = self._shared, self._shared.limiter, incoming.message
        try:
            if incoming.size > shared.settings.max_message_bytes:
                if incoming.is_json:
                    limits.check("request", incoming.size, json.MAX_BYTES, "bytes of JSON")
                limits.check("message", incoming.size, shared.settings.max_message_bytes, "bytes")
            slot = await limiter.admit(call, incoming.size, incoming.time_remaining())
            try:
                if entered is None and (quota := shared.quotas.of(call.caller)) is not None:
                    quota.enter(0 if raw is None else len(raw))
                    entered = quota
                if raw is None:
                    # The slot is held meanwhile, so the call counts as one already.
                    try:
                        raw = await slot.read(incoming.read())
                    except UnreadableMessage as error:
                        limit = ("message", shared.settings.max_message_bytes, "bytes")
                        if incoming.is_json and limit[1] > json.MAX_BYTES:
                            limit = ("request", json.MAX_BYTES, "bytes of JSON")
                        raise limits.unreadable(error, *limit) from None
                    if raw is None:
                        raise InvalidField("request", "the message is missing")
                    if entered is not None:
                        entered.charge_message(len(raw))
                if not limiter.is_open:
                    await limiter.wait_until_open()
                size, is_json = len(raw), incoming.is_json
                answer = await shared.executor.run(
                    call.fairness_key, size, self._answer, method, raw, call, is_json
                )
            finally:
                slot.close()
        except BaseException as error:
            outcomes.failed(incoming, call, error)
            return
        finally:
            if entered is not None:
                entered.leave()
        outcomes.answer(incoming, call, answer)

    def _answer(self, method: Rpc, raw: bytes, call: Call, is_json: bool) -> bytes:
        if is_json:
            raw = json.read(raw, method.request_class)
        request, _ = method.read(raw)
        answer = self._compute(method, request, call)
        return json.write(answer, method.response_class) if is_json else answer

    def _compute_plain(self, method: Rpc, request: object, call: Call) -> bytes:
        assert self.service is not None  # the limiter opens once it is set
        return method.answer(self.service, request, call)

    def _compute_timed(self, method: Rpc, request: object, call: Call) -> bytes:
        call.admitted = perf_counter()
        try:
            return self._compute_plain(method, request, call)
        finally:
            call.computed = perf_counter()
