"""The base of both streams: every decision between the call for a piece and the piece."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Generic, TypeVar, cast

from google.protobuf.message import Message

from bytepair_client._call import StreamCall
from bytepair_client._errors import TokenizerError
from bytepair_client._retries import Attempts

Response = TypeVar("Response", bound=Message)
Plain = TypeVar("Plain")


class BaseStream(ABC, Generic[Response, Plain]):
    """Everything about a stream but its input and output."""

    def __init__(self, client: Any, call: StreamCall[Response, Plain], requests: Any) -> None:
        """Start nothing yet. `requests` sends them, and has the StreamState as `state`."""
        self._client = client
        self._method = call.method
        self._timeout = call.timeout
        self._source: Any = call.source
        self._requests = requests
        self._attempts: Attempts = client._attempts(call.timeout)
        self._gives_lists = call.gives_lists
        self._ready: deque[Plain] = deque()  # what is given next
        self._failure: TokenizerError | None = None  # which comes after what was released

    @property
    def last(self) -> Response:
        """The last answer that was read: the message of `bytepair.v1`, with the encoding and
        its fingerprint. An empty message before the first piece."""
        last: Response = self._requests.state.last
        return last

    @abstractmethod
    async def _begin(self, source: Any) -> None:
        """Begin the first attempt, and read the source."""

    @abstractmethod
    async def _answer(self, call: Any) -> Response | None:
        """The next answer of a call; None after the last. Raises TokenizerError."""

    @abstractmethod
    async def _resume(self, seconds: float) -> bool:
        """Wait, and go on over another connection. Returns False if the stream was closed
        meanwhile."""

    async def _next(self) -> Plain | None:
        """The next piece; None after the last."""
        requests = self._requests
        try:
            if self._source is not None:
                source, self._source = self._source, None
                await self._begin(source)
            while not self._ready and (call := requests.call) is not None:
                piece = await self._read(call)
                if piece and self._gives_lists:
                    self._ready.extend(cast(Any, piece))
                elif piece:
                    self._ready.append(piece)
        except BaseException:
            requests.stop(cancel=True)
            raise
        return self._ready.popleft() if self._ready else None

    async def _read(self, call: Any) -> Plain | None:
        """The piece of the next answer; None at the end, which drops the call, and if the stream
        goes on over another connection."""
        requests = self._requests
        requests.raise_failure()
        if self._failure is not None:
            raise self._failure
        try:
            response = await self._answer(call)
        except TokenizerError as failure:
            requests.raise_failure()  # for which the call was cancelled
            return await self._continue(failure)
        if response is None:
            requests.stop(cancel=False)
            return None
        piece: Plain | None = requests.read(response)
        if requests.state.advanced:
            self._attempts.progressed()
        return piece

    async def _continue(self, failure: TokenizerError) -> Plain | None:
        """Go on over another connection, or fail: after the piece that came with the failure."""
        state = self._requests.state
        seconds = self._attempts.wait(failure)
        if seconds is not None and state.can_continue and await self._resume(seconds):
            return None
        piece: Plain | None = state.released()
        await self._client._explain(failure)
        self._failure = state.explain(failure)
        return piece
