// Calls by fetch: for browsers, Node, Deno and Bun.

// What a stopping server may end a call with: every call may be repeated.
const REPEATED = ["unavailable", "canceled"];

/**
 * The reason is one of docs/errors.md; "" where the server did not give one. `retryAfter` is how many
 * seconds to wait, as with OVERLOADED and QUOTA_EXCEEDED; 0 where the server did not say.
 */
export class TokenizerError extends Error {
  constructor({ code, message, details = [] }) {
    super(message);
    this.code = code;
    this.reason = reasonOf(details.find(({ type }) => type === "google.rpc.ErrorInfo"));
    const retry = details.find(({ type }) => type === "google.rpc.RetryInfo");
    this.retryAfter = parseFloat(retry?.debug.retryDelay ?? "0s");
  }
}

/** The first field of an ErrorInfo, which JSON has as the base64 of its bytes. */
function reasonOf(info) {
  if (info === undefined) return "";
  const bytes = Uint8Array.from(atob(info.value), (byte) => byte.charCodeAt(0));
  return new TextDecoder().decode(bytes.subarray(2, 2 + bytes[1]));
}

export class Tokenizer {
  /** `origin` is the server's, such as https://tokens.example:50051. */
  constructor(origin, key = null) {
    this.url = `${origin}/bytepair.v1.TokenizerService/`;
    this.headers = { "content-type": "application/json" };
    if (key !== null) this.headers.authorization = `Bearer ${key}`;
  }

  /** Call an RPC with one request and one answer, as proto3 JSON has them. */
  async call(method, request, { timeoutMs = 10_000, attempts = 4 } = {}) {
    for (let attempt = 1; ; attempt++) {
      const answer = await fetch(this.url + method, {
        method: "POST",
        headers: { ...this.headers, "connect-timeout-ms": String(timeoutMs) },
        body: JSON.stringify(request),
        signal: AbortSignal.timeout(timeoutMs),
      });
      if (answer.ok) return answer.json();
      const error = new TokenizerError(await answer.json());
      if (!REPEATED.includes(error.code) || attempt >= attempts) throw error;
      await new Promise((done) => setTimeout(done, 100 * 2 ** attempt * Math.random()));
    }
  }
}
