"""How a call ends: counted, logged, and its caller told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Concatenate, Final, NoReturn, ParamSpec, TypeVar

import grpc

from bytepair_server import logs
from bytepair_server.call import REQUEST_ID, Call
from bytepair_server.errors import Draining, Failure, failure_of, internal
from bytepair_server.gate import Gate
from bytepair_server.metrics import Metrics, RpcMetrics

Context = grpc.aio.ServicerContext[bytes, bytes]
P = ParamSpec("P")
T = TypeVar("T")


class Outcomes:
    """The ends of the calls of one RPC."""

    def __init__(
        self, rpc: str, *, gate: Gate, metrics: Metrics, log: logs.Log, log_calls: str | None
    ) -> None:
        """See `Endpoint` for the arguments."""
        self._rpc: Final = rpc
        self._gate: Final = gate
        self._metrics: Final = RpcMetrics(metrics, rpc)
        self._log: Final = log
        self._log_call: Final = None if log_calls is None else getattr(log, log_calls)

    async def of(
        self,
        context: Context,
        work: Callable[Concatenate[Call, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Do the work of a call and see to its end, whatever that is.

        Returns:
            What `work` does. If it fails, the call is aborted with the status for that.
        """
        started = perf_counter()
        call = Call(context.invocation_metadata() or ())
        metrics = self._metrics
        try:
            answer = await work(call, *args, **kwargs)
        except asyncio.CancelledError:
            if self._gate.cut_off:
                failure = failure_of(Draining())
                assert failure is not None
            else:
                metrics.cancelled(call.encoding, perf_counter() - started)
                self._tell(call, started, "CANCELLED", "")
                raise
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the compiled core is no Exception
            failure = failure_of(error) or self._unexpected(call, error)
        else:
            metrics.succeeded(
                call.encoding, perf_counter() - started, call.input_bytes, call.tokens
            )
            if call.allowed_special:
                metrics.policy(call.encoding, "allowed")
            if self._log_call is not None:
                self._tell(call, started, "OK", "")
            context.set_trailing_metadata(((REQUEST_ID, call.request_id),))
            return answer
        code = failure.code.name
        metrics.failed(call.encoding, perf_counter() - started, code, failure.reason)
        self._tell(call, started, code, failure.reason)
        return await _abort(context, failure, call.request_id)

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

    def _tell(self, call: Call, started: float, code: str, reason: str) -> None:
        if self._log_call is not None:
            self._log_call(
                "call",
                rpc=self._rpc,
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
