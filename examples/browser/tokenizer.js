// Calls by fetch: for browsers, Node, Deno and Bun.

// What a stopping server may end a call with: every call may be repeated.
const REPEATED = ["unavailable", "canceled"];
// What proxies answer, without JSON, if no server does.
const BUSY = [429, 502, 503, 504];

/**
 * The code is Connect's, such as "not_found". The reason and its metadata are those of
 * docs/errors.md; empty where the server did not give them. `retryAfter` is how many seconds to
 * wait, as with OVERLOADED and QUOTA_EXCEEDED; 0 where the server did not say.
 */
export class TokenizerError extends Error {
  name = "TokenizerError";

  constructor({ code, message, details = [] }) {
    super(message);
    const detail = (name) => details.find(({ type }) => type === `google.rpc.${name}`)?.debug ?? {};
    const { reason = "", metadata = {} } = detail("ErrorInfo");
    Object.assign(this, { code, reason, metadata });
    this.retryAfter = parseFloat(detail("RetryInfo").retryDelay ?? "0s");
  }
}

export class Tokenizer {
  /** `origin` is the server's, such as https://tokens.example:50051. */
  constructor(origin, key = null) {
    this.url = `${origin}/bytepair.v1.TokenizerService/`;
    this.headers = { "content-type": "application/json" };
    if (key !== null) this.headers.authorization = `Bearer ${key}`;
  }

  /**
   * Call an RPC with one request and one answer, as proto3 JSON has them. `timeoutMs` is for all
   * attempts together.
   */
  async call(method, request, { timeoutMs = 10_000, attempts = 4 } = {}) {
    const init = {
      method: "POST",
      headers: { ...this.headers, "connect-timeout-ms": String(timeoutMs) },
      body: JSON.stringify(request),
      signal: AbortSignal.timeout(timeoutMs),
    };
    for (let attempt = 1; ; attempt++) {
      try {
        return await post(this.url + method, init);
      } catch (error) {
        if (!REPEATED.includes(error.code) || attempt >= attempts) throw error;
      }
      await new Promise((done) => setTimeout(done, 100 * 2 ** attempt * Math.random()));
    }
  }
}

async function post(url, init) {
  const failed = (code, message) => new TokenizerError({ code, message });
  let answer, text, said;
  try {
    answer = await fetch(url, init);
    text = await answer.text();
  } catch ({ message }) {
    throw failed(init.signal.aborted ? "deadline_exceeded" : "unavailable", message);
  }
  try {
    said = JSON.parse(text);
  } catch {
    throw failed(BUSY.includes(answer.status) ? "unavailable" : "unknown", `HTTP ${answer.status}`);
  }
  if (!answer.ok) throw new TokenizerError(said);
  return said;
}
