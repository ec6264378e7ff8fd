"""The programs of examples/ call real servers, and the stubs of the page are generated.

make interop

Needs Go, Node, Maven and a network, so pytest does not collect it by default. Programs whose tools
are missing are skipped.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.request import Request, urlopen

import grpc
import pytest
from support.programs import BUILD_SECONDS, ROOT, WORK, Served, call, made, need

GO_PLUGINS: Final = (
    "google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.10",
    "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.5.1",
)
#: The expected output of every program.
PRINTED: Final = "count 2 o200k_base\nstream a naïve 👋 café\nreason UNKNOWN_ENCODING\n"
#: Maven resets the terminal's colours wherever it writes to.
RESET: Final = "\x1b[0m"
JSON: Final = {"content-type": "application/json"}

pytestmark = pytest.mark.timeout(BUILD_SECONDS)


@dataclass(frozen=True)
class Example:
    """A program of examples/.

    Attributes:
        folder: Folder of the program.
        needs: Tools that must be installed.
        build: Commands that build it.
        run: The command that runs it.
    """

    folder: str
    needs: tuple[str, ...]
    build: tuple[tuple[str, ...], ...]
    run: tuple[str, ...]


NPM: Final = ("npm", "install", "--silent", "--no-audit", "--no-fund")
EXAMPLES: Final = (
    Example(
        "go",
        ("go",),
        (("go", "generate"), ("go", "mod", "tidy"), ("go", "build", "-o", "client")),
        ("./client",),
    ),
    Example("node-grpc", ("npm", "node"), (NPM,), ("node", "main.js")),
    Example(
        "node-connect", ("npm", "node"), (NPM, ("npm", "run", "generate")), ("node", "main.js")
    ),
    Example(
        "java",
        ("mvn", "java"),
        (("mvn", "--batch-mode", "--quiet", "compile"),),
        ("mvn", "--batch-mode", "--quiet", "exec:java"),
    ),
)


@pytest.fixture(scope="session", params=EXAMPLES, ids=lambda example: example.folder)
def example(request: pytest.FixtureRequest, protoc: None) -> Callable[..., Any]:
    """Run one of the programs, built in a copy, with these variables."""
    program: Example = request.param
    need(*program.needs)
    if program.folder == "go":
        for plugin in GO_PLUGINS:
            made("go", "install", plugin)
    folder = WORK / "examples" / program.folder
    # Files of an earlier build may not fit today's program or proto: `go generate` rejects the
    # go.mod if the go.sum is old.
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "examples" / program.folder, folder, dirs_exist_ok=True)
    shutil.copytree(ROOT / "proto/bytepair", WORK / "proto/bytepair", dirs_exist_ok=True)
    shutil.copy(ROOT / "proto/buf.yaml", WORK / "proto")
    for command in program.build:
        made(*command, cwd=folder)

    def run(**variables: str) -> subprocess.CompletedProcess[str]:
        done = call(*program.run, cwd=folder, variables=variables)
        done.stdout = done.stdout.replace(RESET, "")
        return done

    run.name = program.folder  # type: ignore[attr-defined]
    return run


@contextmanager
def failing_at_first(target: str, *codes: grpc.StatusCode) -> Iterator[str]:
    """A gRPC proxy that answers the first calls with these statuses. Yields its address."""
    left = list(codes)

    class Proxy(grpc.GenericRpcHandler):
        def service(self, details: Any) -> Any:
            def forward(requests: Any, context: Any) -> Any:
                if left:
                    context.abort(left.pop(), "try again")
                try:
                    yield from channel.stream_stream(details.method)(requests)
                except grpc.RpcError as raised:
                    error: Any = raised
                    context.set_trailing_metadata(error.trailing_metadata())
                    context.set_code(error.code())
                    context.set_details(error.details())

            return grpc.stream_stream_rpc_method_handler(forward)

    with grpc.insecure_channel(target) as channel:
        server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[Proxy()])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(1).wait()
            assert not left


def test_a_program_counts_streams_and_handles_the_reason(
    example: Callable[..., Any], plain: Served
) -> None:
    done = example(**plain.variables)
    assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr


def test_a_program_uses_tls_and_a_key(example: Callable[..., Any], guarded: Served) -> None:
    done = example(**guarded.variables)
    assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr


def test_a_program_reports_an_unknown_key(example: Callable[..., Any], guarded: Served) -> None:
    done = example(**guarded.variables | {"BYTEPAIR_API_KEY": "another"})
    assert (done.returncode, done.stdout) == (1, "")
    assert "UNAUTHENTICATED" in done.stderr


def test_a_program_reports_when_to_retry(example: Callable[..., Any], limited: Served) -> None:
    done = example(**limited.variables)
    assert done.returncode == 1
    wait = re.search(r"QUOTA_EXCEEDED \(retry after ([\d.]+)s\)", done.stderr)
    assert wait is not None, done.stderr
    assert 40 < float(wait.group(1)) <= 50


def test_a_program_retries_calls_of_a_stopping_server(
    example: Callable[..., Any], plain: Served
) -> None:
    if example.name == "node-connect":  # type: ignore[attr-defined]
        pytest.skip("the proxy of this test speaks gRPC alone")
    codes = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    with failing_at_first(plain.target, *codes) as target:
        done = example(BYTEPAIR_TARGET=target)
    assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr


def test_the_stubs_of_the_page_are_generated(tmp_path: Path) -> None:
    need("go", "npm")
    page = (ROOT / "docs/other-languages.md").read_text(encoding="utf-8")
    ((config, commands),) = re.findall(r"```yaml\n(.+?)```\n+```sh\n(.+?)```", page, re.DOTALL)
    for folder in ("proto/bytepair", "examples/node-connect/proto"):
        shutil.copytree(ROOT / folder, tmp_path / "bytepair" / folder)
    app = tmp_path / "app"
    app.mkdir()
    (app / "buf.gen.yaml").write_text(config)
    (app / "go.mod").write_text("module app.example\n")
    made("bash", "-euc", commands, cwd=app)
    made("go", "mod", "tidy", cwd=app)
    made("go", "build", "./gen/bytepair/v1", cwd=app)
    typescript = (app / "gen/bytepair/v1/tokenizer_pb.ts").read_text(encoding="utf-8")
    assert 'from "./text_pb.js"' in typescript
    # Google's error details, for TypeScript alone.
    inputs = "\ninputs:\n"
    more = config.replace(
        inputs, f"{inputs}  - directory: ../bytepair/examples/node-connect/proto\n"
    )
    (app / "buf.gen.yaml").write_text(more)
    made("npx", "buf", "generate", cwd=app)
    assert (app / "gen/google/rpc/error_details_pb.ts").exists()


def test_fetch_counts_and_handles_the_reason(guarded: Served) -> None:
    need("node")
    script = f"""
        import {{ Tokenizer }} from "{ROOT}/examples/browser/tokenizer.js";
        const {{ BYTEPAIR_TARGET: target, BYTEPAIR_API_KEY: key }} = process.env;
        const request = (encoding) => ({{ encoding, text: "hello world" }});
        const tokenizer = new Tokenizer(`https://${{target}}`, key);
        const {{ count, encoding }} = await tokenizer.call("Count", request("gpt-4o"));
        console.log("count", Number(count), encoding);
        const failed = await tokenizer.call("Count", request("gpt-unknown")).catch((it) => it);
        console.log("reason", failed.reason);
    """
    authorities = {"NODE_EXTRA_CA_CERTS": guarded.variables["BYTEPAIR_TLS_CA"]}
    command = ("node", "--input-type=module", "--eval", script)
    done = call(*command, variables=guarded.variables | authorities)
    assert done.stdout == "count 2 o200k_base\nreason UNKNOWN_ENCODING\n", done.stderr


def test_fetch_repeats_calls_that_a_proxy_fails(plain: Served) -> None:
    need("node")
    left = [502, 503, 0]

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if left:
                status = left.pop(0)
                if status:
                    self.send_response(status)
                    self.end_headers()
                    self.wfile.write(b"<html>try again</html>")
                return  # 0: without any answer
            with urlopen(Request(f"http://{plain.target}{self.path}", self.body(), JSON)) as answer:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(answer.read())

        def body(self) -> bytes:
            return self.rfile.read(int(self.headers["content-length"]))

    script = f"""
        import {{ Tokenizer }} from "{ROOT}/examples/browser/tokenizer.js";
        const tokenizer = new Tokenizer(`http://${{process.env.BYTEPAIR_TARGET}}`);
        console.log(await tokenizer.call("Count", {{ encoding: "gpt-4o", text: "a" }}));
    """
    with HTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        Thread(target=proxy.serve_forever, daemon=True).start()
        target = f"127.0.0.1:{proxy.server_port}"
        command = ("node", "--input-type=module", "--eval", script)
        done = call(*command, variables={"BYTEPAIR_TARGET": target})
        proxy.shutdown()
    assert "count: '1'" in done.stdout, done.stderr
