"""What the two clients share: their options, and what an error means."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, TypeVar

from google.protobuf.message import Message

from bytepair_client import _options as options
from bytepair_client._retries import Attempts
from bytepair_client._call import Method, Whole
from bytepair_client.count_cache import CountCache
from bytepair_client._errors import ClientClosed, InputTooLarge, InternalError, TokenizerError
from bytepair_client._status import FailedCall, from_call
from bytepair_client.lanes import Lanes
from bytepair_client._options import Defaults, Tls

Response = TypeVar("Response", bound=Message)


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
        max_unary_bytes: int = options.DEFAULT_MAX_UNARY_BYTES,
        max_request_bytes: int = options.DEFAULT_MAX_REQUEST_BYTES,
        max_response_bytes: int = options.DEFAULT_MAX_RESPONSE_BYTES,
        keepalive: float | None = options.DEFAULT_KEEPALIVE_S,
        coalesce: bool = options.DEFAULT_COALESCE,
        count_cache_bytes: int = 0,
        user_agent: str | None = None,
    ) -> None:
        """Make a client. It is safe to be used by many threads, or by many tasks of one loop.

        Args:
            target: Any gRPC name: "host:port" and "dns:///host:port" balance calls over all
                addresses of the host, "unix:path" is a socket.
            encoding: For calls that name none: a name or alias.
            expected_fingerprint: For calls that use `encoding`: they fail with
                FingerprintMismatch unless the server's has this fingerprint.
            timeout: Seconds that a call gets, retries included; None for no deadline.
            api_key: Sent with every call as "authorization: Bearer …". Without TLS anyone on
                the way can read it.
            tls: True for TLS with gRPC's own roots, Tls(…) for other certificates; False for
                none.
            metadata: Sent with every call: names in lower case, and values.
            max_attempts: How often a call is tried while the server is missing or stopping: 1
                (no retries) to 5.
            max_unary_bytes: A larger text, or more ids than a fourth of this, is streamed
                instead of sent in one request. Best what the server's `max_input_bytes` is.
            max_request_bytes: A larger request is InputTooLarge before it is sent. The
                server has limits of its own.
            max_response_bytes: A larger answer is ResourceExhausted.
            keepalive: Seconds without traffic during a call after which the connection is
                checked by a ping; None for no pings.
            coalesce: True: send calls that come together as one of a batch RPC, each with its
                own answer, error and deadline. False: send each as it is.
            count_cache_bytes: Memory for answers to `count` that are given again without a
                call, where the call is bound to a fingerprint; 0 for none. See `count_cache`.
            user_agent: What stands before the client's own name in the user agent.
        Raises:
            InvalidOption: One is outside its domain, or a certificate cannot be read.
        """
        self.target = options.utf8("target", target)
        self._defaults = Defaults(
            encoding,
            expected_fingerprint,
            options.checked_timeout(timeout),
            options.checked_size("max_unary_bytes", max_unary_bytes),
        )
        self._metadata = options.call_metadata(api_key, metadata)
        self._max_request_bytes = max_request_bytes
        self._max_attempts = max_attempts
        settings = Tls() if tls is True else tls or None
        self._credentials = None if settings is None else settings.credentials()
        self._arguments = options.channel_arguments(
            max_attempts=max_attempts,
            max_request_bytes=max_request_bytes,
            max_response_bytes=max_response_bytes,
            keepalive=keepalive,
            user_agent=user_agent,
            server_name=None if settings is None else settings.server_name,
        )
        self._coalescer: Any = self._joining(Lanes(max_request_bytes)) if coalesce else None
        self._counts = CountCache(count_cache_bytes)
        self._lock = Lock()  # for opening and closing
        self._closed = False
        self._channels: dict[bool, Any] = {}  # by whether it is for streams
        self._rpcs: dict[str, Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.target!r}, encoding={self._defaults.encoding!r})"

    @abstractmethod
    def _open(self, arguments: Sequence[tuple[str, str | int]]) -> Any:
        """A new channel to the target; a grpc.Channel or a grpc.aio.Channel."""

    @abstractmethod
    def _joining(self, lanes: Lanes) -> Any:
        """What joins calls by these lanes; a Coalescer or an AsyncCoalescer."""

    def _rpc(self, method: Method[Any]) -> Callable[..., Any]:
        """The callable of `method`, on a channel that its first use opens."""
        rpc = self._rpcs.get(method.path)
        if rpc is None or self._closed:
            with self._lock:
                if self._closed:
                    raise self._closed_error()
                streamed = method.streamed
                channel = self._channels.get(streamed)
                if channel is None:
                    more = (options.NO_RETRIES,) if streamed else ()
                    channel = self._channels[streamed] = self._open([*self._arguments, *more])
                kind = channel.stream_stream if streamed else channel.unary_unary
                rpc = kind(method.path, response_deserializer=method.parse)
                self._rpcs[method.path] = rpc
        return rpc

    def _take_channels(self) -> list[Any]:
        """Mark the client as closed and hand over its channels, which are to be closed."""
        with self._lock:
            self._closed = True
            channels, self._channels = self._channels, {}
        return list(channels.values())

    def _payload(self, request: Message) -> bytes:
        """The bytes of a request, if it may be sent."""
        payload = request.SerializeToString()
        if len(payload) > self._max_request_bytes:
            raise InputTooLarge(
                f"the request has {len(payload)} bytes; the client sends at most "
                f"{self._max_request_bytes} (max_request_bytes)",
                metadata={
                    "field": "request",
                    "limit": str(self._max_request_bytes),
                    "size": str(len(payload)),
                },
            )
        return payload

    def _joined(self, whole: Whole[Response], answers: Sequence[Any]) -> Response:
        """The one answer that a stream's answers are."""
        if not answers:
            message = f"{self.target}: the stream ended without an answer"
            raise InternalError(message, code="OK")
        return whole.join(answers)

    def _attempts(self, timeout: float | None) -> Attempts:
        """For one stream, which has so many seconds; None for no deadline."""
        return Attempts(self._max_attempts, timeout, lambda: self._closed)

    def _closed_error(self) -> ClientClosed:
        return ClientClosed(f"the client of {self.target} is closed")

    def _error(self, failed: FailedCall, timeout: float | None) -> TokenizerError:
        return from_call(failed, target=self.target, timeout=timeout)
