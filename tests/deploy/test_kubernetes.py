"""The manifests are valid, agree with the server, and give no pod unneeded privileges."""

from __future__ import annotations

import re
import socket
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml
from bytepair_server import __version__
from bytepair_server.config.loader import load
from bytepair_server.config.settings import Settings
from bytepair_server.config.types import split_address
from bytepair_server.observability.metrics import Metrics
from bytepair_server.rpc.service import SERVICE_NAME
from bytepair_server.workers.supervisor import CHECK_SECONDS, UNHEALTHY_SECONDS, WATCH_SECONDS
from support.serving import RunningServer

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
#: The oldest version whose fields the manifests may use (preStop by sleep), and the newest known.
VERSIONS = ("1.30.0", "1.37.0")
PORTS = {
    "grpc": split_address(Settings().grpc_address)[1],
    "http": split_address(Settings().http_address)[1],
}
LABELS = {"app.kubernetes.io/name": "bytepair"}


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


KUSTOMIZATION = read(FOLDER / "kustomization.yaml")
MANIFESTS = {read(path)["kind"]: path for path in map(FOLDER.joinpath, KUSTOMIZATION["resources"])}
DEPLOYMENT = read(MANIFESTS["Deployment"])["spec"]
POD = DEPLOYMENT["template"]["spec"]
[SERVER] = POD["containers"]
COMPOSE = read(ROOT / "docker-compose.yml")["services"]["server"]


def settings() -> Settings:
    return load(["--config", str(FOLDER / "bytepair.toml")], {}).settings


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_manifest_satisfies_the_schemas_of_kubernetes(kind: str, version: str) -> None:
    kubernetes_validate.validate(read(MANIFESTS[kind]), version, strict=True)


def test_the_schemas_reject_a_misspelt_field() -> None:
    wrong = read(MANIFESTS["Deployment"])
    container = wrong["spec"]["template"]["spec"]["containers"][0]
    container["readynessProbe"] = container.pop("readinessProbe")
    with pytest.raises(kubernetes_validate.ValidationError, match="readynessProbe"):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_the_kustomization_lists_every_file() -> None:
    [config] = KUSTOMIZATION["configMapGenerator"]
    named = {*KUSTOMIZATION["resources"], *config["files"], "kustomization.yaml"}
    assert named == {path.name for path in FOLDER.iterdir() if path.is_file()}
    assert POD["volumes"][0]["configMap"]["name"] == config["name"]
    [image] = KUSTOMIZATION["images"]
    assert (image["name"], image["newTag"]) == (SERVER["image"], __version__)


def test_all_selectors_match_the_same_pods() -> None:
    assert DEPLOYMENT["template"]["metadata"]["labels"] == LABELS
    assert DEPLOYMENT["selector"]["matchLabels"] == LABELS
    assert read(MANIFESTS["Service"])["spec"]["selector"] == LABELS
    assert read(MANIFESTS["PodDisruptionBudget"])["spec"]["selector"]["matchLabels"] == LABELS
    assert read(MANIFESTS["NetworkPolicy"])["spec"]["podSelector"]["matchLabels"] == LABELS
    for spread in POD["topologySpreadConstraints"]:
        assert spread["labelSelector"]["matchLabels"] == LABELS
    target = read(MANIFESTS["HorizontalPodAutoscaler"])["spec"]["scaleTargetRef"]
    assert target["name"] == read(MANIFESTS["Deployment"])["metadata"]["name"]
    assert "replicas" not in DEPLOYMENT, "the autoscaler's number"


def test_ports_are_those_of_the_server() -> None:
    assert {port["name"]: port["containerPort"] for port in SERVER["ports"]} == PORTS
    service = read(MANIFESTS["Service"])["spec"]
    assert service["clusterIP"] == "None", "one address would spread connections, not calls"
    assert {port["targetPort"]: port["port"] for port in service["ports"]} == PORTS
    rules = read(MANIFESTS["NetworkPolicy"])["spec"]["ingress"]
    assert [port["port"] for rule in rules for port in rule["ports"]] == ["grpc", "http"]


def test_calls_arrive_only_while_the_service_that_callers_use_is_serving() -> None:
    for probe in ("startupProbe", "readinessProbe"):
        assert SERVER[probe]["grpc"] == {"port": PORTS["grpc"], "service": SERVICE_NAME}


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_with_all_its_connections_taken_is_not_restarted(workers: str) -> None:
    probe = SERVER["livenessProbe"]["httpGet"]
    assert probe["port"] == "http"
    flags = ("--max-connections", "1", "--workers", workers, "--builtin-encodings", "r50k_base")
    with RunningServer(*flags) as server, ExitStack() as held:
        host, port = split_address(server.target)
        # Each worker has a maximum of its own.
        taken = [held.enter_context(socket.create_connection((host, port))) for _ in range(20)]
        server.wait_for_metric("bytepair_refused_connections_total", len(taken) - int(workers))
        with urlopen(server.http + probe["path"]) as answer:
            assert answer.status == 200


def test_the_supervisor_replaces_a_hanging_worker_before_the_pod_is_restarted() -> None:
    liveness = SERVER["livenessProbe"]
    before = liveness["periodSeconds"] * (liveness["failureThreshold"] - 1)
    assert before > CHECK_SECONDS + UNHEALTHY_SECONDS + WATCH_SECONDS
    assert liveness["timeoutSeconds"] > CHECK_SECONDS


def test_a_pod_has_time_to_drain() -> None:
    grace = max(settings().grace_seconds, settings().stream_grace_seconds)
    before = SERVER["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert POD["terminationGracePeriodSeconds"] >= before + grace + 5


def test_the_configuration_equals_that_of_compose_except_for_kubernetes_settings() -> None:
    path = FOLDER / "bytepair.toml"
    here = tomllib.loads(path.read_text(encoding="utf-8"))
    compose = tomllib.loads((ROOT / "deploy/server/bytepair.toml").read_text(encoding="utf-8"))
    assert compose.items() <= here.items()
    assert settings().grpc_address == Settings().grpc_address
    assert settings().http_address == Settings().http_address
    assert settings().ceiling == {}
    assert settings().max_connection_age_seconds > 0, "or clients never see new pods"
    [variable] = SERVER["env"]
    [config, _] = SERVER["volumeMounts"]
    assert variable == {"name": "BYTEPAIR_CONFIG", "value": f"{config['mountPath']}/{path.name}"}
    assert config["readOnly"] is True


def test_limits_are_those_of_compose() -> None:
    limits = SERVER["resources"]["limits"]
    of_compose = COMPOSE["deploy"]["resources"]["limits"]
    assert limits["cpu"] == of_compose["cpus"]
    # The server derives both from the CPU limit. Fixed values would not follow it.
    assert (settings().workers, settings().work_threads) == (0, 0)
    assert limits["memory"] == of_compose["memory"].replace("g", "Gi")
    assert SERVER["resources"]["requests"].keys() == limits.keys()
    size = POD["volumes"][1]["emptyDir"]["sizeLimit"]
    assert f"size={size.replace('Mi', 'm')}," in COMPOSE["tmpfs"][0]


def test_the_pod_has_no_unneeded_privileges() -> None:
    user = re.search(r"^USER (\d+):(\d+)$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert user is not None
    assert POD["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": int(user[1]),
        "runAsGroup": int(user[2]),
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert SERVER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    account = read(MANIFESTS["ServiceAccount"])
    assert POD["serviceAccountName"] == account["metadata"]["name"]
    assert account["automountServiceAccountToken"] is False
    assert POD["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers"} & POD.keys()
    assert all({"configMap", "emptyDir"} & volume.keys() for volume in POD["volumes"])
    policy = read(MANIFESTS["NetworkPolicy"])["spec"]
    assert (policy["policyTypes"], policy["egress"]) == (["Ingress", "Egress"], [])
    assert all(rule["from"] for rule in policy["ingress"])


def exported() -> Iterator[str]:
    """Return the names of a server's gauges."""
    for collector in Metrics().registry._collector_to_names:
        yield from (family.name for family in collector.collect() if family.type == "gauge")


def test_the_autoscaler_uses_a_metric_that_is_exported_and_adapted() -> None:
    autoscaler = read(MANIFESTS["HorizontalPodAutoscaler"])["spec"]
    _, of_pods = autoscaler["metrics"]
    name = of_pods["pods"]["metric"]["name"]
    assert name in set(exported())
    assert int(of_pods["pods"]["target"]["averageValue"]) < Settings().max_in_flight
    [rule] = read(FOLDER / "monitoring" / "adapter.yaml")["rules"]
    assert rule["seriesQuery"].partition("{")[0] == name
    [job] = read(FOLDER / "monitoring" / "scrape.yaml")["scrape_configs"]
    added = {relabel.get("target_label") for relabel in job["relabel_configs"]}
    assert set(rule["resources"]["overrides"]) <= added
    assert (
        autoscaler["minReplicas"] > read(MANIFESTS["PodDisruptionBudget"])["spec"]["maxUnavailable"]
    ), "a budget that takes every pod is none"


@pytest.mark.parametrize("phase", ["Pending", "Running", "Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_not_scraped(phase: str) -> None:
    [job] = read(FOLDER / "monitoring" / "scrape.yaml")["scrape_configs"]
    dropped = any(
        re.fullmatch(relabel["regex"], phase)
        for relabel in job["relabel_configs"]
        if relabel["source_labels"] == ["__meta_kubernetes_pod_phase"]
        if relabel["action"] == "drop"
    )
    assert dropped == (phase in {"Succeeded", "Failed"})
