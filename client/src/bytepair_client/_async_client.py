"""The client for asyncio. `client/twin.py` makes `_client.py` of this file."""

from __future__ import annotations

from typing import Self

from bytepair_client._async_io import (
    AsyncClientIO,
    AsyncRawIO,
    plain,
    raw,
    raw_stream,
    stream,
)
from bytepair_client._operations import (
    chats,
    context,
    decoding,
    describing,
    encoding,
    streaming,
)


class AsyncTokenizerClient(AsyncClientIO):
    """A client of the tokenizer service, for the many tasks of one event loop.

    It belongs to the loop in which its first call is made.

        async with AsyncTokenizerClient("localhost:50051", encoding="o200k_base") as client:
            ids = await client.encode("Hello, world")

    Every method returns the plain value: ids, a text, a number. Those whose names end in `_stream`
    send what an iterable gives, asynchronous or not, as it gives it; `decode_stream`,
    `encode_stream` and `split_stream` return an asynchronous iterator at once. What fails raises a
    TokenizerError; each method names the kinds that are its own.
    """

    encode = plain(encoding.encode)
    encode_with_offsets = plain(encoding.encode_with_offsets)
    encode_batch = plain(encoding.encode_batch)
    encode_stream = stream(streaming.encode_stream)
    decode = plain(decoding.decode)
    decode_bytes = plain(decoding.decode_bytes)
    decode_batch = plain(decoding.decode_batch)
    decode_stream = stream(streaming.decode_stream)
    count = plain(encoding.count)
    count_batch = plain(encoding.count_batch)
    count_stream = plain(streaming.count_stream)
    count_chat = plain(chats.count_chat)
    count_chat_batch = plain(chats.count_chat_batch)
    encode_chat = plain(chats.encode_chat)
    fit_chat = plain(chats.fit_chat)
    list_chat_formats = plain(describing.list_chat_formats)
    get_chat_format = plain(describing.get_chat_format)
    truncate = plain(context.truncate)
    truncate_batch = plain(context.truncate_batch)
    split = plain(context.split)
    split_stream = stream(context.split_stream)
    inspect = plain(context.inspect)
    list_encodings = plain(describing.list_encodings)
    get_encoding = plain(describing.get_encoding)
    get_token = plain(describing.get_token)
    health = plain(describing.health)

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

    encode = raw(encoding.encode)
    encode_with_offsets = raw(encoding.encode_with_offsets)
    encode_batch = raw(encoding.encode_batch)
    encode_stream = raw_stream(streaming.encode_stream)
    decode = raw(decoding.decode)
    decode_bytes = raw(decoding.decode_bytes)
    decode_batch = raw(decoding.decode_batch)
    decode_stream = raw_stream(streaming.decode_stream)
    count = raw(encoding.count)
    count_batch = raw(encoding.count_batch)
    count_stream = raw(streaming.count_stream)
    count_chat = raw(chats.count_chat)
    count_chat_batch = raw(chats.count_chat_batch)
    encode_chat = raw(chats.encode_chat)
    fit_chat = raw(chats.fit_chat)
    list_chat_formats = raw(describing.list_chat_formats)
    get_chat_format = raw(describing.get_chat_format)
    truncate = raw(context.truncate)
    truncate_batch = raw(context.truncate_batch)
    split = raw(context.split)
    split_stream = raw_stream(context.split_stream)
    inspect = raw(context.inspect)
    list_encodings = raw(describing.list_encodings)
    get_encoding = raw(describing.get_encoding)
    get_token = raw(describing.get_token)
