/** A text with marked ranges. */

import { h } from "./dom.js";
import { shownFlowing } from "./visible.js";

/**
 * Divide a text at all ends of ranges, into pieces with the ranges that cover them.
 * @param ranges `{start, end, …}` in UTF-16 code units, sorted by start.
 */
function pieces(text, ranges) {
    const ends = new Set([0, text.length]);
    for (const { start, end } of ranges) ends.add(start).add(end);
    const positions = [...ends].sort((a, b) => a - b);
    const open = [];
    let next = 0;
    const found = [];
    for (let i = 0; i + 1 < positions.length; i++) {
        const [start, end] = [positions[i], positions[i + 1]];
        while (next < ranges.length && ranges[next].start <= start) open.push(ranges[next++]);
        for (let k = open.length; k--;) if (open[k].end <= start) open.splice(k, 1);
        found.push({ start, end, ranges: [...open] });
    }
    return found;
}

/**
 * Draw a text into an element.
 * @param attributesOf Returns the attributes of a piece's element, from the ranges that cover it.
 * @param before Returns nodes to insert before a piece.
 */
export function drawRanges(root, text, ranges, attributesOf, before = () => []) {
    const nodes = [];
    for (const piece of pieces(text, ranges)) {
        nodes.push(
            ...before(piece),
            h(
                "span",
                attributesOf(piece.ranges, piece),
                ...shownFlowing(text.slice(piece.start, piece.end)),
            ),
        );
    }
    root.replaceChildren(...nodes);
}
