"""Read the PromQL out of the Grafana dashboard, so that Prometheus's own tools can check it.

python scripts/dashboard_queries.py > rules.yml && promtool check rules rules.yml
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DASHBOARD = ROOT / "deploy/grafana/dashboards/bytepair.json"
#: What Grafana puts in place of its variables; any value of the right kind serves for a check.
VARIABLES = {"$__rate_interval": "1m", "$instance": ".*"}


@dataclass(frozen=True)
class Query:
    """One PromQL expression, its variables replaced.

    Attributes:
        place: The panel, annotation or variable that asks.
        expression: PromQL.
    """

    place: str
    expression: str


def queries(dashboard: Path = DASHBOARD) -> Iterator[Query]:
    """Yield every query of the dashboard: of panels, annotations and variables.

    Raises:
        ValueError: An expression uses a variable that is not in `VARIABLES`.
    """
    content = json.loads(dashboard.read_text(encoding="utf-8"))
    for panel in content["panels"]:
        for target in panel.get("targets", []):
            yield _query(f"panel {panel['title']!r} {target['refId']}", target["expr"])
    for annotation in content["annotations"]["list"]:
        yield _query(f"annotation {annotation['name']!r}", annotation["expr"])
    for variable in content["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((.+), \w+\)", variable["query"]["query"])
            if asked is None:
                raise ValueError(f"variable {variable['name']!r} is not label_values(…, label)")
            yield _query(f"variable {variable['name']!r}", asked[1])


def _query(place: str, expression: str) -> Query:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    if "$" in expression:
        raise ValueError(f"{place} uses an unknown variable: {expression}")
    return Query(place, expression)


def main() -> None:
    rules = [
        {"record": f"dashboard:query:{number}", "expr": query.expression}
        for number, query in enumerate(queries())
    ]
    # JSON is YAML, which is what promtool reads.
    print(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}, indent=1))


if __name__ == "__main__":
    main()
