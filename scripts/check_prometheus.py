"""Let a real Prometheus scrape a real server, then ask it every query of the dashboard.

    python scripts/check_prometheus.py

Starts the server of this virtualenv and Prometheus on free ports of the loopback, sends every kind
of traffic that the dashboard shows (answers, errors, policy, overload, quotas, cancellation), and
fails if a query of the dashboard or a recording rule has no data. Ends what it started. Needs
`prometheus` on PATH (Debian: apt-get install prometheus).
"""

import concurrent.futures
import contextlib
import json
import shutil
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path
from typing import Any

import yaml
from bytepair_client import QuotaExceeded, TokenizerClient, TokenizerError
from dashboard_queries import queries
from processes import fetch, free_port, running, until

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
RULES = DEPLOY / "prometheus"
ENCODING = "cl100k_base"
#: Far shorter than in production, so that rates over a minute soon have samples.
SCRAPE_SECONDS = 1
#: One call at a time: a second one is rejected.
MAX_IN_FLIGHT = 1
LARGE_TEXT = "The quick brown fox jumps over the lazy dog. " * 20_000
#: Queries that may be empty: traffic of a few seconds causes neither a restart nor an alert.
QUIET = {"annotation 'Alerts'", "annotation 'Starts'"}


class Prometheus:
    """The HTTP API of a running Prometheus."""

    def __init__(self, address: str) -> None:
        self.url = f"http://{address}"

    def get(self, path: str, **parameters: str) -> Any:
        """Return `data` of an API answer."""
        query = urllib.parse.urlencode(parameters)
        return json.loads(fetch(f"{self.url}/api/v1/{path}?{query}"))["data"]

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an instant query; [] for no data."""
        result: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return result


def configuration(folder: Path, target: str) -> Path:
    """Write prometheus.yml with `target` in place of the service discovery; return its path."""
    content = yaml.safe_load((RULES / "prometheus.yml").read_text(encoding="utf-8"))
    content["global"] = {
        "scrape_interval": f"{SCRAPE_SECONDS}s",
        "scrape_timeout": f"{SCRAPE_SECONDS}s",
        "evaluation_interval": f"{SCRAPE_SECONDS}s",
    }
    content["rule_files"] = [str(RULES / name) for name in content["rule_files"]]
    job = next(job for job in content["scrape_configs"] if job["job_name"] == "bytepair")
    del job["dns_sd_configs"]
    job["static_configs"] = [{"targets": [target]}]
    content["scrape_configs"] = [job]
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def send_ordinary_traffic(client: TokenizerClient) -> None:
    """Make calls that are answered, and one for each kind of rejection."""
    for _ in range(5):
        ids = client.encode("Good morning, world", encoding=ENCODING)
        if client.decode(ids, encoding=ENCODING) != "Good morning, world":
            raise SystemExit("FAILED: decode(encode(text)) is not text")
        client.count("Good morning, world", encoding=ENCODING)
        client.count_batch(["one", "two"], encoding=ENCODING)
        with contextlib.suppress(QuotaExceeded):
            list(client.decode_stream([0], encoding=ENCODING))
    for rejected in ("no_such_encoding", ENCODING):
        with contextlib.suppress(TokenizerError):
            client.encode("<|endoftext|>", encoding=rejected)


def send_until_rejected_and_cancelled(client: TokenizerClient, metrics_url: str) -> None:
    """Make large calls side by side, with deadlines that pass, until both counters have moved."""

    def one_call(timeout: float) -> None:
        with contextlib.suppress(TokenizerError):
            client.encode(LARGE_TEXT, encoding=ENCODING, timeout=timeout)

    def both_counted() -> bool:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(one_call, [0.001, 0.005, 0.01, 0.02, 0.05, 1, 1, 1]))
        exported = fetch(metrics_url)
        return 'reason="OVERLOADED"' in exported and 'code="CANCELLED"' in exported

    until("rejection and cancellation", both_counted)


def send_traffic(address: str, metrics_url: str) -> None:
    """Send everything that the dashboard shows."""
    with TokenizerClient(address) as client:
        send_ordinary_traffic(client)
        send_until_rejected_and_cancelled(client, metrics_url)


def recorded_series() -> list[str]:
    """Return the names that the recording rules write."""
    content = yaml.safe_load((RULES / "recording.yml").read_text(encoding="utf-8"))
    return [rule["record"] for group in content["groups"] for rule in group["rules"]]


def report(prometheus: Prometheus) -> list[str]:
    """Ask every query, print a line for each, and return those without data."""
    empty = []
    asked = [(f"recording rule {name}", name) for name in recorded_series()]
    asked += [(query.place, query.expression) for query in queries()]
    for place, expression in asked:
        series = prometheus.ask(expression)
        print(f"{len(series):5} series  {place}")
        if not series and place not in QUIET:
            empty.append(f"{place}: {expression}")
    return empty


def main() -> None:
    program = shutil.which("prometheus")
    if program is None:
        raise SystemExit("prometheus is not on PATH (Debian: apt-get install prometheus)")
    server_program = str(Path(sys.executable).parent / "bytepair-server")
    grpc_address, http_address, web_address = (f"127.0.0.1:{free_port()}" for _ in range(3))
    metrics_url = f"http://{http_address}/metrics"
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bytepair-prom-")))
        server = [server_program, "--grpc-address", grpc_address, "--http-address", http_address]
        quotas = folder / "bytepair.toml"
        quotas.write_text("[quotas.anonymous]\nopen_streams = 0\n", encoding="utf-8")
        server += ["--max-in-flight", str(MAX_IN_FLIGHT), "--config", str(quotas)]
        stack.enter_context(running(server, folder / "server.log"))
        until("readiness of the server", lambda: fetch(f"http://{http_address}/readyz"))
        command = [program, f"--config.file={configuration(folder, http_address)}"]
        command += [f"--storage.tsdb.path={folder / 'data'}"]
        command += [f"--web.listen-address={web_address}"]
        stack.enter_context(running(command, folder / "prometheus.log"))
        prometheus = Prometheus(web_address)
        until("a scrape", lambda: prometheus.ask('up{job="bytepair"} == 1'))
        # Twice, with a scrape between: a counter has no rate after its first sample.
        for _ in range(2):
            send_traffic(grpc_address, metrics_url)
            time.sleep(3 * SCRAPE_SECONDS)

        for sample in prometheus.ask("bytepair_requests_total"):
            labels, value = sample["metric"], sample["value"][1]
            # Prometheus drops a label whose value is empty.
            place = " ".join(labels.get(name, "-") for name in ("rpc", "encoding", "code"))
            print(f"{value:>5}  bytepair_requests_total  {place}")
        series = len(prometheus.ask('{job="bytepair"}'))
        print(f"{series:5} series exported by one server")
        empty = report(prometheus)
        firing = [alert["labels"]["alertname"] for alert in prometheus.get("alerts")["alerts"]]
    print("alerts pending or firing:", ", ".join(firing) or "none")
    if empty:
        raise SystemExit("FAILED: no data for\n  " + "\n  ".join(empty))
    print("every query of the dashboard has data")


if __name__ == "__main__":
    main()
