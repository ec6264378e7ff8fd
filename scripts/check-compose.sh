#!/bin/bash
# Bring docker-compose.yml up with the Docker Compose program, on podman's Docker-compatible API instead of a
# Docker engine, with three servers, and use what comes up: names, scraping, round robin, a lost replica, the demo.
#
#   scripts/check-image.sh FOLDER && scripts/check-compose.sh FOLDER
#
# Takes the image that check-image.sh left in FOLDER. It runs in a network namespace of its own, so that nothing is
# published on this machine and no rule of its firewall is touched.
#
# What differs from Docker: this machine's Prometheus on Debian stands in for the image prom/prometheus; Grafana is
# left out; no systemd times podman's health probes, so they are off and nothing waits for them; podman takes no
# range of ports from Compose, so the servers publish none.
# Needs what check-image.sh needs and: docker-compose (or the plugin of docker), netavark, aardvark-dns, iptables,
# catatonit, prometheus, promtool, curl.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# != 1 ] || [ ! -d "$1/storage" ]; then
    echo "usage: $0 FOLDER (of scripts/check-image.sh FOLDER)" >&2
    exit 2
fi
compose_program=(docker-compose)
! docker compose version > /dev/null 2>&1 || compose_program=(docker compose)
for tool in podman buildah runc iptables prometheus promtool curl unshare "${compose_program[0]}"; do
    command -v "$tool" > /dev/null || {
        echo "$0: '$tool' is missing" >&2
        exit 1
    }
done
if [ -z "${BYTEPAIR_OWN_NETWORK:-}" ]; then
    BYTEPAIR_OWN_NETWORK=yes exec unshare --net --mount "$0" "$@"
fi
ip link set lo up

folder=$(realpath "$1")
scratch=$folder/compose
rm -rf "$scratch"
mkdir -p "$scratch/networks" "$scratch/prometheus"
export TMPDIR=$scratch
cat > "$scratch/containers.conf" << 'CONF'
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
[network]
network_backend = "netavark"
CONF
sed -i "/^network_backend/a network_config_dir = \"$scratch/networks\"" "$scratch/containers.conf"
export CONTAINERS_CONF=$scratch/containers.conf
storage=(--root "$folder/storage" --runroot "$folder/run" --storage-driver overlay)
podman() { command podman "${storage[@]}" "$@"; }

cat > "$scratch/override.yml" << 'YAML'
services:
  server:
    build: !reset null
    pull_policy: never
    ports: !override []
    healthcheck: !override {disable: true}
  prometheus:
    pull_policy: never
    healthcheck: !override {disable: true}
  demo:
    pull_policy: never
    depends_on: !reset []
YAML
compose() { "${compose_program[@]}" -f docker-compose.yml -f "$scratch/override.yml" "$@"; }

say() { printf '\n== %s\n' "$1"; }
fail() {
    echo "FAILED: $1" >&2
    compose logs --tail 20 >&2 || true
    exit 1
}

say "images"
cp "$(command -v prometheus)" "$(command -v promtool)" "$scratch/prometheus/"
cat > "$scratch/prometheus/Dockerfile" << 'DOCKERFILE'
FROM localhost/python-stand-in
COPY prometheus promtool /bin/
RUN mkdir /prometheus && chown 65534:65534 /prometheus
ENTRYPOINT ["/bin/prometheus"]
DOCKERFILE
prometheus_image=$(sed -n 's/^ *image: \(prom\/prometheus:.*\)$/\1/p' docker-compose.yml)
buildah "${storage[@]}" build --format docker --isolation chroot --tag "docker.io/$prometheus_image" \
    "$scratch/prometheus" > "$scratch/build.log" 2>&1 || {
    tail -20 "$scratch/build.log"
    fail "the stand-in for $prometheus_image"
}
podman tag localhost/bytepair:check docker.io/library/bytepair:dev
echo "$(prometheus --version 2>&1 | head -1) stands in for $prometheus_image"

# Not the function above: its process would be a shell, and the service would outlive it.
env podman "${storage[@]}" system service --time 0 "unix://$scratch/podman.sock" > "$scratch/podman.log" 2>&1 &
service=$!
clean_up() {
    compose --profile demo down --volumes --timeout 5 > "$scratch/down.log" 2>&1 || cat "$scratch/down.log"
    kill "$service"
    wait "$service" || true
    umount --quiet --lazy "$folder/storage/overlay" || true
}
trap clean_up EXIT
export DOCKER_HOST=unix://$scratch/podman.sock
for _ in $(seq 50); do
    [ ! -S "$scratch/podman.sock" ] || break
    sleep 0.1
done

# How many series of an instant query there are, and their sum, as "count sum".
ask() {
    curl --silent --get --data-urlencode "query=$1" http://127.0.0.1:9090/api/v1/query \
        | python3 -c 'import json, sys
values = [float(sample["value"][1]) for sample in json.load(sys.stdin)["data"]["result"]]
print(len(values), int(sum(values)))'
}
# Wait for an answer; the scrape interval is 15 s.
expect() {
    for _ in $(seq 60); do
        answer=$(ask "$2" 2> /dev/null) || answer="no answer"
        if [ "$answer" = "$3" ]; then
            echo "$1: $2 gives $answer (series, sum)"
            return
        fi
        sleep 1
    done
    fail "$1: $2 gives $answer, not $3 (series, sum)"
}

say "docker compose up --scale server=3"
compose up --detach --scale server=3 server prometheus 2> "$scratch/up.log" || {
    cat "$scratch/up.log"
    fail "up"
}
compose ps
expect "Prometheus finds the servers by name" 'bytepair_ready{job="bytepair"}' "3 3"
expect "one fingerprint for each encoding" 'count by (encoding) (count by (encoding, fingerprint) (bytepair_encoding_info))' "6 6"

say "a client in the network, target dns:///server:50051: 6000 counts"
compose run --rm --no-deps --entrypoint python demo -c '
from bytepair_client import TokenizerClient
with TokenizerClient("dns:///server:50051") as client:
    # Many: the first go to whichever server is connected first.
    print({client.count("one two three", encoding="o200k_base") for _ in range(6000)}, "tokens")'
expect "each server had its share" 'bytepair_requests_total{rpc="Count", code="OK"} > 1000' "3 6000"

say "one server is killed"
podman kill "$(compose ps --quiet server | head -1)" > /dev/null
expect "two are left" 'up{job="bytepair"} == 1' "2 2"
expect "an alert is pending" 'ALERTS{alertname="BytepairFewerReplicas", alertstate="pending"}' "1 1"

say "docker compose run --rm demo"
compose run --rm --no-deps demo
printf '\ncompose check passed\n'
