#!/usr/bin/env bash
# Run the official conformance suite of Connect, gRPC and gRPC-Web against the native transport.
# Needs Go.
#
#   tests/conformance/run.sh PYTHON     the virtualenv's Python, with bytepair-server
set -euo pipefail
python=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/conformance
version=v1.0.7
module=connectrpc.com/conformance

command -v go > /dev/null || { echo "$0: 'go' is missing: install Go 1.24 or newer" >&2; exit 1; }

if [ ! -x "$work/bin/connectconformance" ]; then
    echo "== build connectconformance $version"
    GOBIN=$work/bin go install $module/cmd/connectconformance@$version
fi
protos=$(go env GOMODCACHE)/$module@$version/proto
mkdir -p "$work/stubs"
"$root/build/proto/bin/python" -m grpc_tools.protoc --proto_path="$protos" --python_out="$work/stubs" \
    "$protos"/connectrpc/conformance/v1/{config,server_compat,service}.proto
PYTHONPATH=$work/stubs exec "$work/bin/connectconformance" --mode server --conf "$here/config.yaml" \
    "${@:2}" -- "$python" "$here/server.py"
