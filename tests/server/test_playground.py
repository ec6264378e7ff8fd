"""The files of the playground, as browsers get them from the gRPC port."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from bytepair_server.playground import playground
from conftest import Serve
from support.check_config import check_config
from support.keys import keys_toml
from support.plain_http import Answer, ask
from support.serving import RunningServer, run_to_end

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self' data:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}


def assets_of(page: Answer) -> list[str]:
    """Return the paths that a page refers to."""
    return [f"/{path}" for path in re.findall(r'(?:src|href)="([^"]+)"', page.body.decode())]


@pytest.fixture
def native(server: RunningServer, pytestconfig: pytest.Config) -> RunningServer:
    """The shared server, if its transport serves files."""
    if pytestconfig.getoption("--transport") == "grpcio":
        pytest.skip("grpcio serves no files")
    return server


def test_the_page_may_run_only_its_own_files(native: RunningServer) -> None:
    page = ask(native.target, "/")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    rules = page.headers["content-security-policy"].split("; ")
    assert {rule.partition(" ")[0]: rule.partition(" ")[2] for rule in rules} == POLICY
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cache-control"] == "no-cache"
    assert b"<script>" not in page.body
    assert not re.search(rb"\s(style|on\w+)=", page.body)


def test_assets_are_cached_forever_under_a_hash_of_all_of_them(native: RunningServer) -> None:
    page = ask(native.target, "/")
    files = playground.files()
    assert {file.path for file in files} >= {"/", *assets_of(page)}
    folders = {file.path.rpartition("/")[0] for file in files} - {""}
    assert len(folders) == 1
    for file in files[1:]:
        answer = ask(native.target, file.path)
        assert (answer.status, answer.body) == (200, file.content)
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        kind = answer.headers["content-type"].partition(";")[0]
        assert kind in ("text/css", "text/javascript", "image/svg+xml")


def test_a_page_that_the_browser_has_cached_is_not_sent_again(native: RunningServer) -> None:
    etag = ask(native.target, "/").headers["etag"]
    again = ask(native.target, "/", if_none_match=etag)
    assert (again.status, again.body) == (304, b"")
    assert ask(native.target, "/", if_none_match='"other"').status == 200


def test_head_returns_only_the_headers(native: RunningServer) -> None:
    page, head = ask(native.target, "/"), ask(native.target, "/", "HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(page.body))


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/"),
        ("GET", "//"),
        ("GET", "/index.html"),
        ("GET", "/assets/"),
        ("GET", "/assets/main.js"),
        ("GET", "/assets/../../settings.py"),
        ("GET", "/%2e%2e/settings.py"),
    ],
)
def test_no_other_path_is_a_file(native: RunningServer, method: str, path: str) -> None:
    assert ask(native.target, path, method).status in (404, 405, 415)


def test_the_page_is_small_and_uses_no_other_host() -> None:
    files = playground.files()
    assert sum(len(file.content) for file in files) < 100_000
    for file in files:
        text = file.content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(https?:|wss?:)?//[a-z0-9.-]+\.[a-z]", text), file.path
        for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert unsafe not in text, file.path


def test_modules_import_only_served_files() -> None:
    names = {file.path.rpartition("/")[2] for file in playground.files()}
    for file in playground.files():
        if file.path.endswith(".js"):
            imported = re.findall(r'from "\./([^"]+)"', file.content.decode())
            assert set(imported) <= names, file.path


def test_the_playground_can_be_turned_off(serve: Serve) -> None:
    server = serve("--transport", "native", "--playground", "off")
    page = ask(server.target, "/")
    assert (page.status, page.headers["content-type"]) == (404, "application/json")
    assert b"/bytepair.v1.TokenizerService/Count" in page.body
    assert server.wait_for_log("serving")["playground"] == "off"


def test_the_playground_is_off_by_default_if_keys_are_required(
    serve: Serve, tmp_path: Path
) -> None:
    (keys := tmp_path / "keys.toml").write_text(keys_toml(me="secret"), encoding="utf-8")
    flags = ("--transport", "native", "--api-keys-file", str(keys))
    closed = serve(*flags)
    assert ask(closed.target, "/").status == 404
    opened = serve(*flags, "--playground", "on")
    assert ask(opened.target, "/").status == 200
    call = ask(
        opened.target,
        "/bytepair.v1.TokenizerService/ListEncodings",
        "POST",
        content_type="application/json",
    )
    assert call.status == 401


def test_the_startup_log_has_the_address_of_the_playground(serve: Serve) -> None:
    server = serve("--transport", "native", "--workers", "2")
    assert server.wait_for_log("serving")["playground"] == f"http://{server.target}/"
    assert ask(server.target, "/").status == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("--transport", "grpcio", "--grpc-address", "127.0.0.1:0"),
        ("--grpc-address", "unix:/tmp/none"),
    ],
)
def test_it_cannot_be_turned_on_if_no_browser_could_reach_it(arguments: tuple[str, ...]) -> None:
    flags = ("--playground", "on", "--http-address", "none", *arguments)
    for run in (check_config, partial(run_to_end, "--allow-reference-backend")):
        ended = run(*flags)
        assert ended.returncode == 2
        assert "playground: on needs the native transport at host:port" in ended.stderr


def test_grpcio_serves_no_playground(serve: Serve) -> None:
    server = serve("--transport", "grpcio")
    assert server.wait_for_log("serving")["playground"] == "off"
