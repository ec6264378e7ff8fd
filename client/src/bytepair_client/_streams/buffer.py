"""The send buffer of a stream: messages grow while they wait, and are kept until settled.

A request is made when the sender is free, of all that waits by then. So items that arrive while a
message is being sent go together in the next one, and nothing ever waits for more to come.

What was sent is kept until the server has settled it: until the output so far depends on nothing
that may still come. If the connection breaks, `rewind` lets another connection be sent the rest
from there, and `read` drops the output that the first one had already given.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from google.protobuf.message import Message

from bytepair_client._errors import TokenizerError

#: Requests of full size that are kept for another connection: more than can be unanswered, so
#: that only output which never settles, such as an endless match of a stop string, exceeds it.
MAX_KEPT_REQUESTS: Final = 8

_log = logging.getLogger("bytepair_client")

Part = TypeVar("Part", "list[int]", bytearray)


class SendBuffer(ABC, Generic[Part]):
    """The requests of one stream. Not safe for threads, but `parts` may run beside all else.

    The first request holds the configuration, and everything else that waits when it is made.

    Attributes:
        max_request: The most that one request holds, in bytes of text or in ids; at least 1.
        sent: How much of the source was sent so far, in the same unit.
        can_rewind: Whether enough was kept to continue on another connection.
    """

    def __init__(self, max_request: int, empty: Callable[[], Part]) -> None:
        self.max_request = max_request
        self.sent = 0
        self.can_rewind = True
        self._given = 0  # by the source
        self._waiting: Part = empty()
        self._kept: Part = empty()  # what was sent since the last settled point
        self._settled = 0  # where that point is
        self._settles = True  # whether answers come before the end
        self._base = 0  # where this connection's own counting starts
        self._needs_config = True

    @abstractmethod
    def parts(self, item: object) -> Iterator[Part]:
        """Cut one item of the source into parts for `put`. Raises what is wrong with it, after the
        parts before the fault."""

    def put(self, part: Part) -> None:
        """Let a part wait."""
        self._waiting += part

    @property
    def is_full(self) -> bool:
        """Whether a request's worth waits, so that the source should wait too."""
        return len(self._waiting) >= self.max_request

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to take."""
        return not self._needs_config and not self._waiting

    def take(self) -> bytes:
        """The next request, of as much as fits; only the configuration if nothing waits."""
        size = 0 if self._needs_config and self._config_goes_alone else self.max_request
        part = self._waiting[:size]
        del self._waiting[:size]
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
        """Whether the first request holds nothing but the configuration."""
        return False

    @abstractmethod
    def _request(self, part: Part, *, with_config: bool) -> Message:
        """The message that sends a part."""

    @abstractmethod
    def read(self, answer: Any) -> bool:
        """Note an answer, and make it what the source's stream would have got.

        Returns whether it is the answer to a request. One that is not was sent because the stream
        fails: it is left as it is, for `release`, and is void if the stream is continued.
        """

    def release(self, answer: Any) -> None:
        """Make an answer for which `read` returned False what the caller is to get."""
        del answer

    def rewind(self, first: Any) -> None:
        """Let all since the last settled point be sent again; `can_rewind` must hold. The others
        must have the encoding of the `first` answer, if there was one."""
        self._waiting[:0] = self._kept
        self.sent -= len(self._kept)
        self._kept.clear()
        self._base = self._settled
        self._needs_config = True
        if first is not None:
            self._pin(first)

    @abstractmethod
    def _pin(self, first: Any) -> None:
        """Put what the first answer says of the encoding into the configuration."""

    def restart(self) -> None:
        """Forget all that was sent and waits: the source is read again from its start."""
        self._waiting.clear()
        self._kept.clear()
        self.sent = self._given = self._settled = self._base = 0
        self._needs_config = self.can_rewind = True

    @abstractmethod
    def correct(self, failure: TokenizerError) -> None:
        """Make the position that an error names one of the whole stream."""

    def _settle(self, position: int) -> Part:
        """Forget what was kept before a position. Returns what was forgotten."""
        count = position - self._settled
        settled = self._kept[:count]
        del self._kept[:count]
        self._settled = position
        return settled

    def _keep_no_more(self) -> None:
        self.can_rewind = False
        self._kept.clear()
        if not self._settles:
            return  # the answer comes at the end: there is nothing to continue from
        _log.warning(
            "a stream can no longer be resumed if its connection breaks: more than %d bytes or "
            "ids are pending",
            MAX_KEPT_REQUESTS * self.max_request,
        )


def shift(failure: TokenizerError, name: str, by: int) -> None:
    """Add to a position that an error names, in its facts and in its message."""
    value = failure.metadata.get(name, "")
    if by and value.isdecimal():
        failure.metadata[name] = str(int(value) + by)
        failure.message = failure.message.replace(value, failure.metadata[name], 1)
