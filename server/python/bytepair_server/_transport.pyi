"""The compiled part of the server: the native transport, for `transport/native.py`, and functions
for fields of messages, for `rpc/wire.py`."""

from collections.abc import Sequence
from typing import Any, Self, final

from typing_extensions import disjoint_base

from bytepair_server.transport.interface import Status
from bytepair_server.transport.interface import Trailers as Pairs

__all__ = [
    "BROKEN",
    "CANCELLED",
    "CLOSED",
    "END",
    "ENDED",
    "MESSAGE",
    "OPENED",
    "WRITABLE",
    "Call",
    "Transport",
    "count_varints",
    "take_field",
    "take_named_texts",
]

OPENED: int
MESSAGE: int
END: int
BROKEN: int
CANCELLED: int
WRITABLE: int
ENDED: int
CLOSED: int

def count_varints(packed: bytes) -> int:
    """Return the number of varints in the content of a packed field; 0 for b""."""

def take_field(
    message: bytes, number: int, inner: int | None = None
) -> tuple[bytes, list[bytes]] | None:
    """Extract a length-delimited field from a protobuf message.

    Args:
        message: The message.
        number: The field's number.
        inner: For a field of messages: the number of the only field that each of them has.
    Returns:
        The message without the field, and each value of the field, or of `inner`. None if the
        message is malformed or not simple: protobuf must parse it.
    """

def take_named_texts(
    message: bytes, number: int
) -> tuple[bytes, list[tuple[str, bytes | None]]] | None:
    """Extract a field of messages that each have a name and a text: a string in field 1, and
    optionally a message in field 2 that has only a string in field 1.

    Args:
        message: The message.
        number: The field's number.
    Returns:
        The message without the field; and for each message of the field, its name and the UTF-8 of
        its text, which is None if it has none. None if one has anything else, or if the message is
        malformed.
    """

@disjoint_base
class Call:
    """A call that has arrived, and the commands for it."""

    def __new__(cls, call: Call) -> Self: ...
    @property
    def method(self) -> int: ...
    @property
    def peer(self) -> str: ...
    @property
    def certificate(self) -> bytes | None: ...
    @property
    def query(self) -> str | None: ...
    @property
    def is_json(self) -> bool: ...
    @property
    def message(self) -> bytes | None: ...
    @property
    def size(self) -> int: ...
    @property
    def is_excess(self) -> bool: ...
    @property
    def is_over(self) -> bool: ...
    def has_room(self, size: int) -> bool: ...
    def time_remaining(self) -> float | None: ...
    def header(self, name: str) -> str | None: ...
    def headers(self) -> list[tuple[str, bytes]]: ...
    def request(self, count: int = 1) -> None: ...
    def answer(self, message: bytes, trailers: Pairs = ..., headers: Pairs = ...) -> None: ...
    def fail(self, status: Status, trailers: Pairs = ..., headers: Pairs = ...) -> None: ...
    def start(self, trailers: Pairs, headers: Pairs) -> None: ...
    def send(self, message: bytes) -> bool: ...
    def finish(self) -> None: ...

@final
class Transport:
    """The transport of one process."""

    def __new__(
        cls,
        methods: Sequence[tuple[str, str, bool, bool]],
        files: Sequence[tuple[str, Sequence[tuple[str, str]], bytes]],
        wake_fd: int,
        tls: tuple[bytes, bytes, bytes | None] | None,
        **settings: Any,
    ) -> Transport: ...
    @property
    def connections(self) -> int: ...
    @property
    def held_bytes(self) -> int: ...
    def start(self, listener_fd: int, is_unix: bool) -> None: ...
    def drain(self) -> None: ...
    def close_connections(self) -> None: ...
    def stop(self) -> None: ...
    def replace_tls(self, tls: tuple[bytes, bytes, bytes | None]) -> None: ...
    def take(self, most: int) -> tuple[list[tuple[int, int, Any]], bool]: ...
    def flush(self) -> None: ...
    def fail(self, number: int) -> None: ...
