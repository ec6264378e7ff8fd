"""The base of both clients: options, retries, fallbacks and errors. Subclasses add the I/O.

gRPC's own retries are off: when they retry a stream, they may lose a message or hang (grpcio 1.85:
`python -m bench.reliability.replay` shows it), and a channel cannot turn them off for streams only.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from time import monotonic
from typing import Any, ClassVar, Final, Never

import grpc
from google.protobuf.message import Message

from bytepair_client import _errors as errors
from bytepair_client import _options as options
from bytepair_client._arguments import Defaults, checked_size, chosen_timeout, positive, utf8
from bytepair_client._call import Method, R, Response, StreamCall, Work, too_many, unexpected
from bytepair_client._options import Tls
from bytepair_client._status import from_call

INITIAL_BACKOFF_S = 0.1
MAX_BACKOFF_S = 2.0
BACKOFF_MULTIPLIER = 2.0
#: Each wait varies by this share, so that clients that failed together do not retry together.
JITTER: Final = 0.2
#: Every call is idempotent, so UNAVAILABLE is always retried, on the next server that round_robin
#: picks. So is CANCELLED, the status of calls that reach a stopping server
#: (https://github.com/grpc/grpc/issues/41785), unless the caller cancelled the call. OVERLOADED is
#: not: the server then needs fewer calls.
RETRIED_CODES: Final = ("UNAVAILABLE", "CANCELLED")
#: For a quota error without `retry_after`.
QUOTA_WAIT_S: Final = 1.0


class BaseClient(ABC):
    """Everything about a client except its input and output.

    The client connects on its first call, so it may be created before the process forks or an event
    loop runs. Certificate files are read by the constructor.
    """

    _grpc: ClassVar[Any]  # grpc or grpc.aio, which makes the channel
    _event: ClassVar[Any]  # the class of events to wait for

    def __init__(
        self,
        target: str = options.DEFAULT_TARGET,
        *others: Never,
        encoding: str | None = None,
        expected_fingerprint: str | None = None,
        timeout: float | None = options.DEFAULT_TIMEOUT_S,
        api_key: str | None = None,
        tls: Tls | bool = False,
        metadata: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        max_attempts: int = options.DEFAULT_MAX_ATTEMPTS,
        wait_for_quota: bool = False,
        max_requests_per_second: float | None = None,
        max_unary_bytes: int = options.DEFAULT_MAX_UNARY_BYTES,
        max_request_bytes: int = options.DEFAULT_MAX_REQUEST_BYTES,
        max_response_bytes: int = options.DEFAULT_MAX_RESPONSE_BYTES,
        keepalive: float | None = options.DEFAULT_KEEPALIVE_S,
        user_agent: str | None = None,
        **unknown: Never,
    ) -> None:
        """Create a client. Many threads, or the tasks of one event loop, may share it.

        Args:
            target: A gRPC target. "host:port" and "dns:///host:port" balance calls over all
                addresses of the host; "unix:path" is a socket.
            encoding: The encoding of calls that name none: a name or alias.
            expected_fingerprint: Calls that use `encoding` fail with FingerprintMismatch unless
                the server's encoding has this fingerprint.
            timeout: Seconds for each call, retries included; None for no deadline.
            api_key: Sent with every call as "authorization: Bearer …". Without TLS anyone on
                the network path can read it.
            tls: True for TLS with gRPC's root certificates, Tls(…) for others; False for no TLS.
            metadata: Names, in lower case, and values to send with every call.
            max_attempts: Maximum number of consecutive failed attempts, if no server answers or it
                is stopping. 1: no retries.
            wait_for_quota: If True, a call over the caller's quota waits for the time that the
                server names and is sent again, instead of failing with QuotaExceeded. The wait does
                not count towards `timeout`, except for the `timeout` of a whole batch.
            max_requests_per_second: Maximum rate of calls, retries and streams included; None for
                no limit. Waits for it count towards `timeout`.
            max_unary_bytes: A text of more bytes, or a list of more ids than a quarter of this, is
                streamed instead of sent in one request. Ideally the server's `max_input_bytes`.
            max_request_bytes: A larger request fails with InputTooLarge before it is sent. The
                server has its own limits.
            max_response_bytes: A larger response fails with ResourceExhausted.
            keepalive: Seconds without traffic during a call before a ping checks the connection;
                None for no pings.
            user_agent: Text before the client's own name in the user agent.
        Raises:
            InvalidOption: An option is out of range, the target is a host without a port, or a
                certificate cannot be read.
            TypeError: An option has a wrong type, or another than `target` is given without its
                name.
        """
        if others:
            raise too_many(type(self).__name__, "target")
        for name in unknown:
            raise unexpected(type(self).__name__, name)
        texts = {"encoding": encoding, "expected_fingerprint": expected_fingerprint}
        for name, value in (texts | {"user_agent": user_agent}).items():
            if value is not None:
                utf8(name, value)
        self.target = options.checked_target(target)
        self._defaults = Defaults(
            encoding,
            expected_fingerprint,
            chosen_timeout(options.DEFAULT_TIMEOUT_S, timeout),
            checked_size("max_unary_bytes", max_unary_bytes),
        )
        self._metadata = options.call_metadata(api_key, metadata)
        self._max_request_bytes = max_request_bytes
        self._max_attempts = checked_size("max_attempts", max_attempts)
        if not isinstance(wait_for_quota, bool):
            raise TypeError(f"wait_for_quota must be a bool, not {type(wait_for_quota).__name__}")
        self._waits_for_quota = wait_for_quota
        rate = positive("max_requests_per_second", max_requests_per_second, none="no limit")
        self._rate_limiter = RateLimiter(rate)
        if not isinstance(tls, bool | Tls):
            raise TypeError(f"tls must be a bool or a Tls, not {type(tls).__name__}")
        self._tls = Tls() if tls is True else tls or None
        loaded: Any = (None, None) if self._tls is None else self._tls.load()
        self._credentials, self._context = loaded
        sizes = max_request_bytes, max_response_bytes
        self._arguments = options.channel_arguments(
            self.target, self._tls, *sizes, keepalive, user_agent
        )
        self._lock = Lock()  # for opening and closing
        self._closed = False
        self._sleepers: set[Any] = set()  # the events that end the sleeps under way
        self._channel: Any = None
        self._rpcs: dict[str, Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.target!r}, encoding={self._defaults.encoding!r})"

    @abstractmethod
    async def _send(self, method: Method[Any, Any], payload: bytes, seconds: float | None) -> Any:
        """Send a request and wait for the response, for these seconds. Raises gRPC's errors."""

    @abstractmethod
    async def _wait_for(self, event: Any, seconds: float) -> None:
        """Wait until an event is set, for at most these seconds."""

    @abstractmethod
    async def _collect(self, stream: StreamCall[Any, Any]) -> list[Any]:
        """Run a stream to its end. Returns its values."""

    @abstractmethod
    async def _run_all(
        self, function: Work[R], arguments: Iterable[Any], take: Callable[[R], None]
    ) -> None:
        """Run `function` on all arguments, MAX_UNDER_WAY at a time; `take` the results in order."""

    async def _sleep(self, seconds: float, woken: Any = None) -> None:
        """Sleep until `woken`, an event, is set. Raises ClientClosed if the client is closed before
        or meanwhile."""
        woken = self._event() if woken is None else woken
        self._sleepers.add(woken)
        try:
            if seconds and not self._closed:
                await self._wait_for(woken, seconds)
        finally:
            self._sleepers.discard(woken)
        self._check_open()

    def _check_open(self) -> None:
        if self._closed:
            raise errors.ClientClosed(f"the client of {self.target} is closed")

    def _rpc(self, method: Method[Any, Any]) -> Callable[..., Any]:
        """The gRPC callable of `method`. The first use opens the channel."""
        rpc = self._rpcs.get(method.path)
        if rpc is None or self._closed:
            with self._lock:
                self._check_open()
                if self._channel is None and self._credentials is None:
                    self._channel = self._grpc.insecure_channel(self.target, self._arguments)
                elif self._channel is None:
                    self._channel = self._grpc.secure_channel(
                        self.target, self._credentials, self._arguments
                    )
                streamed = method.streamed
                kind = self._channel.stream_stream if streamed else self._channel.unary_unary
                rpc = kind(method.path, response_deserializer=method.parse)
                self._rpcs[method.path] = rpc
        return rpc

    def _start(self, method: Method[Any, Any], request: object, seconds: float | None) -> Any:
        """Start an RPC. Returns its call, or the response if the RPC is unary and grpc blocks."""
        rpc = self._rpc(method)
        try:
            return rpc(request, timeout=seconds, metadata=self._metadata)
        except ValueError:
            self._check_open()  # another thread may have closed it, after _rpc
            raise

    def _take_channel(self) -> Any:
        """Mark the client as closed. Returns the channel to close; None if there is none."""
        with self._lock:
            self._closed = True
            channel, self._channel = self._channel, None
        for woken in tuple(self._sleepers):
            woken.set()
        return channel

    async def _responses(self, stream: StreamCall[Response, Any]) -> list[Response]:
        """Run a stream to its end. Returns its responses, of which there is at least one."""
        responses = await self._collect(stream.with_messages())
        if not responses:
            message = f"{self.target}: the stream ended without a response"
            raise errors.InternalError(message, code="OK")
        return responses

    async def _unary(
        self, method: Method[Response, Any], request: Message, timeout: float | None
    ) -> Response:
        """Send one request, with retries."""
        payload = self._payload(request)
        attempts = Attempts(self, timeout)
        while True:
            delay = attempts.reserve()
            if delay:
                await self._sleep(delay)
            try:
                response: Response = await self._send(method, payload, attempts.begin())
                return response
            except grpc.RpcError as error:
                failure = from_call(error, self.target, timeout)
                seconds = await attempts.wait(failure)
                if seconds is None:
                    raise failure from error
            await self._sleep(seconds)

    async def _explain(self, failure: errors.TokenizerError) -> bool:
        """Replace the message of a failed connection by its cause, if gRPC does not say it.

        Returns whether the cause is a mistake in the use of TLS, which no retry heals.
        """
        if not isinstance(failure, errors.Unavailable) or failure.reason is not None:
            return False
        fault = await self._find_fault()
        if fault is not None:
            failure.message = f"no answer from {self.target}: {fault}"
        elif "Failed parsing HTTP/2" in failure.message:
            failure.message = f"something that is not a gRPC server answers at {self.target}"
        elif "Connection refused" in failure.message:  # by another address of the host
            failure.message = f"no gRPC server answered at {self.target}; it may be starting"
        return fault in options.TLS_FAULTS

    async def _find_fault(self) -> str | None:
        return options.connection_fault(self.target, self._tls, self._context)

    def _payload(self, request: Message) -> bytes:
        """Serialise a request. Raises InputTooLarge if it exceeds `max_request_bytes`."""
        payload = request.SerializeToString()
        if len(payload) > self._max_request_bytes:
            size, limit = str(len(payload)), str(self._max_request_bytes)
            raise errors.InputTooLarge(
                f"the request has {size} bytes; the client sends at most {limit} "
                "(max_request_bytes)",
                metadata={"field": "request", "limit": limit, "size": size},
            )
        return payload


class Attempts:
    """The attempts of one call or stream."""

    def __init__(self, client: BaseClient, timeout: float | None) -> None:
        """`timeout` is in seconds for all attempts, without waits for a quota."""
        self._client: Final = client
        self._timeout: Final = timeout
        self._until: float | None = None
        #: The number of attempts after the first, or after the one in which a stream advanced.
        self.repeated = -1
        self._backoff = INITIAL_BACKOFF_S

    def reserve(self) -> float:
        """Reserve the start of an attempt. Returns the seconds until then. The first call starts
        the time of all attempts. Raises DeadlineExceeded if the start would be after its end."""
        if self._timeout is not None and self._until is None:
            self._until = monotonic() + self._timeout
        delay = self._client._rate_limiter.wait(self._until)
        if delay is None:
            raise errors.DeadlineExceeded(
                f"max_requests_per_second allows no call to {self._client.target} within "
                f"{self._timeout:g} s",
                code=grpc.StatusCode.DEADLINE_EXCEEDED.name,
            )
        return delay

    def begin(self) -> float | None:
        """Start an attempt. Returns the seconds left for it; None for no deadline."""
        self.repeated += 1
        return None if self._until is None else max(0.0, self._until - monotonic())

    def progressed(self) -> None:
        """Note that a stream advanced: earlier failures no longer count."""
        self.repeated = 0
        self._backoff = INITIAL_BACKOFF_S

    async def wait(self, failure: errors.TokenizerError) -> float | None:
        """Seconds to wait before the next attempt; None if the failure is not retried: then it is
        explained.

        The cause is sought after the second failure in succession too: most failures end at the
        first retry, and seeking costs the server a connection.
        """
        is_second = self.repeated == 1
        if is_second and await self._client._explain(failure):
            return None
        seconds = self._wait(failure)  # after the search, which takes time too
        if seconds is None and not is_second:
            await self._client._explain(failure)
        return seconds

    def _wait(self, failure: errors.TokenizerError) -> float | None:
        if self._client._closed:
            return None
        if self._client._waits_for_quota and isinstance(failure, errors.QuotaExceeded):
            seconds = QUOTA_WAIT_S if failure.retry_after is None else failure.retry_after
            seconds *= random.uniform(1, 1 + JITTER)
            self.repeated -= 1
            if self._until is not None:
                self._until += seconds
            return seconds
        if failure.code not in RETRIED_CODES or self.repeated + 1 >= self._client._max_attempts:
            return None
        seconds = self._backoff * random.uniform(1 - JITTER, 1 + JITTER)
        self._backoff = min(self._backoff * BACKOFF_MULTIPLIER, MAX_BACKOFF_S)
        if self._until is not None and monotonic() + seconds >= self._until:
            return None
        return seconds


class RateLimiter:
    """Spaces the starts of calls evenly. Safe for threads."""

    def __init__(self, per_second: float | None) -> None:
        """Allow this many calls per second; None for no limit."""
        self._interval: Final = 0.0 if per_second is None else 1 / per_second
        self._lock: Final = Lock()
        self._next = 0.0

    def wait(self, until: float | None) -> float | None:
        """Reserve the next start. Returns the seconds until then; 0 for now. None if a wait would
        not end before `until`, by `monotonic`: then nothing is reserved."""
        with self._lock:
            now = monotonic()
            start = max(now, self._next)
            if until is not None and start > max(now, until):
                return None
            self._next = start + self._interval
        return start - now
