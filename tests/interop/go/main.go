// A client in Go, generated from the published proto: counts, encodes and decodes a text, and
// reads the reason of an error. It ends with status 1 if an answer is not the expected one.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "bytepair.example/interop/bytepair/v1"
)

func main() {
	log.SetFlags(0)
	connection, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	client := pb.NewTokenizerServiceClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	counted, err := client.Count(ctx, &pb.CountRequest{Encoding: "gpt-4o", Text: "hello world"})
	if err != nil {
		log.Fatal(err)
	}
	encoded, err := client.Encode(ctx, &pb.EncodeRequest{Encoding: "cl100k_base", Text: "hello world"})
	if err != nil {
		log.Fatal(err)
	}
	decoded, err := client.Decode(ctx, &pb.DecodeRequest{Encoding: "cl100k_base", Ids: encoded.Ids})
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Count(ctx, &pb.CountRequest{Encoding: "gpt-6", Text: "x"})
	reason := ""
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			reason = info.Reason
		}
	}
	fmt.Println("count  ", counted.Count, counted.Encoding)
	fmt.Println("encode ", encoded.Ids)
	fmt.Println("decode ", decoded.GetText())
	fmt.Println("reason ", reason)
	if counted.Count != 2 || counted.Encoding != "o200k_base" ||
		!slices.Equal(encoded.Ids, []uint32{15339, 1917}) ||
		decoded.GetText() != "hello world" || reason != "UNKNOWN_ENCODING" {
		log.Fatal("these are not the expected answers")
	}
}
