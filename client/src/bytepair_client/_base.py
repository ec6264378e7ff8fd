"""The base of both clients: their options, and every decision of a call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from threading import Event, Lock
from typing import Any, TypeVar

from google.protobuf.message import Message

from bytepair_client import _channel
from bytepair_client import _errors as errors
from bytepair_client import _options as options
from bytepair_client._call import Call, Method, StreamCall
from bytepair_client._options import Defaults, Tls
from bytepair_client._retries import Attempts, RateLimiter
from bytepair_client._status import FailedCall, from_call

Response = TypeVar("Response", bound=Message)
Argument = TypeVar("Argument")
R = TypeVar("R")


class BaseClient(ABC):
    """Everything about a client but its input and output.

    Nothing is connected before the first call, so that a client may be made before a process
    forks or an event loop runs; files that options name are read at once.
    """

    def __init__(
        self,
        target: str = options.DEFAULT_TARGET,
        *,
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
    ) -> None:
        """Make a client. It is safe to be used by many threads, or by many tasks of one loop.

        Args:
            target: Any gRPC target: "host:port" and "dns:///host:port" balance calls over all
                addresses of the host, "unix:path" is a socket.
            encoding: For calls that name none: a name or alias.
            expected_fingerprint: Calls that use `encoding` fail with FingerprintMismatch unless
                the server's encoding has this fingerprint.
            timeout: Seconds that a call gets, retries included; None for no deadline.
            api_key: Sent with every call as "authorization: Bearer …". Without TLS anyone on
                the network path can read it.
            tls: True for TLS with gRPC's own roots, Tls(…) for other certificates; False for
                none.
            metadata: Sent with every call: names in lower case, and values.
            max_attempts: Attempts in a row that may fail because no server answers or it is
                stopping, at least 1 (no retries).
            wait_for_quota: True: a call over this caller's quota waits as long as the server
                says and is sent again, instead of failing with QuotaExceeded. The wait is not
                part of `timeout`.
            max_requests_per_second: Maximum rate of calls, retries and streams included; None for
                no limit.
            max_unary_bytes: A larger text, or more ids than a fourth of this, is streamed
                instead of sent in one request. Ideally the server's `max_input_bytes`.
            max_request_bytes: A larger request is errors.InputTooLarge before it is sent. The
                server has limits of its own.
            max_response_bytes: A larger answer is ResourceExhausted.
            keepalive: Seconds without traffic during a call after which the connection is
                checked by a ping; None for no pings.
            user_agent: Text to put before the client's own name in the user agent.
        Raises:
            InvalidOption: One is outside its domain, or a certificate cannot be read.
        """
        self.target = options.utf8("target", target)
        if "://" in target and target.startswith("http"):
            raise options.invalid("target", "write host:port, without http:// or https://")
        self._defaults = Defaults(
            encoding,
            expected_fingerprint,
            options.checked_timeout(timeout),
            options.checked_size("max_unary_bytes", max_unary_bytes),
        )
        self._metadata = options.call_metadata(api_key, metadata)
        self._max_request_bytes = max_request_bytes
        self._max_attempts = options.checked_size("max_attempts", max_attempts)
        self._waits_for_quota = wait_for_quota
        rate = options.positive("max_requests_per_second", max_requests_per_second, none="no limit")
        self._rate_limiter = RateLimiter(rate)
        if not isinstance(tls, bool | Tls):
            raise TypeError(f"tls must be a bool or a Tls, not {type(tls).__name__}")
        self._tls = Tls() if tls is True else tls or None
        self._credentials = None if self._tls is None else self._tls.credentials()
        self._context = None if self._tls is None else self._tls.context()
        self._arguments = _channel.channel_arguments(
            self.target,
            max_request_bytes=max_request_bytes,
            max_response_bytes=max_response_bytes,
            keepalive=keepalive,
            user_agent=user_agent,
            server_name=None if self._tls is None else self._tls.server_name,
        )
        self._lock = Lock()  # for opening and closing
        self._closed = Event()
        self._channel: Any = None
        self._rpcs: dict[str, Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.target!r}, encoding={self._defaults.encoding!r})"

    @abstractmethod
    def _open(self, arguments: Sequence[tuple[str, str | int]]) -> Any:
        """A new channel to the target; a grpc.Channel or a grpc.aio.Channel."""

    @abstractmethod
    async def _send(
        self, method: Method[Response], payload: bytes, seconds: float | None, timeout: float | None
    ) -> Response:
        """Send a request and wait for its answer: `seconds` are those of this attempt, and
        `timeout` those of the whole call, for messages."""

    @abstractmethod
    async def _sleep(self, seconds: float) -> None:
        """Wait. Raises ClientClosed if the client is closed meanwhile."""

    @abstractmethod
    async def _collect(self, stream: StreamCall[Any, Any]) -> list[Any]:
        """Carry out a stream. Returns its answers."""

    @abstractmethod
    async def _run_all(
        self,
        function: Callable[[Argument], Coroutine[Any, Any, R]],
        arguments: Iterable[Argument],
        most: int,
        take: Callable[[R], None],
    ) -> None:
        """Run `function` for every argument, at most `most` at a time, and hand on each result in
        order."""

    @abstractmethod
    async def _find_fault(self) -> str | None:
        """What is wrong with the connection, by `_connection_fault`."""

    def _rpc(self, method: Method[Any]) -> Callable[..., Any]:
        """The callable of `method`, on the channel that the first use opens."""
        rpc = self._rpcs.get(method.path)
        if rpc is None or self._closed.is_set():
            with self._lock:
                if self._closed.is_set():
                    raise self._closed_error()
                if self._channel is None:
                    self._channel = self._open(self._arguments)
                streamed = method.streamed
                kind = self._channel.stream_stream if streamed else self._channel.unary_unary
                rpc = kind(method.path, response_deserializer=method.parse)
                self._rpcs[method.path] = rpc
        return rpc

    def _take_channel(self) -> Any:
        """Mark the client as closed and hand over its channel, which is to be closed; or None."""
        with self._lock:
            self._closed.set()
            channel, self._channel = self._channel, None
        return channel

    async def _answer(self, call: Call[Response, Any]) -> Response:
        """Send one request, or what takes its place where the input is too large for one."""
        limit: int | None = None
        if call.fallback is None or not call.is_large:
            try:
                return await self._unary(call.method, call.request, call.timeout)
            except errors.InputTooLarge as rejection:
                if call.fallback is None or rejection.code is None:
                    raise
                if rejection.field == "message":  # which is rejected before it is read
                    limit = (rejection.limit or 0) // 4
                elif rejection.field in ("text", "ids"):
                    limit = rejection.limit
                else:
                    raise
        fallback = call.fallback(limit)
        if isinstance(fallback.call, Call):
            part = fallback.call
            answers = [await self._unary(part.method, part.request, part.timeout)]
        else:
            answers = await self._collect(fallback.call)
        if not answers:
            message = f"{self.target}: the stream ended without an answer"
            raise errors.InternalError(message, code="OK")
        return fallback.join(answers)

    async def _unary(
        self, method: Method[Response], request: Message, timeout: float | None
    ) -> Response:
        """Send one request, with retries."""
        payload = self._payload(request)
        attempts = self._attempts(timeout)
        while True:
            delay = attempts.rate_delay()
            if delay:
                await self._sleep(delay)
            try:
                return await self._send(method, payload, attempts.begin(), timeout)
            except errors.TokenizerError as failure:
                seconds = attempts.wait(failure)
                if seconds is None:
                    await self._explain(failure)
                    raise
            await self._sleep(seconds)

    async def _explain(self, failure: errors.TokenizerError) -> None:
        """Add to a failure what is wrong with the connection, where gRPC does not say it."""
        if not isinstance(failure, errors.Unavailable) or failure.reason is not None:
            return
        fault = await self._find_fault()
        is_closed = fault is None and "Socket closed" in failure.message
        if is_closed and self._tls is not None and self._tls.client_certificate is None:
            fault = _channel.CLOSED
        if fault is not None:
            failure.message = f"no answer from {self.target}: {fault}"

    def _connection_fault(self) -> str | None:
        name = None if self._tls is None else self._tls.server_name
        return _channel.connection_fault(self.target, self._context, name)

    def _payload(self, request: Message) -> bytes:
        """The bytes of a request, if it may be sent."""
        payload = request.SerializeToString()
        if len(payload) > self._max_request_bytes:
            raise errors.InputTooLarge(
                f"the request has {len(payload)} bytes; the client sends at most "
                f"{self._max_request_bytes} (max_request_bytes)",
                metadata={
                    "field": "request",
                    "limit": str(self._max_request_bytes),
                    "size": str(len(payload)),
                },
            )
        return payload

    def _attempts(self, timeout: float | None) -> Attempts:
        """For one call or stream, which has this many seconds; None for no deadline."""
        return Attempts(
            self._max_attempts,
            timeout,
            self._closed.is_set,
            self._rate_limiter,
            waits_for_quota=self._waits_for_quota,
        )

    def _closed_error(self) -> errors.ClientClosed:
        return errors.ClientClosed(f"the client of {self.target} is closed")

    def _error(self, failed: FailedCall, timeout: float | None) -> errors.TokenizerError:
        return from_call(failed, target=self.target, timeout=timeout)
