"""Client and engine give the same counts and ids, whatever special tokens a text contains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bytepair_engine
import pytest
from bytepair_client import SpecialTokenInText, TokenizerClient
from hypothesis import given, settings
from hypothesis import strategies as st
from support.serving import RunningServer, write_config

pytestmark = pytest.mark.slow

END, PROMPT = "<|endoftext|>", "<|endofprompt|>"
texts = st.lists(st.sampled_from([END, PROMPT, "<|", "a", " b", "|>", "\u00e9", "\n"])).map("".join)
allowed = st.sampled_from([frozenset(), frozenset({END}), frozenset({END, PROMPT}), "all"])
#: None: the default, which must be the same too.
disallowed = st.sampled_from([None, (), "all"])


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenizerClient]:
    config = 'builtin_encodings = ["cl100k_base"]\n[ceiling.default]\ncl100k_base = "ALL"'
    path = write_config(tmp_path_factory.mktemp("agreement"), config)
    with (
        RunningServer("--config", path) as server,
        TokenizerClient(server.target, encoding="cl100k_base") as client,
    ):
        yield client


def outcome(call: Any, *arguments: Any, **options: Any) -> Any:
    """The result of a call, or the special token that it rejects and its byte offset."""
    try:
        return call(*arguments, **options)
    except (SpecialTokenInText, bytepair_engine.SpecialTokenFound) as error:
        return error.token, error.byte_offset


@settings(max_examples=200)
@given(texts, allowed, disallowed)
def test_the_engine_and_the_client_agree(
    client: TokenizerClient, text: str, allowed: Any, disallowed: Any
) -> None:
    engine = bytepair_engine.get_encoding("cl100k_base")
    options = {"allowed_special": allowed}
    if disallowed is not None:
        options["disallowed_special"] = disallowed
    assert outcome(client.count, text, **options) == outcome(engine.count, text, **options)
    assert outcome(client.encode, text, **options) == outcome(engine.encode, text, **options)
    pieces = [text[:3], text[3:]]
    assert outcome(client.count_stream, pieces, **options) == outcome(engine.count, text, **options)
    if allowed == "all" or disallowed != "all":
        batch = [text, "x"]
        assert client.count_batch(batch, **options) == engine.count_batch(batch, **options)
