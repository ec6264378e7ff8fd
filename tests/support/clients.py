"""Both clients behind one interface, so that every test of the client runs on either."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack
from functools import wraps
from typing import Any, Self, cast

from bytepair_client import AsyncStream, AsyncTokenizerClient, TokenizerClient


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, awaitable: Any) -> Any:
        """The result of something awaitable, awaited in the loop."""

        async def wait() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(wait(), self.loop).result()

    def close(self) -> None:
        """Stop the loop and its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class _Blocking:
    """An object whose coroutine methods are called like ordinary ones."""

    def __init__(self, real: Any, loop: Loop) -> None:
        self._real = real
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        if name == "with_raw_response":
            return _Blocking(value, self._loop)
        if not inspect.isroutine(value):
            return value

        @wraps(value)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = value(*args, **kwargs)
            if isinstance(result, AsyncStream):
                return _BlockingStream(result, self._loop)
            return self._loop.run(result)

        return call


class _BlockingStream:
    """A stream of asyncio that is read like an ordinary one."""

    def __init__(self, real: AsyncStream[Any, Any], loop: Loop) -> None:
        self._real = real
        self._loop = loop

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        piece = self._loop.run(anext(self._real, None))
        if piece is None:
            raise StopIteration
        return piece

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def last(self) -> Any:
        return self._real.last

    def close(self) -> None:
        self._loop.run(self._real.aclose())


async def _in_thread(source: Iterable[Any]) -> AsyncIterator[Any]:
    end = object()
    iterator = iter(source)
    while (item := await asyncio.to_thread(next, iterator, end)) is not end:
        yield item


class Clients:
    """Makes clients of one kind, and closes them."""

    def __init__(self, kind: str, stack: ExitStack) -> None:
        """Make clients of this kind, "threads" or "asyncio", for as long as the stack lives."""
        self.kind = kind
        self._stack = stack
        self._make: Callable[..., TokenizerClient] = TokenizerClient
        if kind == "asyncio":
            loop = Loop()
            stack.callback(loop.close)
            self._make = lambda *args, **kwargs: cast(
                TokenizerClient, _Blocking(AsyncTokenizerClient(*args, **kwargs), loop)
            )

    def __call__(self, *args: Any, **kwargs: Any) -> TokenizerClient:
        """A client: TokenizerClient, or something that is called like one."""
        client = self._make(*args, **kwargs)
        self._stack.callback(client.close)
        return client

    def source(self, items: Iterable[Any]) -> Any:
        """`items` as a source of streams that may wait for something between two of them."""
        return _in_thread(items) if self.kind == "asyncio" else items
