"""DecodeStream: deltas join to Decode, options, errors, and hand-written messages."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import bytepair_engine
import grpc
import pytest
from bytepair.v1 import stream_pb2, text_pb2, tokenizer_pb2
from bytepair_server.streaming.decode import read_one_id, write_text
from conftest import Serve
from support.failures import Failed
from support.hard_text import HARD_PIECES, random_texts
from support.serving import RunningServer
from support.streaming import DecodeRequest, Talk, answers_of, decode_config

Code = grpc.StatusCode
#: In cl100k_base: "Hello" and " ST", and two tokens that together are U+1F642.
HELLO, ST = 9906, 4015
SMILE = [9468, 247, 224]


def cut(rng: random.Random, ids: Sequence[int]) -> list[list[int]]:
    """Split `ids` into consecutive parts, most of one id and some empty."""
    parts, start = [], 0
    while start < len(ids):
        size = rng.choice([0, 1, 1, 1, 2, 5])
        parts.append(list(ids[start : start + size]))
        start += size
    return parts


def decode_stream(
    server: RunningServer, first: DecodeRequest, parts: Sequence[Sequence[int]]
) -> tuple[list[Any], Failed | None]:
    messages = [first, *(DecodeRequest(ids=part) for part in parts)]
    return answers_of(server.stub.DecodeStream, messages)


def joined(answers: list[Any]) -> str:
    return "".join(answer.text for answer in answers)


def first_match(text: str, stops: Sequence[str]) -> tuple[str, str]:
    """Return the text before the first match, and the match: "" if there is none."""
    found = [(text.index(stop), -len(stop), stop) for stop in stops if stop in text]
    if not found:
        return text, ""
    start, _, stop = min(found)
    return text[:start], stop


@pytest.mark.slow
@pytest.mark.parametrize("name", bytepair_engine.list_encodings())
def test_deltas_join_to_decode_of_all_ids(server: RunningServer, name: str) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    encoding = bytepair_engine.get_encoding(name)
    special = sorted(set(encoding.special_tokens.values()))[:5]
    for text in random_texts(rng, encoding.token_byte_values(), 60):
        ids = encoding.encode_ordinary(text)
        # Ids in random order: bytes that are not UTF-8, and special tokens.
        for _ in range(rng.choice([0, 0, 1, 4])):
            extra = rng.choice([rng.randrange(256), *special])
            ids.insert(rng.randrange(len(ids) + 1), extra)
        skip, as_bytes = rng.random() < 0.5, rng.random() < 0.3
        options: dict[str, Any] = {"skip_special_tokens": skip, "as_bytes": as_bytes}
        whole = server.stub.Decode(tokenizer_pb2.DecodeRequest(encoding=name, ids=ids, **options))
        parts = cut(rng, ids)
        answers, failed = decode_stream(server, decode_config(name, **options), parts)
        assert failed is None
        assert joined(answers) == whole.text
        assert b"".join(answer.data for answer in answers) == whole.data
        assert len(answers) == len(parts) + 2
        assert [answer.finished for answer in answers] == [False] * (len(parts) + 1) + [True]
        taken = [sum(map(len, parts[:n])) for n in range(len(parts) + 1)]
        assert [answer.tokens_consumed for answer in answers] == [*taken, len(ids)]
        kind = "data" if as_bytes else "text"
        assert all(answer.WhichOneof("content") == kind for answer in answers)
        assert all(answer.pending_bytes <= 3 for answer in answers)
        assert answers[0].encoding == whole.encoding == name
        assert answers[0].fingerprint == whole.fingerprint
        assert not any(answer.encoding or answer.fingerprint for answer in answers[1:])


@pytest.mark.slow
def test_the_text_ends_before_the_first_stop_string(server: RunningServer) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    encoding = bytepair_engine.get_encoding("cl100k_base")
    for _ in range(120):
        text = "".join(rng.choice([*HARD_PIECES, "a", "ab", "STOP"]) for _ in range(12))
        places = [rng.randrange(len(text)) for _ in range(3)]
        stops = [text[place : place + rng.randrange(1, 6)] for place in places]
        stops += rng.sample(["STOPS", "abab", "🙂🙂🙂", "nowhere"], 2)
        include, as_bytes = rng.random() < 0.5, rng.random() < 0.3
        first = decode_config(stop=stops, include_stop=include, as_bytes=as_bytes)
        ids = encoding.encode_ordinary(text)
        answers, failed = decode_stream(server, first, cut(rng, ids))
        before, stop = first_match(text, stops)
        expected = before + stop if include else before
        given = b"".join(answer.data for answer in answers) if as_bytes else joined(answers)
        assert failed is None
        assert given == (expected.encode() if as_bytes else expected)
        assert [answer.stop_matched for answer in answers] == [""] * (len(answers) - 1) + [stop]
        assert answers[-1].finished
        read = answers[-1].tokens_consumed
        assert encoding.decode(ids[:read]).startswith(before + stop)


def test_held_text_is_reported_and_released_at_flush(server: RunningServer) -> None:
    talk = Talk(server.stub.DecodeStream)
    talk.say(decode_config(stop=["STOP"]))
    held = talk.say(DecodeRequest(ids=[HELLO, ST]))
    assert (held.text, held.pending_bytes) == ("Hello ", 2)
    last = talk.say(DecodeRequest(ids=SMILE[:2], flush=True))
    assert (last.text, last.pending_bytes, last.finished) == ("ST\ufffd", 0, True)
    assert talk.rest() == ([], None)


def test_the_answer_to_a_single_id_reports_held_bytes(
    server: RunningServer,
) -> None:
    answers, failed = decode_stream(server, decode_config(), [[i] for i in SMILE])
    assert failed is None
    assert [answer.pending_bytes for answer in answers] == [0, 2, 3, 0, 0]


def test_a_prefill_completes_the_first_character_and_is_not_returned(
    server: RunningServer,
) -> None:
    """vLLM #48853: the first delta contained the whole prompt."""
    first = decode_config(prefill_ids=[HELLO, *SMILE[:2]])
    answers, failed = decode_stream(server, first, [[SMILE[2]], [HELLO]])
    assert failed is None
    assert [answer.text for answer in answers] == ["", "🙂", "Hello", ""]
    assert answers[0].pending_bytes == 3
    assert answers[-1].tokens_consumed == 2


def test_a_stream_of_one_message_is_complete(server: RunningServer) -> None:
    first = decode_config()
    first.ids.extend([HELLO])
    first.flush = True
    answers, failed = decode_stream(server, first, [])
    assert failed is None
    assert [(answer.text, answer.finished) for answer in answers] == [("Hello", True)]
    assert answers[0].encoding == "cl100k_base"


def test_messages_after_the_end_are_not_read(server: RunningServer) -> None:
    first = decode_config(stop=["lo"])
    answers, failed = decode_stream(server, first, [[HELLO], [2**31]])
    assert failed is None
    assert [answer.text for answer in answers] == ["", "Hel"]
    answers, failed = answers_of(
        server.stub.DecodeStream, [decode_config(), DecodeRequest(flush=True), decode_config()]
    )
    assert failed is None
    assert [answer.finished for answer in answers] == [False, True]


STRICT: dict[str, Any] = {"errors": text_pb2.DECODE_ERRORS_STRICT}
MANY = 2**18 + 1
#: The first message, the messages after it, the text before the error, and the expected error.
FAULTS: dict[str, tuple[DecodeRequest, list[DecodeRequest], str, str, dict[str, str], str]] = {
    "an unknown id after held text": (
        decode_config(stop=["STOP"]),
        [DecodeRequest(ids=[HELLO, ST]), DecodeRequest(ids=[HELLO, *SMILE[:1], ST, 2**31, 1])],
        "Hello STHello\ufffd ST",
        "UNKNOWN_TOKEN_ID",
        {"encoding": "cl100k_base", "id": "2147483648", "index": "5"},
        "ids",
    ),
    "an unknown id alone": (
        decode_config(),
        [DecodeRequest(ids=[HELLO]), DecodeRequest(ids=[100256])],
        "Hello",
        "UNKNOWN_TOKEN_ID",
        {"encoding": "cl100k_base", "id": "100256", "index": "1"},
        "ids",
    ),
    "the largest id that there can be": (
        decode_config(skip_special_tokens=True),
        [DecodeRequest(ids=[100257, HELLO]), DecodeRequest(ids=[2**32 - 1])],
        "Hello",
        "UNKNOWN_TOKEN_ID",
        {"encoding": "cl100k_base", "id": "4294967295", "index": "2"},
        "ids",
    ),
    "strict decoding at an invalid byte": (
        decode_config(**STRICT),
        [DecodeRequest(ids=[HELLO]), DecodeRequest(ids=[HELLO, SMILE[0], HELLO])],
        "HelloHello",
        "INVALID_UTF8",
        {"byte_offset": "10"},
        "ids",
    ),
    "strict decoding at the end": (
        decode_config(stop=["STOP"], **STRICT),
        [DecodeRequest(ids=[HELLO, ST, SMILE[0]])],
        "Hello ST",
        "INVALID_UTF8",
        {"byte_offset": "8"},
        "ids",
    ),
    "a second configuration": (
        decode_config(stop=["STOP"]),
        [DecodeRequest(ids=[HELLO, ST]), decode_config()],
        "Hello ST",
        "INVALID_OPTION",
        {"field": "config"},
        "config",
    ),
    "no configuration": (
        DecodeRequest(ids=[HELLO]), [], "", "INVALID_OPTION", {"field": "config"}, "config",
    ),
    "too many ids in a message": (
        decode_config(stop=["STOP"]),
        [DecodeRequest(ids=[ST]), DecodeRequest(ids=[HELLO] * MANY)],
        " ST",
        "INPUT_TOO_LARGE",
        {"field": "ids", "limit": str(MANY - 1), "size": str(MANY)},
        "ids",
    ),
    "too many ids of prefill": (
        decode_config(prefill_ids=[HELLO] * MANY), [], "", "INPUT_TOO_LARGE",
        {"field": "config.prefill_ids", "limit": str(MANY - 1), "size": str(MANY)},
        "config.prefill_ids",
    ),
    "an unknown id in the prefill": (
        decode_config(prefill_ids=[HELLO, 2**31]), [], "", "UNKNOWN_TOKEN_ID",
        {"encoding": "cl100k_base", "id": "2147483648", "index": "1"}, "config.prefill_ids",
    ),
    "an unknown encoding": (
        decode_config("cl200k"), [], "", "UNKNOWN_ENCODING", {"encoding": "cl200k"},
        "config.encoding",
    ),
    "an unknown value": (
        decode_config(errors=7), [], "", "INVALID_OPTION", {"field": "config.errors"},
        "config.errors",
    ),
    "strict bytes": (
        decode_config(as_bytes=True, **STRICT), [], "", "INVALID_OPTION",
        {"field": "config.errors"}, "config.errors",
    ),
    "an empty stop string": (
        decode_config(stop=["x", ""]), [], "", "INVALID_OPTION", {"field": "config.stop"},
        "config.stop",
    ),
    "too many stop strings": (
        decode_config(stop=["x"] * 65), [], "", "INPUT_TOO_LARGE",
        {"field": "config.stop", "limit": "64", "size": "65"}, "config.stop",
    ),
    "stop strings that are too long": (
        decode_config(stop=["é" * 1024, "x" * 2049]), [], "", "INPUT_TOO_LARGE",
        {"field": "config.stop", "limit": "4096", "size": "4097"}, "config.stop",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_an_error_comes_after_the_text_that_is_certain(server: RunningServer, case: str) -> None:
    first, following, text, reason, metadata, field = FAULTS[case]
    answers, failed = answers_of(server.stub.DecodeStream, [first, *following])
    assert joined(answers) == text
    assert not any(answer.finished for answer in answers)
    assert failed is not None
    assert (failed.reason, failed.metadata, failed.field) == (reason, metadata, field)
    assert failed.request_id
    for value in metadata.values():
        assert value in failed.message


def test_a_stream_without_a_message_is_an_error_about_the_configuration(
    server: RunningServer,
) -> None:
    answers, failed = answers_of(server.stub.DecodeStream, [])
    assert answers == []
    assert failed is not None
    assert (failed.reason, failed.field) == ("INVALID_OPTION", "config")


@pytest.mark.parametrize("first", [False, True])
def test_a_malformed_message_is_an_invalid_argument(server: RunningServer, first: bool) -> None:
    """It comes after the text that is certain."""
    call: Any = server.channel.stream_stream("/bytepair.v1.TokenizerService/DecodeStream")
    valid = [decode_config(stop=["STOP"]), DecodeRequest(ids=[ST])]
    raw = [] if first else [message.SerializeToString() for message in valid]
    answers, failed = answers_of(call, [*raw, b"\xff\xff"])
    texts = [stream_pb2.DecodeStreamResponse.FromString(answer).text for answer in answers]
    assert texts == ([] if first else ["", " ", "ST"])
    assert failed is not None
    assert (failed.reason, failed.field) == ("INVALID_OPTION", "request")


def test_a_fingerprint_mismatch_is_an_error(server: RunningServer) -> None:
    answers, failed = decode_stream(server, decode_config(expected_fingerprint="sha256:0"), [])
    assert answers == []
    assert failed is not None
    assert (failed.code, failed.reason) == (Code.FAILED_PRECONDITION, "FINGERPRINT_MISMATCH")
    assert failed.field == "config.expected_fingerprint"


def test_a_large_message_is_computed_on_a_thread_with_the_same_result(
    serve: Serve, server: RunningServer
) -> None:
    threads = serve("--inline-max-bytes", "0")
    ids = ([HELLO, *SMILE] * 30_000)[:-1]
    for first in (decode_config(), decode_config(stop=["nowhere", "Hello Hello"])):
        for each in (server, threads):
            answers, failed = decode_stream(each, first, [ids[:70_000], ids[70_000:]])
            assert failed is None
            assert joined(answers) == bytepair_engine.get_encoding("cl100k_base").decode(ids)


def test_hand_written_messages_are_those_of_protobuf() -> None:
    boundaries = [0, 1, 127, 128, 16383, 16384, 2**21 - 1, 2**21, 2**28, 2**32 - 1]
    rng = random.Random(1)
    for token_id in boundaries + [rng.randrange(2**21) for _ in range(1000)]:
        raw = DecodeRequest(ids=[token_id]).SerializeToString()
        expected = token_id if token_id < 2**21 else None
        assert read_one_id(raw) == expected
        # A varint may be longer than necessary; protobuf decides the meaning of a message.
        padded = b"\x12\x02" + bytes([token_id & 127 | 128, 0])
        assert DecodeRequest.FromString(padded).ids[0] == token_id & 127
        assert read_one_id(padded) == token_id & 127
    for message in (
        DecodeRequest(),
        DecodeRequest(ids=[1, 2]),
        DecodeRequest(ids=[1], flush=True),
        DecodeRequest(flush=True),
        decode_config(),
    ):
        assert read_one_id(message.SerializeToString()) is None
    for raw in (b"\x12\x01\x80", b"\x12\x02\x01\x02", b"\x12\x03\x81\x01\x01", b"\x08\x01\x01"):
        assert read_one_id(raw) is None
    for text in ("", "a", "é🙂", "x" * 127, "x" * 128):
        for consumed in boundaries[1:]:
            answer = stream_pb2.DecodeStreamResponse(text=text, tokens_consumed=consumed)
            if not text:
                answer.text = ""
            written = write_text(text, consumed)
            small = len(text) < 128 and consumed < 2**21
            assert written == (answer.SerializeToString() if small else None)


def test_a_stream_needs_a_key_if_keys_are_configured(serve: Serve, tmp_path: Any) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(f'chat = ["sha256:{"0" * 64}"]', encoding="utf-8")
    answers, failed = decode_stream(serve("--api-keys-file", str(keys)), decode_config(), [])
    assert answers == []
    assert failed is not None
    assert (failed.code, failed.reason) == (Code.UNAUTHENTICATED, "UNAUTHENTICATED")
