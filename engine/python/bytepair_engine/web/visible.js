/** Show text and bytes so that they cannot hide, reorder or join adjacent content. */

import { h } from "./dom.js";

// Control, format, surrogate, private and unassigned characters, and all white space: the same as in
// `bytepair explain`.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}]/u;
const ALL_HIDDEN = new RegExp(HIDDEN, "gu");
const OTHER_HIDDEN = /(?![ \t\n])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}]/gu;
const MARK = /^\p{M}/u;
const SIGNS = { " ": "·", "\t": "⇥", "\n": "↵" };

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Decode bytes to text; null if they are not UTF-8. */
export function textOf(bytes) {
    try {
        return strict.decode(bytes);
    } catch {
        return null;
    }
}

/** Format bytes: "F0 9F 98 80". */
export const hex = (bytes) =>
    Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");

/** The name of a hidden character: "U+202E". */
export const codePoint = (character) =>
    "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");

/** Nodes for a long text: spaces, tabs and line feeds unchanged, other hidden characters by name. */
export const shownFlowing = (text) => shown(text, OTHER_HIDDEN);

/** Nodes for a text: hidden characters by sign or name. A line feed also breaks the line. */
export function shown(text, hidden = ALL_HIDDEN) {
    const nodes = [];
    if (MARK.test(text)) text = "\u25CC" + text;
    let from = 0;
    for (const match of text.matchAll(hidden)) {
        const character = match[0];
        if (match.index > from) nodes.push(text.slice(from, match.index));
        from = match.index + character.length;
        const sign = SIGNS[character];
        nodes.push(sign ? h("i", {}, sign) : h("i", { class: "e" }, codePoint(character)));
        if (character === "\n") nodes.push("\n");
    }
    if (from < text.length) nodes.push(text.slice(from));
    return nodes;
}

/** A text with its hidden characters by name, as one string for labels. */
export function spoken(text) {
    return text.replace(ALL_HIDDEN, (character) =>
        character === " " ? " " : character === "\n" ? " line feed " : ` ${codePoint(character)} `,
    );
}
