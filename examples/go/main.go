// A client in Go: counts a text, decodes a stream of ids, and reads the details of an error.
//
//	go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.10
//	go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.5.1
//	go generate && go mod tidy && go run .
//
// "go generate" needs protoc (Debian's protobuf-compiler), and what the first two lines install, in the
// path. docs/other-languages.md generates without protoc.
//
// BYTEPAIR_TARGET is the server (localhost:50051), BYTEPAIR_API_KEY a key, and BYTEPAIR_TLS_CA a file
// of authorities, for a server with TLS.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	pb "bytepair.example/go/bytepair/v1"
)

//go:generate sh -c "protoc -I ../../proto --go_out=. --go-grpc_out=. ../../proto/bytepair/v1/*.proto"

const encoding = "gpt-4o"

// Calls with one request are safe to repeat. A stream is not: what it has sent would be lost.
// A stopping server may end a call with CANCELLED.
const retries = `{"methodConfig": [{
	"name": [
		{"service": "bytepair.v1.TokenizerService", "method": "Count"},
		{"service": "bytepair.v1.TokenizerService", "method": "Encode"}
	],
	"retryPolicy": {
		"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
		"retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"]
	}
}]}`

// apiKey sends a key with each call.
type apiKey string

func (key apiKey) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if key == "" {
		return nil, nil
	}
	return map[string]string{"authorization": "Bearer " + string(key)}, nil
}

// RequireTransportSecurity is false so that a server on this machine can be tried without TLS.
func (apiKey) RequireTransportSecurity() bool { return false }

// connect opens a channel as the environment says.
func connect() (*grpc.ClientConn, error) {
	target := os.Getenv("BYTEPAIR_TARGET")
	if target == "" {
		target = "localhost:50051"
	}
	transport := insecure.NewCredentials()
	if authorities := os.Getenv("BYTEPAIR_TLS_CA"); authorities != "" {
		var err error
		if transport, err = credentials.NewClientTLSFromFile(authorities, ""); err != nil {
			return nil, err
		}
	}
	return grpc.NewClient(target,
		// Some answers are larger than the 4 MiB that gRPC accepts by default.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)),
		grpc.WithTransportCredentials(transport),
		grpc.WithPerRPCCredentials(apiKey(os.Getenv("BYTEPAIR_API_KEY"))),
		grpc.WithDefaultServiceConfig(retries),
		// Without pings, a stream whose connection was lost silently would never end.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second}),
	)
}

// decode sends ids one by one, as a model gives them, and joins the text that comes back.
func decode(ctx context.Context, client pb.TokenizerServiceClient, ids []uint32) (string, error) {
	stream, err := client.DecodeStream(ctx)
	if err != nil {
		return "", err
	}
	config := &pb.DecodeStreamConfig{Encoding: encoding}
	if err := stream.Send(&pb.DecodeStreamRequest{Config: config}); err != nil {
		return "", err
	}
	go func() {
		for _, id := range ids {
			// A fault of the stream is what Recv returns.
			if stream.Send(&pb.DecodeStreamRequest{Ids: []uint32{id}}) != nil {
				return
			}
		}
		_ = stream.CloseSend()
	}()
	var text strings.Builder
	for {
		answer, err := stream.Recv()
		if err == io.EOF {
			return text.String(), nil
		}
		if err != nil {
			return "", err
		}
		text.WriteString(answer.GetText())
	}
}

// reason is the reason of an error, such as UNKNOWN_ENCODING; "" where the server did not give one.
func reason(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.Domain == "bytepair" {
			return info.Reason
		}
	}
	return ""
}

// retryAfter is the time after which a call may be retried, as with OVERLOADED and QUOTA_EXCEEDED; 0
// where the server did not give one.
func retryAfter(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.RetryDelay.AsDuration()
		}
	}
	return 0
}

func run() error {
	connection, err := connect()
	if err != nil {
		return err
	}
	defer connection.Close()
	client := pb.NewTokenizerServiceClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	counted, err := client.Count(ctx, &pb.CountRequest{Encoding: encoding, Text: "hello world"})
	if err != nil {
		return err
	}
	fmt.Println("count", counted.Count, counted.Encoding)
	encoded, err := client.Encode(ctx, &pb.EncodeRequest{Encoding: encoding, Text: "a naïve 👋 café"})
	if err != nil {
		return err
	}
	// A stream lasts as long as a model writes, so it is cancelled, but has no deadline.
	writing, stop := context.WithCancel(context.Background())
	defer stop()
	text, err := decode(writing, client, encoded.Ids)
	if err != nil {
		return err
	}
	fmt.Println("stream", text)
	_, err = client.Count(ctx, &pb.CountRequest{Encoding: "gpt-unknown", Text: "hello world"})
	fmt.Println("reason", reason(err))
	return nil
}

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatalf("%s (retry after %v) %v", reason(err), retryAfter(err), err)
	}
}
