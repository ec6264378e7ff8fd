// A client in Node with @grpc/grpc-js: counts a text, decodes a stream of ids, and reads the details
// of an error.
//
//     npm install && node main.js
//
// BYTEPAIR_TARGET is the server (localhost:50051), BYTEPAIR_API_KEY a key, BYTEPAIR_TLS_CA a file of
// authorities, for a server with TLS, and BYTEPAIR_PROTO the folder of the proto files.
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import protobuf from "protobufjs";

const ENCODING = "gpt-4o";
const PROTO = process.env.BYTEPAIR_PROTO ?? new URL("../../proto", import.meta.url).pathname;

// Calls with one request are safe to repeat. A stream is not: what it has sent would be lost.
// A stopping server may end a call with CANCELLED.
const RETRIES = JSON.stringify({
  methodConfig: [
    {
      name: [
        { service: "bytepair.v1.TokenizerService", method: "Count" },
        { service: "bytepair.v1.TokenizerService", method: "Encode" },
      ],
      retryPolicy: {
        maxAttempts: 4,
        initialBackoff: "0.1s",
        maxBackoff: "1s",
        backoffMultiplier: 2,
        retryableStatusCodes: ["UNAVAILABLE", "CANCELLED"],
      },
    },
  ],
});

// The details of a gRPC error are in a google.rpc.Status. These are two of them.
const { root } = protobuf.parse(`
  syntax = "proto3";
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message RetryInfo { Duration retry_delay = 1; }
`, { keepCase: true });

/** A detail of an error, by its type's name; undefined where the server did not give one. */
function detail(error, name) {
  for (const raw of error.metadata?.get("grpc-status-details-bin") ?? []) {
    for (const { type_url, value } of root.lookupType("Status").decode(raw).details) {
      if (type_url === `type.googleapis.com/google.rpc.${name}`) {
        return root.lookupType(name).decode(value);
      }
    }
  }
}

/** The reason of an error, such as UNKNOWN_ENCODING; "" where the server did not give one. */
function reason(error) {
  return detail(error, "ErrorInfo")?.reason ?? "";
}

/** The seconds after which a call may be retried, as with OVERLOADED and QUOTA_EXCEEDED, or 0. */
function retryAfter(error) {
  const delay = detail(error, "RetryInfo")?.retry_delay;
  return delay ? Number(delay.seconds) + delay.nanos / 1e9 : 0;
}

/** A client as the environment says. */
function connect() {
  const { BYTEPAIR_TARGET: target, BYTEPAIR_API_KEY: key, BYTEPAIR_TLS_CA: ca } = process.env;
  // Without defaults, a count of 0, an empty text's ids and `finished: false` would be undefined.
  const settings = { includeDirs: [PROTO], longs: Number, defaults: true };
  const definition = loadSync("bytepair/v1/tokenizer.proto", settings);
  const { TokenizerService } = grpc.loadPackageDefinition(definition).bytepair.v1;
  const credentials = ca
    ? grpc.credentials.createSsl(readFileSync(ca))
    : grpc.credentials.createInsecure();
  const withKey = (options, next) =>
    new grpc.InterceptingCall(next(options), {
      start(metadata, listener, start) {
        if (key) metadata.set("authorization", `Bearer ${key}`);
        start(metadata, listener);
      },
    });
  return new TokenizerService(target ?? "localhost:50051", credentials, {
    "grpc.service_config": RETRIES,
    // Some answers are larger than the 4 MiB that gRPC accepts by default.
    "grpc.max_receive_message_length": 64 << 20,
    // Without pings, a stream whose connection was lost silently would never end.
    "grpc.keepalive_time_ms": 20_000,
    interceptors: [withKey],
  });
}

/** Send ids one by one, as a model gives them, and join the text that comes back. */
async function decode(client, ids) {
  const stream = client.decodeStream();
  stream.write({ config: { encoding: ENCODING } });
  for (const id of ids) stream.write({ ids: [id] });
  stream.end();
  let text = "";
  for await (const answer of stream) text += answer.text;
  return text;
}

const client = connect();
const options = () => ({ deadline: Date.now() + 10_000 });
const call = (method, request) => promisify(client[method].bind(client))(request, options());
try {
  const { count, encoding } = await call("count", { encoding: ENCODING, text: "hello world" });
  console.log("count", count, encoding);
  const { ids } = await call("encode", { encoding: ENCODING, text: "a naïve 👋 café" });
  console.log("stream", await decode(client, ids));
  const failure = await call("count", { encoding: "gpt-unknown", text: "" }).catch((error) => error);
  console.log("reason", reason(failure));
} catch (error) {
  console.error(`${reason(error)} (retry after ${retryAfter(error)}s)`, error.message);
  process.exitCode = 1;
} finally {
  client.close();
}
