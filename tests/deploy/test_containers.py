"""Image, compose file and server agree, and no container has unneeded privileges."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from bytepair_server.config.loader import load
from bytepair_server.config.settings import Settings
from bytepair_server.config.types import split_address

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]

GRPC_PORT = split_address(Settings().grpc_address)[1]
HTTP_PORT = split_address(Settings().http_address)[1]


def test_the_image_exposes_the_ports_that_the_server_listens_on_by_default() -> None:
    exposed = re.search(r"^EXPOSE (.*)$", DOCKERFILE, re.MULTILINE)
    assert exposed is not None
    assert [int(port) for port in exposed[1].split()] == [GRPC_PORT, HTTP_PORT]
    assert f"127.0.0.1:{GRPC_PORT}" in DOCKERFILE.split("HEALTHCHECK")[1]


def test_compose_and_prometheus_use_the_same_ports() -> None:
    assert SERVICES["server"]["ports"][0].endswith(f":{GRPC_PORT}")
    assert SERVICES["server"]["expose"] == [str(HTTP_PORT)]
    assert SERVICES["demo"]["environment"]["BYTEPAIR_TARGET"] == f"dns:///server:{GRPC_PORT}"
    prometheus = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text("utf-8"))
    [discovery] = prometheus["scrape_configs"][0]["dns_sd_configs"]
    assert (discovery["names"], discovery["port"]) == (["server"], HTTP_PORT)


def test_containers_are_killed_only_after_the_drain() -> None:
    period = SERVICES["server"]["stop_grace_period"]
    assert period.endswith("s")
    assert float(period[:-1]) > max(Settings().grace_seconds, Settings().stream_grace_seconds)


def test_the_shipped_configuration_is_valid_and_changes_no_address() -> None:
    folder = SERVICES["server"]["volumes"][0].split(":")
    assert folder[1:] == ["/etc/bytepair", "ro"]
    assert SERVICES["server"]["environment"]["BYTEPAIR_CONFIG"] == "/etc/bytepair/bytepair.toml"
    settings = load(["--config", str(ROOT / folder[0] / "bytepair.toml")], {}).settings
    assert settings.grpc_address == Settings().grpc_address
    assert settings.http_address == Settings().http_address
    assert settings.ceiling == {}


@pytest.mark.parametrize("name", SERVICES)
def test_no_container_has_unneeded_privileges(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    limits = service["deploy"]["resources"]["limits"]
    assert {"cpus", "memory", "pids"} <= limits.keys()
    for port in service.get("ports", []):
        assert ":-127.0.0.1:" in port, "published beyond this machine by default"
    for volume in service.get("volumes", []):
        if volume.startswith("."):
            assert volume.endswith(":ro")


def test_every_image_is_pinned() -> None:
    tags = re.findall(r"^ARG \w+_IMAGE=(\S+)$", DOCKERFILE, re.MULTILINE)
    tags += [
        service["image"] for service in SERVICES.values() if "bytepair" not in service["image"]
    ]
    assert len(tags) == 4
    for image in tags:
        assert re.search(r":v?\d+\.\d+", image), image


def test_the_image_runs_as_an_unprivileged_user() -> None:
    final_stage = DOCKERFILE.rpartition("\nFROM ")[2]
    users = re.findall(r"^USER (\d+):(\d+)$", final_stage, re.MULTILINE)
    assert len(users) == 1
    assert all(int(part) >= 10_000 for part in users[0])


def test_the_documented_limits_are_the_real_ones() -> None:
    document = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    table = document.split("\n## Limits\n")[1].split("\n## ")[0]
    documented = dict(re.findall(r"^\| (.+?) \| (.+?) \|", table, re.MULTILINE))
    server = SERVICES["server"]
    limits = server["deploy"]["resources"]["limits"]
    shipped = tomllib.loads((ROOT / "deploy/server/bytepair.toml").read_text(encoding="utf-8"))
    assert shipped["max_in_flight"] == Settings().max_in_flight
    assert shipped["max_input_bytes"] == Settings().max_input_bytes
    assert documented["memory of the server"] == limits["memory"].replace("g", " GiB")
    assert documented["CPUs of the server"] == limits["cpus"]
    assert documented["processes and threads of the server"] == str(limits["pids"])
    assert f"size={documented['`/tmp`'].replace(' MiB', 'm')}," in server["tmpfs"][0]
    assert documented["`stop_grace_period`"] == server["stop_grace_period"].replace("s", " s")
    assert f"`grace_seconds` ({Settings().grace_seconds:g} s)" in document.replace("\n", " ")
