/** Ranks of an encoding's tokens, fetched when a merge is looked at, and merging by them. */

import { call } from "./api.js";

/** Items of one BatchDecode: the server's default for the most. */
const BATCH = 1024;
const AT_ONCE = 4;
const tables = new Map();

/** Bytes as a key: one character each. */
export const keyOf = (bytes) => String.fromCharCode(...bytes);

/**
 * The ranks of all tokens up to one, by key. Ids are ranks in rank tables, and a token's parts have
 * lower ones, so that the rest of the table is not needed.
 * @param said Called with how much is there, from 0 to 1.
 */
export async function ranksUpTo(encoding, id, signal, said) {
    const table = tables.get(encoding.fingerprint) ?? { ranks: new Map(), fetched: new Set() };
    tables.set(encoding.fingerprint, table);
    const missing = [];
    for (let from = 0; from <= id; from += BATCH) if (!table.fetched.has(from)) missing.push(from);
    const total = missing.length;
    const worker = async () => {
        for (let from; (from = missing.shift()) !== undefined; said(1 - missing.length / total)) {
            const items = Array.from(
                { length: Math.min(BATCH, encoding.nVocab - from) },
                (_, i) => ({ ids: [from + i] }),
            );
            const { results = [] } = await call(
                "TokenizerService/BatchDecode",
                { encoding: encoding.name, items, asBytes: true, skipSpecialTokens: true },
                signal,
            );
            results.forEach(({ data, error }, i) => {
                if (data && !error) table.ranks.set(atob(data), from + i);
            });
            table.fetched.add(from);
        }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    return table.ranks;
}

/**
 * Merge bytes, the pair of the lowest rank first and the leftmost of equals.
 * @returns The bytes, and what each merge makes, as `drawTree` takes them.
 */
export function mergedBy(ranks, bytes) {
    const parts = Array.from(bytes, (byte) => ({
        bytes: Uint8Array.of(byte),
        id: ranks.get(keyOf([byte])),
    }));
    let left = [...parts.keys()];
    const key = (i) => keyOf(parts[i].bytes);
    for (;;) {
        let best = -1;
        let lowest = Infinity;
        for (let at = 0; at + 1 < left.length; at++) {
            const rank = ranks.get(key(left[at]) + key(left[at + 1]));
            if (rank !== undefined && rank < lowest) [best, lowest] = [at, rank];
        }
        if (best < 0) return parts;
        const [one, other] = left.slice(best, best + 2);
        parts.push({
            bytes: new Uint8Array([...parts[one].bytes, ...parts[other].bytes]),
            id: lowest,
            order: lowest,
            left: one,
            right: other,
        });
        left = left.toSpliced(best, 2, parts.length - 1);
    }
}
