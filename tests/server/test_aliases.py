"""Aliases from the configuration: the encodings that they name, and errors for unknown names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_server.catalog import load
from bytepair_server.config.aliases import aliases_of
from bytepair_server.config.loader import ConfigurationError
from bytepair_server.config.settings import Settings
from bytepair_server.errors import EncodingNotLoaded
from bytepair_server.observability.metrics import MAX_UNKNOWN_NAMES, Metrics
from bytepair_server.shared.metrics import OTHER
from support.failures import failure
from support.serving import RunningServer, write_config

END = "<|endoftext|>"

CONFIG = f"""
builtin_encodings = ["cl100k_base", "o200k_base"]
[aliases]
"azure/gpt-4o" = "o200k_base"
"gpt-9-*" = "o200k_base"
"gpt-9-old-*" = "cl100k_base"
"gpt-9-old-but-new" = "o200k_base"
"*/llama-9" = "mine"
[encodings.mine]
extends = "r50k_base"
aliases = ["mine-*"]
[ceiling.default]
o200k_base = ["{END}"]
"""


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("aliases")
    with RunningServer("--config", write_config(folder, CONFIG)) as running:
        yield running


def encoding_of(server: RunningServer, name: str) -> str:
    answer = server.stub.Count(tokenizer_pb2.CountRequest(encoding=name, text="x"))
    assert server.stub.GetEncoding(
        tokenizer_pb2.GetEncodingRequest(encoding=name)
    ).encoding.fingerprint == (answer.fingerprint)
    return str(answer.encoding)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("azure/gpt-4o", "o200k_base"),
        ("gpt-9-mini", "o200k_base"),
        ("gpt-9-old-mini", "cl100k_base"),
        ("gpt-9-old-but-new", "o200k_base"),
        ("anything/llama-9", "mine"),
        ("mine-2", "mine"),
        ("gpt-4o-2099-01-01", "o200k_base"),
        ("ft:gpt-4o-mini:org::id", "o200k_base"),
        ("ft:gpt-4:org::id", "cl100k_base"),
    ],
)
def test_an_alias_is_answered_with_the_canonical_name(
    named: RunningServer, name: str, encoding: str
) -> None:
    assert encoding_of(named, name) == encoding


@pytest.mark.slow
def test_metrics_and_descriptions_have_the_canonical_name(named: RunningServer) -> None:
    before = named.metric("bytepair_requests_total", rpc="Count", encoding="o200k_base")
    named.stub.Count(tokenizer_pb2.CountRequest(encoding="azure/gpt-4o", text="x"))
    after = named.metric("bytepair_requests_total", rpc="Count", encoding="o200k_base")
    assert after == before + 1
    assert 'encoding="azure/gpt-4o"' not in named.get("/metrics")[1]
    described = named.stub.GetEncoding(
        tokenizer_pb2.GetEncodingRequest(encoding="gpt-9-mini")
    ).encoding
    assert described.name == "o200k_base"
    assert {"azure/gpt-4o", "gpt-9-*", "gpt-4o", "gpt-4o-*"} <= set(described.aliases)


@pytest.mark.slow
def test_a_ceiling_applies_under_every_alias(named: RunningServer) -> None:
    request = tokenizer_pb2.EncodeRequest(encoding="gpt-9-x", text=END, allowed_special=[END])
    assert list(named.stub.Encode(request).ids) == [199999]
    request.encoding = "gpt-9-old-x"
    assert failure(named.stub.Encode, request).reason == "SPECIAL_TOKEN_NOT_PERMITTED"


@pytest.mark.slow
def test_an_unknown_name_gets_suggestions_and_is_logged_once(named: RunningServer) -> None:
    request = tokenizer_pb2.CountRequest(encoding="azure/gtp-4o", text="x")
    for _ in range(3):
        failed = failure(named.stub.Count, request)
    assert (failed.code, failed.reason) == (grpc.StatusCode.NOT_FOUND, "UNKNOWN_ENCODING")
    assert failed.metadata["nearest"].split(", ")[0] == "azure/gpt-4o"
    assert "[aliases]" in failed.message
    named.wait_for_log(
        "unknown encoding requested; [aliases] of the configuration can add a name",
        name="azure/gtp-4o",
    )
    assert named.metric("bytepair_unknown_encoding_total", requested="azure/gtp-4o") == 3
    lines = [line for line in named.log if line.get("name") == "azure/gtp-4o"]
    assert len(lines) == 1


@pytest.mark.slow
def test_a_malformed_encoding_name_is_neither_logged_nor_a_label(named: RunningServer) -> None:
    for name in ("", "my secret text", "x" * 65, 'a"b', "a\nb", "né"):
        failure(named.stub.Count, tokenizer_pb2.CountRequest(encoding=name, text="x"))
    page = named.get("/metrics")[1] + named.raw_log
    assert "secret" not in page
    assert "x" * 65 not in page
    assert named.metric("bytepair_unknown_encoding_total", requested=OTHER) == 6
    assert not any(line.get("name") == OTHER for line in named.log)


def test_the_remembered_unknown_names_are_bounded() -> None:
    metrics = Metrics()
    counted = [metrics.unknown_encoding(f"model-{i}") for i in range(MAX_UNKNOWN_NAMES + 10)]
    assert counted[:MAX_UNKNOWN_NAMES] == [f"model-{i}" for i in range(MAX_UNKNOWN_NAMES)]
    assert counted[MAX_UNKNOWN_NAMES:] == [None] * 10
    assert metrics.unknown_encoding("model-0") is None


def settings(**values: Any) -> Settings:
    return Settings(**{"builtin_encodings": ("cl100k_base", "o200k_base"), **values})


@pytest.mark.parametrize(
    ("aliases", "said"),
    [
        ({"new": "gpt-4o"}, "no encoding of the canonical name 'gpt-4o' is configured"),
        ({"new": "gpt-4o"}, "'gpt-4o' is an alias of o200k_base: write o200k_base"),
        ({"new": "r50k_base"}, "no encoding of the canonical name 'r50k_base' is configured"),
        ({"cl100k_base": "o200k_base"}, "'cl100k_base' already names cl100k_base"),
        # Nor if the encoding is not loaded.
        ({"p50k_base": "o200k_base"}, "'p50k_base' already names p50k_base"),
        ({"gpt-4o": "cl100k_base"}, "'gpt-4o' already names o200k_base"),
        ({"gpt-4o-*": "cl100k_base"}, "'gpt-4o-*' already names o200k_base"),
        ({"a*": "cl100k_base", "*b": "o200k_base"}, "'a*' (cl100k_base) and '*b' (o200k_base)"),
        ({"": "o200k_base"}, "must be 1 to 128 printable characters"),
        ({"a b": "o200k_base"}, "must be 1 to 128 printable characters"),
        ({"x" * 129: "o200k_base"}, "must be 1 to 128 printable characters"),
        ({"**": "o200k_base"}, "matches every name"),
        ({f"m{i}": "o200k_base" for i in range(257)}, "257 names exceed the maximum of 256"),
    ],
)
def test_a_misleading_alias_is_rejected(aliases: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        aliases_of(settings(aliases=aliases))
    assert said in str(caught.value)


def test_the_rules_for_aliases_apply_to_aliases_of_an_encoding_too() -> None:
    for alias in ("", "*", "gpt-4o", "o200k_base"):
        mine = {"mine": {"extends": "r50k_base", "aliases": [alias]}}
        with pytest.raises(ConfigurationError, match=r"^encodings.mine: "):
            aliases_of(settings(encodings=mine))
    mine = {"mine": {"extends": "r50k_base", "aliases": ["x"]}}
    with pytest.raises(ConfigurationError, match=r"^aliases: 'x' already names mine"):
        aliases_of(settings(encodings=mine, aliases={"x": "cl100k_base"}))


def test_an_alias_of_an_encoding_that_is_not_served_names_no_other_one() -> None:
    """ "ft:gpt-4*" would match a model of gpt-4o if o200k_base is not loaded."""
    catalog = load(Settings(builtin_encodings=("cl100k_base",)), Path())
    for name in ("gpt-4o", "ft:gpt-4o:org::id", "gpt-4o-mini"):
        with pytest.raises(LookupError):
            catalog.get(name)
    assert catalog.get("ft:gpt-4:org::id").name == "cl100k_base"
    broken = {"mine": {"file": "none", "pattern": "gpt2", "aliases": ["gpt-4-mine"]}}
    catalog = load(
        settings(
            encodings=broken, aliases={"gpt-4-my-*": "mine"}, serve_without_bad_encodings=True
        ),
        Path(),
    )
    for name in ("mine", "gpt-4-mine", "gpt-4-my-model"):
        with pytest.raises(EncodingNotLoaded):
            catalog.get(name)
    named = {"gpt-4-named": {"file": "none", "pattern": "gpt2"}}
    catalog = load(settings(encodings=named, serve_without_bad_encodings=True), Path())
    with pytest.raises(EncodingNotLoaded):
        catalog.get("gpt-4-named")


def test_an_own_pattern_wins_over_a_published_one_of_equal_length() -> None:
    """A new version of the published table must not keep a server from starting."""
    catalog = load(settings(aliases={"*-gpt-4o": "cl100k_base"}), Path())
    assert catalog.get("gpt-4o-gpt-4o").name == "cl100k_base"


def test_an_operator_may_reuse_the_names_of_encodings_that_are_not_loaded() -> None:
    names = {"gpt2": "o200k_base", "gpt-oss-*": "o200k_base"}
    catalog = load(settings(aliases=names), Path())
    assert {catalog.get(name).name for name in ("gpt2", "gpt-oss-20b")} == {"o200k_base"}
