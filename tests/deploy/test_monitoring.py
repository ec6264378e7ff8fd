"""Metrics of alerts and dashboards exist, and every alert is tested and explained."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from bytepair.v1 import chat_pb2, tokenizer_pb2
from bytepair_engine import list_encodings
from bytepair_server.observability.metrics import MAX_CALLERS, Metrics, RpcMetrics

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus"
#: Labels that Prometheus adds to all series, and the label of histogram buckets.
ADDED_LABELS = frozenset({"job", "instance", "le"})


def load_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def rules(name: str) -> list[dict[str, Any]]:
    return [rule for group in load_yaml(RULES / name)["groups"] for rule in group["rules"]]


def dashboard_queries() -> ModuleType:
    """Import the script that reads the dashboard, because `deploy` is not a package."""
    path = ROOT / "scripts" / "dashboard_queries.py"
    spec = importlib.util.spec_from_file_location("dashboard_queries", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expressions() -> Iterator[tuple[str, str]]:
    """Return every deployed PromQL expression, with its place."""
    for name in ("recording.yml", "alerts.yml"):
        for rule in rules(name):
            yield f"{name} {rule.get('alert') or rule.get('record')}", rule["expr"]
    for query in dashboard_queries().queries():
        yield query.place, query.expression


@pytest.fixture(scope="module")
def exported() -> Mapping[str, frozenset[str]]:
    """Return the label names of every series of the server, by series name."""
    metrics = Metrics()
    labels: dict[str, frozenset[str]] = {}
    suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
    for collector in metrics.registry._collector_to_names:
        for family in collector.collect():
            names = frozenset(getattr(collector, "label_names", ()))
            for suffix in suffixes.get(family.type, [""]):
                labels[family.name + suffix] = names
    return labels


EXPRESSIONS = list(expressions())


@pytest.mark.parametrize("expression", [e for _, e in EXPRESSIONS], ids=[p for p, _ in EXPRESSIONS])
def test_every_queried_series_and_label_is_exported(
    expression: str, exported: Mapping[str, frozenset[str]]
) -> None:
    asked = set(re.findall(r"(?<![\w:])(?:bytepair|process)_\w+", expression))
    recorded = {rule["record"] for rule in rules("recording.yml")}
    used_records = set(re.findall(r"\b\w+:\w+:\w+", expression))
    assert asked <= exported.keys()
    assert used_records <= recorded
    assert asked | used_records or re.search(r"\b(up|ALERTS)\b", expression)

    for series, matchers in re.findall(r"((?:bytepair|process)_\w+)\{([^}]*)\}", expression):
        used = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
        assert used <= exported[series] | ADDED_LABELS, series
    if asked:
        known = frozenset().union(*(exported[series] for series in asked)) | ADDED_LABELS
        for grouping in re.findall(r"\bby \(([^)]*)\)", expression):
            assert set(re.findall(r"\w+", grouping)) <= known


def test_a_scrape_may_have_the_series_of_every_caller_and_rpc() -> None:
    """A scrape beyond a limit of Prometheus fails as a whole: the server seems to be down."""
    metrics = Metrics()
    metrics.expect(f"caller {number}" for number in range(MAX_CALLERS))
    services = [
        *tokenizer_pb2.DESCRIPTOR.services_by_name.values(),
        *chat_pb2.DESCRIPTOR.services_by_name.values(),
    ]
    for rpc in (method.name for service in services for method in service.methods):
        for encoding in list_encodings():
            RpcMetrics(metrics, rpc).succeeded(encoding, 0.1, 1, 1)
    series = sum(len(family.samples) for family in metrics.registry.collect())
    jobs = load_yaml(RULES / "prometheus.yml")["scrape_configs"]
    jobs += load_yaml(ROOT / "deploy/kubernetes/monitoring/scrape.yaml")["scrape_configs"]
    assert all(series <= job.get("sample_limit", series) for job in jobs)


def test_every_alert_has_a_firing_test_case_and_a_runbook() -> None:
    tested = load_yaml(RULES / "alerts_test.yml")["tests"]
    fired = {
        case["alertname"]
        for test in tested
        for case in test.get("alert_rule_test", [])
        if case["exp_alerts"]
    }
    document = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    headings = {line.lstrip("# ").lower() for line in document.splitlines() if line[:1] == "#"}
    for rule in rules("alerts.yml"):
        assert rule["alert"] in fired
        assert rule["labels"]["severity"] in {"page", "ticket"}
        path, anchor = rule["annotations"]["runbook"].split("#")
        assert path == "docs/deployment.md"
        assert anchor == rule["alert"].lower()
        assert anchor in headings


def panels() -> list[dict[str, Any]]:
    content = json.loads(dashboard_queries().DASHBOARD.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = content["panels"]
    return found


def test_panels_have_unique_ids_and_descriptions() -> None:
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))
    for panel in panels():
        if panel["type"] != "row":
            assert panel["description"], panel["title"]
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
            assert panel["datasource"]["uid"] == "${datasource}", panel["title"]


def test_panels_do_not_overlap() -> None:
    def cells(panel: dict[str, Any]) -> set[tuple[int, int]]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        columns, lines = range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])
        return {(x, y) for x in columns for y in lines}

    for one, other in combinations(panels(), 2):
        assert not cells(one) & cells(other), (one["title"], other["title"])
