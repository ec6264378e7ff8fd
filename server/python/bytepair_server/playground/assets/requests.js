/** What the server is asked for tokens. */

import { call, CallError } from "./api.js";
import { bytesOf, Tokens } from "./tokens.js";

const encoder = new TextEncoder();
/** Items of one BatchDecode: the server's default for the most. */
const BATCH = 1024;

/** The fields of a request that say what special tokens in a text are. */
export function specialFields(special) {
    if (special === "reject") return { disallowedSpecial: "DISALLOWED_SPECIAL_REJECT" };
    const asText = { disallowedSpecial: "DISALLOWED_SPECIAL_AS_TEXT" };
    return special === "control" ? { ...asText, allowedSpecial: ["ALL"] } : asText;
}

/** The request for the tokens of a text. */
export function encodeRequest(encoding, text, special) {
    return { encoding, text, offsets: "OFFSET_UNIT_BYTE", ...specialFields(special) };
}

/** The tokens of a text. */
export async function tokensOfText(encoding, text, special, signal) {
    const answer = await call(
        "TokenizerService/Encode",
        encodeRequest(encoding.name, text, special),
        signal,
    );
    const bytes = encoder.encode(text);
    const ids = answer.ids ?? [];
    const starts = [...(answer.offsets ?? []), bytes.length];
    return new Tokens(ids, starts, bytes, encoding, await rankFacts(encoding, ids, signal));
}

const areRanks = new Map();

/** What to say of a token's rank. In a table of ranks it is the id, and any token tells what it is. */
async function rankFacts(encoding, ids, signal) {
    if (!areRanks.has(encoding.fingerprint)) {
        const request = { encoding: encoding.name, id: encoding.maxTokenId ?? 0 };
        const { order } = await call("TokenizerService/GetToken", request, signal);
        areRanks.set(encoding.fingerprint, order === "MERGE_ORDER_RANK");
    }
    return areRanks.get(encoding.fingerprint) ? (i) => [["rank", String(ids[i])]] : undefined;
}

const spelled = new Map();

/** The tokens of ids. */
export async function tokensOfIds(encoding, ids, signal) {
    const known = spelled.get(encoding.fingerprint) ?? new Map();
    spelled.set(encoding.fingerprint, known);
    const missing = [...new Set(ids)].filter((id) => !known.has(id));
    for (let from = 0; from < missing.length; from += BATCH) {
        const part = missing.slice(from, from + BATCH);
        const items = part.map((id) => ({ ids: [id] }));
        const { results = [] } = await call(
            "TokenizerService/BatchDecode",
            { encoding: encoding.name, items, asBytes: true },
            signal,
        );
        results.forEach((result, i) =>
            known.set(part[i], result.error ? null : bytesOf(result.data ?? "")),
        );
    }
    const starts = [0];
    for (const id of ids) starts.push(starts.at(-1) + (known.get(id)?.length ?? 0));
    const bytes = new Uint8Array(starts.at(-1));
    ids.forEach((id, i) => bytes.set(known.get(id) ?? [], starts[i]));
    const facts = await rankFacts(encoding, ids, signal);
    const tokens = new Tokens(ids, starts, bytes, encoding, facts);
    for (const id of ids) if (known.get(id) === null) tokens.unknown.add(id);
    return tokens;
}

/** The ids in what was pasted: numbers between commas, spaces or brackets. Throws CallError. */
export function parseIds(text) {
    const words = text.split(/[\s,;[\]()]+/).filter(Boolean);
    return words.map((word, i) => {
        const id = Number(word);
        if (!/^\d+$/.test(word) || id > 0xffffffff)
            throw new CallError(`Entry ${i + 1} is not a token id.`);
        return id;
    });
}
