/** Text and bytes made visible. Nothing that is shown can hide, reorder or join what is beside it. */

import { h } from "./dom.js";

// Control, format, surrogate, private and unassigned characters, and all white space: as
// `bytepair explain` has it.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}]/u;
const ALL_HIDDEN = new RegExp(HIDDEN, "gu");
const OTHER_HIDDEN = /(?![ \t\n])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}]/gu;
const MARK = /^\p{M}/u;
const SIGNS = { " ": "·", "\t": "⇥", "\n": "↵" };

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of bytes; null where they are not UTF-8. */
export function textOf(bytes) {
    try {
        return strict.decode(bytes);
    } catch {
        return null;
    }
}

/** "F0 9F 98 80". */
export const hex = (bytes) =>
    Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");

/** How a hidden character is named: "U+202E". */
export const codePoint = (character) =>
    "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");

/** Nodes that show a long text: spaces, tabs and lines as they are, all else that is hidden by name. */
export const shownFlowing = (text) => shown(text, OTHER_HIDDEN);

/** Nodes that show a text. A line feed is shown by a sign, and breaks the line too. */
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

/** The same as one string, for labels. */
export function spoken(text) {
    return text.replace(ALL_HIDDEN, (character) =>
        character === " " ? " " : character === "\n" ? " line feed " : ` ${codePoint(character)} `,
    );
}
