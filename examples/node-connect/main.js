// A client in Node with @connectrpc/connect-node: counts a text, decodes a stream of ids, and reads
// the details of an error.
//
//     npm install && npm run generate && node main.js
//
// BYTEPAIR_TARGET is the server (localhost:50051), BYTEPAIR_API_KEY a key, and BYTEPAIR_TLS_CA a file
// of authorities, for a server with TLS.
import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.js";
import { TokenizerService } from "./gen/bytepair/v1/tokenizer_pb.js";

const ENCODING = "gpt-4o";
const ATTEMPTS = 4;

/** Send a key with each call. */
const withKey = (key) => (next) => (request) => {
  if (key) request.header.set("authorization", `Bearer ${key}`);
  return next(request);
};

// What a stopping server may end a call with.
const REPEATED = [Code.Unavailable, Code.Canceled];

/** Repeat calls with one request. A stream is not safe to repeat: what it has sent would be lost. */
const withRetries = (next) => async (request) => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await next(request);
    } catch (error) {
      const mayRepeat = !request.stream && !request.signal.aborted && attempt < ATTEMPTS;
      if (!mayRepeat || !REPEATED.includes(ConnectError.from(error).code)) throw error;
      await setTimeout(100 * 2 ** attempt * Math.random());
    }
  }
};

/** The reason of an error, such as UNKNOWN_ENCODING; "" where the server did not give one. */
function reason(error) {
  return ConnectError.from(error).findDetails(ErrorInfoSchema)[0]?.reason ?? "";
}

/** The seconds after which a call may be retried, as with OVERLOADED and QUOTA_EXCEEDED, or 0. */
function retryAfter(error) {
  const delay = ConnectError.from(error).findDetails(RetryInfoSchema)[0]?.retryDelay;
  return delay ? Number(delay.seconds) + delay.nanos / 1e9 : 0;
}

/** A client as the environment says. */
function connect() {
  const { BYTEPAIR_TARGET: target, BYTEPAIR_API_KEY: key, BYTEPAIR_TLS_CA: ca } = process.env;
  const transport = createConnectTransport({
    baseUrl: `${ca ? "https" : "http"}://${target ?? "localhost:50051"}`,
    httpVersion: "2", // streams in both directions need it
    nodeOptions: ca ? { ca: readFileSync(ca) } : {},
    interceptors: [withKey(key), withRetries],
    // Without pings, a stream whose connection was lost silently would never end.
    pingIntervalMs: 20_000,
    defaultTimeoutMs: 10_000,
  });
  return createClient(TokenizerService, transport);
}

/** Send ids one by one, as a model gives them, and join the text that comes back. */
async function decode(client, ids) {
  async function* requests() {
    yield { config: { encoding: ENCODING } };
    for (const id of ids) yield { ids: [id] };
  }
  let text = "";
  // A stream lasts as long as a model writes, so it has no deadline.
  const answers = client.decodeStream(requests(), { timeoutMs: 0 });
  for await (const { content } of answers) text += content.value;
  return text;
}

const client = connect();
try {
  const { count, encoding } = await client.count({ encoding: ENCODING, text: "hello world" });
  console.log("count", Number(count), encoding);
  const { ids } = await client.encode({ encoding: ENCODING, text: "a naïve 👋 café" });
  console.log("stream", await decode(client, ids));
  const failure = await client.count({ encoding: "gpt-unknown" }).catch((error) => error);
  console.log("reason", reason(failure));
} catch (error) {
  console.error(`${reason(error)} (retry after ${retryAfter(error)}s)`, error.message);
  process.exitCode = 1;
}
