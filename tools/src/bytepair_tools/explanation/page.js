/** The page of `bytepair explain`: draws what the command wrote into it. */

import { $, plural } from "./dom.js";
import { drawFindings } from "./findings.js";
import { bytesOf, Tokens } from "./tokens.js";
import { drawTree } from "./tree.js";
import { TokenView } from "./view.js";

const data = JSON.parse($("data").textContent);

/** The tokens, each with the bytes that it decodes to. */
function tokensOf({ encoding, order, tokens, special }) {
    const each = tokens.map(({ data: bytes }) => bytesOf(bytes));
    const starts = [0];
    for (const bytes of each) starts.push(starts.at(-1) + bytes.length);
    const bytes = new Uint8Array(starts.at(-1));
    each.forEach((part, i) => bytes.set(part, starts[i]));
    const named = { name: encoding, specialTokens: special };
    return new Tokens(
        tokens.map(({ id }) => id),
        starts,
        bytes,
        named,
        (i) => [
            [order, tokens[i].order],
            ...(tokens[i].kind === "token" ? [] : [["kind", tokens[i].kind]]),
            ...(tokens[i].start === starts[i]
                ? []
                : [["in the text", `at byte ${tokens[i].start}`]]),
        ],
    );
}

function drawTreeOf(id) {
    const parts = data.trees[id].map(([bytes, known, order, left, right]) => ({
        bytes: bytesOf(bytes),
        id: known ?? undefined,
        order,
        left: left ?? undefined,
        right,
    }));
    $("tree-status").textContent = drawTree($("tree"), id, parts, data.order);
}

const tokens = tokensOf(data);
const title = data.tokens.length
    ? `${plural(tokens.length, "token")} of ${data.encoding}`
    : `Token ${data.chosen} of ${data.encoding}`;
$("title").textContent = document.title = title;
$("about").textContent =
    (tokens.length
        ? `${plural(tokens.bytes.length, "byte")}, ${(tokens.bytes.length / tokens.length).toFixed(2)} bytes per token; `
        : "") + `fingerprint ${data.fingerprint}`;
const view = new TokenView($("view"), "Tokens", $("detail"), (_, i) => drawTreeOf(tokens.ids[i]));
view.show(tokens);
const chosen = tokens.ids.indexOf(data.chosen);
if (chosen >= 0) view.choose(chosen, false);
else if (data.chosen !== null) drawTreeOf(data.chosen);
$("findings").hidden = data.findings === null;
if (data.findings !== null) drawFindings(data.text, data.findings);
