"""Tools without knowledge of this project call real servers: grpcurl, curl and h2load.

make interop

pytest does not collect it by default. Missing tools are skipped by name.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from bytepair.v1 import tokenizer_pb2
from support.programs import BUILD_SECONDS, Served, call, made, need

GRPCURL: Final = "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3"
COUNT: Final = "bytepair.v1.TokenizerService/Count"

pytestmark = pytest.mark.timeout(BUILD_SECONDS)


def test_grpcurl_finds_the_api_by_reflection(plain: Served) -> None:
    need("go")
    made("go", "install", GRPCURL)
    listed = call("grpcurl", "-plaintext", plain.target, "list")
    assert "bytepair.v1.TokenizerService" in listed.stdout.split()
    request = json.dumps({"encoding": "gpt-4o", "text": "hello world"})
    counted = call("grpcurl", "-plaintext", "-d", request, plain.target, COUNT)
    assert json.loads(counted.stdout)["count"] == "2", counted.stderr


@pytest.mark.parametrize("version", ["--http1.1", "--http2-prior-knowledge"])
def test_curl_counts_by_json(plain: Served, version: str) -> None:
    need("curl")
    answer = _curl(f"http://{plain.target}/{COUNT}", version)
    assert (answer["count"], answer["encoding"]) == ("2", "o200k_base")


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_curl_uses_tls_and_a_key(guarded: Served, version: str) -> None:
    need("curl")
    url, ca = f"https://{guarded.target}/{COUNT}", guarded.variables["BYTEPAIR_TLS_CA"]
    key = ("-H", f"authorization: Bearer {guarded.variables['BYTEPAIR_API_KEY']}")
    assert _curl(url, version, "--cacert", ca, *key)["count"] == "2"
    rejected = _curl(url, version, "--cacert", ca)
    assert (rejected["code"], rejected["details"][0]["type"]) == (
        "unauthenticated",
        "google.rpc.ErrorInfo",
    )


def _curl(url: str, *options: str) -> Any:
    body = json.dumps({"encoding": "gpt-4o", "text": "hello world"})
    json_type = ("-H", "content-type: application/json")
    done = call("curl", "--silent", "--show-error", *json_type, *options, "-d", body, url)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_h2load_reports_no_error(plain: Served, tmp_path: Path) -> None:
    need("h2load")
    raw = tokenizer_pb2.CountRequest(encoding="gpt-4o", text="hello world").SerializeToString()
    (tmp_path / "request").write_bytes(b"\0" + len(raw).to_bytes(4, "big") + raw)
    headers = ("-H", "content-type: application/grpc", "-H", "te: trailers")
    load = ("--requests", "10000", "--clients", "10", "--max-concurrent-streams", "10")
    url = f"http://{plain.target}/{COUNT}"
    done = call("h2load", *load, *headers, "--data", str(tmp_path / "request"), url)
    succeeded = re.search(r"(\d+) succeeded, (\d+) failed", done.stdout)
    assert succeeded is not None, done.stdout + done.stderr
    assert succeeded.groups() == ("10000", "0")
