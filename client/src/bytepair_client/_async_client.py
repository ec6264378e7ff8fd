"""The client for asyncio. `client/twin.py` makes `_client.py` of this file."""

from __future__ import annotations

from typing import Self

from bytepair_client import _operations as operations
from bytepair_client._async_io import (
    AsyncClientIO,
    AsyncRawIO,
    plain,
    raw,
    raw_stream,
    stream,
)


class AsyncTokenizerClient(AsyncClientIO):
    """A client of the tokenizer service, for the many tasks of one event loop.

    It belongs to the loop in which its first call is made.

        async with AsyncTokenizerClient("localhost:50051", encoding="o200k_base") as client:
            ids = await client.encode("Hello, world")

    Every method returns the plain value: ids, a text, a number. Those whose names end in `_stream`
    send what an iterable gives, asynchronous or not, as it gives it; `decode_stream`,
    `encode_stream` and `split_stream` return an asynchronous iterator at once.
    """

    encode = plain(operations.encode)
    encode_with_offsets = plain(operations.encode_with_offsets)
    encode_batch = plain(operations.encode_batch)
    encode_stream = stream(operations.encode_stream)
    decode = plain(operations.decode)
    decode_bytes = plain(operations.decode_bytes)
    decode_batch = plain(operations.decode_batch)
    decode_stream = stream(operations.decode_stream)
    count = plain(operations.count)
    count_batch = plain(operations.count_batch)
    count_stream = plain(operations.count_stream)
    count_chat = plain(operations.count_chat)
    count_chat_batch = plain(operations.count_chat_batch)
    encode_chat = plain(operations.encode_chat)
    fit_chat = plain(operations.fit_chat)
    list_chat_formats = plain(operations.list_chat_formats)
    get_chat_format = plain(operations.get_chat_format)
    truncate = plain(operations.truncate)
    truncate_batch = plain(operations.truncate_batch)
    split = plain(operations.split)
    split_stream = stream(operations.split_stream)
    inspect = plain(operations.inspect)
    list_encodings = plain(operations.list_encodings)
    get_encoding = plain(operations.get_encoding)
    get_token = plain(operations.get_token)
    health = plain(operations.health)

    @property
    def with_raw_response(self) -> AsyncRawResponses:
        """The same methods with the same arguments, returning the messages of `bytepair.v1`: with
        the canonical encoding, its fingerprint, and each error of a batch in its place."""
        return AsyncRawResponses(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class AsyncRawResponses(AsyncRawIO):
    """The methods of an AsyncTokenizerClient, answering with the messages of `bytepair.v1`."""

    encode = raw(operations.encode)
    encode_with_offsets = raw(operations.encode_with_offsets)
    encode_batch = raw(operations.encode_batch)
    encode_stream = raw_stream(operations.encode_stream)
    decode = raw(operations.decode)
    decode_bytes = raw(operations.decode_bytes)
    decode_batch = raw(operations.decode_batch)
    decode_stream = raw_stream(operations.decode_stream)
    count = raw(operations.count)
    count_batch = raw(operations.count_batch)
    count_stream = raw(operations.count_stream)
    count_chat = raw(operations.count_chat)
    count_chat_batch = raw(operations.count_chat_batch)
    encode_chat = raw(operations.encode_chat)
    fit_chat = raw(operations.fit_chat)
    list_chat_formats = raw(operations.list_chat_formats)
    get_chat_format = raw(operations.get_chat_format)
    truncate = raw(operations.truncate)
    truncate_batch = raw(operations.truncate_batch)
    split = raw(operations.split)
    split_stream = raw_stream(operations.split_stream)
    inspect = raw(operations.inspect)
    list_encodings = raw(operations.list_encodings)
    get_encoding = raw(operations.get_encoding)
    get_token = raw(operations.get_token)
