"""How a call ends: counted, logged, and its caller told.

These are functions that a handler calls and no coroutine around it: a coroutine around another
one costs each message of a stream.
"""

from __future__ import annotations

import asyncio
from typing import Final

from bytepair_server.admission.abuse import Floods
from bytepair_server.admission.limiter import Gate
from bytepair_server.errors import Draining, Overloaded, QuotaExceeded, Unauthenticated
from bytepair_server.observability import logs
from bytepair_server.observability.metrics import NO_ENCODING, POLICY_ACTIONS, Metrics, RpcMetrics
from bytepair_server.rpc.call import AUTHORIZATION, REQUEST_ID, Call
from bytepair_server.rpc.status import Failure, failure_of, internal
from bytepair_server.transport.interface import Call as Incoming
from bytepair_server.transport.interface import Trailers

#: So long after the last message a stream without a good end may turn out to be given up.
GONE_SECONDS: Final = 0.01
#: So a call without any message, which no client of gRPC sends: where thousands are given up, the
#: loop hears of each only when it comes to it.
NO_MESSAGE_SECONDS: Final = 0.2
#: Who gives a call up after longer has waited for it: thousands of calls that wait in the line end
#: at once where their caller's process does, and are no flood.
AT_ONCE_SECONDS: Final = 0.1


def trailers(call: Call) -> Trailers:
    """What every answer ends with."""
    return ((REQUEST_ID, call.request_id),)


class Outcomes:
    """The ends of the calls of one RPC."""

    def __init__(
        self,
        rpc: str,
        *,
        gate: Gate,
        floods: Floods,
        metrics: Metrics,
        log: logs.Log,
        log_calls: str | None,
        log_denials: bool,
    ) -> None:
        """See `Endpoint` for the arguments."""
        self._rpc: Final = rpc
        self._gate: Final = gate
        self._floods: Final = floods
        self._metrics: Final = RpcMetrics(metrics, rpc)
        self._log: Final = log
        self._log_call: Final = None if log_calls is None else getattr(log, log_calls)
        self._log_denials: Final = log_denials

    def begin(self, incoming: Incoming) -> Call:
        """Take note that a call has come; `answered` or `failed` must follow.

        Raises:
            CancelledError: Its connection was ended, for a flood.
        """
        peer = incoming.peer
        if self._floods.active:
            self._floods.hear_of(peer)
        return Call(peer, incoming.header(REQUEST_ID), incoming.header(AUTHORIZATION))

    def answered(self, call: Call) -> None:
        """Take note that a call is done; its answer is yet to be sent."""
        metrics = self._metrics
        metrics.succeeded(call.encoding, call.seconds, call.input_bytes, call.tokens)
        for action, failure in call.policy.items():
            metrics.policy(call.caller, call.encoding, action)
            if failure is not None:
                self._audit(call, failure)
        if self._floods.suspicious:
            self._floods.answered(call.peer)
        if self._log_call is not None:
            self._tell(call, "OK", "")

    async def refused(self, incoming: Incoming, call: Call, error: BaseException) -> None:
        """As `failed`, for a call that did nothing yet: one that is told to try again later is
        told so after that pause, where it can be."""
        if isinstance(error, Overloaded | QuotaExceeded):
            error.__traceback__ = None  # its frames hold the message
            try:
                await self._gate.line.pause(error, call.flow, incoming.time_remaining())
            except BaseException as instead:
                error = instead
        await self.failed(incoming, call, error)

    async def failed(self, incoming: Incoming, call: Call, error: BaseException) -> None:
        """End a call that came to an error with the status for that, or, where nobody is left to
        read it, raise the error again."""
        if self._is_nothing(call, error):
            self._floods.came_to_nothing(call.peer)
        if isinstance(error, asyncio.CancelledError):
            if not self._gate.cut_off:
                self._metrics.cancelled(call.encoding, call.seconds)
                self._tell(call, "CANCELLED", "")
                raise error
            error = Draining()
        elif isinstance(error, KeyboardInterrupt | SystemExit):
            raise error
        # Anything else, for a panic of the compiled core is no Exception.
        failure = failure_of(error) or self._unexpected(call, error)
        code = failure.code.name
        self._metrics.failed(call.encoding, call.seconds, code, failure.reason)
        action = POLICY_ACTIONS.get(failure.reason)
        if action is not None:
            self._metrics.policy(call.caller, call.encoding, action)
        elif failure.reason == "QUOTA_EXCEEDED":
            self._metrics.quota_exceeded(call.caller, failure.metadata["quota"])
        if action is not None or failure.reason == "UNAUTHENTICATED":
            self._audit(call, failure)
        self._tell(call, code, failure.reason)
        await incoming.fail(failure.told(), trailers(call))

    def _is_nothing(self, call: Call, error: BaseException) -> bool:
        if isinstance(error, asyncio.CancelledError):
            # Before the gate opens every call waits.
            is_early = call.encoding == NO_ENCODING and call.seconds < AT_ONCE_SECONDS
            return is_early and self._gate.is_open
        return isinstance(error, Unauthenticated)

    def _unexpected(self, call: Call, error: BaseException) -> Failure:
        self._log.error(
            "unexpected error",
            rpc=self._rpc,
            caller=call.caller,
            encoding=call.encoding,
            request_id=call.request_id,
            error=logs.frames(error),
        )
        return internal(call.request_id)

    def _audit(self, call: Call, failure: Failure) -> None:
        """Log what was denied, for audits, without text."""
        if self._log_denials:
            self._log.warning(
                "denied",
                rpc=self._rpc,
                caller=call.caller,
                peer=call.peer,
                encoding=call.encoding,
                reason=failure.reason,
                token=failure.token,
                request_id=call.request_id,
            )

    def _tell(self, call: Call, code: str, reason: str) -> None:
        if self._log_call is not None:
            self._log_call(
                "call",
                rpc=self._rpc,
                caller=call.caller,
                encoding=call.encoding,
                code=code,
                reason=reason,
                ms=round(call.seconds * 1000, 3),
                input_bytes=call.input_bytes,
                tokens=call.tokens,
                request_id=call.request_id,
            )
