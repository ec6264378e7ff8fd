"""EncodeStream and CountStream: ids and counts equal one call's for every cut; limits; errors."""

from __future__ import annotations

import gc
import random
import weakref
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import bytepair_engine
import grpc
import pytest
from bytepair.v1 import context_pb2, stream_pb2, text_pb2, tokenizer_pb2
from bytepair_server.streaming.text import SpecialTokenDetector
from conftest import Serve
from support.failures import Failed, read
from support.hard_text import random_texts
from support.serving import RunningServer, write_config
from support.streaming import (
    CountRequest,
    EncodeRequest,
    Talk,
    answers_of,
    count_config,
    encode_config,
)

Code = grpc.StatusCode
AS_TEXT = text_pb2.DISALLOWED_SPECIAL_AS_TEXT
REJECT = text_pb2.DISALLOWED_SPECIAL_REJECT
END = "<|endoftext|>"

CEILING = """
builtin_encodings = ["cl100k_base"]
[ceiling.default]
cl100k_base = ["<|endoftext|>"]
[encodings.odd]
file = "bytes.tiktoken"
pattern = '[a-z]+|[^a-z]+'
"""


@pytest.fixture(scope="module")
def permissive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose ceiling has <|endoftext|>, with an encoding of a custom pattern."""
    folder = tmp_path_factory.mktemp("server")
    lines = [f"{b64encode(bytes([value])).decode()} {value}\n" for value in range(256)]
    (folder / "bytes.tiktoken").write_text("".join(lines), encoding="utf-8")
    path = write_config(folder, CEILING)
    with RunningServer("--config", path) as running:
        yield running


def pieces_of(rng: random.Random, text: str, kind: Any) -> list[Any]:
    """Split `text` at random into messages of `kind`: whole characters, or bytes cut anywhere."""
    as_bytes = rng.random() < 0.5
    whole: Any = text.encode() if as_bytes else text
    messages, start = [], 0
    while start < len(whole):
        size = rng.choice([0, 1, 1, 2, 3, 7, 40])
        piece = whole[start : start + size]
        messages.append(kind(data=piece) if as_bytes else kind(text=piece))
        start += size
    return messages


def count_stream(server: RunningServer, messages: list[Any]) -> Any:
    """Return the answer, or the error."""
    try:
        return server.stub.CountStream(iter(messages))
    except grpc.RpcError as error:
        return read(error)


@pytest.mark.slow
@pytest.mark.parametrize("name", bytepair_engine.list_encodings())
def test_ids_join_to_those_of_the_whole_text(server: RunningServer, name: str) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    encoding = bytepair_engine.get_encoding(name)
    fingerprint = encoding.fingerprint
    for text in random_texts(rng, encoding.token_byte_values(), 60):
        ids = encoding.encode(text, disallowed_special=())
        pieces = pieces_of(rng, text, EncodeRequest)
        first = encode_config(name, disallowed_special=AS_TEXT)
        answers, failed = answers_of(server.stub.EncodeStream, [first, *pieces])
        assert failed is None
        assert [token_id for answer in answers for token_id in answer.ids] == ids
        assert len(answers) == len(pieces) + 2
        assert [answer.finished for answer in answers] == [False] * (len(pieces) + 1) + [True]
        size, taken = len(text.encode()), 0
        for answer, piece in zip(answers[1:], pieces, strict=False):
            taken += len(piece.data) + len(piece.text.encode())
            assert answer.bytes_consumed + answer.pending_bytes == taken
        assert (answers[-1].bytes_consumed, answers[-1].pending_bytes) == (size, 0)
        assert (answers[0].encoding, answers[0].fingerprint) == (name, fingerprint)
        assert not any(answer.encoding or answer.fingerprint for answer in answers[1:])

        answer = count_stream(server, [count_config(name), *pieces_of(rng, text, CountRequest)])
        assert (answer.count, answer.limit_exceeded) == (len(ids), False)
        assert answer.bytes_consumed == size
        assert (answer.encoding, answer.fingerprint) == (name, fingerprint)


def test_a_text_beyond_the_limits_of_unary_calls_is_counted(server: RunningServer) -> None:
    encoding = bytepair_engine.get_encoding("cl100k_base")
    part = "naïve 日本語 x9 \r\n" * 20_000
    text = part * 8
    assert len(text.encode()) > 3 * 2**20
    messages = [CountRequest(text=part)] * 8
    answer = count_stream(server, [count_config(), *messages])
    assert answer.count == encoding.count(text)
    assert answer.bytes_consumed == len(text.encode())
    data = text.encode()
    cut = [EncodeRequest(data=data[n : n + 999_983]) for n in range(0, len(data), 999_983)]
    answers, failed = answers_of(server.stub.EncodeStream, [encode_config(), *cut])
    assert failed is None
    assert [token_id for answer in answers for token_id in answer.ids] == encoding.encode(text)
    assert all(answer.pending_bytes < 100 for answer in answers)


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_an_endless_word_is_rejected_at_the_limit(serve: Serve, name: str) -> None:
    server = serve("--builtin-encodings", name, "--max-pending-bytes", "50000")
    messages = [EncodeRequest(text="a" * 10_000)] * 6
    answers, failed = answers_of(server.stub.EncodeStream, [encode_config(name), *messages])
    assert [answer.pending_bytes for answer in answers] == [n * 10_000 for n in range(6)]
    assert failed is not None
    assert (failed.code, failed.reason) == (Code.INVALID_ARGUMENT, "INPUT_TOO_LARGE")
    assert failed.metadata == {"field": "text", "limit": "50000"}
    assert "more than 50000 bytes without a split point" in failed.message
    assert "max_pending_bytes" in failed.message
    failed = count_stream(server, [count_config(name), *[CountRequest(text="a" * 10_000)] * 6])
    assert isinstance(failed, Failed)
    assert failed.reason == "INPUT_TOO_LARGE"
    split = context_pb2.SplitStreamRequest
    config = split(config=context_pb2.SplitStreamConfig(encoding=name, max_tokens=100_000))
    pieces = [split(text="a" * 10_000)] * 6
    failed = answers_of(server.stub.SplitStream, [config, *pieces])[1]
    assert failed is not None
    assert failed.metadata == {"field": "text", "limit": "50000"}
    spaced = [CountRequest(text="a" * 10_000 + " ")] * 6
    assert count_stream(server, [count_config(name), *spaced]).count > 0


@pytest.mark.slow
def test_special_tokens_are_treated_as_in_unary_calls(permissive: RunningServer) -> None:
    server = permissive
    encoding = bytepair_engine.get_encoding("cl100k_base")
    text = f"né{END}x<|fim_prefix|>"
    spelled = list(text)

    def ids(**options: Any) -> tuple[list[int], Failed | None]:
        first = encode_config(**options)
        pieces = [EncodeRequest(text=character) for character in spelled]
        answers, failed = answers_of(server.stub.EncodeStream, [first, *pieces])
        return [token_id for answer in answers for token_id in answer.ids], failed

    def count(**options: Any) -> Any:
        pieces = [CountRequest(text=character) for character in spelled]
        return count_stream(server, [count_config(**options), *pieces])

    assert ids(disallowed_special=AS_TEXT) == (encoding.encode_ordinary(text), None)
    assert count().count == len(encoding.encode_ordinary(text))
    allowed = encoding.encode(text, allowed_special={END}, disallowed_special=())
    for names in ([END], ["ALL"]):
        options = {"allowed_special": names, "disallowed_special": AS_TEXT}
        assert ids(**options) == (allowed, None)
        assert count(allowed_special=names).count == len(allowed)
    for failed, token, offset in (
        (ids()[1], END, 3),
        (count(disallowed_special=REJECT), END, 3),
        (ids(allowed_special=[END])[1], "<|fim_prefix|>", 17),
    ):
        assert isinstance(failed, Failed)
        assert failed.reason == "SPECIAL_TOKEN_IN_TEXT"
        assert failed.metadata == {"token": token, "byte_offset": str(offset)}
    for failed in (ids(allowed_special=["<|fim_prefix|>"])[1], count(allowed_special=["x"])):
        assert isinstance(failed, Failed)
        assert (failed.code, failed.reason) == (
            Code.PERMISSION_DENIED,
            "SPECIAL_TOKEN_NOT_PERMITTED",
        )
        assert failed.field == "config.allowed_special"
    assert server.metric("bytepair_policy_total", rpc="EncodeStream", action="allowed") == 2
    assert server.metric("bytepair_policy_total", rpc="EncodeStream", action="rejected") == 2
    assert server.metric("bytepair_policy_total", rpc="EncodeStream", action="denied") == 1


def test_encodings_without_known_split_points_reject_streams(
    permissive: RunningServer,
) -> None:
    permissive.wait_for_log(
        "EncodeStream, CountStream and SplitStream reject this encoding: no points are known where "
        "its text can be split",
        encoding="odd",
    )
    for failed in (
        answers_of(permissive.stub.EncodeStream, [encode_config("odd")])[1],
        count_stream(permissive, [count_config("odd")]),
    ):
        assert isinstance(failed, Failed)
        assert (failed.reason, failed.field) == ("INVALID_OPTION", "config.encoding")
        assert failed.metadata == {"field": "config.encoding"}
        assert failed.message.startswith("config.encoding: text cannot be streamed into odd")
    request = tokenizer_pb2.CountRequest(encoding="odd", text="a1")
    assert permissive.stub.Count(request).count == 2


def test_a_count_over_its_limit_is_answered_before_the_end(server: RunningServer) -> None:
    hello = CountRequest(text="hello " * 10)
    for limit, pieces, expected in (
        (0, [], (0, False)),
        (0, [hello], (1, True)),
        (9, [hello] * 3, (10, True)),
        (30, [hello] * 3, (31, True)),
        (31, [hello] * 3, (31, False)),
        (2**64 - 1, [hello] * 3, (31, False)),
    ):
        answer = count_stream(server, [count_config(limit=limit), *pieces])
        assert (answer.count, answer.limit_exceeded) == expected

    def endless() -> Iterator[Any]:
        yield count_config(limit=5)
        while True:
            yield hello

    assert server.stub.CountStream(endless()).count == 6


@pytest.mark.parametrize(
    ("pieces", "offset"),
    [
        ([{"data": b"caf\xc3"}, {"data": b"\xa9 \xff"}], 6),
        ([{"data": b"caf\xc3"}], 3),
        ([{"data": b"caf\xc3"}, {"text": "x"}], 3),
        ([{"text": "é"}, {"data": b"\xed\xa0\x80"}], 2),
    ],
)
def test_an_error_about_utf8_has_the_position_in_the_text(
    server: RunningServer, pieces: list[dict[str, Any]], offset: int
) -> None:
    encode = [encode_config(), *(EncodeRequest(**piece) for piece in pieces)]
    count = [count_config(), *(CountRequest(**piece) for piece in pieces)]
    for failed in (answers_of(server.stub.EncodeStream, encode)[1], count_stream(server, count)):
        assert isinstance(failed, Failed)
        assert (failed.code, failed.reason) == (Code.INVALID_ARGUMENT, "INVALID_UTF8")
        assert (failed.metadata, failed.field) == ({"byte_offset": str(offset)}, "data")


@pytest.mark.parametrize(
    ("messages", "reason", "field"),
    [
        ([], "INVALID_OPTION", "config"),
        ([{"text": "x"}], "INVALID_OPTION", "config"),
        ([{"config": {"encoding": "gpt-4"}}] * 2, "INVALID_OPTION", "config"),
        ([{"config": {"encoding": "x"}}], "UNKNOWN_ENCODING", "config.encoding"),
        ([{"config": {}}], "UNKNOWN_ENCODING", "config.encoding"),
        (
            [{"config": {"encoding": "gpt-4", "expected_fingerprint": "x"}}],
            "FINGERPRINT_MISMATCH",
            "config.expected_fingerprint",
        ),
        (
            [{"config": {"encoding": "gpt-4", "disallowed_special": 7}}],
            "INVALID_OPTION",
            "config.disallowed_special",
        ),
        (
            [{"config": {"encoding": "gpt-4", "allowed_special": ["x"] * 2049}}],
            "INPUT_TOO_LARGE",
            "config.allowed_special",
        ),
    ],
)
def test_an_invalid_configuration_is_reported(
    server: RunningServer, messages: list[dict[str, Any]], reason: str, field: str
) -> None:
    for failed in (
        answers_of(server.stub.EncodeStream, [EncodeRequest(**each) for each in messages])[1],
        count_stream(server, [CountRequest(**each) for each in messages]),
    ):
        assert isinstance(failed, Failed)
        assert (failed.reason, failed.field) == (reason, field)


def test_ids_before_an_error_are_sent(server: RunningServer) -> None:
    talk = Talk(server.stub.EncodeStream)
    talk.say(encode_config())
    assert list(talk.say(EncodeRequest(text="hello world")).ids) == [15339]
    (answer,), failed = talk.last(EncodeRequest(text=f" {END} "))
    assert list(answer.ids) == [1917, 220]
    assert (answer.bytes_consumed, answer.pending_bytes, answer.finished) == (12, 0, False)
    assert failed is not None
    assert failed.metadata == {"token": END, "byte_offset": "12"}


@pytest.mark.parametrize("size", [1000, 16384, 10**6])
@pytest.mark.parametrize("fault", [END.encode(), b"\xff"])
def test_results_before_an_error_do_not_depend_on_the_messages(
    server: RunningServer, size: int, fault: bytes
) -> None:
    encoding, text = bytepair_engine.get_encoding("cl100k_base"), "word and more. " * 4000
    data = text.encode() + fault
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    first = encode_config()
    answers, failed = answers_of(
        server.stub.EncodeStream, [first, *(EncodeRequest(data=piece) for piece in pieces)]
    )
    assert failed is not None
    assert failed.metadata["byte_offset"] == str(len(text))
    ids = encoding.encode(text if fault != b"\xff" else text.rstrip())
    assert [token_id for answer in answers for token_id in answer.ids] == ids
    split = context_pb2.SplitStreamRequest
    config = context_pb2.SplitStreamConfig(
        encoding="cl100k_base", max_tokens=20, disallowed_special=REJECT
    )
    answers, failed = answers_of(
        server.stub.SplitStream, [split(config=config), *(split(data=piece) for piece in pieces)]
    )
    assert failed is not None
    assert failed.metadata["byte_offset"] == str(len(text))
    ends = [chunk.end for answer in answers for chunk in answer.chunks]
    assert ends == [chunk.end for chunk in encoding.split(text, 20)][: len(ends)]
    assert ends[-1] > len(text) - 200
    assert not answers[-1].finished
    assert size < len(data) or not answers[-1].pending_bytes


def test_a_split_stream_counts_its_bytes(server: RunningServer) -> None:
    split = context_pb2.SplitStreamRequest
    config = context_pb2.SplitStreamConfig(encoding="cl100k_base", max_tokens=5)
    messages = [split(config=config), split(data=b"a\xc3"), split(data=b"\xa9 b")]
    answers, failed = answers_of(server.stub.SplitStream, messages)
    assert failed is None
    sizes = [(answer.bytes_consumed, answer.pending_bytes) for answer in answers]
    assert sizes == [(0, 0), (2, 2), (5, 5), (5, 0)]


def test_streams_are_counted(serve: Serve) -> None:
    server = serve()
    text = "naïve hello world"
    answers_of(server.stub.EncodeStream, [encode_config(), EncodeRequest(text=text)])
    count_stream(server, [count_config(), CountRequest(text=text)])
    tokens = bytepair_engine.get_encoding("cl100k_base").count(text)
    for rpc in ("EncodeStream", "CountStream"):
        labels = {"rpc": rpc, "encoding": "cl100k_base"}
        assert server.metric("bytepair_requests_total", code="OK", **labels) == 1
        assert server.metric("bytepair_tokens_total", **labels) == tokens
        assert server.metric("bytepair_input_bytes_total", **labels) == len(text.encode())


def test_fields_are_written_as_protobuf_writes_them(server: RunningServer) -> None:
    """The engine packs the ids, and the rest of the message is appended."""
    call: Any = server.channel.stream_stream("/bytepair.v1.TokenizerService/EncodeStream")
    messages = [encode_config("o200k_base"), EncodeRequest(text="日本語 hello " * 5000)]
    raw, failed = answers_of(call, [message.SerializeToString() for message in messages])
    assert failed is None
    for each in raw:
        message = stream_pb2.EncodeStreamResponse.FromString(each)
        assert message.SerializeToString() == each


def test_a_detector_does_not_keep_its_encoding_alive() -> None:
    base = bytepair_engine.get_encoding("r50k_base")
    encoding = bytepair_engine.extend_encoding(base, ["<c>"], name="own")
    assert SpecialTokenDetector(encoding, frozenset()).finds("a<c>")
    alive = weakref.ref(encoding)
    del encoding
    gc.collect()
    assert alive() is None
