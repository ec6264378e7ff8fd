"""Calls made at one time, and what comes of each: for the tests of the coalescing client."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bytepair.v1 import tokenizer_pb2
from bytepair_client import (
    TokenizerClient,
    TokenizerError,
)
from bytepair_client.options import SERVICE

from support.scripted import Answer

SINGLE, BATCH = f"/{SERVICE}/Count", f"/{SERVICE}/BatchCount"
Act = Callable[[TokenizerClient], Any]


def outcome(act: Act, client: TokenizerClient) -> Any:
    """What comes of a call: its value, or its error as it can be compared."""
    try:
        return act(client)
    except TokenizerError as error:
        has_id = error.request_id is not None
        return type(error), error.code, error.reason, error.metadata, str(error), error.item, has_id


def together(client: TokenizerClient, *acts: Act) -> list[Any]:
    """What comes of calls that are made at one time."""
    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(lambda act: outcome(act, client), acts))


def counts(*numbers: int) -> Answer:
    """An answer of BatchCount."""
    results = [tokenizer_pb2.CountResult(count=number) for number in numbers]
    answer = tokenizer_pb2.BatchCountResponse(results=results).SerializeToString()
    return lambda context: answer


def count(client: TokenizerClient) -> int:
    """Make the call that is to be joined with others of its kind."""
    return client.count("text")


def noting(seen: list[Any], method: Callable[..., Any]) -> Callable[..., Any]:
    """`method`, which notes in `seen` what it was called with, once it has returned."""

    def note(*arguments: Any) -> Any:
        result = method(*arguments)
        seen.append(arguments)
        return result

    return note
