/** Calls of the server that served the page, as JSON (Connect). */

import { bytesOf } from "./tokens.js";

/** A call that failed, or cannot be made. `isTemporary`: the same call may go well later. */
export class CallError extends Error {
    constructor(message, { code = "", reason = "", isTemporary = false } = {}) {
        super(message);
        Object.assign(this, { code, reason, isTemporary });
    }
}

const TEMPORARY = new Set(["unavailable", "deadline_exceeded", "OVERLOADED", "QUOTA_EXCEEDED"]);
const TIMEOUT_MS = 30_000;
let key = "";

/** Send this API key with every call from now on. */
export function useKey(given) {
    key = given;
}

/** Whether calls carry an API key. */
export const hasKey = () => key !== "";

/**
 * One unary call: `call("TokenizerService/Encode", {...}, signal)`.
 * Throws CallError, and AbortError where `signal` was aborted, even just before the answer.
 */
export async function call(method, request, signal) {
    const headers = {
        "content-type": "application/json",
        "connect-timeout-ms": String(TIMEOUT_MS),
    };
    if (key) headers.authorization = `Bearer ${key}`;
    let response;
    let answer;
    try {
        response = await fetch(new URL(`bytepair.v1.${method}`, document.baseURI), {
            method: "POST",
            headers,
            body: JSON.stringify(request),
            signal,
            cache: "no-store",
            credentials: "omit",
            redirect: "error",
        });
        answer = await response.json();
    } catch (error) {
        signal?.throwIfAborted();
        if (response && !(error instanceof TypeError)) {
            throw new CallError(`The answer is not JSON (HTTP ${response.status}).`, {
                isTemporary: response.status >= 500,
            });
        }
        throw new CallError("The server does not answer.", {
            code: "unavailable",
            isTemporary: true,
        });
    }
    signal?.throwIfAborted();
    if (response.ok) return answer;
    const { code = "unknown", message = `HTTP ${response.status}` } = answer;
    const reason = reasonOf(answer);
    const error = new CallError(message, {
        code,
        reason,
        isTemporary: TEMPORARY.has(code) || TEMPORARY.has(reason),
    });
    if (code === "unauthenticated") document.dispatchEvent(new CustomEvent("needs-key"));
    throw error;
}

/** The reason in google.rpc.ErrorInfo, whose first field it is. */
function reasonOf({ details = [] }) {
    const info = details.find(({ type }) => type?.endsWith("google.rpc.ErrorInfo"));
    if (!info?.value) return "";
    const bytes = bytesOf(info.value);
    return bytes[0] === 10 ? new TextDecoder().decode(bytes.subarray(2, 2 + bytes[1])) : "";
}
