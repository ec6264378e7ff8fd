"""The settings: one frozen object, verified once at start.

`loader.py` fills it from flags, variables and a file; `docs/configuration.md` describes it. The
docstring of a field is also its description in `--help` and in errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from bytepair_engine import aliases as published_aliases
from bytepair_engine import list_encodings
from bytepair_engine.resources import DEFAULT_CACHE_BYTES, MAX_CACHE_BYTES, MAX_THREADS
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)

from bytepair_server.config.tables import CallerTable, Ceiling, ChatFormatTable, QuotaTable
from bytepair_server.config.types import (
    NO_ADDRESS,
    STRICT,
    File,
    LongPeriod,
    MemoryBytes,
    Names,
    Natural,
    Period,
    Positive,
    Seconds,
    Switch,
    Whole,
    checked_grpc_address,
    checked_http_address,
    checked_origins,
    overlap,
)

_MODE: Final = re.compile(r"0?[0-7]{3}")


def alias_hint(name: str) -> str:
    """A remedy if `name` is a published alias where a canonical name is required, else ""."""
    canonical = published_aliases().get(name)
    return f"; {name!r} is an alias of {canonical}: write {canonical}" if canonical else ""


def _known_built_ins(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in list_encodings():
            raise ValueError(
                f"{name!r} is not built in; these are: {', '.join(list_encodings())}"
                f"{alias_hint(name)}"
            )
    return names


def _mode(value: str) -> str:
    if not _MODE.fullmatch(value):
        raise ValueError('must be a string of three octal digits, such as "660" or "0660"')
    if not int(value, 8) & 0o222:
        raise ValueError("must permit someone to write: nobody else can connect")
    return value


def largest_message(max_input_bytes: int, max_ids: int) -> int:
    """The bytes of the largest message that gRPC accepts.

    Follows from the limits on content, with as much again for framing, segments and names, so that
    an input over its limit is usually rejected by name (INPUT_TOO_LARGE) and not by gRPC. An id is
    at most five bytes on the wire.
    """
    return 2 * max(max_input_bytes, 5 * max_ids) + 64 * 1024


class Settings(BaseModel):
    """The server's settings.

    Attributes have the names that flags (`--max-ids`), variables (`BYTEPAIR_MAX_IDS`) and the
    file (`max_ids = …`) use. Comments say why a default is what it is.
    """

    model_config = ConfigDict(**STRICT, use_attribute_docstrings=True)

    api_keys_file: File | None = None
    """TOML file of callers and hashes of their API keys, reloaded when it changes. None: no
    keys."""
    tls_cert_file: File | None = None
    """The server's certificate chain (PEM), reloaded when it changes. None: no TLS."""
    tls_key_file: File | None = None
    """The private key of tls_cert_file (PEM), reloaded when it changes."""
    tls_client_ca_file: File | None = None
    """Certificate authorities of clients (PEM), reloaded when it changes. Every client then needs a
    certificate. None: clients need none."""
    health_needs_caller: Switch = False
    """Answer gRPC health only to known callers. Off: probes need no credentials."""
    # The user of the server's process only.
    unix_socket_mode: Annotated[str, AfterValidator(_mode)] = "0600"
    """Octal permissions of the socket's file, in TOML a string, if grpc_address is unix:/path."""
    disallowed_special_floor: Literal["AS_TEXT", "REJECT"] = "AS_TEXT"
    """The least strict disallowed_special that a request may choose. REJECT: special tokens in text
    are always an error; a streamed count that ends at its limit does not see later ones."""
    log_denials: Switch = False
    """Log calls without valid credentials, and special tokens and chat formats that the policy
    denies or rejects: in each worker 100 a minute of each caller and reason. Text is never
    logged."""
    callers: Mapping[str, CallerTable] = Field(default_factory=dict)
    """Groups and client certificates of callers, by caller. Only in the file."""
    ceiling: Mapping[str, Ceiling] = Field(default_factory=dict)
    """Special tokens that requests may allow, by caller or group and by encoding; under formats,
    the chat formats for EncodeChat. Only in the file."""
    quotas: Mapping[str, QuotaTable] = Field(default_factory=dict)
    """Quotas of each caller, by caller or group. Only in the file."""

    grpc_address: Annotated[str, AfterValidator(checked_grpc_address)] = "0.0.0.0:50051"
    """Where gRPC is served: host:port, or unix:/path. Port 0: any free one."""
    http_address: Annotated[
        str, AfterValidator(checked_http_address), Field(validate_default=True)
    ] = "0.0.0.0:9464"
    """Where /metrics, /healthz and /readyz are served: host:port, or none."""
    transport: Literal["auto", "native", "grpcio"] = "auto"
    """The HTTP transport: native (gRPC, Connect with JSON, and gRPC-Web on one port) or grpcio
    (only gRPC, slower; run it behind a proxy). auto: native, except on a Unix socket or where
    native is not built."""
    cors_origins: Annotated[Names, AfterValidator(checked_origins)] = ()
    """Origins of web pages that may call the server, separated by commas; * for any. Native
    transport only."""
    playground: Literal["auto", "on", "off"] = "auto"
    """Serve a page that shows tokens at the root of grpc_address. auto: on, unless API keys or
    client certificates are required. Native transport only."""
    reflection: Switch = False
    """Answer gRPC server reflection, for tools such as grpcurl."""

    builtin_encodings: Annotated[Names, AfterValidator(_known_built_ins)] = tuple(list_encodings())
    """Built-in encodings to load, separated by commas. Encodings of your own are
    [encodings.<name>] tables of the file."""
    serve_without_bad_encodings: Switch = False
    """Start without the encodings that cannot be loaded or fail their self-test. Off: one bad
    encoding prevents the start."""
    allow_reference_backend: Switch = False
    """Serve with the pure-Python engine if the compiled one is missing: same ids, about a hundred
    times slower."""

    # A long book chapter, some 250,000 tokens of English.
    max_input_bytes: Annotated[Whole, Field(ge=1, le=1_000_000_000)] = 1 << 20
    """Maximum UTF-8 bytes of text in one call."""
    # About what `max_input_bytes` of English encodes to. The Python client may send 8 requests of
    # 8192 ids before a stream that it resumes, twice that if `errors` is strict, and 256 more.
    max_ids: Annotated[Whole, Field(ge=1, le=200_000_000)] = 1 << 18
    """Maximum token ids in one Decode call. Streams of the Python client need 131328."""
    max_batch_items: Positive = 1024
    """Maximum items in one batch call."""
    max_segments: Positive = 16_384
    """Maximum segments in one call, over all of its items."""
    # Of 64 bytes each, if `max_input_bytes` are split.
    max_chunks: Annotated[Whole, Field(ge=1, le=1 << 24)] = 16_384
    """Maximum chunks in one answer of Split."""
    # The largest built-in encoding has 1,091 special tokens.
    max_allowed_special: Positive = 2048
    """Maximum entries of allowed_special."""

    max_in_flight: Positive = 256
    """Maximum calls larger than inline_max_bytes that are being read, computed or waiting for a
    thread. Further calls are queued before their messages are read."""
    # Sixteen times those in flight.
    max_queued: Natural = 4096
    """Maximum calls queued for admission. When the queue is full, the newest call of the caller
    with the most queued calls is rejected with OVERLOADED."""
    # One core answers `max_queued` calls of 100 KB in about this time.
    max_queue_seconds: Period = 4.0
    """Longest time that a call is queued, at most half of the time to its deadline. Then the call
    is rejected with OVERLOADED. 0: no queue."""
    # Requests above `inline_max_bytes`: some tenths of a second of one core's work.
    max_in_flight_bytes: MemoryBytes = 64 << 20
    """Maximum bytes of all calls that max_in_flight counts. Further calls are queued."""

    # An idle one costs some 10 KiB (docs/performance.md).
    max_open_streams: Positive = 4096
    """Maximum streams open at once. Further ones are rejected with OVERLOADED."""
    # Longer than models pause between tokens.
    stream_idle_seconds: LongPeriod = 300.0
    """Time without a message after which a stream ends with STREAM_IDLE. 0: never."""
    # The usual API of models takes 4.
    max_stop_strings: Annotated[Whole, Field(ge=0, le=1 << 16)] = 64
    """Maximum stop strings of one DecodeStream."""
    max_stop_bytes: Natural = 4096
    """Maximum UTF-8 bytes of all stop strings of one DecodeStream."""
    # A stream takes every text that one call takes.
    max_pending_bytes: Annotated[Whole, Field(ge=1, le=1 << 30)] = 1 << 20
    """Maximum bytes of text that one stream holds while it waits for a point where the text can be
    split."""
    # What `max_in_flight` calls of `max_input_bytes` may hold.
    max_streams_bytes: Annotated[MemoryBytes, Field(validate_default=True)] = 256 << 20
    """Maximum bytes that all streams hold together. Streams with at most inline_max_bytes are not
    counted. A stream that would exceed it fails with OVERLOADED."""

    # As HTTP/2 counts them (RFC 9113, section 6.5.2).
    max_metadata_bytes: Annotated[Whole, Field(ge=1024, le=1 << 20)] = 16 * 1024
    """Maximum bytes of the metadata of one call: names, values, and 32 for each entry."""
    max_concurrent_streams: Positive = 1024
    """Maximum calls at once on one connection. Further ones wait in the client."""
    # An idle one costs some 16 KiB, and a file descriptor.
    max_connections: Positive = 4096
    """Maximum connections at once. Further ones are closed unread."""
    # Behind a proxy all connections have one address.
    max_connections_per_address: Natural = 0
    """Maximum connections at once from one IP address. 0: only max_connections counts. Native
    transport only."""
    # Four times the requests in flight, as ids take up to four times their text.
    max_buffered_bytes: Annotated[MemoryBytes, Field(validate_default=True)] = 256 << 20
    """Maximum bytes of headers, unprocessed messages and unread answers of all connections. Beyond
    it, the connection that holds the most is closed. Native transport only."""
    # Far above what ordinary clients cancel.
    max_abandoned_per_second: Natural = 1000
    """Maximum calls of one connection in a second that are cancelled or have no valid credentials.
    A connection with more is closed. 0: no limit. Native transport only."""
    # A handshake takes a few round trips; gRPC itself would wait for 120 s.
    handshake_seconds: Annotated[Seconds, Field(ge=0.1, le=3600)] = 10.0
    """Time for a new connection to complete the TLS handshake and start HTTP."""
    max_connection_age_seconds: LongPeriod = 0.0
    """Age of a connection at which its client is asked to reconnect, to balance load. 0: never."""
    # Kubernetes kills after 30 s; this leaves time to stop.
    grace_seconds: Period = 20.0
    """Time for running unary calls to finish after SIGTERM."""
    stream_grace_seconds: Period = 20.0
    """Time for open streams to end after SIGTERM."""

    # docs/performance.md has the costs of both.
    inline_max_bytes: Natural = 16 * 1024
    """Requests up to this size are computed on the event loop, larger ones on a thread. A chat,
    Truncate, Split or Inspect is tried on the loop for 1 ms, then starts again on a thread; with
    one work thread, so does a count of up to eight times this size."""
    work_threads: Annotated[Whole, Field(ge=0, le=1024)] = 0
    """Threads for large requests in each worker. 0: its share of the cores."""
    workers: Annotated[Whole, Field(ge=0, le=1024)] = 0
    """Processes that answer calls, behind one port. 0: one for each usable core, but 1 on a Unix
    socket or where ports cannot be shared."""
    pin_workers: Switch = True
    """Pin each worker to a core, if there are as many workers as cores."""
    # Under load each core has a call of its own, and more threads would only share it.
    threads_per_call: Annotated[Whole, Field(ge=0, le=MAX_THREADS)] = 1
    """Threads that one call with a text of 512 KiB or more may use. 0: all cores."""
    cache_bytes: Annotated[Whole, Field(ge=0, le=MAX_CACHE_BYTES)] = DEFAULT_CACHE_BYTES
    """Bytes of memory for each encoding's cache of pre-tokens. 0: no cache."""

    log_format: Literal["json", "console"] = "json"
    """Format of log lines on stderr: for machines (json) or people (console)."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is logged: debug, info, warning or error."""
    log_calls: Literal["debug", "info"] = "debug"
    """The level of the line that is logged for each call: debug or info."""

    encodings: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    """Encodings of your own, by name; builtin_encodings selects the built-in ones. Only in the
    file."""
    chat_formats: tuple[ChatFormatTable, ...] = ()
    """Chat templates of your own: [[chat_formats]] tables of the file."""
    aliases: Mapping[str, str] = Field(default_factory=dict)
    """Further names of loaded encodings: alias = canonical name; * in an alias matches any
    characters. Only in the file."""
    flagged_tokens: Mapping[str, tuple[Whole, ...]] = Field(default_factory=dict)
    """Token ids that Inspect reports, by encoding. Only in the file."""

    @field_validator("http_address")
    @classmethod
    def _differs_from_grpc_address(cls, address: str, others: ValidationInfo) -> str:
        of_grpc = others.data.get("grpc_address", "unix:")
        if address != NO_ADDRESS and overlap(address, of_grpc):
            raise ValueError(f"must have another port than grpc_address, which is {of_grpc}")
        return address

    @field_validator("max_streams_bytes")
    @classmethod
    def _holds_a_stream(cls, size: int, others: ValidationInfo) -> int:
        if size < others.data.get("max_pending_bytes", 0):
            raise ValueError("must be at least max_pending_bytes, or one stream would exceed it")
        return size

    @field_validator("max_buffered_bytes")
    @classmethod
    def _holds_a_message(cls, size: int, others: ValidationInfo) -> int:
        if others.data.keys() >= {"max_input_bytes", "max_ids"}:
            most = largest_message(others.data["max_input_bytes"], others.data["max_ids"])
            if size < most:
                raise ValueError(
                    f"must be at least {most}: the largest message, which follows from "
                    "max_input_bytes and max_ids"
                )
        return size

    @property
    def max_message_bytes(self) -> int:
        """The largest message that gRPC accepts."""
        return largest_message(self.max_input_bytes, self.max_ids)

    @property
    def needed_descriptors(self) -> int:
        """The file descriptors that a process needs: one for each connection, and a margin for
        files, the HTTP port and its own sockets."""
        return self.max_connections + 128


#: Tables, which neither flags nor variables can hold.
FILE_ONLY: Final = frozenset(
    {"aliases", "chat_formats", "flagged_tokens", "encodings", "callers", "ceiling", "quotas"}
)
