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
from contextlib import suppress
from typing import Final, Literal, TextIO, cast

import structlog

Log = structlog.typing.FilteringBoundLogger
Format = Literal["json", "console"]

#: Frames of an exception that are logged: the first and the last.
MOST_FRAMES: Final = 20
#: The end of a line that is too long for a pipe.
_CUT: Final = "…\n".encode()
_LEVELS: Final = logging.getLevelNamesMapping()
#: It logs each field of headers that is no text, with a traceback: of 600 bytes 170 KB.
_GRPC: Final = "grpc._cython.cygrpc"


def configure(
    log_format: Format, level: str, stream: TextIO = sys.stderr, worker: int | None = None
) -> Log:
    """Make the server's logger, and send what libraries log (gRPC does) the same way.

    Args:
        log_format: "json": one object a line; "console": for people.
        level: The lowest level that is logged; of libraries, warnings and errors.
        stream: Where lines go.
        worker: The number of this process among several, which every line names; None for a
            process of its own.
    Returns:
        The logger, bound to no values.
    """
    threshold = _LEVELS[level.upper()]
    unfailing = _Unfailing(stream)
    shared: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        unfailing.tell_lost,
    ]
    if worker is not None:
        shared.append(_Worker(worker))
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=stream.isatty())
    )
    handler = logging.StreamHandler(unfailing)
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
    logging.raiseExceptions = False  # or a line that fails is quoted on stderr
    log: Log = structlog.wrap_logger(
        structlog.WriteLogger(cast(TextIO, unfailing)),
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        cache_logger_on_first_use=True,
    )
    return log


class _Unfailing(io.TextIOBase):
    """A stream whose lines are lost where they cannot be written: on a full disk, in a pipe that is
    full as its reader does not read, or once that is gone. No call fails or waits, and no server
    ends, for want of a log. For any thread."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: Final = stream
        self._lock: Final = threading.Lock()
        self._room: Final = select.poll() if hasattr(select, "poll") else None
        self._lost = 0
        self._most = sys.maxsize
        self._descriptor: int | None = None
        with suppress(OSError):  # it is no file
            self._descriptor = stream.fileno()
        if self._descriptor is None or self._room is None:
            return
        self._room.register(self._descriptor, select.POLLOUT)
        mode = os.fstat(self._descriptor).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            # A pipe that poll calls writable takes this much at once (POSIX). Only if several
            # processes write at the same time may one of them still wait.
            self._most = select.PIPE_BUF

    def tell_lost(
        self, _: object, __: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        """Say in a line how many were lost before it."""
        if self._lost:
            event["lines_lost"] = self._lost
        return event

    def write(self, text: str) -> int:
        with self._lock, suppress(OSError, ValueError):
            self._lost += 1
            if self._descriptor is None:
                self._stream.write(text)
            elif self._room is None or self._room.poll(0):
                # Past the stream's buffer, which would keep what cannot be written.
                os.write(self._descriptor, _cut(text.encode(errors="backslashreplace"), self._most))
            else:
                return len(text)
            self._lost = 0
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()

    def close(self) -> None:
        """Leave the stream open: its owner closes it."""


def _cut(line: bytes, most: int) -> bytes:
    return line if len(line) <= most else line[: most - len(_CUT)] + _CUT


class _Worker:
    """Names the process in each line."""

    def __init__(self, number: int) -> None:
        self._number: Final = number

    def __call__(
        self, _: object, __: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        event["worker"] = self._number
        return event


def _without_messages(
    _: object, __: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Drop what a library's line was filled in with, and its traceback's messages: both may quote
    what it worked on, as gRPC does of metadata that are not text, an API key among them."""
    record = event["_record"]
    said = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
    # asyncio formats its lines itself: after a bracket, and from the second line on.
    event["event"] = said.split("\n")[0].split("(")[0] if record.name == "asyncio" else said
    if record.exc_info:
        event["error"] = frames(record.exc_info[1])
        record.exc_info = None
        event.pop("exc_info", None)
    return event


def frames(error: BaseException | None) -> list[str]:
    """An exception as types and places, its causes first.

    Its message is left out on purpose: it may quote the input (as that of a KeyError does).
    """
    lines: list[str] = []
    while error is not None:
        places = traceback.extract_tb(error.__traceback__)
        chain = [f"{place.filename}:{place.lineno} in {place.name}" for place in places]
        if len(chain) > MOST_FRAMES:
            left_out = len(chain) - MOST_FRAMES
            half = MOST_FRAMES // 2
            chain[half:-half] = [f"… {left_out} more"]
        lines = [*chain, type(error).__qualname__, *lines]
        error = error.__cause__ or error.__context__
    return lines
