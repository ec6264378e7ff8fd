"""The objects that the handlers of all RPCs share."""

from __future__ import annotations

from dataclasses import dataclass

from bytepair_server.admission.executor import Executor
from bytepair_server.admission.limiter import Limiter
from bytepair_server.auth.callers import Callers
from bytepair_server.auth.quotas import Quotas
from bytepair_server.config.settings import Settings
from bytepair_server.observability import logs, traces
from bytepair_server.observability.metrics import Metrics


@dataclass(frozen=True, kw_only=True)
class Shared:
    """The objects that the handlers of all RPCs share.

    Without a tracer there are no spans.
    """

    limiter: Limiter
    callers: Callers
    quotas: Quotas
    executor: Executor
    metrics: Metrics
    log: logs.Log
    settings: Settings
    tracer: traces.Tracer | None = None
