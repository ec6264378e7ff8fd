"""Every RPC over the wire, with tiktoken as the oracle of its answers."""

from __future__ import annotations

import pytest
from bytepair.v1 import chat_pb2, text_pb2, tokenizer_pb2
from bytepair_server.rpc.methods import METHODS
from support.oracle import oracle
from support.serving import RunningServer

ENCODINGS = ["cl100k_base", "o200k_base", "o200k_harmony", "p50k_base", "p50k_edit", "r50k_base"]
TEXTS = ["", " ", "Hello, world!", "naïve 日本語 🙂\r\n\t x", "a" * 3000, "don't  stop\n\n\n"]
END = "<|endoftext|>"


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("text", TEXTS)
def test_encode_count_and_decode_agree_with_the_oracle(
    server: RunningServer, name: str, text: str
) -> None:
    expected = oracle(name).encode(text)
    encoded = server.stub.Encode(tokenizer_pb2.EncodeRequest(encoding=name, text=text))
    counted = server.stub.Count(tokenizer_pb2.CountRequest(encoding=name, text=text))
    decoded = server.stub.Decode(tokenizer_pb2.DecodeRequest(encoding=name, ids=expected))
    assert list(encoded.ids) == expected
    assert not encoded.offsets
    assert counted.count == len(expected)
    assert not counted.limit_exceeded
    assert decoded.text == text
    assert decoded.WhichOneof("content") == "text"
    for answer in (encoded, counted, decoded):
        assert answer.encoding == name
        assert answer.fingerprint == encoded.fingerprint


def test_an_alias_is_answered_with_the_canonical_encoding(server: RunningServer) -> None:
    by_alias = server.stub.Encode(tokenizer_pb2.EncodeRequest(encoding="gpt-4o", text="hi there"))
    by_name = server.stub.Encode(
        tokenizer_pb2.EncodeRequest(
            encoding="o200k_base", text="hi there", expected_fingerprint=by_alias.fingerprint
        )
    )
    assert by_alias == by_name
    assert by_alias.encoding == "o200k_base"


def test_encodings_are_listed_and_described(server: RunningServer) -> None:
    listed = server.stub.ListEncodings(tokenizer_pb2.ListEncodingsRequest()).encodings
    assert [encoding.name for encoding in listed] == ENCODINGS
    for encoding in listed:
        one = server.stub.GetEncoding(tokenizer_pb2.GetEncodingRequest(encoding=encoding.name))
        assert one.encoding == encoding
        assert encoding.n_vocab == oracle(encoding.name).n_vocab
        assert encoding.max_token_id == oracle(encoding.name).max_token_value
        special = [(each.token, each.id) for each in encoding.special_tokens]
        assert special == sorted(special, key=lambda pair: (pair[1], pair[0]))
        assert {END} <= {token for token, _ in special}
        assert encoding.source == "builtin"
        assert encoding.backend in ("native", "reference")
        assert encoding.pattern
        assert encoding.splitter
    gpt_4o = server.stub.GetEncoding(tokenizer_pb2.GetEncodingRequest(encoding="gpt-4o"))
    assert gpt_4o.encoding.name == "o200k_base"
    assert "gpt-4o" in gpt_4o.encoding.aliases
    assert list(gpt_4o.encoding.aliases) == sorted(gpt_4o.encoding.aliases)


@pytest.mark.parametrize("as_segments", [False, True])
@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (text_pb2.OFFSET_UNIT_BYTE, [0, 2, 4, 6]),
        (text_pb2.OFFSET_UNIT_CODE_POINT, [0, 1, 1, 2]),
        (text_pb2.OFFSET_UNIT_UTF16, [0, 1, 1, 3]),
    ],
)
def test_offsets_in_each_unit(
    server: RunningServer, unit: text_pb2.OffsetUnit, expected: list[int], as_segments: bool
) -> None:
    request = tokenizer_pb2.EncodeRequest(encoding="cl100k_base", offsets=unit)
    if as_segments:
        for text in ("é", "\U0001f642", "x"):
            request.segments.add(text=text)
    else:
        request.text = "é\U0001f642x"
    answer = server.stub.Encode(request)
    assert list(answer.ids) == oracle("cl100k_base").encode("é\U0001f642x")
    assert list(answer.offsets) == expected


@pytest.mark.parametrize(
    ("limit", "count", "exceeded"),
    [(0, 1, True), (2, 3, True), (3, 3, False), (4, 3, False), (2**64 - 1, 3, False)],
)
@pytest.mark.parametrize("as_segments", [False, True])
def test_a_count_stops_at_its_limit(
    server: RunningServer, limit: int, count: int, exceeded: bool, as_segments: bool
) -> None:
    request = tokenizer_pb2.CountRequest(encoding="cl100k_base", limit=limit)
    if as_segments:
        for text in ("one", "", " two", " three"):
            request.segments.add(text=text)
    else:
        request.text = "one two three"
    answer = server.stub.Count(request)
    assert (answer.count, answer.limit_exceeded) == (count, exceeded)


def test_bytes_and_invalid_utf8_are_decoded(server: RunningServer) -> None:
    ids = oracle("cl100k_base").encode("\U0001f642")
    assert len(ids) > 1
    half = tokenizer_pb2.DecodeRequest(encoding="cl100k_base", ids=ids[:1])
    data = oracle("cl100k_base").decode_bytes(ids[:1])
    assert server.stub.Decode(half).text == data.decode(errors="replace")
    half.as_bytes = True
    assert server.stub.Decode(half).data == data


def test_special_tokens_are_decoded_or_skipped(server: RunningServer) -> None:
    request = tokenizer_pb2.DecodeRequest(encoding="cl100k_base", ids=[100257, 15339, 100257])
    assert server.stub.Decode(request).text == f"{END}hello{END}"
    request.skip_special_tokens = True
    assert server.stub.Decode(request).text == "hello"
    request.as_bytes = True
    assert server.stub.Decode(request).data == b"hello"
    assert (
        server.stub.Decode(
            tokenizer_pb2.DecodeRequest(encoding="cl100k_base", ids=[], as_bytes=True)
        ).WhichOneof("content")
        == "data"
    )


def test_a_batch_has_a_result_for_each_item(server: RunningServer) -> None:
    items = [text_pb2.TextItem(text=text) for text in ("hello", f"bad {END}", "", "world")]
    encoded = server.stub.BatchEncode(
        tokenizer_pb2.BatchEncodeRequest(
            encoding="cl100k_base", items=items, offsets=text_pb2.OFFSET_UNIT_BYTE
        )
    )
    assert [list(result.ids) for result in encoded.results] == [[15339], [], [], [14957]]
    assert [list(result.offsets) for result in encoded.results] == [[0], [], [], [0]]
    assert [result.HasField("error") for result in encoded.results] == [False, True, False, False]
    error = encoded.results[1].error
    assert (error.code, error.reason) == (3, "SPECIAL_TOKEN_IN_TEXT")
    assert dict(error.metadata) == {"token": END, "byte_offset": "4"}

    counted = server.stub.BatchCount(
        tokenizer_pb2.BatchCountRequest(encoding="cl100k_base", items=items, limit=1)
    )
    assert [result.count for result in counted.results] == [1, 2, 0, 1]
    assert [result.limit_exceeded for result in counted.results] == [False, True, False, False]

    decoded = server.stub.BatchDecode(
        tokenizer_pb2.BatchDecodeRequest(
            encoding="cl100k_base",
            items=[tokenizer_pb2.IdsItem(ids=ids) for ids in ([15339], [15339, 2**31], [])],
        )
    )
    assert [result.WhichOneof("outcome") for result in decoded.results] == ["text", "error", "text"]
    assert decoded.results[0].text == "hello"
    assert decoded.results[1].error.reason == "UNKNOWN_TOKEN_ID"
    assert dict(decoded.results[1].error.metadata) == {
        "encoding": "cl100k_base",
        "id": str(2**31),
        "index": "1",
    }
    for answer in (encoded, counted, decoded):
        assert answer.encoding == "cl100k_base"
        assert answer.fingerprint.startswith("sha256:")


def test_an_empty_batch_has_no_results(server: RunningServer) -> None:
    for rpc, request in (
        ("BatchEncode", tokenizer_pb2.BatchEncodeRequest(encoding="r50k_base")),
        ("BatchDecode", tokenizer_pb2.BatchDecodeRequest(encoding="r50k_base")),
        ("BatchCount", tokenizer_pb2.BatchCountRequest(encoding="r50k_base")),
    ):
        assert not getattr(server.stub, rpc)(request).results


def test_every_rpc_of_the_proto_is_served() -> None:
    services = (tokenizer_pb2, "TokenizerService"), (chat_pb2, "ChatService")
    declared = [
        rpc for file, name in services for rpc in file.DESCRIPTOR.services_by_name[name].methods
    ]
    unary = [rpc for rpc in declared if not rpc.client_streaming and not rpc.server_streaming]
    assert METHODS.keys() == {rpc.name for rpc in unary}
    for rpc in unary:
        assert METHODS[rpc.name].request_class.DESCRIPTOR is rpc.input_type


def test_a_large_text_has_the_ids_of_the_oracle(server: RunningServer) -> None:
    text = "The quick brown fox jumps over the lazy dog, naïvely. " * 2000
    answer = server.stub.Encode(tokenizer_pb2.EncodeRequest(encoding="r50k_base", text=text))
    assert list(answer.ids) == oracle("r50k_base").encode(text)
