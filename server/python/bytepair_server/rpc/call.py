"""What is known of one call apart from its request."""

from __future__ import annotations

import itertools
import os
import re
import secrets
from collections.abc import Callable, Coroutine, Iterable
from time import perf_counter
from typing import Any, Final

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
        encoding: Canonical name, UNKNOWN_ENCODING or NO_ENCODING.
        input_bytes: UTF-8 bytes of text that were taken in.
        tokens: Ids that were answered, counted or decoded.
        started: When it came, by `perf_counter`.
        end: Ends it with OVERLOADED while its message is read; None before and after.
        policy: What the special-token policy did: "allowed" where the call may use some, "as_text"
            where it took some that the text spells as text, and for items of a batch "denied" and
            "rejected", with the failure of the first such.
    """

    __slots__ = (
        "authorization",
        "caller",
        "encoding",
        "end",
        "input_bytes",
        "peer",
        "policy",
        "request_id",
        "started",
        "tokens",
    )

    def __init__(self, metadata: Iterable[tuple[str, str | bytes]], peer: str = "") -> None:
        """Read what the call's metadata say; `peer` as the attribute."""
        self.started: Final = perf_counter()
        self.peer: Final = peer
        self.request_id = ""
        self.authorization: str | bytes | None = None
        self.caller = ""
        self.encoding = NO_ENCODING
        self.input_bytes = 0
        self.tokens = 0
        self.end: Callable[[], Coroutine[Any, Any, None]] | None = None
        self.policy: dict[str, Failure | None] = {}
        for key, value in metadata:
            if key == REQUEST_ID and isinstance(value, str) and _WELL_FORMED.fullmatch(value):
                self.request_id = value
            elif key == AUTHORIZATION:
                self.authorization = value
        if not self.request_id:
            self.request_id = f"{_process.prefix}-{next(_numbers)}"

    @property
    def flow(self) -> str:
        """Who takes turns with whom: callers, or, where all callers are one, connections."""
        return self.peer if self.caller == ANONYMOUS else self.caller

    @property
    def seconds(self) -> float:
        """How long ago it came."""
        return perf_counter() - self.started
