"""Envoy on this machine's loopback: the shipped configuration with other ports and names."""

import http.client
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, Self

import yaml
from dnslib import QTYPE, RR, A  # type: ignore[import-untyped]
from dnslib.server import DNSLogger, DNSServer  # type: ignore[import-untyped]
from processes import LOOPBACK, fetch, free_port

FOLDER: Final = Path(__file__).resolve().parents[1] / "deploy" / "envoy"
ENVOY: Final = str(Path(sys.executable).parent / "envoy")
CLUSTER: Final = "bytepair"
SERVICE: Final = "bytepair.v1.TokenizerService"


class Names:
    """A name server that answers every question with the servers' addresses.

    Attributes:
        addresses: What it answers; may be changed at any time.
        port: Where it listens on the loopback, by UDP.
    """

    def __init__(self, addresses: list[str]) -> None:
        self.addresses = addresses
        self.port = free_port()
        self._server = DNSServer(self, LOOPBACK, self.port, logger=DNSLogger("-request,-reply"))

    def resolve(self, request: Any, handler: object) -> Any:  # noqa: ARG002
        """Answer one question; dnslib calls it."""
        reply = request.reply()
        if request.q.qtype == QTYPE.A:
            for address in self.addresses:
                reply.add_answer(RR(request.q.qname, QTYPE.A, rdata=A(address), ttl=1))
        return reply

    def __enter__(self) -> Self:
        self._server.start_thread()
        return self

    def __exit__(self, *unused: object) -> None:
        self._server.stop()
        self._server.server.server_close()


class Stand:
    """The address where Envoy will listen, and its statistics once it runs.

    Attributes:
        configuration: The file for Envoy's `-c`.
        target: Where it takes calls, host:port.
    """

    def __init__(self, folder: Path, names_port: int, servers_port: int) -> None:
        """Write the configuration and the descriptors.

        Args:
            folder: Where to write them.
            names_port: Where a name server listens on the loopback.
            servers_port: Where each server listens, at the address that its name gives.
        """
        self.configuration: Final = folder / "envoy.yaml"
        calls, observe, self._admin_port = (free_port() for _ in range(3))
        self.target: Final = f"{LOOPBACK}:{calls}"
        descriptors = folder / "bytepair.binpb"
        subprocess.run([sys.executable, FOLDER / "descriptors.py", descriptors], check=True)

        content = yaml.safe_load((FOLDER / "envoy.yaml").read_text(encoding="utf-8"))
        _listen(content["admin"], self._admin_port)
        resources = content["static_resources"]
        for listener, port in zip(resources["listeners"], (calls, observe), strict=True):
            _listen(listener, port)
        [manager] = resources["listeners"][0]["filter_chains"][0]["filters"]
        filters = {each["name"]: each for each in manager["typed_config"]["http_filters"]}
        transcoder = filters["envoy.filters.http.grpc_json_transcoder"]["typed_config"]
        transcoder["proto_descriptor"] = str(descriptors)
        servers, admin = resources["clusters"]
        _endpoint(servers)["address"]["socket_address"]["port_value"] = servers_port
        _listen(_endpoint(admin), self._admin_port)
        servers["cluster_type"]["typed_config"]["typed_dns_resolver_config"] = _resolver(names_port)
        self.configuration.write_text(yaml.safe_dump(content), encoding="utf-8")

    def _hosts(self) -> list[dict[str, Any]]:
        answer = json.loads(fetch(f"http://{LOOPBACK}:{self._admin_port}/clusters?format=json"))
        [cluster] = [found for found in answer["cluster_statuses"] if found["name"] == CLUSTER]
        hosts: list[dict[str, Any]] = cluster.get("host_statuses", [])
        return hosts

    def healthy(self) -> set[str]:
        """Return the addresses of the servers that Envoy's probes find healthy."""
        failed = ("failed_active_health_check", "pending_active_hc")
        return {
            _address(host)
            for host in self._hosts()
            if not any(host["health_status"].get(sign) for sign in failed)
        }

    def calls(self) -> dict[str, int]:
        """Return how many calls Envoy sent to each server, including retries."""
        return {
            _address(host): int(stat.get("value", 0))
            for host in self._hosts()
            for stat in host["stats"]
            if stat["name"] == "rq_total"
        }

    def counter(self, name: str) -> int:
        """Return a counter of the servers' cluster; 0 for one that Envoy does not have."""
        page = fetch(
            f"http://{LOOPBACK}:{self._admin_port}/stats?filter=^cluster.{CLUSTER}.{name}$"
        )
        return int(page.rpartition(":")[2] or 0)


def post(target: str, rpc: str, request: object, service: str = SERVICE) -> tuple[int, str]:
    """Call an RPC in JSON; return HTTP's status and the body."""
    connection = http.client.HTTPConnection(target, timeout=60)
    headers = {"content-type": "application/json"}
    connection.request("POST", f"/{service}/{rpc}", json.dumps(request), headers)
    answer = connection.getresponse()
    status, body = answer.status, answer.read().decode()
    connection.close()
    return status, body


def _listen(place: dict[str, Any], port: int) -> None:
    place["address"] = {"socket_address": {"address": LOOPBACK, "port_value": port}}


def _endpoint(cluster: dict[str, Any]) -> dict[str, Any]:
    [locality] = cluster["load_assignment"]["endpoints"]
    [only] = locality["lb_endpoints"]
    endpoint: dict[str, Any] = only["endpoint"]
    return endpoint


def _address(host: dict[str, Any]) -> str:
    address: str = host["address"]["socket_address"]["address"]
    return address


def _resolver(port: int) -> dict[str, Any]:
    extension = "envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig"
    where = {"socket_address": {"address": LOOPBACK, "port_value": port, "protocol": "UDP"}}
    return {
        "name": "envoy.network.dns_resolver.cares",
        "typed_config": {"@type": f"type.googleapis.com/{extension}", "resolvers": [where]},
    }
