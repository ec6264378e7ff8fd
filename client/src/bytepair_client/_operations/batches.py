"""Batches of any size, sent in concurrent requests within the server's limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from time import monotonic
from typing import Any, Final, NamedTuple, TypedDict, TypeVar, cast

from bytepair.v1 import chat_pb2, context_pb2, text_pb2, tokenizer_pb2

from bytepair_client import _errors as errors
from bytepair_client._arguments import (
    NOT_GIVEN,
    Defaults,
    Segments,
    Text,
    Timeout,
    checked_iterable,
    chosen_timeout,
    set_text,
)
from bytepair_client._call import Call, Method, Plain, Prepared, Response
from bytepair_client._operations.requests import AllTextOptions, copied, has_more_bytes
from bytepair_client._status import from_item, to_item

#: Maximum number of items in a request: the server's default of `max_batch_items`.
MAX_ITEMS: Final = 1024
#: The errors of a single item.
OF_ONE_ITEM: Final = (
    errors.BudgetTooSmall,
    errors.EstimateNotAllowed,
    errors.InputTooLarge,
    errors.InvalidChat,
    errors.InvalidUtf8,
    errors.SpecialTokenInText,
    errors.TemplateLimit,
    errors.UnknownTokenId,
)

Progress = Callable[[int], object]
Value = TypeVar("Value")
BatchResult = (
    tokenizer_pb2.EncodeResult
    | tokenizer_pb2.DecodeResult
    | tokenizer_pb2.CountResult
    | chat_pb2.CountChatResult
    | context_pb2.TruncateResult
)


class BatchOptions(TypedDict, total=False):
    """Options of every batch; `encode_batch` describes them."""

    progress: Progress | None


class TextBatchOptions(AllTextOptions, BatchOptions, total=False):
    """Options of a batch of texts."""


class Item(NamedTuple):
    """One item of a batch."""

    value: Any  # can be read again
    message: Any  # incomplete if `size` is too large for a request; an error if it is invalid
    size: int  # bytes of text, or BYTES_PER_ID for each id


class Batch(Prepared[Response, list[Plain]]):
    """A batch. It can be run once."""

    def __init__(
        self,
        method: Method[Response, Plain],
        operation: Callable[..., Call[Any, Plain]],
        empty: object,
        name: str,
        values: Iterable[Value],
        measured: Callable[[Value, str], Item],
        defaults: Defaults,
        *,
        return_exceptions: bool = False,
        progress: Progress | None = None,
        timeout: Timeout = NOT_GIVEN,
        **options: Any,
    ) -> None:
        """Send nothing yet. `encode_batch` describes the public arguments.

        `operation` makes the call for the value of an item, given `options` and a `timeout`;
        `empty` is such a value without content. `name` is the argument that `values` is.
        `measured` returns the item of a value, whose message is incomplete if the size exceeds the
        client's `max_unary_bytes`. It raises RequestRejected if the value is invalid, and
        TypeError, with the given name of the value, if it is of a wrong type.
        """
        self._method = method
        self._operation = partial(operation, **options)
        self._options = copied(self._operation(empty).request, method.request())
        self._name, self._values = name, checked_iterable(name, values)
        self._measured = measured
        self._timeout = chosen_timeout(defaults.timeout, timeout)
        has_deadline = timeout is not NOT_GIVEN and self._timeout is not None
        self._until = monotonic() + (self._timeout or 0) if has_deadline else None
        self._return_exceptions = return_exceptions
        self._raises = not return_exceptions  # the first error of an item
        if not callable(progress) and progress is not None:
            raise TypeError(f"progress must be callable, not {type(progress).__name__}")
        self._progress = progress
        self._max_bytes = defaults.max_unary_bytes
        self._max_items = MAX_ITEMS
        self._named: Any = method.parse(b"")  # a response that names the encoding
        self._outcomes: list[Any] = []  # the result or error of each item

    async def response(self, client: Any) -> Response:
        self._raises = False
        await self._run(client)
        response: Any = copied(self._named, self._method.parse(b""))
        response.ClearField("results")
        for outcome in self._outcomes:
            if isinstance(outcome, errors.TokenizerError):
                response.results.add(error=to_item(outcome))
            else:
                response.results.append(outcome)
        return cast(Response, response)

    async def value(self, client: Any) -> list[Plain]:
        await self._run(client)
        return [
            cast(Plain, self._error(index, outcome)) or self._method.plain(outcome)
            for index, outcome in enumerate(self._outcomes)
        ]

    async def _run(self, client: Any) -> None:
        """Send all items and collect the outcomes."""
        try:
            await client._run_all(partial(self._send_or_fail, client), self._chunks(), self._take)
        except errors.TokenizerError as failure:
            if failure.item is None and self._outcomes:
                failure.add_note(f"{len(self._outcomes)} items of the batch were done before this.")
            raise

    def _chunks(self) -> Iterator[list[Item]]:
        """The items of each request; one empty list if there are no items."""
        chunk: list[Item] = []
        size = 0
        is_first = True
        for index, value in enumerate(self._values):
            try:
                item = self._measured(value, f"{self._name}[{index}]")
            except errors.RequestRejected as error:
                error.item = index
                if self._raises:
                    raise  # before the items around it are sent
                item = Item(None, error, self._max_bytes + 1)
            is_full = len(chunk) >= self._max_items or size + item.size > self._max_bytes
            if chunk and is_full:
                yield chunk
                chunk, size, is_first = [], 0, False
            chunk.append(item)
            size += item.size
        if chunk or is_first:
            yield chunk

    def _take(self, outcomes: list[Any]) -> None:
        """Add the outcomes of the next chunk."""
        if self._raises:
            for index, outcome in enumerate(outcomes, len(self._outcomes)):
                error = self._error(index, outcome)
                if error is not None:
                    raise error
        self._outcomes += outcomes
        if self._progress is not None:
            self._progress(len(self._outcomes))

    def _error(self, index: int, outcome: Any) -> errors.TokenizerError | None:
        if not isinstance(outcome, errors.TokenizerError):
            error = error_of(outcome, index)
            outcome = self._method.problem(outcome) if error is None else error
        if isinstance(outcome, OF_ONE_ITEM):
            outcome.item = index
        return cast(errors.TokenizerError | None, outcome)

    async def _send_or_fail(self, client: Any, chunk: list[Item]) -> list[Any]:
        try:
            return await self._send(client, chunk)
        except errors.TokenizerError as failure:
            if isinstance(failure, errors.DeadlineExceeded) and self._until is not None:
                failure.message = f"the batch took more than {self._timeout:g} s"
            # A rejected request or a closed client would fail all other requests too.
            if not self._return_exceptions or failure.code is None:
                raise
            if isinstance(failure, errors.RequestRejected):
                raise
            return [failure] * len(chunk)

    async def _send(self, client: Any, chunk: list[Item]) -> list[Any]:
        """Send one chunk, in smaller requests if it exceeds the server's limits. Returns the result
        or error of each item."""
        if len(chunk) == 1 and chunk[0].size > self._max_bytes:
            return await self._send_alone(client, chunk[0])
        request = self._method.request()
        request.CopyFrom(self._options)
        request.items.extend(item.message for item in chunk)
        try:
            response = await client._unary(self._method, request, self._seconds_left())
        except (errors.InputTooLarge, errors.ResourceExhausted) as rejection:
            if not chunk or "size" not in rejection.metadata:
                raise  # not because of its size
            self._learn(rejection)
        else:
            if len(response.results) != len(chunk):
                raise errors.InternalError(
                    f"{len(response.results)} results for {len(chunk)} items", code="INTERNAL"
                )
            self._named = response
            return list(response.results)
        if len(chunk) == 1:
            return await self._send_alone(client, chunk[0])
        half = len(chunk) // 2
        return await self._send(client, chunk[:half]) + await self._send(client, chunk[half:])

    async def _send_alone(self, client: Any, item: Item) -> list[Any]:
        if isinstance(item.message, errors.TokenizerError):
            return [item.message]
        timeout = NOT_GIVEN if self._until is None else self._seconds_left()
        call = self._operation(item.value, timeout=timeout)
        try:
            response = await call.response(client)
        except OF_ONE_ITEM as rejection:
            return [rejection]
        self._named = response
        whole: Any = self._method.parse(b"")
        return [copied(response, whole.results.add())]

    def _learn(self, rejection: errors.TokenizerError) -> None:
        """Apply the server's limits to later requests."""
        field, limit = rejection.metadata.get("field"), rejection.metadata.get("limit", "")
        if limit.isdecimal() and field == "items":
            self._max_items = max(1, min(self._max_items, int(limit)))
        elif limit.isdecimal() and field in ("items.text", "items.messages"):
            self._max_bytes = max(1, min(self._max_bytes, int(limit)))

    def _seconds_left(self) -> float | None:
        return self._timeout if self._until is None else max(0.001, self._until - monotonic())


def text_batch(
    method: Method[Response, Plain],
    operation: Callable[..., Call[Any, Plain]],
    defaults: Defaults,
    texts: Iterable[Text],
    **options: Any,
) -> Batch[Response, Plain]:
    """A batch of texts. Raises TypeError for one text, whose characters would be the items."""
    if isinstance(texts, Segments):
        raise TypeError("texts must be an iterable of texts, not one text")

    def measured(text: Text, name: str) -> Item:
        message = text_pb2.TextItem()
        if isinstance(text, str) and has_more_bytes(text, defaults.max_unary_bytes):
            return Item(text, message, defaults.max_unary_bytes + 1)
        set_text(message, text, name)
        return Item(text, message, message.ByteSize())

    one = partial(operation, defaults)
    return Batch(method, one, "", "texts", texts, measured, defaults, **options)


def error_of(result: BatchResult, item: int | None = None) -> errors.TokenizerError | None:
    """Convert the error of a batch result to an exception, without raising it.

    Args:
        result: A result in a batch response of `client.with_raw_response`.
        item: The index for the exception's `item`.
    Returns:
        The exception; None if the item succeeded.
    """
    if not isinstance(result, BatchResult):
        raise TypeError(f"result must be that of a batch, not {type(result).__name__}")
    return from_item(result.error, item) if result.HasField("error") else None
