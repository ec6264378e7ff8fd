/** A text with ranges of it marked. */

import { h } from "./dom.js";
import { shownFlowing } from "./visible.js";

/**
 * The pieces of a text between all ends of ranges, each with the ranges that cover it.
 * @param ranges `{start, end, …}` in UTF-16 code units, sorted by start.
 */
function pieces(text, ranges) {
    const ends = new Set([0, text.length]);
    for (const { start, end } of ranges) ends.add(start).add(end);
    const places = [...ends].sort((a, b) => a - b);
    const open = [];
    let next = 0;
    const found = [];
    for (let i = 0; i + 1 < places.length; i++) {
        while (next < ranges.length && ranges[next].start <= places[i]) open.push(ranges[next++]);
        for (let k = open.length; k--;) if (open[k].end <= places[i]) open.splice(k, 1);
        found.push({ start: places[i], end: places[i + 1], ranges: [...open] });
    }
    return found;
}

/**
 * Draw a text into an element.
 * @param attributesOf Given the ranges that cover a piece, the attributes of its element.
 * @param before Given a piece, nodes in front of it.
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
