"""One call: its caller, times and counts, without its request."""

from __future__ import annotations

import itertools
import os
import re
import secrets
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final

from bytepair_server.failure import Failure

#: The metadata key of request ids, in requests and in answers.
REQUEST_ID: Final = "x-request-id"
AUTHORIZATION: Final = "authorization"
#: The `encoding` of a call for an encoding that is not loaded.
UNKNOWN_ENCODING: Final = "unknown"
#: The `encoding` of a call without an encoding, or that ended before it was looked up.
NO_ENCODING: Final = ""
#: The caller if neither keys nor certificates are configured.
ANONYMOUS: Final = "anonymous"

_WELL_FORMED: Final = re.compile(r"[A-Za-z0-9._:/+=-]{1,64}")
_numbers: Final = itertools.count(1)
_prefix: str


def _renew_prefix() -> None:
    """Draw the prefix of this process's request ids: forked workers must not share one."""
    global _prefix
    _prefix = secrets.token_hex(4)


_renew_prefix()
os.register_at_fork(after_in_child=_renew_prefix)


@dataclass(slots=True, eq=False, repr=False)  # no repr: it holds a credential
class Call:
    """One call. The service records in it what metrics and logs report.

    Attributes:
        request_id: The caller's request id if it is well-formed; else a new one.
        authorization: The call's `authorization` metadata, or None.
        caller: The caller; "" until it is identified.
        peer: The address of its connection.
        admitted: Time of its admission, by `perf_counter`; None if it was not admitted, or traces
            are off.
        computed: Time when its answer (of a stream, the last one) was computed; likewise.
        stream_seconds: Time that a stream's messages were computed, in seconds; None for unary
            calls, or if traces are off.
        encoding: Canonical name, UNKNOWN_ENCODING or NO_ENCODING.
        input_bytes: UTF-8 bytes of text, also if the call fails after their limit was checked.
        tokens: Ids that were returned, counted or decoded.
        started: Time of its arrival, by `perf_counter`.
        policy: Policy actions to count: "allowed" if special tokens are allowed, "as_text" if some
            stayed text; in a batch also "denied" and "rejected", each with the first such item's
            failure.
    """

    peer: str = ""
    request_id: str = ""
    authorization: str | None = None
    caller: str = ""
    admitted: float | None = None
    computed: float | None = None
    stream_seconds: float | None = None
    encoding: str = NO_ENCODING
    input_bytes: int = 0
    tokens: int = 0
    started: float = field(default_factory=perf_counter)
    policy: dict[str, Failure | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.request_id or not _WELL_FORMED.fullmatch(self.request_id):
            self.request_id = f"{_prefix}-{next(_numbers)}"

    @property
    def fairness_key(self) -> str:
        """The unit of fairness: the caller, or, without authentication, the connection."""
        return self.peer if self.caller == ANONYMOUS else self.caller

    @property
    def seconds(self) -> float:
        """Seconds since its arrival."""
        return perf_counter() - self.started
