"""The base of both clients: options, retries, fallbacks and errors. Subclasses add the I/O."""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from threading import Event, Lock
from typing import Any, ClassVar, Never

import grpc
from google.protobuf.message import Message

from bytepair_client import _channel
from bytepair_client import _errors as errors
from bytepair_client import _options as options
from bytepair_client._call import Call, Method, R, Response, StreamCall, Work, too_many
from bytepair_client._options import Defaults, Tls
from bytepair_client._retries import Attempts, RateLimiter
from bytepair_client._status import from_call


class BaseClient(ABC):
    """Everything about a client except its input and output.

    The client connects on its first call, so it may be created before the process forks or an event
    loop runs. Certificate files are read by the constructor.
    """

    _grpc: ClassVar[Any]  # grpc or grpc.aio, which makes the channel

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
            max_attempts: Maximum number of consecutive failures because no server answers, or the
                server is stopping. At least 1, which means no retries.
            wait_for_quota: If True, a call over the caller's quota waits for the time that the
                server names and is sent again, instead of failing with QuotaExceeded. The wait does
                not count towards `timeout`.
            max_requests_per_second: Maximum rate of calls, retries and streams included; None for
                no limit.
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
        self.target = options.checked_target(target)
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
        self._credentials: grpc.ChannelCredentials | None = None
        self._context: ssl.SSLContext | None = None
        if self._tls is not None:
            self._credentials, self._context = self._tls.load()
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
    async def _send(
        self, method: Method[Response], payload: bytes, seconds: float | None, timeout: float | None
    ) -> Response:
        """Send a request and wait for the response.

        Args:
            seconds: The time left for this attempt.
            timeout: The timeout of the whole call, for error messages.
        """

    @abstractmethod
    async def _sleep(self, seconds: float) -> None:
        """Sleep. Raises ClientClosed if the client is closed meanwhile."""

    @abstractmethod
    async def _collect(self, stream: StreamCall[Any, Any]) -> list[Any]:
        """Run a stream to its end. Returns all responses."""

    @abstractmethod
    async def _run_all(
        self, function: Work[R], arguments: Iterable[Any], take: Callable[[R], None]
    ) -> None:
        """Run `function` on every argument, at most MAX_UNDER_WAY at a time. Pass the results to
        `take` in order."""

    @abstractmethod
    async def _find_fault(self) -> str | None:
        """Run `_connection_fault` without blocking an event loop."""

    def _rpc(self, method: Method[Any]) -> Callable[..., Any]:
        """The gRPC callable of `method`. The first use opens the channel."""
        rpc = self._rpcs.get(method.path)
        if rpc is None or self._closed.is_set():
            with self._lock:
                if self._closed.is_set():
                    raise self._closed_error()
                if self._channel is None:
                    self._channel = self._open()
                streamed = method.streamed
                kind = self._channel.stream_stream if streamed else self._channel.unary_unary
                rpc = kind(method.path, response_deserializer=method.parse)
                self._rpcs[method.path] = rpc
        return rpc

    def _open(self) -> Any:
        if self._credentials is None:
            return self._grpc.insecure_channel(self.target, self._arguments)
        return self._grpc.secure_channel(self.target, self._credentials, self._arguments)

    def _take_channel(self) -> Any:
        """Mark the client as closed. Returns the channel to close; None if there is none."""
        with self._lock:
            self._closed.set()
            channel, self._channel = self._channel, None
        return channel

    async def _execute(self, call: Call[Response, Any]) -> Response:
        """Send one request, or its fallback if the input is too large for one request."""
        limit: int | None = None
        if call.fallback is None or not call.is_large:
            try:
                return await self._unary(call.method, call.request, call.timeout)
            except errors.InputTooLarge as rejection:
                if call.fallback is None or rejection.code is None:
                    raise
                if rejection.field == "message":  # the limit of the whole request
                    limit = (rejection.limit or 0) // 4
                elif rejection.field in ("text", "ids"):
                    limit = rejection.limit
                else:
                    raise
        fallback = call.fallback(limit)
        other = fallback.call
        if isinstance(other, Call):
            responses = [await self._unary(other.method, other.request, other.timeout)]
        else:
            responses = await self._collect(other.with_messages())
        if not responses:
            message = f"{self.target}: the stream ended without a response"
            raise errors.InternalError(message, code="OK")
        return fallback.join(responses)

    async def _unary(
        self, method: Method[Response], request: Message, timeout: float | None
    ) -> Response:
        """Send one request, with retries."""
        payload = self._payload(request)
        attempts = self._attempts(timeout)
        while True:
            delay = self._rate_limiter.wait()
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
        """Replace the message of a failed connection by its cause, if gRPC does not say it."""
        if not isinstance(failure, errors.Unavailable) or failure.reason is not None:
            return
        fault = await self._find_fault()
        is_closed = fault is None and "Socket closed" in failure.message
        if is_closed and self._tls is not None and self._tls.client_certificate is None:
            fault = _channel.CLOSED
        if fault is not None:
            failure.message = f"no answer from {self.target}: {fault}"
        elif "Failed parsing HTTP/2" in failure.message:
            failure.message = f"something that is not a gRPC server answers at {self.target}"
        elif "Connection refused" in failure.message:  # by another address of the host
            failure.message = f"no gRPC server answers at {self.target}"

    def _connection_fault(self) -> str | None:
        name = None if self._tls is None else self._tls.server_name
        return _channel.connection_fault(self.target, self._context, name)

    def _payload(self, request: Message) -> bytes:
        """Serialise a request. Raises InputTooLarge if it exceeds `max_request_bytes`."""
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
        """The attempts of one call or stream with this timeout."""
        return Attempts(
            self._max_attempts,
            timeout,
            self._closed.is_set,
            waits_for_quota=self._waits_for_quota,
        )

    def _closed_error(self) -> errors.ClientClosed:
        return errors.ClientClosed(f"the client of {self.target} is closed")

    def _error(self, failed: grpc.RpcError, timeout: float | None) -> errors.TokenizerError:
        return from_call(failed, self.target, timeout)
