#!/bin/bash
# Build the Dockerfile and run what comes out as docker-compose.yml would, without a Docker engine and
# without pulling an image: both base images are replaced by a fresh Debian from debootstrap.
#
#   1  a minimal Debian bookworm, with Debian's Python 3.11, stands in for PYTHON_IMAGE,
#      and with this machine's Rust toolchain at the official image's paths for RUST_IMAGE
#   2  buildah runs every step of the Dockerfile in them, stages, cache mounts and users included
#   3  the image is looked through: no compiler, no sources, the declared user
#   4  podman runs it with the rights of docker-compose.yml and no network but its own loopback:
#      it must become healthy by the image's own HEALTHCHECK, run the demo, resist writes, live through a
#      load that fills every limit within its memory, and stop on SIGTERM
#
# What differs from a build with Docker: the bases' patch versions and their other packages.
# With a folder as argument, everything is kept there and the next run reuses it; otherwise nothing stays.
# Needs root and: debootstrap buildah podman runc (Debian packages of these names), cargo, network to the registries.
set -euo pipefail
cd "$(dirname "$0")/.."

for tool in debootstrap buildah podman runc cargo rustc; do
    command -v "$tool" > /dev/null || {
        echo "$0: '$tool' is missing (apt-get install --no-install-recommends debootstrap buildah podman runc; rustup for cargo)" >&2
        exit 1
    }
done
[ "$(id -u)" = 0 ] || {
    echo "$0: must be root: debootstrap makes a root file system" >&2
    exit 1
}

if [ $# -gt 0 ]; then
    mkdir -p "$1"
    work=$(realpath "$1")
else
    work=$(mktemp -d /var/tmp/bytepair-image.XXXXXX)
fi
# Buildah puts the cache mounts there.
export TMPDIR=$work
storage=(--root "$work/storage" --runroot "$work/run" --storage-driver overlay)
buildah() { command buildah "${storage[@]}" "$@"; }
podman() { command podman "${storage[@]}" --cgroup-manager cgroupfs --events-backend file --runtime runc "$@"; }
keep=$#
clean_up() {
    podman rm --all --force > /dev/null 2>&1 || true
    umount --quiet --lazy "$work/storage/overlay" || true
    [ "$keep" -gt 0 ] || rm -rf "$work"
}
trap clean_up EXIT

say() { printf '\n== %s\n' "$1"; }
fail() {
    echo "FAILED: $1" >&2
    exit 1
}

# Podman's own default is higher than what a machine without CAP_SYS_RESOURCE may set.
ulimits=(--ulimit nofile=4096:4096 --ulimit nproc=4096:4096)

say "1 base images from debootstrap"
make_bases() {
    debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv bookworm "$work/debian" \
        > "$work/debootstrap.log" || {
        tail -20 "$work/debootstrap.log"
        fail "debootstrap"
    }
    tar -C "$work/debian" -c . | podman import --quiet - localhost/python-stand-in > /dev/null
    local toolchain
    toolchain=$(rustc --print sysroot)
    mkdir -p "$work/rust/usr/local/rustup/toolchain" "$work/rust/usr/local/cargo/bin"
    cp -a "$toolchain/bin" "$toolchain/lib" "$work/rust/usr/local/rustup/toolchain/"
    ln -s /usr/local/rustup/toolchain/bin/cargo /usr/local/rustup/toolchain/bin/rustc "$work/rust/usr/local/cargo/bin/"
    tar -C "$work/rust" -c . | podman import --quiet - localhost/rust-stand-in > /dev/null
    rm -rf "$work/debian" "$work/rust"
}
podman image exists localhost/rust-stand-in || make_bases
echo "Debian bookworm with $(podman run --rm --network none "${ulimits[@]}" localhost/python-stand-in python3 --version), $(rustc --version)"

say "2 build"
# A registry mirror behind a private certificate authority is reached with this machine's certificates and
# settings of pip; they are mounted while the steps run and are no part of the image.
certificates=/etc/ssl/certs/ca-certificates.crt
printf '[global]\ncert = %s\n' "$certificates" > "$work/pip.conf"
started=$SECONDS
buildah build --format docker --isolation chroot --layers \
    --build-arg PYTHON_IMAGE=localhost/python-stand-in --build-arg RUST_IMAGE=localhost/rust-stand-in \
    --build-arg VERSION=check \
    --volume "$certificates:$certificates:ro" --volume "$work/pip.conf:/etc/pip.conf:ro" \
    --tag localhost/bytepair:check . > "$work/build.log" 2>&1 || {
    tail -40 "$work/build.log"
    fail "the build"
}
grep -E '^\[[0-9]/[0-9]\] STEP' "$work/build.log"
echo "built in $((SECONDS - started)) s"

say "3 what the image holds"
inside() {
    podman run --rm --network none --no-healthcheck --user 0 "${ulimits[@]}" --entrypoint /bin/sh localhost/bytepair:check -c "$1"
}
base=$(podman image inspect localhost/python-stand-in --format '{{.Size}}')
size=$(podman image inspect localhost/bytepair:check --format '{{.Size}}')
echo "$(((size - base) / 1000000)) MB on top of the base image"
[ "$(podman image inspect localhost/bytepair:check --format '{{.User}}')" = 10001:10001 ] || fail "the image's user"
# shellcheck disable=SC2016  # the container's shell expands it
tools=$(inside 'for tool in gcc cc ld cargo rustc maturin hatchling; do command -v $tool || true; done')
[ -z "$tools" ] || fail "tools for building are in the image: $tools"
unwanted=$(inside 'find / -xdev \( -name "*.rs" -o -name "Cargo.*" -o -path "/build/*" -o -path "/opt/bytepair/*/pip" \) -print')
[ -z "$unwanted" ] || fail "left in the image: $unwanted"
inside '/opt/bytepair/bin/python -c "
from importlib.metadata import distributions
print(*sorted(f\"{d.name}=={d.version}\" for d in distributions(path=[p for p in __import__(\"sys\").path if \"/opt/bytepair\" in p])), sep=\"\n\")"'

say "4 run with the rights of docker-compose.yml"
rights=(--read-only --cap-drop ALL --security-opt no-new-privileges "${ulimits[@]}" --no-healthcheck
    --tmpfs "/tmp:size=64m,mode=1777,noexec,nosuid,nodev" --pids-limit 256)
podman run --detach --name server --network none "${rights[@]}" --memory 1g --cpus 2 \
    --env BYTEPAIR_CONFIG=/etc/bytepair/bytepair.toml --volume "$PWD/deploy/server:/etc/bytepair:ro" \
    localhost/bytepair:check > /dev/null
# Podman leaves the probe's rhythm to systemd; here its command is asked in a loop.
mapfile -t probe < <(podman image inspect localhost/bytepair:check --format '{{range .HealthCheck.Test}}{{println .}}{{end}}' | grep -v -e '^CMD$' -e '^$')
started=$(date +%s%N)
until podman exec server "${probe[@]}" > "$work/probe.log" 2>&1; do
    if [ $(($(date +%s%N) - started)) -gt 30000000000 ]; then
        podman logs server
        cat "$work/probe.log"
        fail "not healthy within 30 s: ${probe[*]}"
    fi
done
echo "healthy after $((($(date +%s%N) - started) / 1000000)) ms by: ${probe[*]}"
podman exec server sh -c 'id; grep -E "^(CapEff|NoNewPrivs|Seccomp):" /proc/1/status; grep VmRSS /proc/1/status'
podman exec server sh -c 'test "$(id -u)" = 10001' || fail "runs as another user"
podman exec server grep -q '^CapEff:.0*$' /proc/1/status || fail "has capabilities"
rejected=$(podman exec server touch /opt/bytepair/x /etc/x 2>&1) && fail "the root file system can be written"
[ "$(grep -c 'Read-only file system' <<< "$rejected")" = 2 ] || fail "a write was rejected for another reason: $rejected"

say "the demo, as docker compose run --rm demo"
podman run --rm --network container:server "${rights[@]}" --memory 256m \
    --entrypoint /bin/sh --env BYTEPAIR_TARGET=dns:///localhost:50051 --volume "$PWD/deploy/demo:/demo:ro" \
    localhost/bytepair:check /demo/demo.sh

say "memory with every limit reached: 320 callers, each with 1 MiB; the most that each process had"
podman run --rm --network container:server --no-healthcheck "${ulimits[@]}" --entrypoint python \
    --volume "$PWD/scripts/full_load.py:/full_load.py:ro" localhost/bytepair:check /full_load.py 127.0.0.1:50051 320 1048576
podman exec server sh -c 'grep -E "VmHWM|RssAnon" /proc/[0-9]*/status'
podman exec server "${probe[@]}" || fail "not healthy after the load"

say "SIGTERM"
started=$SECONDS
podman stop --time 30 server > /dev/null
status=$(podman inspect server --format '{{.State.ExitCode}}')
[ "$status" = 0 ] || {
    podman logs server | tail -20
    fail "exit status $status on SIGTERM"
}
echo "stopped in $((SECONDS - started)) s with exit status 0"
if podman logs server 2>&1 | grep -i -E '"level": ?"error"|traceback'; then
    fail "errors in the log"
fi
printf '\nimage check passed\n'
