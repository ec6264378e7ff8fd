"""Structured logs, as JSON lines or for people. No line ever holds input text."""

from __future__ import annotations

import io
import logging
import os
import select
import stat
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final, Literal, TextIO, cast

import structlog

Log = structlog.typing.FilteringBoundLogger
Format = Literal["json", "console"]

#: Time between two lines of the same kind, where many may be due.
WARNING_SECONDS: Final = 60.0
#: Denied calls of one caller, for one reason, that are logged in this time.
MAX_DENIALS: Final = 100
#: Frames of an exception that are logged: the first and the last.
MAX_FRAMES: Final = 20
#: In a line that is too long for a pipe: characters of a string and items of a list, the first and
#: the last.
MAX_CUT_CHARACTERS: Final = 200
MAX_CUT_ITEMS: Final = 8
#: Replaces the end of a line that is no JSON and too long for a pipe.
_CUT: Final = "…\n".encode()
_LEVELS: Final = logging.getLevelNamesMapping()
#: This logger of gRPC writes a traceback for each header that is not text: 170 KB for a header
#: of 600 bytes.
_GRPC: Final = "grpc._cython.cygrpc"


def configure(
    log_format: Format, level: str, stream: TextIO = sys.stderr, worker: int | None = None
) -> Log:
    """Make the server's logger, which also writes what libraries such as gRPC log.

    Args:
        log_format: "json": one object a line; "console": for people.
        level: The lowest level that is logged. Of libraries, only warnings and errors are.
        stream: The stream that lines are written to.
        worker: The number of this worker, added to every line; None for a single process.
    Returns:
        The logger, bound to no values.
    """
    threshold = _LEVELS[level.upper()]
    lines = LossyStream(stream)
    shared: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if worker is not None:
        shared.append(lambda _, __, event: {**event, "worker": worker})
    renderer: structlog.typing.Processor = (
        _json_renderer(lines)
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=stream.isatty())
    )
    handler = logging.StreamHandler(lines)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _without_messages],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(threshold, logging.WARNING))
    logging.getLogger(_GRPC).setLevel(logging.CRITICAL)
    logging.raiseExceptions = False  # or stderr would quote a line that fails
    log: Log = structlog.wrap_logger(
        structlog.WriteLogger(cast(TextIO, lines)),
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        cache_logger_on_first_use=True,
    )
    return log


class Occasional:
    """Limits how often lines of a kind are logged: `most` of them in WARNING_SECONDS."""

    def __init__(self, most: int = 1) -> None:
        self._most: Final = most
        #: By kind: when the first of the last lines was due, and how many more may be logged.
        self._logged: Final[dict[str, tuple[float, int]]] = {}

    def is_due(self, kind: str) -> bool:
        """Whether the caller may log a line of this kind now. The kinds must be few: each is
        remembered."""
        return self.lines_left(kind) > 0

    def lines_left(self, kind: str) -> int:
        """The same, as the number of lines until WARNING_SECONDS are over, this one included."""
        now = monotonic()
        since, left = self._logged.get(kind, (now, self._most))
        if now - since >= WARNING_SECONDS:
            since, left = now, self._most
        self._logged[kind] = (since, max(0, left - 1))
        return left


class Denials:
    """The log of denied calls. Anyone can cause them, so it is limited for each caller and reason:
    no caller can fill the disk, or hide the calls of another one."""

    def __init__(self, log: Log) -> None:
        self._log: Final = log
        self._lines: Final = Occasional(MAX_DENIALS)

    def write(self, *, reason: str, caller: str = "", **fields: object) -> None:
        """Log a denied call, or leave it out."""
        left = self._lines.lines_left(f"{reason} {caller}")
        if left == 1:
            fields["hint"] = "the next ones of this caller and reason are left out for a minute"
        if left:
            self._log.warning("denied", reason=reason, caller=caller, **fields)


def count_lost_lines(count: Callable[[], None]) -> None:
    """Call `count` for each line that this process loses from now on."""
    global _on_lost_line
    _on_lost_line = count


def _on_lost_line() -> None:
    """Replaced by `count_lost_lines`."""


class LossyStream(io.TextIOBase):
    """A stream that drops a line that cannot be written: the disk is full, or the pipe is full or
    closed. A call never waits or fails because of a log line. Thread-safe.

    Attributes:
        max_bytes: Longer lines are cut.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream: Final = stream
        self._lock: Final = threading.Lock()
        self._poll: Final = select.poll()
        self.max_bytes = sys.maxsize
        self._descriptor: int | None = None
        with suppress(OSError):  # not a file
            self._descriptor = stream.fileno()
        if self._descriptor is None:
            return
        self._poll.register(self._descriptor, select.POLLOUT)
        mode = os.fstat(self._descriptor).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            # A pipe that poll reports as writable takes this much at once (POSIX). A write can
            # still block if several processes write at the same time.
            self.max_bytes = select.PIPE_BUF

    def write(self, text: str) -> int:
        with self._lock:
            if not self._is_written(text):
                _on_lost_line()
        return len(text)

    def _is_written(self, text: str) -> bool:
        with suppress(OSError, ValueError):
            if self._descriptor is None:
                self._stream.write(text)
                return True
            if self._poll.poll(0):
                # Not through the stream's buffer, which would keep a line that cannot be written.
                line = text.encode(errors="backslashreplace")
                if len(line) > self.max_bytes:
                    line = line[: self.max_bytes - len(_CUT)] + _CUT
                os.write(self._descriptor, line)
                return True
        return False

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()

    def close(self) -> None:
        """Leave the stream open: its owner closes it."""


def _json_renderer(lines: LossyStream) -> structlog.typing.Processor:
    """Render lines as JSON. One that the stream would cut has short values and `"cut": true`, and
    if that is still too long, only those that every line has."""
    render = structlog.processors.JSONRenderer()

    def rendered(
        logger: structlog.typing.WrappedLogger, method: str, event: structlog.typing.EventDict
    ) -> str | bytes:
        line = render(logger, method, event)
        for names in (event, ("event", "level", "timestamp")):
            if len(line) < lines.max_bytes:  # it is ASCII, and a line feed follows
                break
            short = {name: _short(event[name]) for name in names}
            line = render(logger, method, {**short, "cut": True})
        return line

    return rendered


def _short(value: object) -> object:
    if isinstance(value, str):
        return value if len(value) <= MAX_CUT_CHARACTERS else f"{value[:MAX_CUT_CHARACTERS]}…"
    if isinstance(value, list | tuple):
        ends = MAX_CUT_ITEMS // 2
        if len(value) > MAX_CUT_ITEMS:
            value = [*value[:ends], f"… {len(value) - 2 * ends} more", *value[-ends:]]
        return [_short(item) for item in value]
    return value


def _without_messages(
    _: object, __: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Drop the arguments of a library's log line and the messages of its traceback. Both may quote
    a request: gRPC quotes metadata that are not text, such as an API key."""
    record = event["_record"]
    message = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
    # asyncio puts arguments after a bracket and on further lines.
    event["event"] = message.split("\n")[0].split("(")[0] if record.name == "asyncio" else message
    event["logger"] = record.name  # the message alone seldom names the library
    if record.exc_info:
        event["error"] = frames(record.exc_info[1])
        record.exc_info = None
        event.pop("exc_info", None)
    return event


def frames(error: BaseException | None) -> list[str]:
    """An exception as types and lines of code, its causes first.

    Its message is left out on purpose: it may quote the input (as that of a KeyError does).
    """
    lines: list[str] = []
    while error is not None:
        stack = traceback.extract_tb(error.__traceback__)
        chain = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in stack]
        if len(chain) > MAX_FRAMES:
            left_out = len(chain) - MAX_FRAMES
            half = MAX_FRAMES // 2
            chain[half:-half] = [f"… {left_out} more"]
        lines = [*chain, type(error).__qualname__, *lines]
        error = error.__cause__ or error.__context__
    return lines
