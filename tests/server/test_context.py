"""Truncate, Split, SplitStream and Inspect over the wire; Count and tiktoken check the answers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from bytepair.v1 import context_pb2, text_pb2, tokenizer_pb2
from bytepair_engine import get_encoding, list_encodings
from bytepair_engine.context.boundaries import LEVELS
from bytepair_engine.context.truncating import truncated
from bytepair_engine.context.truncation_search import Keep
from conftest import Serve
from hypothesis import given
from hypothesis import strategies as st
from support.bystander import bystander
from support.context_laws import AWKWARD, repeated, texts
from support.failures import read
from support.oracle import oracle
from support.serving import RunningServer

CODE_POINT, UTF16 = text_pb2.OFFSET_UNIT_CODE_POINT, text_pb2.OFFSET_UNIT_UTF16
END = "<|endoftext|>"
UNKNOWN: Any = 99
KEEPS: dict[Keep, Any] = {
    "start": context_pb2.KEEP_START,
    "end": context_pb2.KEEP_END,
    "both": context_pb2.KEEP_BOTH,
}


@pytest.mark.parametrize("keep", ["KEEP_START", "KEEP_END", "KEEP_BOTH"])
def test_what_is_kept_fits_as_count_counts_it(server: RunningServer, keep: Any) -> None:
    for text in AWKWARD:
        for most in (0, 3, 10):
            answer = server.stub.Truncate(
                context_pb2.TruncateRequest(
                    encoding="o200k_base",
                    text=text,
                    max_tokens=most,
                    keep=keep,
                    count_original=True,
                    unit=CODE_POINT,
                )
            )
            request = tokenizer_pb2.CountRequest(encoding="o200k_base", text=answer.text)
            assert server.stub.Count(request).count == answer.count <= most
            whole = len(oracle("o200k_base").encode_ordinary(text))
            assert answer.original_count == whole
            assert answer.truncated == (whole > most)
            assert "".join(text[part.start : part.end] for part in answer.kept) == answer.text


@pytest.mark.slow
@pytest.mark.parametrize("name", list_encodings())
def test_the_server_cuts_as_the_library_does(server: RunningServer, name: str) -> None:
    """Every encoding, level and way to keep, with the budgets at which levels fall back, in one
    batch of awkward texts each. The places are in UTF-16 units, and lead to the text that is kept.
    """
    encoding = get_encoding(name)
    for number, level in enumerate(LEVELS, context_pb2.CUT_LEVEL_CODE_POINT):
        for keep, code in KEEPS.items():
            for most, percent in ((0, 50), (1, 100), (2, 0), (3, 50)):
                answer = server.stub.BatchTruncate(
                    context_pb2.BatchTruncateRequest(
                        encoding=name,
                        items=[text_pb2.TextItem(text=text) for text in AWKWARD],
                        max_tokens=most,
                        keep=code,
                        level=number,  # type: ignore[arg-type]
                        start_percent=percent if keep == "both" else None,
                        unit=UTF16,
                    )
                )
                for text, result in zip(AWKWARD, answer.results, strict=True):
                    found = truncated(
                        encoding, text, most, keep=keep, level=level, start_percent=percent
                    )
                    assert not result.HasField("error")
                    assert (result.text, result.count) == (found.text, found.count)
                    units = text.encode("utf-16-le")
                    parts = [units[2 * part.start : 2 * part.end] for part in result.kept]
                    assert b"".join(parts).decode("utf-16-le") == result.text
                    assert result.truncated == found.truncated


def test_units_markers_levels_and_ranges(server: RunningServer) -> None:
    def kept(unit: Any, **options: Any) -> list[tuple[int, int]]:
        answer = server.stub.Truncate(
            context_pb2.TruncateRequest(
                encoding="cl100k_base", text="é 🧠 one two three four", unit=unit, **options
            )
        )
        assert bool(answer.text) == ("ranges_only" not in options)
        return [(part.start, part.end) for part in answer.kept]

    assert kept(CODE_POINT, max_tokens=5) == [(0, 7)]
    assert kept(0, max_tokens=5) == [(0, 11)]
    assert kept(0, max_tokens=5, marker="…") == [(0, 8)]
    assert kept(0, max_tokens=5, keep=context_pb2.KEEP_END) == [(7, 26)]
    assert kept(UTF16, max_tokens=5, ranges_only=True) == [(0, 8)]
    for most, text, level in (
        (4, "One two. …", context_pb2.CUT_LEVEL_GRAPHEME),
        (6, "One two.  …", context_pb2.CUT_LEVEL_SENTENCE),
        (7, "One two. Three four. Five", 0),
    ):
        answer = server.stub.Truncate(
            context_pb2.TruncateRequest(
                encoding="cl100k_base",
                text="One two. Three four. Five",
                max_tokens=most,
                level=context_pb2.CUT_LEVEL_SENTENCE,
                marker=" …",
            )
        )
        assert (answer.text, answer.level) == (text, level)


def test_each_item_of_a_batch_has_its_outcome(server: RunningServer) -> None:
    answer = server.stub.BatchTruncate(
        context_pb2.BatchTruncateRequest(
            encoding="cl100k_base",
            items=[
                text_pb2.TextItem(text="one two three"),
                text_pb2.TextItem(segments=[text_pb2.Segment(text="a")]),
                text_pb2.TextItem(text=f"a{END}"),
                text_pb2.TextItem(),
            ],
            max_tokens=2,
            disallowed_special=text_pb2.DISALLOWED_SPECIAL_REJECT,
        )
    )
    assert [result.text for result in answer.results] == ["one two", "", "", ""]
    assert [result.error.reason for result in answer.results] == [
        "",
        "INVALID_OPTION",
        "SPECIAL_TOKEN_IN_TEXT",
        "",
    ]


@pytest.mark.slow
@given(texts | repeated, st.integers(1, 20), st.integers(0, 50))
def test_split_and_its_stream_agree(
    server: RunningServer, text: str, most: int, overlap: int
) -> None:
    fields: dict[str, Any] = {
        "encoding": "cl100k_base",
        "max_tokens": most,
        "overlap_tokens": most * overlap // 100,
        "with_text": True,
        "with_ids": True,
    }
    try:
        whole = server.stub.Split(context_pb2.SplitRequest(text=text, **fields))
    except grpc.RpcError as error:
        failed = read(error)
        assert failed.reason == "BUDGET_TOO_SMALL"
        assert int(failed.metadata["needed"]) > most
        with pytest.raises(grpc.RpcError) as streamed:
            stream(server, text, fields)
        assert read(streamed.value).metadata == failed.metadata
        return
    data, tiktoken = text.encode(), oracle("cl100k_base")
    for chunk in whole.chunks:
        assert data[chunk.start : chunk.end].decode() == chunk.text
        assert list(chunk.ids) == tiktoken.encode_ordinary(chunk.text)
        assert chunk.count == len(chunk.ids) <= most
    assert stream(server, text, fields) == list(whole.chunks)


def stream(
    server: RunningServer, text: str, fields: dict[str, Any], step: int = 7
) -> list[context_pb2.Chunk]:
    def messages() -> Iterator[context_pb2.SplitStreamRequest]:
        yield context_pb2.SplitStreamRequest(config=context_pb2.SplitStreamConfig(**fields))
        data = text.encode()
        for i in range(0, len(data), step):
            yield context_pb2.SplitStreamRequest(data=data[i : i + step])

    answers = list(server.stub.SplitStream(messages()))
    assert answers[-1].finished
    assert answers[-1].bytes_consumed == len(text.encode())
    return [chunk for answer in answers for chunk in answer.chunks]


def test_a_large_piece_is_split_as_the_whole_text(server: RunningServer) -> None:
    text = "Straße, 東京 🙂. " * 3000
    fields: dict[str, Any] = {"encoding": "cl100k_base", "max_tokens": 50}
    whole = server.stub.Split(context_pb2.SplitRequest(text=text, **fields))
    assert stream(server, text, fields, step=len(text.encode())) == list(whole.chunks)


def test_chunks_before_a_fault_come_first(server: RunningServer) -> None:
    config = context_pb2.SplitStreamConfig(encoding="cl100k_base", max_tokens=1, with_text=True)
    text = "a b c 🧠 " + "d e f " * 100
    answers = server.stub.SplitStream(
        iter([context_pb2.SplitStreamRequest(config=config, text=text)])
    )
    assert [chunk.text for chunk in next(answers).chunks][:3] == ["a", " b", " c"]
    with pytest.raises(grpc.RpcError) as error:
        next(answers)
    failed = read(error.value)
    assert (failed.reason, failed.field) == ("BUDGET_TOO_SMALL", "config.max_tokens")
    only_a_fault = context_pb2.SplitStreamRequest(config=config, text="🧠")
    with pytest.raises(grpc.RpcError) as error:
        list(server.stub.SplitStream(iter([only_a_fault])))
    assert read(error.value).field == "config.max_tokens"


@pytest.mark.parametrize("streams", [False, True])
def test_others_are_answered_while_a_small_text_is_split_into_many_chunks(
    server: RunningServer, streams: bool
) -> None:
    text = "qz" * 8000
    fields: dict[str, Any] = {"encoding": "cl100k_base", "max_tokens": 1}

    def split() -> None:
        if streams:
            stream(server, text, fields, step=len(text))
        else:
            server.stub.Split(context_pb2.SplitRequest(text=text, **fields))

    answered = 0
    with bystander(server.target) as count, ThreadPoolExecutor(1) as pool:
        splitting = pool.submit(split)
        while not splitting.done():
            count()
            answered += 1
        splitting.result()
    assert answered > 10


@pytest.mark.slow
def test_inspect_reports_places_and_no_text(server: RunningServer) -> None:
    text = f"é\u200b {END} ＜|endoftext|> "
    answer = server.stub.Inspect(
        context_pb2.InspectRequest(encoding="o200k_base", text=text, max_findings=2)
    )
    totals = {context_pb2.FindingCode.Name(each.code)[13:]: each.total for each in answer.totals}
    assert totals["SPECIAL_TOKEN_SPELLED"] == totals["SPECIAL_TOKEN_LOOKALIKE"] == 1
    assert totals["INVISIBLE_CHARACTER"] == 1
    assert len(answer.findings) == 2
    spelled = answer.findings[1]
    assert text.encode()[spelled.start : spelled.end] == END.encode()
    assert (spelled.token, spelled.token_id) == (END, 199999)
    ids = oracle("o200k_base").encode_ordinary(text)
    assert answer.count == len(ids)
    stable = text.encode()[: answer.stable_end].decode()
    assert oracle("o200k_base").encode_ordinary(stable) == ids[: answer.stable_tokens]


@pytest.mark.parametrize(
    ("request_", "reason", "field"),
    [
        (context_pb2.TruncateRequest(text="a"), "INVALID_OPTION", "max_tokens"),
        (context_pb2.TruncateRequest(max_tokens=1, level=UNKNOWN), "INVALID_OPTION", "level"),
        (context_pb2.TruncateRequest(max_tokens=1, keep=UNKNOWN), "INVALID_OPTION", "keep"),
        (
            context_pb2.TruncateRequest(max_tokens=1, unit=text_pb2.OFFSET_UNIT_NONE),
            "INVALID_OPTION",
            "unit",
        ),
        (
            context_pb2.TruncateRequest(
                max_tokens=1, keep=context_pb2.KEEP_BOTH, start_percent=101
            ),
            "INVALID_OPTION",
            "start_percent",
        ),
        (
            context_pb2.TruncateRequest(max_tokens=1, start_percent=50),
            "INVALID_OPTION",
            "start_percent",
        ),
        (
            context_pb2.BatchTruncateRequest(
                items=[text_pb2.TextItem(text="a")],
                max_tokens=1,
                keep=context_pb2.KEEP_END,
                start_percent=0,
            ),
            "INVALID_OPTION",
            "start_percent",
        ),
        (context_pb2.TruncateRequest(max_tokens=1, marker=END), "INVALID_OPTION", "marker"),
        (
            context_pb2.TruncateRequest(text="a b c", max_tokens=1, marker="one two three"),
            "BUDGET_TOO_SMALL",
            "max_tokens",
        ),
        (
            context_pb2.TruncateRequest(text="a b", max_tokens=9, is_part=True),
            "INPUT_TOO_LARGE",
            "text",
        ),
        (
            context_pb2.TruncateRequest(max_tokens=1, is_part=True, keep=context_pb2.KEEP_BOTH),
            "INVALID_OPTION",
            "is_part",
        ),
        (
            context_pb2.TruncateRequest(
                max_tokens=1, is_part=True, disallowed_special=text_pb2.DISALLOWED_SPECIAL_REJECT
            ),
            "INVALID_OPTION",
            "is_part",
        ),
        (
            context_pb2.TruncateRequest(max_tokens=1, is_part=True, count_original=True),
            "INVALID_OPTION",
            "is_part",
        ),
        (
            context_pb2.BatchTruncateRequest(items=[text_pb2.TextItem(text="a")]),
            "INVALID_OPTION",
            "max_tokens",
        ),
        (
            context_pb2.BatchTruncateRequest(
                items=[text_pb2.TextItem(text="a")], max_tokens=1, marker=END
            ),
            "INVALID_OPTION",
            "marker",
        ),
        # Options are checked without an item that uses them.
        (context_pb2.BatchTruncateRequest(), "INVALID_OPTION", "max_tokens"),
        (context_pb2.BatchTruncateRequest(max_tokens=1, level=UNKNOWN), "INVALID_OPTION", "level"),
        (
            context_pb2.BatchTruncateRequest(
                items=[text_pb2.TextItem(segments=[text_pb2.Segment(text="a")])],
                max_tokens=1,
                keep=context_pb2.KEEP_BOTH,
                start_percent=101,
            ),
            "INVALID_OPTION",
            "start_percent",
        ),
        (context_pb2.SplitRequest(text="a"), "INVALID_OPTION", "max_tokens"),
        (
            context_pb2.SplitRequest(text="a", max_tokens=4, overlap_tokens=3),
            "INVALID_OPTION",
            "overlap_tokens",
        ),
        (context_pb2.InspectRequest(codes=[UNKNOWN]), "INVALID_OPTION", "codes"),
        (context_pb2.InspectRequest(max_findings=1001), "INPUT_TOO_LARGE", "max_findings"),
        (
            context_pb2.InspectRequest(codes=[context_pb2.FINDING_CODE_NOT_NFC] * 14),
            "INPUT_TOO_LARGE",
            "codes",
        ),
    ],
)
def test_bad_requests_name_the_field(
    server: RunningServer, request_: Any, reason: str, field: str | None
) -> None:
    request_.encoding = "cl100k_base"
    name = type(request_).__name__.removesuffix("Request")
    with pytest.raises(grpc.RpcError) as error:
        getattr(server.stub, name)(request_)
    failed = read(error.value)
    assert failed.reason == reason
    if field is not None:
        assert field in (failed.field, failed.metadata.get("field"))


@pytest.mark.parametrize(
    ("request_", "values"),
    [
        (
            context_pb2.TruncateRequest(max_tokens=1, keep=UNKNOWN),
            "KEEP_START, KEEP_END, KEEP_BOTH",
        ),
        (
            context_pb2.TruncateRequest(max_tokens=1, unit=text_pb2.OFFSET_UNIT_NONE),
            "OFFSET_UNIT_BYTE, OFFSET_UNIT_CODE_POINT, OFFSET_UNIT_UTF16",
        ),
        (
            context_pb2.SplitRequest(max_tokens=1, disallowed_special=UNKNOWN),
            "DISALLOWED_SPECIAL_REJECT, DISALLOWED_SPECIAL_AS_TEXT",
        ),
    ],
)
def test_the_error_of_an_unknown_value_lists_the_values(
    server: RunningServer, request_: Any, values: str
) -> None:
    request_.encoding = "cl100k_base"
    name = type(request_).__name__.removesuffix("Request")
    with pytest.raises(grpc.RpcError) as error:
        getattr(server.stub, name)(request_)
    assert str(error.value.details()).endswith(f": must be one of {values}")


@pytest.mark.slow
def test_limits_and_flagged_tokens_are_the_operators(serve: Serve, tmp_path: Any) -> None:
    config = tmp_path / "bytepair.toml"
    config.write_text("max_chunks = 2\n[flagged_tokens]\nr50k_base = [43453]\n")
    server = serve("--config", str(config), "--builtin-encodings", "r50k_base")
    with pytest.raises(grpc.RpcError) as error:
        server.stub.Split(
            context_pb2.SplitRequest(encoding="r50k_base", text="a b c d", max_tokens=1)
        )
    rejected = read(error.value)
    assert rejected.metadata["field"] == "chunks"
    assert rejected.message == "chunks: more than the 2 that this server accepts; use SplitStream"
    answer = server.stub.Inspect(
        context_pb2.InspectRequest(encoding="r50k_base", text="x SolidGoldMagikarp y")
    )
    assert [f.token_id for f in answer.findings if f.HasField("token_id")] == [43453]


def test_the_version_of_unicode_is_known(server: RunningServer) -> None:
    listed = server.stub.ListEncodings(tokenizer_pb2.ListEncodingsRequest()).encodings
    assert {encoding.unicode_version.count(".") for encoding in listed} == {2}
