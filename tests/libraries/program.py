"""Counts and splits texts through libraries that use tiktoken, and prints JSON.

With `tests/support/as_tiktoken` on PYTHONPATH, the libraries use `bytepair_engine.tiktoken`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tiktoken

MODELS = ("gpt-4o", "gpt-3.5-turbo", "text-davinci-003")


def langchain(text: str) -> Iterator[Any]:
    """Return chunks by tokens and by characters, for two ways of selecting an encoding."""
    from langchain_text_splitters import CharacterTextSplitter, TokenTextSplitter

    for splitter in (
        TokenTextSplitter(encoding_name="o200k_base", chunk_size=20, chunk_overlap=5),
        TokenTextSplitter(
            model_name="gpt-4", chunk_size=13, chunk_overlap=0, disallowed_special=()
        ),
        CharacterTextSplitter.from_tiktoken_encoder(
            model_name="gpt-4o", separator=" ", chunk_size=30, chunk_overlap=3
        ),
    ):
        yield attempt(splitter.split_text, text)


def llama_index(text: str) -> Iterator[Any]:
    """Return the tokens of the global tokenizer, chunks, and the counts of a callback."""
    from llama_index.core.callbacks import TokenCountingHandler
    from llama_index.core.node_parser import SentenceSplitter, TokenTextSplitter
    from llama_index.core.utils import get_tokenizer

    yield attempt(get_tokenizer(), text)
    yield attempt(SentenceSplitter(chunk_size=64, chunk_overlap=8).split_text, text)
    yield attempt(TokenTextSplitter(chunk_size=32, chunk_overlap=4).split_text, text)
    for model in MODELS:
        tokenizer = tiktoken.encoding_for_model(model).encode
        handler = TokenCountingHandler(tokenizer=tokenizer)
        yield attempt(handler._token_counter.get_string_tokens, text)


def litellm(text: str) -> Iterator[Any]:
    """Return counts of texts, messages and tools, and a round trip."""
    from litellm import decode, encode, token_counter

    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    tools = [
        {
            "type": "function",
            "function": {
                "name": "look_up",
                "description": text,
                "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
            },
        }
    ]
    for model in MODELS:
        yield attempt(token_counter, model, text=text)
        yield attempt(token_counter, model, messages=messages, tools=tools)
        ids = attempt(encode, model, text=text)
        yield ids
        if isinstance(ids, list):
            yield attempt(decode, model, tokens=ids)


def attempt(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Return the result of a function, or the type of its exception."""
    try:
        return function(*arguments, **named)
    except ValueError as error:
        return type(error).__name__


def main() -> None:
    """Read texts as JSON from standard input, and print the results of the libraries."""
    texts = json.load(sys.stdin)
    found = {
        each.__name__: [list(each(text)) for text in texts]
        for each in (langchain, llama_index, litellm)
    }
    json.dump({"tiktoken": tiktoken.Encoding.__module__, **found}, sys.stdout)


if __name__ == "__main__":
    main()
