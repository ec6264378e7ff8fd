/** Tokens: ids, and the bytes that each stands for. */

import { bytesOf, call, CallError } from "./api.js";

const encoder = new TextEncoder();
/** Items of one BatchDecode: the server's default for the most. */
const BATCH = 1024;

/** A list of tokens. `starts` has one entry more than `ids`: token i is bytes starts[i] to starts[i+1]. */
export class Tokens {
    constructor(ids, starts, bytes, encoding) {
        Object.assign(this, { ids, starts, bytes, encoding });
        this.special = new Map(
            (encoding.specialTokens ?? []).map(({ token, id }) => [id ?? 0, token]),
        );
        this.unknown = new Set();
        this.differs = null;
    }

    get length() {
        return this.ids.length;
    }

    slice(from, to = from + 1) {
        return this.bytes.subarray(this.starts[from], this.starts[to]);
    }

    /** Whether tokens i and i+1 share a character. */
    sharesNext(i) {
        const at = this.starts[i + 1];
        return i + 1 < this.length && at > this.starts[i] && (this.bytes[at] & 0xc0) === 0x80;
    }

    /** The tokens that share characters with token i: [from, to). */
    group(i) {
        let from = i;
        let to = i + 1;
        while (from > 0 && this.sharesNext(from - 1)) from--;
        while (this.sharesNext(to - 1)) to++;
        return [from, to];
    }
}

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
    return new Tokens(answer.ids ?? [], [...(answer.offsets ?? []), bytes.length], bytes, encoding);
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
    const tokens = new Tokens(ids, starts, bytes, encoding);
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
