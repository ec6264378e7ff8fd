#!/usr/bin/env bash
# Run h2spec, the conformance tests of HTTP/2, against a server on the native transport. Needs Go.
#
#   tests/conformance/h2spec.sh FOLDER     the virtualenv's programs, with bytepair-server
set -euo pipefail
bin=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$root/build/conformance
version=v2.2.1+incompatible

command -v go > /dev/null || { echo "$0: 'go' is missing: install Go 1.24 or newer" >&2; exit 1; }

if [ ! -x "$work/bin/h2spec" ]; then
    echo "== build h2spec $version"
    GOBIN=$work/bin go install github.com/summerwind/h2spec/cmd/h2spec@$version
fi
log=$work/h2spec-server.log
: > "$log" # there before it is first looked at
"$bin/bytepair-server" --transport native --workers 1 --grpc-address 127.0.0.1:0 --http-address none \
    --builtin-encodings r50k_base --log-format json 2> "$log" &
server=$!
trap 'kill $server 2> /dev/null; wait $server 2> /dev/null || true' EXIT
for _ in $(seq 100); do
    port=$(sed -n 's/.*"grpc_address": "127.0.0.1:\([0-9]*\)".*"event": "serving".*/\1/p' "$log")
    [ -n "$port" ] && break
    sleep 0.1
done
[ -n "$port" ] || { cat "$log" >&2; exit 1; }
"$work/bin/h2spec" --host 127.0.0.1 --port "$port" --timeout 5 "${@:2}"
