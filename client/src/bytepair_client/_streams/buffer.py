"""The send buffer of a stream: it groups pending input into requests, and keeps unsettled input.

A request is made when the sender is ready, from all pending input. So items that arrive while a
request is being sent share the next one, and no item waits for more to arrive.

Input is settled when the output for it is final, whatever follows. Sent input is kept until it is
settled. If the connection breaks, `rewind` makes the kept input pending again, and `read` then
drops the output that the caller already has.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from google.protobuf.message import Message

from bytepair_client._errors import TokenizerError

#: Maximum number of full requests of input to keep: more than can be without a response, so only
#: output that never settles, such as an endless partial match of a stop string, exceeds it.
MAX_KEPT_REQUESTS: Final = 8

_log = logging.getLogger("bytepair_client")

Part = TypeVar("Part", "list[int]", bytearray)


class SendBuffer(ABC, Generic[Part]):
    """The requests of one stream. Not safe for threads, except that `parts` may run concurrently.

    The first request holds the configuration and all input that is pending then.

    Attributes:
        max_request: Maximum size of a request, in bytes of text or in ids; at least 1.
        sent: The size of the input sent so far, in the same unit.
        can_rewind: Whether the stream can resume over another connection.
    """

    def __init__(self, max_request: int, empty: Callable[[], Part]) -> None:
        self.max_request = max_request
        self.sent = 0
        self.can_rewind = True
        self._given = 0  # the size of the input that `parts` has cut
        self._pending: Part = empty()
        self._kept: Part = empty()  # sent since the last settled position
        self._settled = 0  # that position
        self._settles = True  # whether responses arrive before the end
        self._base = 0  # the position at which this connection started
        self._needs_config = True

    @abstractmethod
    def parts(self, item: object) -> Iterator[Part]:
        """Cut one item of the source into parts for `put`. If the item is invalid, raises the error
        after the valid parts."""

    def put(self, part: Part) -> None:
        """Add a part to the pending input."""
        self._pending += part

    @property
    def is_full(self) -> bool:
        """Whether a full request is pending, so the source must wait."""
        return len(self._pending) >= self.max_request

    @property
    def is_empty(self) -> bool:
        """Whether there is no request to take."""
        return not self._needs_config and not self._pending

    def take(self) -> bytes:
        """The next request, with as much input as fits."""
        size = 0 if self._needs_config and self._config_goes_alone else self.max_request
        part = self._pending[:size]
        del self._pending[:size]
        self.sent += len(part)
        if self.can_rewind:
            self._kept += part
            if len(self._kept) > MAX_KEPT_REQUESTS * self.max_request:
                self._keep_no_more()
        request = self._request(part, with_config=self._needs_config)
        self._needs_config = False
        return request.SerializeToString()

    @property
    def _config_goes_alone(self) -> bool:
        """Whether the first request holds only the configuration."""
        return False

    @abstractmethod
    def _request(self, part: Part, *, with_config: bool) -> Message:
        """The request that holds a part."""

    @abstractmethod
    def read(self, response: Any) -> bool:
        """Process a response: correct its positions and drop repeated output.

        Returns False if it is an extra response, which the server sends before it fails the stream.
        Such a response is valid only if the stream does not resume; `release` processes it then.
        """

    def release(self, response: Any) -> None:
        """Process a response for which `read` returned False."""
        del response

    def rewind(self, first: Any) -> None:
        """Make all input since the last settled position pending again. `can_rewind` must be true.

        Args:
            first: The first response, whose encoding the next connection must have; None if there
                was none.
        """
        self._pending[:0] = self._kept
        self.sent -= len(self._kept)
        self._kept.clear()
        self._base = self._settled
        self._needs_config = True
        if first is not None:
            self._pin(first)

    @abstractmethod
    def _pin(self, first: Any) -> None:
        """Copy the encoding and fingerprint of the first response to the configuration."""

    def restart(self) -> None:
        """Drop all input, before the source is read again from its start."""
        self._pending.clear()
        self._kept.clear()
        self.sent = self._given = self._settled = self._base = 0
        self._needs_config = self.can_rewind = True

    @abstractmethod
    def correct(self, failure: TokenizerError) -> None:
        """Change the position in an error to that in the whole stream."""

    def _settle(self, position: int) -> Part:
        """Drop the kept input before a position. Returns it."""
        count = position - self._settled
        settled = self._kept[:count]
        del self._kept[:count]
        self._settled = position
        return settled

    def _keep_no_more(self) -> None:
        self.can_rewind = False
        self._kept.clear()
        if not self._settles:
            return  # there is one response, at the end: the stream restarts, if at all
        _log.warning(
            "a stream can no longer be resumed if its connection breaks: more than %d bytes or "
            "ids are pending",
            MAX_KEPT_REQUESTS * self.max_request,
        )


def shift(failure: TokenizerError, name: str, by: int) -> None:
    """Add `by` to a position in the metadata and the message of an error, `name` being "index" or
    "byte_offset"."""
    value = failure.metadata.get(name, "")
    if by and value.isdecimal():
        failure.metadata[name] = str(int(value) + by)
        where = f"at {name.partition('_')[0]} "  # other numbers may have the same digits
        failure.message = failure.message.replace(where + value, where + failure.metadata[name], 1)
