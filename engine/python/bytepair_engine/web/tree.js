/** The merges of a token, as a tree and step by step. */

import { h, plural } from "./dom.js";
import { hex, shown, textOf } from "./visible.js";

/** Maximum depth and number of steps drawn; further ones are counted. */
const MAX_LEVELS = 48;
const MAX_STEPS = 64;

/**
 * Draw the merges of a token.
 * @param parts `{bytes, id, order, left, right}`: its units, then the results of its merges in
 *   order; `left` and `right` are the indices of the merged parts.
 * @param orderName The meaning of `order`: "rank", "priority" or "score".
 * @returns A description.
 */
export function drawTree(root, id, parts, orderName) {
    const merges = parts.filter(isMerged).length;
    const used = new Set(parts.filter(isMerged).flatMap(({ left, right }) => [left, right]));
    const roots = parts.filter((_, i) => !used.has(i));
    if (!merges) {
        root.replaceChildren();
        return roots.length > 1
            ? `Merging its own parts does not make token ${id}: none of its ${roots.length} parts merge.`
            : `Token ${id} is not merged.`;
    }
    root.replaceChildren(
        h("h2", {}, "Tree"),
        h(
            "div",
            { class: "tree", tabindex: 0, role: "group", "aria-label": "Tree of merges" },
            h("ul", {}, ...roots.map((part) => branch(parts, part, orderName, 0))),
        ),
        h("h2", {}, "Step by step"),
        h("ol", { class: "steps", start: 0 }, ...steps(parts, orderName)),
        ...(merges > MAX_STEPS
            ? [h("p", { class: "soft" }, `… and ${plural(merges - MAX_STEPS, "merge")} more`)]
            : []),
    );
    const units = parts.length - merges;
    return roots.length > 1
        ? `Merging its own parts does not make token ${id}: it leaves ${plural(roots.length, "part")}.`
        : `Token ${id} is made of ${plural(units, "part")} by ${plural(merges, "merge")}.`;
}

const isMerged = ({ left }) => left !== undefined;

function branch(parts, part, orderName, level) {
    const order = isMerged(part) ? ` ${orderName} ${part.order}` : "";
    const hidden = level === MAX_LEVELS ? below(parts, part) : 0;
    const details = [
        part.id === undefined ? "" : ` id ${part.id}`,
        orderName === "rank" ? "" : order,
        hidden ? ` … and ${hidden} parts below` : "",
    ];
    const halves =
        isMerged(part) && !hidden
            ? [part.left, part.right].map((i) => branch(parts, parts[i], orderName, level + 1))
            : [];
    return h(
        "li",
        {},
        label(part),
        h("span", { class: "soft" }, details.join("")),
        ...(halves.length ? [h("ul", {}, ...halves)] : []),
    );
}

function below(parts, root) {
    let found = -1;
    for (const waiting = [root]; waiting.length; found++) {
        const part = waiting.pop();
        if (isMerged(part)) waiting.push(parts[part.left], parts[part.right]);
    }
    return found;
}

function* steps(parts, orderName) {
    const line = (title, states, merged) =>
        h("li", {}, title, ...states.flatMap((i) => [label(parts[i], i === merged), " "]));
    let states = [...parts.keys()].filter((i) => !isMerged(parts[i]));
    yield line("parts: ", states, -1);
    const first = states.length;
    for (let i = first; i < Math.min(parts.length, first + MAX_STEPS); i++) {
        states = states.toSpliced(states.indexOf(parts[i].left), 2, i);
        yield line(`${orderName} ${parts[i].order}: `, states, i);
    }
}

function label({ bytes }, isNew = false) {
    const text = textOf(bytes);
    return h(
        isNew ? "mark" : "b",
        {},
        ...(text === null ? [hex(bytes)] : shown(text).filter((node) => node !== "\n")),
    );
}
