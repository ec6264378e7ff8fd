"""Damaged requests get a defined status and never cause a server error."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import grpc
import pytest
from bytepair.v1 import chat_pb2, text_pb2, token_pb2, tokenizer_pb2
from bytepair_server.errors import InvalidField, InvalidText
from bytepair_server.rpc import wire
from google.protobuf.message import Message
from support.plain_http import ask
from support.serving import RunningServer
from support.streaming import (
    CountRequest,
    DecodeRequest,
    EncodeRequest,
    answers_of,
    count_config,
    decode_config,
    encode_config,
)

MUTANTS = 2000
END = "<|endoftext|>"

SEEDS: list[tuple[str, Message]] = [
    (
        "Encode",
        tokenizer_pb2.EncodeRequest(
            encoding="gpt-4",
            text=f"héllo {END}",
            allowed_special=["ALL"],
            disallowed_special=text_pb2.DISALLOWED_SPECIAL_AS_TEXT,
            offsets=text_pb2.OFFSET_UNIT_UTF16,
        ),
    ),
    (
        "Encode",
        tokenizer_pb2.EncodeRequest(
            encoding="gpt-4",
            segments=[text_pb2.Segment(text="a"), text_pb2.Segment(special_token=END)],
        ),
    ),
    ("Count", tokenizer_pb2.CountRequest(encoding="gpt-4", text="hello", limit=3)),
    (
        "Decode",
        tokenizer_pb2.DecodeRequest(encoding="gpt-4", ids=[1, 300], skip_special_tokens=True),
    ),
    (
        "BatchEncode",
        tokenizer_pb2.BatchEncodeRequest(
            encoding="gpt-4",
            items=[
                text_pb2.TextItem(text="né"),
                text_pb2.TextItem(segments=[text_pb2.Segment(text="é")]),
            ],
        ),
    ),
    (
        "BatchDecode",
        tokenizer_pb2.BatchDecodeRequest(
            encoding="gpt-4", items=[tokenizer_pb2.IdsItem(ids=[1, 2])], as_bytes=True
        ),
    ),
    (
        "BatchCount",
        tokenizer_pb2.BatchCountRequest(
            encoding="gpt-4", items=[text_pb2.TextItem(text="a")], limit=1
        ),
    ),
    (
        "CountChat",
        chat_pb2.CountChatRequest(
            encoding="gpt-4",
            format="openai-chat",
            messages=[
                chat_pb2.ChatMessage(role="user", content=[chat_pb2.ContentPart(text="né")]),
                chat_pb2.ChatMessage(
                    role="assistant",
                    tool_calls=[chat_pb2.ToolCall(id="1", name="f", arguments_json="{}")],
                ),
            ],
            tools=[chat_pb2.Tool(json='{"name": "f"}')],
        ),
    ),
    ("GetEncoding", tokenizer_pb2.GetEncodingRequest(encoding="gpt-4")),
    ("GetToken", token_pb2.GetTokenRequest(encoding="gpt-4", id=300)),
    ("ListEncodings", tokenizer_pb2.ListEncodingsRequest()),
]

#: The allowed statuses. INTERNAL and UNKNOWN would be bugs of the server.
EXPECTED = {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "FAILED_PRECONDITION"}


@pytest.mark.slow
def test_damaged_requests_never_cause_a_server_error(server: RunningServer) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    methods: dict[str, Any] = {
        rpc: server.channel.unary_unary(
            f"/bytepair.v1.{'Chat' if 'Chat' in rpc else 'Tokenizer'}Service/{rpc}"
        )
        for rpc, _ in SEEDS
    }
    codes: Counter[str] = Counter()
    for _ in range(MUTANTS):
        rpc, message = rng.choice(SEEDS)
        try:
            methods[rpc](damaged(rng, message.SerializeToString()))
            codes["OK"] += 1
        except grpc.RpcError as error:
            codes[error.code().name] += 1
    assert codes.keys() <= EXPECTED
    assert codes["OK"]
    assert codes["INVALID_ARGUMENT"]


#: The messages of a stream. Any of them may be damaged.
STREAMS: list[tuple[str, list[Message]]] = [
    (
        "DecodeStream",
        [
            decode_config("gpt-4", prefill_ids=[1, 300], stop=["lo", "é"], include_stop=True),
            DecodeRequest(ids=[15339]),
            DecodeRequest(ids=[9468, 247, 224]),
            DecodeRequest(ids=[300], flush=True),
        ],
    ),
    (
        "DecodeStream",
        [
            decode_config("gpt-4", as_bytes=True, skip_special_tokens=True),
            *[DecodeRequest(ids=[token_id]) for token_id in (15339, 100257, 9468)],
        ],
    ),
    (
        "EncodeStream",
        [
            encode_config("gpt-4", disallowed_special=text_pb2.DISALLOWED_SPECIAL_AS_TEXT),
            EncodeRequest(text="hello wor"),
            EncodeRequest(data=b"ld \xf0\x9f"),
            EncodeRequest(data=b"\x99\x82" + END.encode()),
        ],
    ),
    ("CountStream", [count_config("gpt-4", limit=3), *[CountRequest(text="hello ")] * 3]),
]


@pytest.mark.slow
def test_damaged_streams_never_cause_a_server_error(server: RunningServer) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    methods: dict[str, Any] = {
        rpc: server.channel.stream_stream(f"/bytepair.v1.TokenizerService/{rpc}")
        for rpc, _ in STREAMS
    }
    codes: Counter[str] = Counter()
    for _ in range(MUTANTS):
        rpc, messages = rng.choice(STREAMS)
        raw = [message.SerializeToString() for message in messages]
        raw = [damaged(rng, each) if rng.random() < 0.3 else each for each in raw]
        if rng.random() < 0.2:
            rng.shuffle(raw)
        _, failed = answers_of(methods[rpc], raw)
        codes["OK" if failed is None else failed.code.name] += 1
    assert codes.keys() <= EXPECTED
    assert codes["OK"]
    assert codes["INVALID_ARGUMENT"]


@pytest.mark.parametrize("chunk", [b"zz\r\n{}", b"2\r\n{}zz", b"f" * 20 + b"\r\n"])
@pytest.mark.parametrize(
    ("content_type", "status", "code"),
    [
        ("json", 400, '"code":"invalid_argument"'),
        ("grpc-web+proto", 200, "grpc-status: 3\r\n"),
    ],
)
def test_a_malformed_chunk_is_an_invalid_argument(
    server: RunningServer,
    pytestconfig: pytest.Config,
    chunk: bytes,
    content_type: str,
    status: int,
    code: str,
) -> None:
    if pytestconfig.getoption("--transport") == "grpcio":
        pytest.skip("grpcio does not speak HTTP/1.1")
    answer = ask(
        server.target,
        "/bytepair.v1.TokenizerService/Count",
        "POST",
        chunk,
        content_type=f"application/{content_type}",
        transfer_encoding="chunked",
    )
    assert answer.status == status
    assert answer.headers["connection"] == "close"
    assert code in answer.headers.get("grpc-status", "") + answer.body.decode("latin-1")
    assert b"the request cannot be read: " in answer.body or "grpc-message" in answer.headers


def test_text_that_is_not_utf8_is_found_in_maps_and_in_a_bounded_number_of_elements() -> None:
    chat = chat_pb2.CountChatRequest(options={"format_options": {"name": "value"}})
    raw = chat.SerializeToString()
    with pytest.raises(InvalidText) as found:
        wire.parse(chat_pb2.CountChatRequest, raw.replace(b"value", b"val\xff\xff"))
    assert (found.value.field, found.value.byte_offset) == ("options.format_options[0].value", 3)

    number = tokenizer_pb2.BatchCountRequest.ITEMS_FIELD_NUMBER << 3 | 2
    empty, bad = bytes([number, 0]), bytes([number, 3, 10, 1, 0xFF])
    with pytest.raises(InvalidText) as found:
        wire.parse(tokenizer_pb2.BatchCountRequest, empty * 1000 + bad)
    assert (found.value.field, found.value.byte_offset) == ("items[1000].text", 0)
    with pytest.raises(InvalidField):
        wire.parse(tokenizer_pb2.BatchCountRequest, empty * wire.MAX_SEARCHED + bad)


def damaged(rng: random.Random, raw: bytes) -> bytes:
    """Return `raw` with up to three bytes changed, added, removed or appended."""
    data = bytearray(raw)
    for _ in range(rng.randrange(4)):
        place = rng.randrange(len(data) + 1)
        kind = rng.choice(["change", "insert", "remove", "append"])
        if kind == "insert":
            data.insert(place, rng.randrange(256))
        elif kind == "append":
            data += rng.randbytes(rng.randrange(6))
        elif kind == "change":
            data[place : place + 1] = rng.randbytes(1)
        else:
            del data[place : place + 1]
    return bytes(data)
