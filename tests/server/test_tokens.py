"""GetToken: one token, and the merges that produce it, for every format."""

from __future__ import annotations

from pathlib import Path

import pytest
from bytepair.v1 import token_pb2
from bytepair_engine import Encoding, EncodingSpec, get_encoding, load_encoding
from bytepair_engine.pipeline.derivation import flat
from bytepair_engine.pipeline.describing import Describer
from conftest import Serve
from support.failures import failure
from support.sentencepiece_models import trained
from support.serving import RunningServer, write_config
from support.tokenizer_json import made


def answered(server: RunningServer, name: str, token_id: int) -> token_pb2.GetTokenResponse:
    request = token_pb2.GetTokenRequest(encoding=name, id=token_id)
    answer: token_pb2.GetTokenResponse = server.stub.GetToken(request)
    return answer


def same(answer: token_pb2.GetTokenResponse, encoding: Encoding, token_id: int) -> None:
    """Assert that the answer is that of the engine."""
    describer = Describer(encoding)
    expected = describer.describe(token_id)
    assert answer.data == expected.data
    sign = -1 if describer.order_name == "score" else 1
    parts = [
        (
            part.spelling,
            part.id if part.HasField("id") else None,
            part.order if part.HasField("order") else None,
            part.left if part.HasField("left") else None,
            part.right if part.HasField("right") else None,
        )
        for part in answer.parts
    ]
    assert parts == [
        (part.spelling, part.id, None if part.order is None else sign * part.order, left, right)
        for part, left, right in flat(expected.parts)
    ]


def test_tokens_of_a_table_of_ranks(server: RunningServer) -> None:
    encoding = get_encoding("cl100k_base")
    for token_id in (0, 300, 15339, 100_000):
        answer = answered(server, "gpt-4", token_id)
        same(answer, encoding, token_id)
        assert answer.order == token_pb2.MERGE_ORDER_RANK
        assert (answer.encoding, answer.fingerprint) == (encoding.name, encoding.fingerprint)
    special = answered(server, "gpt-4", encoding.special_tokens["<|endoftext|>"])
    assert (special.kind, len(special.parts)) == (token_pb2.TOKEN_KIND_SPECIAL, 0)
    assert answered(server, "gpt-4", 0).kind == token_pb2.TOKEN_KIND_BYTE


def test_errors_of_get_token_name_the_fault(server: RunningServer) -> None:
    request = token_pb2.GetTokenRequest(encoding="gpt-4", id=2**32 - 1)
    unknown = failure(server.stub.GetToken, request)
    assert (unknown.reason, unknown.field) == ("UNKNOWN_TOKEN_ID", "id")
    assert unknown.metadata == {"encoding": "cl100k_base", "id": str(2**32 - 1)}
    assert unknown.message == "no token of cl100k_base has id 4294967295"
    request = token_pb2.GetTokenRequest(encoding="gpt-4", expected_fingerprint="sha256:0")
    assert failure(server.stub.GetToken, request).reason == "FINGERPRINT_MISMATCH"
    request = token_pb2.GetTokenRequest(encoding="none")
    assert failure(server.stub.GetToken, request).reason == "UNKNOWN_ENCODING"


@pytest.mark.parametrize("file", ["a.json", "a.model"])
def test_tokens_of_other_formats(serve: Serve, tmp_path: Path, file: str) -> None:
    content = made("digits, then byte level") if file == "a.json" else trained("llama")
    (tmp_path / file).write_bytes(content)
    config = write_config(tmp_path, f'[encodings.mine]\nfile = "{file}"\n')
    server = serve("--config", config)
    encoding = load_encoding(EncodingSpec(name="mine", file=tmp_path / file))
    orders = {"a.json": token_pb2.MERGE_ORDER_PRIORITY, "a.model": token_pb2.MERGE_ORDER_SCORE}
    for token_id in range(0, encoding.n_vocab, 7):
        answer = answered(server, "mine", token_id)
        same(answer, encoding, token_id)
        assert answer.order == orders[file]
