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
 * @returns The parts that are left, each with its tree, and every state on the way.
 */
export function mergedBy(ranks, bytes) {
    let parts = Array.from(bytes, (byte) => ({ bytes: Uint8Array.of(byte), key: keyOf([byte]) }));
    for (const part of parts) part.id = ranks.get(part.key);
    const states = [{ parts, merged: -1 }];
    for (;;) {
        let best = -1;
        let lowest = Infinity;
        for (let i = 0; i + 1 < parts.length; i++) {
            const rank = ranks.get(parts[i].key + parts[i + 1].key);
            if (rank !== undefined && rank < lowest) [best, lowest] = [i, rank];
        }
        if (best < 0) return { parts, states };
        const [left, right] = parts.slice(best, best + 2);
        const bytes = new Uint8Array([...left.bytes, ...right.bytes]);
        parts = parts.toSpliced(best, 2, {
            bytes,
            key: left.key + right.key,
            id: lowest,
            left,
            right,
        });
        states.push({ parts, merged: best });
    }
}
