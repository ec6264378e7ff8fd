"""Special tokens around a text on request, over the wire, within the caller's ceiling."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from bytepair.v1 import text_pb2, tokenizer_pb2
from support.every_rpc import Place, call, places
from support.failures import failure
from support.keys import keys_toml, with_key
from support.serving import RunningServer, write_config
from support.streaming import (
    CountRequest,
    EncodeRequest,
    answers_of,
    count_config,
    encode_config,
)
from support.tokenizer_json import framed, oracle_of, template
from tokenizers import processors

DATA = {"ranks": framed("byte level", template("<s> $A </s>"))}
DATA["form"] = framed("spaces normalised", template("<s> $A </s>"))
DATA["start"] = framed("byte level", template("<s> $A"))
AS_TEXT = text_pb2.DISALLOWED_SPECIAL_AS_TEXT
TEXT = "hello </s> world"
KEYS = {"chat": "chat-key", "half": "half-key", "other": "other-key"}
CHAT, HALF, OTHER = (with_key(key) for key in KEYS.values())


def ordinary(*_: int) -> Any:
    """A template of tokens that are not special."""
    return processors.BertProcessing(("!", 0), ("!", 0))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server where chat may use both tokens, half only the first, and other and everybody else
    none."""
    folder: Path = tmp_path_factory.mktemp("templates")
    (folder / "keys.toml").write_text(keys_toml(**KEYS))
    config = 'api_keys_file = "keys.toml"\nbuiltin_encodings = ["r50k_base"]\n'
    for name, data in DATA.items():
        (folder / f"{name}.json").write_bytes(data)
        config += f'[encodings.{name}]\nfile = "{name}.json"\n'
    (folder / "ordinary.json").write_bytes(framed("byte level", ordinary))
    config += '[encodings.ordinary]\nfile = "ordinary.json"\n'
    config += '[ceiling.chat]\nordinary = "ALL"\n' + "".join(f'{name} = "ALL"\n' for name in DATA)
    config += "[ceiling.half]\n" + "".join(f'{name} = ["<s>"]\n' for name in DATA)
    with RunningServer("--config", write_config(folder, config)) as running:
        yield running


def oracle(name: str, text: str) -> list[int]:
    judged = oracle_of(DATA[name])
    judged.encode_special_tokens = True  # those that the text contains stay text
    ids: list[int] = judged.encode(text).ids
    return ids


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", TEXT])
@pytest.mark.parametrize("name", DATA)
def test_ids_equal_those_of_tokenizers(server: RunningServer, name: str, text: str) -> None:
    ids = oracle(name, text)
    fields: dict[str, Any] = {
        "encoding": name,
        "add_special_tokens": True,
        "disallowed_special": AS_TEXT,
    }
    items = [text_pb2.TextItem(text=each) for each in (text, "a")]
    one = tokenizer_pb2.EncodeRequest(text=text, **fields)
    assert list(server.stub.Encode(one, **CHAT).ids) == ids
    batch = tokenizer_pb2.BatchEncodeRequest(items=items, **fields)
    results = server.stub.BatchEncode(batch, **CHAT).results
    assert [list(result.ids) for result in results] == [ids, oracle(name, "a")]
    for action in (AS_TEXT, text_pb2.DISALLOWED_SPECIAL_REJECT):
        counted = tokenizer_pb2.BatchCountRequest(items=items[1:], **fields)
        counted.disallowed_special = action
        (result,) = server.stub.BatchCount(counted, **CHAT).results
        assert result.count == len(oracle(name, "a"))
    for limit in range(len(ids) + 2):
        request = tokenizer_pb2.CountRequest(text=text, limit=limit, **fields)
        answer = server.stub.Count(request, **CHAT)
        assert answer.count == min(len(ids), limit + 1)
        assert answer.limit_exceeded == (len(ids) > limit)

    pieces = [EncodeRequest(text=character) for character in text]
    answers, failed = answers_of(
        lambda messages: server.stub.EncodeStream(messages, **CHAT),
        [encode_config(**fields), *pieces],
    )
    assert failed is None
    assert [token_id for answer in answers for token_id in answer.ids] == ids
    messages = [count_config(**fields), *(CountRequest(text=character) for character in text)]
    assert server.stub.CountStream(iter(messages), **CHAT).count == len(ids)


def test_callers_learn_the_name_of_a_vocabulary_file_without_its_folder(
    server: RunningServer,
) -> None:
    listed = server.stub.ListEncodings(tokenizer_pb2.ListEncodingsRequest(), **CHAT).encodings
    sources = {encoding.name: encoding.source for encoding in listed}
    assert sources["ordinary"] == "file:ordinary.json"
    assert sources["r50k_base"] == "builtin"


def test_a_template_counts_as_allowed_only_where_it_is_added(server: RunningServer) -> None:
    labels = {"caller": "chat", "rpc": "Count", "encoding": "start", "action": "allowed"}
    for is_added in (False, True):
        before = server.metric("bytepair_policy_total", **labels)
        fields: dict[str, Any] = {"text": "a", "add_special_tokens": is_added}
        server.stub.Count(tokenizer_pb2.CountRequest(encoding="start", **fields), **CHAT)
        assert server.metric("bytepair_policy_total", **labels) - before == is_added


def test_segments_get_one_template_as_a_text_does(server: RunningServer) -> None:
    start, *_, end = oracle("ranks", "a")
    segments = [
        text_pb2.Segment(text="\U0001f642"),
        text_pb2.Segment(special_token="<s>"),
        text_pb2.Segment(text="b"),
    ]
    fields: dict[str, Any] = {
        "encoding": "ranks",
        "segments": segments,
        "add_special_tokens": True,
    }
    request = tokenizer_pb2.EncodeRequest(offsets=text_pb2.OFFSET_UNIT_UTF16, **fields)
    answer = server.stub.Encode(request, **CHAT)
    smile, letter = oracle("ranks", "\U0001f642")[1:-1], oracle("ranks", "b")[1:-1]
    assert list(answer.ids) == [start, *smile, start, *letter, end]
    assert list(answer.offsets) == [0, *[0] * len(smile), 2, 5, 6]
    for limit in range(len(answer.ids) + 2):
        count = tokenizer_pb2.CountRequest(limit=limit, **fields)
        assert server.stub.Count(count, **CHAT).count == min(len(answer.ids), limit + 1)


@pytest.mark.parametrize("place", list(places()), ids=str)
def test_every_token_of_a_template_needs_permission_in_every_rpc(
    server: RunningServer, place: Place
) -> None:
    def reason(key: str, name: str) -> str:
        options: dict[str, Any] = {"encoding": name, "allowed_special": ["ALL"]}
        answer = call(server.channel, place, "a", key=key, add_special_tokens=True, **options)
        return answer.reason

    for name in DATA:
        assert reason("chat-key", name) == ""
        assert reason("other-key", name) == "SPECIAL_TOKEN_NOT_PERMITTED"
    assert reason("half-key", "start") == ""
    assert reason("half-key", "ranks") == "SPECIAL_TOKEN_NOT_PERMITTED"
    assert reason("other-key", "r50k_base") == ""  # this template adds nothing


def test_the_error_names_the_token_and_the_field(server: RunningServer) -> None:
    request = tokenizer_pb2.EncodeRequest(encoding="ranks", text="a", add_special_tokens=True)
    refused = failure(server.stub.Encode, request, **HALF)
    assert refused.code is grpc.StatusCode.PERMISSION_DENIED
    assert refused.metadata == {"token": "</s>", "encoding": "ranks"}
    assert refused.field == "add_special_tokens"
    messages = [encode_config("ranks", add_special_tokens=True)]
    answers, failed = answers_of(lambda m: server.stub.EncodeStream(m, **HALF), messages)
    assert answers == []
    assert failed is not None
    assert failed.field == "config.add_special_tokens"


def test_a_template_token_that_is_not_special_is_within_no_ceiling(server: RunningServer) -> None:
    request = tokenizer_pb2.CountRequest(encoding="ordinary", text="a", add_special_tokens=True)
    assert failure(server.stub.Count, request, **CHAT).reason == "SPECIAL_TOKEN_NOT_PERMITTED"


def test_a_template_permits_no_special_token_in_a_request_s_text(server: RunningServer) -> None:
    request = tokenizer_pb2.EncodeRequest(encoding="ranks", text="</s>", add_special_tokens=True)
    assert failure(server.stub.Encode, request, **CHAT).reason == "SPECIAL_TOKEN_IN_TEXT"


def test_get_encoding_returns_the_template(server: RunningServer) -> None:
    for name in DATA:
        request = tokenizer_pb2.GetEncodingRequest(encoding=name)
        shown = server.stub.GetEncoding(request, **OTHER).encoding
        frame = [*shown.template_before, *shown.template_after]
        assert [token.id for token in frame] == oracle(name, "")
        assert [token.token for token in frame] == ["<s>", "</s>"][: len(frame)]
        assert len(shown.template_before) == 1


def test_a_special_token_that_begins_in_the_preceding_text_is_rejected(
    server: RunningServer,
) -> None:
    config = encode_config("form", preceding_text="a<")
    messages = [config, EncodeRequest(text="s> b")]
    answers, failed = answers_of(partial(server.stub.EncodeStream, **OTHER), messages)
    assert not any(answer.ids for answer in answers)
    assert failed is not None
    assert (failed.reason, failed.metadata["field"]) == ("INVALID_OPTION", "config.preceding_text")
