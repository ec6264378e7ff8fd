"""What waits to be sent on one stream: put in as it comes, taken out as large as it has grown.

A request is made when the sender is free, of all that waits by then. So what arrives while a
request is on its way goes together, and nothing ever waits for more to come.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from operator import index
from typing import Generic, TypeVar

from bytepair.v1 import stream_pb2
from google.protobuf.message import Message

from bytepair_client._ids import MAX_TOKEN_ID, unknown_id
from bytepair_client._text import lone_surrogate

Part = TypeVar("Part")
TextRequest = type[stream_pb2.EncodeStreamRequest] | type[stream_pb2.CountStreamRequest]


class Outbox(ABC, Generic[Part]):
    """The requests of one stream. It is not safe for threads, but `parts` may run beside all else.

    The first request holds the configuration, and whatever else waits when it is taken.

    Attributes:
        max_request: The most that one request holds, in bytes of text or in ids; at least 1.
        taken: How much has been taken so far, in the same unit.
    """

    def __init__(self, max_request: int) -> None:
        self.max_request = max_request
        self.taken = 0
        self._given = 0

    @abstractmethod
    def parts(self, item: object) -> Iterator[Part]:
        """Cut one thing that the source gave into parts for `put`.

        Raises:
            TokenizerError: It cannot be sent; the parts before the fault were given.
            TypeError: It is nothing that can be streamed.
        """

    @abstractmethod
    def put(self, part: Part) -> None:
        """Let a part wait."""

    @abstractmethod
    def take(self) -> bytes:
        """The next request, of as much as fits; empty only for an outbox that is."""

    @property
    @abstractmethod
    def is_full(self) -> bool:
        """Whether a request's worth waits, so that the source should too."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is nothing to take."""


class IdsOutbox(Outbox[list[int]]):
    """Ids, or lists of them, on their way to DecodeStream."""

    def __init__(self, config: stream_pb2.DecodeStreamConfig, max_request_ids: int) -> None:
        """Hold nothing but the configuration.

        Args:
            config: For the first request.
            max_request_ids: Of ids in one request, at least 1.
        """
        super().__init__(max_request_ids)
        self._request = stream_pb2.DecodeStreamRequest(config=config)
        self._is_first = True

    def parts(self, item: object) -> Iterator[list[int]]:
        numbers, fault = _numbers(item, self._given)
        self._given += len(numbers)
        for start in range(0, len(numbers), self.max_request):
            yield numbers[start : start + self.max_request]
        if fault is not None:
            raise fault

    def put(self, part: list[int]) -> None:
        self._request.ids.extend(part)

    def take(self) -> bytes:
        request, self._request = self._request, stream_pb2.DecodeStreamRequest()
        self._is_first = False
        if len(request.ids) > self.max_request:
            self._request.ids.extend(request.ids[self.max_request :])
            del request.ids[self.max_request :]
        self.taken += len(request.ids)
        return request.SerializeToString()

    @property
    def is_full(self) -> bool:
        return len(self._request.ids) >= self.max_request

    @property
    def is_empty(self) -> bool:
        return not self._is_first and not self._request.ids


class TextOutbox(Outbox[bytes]):
    """Text on its way to EncodeStream or CountStream, as UTF-8 cut anywhere."""

    def __init__(self, first: Message, request: TextRequest, max_request_bytes: int) -> None:
        """Hold nothing but the first request.

        Args:
            first: With the configuration.
            request: The type of all requests.
            max_request_bytes: Of text in one, at least 1.
        """
        super().__init__(max_request_bytes)
        self._first: Message | None = first
        self._type = request
        self._waiting: deque[bytes] = deque()
        self._size = 0

    def parts(self, item: object) -> Iterator[bytes]:
        step = self.max_request
        if isinstance(item, str):
            for start in range(0, len(item), step):
                characters = item[start : start + step]
                try:
                    data = characters.encode()
                except UnicodeEncodeError as error:
                    raise lone_surrogate(characters, error.start, self._given) from None
                self._given += len(data)
                yield from _slices(data, step)
        elif isinstance(item, bytes | bytearray | memoryview):
            data = bytes(item)
            self._given += len(data)
            yield from _slices(data, step)
        else:
            raise TypeError(f"piece: str or bytes, not {type(item).__name__}")

    def put(self, part: bytes) -> None:
        self._waiting.append(part)
        self._size += len(part)

    def take(self) -> bytes:
        request = self._first or self._type()
        self._first = None
        together: list[bytes] = []
        size = 0
        while self._waiting and size + len(self._waiting[0]) <= self.max_request:
            part = self._waiting.popleft()
            together.append(part)
            size += len(part)
        self._size -= size
        self.taken += size
        if together:
            request.data = b"".join(together)  # type: ignore[attr-defined]  # of both types
        return request.SerializeToString()

    @property
    def is_full(self) -> bool:
        return self._size >= self.max_request

    @property
    def is_empty(self) -> bool:
        return self._first is None and not self._waiting


def _slices(data: bytes, step: int) -> Iterator[bytes]:
    if len(data) <= step:
        if data:
            yield data
        return
    for start in range(0, len(data), step):
        yield data[start : start + step]


def _flat(item: object) -> Iterator[int]:
    try:
        yield index(item)  # type: ignore[arg-type]  # TypeError says whether it can
        return
    except TypeError:
        if not isinstance(item, Iterable):
            raise
    for element in item:
        if isinstance(element, list | tuple):
            yield from map(index, element)
        else:
            yield index(element)


def _numbers(item: object, given: int) -> tuple[list[int], Exception | None]:
    """The ids that `item` is or holds, before the first that is none; what is wrong with it.

    Args:
        item: An id, or an iterable of ids and lists of ids.
        given: How many ids came before.
    """
    numbers: list[int] = []
    try:
        for token_id in _flat(item):
            if not 0 <= token_id <= MAX_TOKEN_ID:
                return numbers, unknown_id(token_id, given + len(numbers))
            numbers.append(token_id)
    except TypeError:
        return numbers, TypeError("ids: integers, or lists of integers")
    return numbers, None
