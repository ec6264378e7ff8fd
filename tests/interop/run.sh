#!/usr/bin/env bash
# Call a running server by programs that know nothing of this project: grpcurl, which learns the
# API by reflection, and a client that is generated from the proto in Go. Needs Go.
#
#   tests/interop/run.sh FOLDER     the folder of the virtualenv's programs, with bytepair-server
set -euo pipefail
bin=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/interop
protoc="$root/build/proto/bin/python -m grpc_tools.protoc"

command -v go > /dev/null || { echo "$0: 'go' is missing: install Go 1.24 or newer" >&2; exit 1; }

echo "== build grpcurl, and a client in Go from proto/"
mkdir -p "$work/bin" "$work/go/bytepair/v1"
export GOBIN=$work/bin
go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3
go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.10
go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.5.1
cp "$here"/go/* "$work/go/"
package=bytepair.example/interop/bytepair/v1
mapped=()
for file in "$root"/proto/bytepair/v1/*.proto; do
    name=bytepair/v1/$(basename "$file")
    mapped+=("--go_opt=M$name=$package" "--go-grpc_opt=M$name=$package")
done
PATH=$GOBIN:$PATH $protoc --proto_path="$root/proto" "${mapped[@]}" \
    --go_out="$work/go" --go_opt=module=bytepair.example/interop \
    --go-grpc_out="$work/go" --go-grpc_opt=module=bytepair.example/interop \
    "$root"/proto/bytepair/v1/*.proto
(cd "$work/go" && go mod tidy && go build -o "$work/bin/client" .)

echo "== start a server"
log=$work/server.log
"$bin/bytepair-server" --grpc-address 127.0.0.1:0 --http-address none --reflection true \
    --builtin-encodings cl100k_base,o200k_base --log-format json 2> "$log" &
server=$!
trap 'kill $server 2> /dev/null; wait $server 2> /dev/null || true' EXIT
for _ in $(seq 100); do
    target=$(sed -n 's/.*"grpc_address": *"\([^"]*\)".*/\1/p' "$log" | head -n 1)
    [ -n "$target" ] && break
    kill -0 $server || { cat "$log" >&2; exit 1; }
    sleep 0.1
done

echo "== grpcurl, by reflection"
set -x
"$work/bin/grpcurl" -plaintext "$target" list
"$work/bin/grpcurl" -plaintext "$target" list bytepair.v1.TokenizerService
answer=$("$work/bin/grpcurl" -plaintext -d '{"encoding": "gpt-4o", "text": "hello world"}' \
    "$target" bytepair.v1.TokenizerService/Count)
set +x
echo "$answer"
grep -q '"count": "2"' <<< "$answer"

echo "== the generated client in Go"
"$work/bin/client" "$target"
echo "== both understood the service"
