"""The policy applies to every RPC, every special token and every form of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import bytepair_engine
import pytest
from bytepair.v1 import text_pb2, tokenizer_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from support.every_rpc import Place, call, places
from support.oracle import oracle
from support.serving import RunningServer
from support.streaming import EncodeRequest, answers_of, encode_config

NAMES = bytepair_engine.list_encodings()
END, END_ID = "<|endoftext|>", 100257
AS_TEXT = text_pb2.DISALLOWED_SPECIAL_AS_TEXT
REJECT = text_pb2.DISALLOWED_SPECIAL_REJECT
MAX_ITEMS = 1024

TEXT_PLACES = list(places())


def test_the_text_fields_of_the_api_are_the_listed_ones() -> None:
    """If this fails, a field was added or renamed. The tests below cover it automatically, unless
    its RPC needs more fields to answer at all."""
    assert {str(place) for place in TEXT_PLACES} >= {
        *("Encode:text", "Encode:segments.text", "Count:text", "Count:segments.text"),
        *("BatchEncode:items.text", "BatchEncode:items.segments.text"),
        *("BatchCount:items.text", "BatchCount:items.segments.text"),
        *("EncodeStream:text", "EncodeStream:data", "CountStream:text", "CountStream:data"),
    }


@pytest.mark.parametrize("place", TEXT_PLACES, ids=str)
def test_the_policy_applies_in_every_rpc_with_text(server: RunningServer, place: Place) -> None:
    """The test finds RPCs by reflection, including future ones. The server's ceiling is empty."""

    def answer(**options: Any) -> Any:
        return call(server.channel, place, f"a {END}", encoding="cl100k_base", **options)

    assert answer(disallowed_special=REJECT).reason == "SPECIAL_TOKEN_IN_TEXT"
    assert answer(allowed_special=[END]).reason == "SPECIAL_TOKEN_NOT_PERMITTED"
    rejected = answer(allowed_special=["ALL"], disallowed_special=REJECT)
    assert rejected.reason == "SPECIAL_TOKEN_IN_TEXT"
    plain = oracle("cl100k_base").encode_ordinary(f"a {END}")
    for allowed in ([], ["ALL"]):
        done = answer(allowed_special=allowed, disallowed_special=AS_TEXT)
        assert done.reason == ""
        fields = set(done.messages[-1].DESCRIPTOR.fields_by_name)
        shown = fields & {"ids", "count", "chunks"}
        assert shown, "say here how this answer shows what text became"
        if "ids" in fields:
            assert [i for message in done.messages for i in message.ids] == plain
        elif "count" in fields:
            assert done.messages[-1].count == len(plain)
        else:
            chunks = [chunk for message in done.messages for chunk in message.chunks]
            assert sum(chunk.count for chunk in chunks) == len(plain)


@pytest.mark.parametrize("place", list(places("special_token")), ids=str)
def test_a_token_by_name_needs_permission_in_every_rpc(server: RunningServer, place: Place) -> None:
    for name in (END, "ALL", "", "<|no_such|>"):
        done = call(server.channel, place, name, encoding="cl100k_base")
        assert done.reason == "SPECIAL_TOKEN_NOT_PERMITTED"


def forms(token: str) -> Iterator[tuple[Sequence[str], bool]]:
    """Generate texts that smuggle in a special token, each as segments and whether one of them
    spells the token."""
    middle = len(token) // 2
    yield [token], True
    yield [f"a{token}b"], True
    yield [token[:middle] + token + token[middle:]], True  # nested: one filter pass would leave one
    yield [token[:-1] + token], True  # overlapping
    yield [token + token], True
    yield [token[:middle], token[middle:]], False  # joined from neighbouring segments
    yield [token[:-1], token[-1:]], False
    yield [token[:-1]], False
    yield [token[1:]], False
    yield [full_width(token)], False
    yield [token.replace("|", "\u200b|")], False
    yield [token[:middle], "", token[middle:]], False


def full_width(text: str) -> str:
    """Return the full-width form of a text, which looks alike."""
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_special_token_of_any_encoding_comes_from_text(server: RunningServer, name: str) -> None:
    special = bytepair_engine.get_encoding(name).special_tokens
    control = frozenset(special.values())
    cases = [(parts, spelt) for token in special for parts, spelt in forms(token)]
    for start in range(0, len(cases), MAX_ITEMS):
        some = cases[start : start + MAX_ITEMS]
        items = [
            text_pb2.TextItem(text=parts[0])
            if len(parts) == 1
            else text_pb2.TextItem(segments=[text_pb2.Segment(text=part) for part in parts])
            for parts, _ in some
        ]
        request = tokenizer_pb2.BatchEncodeRequest(encoding=name, items=items)
        results = server.stub.BatchEncode(request).results
        for (parts, spelt), result in zip(some, results, strict=True):
            # Text cut from one token may spell another.
            found = any(token in part for token in special for part in parts)
            assert found or not spelt
            assert result.error.reason == ("SPECIAL_TOKEN_IN_TEXT" if found else ""), parts
        request.disallowed_special = AS_TEXT
        request.allowed_special[:] = ["ALL"]
        results = server.stub.BatchEncode(request).results
        assert not any(control.intersection(result.ids) for result in results)
        back = tokenizer_pb2.BatchDecodeRequest(
            encoding=name, items=[tokenizer_pb2.IdsItem(ids=result.ids) for result in results]
        )
        texts = [result.text for result in server.stub.BatchDecode(back).results]
        assert texts == ["".join(parts) for parts, _ in some]


@st.composite
def attacks(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Generate an encoding, and text glued from its special tokens, parts of them and other
    text."""
    name = draw(st.sampled_from(NAMES))
    token = st.sampled_from(sorted(bytepair_engine.get_encoding(name).special_tokens))
    cut = st.tuples(token, st.integers(0, 20), st.integers(0, 20)).map(lambda t: t[0][t[1] : -t[2]])
    piece = st.one_of(token, cut, token.map(full_width), st.sampled_from("<|> a\n"), st.text())
    return name, draw(st.lists(piece, max_size=8))


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(attack=attacks())
def test_without_allowed_tokens_no_control_token_is_made_and_text_round_trips(
    server: RunningServer, attack: tuple[str, list[str]]
) -> None:
    name, pieces = attack
    text = "".join(pieces)
    control = frozenset(bytepair_engine.get_encoding(name).special_tokens.values())
    free: dict[str, Any] = {"encoding": name, "disallowed_special": AS_TEXT}
    segments = [text_pb2.Segment(text=piece) for piece in pieces]
    answers, failed = answers_of(
        server.stub.EncodeStream,
        [encode_config(**free), *(EncodeRequest(text=piece) for piece in pieces)],
    )
    assert failed is None
    whole = list(server.stub.Encode(tokenizer_pb2.EncodeRequest(text=text, **free)).ids)
    assert [token_id for answer in answers for token_id in answer.ids] == whole
    assert whole == oracle(name).encode_ordinary(text)
    joined = list(server.stub.Encode(tokenizer_pb2.EncodeRequest(segments=segments, **free)).ids)
    for ids in (whole, joined):
        assert not control.intersection(ids)
        decoded = server.stub.Decode(tokenizer_pb2.DecodeRequest(encoding=name, ids=ids))
        assert decoded.text == text
