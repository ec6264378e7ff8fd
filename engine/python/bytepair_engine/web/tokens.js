/** A list of tokens with their bytes. */

/** Decode base64 to bytes. */
export function bytesOf(base64) {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** A list of tokens. `starts` has one entry more than `ids`: token i has the bytes starts[i] to starts[i+1]. */
export class Tokens {
    /** `facts` returns further properties of token i: a list of [term, text]. */
    constructor(ids, starts, bytes, encoding, facts = () => []) {
        Object.assign(this, { ids, starts, bytes, encoding, facts });
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
