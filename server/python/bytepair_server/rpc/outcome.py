"""What all handlers share, and the end of a call or of an item of a batch: metrics, log, answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import ceil
from typing import Final

from bytepair.v1 import text_pb2

from bytepair_server.admission.executor import Executor
from bytepair_server.admission.limiter import Limiter
from bytepair_server.auth.callers import Callers
from bytepair_server.auth.quotas import Quotas
from bytepair_server.call import AUTHORIZATION, REQUEST_ID, Call
from bytepair_server.config.settings import Settings
from bytepair_server.errors import RETRY_SECONDS, Draining, EncodingNotLoaded, Overloaded
from bytepair_server.failure import Failure
from bytepair_server.observability import logs, traces
from bytepair_server.observability.metrics import POLICY_ACTIONS, Metrics, RpcMetrics
from bytepair_server.rpc.status import failure_of, internal
from bytepair_server.transport.interface import Call as Incoming
from bytepair_server.transport.interface import Trailers, UnaryCall

#: A cancellation in this last part of a call's time counts as its deadline. A caller's own deadline
#: is a little earlier: its timeout was rounded up (by gRPC's C core, up to 1 %) and took time to
#: arrive.
LAST_PART: Final = 0.05


@dataclass(frozen=True, kw_only=True)
class Shared:
    """The objects that the handlers of all RPCs share. Without a tracer there are no spans, and
    without `denials` denied calls are not logged."""

    limiter: Limiter
    callers: Callers
    quotas: Quotas
    executor: Executor
    metrics: Metrics
    log: logs.Log
    settings: Settings
    tracer: traces.Tracer | None = None
    denials: logs.Denials | None = None


def trailers(call: Call) -> Trailers:
    """The trailing metadata of every answer."""
    return ((REQUEST_ID, call.request_id),)


def item_error(error: Exception, call: Call) -> text_pb2.Error:
    """The error of one item of a batch. An unexpected one is raised: it fails the whole call."""
    failure = failure_of(error)
    if failure is None:
        raise error
    if failure.reason in POLICY_ACTIONS:
        call.policy.setdefault(POLICY_ACTIONS[failure.reason], failure)
    return failure.item_error()


def _is_expired(incoming: Incoming, call: Call) -> bool:
    """Whether a cancelled call was ended by its deadline, here or at the caller."""
    left = incoming.time_remaining()
    return left is not None and left <= LAST_PART * (left + call.seconds)


def _free_messages(error: BaseException | None) -> None:
    """Drop the traceback of a handled error. Functions in it refer to the error: they would keep
    the messages of the call until the next full garbage collection, perhaps for hours."""
    while error is not None:
        error.__traceback__ = None
        error = error.__context__


class Outcomes:
    """Ends the calls of one RPC."""

    def __init__(self, method: str, shared: Shared) -> None:
        """End the calls of a method, "package.Service/Rpc"."""
        self._method: Final = method
        self._rpc: Final = method.rpartition("/")[2]
        self._shared: Final = shared
        self._metrics: Final = RpcMetrics(shared.metrics, self._rpc)
        self._tracer: Final = shared.tracer
        self._used: Final = shared.metrics.used
        #: By the limits that made calls OVERLOADED.
        self._warnings: Final = logs.Occasional()
        settings = shared.settings
        is_logged = settings.log_level == "debug" or settings.log_level == settings.log_calls
        self._log_call: Final = getattr(shared.log, settings.log_calls) if is_logged else None

    def begin(self, incoming: Incoming) -> Call:
        """Start a call; `answered` or `failed` must follow."""
        request_id = incoming.header(REQUEST_ID) or ""
        return Call(incoming.peer, request_id, incoming.header(AUTHORIZATION))

    def answer(self, incoming: UnaryCall, call: Call, answer: bytes) -> None:
        """Answer a unary call, or fail it if its caller leaves too many answers unread."""
        if incoming.has_room(len(answer)):
            self.answered(incoming, call)
            incoming.answer(answer, trailers(call))
        else:
            self.failed(
                incoming, call, Overloaded(RETRY_SECONDS, "unsent answers of one connection")
            )

    def answered(self, incoming: Incoming, call: Call) -> None:
        """Record a successful call, before its answer is sent."""
        self._metrics.succeeded(call.encoding, call.seconds, call.input_bytes, call.tokens)
        self._used(call.caller, call.input_bytes, call.tokens)
        for action, failure in call.policy.items():
            self._count_policy(call, action)
            if failure is not None:
                self._audit(incoming, call, failure)
        self._end(incoming, call, "OK", "")

    def failed(self, incoming: Incoming, call: Call, error: BaseException) -> None:
        """End a call with the status for an error.

        Raises:
            BaseException: The error, if the caller has cancelled or the process ends.
        """
        if call.caller:
            self._used(call.caller, call.input_bytes, call.tokens)
        if isinstance(error, asyncio.CancelledError):
            if not self._shared.limiter.is_cutting_off:
                code = "DEADLINE_EXCEEDED" if _is_expired(incoming, call) else "CANCELLED"
                self._metrics.failed(call.encoding, call.seconds, code, "")
                self._end(incoming, call, code, "")
                _free_messages(error)
                try:
                    raise error
                finally:
                    del error  # or its traceback would keep this function, and with it the call
            error = Draining()
        elif isinstance(error, KeyboardInterrupt | SystemExit):
            raise error
        # Any other error fails only this call. A panic of the core is an InternalError.
        failure = failure_of(error) or self._unexpected(incoming, call, error)
        code = failure.code.name
        self._metrics.failed(call.encoding, call.seconds, code, failure.reason)
        action = POLICY_ACTIONS.get(failure.reason)
        if action is not None:
            self._count_policy(call, action)
        elif failure.reason == "QUOTA_EXCEEDED":
            quota = failure.metadata["quota"]
            self._shared.metrics.quota_exceeded.labels(call.caller, self._rpc, quota).inc()
        elif failure.reason == "UNKNOWN_ENCODING":
            self._count_unknown(call, failure, is_configured=isinstance(error, EncodingNotLoaded))
        elif failure.reason == "OVERLOADED":
            self._warn_overloaded(call, failure)
        if action is not None or failure.reason == "UNAUTHENTICATED":
            self._audit(incoming, call, failure)
        self._end(incoming, call, code, failure.reason)
        headers: Trailers = ()
        if incoming.is_json and failure.retry_seconds is not None:
            headers = (("retry-after", str(ceil(failure.retry_seconds))),)
        incoming.fail(failure.for_transport(is_json=incoming.is_json), trailers(call), headers)
        _free_messages(error)

    def _unexpected(self, incoming: Incoming, call: Call, error: BaseException) -> Failure:
        self._shared.log.error(
            "unexpected error",
            **self._fields(call),
            error=logs.frames(error),
            **traces.parent_of(incoming.header(traces.TRACEPARENT)),
        )
        return internal(call.request_id)

    def _count_policy(self, call: Call, action: str) -> None:
        labels = (call.caller, self._rpc, call.encoding, action)
        self._shared.metrics.policy.labels(*labels).inc()

    def _count_unknown(self, call: Call, failure: Failure, *, is_configured: bool) -> None:
        """Count the name that a call has for its encoding, and log a new one."""
        name = self._shared.metrics.unknown_encoding(failure.metadata["encoding"])
        if name is not None:
            self._shared.log.warning(
                "an encoding that could not be loaded was requested"
                if is_configured
                else "unknown encoding requested; [aliases] of the configuration can add a name",
                name=name,
                nearest=failure.metadata.get("nearest", ""),
                caller=call.caller,
            )

    def _warn_overloaded(self, call: Call, failure: Failure) -> None:
        """Log which limit rejects calls, now and then."""
        if not self._warnings.is_due(failure.message):
            return
        self._shared.log.warning(
            "calls are rejected with OVERLOADED",
            rpc=self._rpc,
            caller=call.caller,
            setting=failure.metadata.get("setting", ""),
            why=failure.message,
        )

    def _audit(self, incoming: Incoming, call: Call, failure: Failure) -> None:
        """Log what was denied, for audits, without text."""
        if self._shared.denials is not None:
            self._shared.denials.write(
                reason=failure.reason,
                **self._fields(call),
                peer=call.peer,
                why=failure.message if failure.reason == "UNAUTHENTICATED" else "",
                token=failure.token,
                format=failure.metadata.get("format", ""),
                **traces.parent_of(incoming.header(traces.TRACEPARENT)),
            )

    def _end(self, incoming: Incoming, call: Call, code: str, reason: str) -> None:
        """Log and trace the end of a call."""
        if self._tracer is not None:
            trace = self._tracer.record(self._method, incoming, call, code, reason)
        elif self._log_call is not None:
            trace = traces.parent_of(incoming.header(traces.TRACEPARENT))
        if self._log_call is not None:
            self._log_call(
                "call",
                **self._fields(call),
                code=code,
                reason=reason,
                ms=round(call.seconds * 1000, 3),
                input_bytes=call.input_bytes,
                tokens=call.tokens,
                **trace,
            )

    def _fields(self, call: Call) -> dict[str, str]:
        """The fields of each log line about a call."""
        return {
            "rpc": self._rpc,
            "caller": call.caller,
            "encoding": call.encoding,
            "request_id": call.request_id,
        }
