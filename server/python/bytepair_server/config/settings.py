"""The settings: one frozen object, verified once at start.

`loader.py` fills it from flags, variables and a file; `docs/configuration.md` describes it.
Every default is a named constant with its unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from bytepair_engine import list_encodings
from bytepair_engine.resources import DEFAULT_CACHE_BYTES, MAX_CACHE_BYTES, MAX_THREADS
from pydantic import AfterValidator, ConfigDict, Field

from bytepair_server.config.callers import CallerSettings
from bytepair_server.config.chat_formats import ChatFormatTable
from bytepair_server.config.types import (
    MemoryBytes,
    Names,
    Natural,
    Period,
    Positive,
    Seconds,
    Whole,
    checked_grpc_address,
    checked_http_address,
    checked_origins,
)

DEFAULT_GRPC_ADDRESS: Final = "0.0.0.0:50051"
DEFAULT_HTTP_ADDRESS: Final = "0.0.0.0:9464"

#: 1 MiB of UTF-8: a long book chapter, some 250,000 tokens of English.
DEFAULT_MAX_INPUT_BYTES: Final = 1 << 20
#: Ids in one call of Decode: about what `DEFAULT_MAX_INPUT_BYTES` of English encodes to.
DEFAULT_MAX_IDS: Final = 1 << 18
DEFAULT_MAX_BATCH_ITEMS: Final = 1024
#: Segments in one call, over all its items.
DEFAULT_MAX_SEGMENTS: Final = 16_384
DEFAULT_MAX_CHUNKS: Final = 65_536
#: Entries of `allowed_special`. The largest built-in encoding has 1,091 special tokens.
DEFAULT_MAX_ALLOWED_SPECIAL: Final = 2048
#: Calls that are read, computed or wait for a thread.
DEFAULT_MAX_IN_FLIGHT: Final = 256
#: Sixteen times those in flight.
DEFAULT_MAX_QUEUED: Final = 4096
#: One core answers `DEFAULT_MAX_QUEUED` calls of 100 KB in about this time.
DEFAULT_MAX_QUEUE_SECONDS: Final = 4.0
#: 64 MiB of requests above `DEFAULT_INLINE_MAX_BYTES`: some tenths of a second of one core's work.
DEFAULT_MAX_IN_FLIGHT_BYTES: Final = 1 << 26
#: Streams that are open at once. An idle one costs some 10 KiB (docs/performance.md).
DEFAULT_MAX_OPEN_STREAMS: Final = 4096
#: 5 min: longer than models pause between tokens.
DEFAULT_STREAM_IDLE_SECONDS: Final = 300.0
#: Stop strings of one stream. The usual API of models takes 4.
DEFAULT_MAX_STOP_STRINGS: Final = 64
#: UTF-8 bytes of all stop strings of one stream.
DEFAULT_MAX_STOP_BYTES: Final = 4096
#: 1 MiB: a stream takes every text that one call takes.
DEFAULT_MAX_PENDING_BYTES: Final = 1 << 20
#: 256 MiB: what `max_in_flight` calls of `max_input_bytes` may hold.
DEFAULT_MAX_STREAMS_BYTES: Final = 1 << 28
#: Bytes of one call's metadata, as HTTP/2 counts them (RFC 9113, section 6.5.2).
DEFAULT_MAX_METADATA_BYTES: Final = 16 * 1024
#: Calls at once on one connection.
DEFAULT_MAX_CONCURRENT_STREAMS: Final = 1024
#: An idle one costs some 16 KiB, and a file descriptor.
DEFAULT_MAX_CONNECTIONS: Final = 4096
#: 0: behind a proxy all connections have one address.
DEFAULT_MAX_CONNECTIONS_PER_ADDRESS: Final = 0
#: 256 MiB: four times the requests in flight, as ids take up to four times their text.
DEFAULT_MAX_BUFFERED_BYTES: Final = 1 << 28
#: Far above what ordinary clients cancel.
DEFAULT_MAX_ABANDONED_PER_SECOND: Final = 1000
#: A handshake takes a few round trips; gRPC itself would wait for 120 s.
DEFAULT_HANDSHAKE_SECONDS: Final = 10.0
#: 0: a connection may live for ever.
DEFAULT_MAX_CONNECTION_AGE_SECONDS: Final = 0.0
#: Kubernetes kills after 30 s; this leaves time to stop.
DEFAULT_GRACE_SECONDS: Final = 20.0
DEFAULT_STREAM_GRACE_SECONDS: Final = 20.0
#: Requests up to this size are computed on the event loop (docs/performance.md).
DEFAULT_INLINE_MAX_BYTES: Final = 16 * 1024
#: 0: one for each core, shared out among the workers.
DEFAULT_WORK_THREADS: Final = 0
#: 1: under load each core has a call of its own, and more threads would only take turns.
DEFAULT_THREADS_PER_CALL: Final = 1
#: 0: one for each core.
DEFAULT_WORKERS: Final = 0


def _known_built_ins(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in list_encodings():
            raise ValueError(f"{name!r} is not built in; these are: {', '.join(list_encodings())}")
    return names


class Settings(CallerSettings):
    """The server's settings.

    Attributes have the names that flags (`--max-ids`), variables (`BYTEPAIR_MAX_IDS`) and the
    file (`max_ids = …`) use.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    grpc_address: Annotated[str, AfterValidator(checked_grpc_address)] = Field(
        default=DEFAULT_GRPC_ADDRESS,
        description="Where gRPC is served: host:port, or unix:/path. Port 0: any free one.",
    )
    http_address: Annotated[str, AfterValidator(checked_http_address)] = Field(
        default=DEFAULT_HTTP_ADDRESS,
        description="Where /metrics, /healthz and /readyz are served: host:port, or none.",
    )
    transport: Literal["auto", "native", "grpcio"] = Field(
        default="auto",
        description="The HTTP transport: native (gRPC, Connect with JSON, and gRPC-Web on one "
        "port) or grpcio (only gRPC, slower; run it behind a proxy). auto: native, except on a "
        "Unix socket or where native is not built.",
    )
    cors_origins: Annotated[Names, AfterValidator(checked_origins)] = Field(
        default=(),
        description="Origins of web pages that may call, separated by commas; * for any. "
        "Native transport only.",
    )
    playground: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Serve a page that shows tokens at the root of grpc_address. auto: on, unless "
        "API keys or client certificates are required. Native transport only.",
    )
    reflection: bool = Field(
        default=False, description="Answer gRPC server reflection, for tools such as grpcurl."
    )
    builtin_encodings: Annotated[Names, AfterValidator(_known_built_ins)] = Field(
        default=tuple(list_encodings()),
        description="Built-in encodings to load, separated by commas. "
        "Encodings of your own are [encodings.<name>] tables of the file.",
    )
    serve_without_bad_encodings: bool = Field(
        default=False,
        description="Start without the encodings that cannot be loaded or fail their self-test. "
        "Off: the server does not start.",
    )
    allow_reference_backend: bool = Field(
        default=False,
        description="Serve with the pure-Python engine if the compiled one is missing: "
        "same ids, about a hundred times slower.",
    )
    max_input_bytes: Whole = Field(
        default=DEFAULT_MAX_INPUT_BYTES,
        ge=1,
        le=1_000_000_000,
        description="Maximum UTF-8 bytes of text in one call.",
    )
    max_ids: Whole = Field(
        default=DEFAULT_MAX_IDS,
        ge=1,
        le=200_000_000,
        description="Maximum token ids in one Decode call.",
    )
    max_batch_items: Positive = Field(
        default=DEFAULT_MAX_BATCH_ITEMS,
        description="Maximum items in one batch call.",
    )
    max_segments: Positive = Field(
        default=DEFAULT_MAX_SEGMENTS,
        description="Maximum segments in one call, over all of its items.",
    )
    max_chunks: Whole = Field(
        default=DEFAULT_MAX_CHUNKS,
        ge=1,
        le=1 << 24,
        description="Maximum chunks in one answer of Split.",
    )
    max_allowed_special: Positive = Field(
        default=DEFAULT_MAX_ALLOWED_SPECIAL,
        description="Maximum entries of allowed_special.",
    )
    max_in_flight: Positive = Field(
        default=DEFAULT_MAX_IN_FLIGHT,
        description="Maximum calls larger than inline_max_bytes that are being read, computed or "
        "waiting for a thread. Further calls are queued before their messages are read.",
    )
    max_queued: Natural = Field(
        default=DEFAULT_MAX_QUEUED,
        description="Maximum calls queued for admission. When the queue is full, the newest call "
        "of the caller with the most queued calls is rejected with OVERLOADED.",
    )
    max_queue_seconds: Period = Field(
        default=DEFAULT_MAX_QUEUE_SECONDS,
        description="Longest time that a call is queued, at most half of the time to its deadline. "
        "Then it is rejected with OVERLOADED. 0: no queue.",
    )
    max_in_flight_bytes: MemoryBytes = Field(
        default=DEFAULT_MAX_IN_FLIGHT_BYTES,
        description="Maximum bytes of all calls that max_in_flight counts. Further calls are "
        "queued.",
    )
    max_open_streams: Positive = Field(
        default=DEFAULT_MAX_OPEN_STREAMS,
        description="Maximum streams open at once. Further ones are rejected with OVERLOADED.",
    )
    stream_idle_seconds: Seconds = Field(
        default=DEFAULT_STREAM_IDLE_SECONDS,
        ge=0,
        le=1e6,
        description="Time without a message after which a stream ends with STREAM_IDLE. 0: never.",
    )
    max_stop_strings: Whole = Field(
        default=DEFAULT_MAX_STOP_STRINGS,
        ge=0,
        le=1 << 16,
        description="Maximum stop strings of one DecodeStream.",
    )
    max_stop_bytes: Natural = Field(
        default=DEFAULT_MAX_STOP_BYTES,
        description="Maximum UTF-8 bytes of all stop strings of one DecodeStream.",
    )
    max_pending_bytes: Whole = Field(
        default=DEFAULT_MAX_PENDING_BYTES,
        ge=1,
        le=1 << 30,
        description="Maximum bytes of text that one stream holds until it can be split.",
    )
    max_streams_bytes: MemoryBytes = Field(
        default=DEFAULT_MAX_STREAMS_BYTES,
        description="Maximum bytes held by all streams that hold more than inline_max_bytes. A "
        "stream that would exceed it fails with OVERLOADED.",
    )
    max_metadata_bytes: Whole = Field(
        default=DEFAULT_MAX_METADATA_BYTES,
        ge=1024,
        le=1 << 20,
        description="Maximum bytes of the metadata of one call: names, values, and 32 for each.",
    )
    max_concurrent_streams: Positive = Field(
        default=DEFAULT_MAX_CONCURRENT_STREAMS,
        description="Maximum calls at once on one connection. Further ones wait in the client.",
    )
    max_connections: Positive = Field(
        default=DEFAULT_MAX_CONNECTIONS,
        description="Maximum connections at once. Further ones are closed unread.",
    )
    max_connections_per_address: Natural = Field(
        default=DEFAULT_MAX_CONNECTIONS_PER_ADDRESS,
        description="Maximum connections at once from one IP address. 0: only max_connections "
        "counts. Native transport only.",
    )
    max_buffered_bytes: MemoryBytes = Field(
        default=DEFAULT_MAX_BUFFERED_BYTES,
        description="Maximum bytes of incomplete messages and unread answers of all connections. "
        "Beyond it the connection with the most is closed. Native transport only.",
    )
    max_abandoned_per_second: Natural = Field(
        default=DEFAULT_MAX_ABANDONED_PER_SECOND,
        description="Maximum calls of one connection in a second that are cancelled or have no "
        "valid credentials. A connection with more is closed. 0: no limit. Native transport only.",
    )
    handshake_seconds: Seconds = Field(
        default=DEFAULT_HANDSHAKE_SECONDS,
        ge=0.1,
        le=3600,
        description="Time for a new connection to complete the TLS handshake and start HTTP.",
    )
    max_connection_age_seconds: Seconds = Field(
        default=DEFAULT_MAX_CONNECTION_AGE_SECONDS,
        ge=0,
        le=1e6,
        description="Age at which a client is asked to reconnect, for balancing. 0: never.",
    )
    grace_seconds: Period = Field(
        default=DEFAULT_GRACE_SECONDS,
        description="Time for running unary calls to finish after SIGTERM.",
    )
    stream_grace_seconds: Period = Field(
        default=DEFAULT_STREAM_GRACE_SECONDS,
        description="Time for open streams to end after SIGTERM.",
    )
    inline_max_bytes: Natural = Field(
        default=DEFAULT_INLINE_MAX_BYTES,
        description="Requests up to this size are computed on the event loop, larger ones on a "
        "thread. With one thread, counts up to eight times this size are tried on the loop first.",
    )
    work_threads: Whole = Field(
        default=DEFAULT_WORK_THREADS,
        ge=0,
        le=1024,
        description="Threads for large requests in each worker. 0: its share of the cores.",
    )
    workers: Whole = Field(
        default=DEFAULT_WORKERS,
        ge=0,
        le=1024,
        description="Processes that answer calls, behind one port. 0: one for each usable core, "
        "but 1 on a Unix socket or where ports cannot be shared.",
    )
    pin_workers: bool = Field(
        default=True,
        description="Pin each worker to a core, if there are as many workers as cores.",
    )
    threads_per_call: Whole = Field(
        default=DEFAULT_THREADS_PER_CALL,
        ge=0,
        le=MAX_THREADS,
        description="Threads that one call with a text of 512 KiB or more may use. 0: all cores.",
    )
    cache_bytes: Whole = Field(
        default=DEFAULT_CACHE_BYTES,
        ge=0,
        le=MAX_CACHE_BYTES,
        description="Bytes of memory for each encoding's cache of pre-tokens. 0: no cache.",
    )
    log_format: Literal["json", "console"] = Field(
        default="json",
        description="Format of log lines on stderr: for machines (json) or people (console).",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The lowest level that is logged."
    )
    log_calls: Literal["debug", "info"] = Field(
        default="debug", description="The level of the line that is logged for each call."
    )
    encodings: Mapping[str, Mapping[str, Any]] = Field(
        default_factory=dict, description="Encodings of your own, by name. Only in the file."
    )
    chat_formats: tuple[ChatFormatTable, ...] = Field(
        default=(),
        description="Chat templates of your own: [[chat_formats]] tables of the file.",
    )
    aliases: Mapping[str, str] = Field(
        default_factory=dict,
        description="Further names of loaded encodings: alias = canonical name; * in an alias "
        "matches any characters. Only in the file.",
    )
    flagged_tokens: Mapping[str, tuple[int, ...]] = Field(
        default_factory=dict,
        description="Token ids that Inspect reports, by encoding. Only in the file.",
    )

    @property
    def max_message_bytes(self) -> int:
        """The largest message that gRPC accepts.

        Follows from the limits on content, with as much again for framing, segments and
        names, so that an input over its limit is usually refused by name (INPUT_TOO_LARGE) and
        not by gRPC. An id is at most five bytes on the wire.
        """
        return 2 * max(self.max_input_bytes, 5 * self.max_ids) + 64 * 1024


#: Tables, which neither flags nor variables can hold.
FILE_ONLY: Final = frozenset(
    {"aliases", "chat_formats", "flagged_tokens", "encodings", "callers", "ceiling", "quotas"}
)
