"""One call: its caller, deadline and counts, apart from its request."""

from __future__ import annotations

import itertools
import os
import re
import secrets
from time import perf_counter
from typing import Final

from bytepair_server.observability.metrics import NO_ENCODING
from bytepair_server.rpc.status import Failure

#: The metadata key of request ids, in requests and in answers.
REQUEST_ID: Final = "x-request-id"
AUTHORIZATION: Final = "authorization"
#: The caller where neither keys nor certificates are configured.
ANONYMOUS: Final = "anonymous"

_WELL_FORMED: Final = re.compile(r"[A-Za-z0-9._:/+=-]{1,64}")
_numbers: Final = itertools.count(1)


class _Process:
    """What the request ids of this process start with."""

    def __init__(self) -> None:
        self.renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        """Take another: workers that were forked must not share one."""
        self.prefix = secrets.token_hex(4)


_process: Final = _Process()


class Call:
    """One call. The service fills in what metrics and logs tell of it.

    Attributes:
        request_id: The caller's own, if it sent a well-formed one; a new one otherwise.
        authorization: The call's `authorization` metadata, or None.
        caller: Who calls; "" until that is known.
        peer: Its connection, as gRPC named it at first: later it may know of none.
        admitted: When it was admitted, by `perf_counter`, for traces; None if it was not, or
            nothing is traced.
        computed: When its answer was computed; of a stream the last one. Likewise.
        stream_seconds: How long the messages of a stream were computed, in seconds; None for
            unary calls, and where nothing is traced.
        encoding: Canonical name, UNKNOWN_ENCODING or NO_ENCODING.
        input_bytes: UTF-8 bytes of text in calls that were answered.
        tokens: Ids that were answered, counted or decoded.
        started: When it came, by `perf_counter`.
        policy: What the special-token policy did: "allowed" where the call may use some, "as_text"
            where some in the text stayed text, and for items of a batch "denied" and
            "rejected", with the failure of the first such.
    """

    __slots__ = (
        "admitted",
        "authorization",
        "caller",
        "computed",
        "encoding",
        "input_bytes",
        "peer",
        "policy",
        "request_id",
        "started",
        "stream_seconds",
        "tokens",
    )

    def __init__(
        self, peer: str = "", request_id: str | None = None, authorization: str | None = None
    ) -> None:
        """Take what the call's headers say; the arguments as the attributes."""
        self.started: Final = perf_counter()
        self.peer: Final = peer
        self.authorization: Final = authorization
        self.caller = ""
        self.admitted: float | None = None
        self.computed: float | None = None
        self.stream_seconds: float | None = None
        self.encoding = NO_ENCODING
        self.input_bytes = 0
        self.tokens = 0
        self.policy: dict[str, Failure | None] = {}
        if request_id is None or not _WELL_FORMED.fullmatch(request_id):
            request_id = f"{_process.prefix}-{next(_numbers)}"
        self.request_id: Final = request_id

    @property
    def fairness_key(self) -> str:
        """The unit of fairness: the caller, or, without authentication, the connection."""
        return self.peer if self.caller == ANONYMOUS else self.caller

    @property
    def seconds(self) -> float:
        """How long ago it came."""
        return perf_counter() - self.started
