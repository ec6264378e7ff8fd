"""The objects that the handlers of all RPCs share."""

from __future__ import annotations

from dataclasses import dataclass

from bytepair_server.admission.executor import Executor
from bytepair_server.admission.limiter import Limiter
from bytepair_server.auth.callers import Callers
from bytepair_server.auth.quotas import Quotas
from bytepair_server.observability import logs, traces
from bytepair_server.observability.metrics import Metrics


@dataclass(frozen=True, kw_only=True)
class Shared:
    """The objects that the handlers of all RPCs share.

    Attributes:
        limiter: Admits calls and streams.
        callers: Identifies callers.
        quotas: The callers' quotas.
        executor: Computes large messages.
        max_message_bytes: Maximum size of a message.
        metrics: The metrics.
        log: The logger of calls and errors.
        log_calls: The level of the line for each call; None for no lines.
        log_denials: Whether to log denials, for audits.
        tracer: Makes spans of calls; None for no traces.
    """

    limiter: Limiter
    callers: Callers
    quotas: Quotas
    executor: Executor
    max_message_bytes: int
    metrics: Metrics
    log: logs.Log
    log_calls: str | None
    log_denials: bool
    tracer: traces.Tracer | None = None
