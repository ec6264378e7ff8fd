"""The laws of Truncate, Split, SplitStream and Inspect through a server, for built-in encodings and
other formats; tests/engine/test_context_laws.py lists them, and other libraries count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from bytepair.v1 import context_pb2, text_pb2, tokenizer_pb2, tokenizer_pb2_grpc
from bytepair_engine import EncodingSpec, list_encodings, load_encoding
from bytepair_engine.context.boundaries import LEVELS
from bytepair_engine.context.inspecting import Finding, FindingCode, Inspection
from bytepair_engine.context.splitting import Chunk, SplitOptions
from bytepair_engine.context.truncation_search import Truncation
from bytepair_engine.errors import BudgetTooSmall
from bytepair_engine.streaming.encoder import can_stream
from support.context_api import KEEPS, Cut, Encode
from support.context_cases import Cases
from support.context_checks import (
    check_budgets,
    check_inspection,
    check_split,
    check_truncation,
)
from support.context_formats import counts, encode_of, oracle_of, written
from support.context_laws import AWKWARD, shorter
from support.failures import read
from support.sentencepiece_models import MODELS
from support.serving import RunningServer, write_config
from support.slow import WITHOUT_CORE

SEED = 20261124
#: The formats that a server takes: its text for self-tests comes back from them. Two cannot be
#: streamed into, three change other texts, two have a template.
OTHERS = {
    "one": "byte level",
    "two": "steps after byte level",
    "three": "digits, then byte level",
    "four": "stripped",
    "five": "llama",
    "six": "gemma",
    "seven": "byte level, NFC",
    "eight": "NFKC, spaces kept",
    "nine": "ranks, a template",
    "ten": "a pipeline, a template",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `OTHERS`, by name."""
    folder = tmp_path_factory.mktemp("others")
    for name, kind in OTHERS.items():
        (folder / name).mkdir()
        written(kind, folder / name)
    return folder


def configuration(folder: Path, builtin: Sequence[str]) -> str:
    """A configuration with encodings whose special tokens may all be allowed."""
    lines = [f"builtin_encodings = {list(builtin)}"]
    for name in OTHERS:
        lines += [f"[encodings.{name}]", f"file = '{next((folder / name).iterdir())}'"]
    lines += ["[ceiling.default]", *(f'{name} = "ALL"' for name in [*builtin, *OTHERS])]
    return write_config(folder, "\n".join(lines))


@pytest.fixture(scope="module")
def others(folder: Path) -> Iterator[RunningServer]:
    with RunningServer("--config", configuration(folder, list_encodings())) as running:
        yield running


@pytest.fixture(scope="module")
def reference(folder: Path) -> Iterator[RunningServer]:
    """The same on the reference backend."""
    config = configuration(folder, ["r50k_base"])
    with RunningServer("--config", config, environment=WITHOUT_CORE) as running:
        yield running


class Wire:
    """One encoding of a server. Places come in UTF-16 units, and become code points again."""

    def __init__(self, stub: tokenizer_pb2_grpc.TokenizerServiceStub, name: str) -> None:
        self._stub = stub
        self._name = name
        request = tokenizer_pb2.GetEncodingRequest(encoding=name)
        described = stub.GetEncoding(request).encoding
        self.special_tokens: Collection[str] = [each.token for each in described.special_tokens]

    def truncate(self, text: str, cut: Cut) -> Truncation:
        fields: dict[str, Any] = {
            "encoding": self._name,
            "max_tokens": cut.most,
            "keep": KEEPS.index(cut.keep) + 1,
            "level": LEVELS.index(cut.level) + 1,
            "marker": cut.marker,
            "start_percent": cut.percent if cut.keep == "both" else None,
            "allowed_special": cut.allowed,
            "add_special_tokens": cut.template,
            "unit": text_pb2.OFFSET_UNIT_UTF16,
        }
        items = [text_pb2.TextItem(text=each) for each in (text, "", text)]
        batch = self._stub.BatchTruncate(context_pb2.BatchTruncateRequest(items=items, **fields))
        assert batch.results[1].text == ""
        assert batch.results[0] == batch.results[2]
        try:
            answer = self._stub.Truncate(context_pb2.TruncateRequest(text=text, **fields))
        except grpc.RpcError as error:
            raise _too_small(error) from None
        assert (answer.text, answer.kept) == (batch.results[0].text, batch.results[0].kept)
        kept = tuple((_point(text, part.start), _point(text, part.end)) for part in answer.kept)
        level = LEVELS[answer.level - 1] if answer.level else None
        return Truncation(answer.text, answer.count, answer.truncated, kept, level)

    def split(self, text: str, options: SplitOptions) -> Iterator[Chunk]:
        request = context_pb2.SplitRequest(
            text=text, unit=text_pb2.OFFSET_UNIT_UTF16, **self._split_fields(options)
        )
        try:
            answer = self._stub.Split(request)
        except grpc.RpcError as error:
            raise _too_small(error) from None
        yield from (_chunk(text, chunk) for chunk in answer.chunks)

    def stream(self, text: str, options: SplitOptions, size: int) -> Iterator[Chunk]:
        config = context_pb2.SplitStreamConfig(
            unit=text_pb2.OFFSET_UNIT_UTF16, **self._split_fields(options)
        )
        data = text.encode()
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        messages = [
            context_pb2.SplitStreamRequest(config=config),
            *(context_pb2.SplitStreamRequest(data=piece) for piece in pieces),
        ]
        try:
            for answer in self._stub.SplitStream(iter(messages)):
                yield from (_chunk(text, chunk) for chunk in answer.chunks)
        except grpc.RpcError as error:
            raise _too_small(error) from None

    def _split_fields(self, options: SplitOptions) -> dict[str, Any]:
        return {
            "encoding": self._name,
            "max_tokens": options.max_tokens,
            "overlap_tokens": options.overlap_tokens,
            "level": LEVELS.index(options.level) + 1,
            "min_fill_percent": options.min_fill_percent,
            "allowed_special": options.allowed_special,
            "add_special_tokens": options.add_special_tokens,
            "with_text": True,
        }

    def inspect(self, text: str, max_findings: int | None = None) -> Inspection:
        request = context_pb2.InspectRequest(
            encoding=self._name,
            text=text,
            max_findings=max_findings,
            unit=text_pb2.OFFSET_UNIT_UTF16,
        )
        answer = self._stub.Inspect(request)
        findings = tuple(
            Finding(
                _point(text, found.start),
                _point(text, found.end),
                FindingCode(found.code),
                found.token_id if found.HasField("token_id") else None,
                found.token or None,
                found.code_point or None,
            )
            for found in answer.findings
        )
        totals = {FindingCode(each.code): each.total for each in answer.totals}
        end = _point(text, answer.stable_end)
        return Inspection(findings, totals, answer.count, answer.stable_tokens, end)

    def spelled(self, text: str) -> tuple[str, int] | None:
        try:
            self._stub.Encode(tokenizer_pb2.EncodeRequest(encoding=self._name, text=text))
        except grpc.RpcError as error:
            failed = read(error)
            assert failed.reason == "SPECIAL_TOKEN_IN_TEXT"
            return failed.metadata["token"], int(failed.metadata["byte_offset"])
        return None


def _point(text: str, place: int) -> int:
    return len(text.encode("utf-16-le")[: 2 * place].decode("utf-16-le"))


def _chunk(text: str, chunk: context_pb2.Chunk) -> Chunk:
    start, end = _point(text, chunk.start), _point(text, chunk.end)
    level = LEVELS[chunk.end_level - 1]
    return Chunk(start, end, chunk.count, level, chunk.overlap, chunk.text)


def _too_small(error: grpc.RpcError) -> Exception:
    failed = read(error)
    if failed.reason != "BUDGET_TOO_SMALL":
        return error
    offset = failed.metadata.get("byte_offset")
    facts = (int(failed.metadata["needed"]), int(failed.metadata["budget"]))
    return BudgetTooSmall(*facts, None if offset is None else int(offset))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*list_encodings(), *OTHERS])
def test_all_laws(others: RunningServer, folder: Path, name: str) -> None:
    """Laws T1 to T7, T9, S1 to S11 and I1 to I7."""
    api, encode, streams = known(folder, others, name)
    cases = cases_of(name, api)
    for number, text in enumerate(texts(cases)):
        cut = cases.cut(number % 4)
        count, options = counts(encode, cut), cases.split(cut)
        check_truncation(api, text, cut, count)
        sizes = [cases.rng.choice([1, 7, 1000])] if streams else []
        check_split(api, text, options, count, sizes)
        check_inspection(api, text, cases.text(3), encode)
    check_budgets(api, cases.text(20), "end", "word", range(9))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r50k_base", *OTHERS])
def test_truncate_on_the_reference(reference: RunningServer, folder: Path, name: str) -> None:
    """Laws T1 to T7. Graphemes, words and sentences need the core, and so do chunks, which tell the
    level at which they end."""
    api, encode, _ = known(folder, reference, name)
    cases = cases_of(name, api)
    for number, text in enumerate(texts(cases)[::3]):
        cut = replace(cases.cut(number % 4), level="code_point")
        check_truncation(api, text, cut, counts(encode, cut))


def cases_of(name: str, api: Wire) -> Cases:
    if name not in OTHERS:
        return Cases(f"{SEED} {name}", sorted(api.special_tokens)[:20])
    return Cases(f"{SEED} {name}", api.special_tokens, allow=OTHERS[name] not in MODELS)


def texts(cases: Cases) -> list[str]:
    """Awkward ones, and random ones."""
    return [*map(shorter, AWKWARD), *(cases.text(12) for _ in range(12))]


def known(folder: Path, server: RunningServer, name: str) -> tuple[Wire, Encode, bool]:
    """One encoding, what gives its ids, and whether it can be streamed into."""
    wire = Wire(server.stub, name)
    if name not in OTHERS:
        return wire, oracle_of(name), True
    file = next((folder / name).iterdir())
    encoding = load_encoding(EncodingSpec(name=name, file=file))
    return wire, encode_of(OTHERS[name]), can_stream(encoding)
