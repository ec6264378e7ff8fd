/** The page: its tabs, its input, and what it knows of the server. */

import { call, useKey } from "./api.js";
import { ChatTab } from "./chat.js";
import { CutTab } from "./cut.js";
import { $ } from "./dom.js";
import { FindingsTab } from "./inspect.js";
import { Live } from "./live.js";
import { MergesTab } from "./merges.js";
import { shared } from "./share.js";
import { fromFragment, initial } from "./state.js";
import { CompareTab, delayFor, TokensTab } from "./text.js";

const state = (await fromFragment(location.hash)) ?? initial();
const encodings = new Map();
const formats = new Map();
const tabs = {
    tokens: new TokensTab(state, encodings),
    compare: new CompareTab(state, encodings),
    merges: new MergesTab(state, encodings),
    cut: new CutTab(state, encodings),
    findings: new FindingsTab(state, encodings),
    chat: new ChatTab(state, encodings, formats),
};
const names = Object.keys(tabs);

/** Ask which encodings and formats there are, until the server answers. */
const start = new Live(async (signal) => {
    const [known, chats] = await Promise.all([
        call("TokenizerService/ListEncodings", {}, signal),
        call("ChatService/ListChatFormats", {}, signal),
    ]);
    for (const encoding of known.encodings ?? []) encodings.set(encoding.name, encoding);
    for (const format of chats.formats ?? []) formats.set(format.name, format);
    $("key-form").hidden = true;
    choose(state.tab);
}, $("tokens-status"));

function choose(tab) {
    for (const name of names) if (name !== tab) for (const live of tabs[name].lives) live.stop();
    state.tab = names.includes(tab) ? tab : names[0];
    for (const name of names) {
        const isChosen = name === state.tab;
        $(`tab-${name}`).setAttribute("aria-selected", isChosen);
        $(`tab-${name}`).tabIndex = isChosen ? 0 : -1;
        $(`panel-${name}`).hidden = !isChosen;
    }
    $("input").hidden = state.tab === "chat";
    const isIds = state.tab === "tokens" && state.mode === "ids";
    $("mode").parentElement.hidden = state.tab !== "tokens";
    $("special").parentElement.hidden = isIds || state.tab === "findings";
    $("text-label").hidden = isIds;
    $("ids-label").hidden = !isIds;
    if (encodings.size) tabs[state.tab].refresh();
}

for (const name of names) $(`tab-${name}`).addEventListener("click", () => choose(name));
$("tabs").addEventListener("keydown", (event) => {
    const at = names.indexOf(state.tab);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[
        event.key
    ];
    if (next === undefined) return;
    event.preventDefault();
    choose(names[(next + names.length) % names.length]);
    $(`tab-${state.tab}`).focus();
});

for (const field of ["text", "ids", "mode", "special"]) {
    const input = $(field);
    input.value = state[field];
    if (input.value !== state[field] && input.tagName === "SELECT")
        input.value = state[field] = initial()[field];
    input.addEventListener("input", () => {
        state[field] = input.value.toWellFormed();
        if (input.tagName === "SELECT") choose(state.tab);
        else if (encodings.size) tabs[state.tab].refresh(delayFor(state[field]));
    });
}

document.addEventListener("needs-key", () => {
    if (!$("key-form").hidden) return;
    $("key-form").hidden = false;
    $("key").focus();
});
$("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    useKey($("key").value);
    $("key").value = "";
    start.request();
});

async function draw() {
    const form = $("share-form").value;
    const said = await shared(state, formats, form).catch((error) => error.message);
    if ($("share-form").value === form) $("share-text").value = said;
}
$("share").addEventListener("click", async () => {
    $("share-said").textContent = "";
    $("share-dialog").showModal();
    await draw();
});
$("share-form").addEventListener("change", draw);
$("share-copy").addEventListener("click", async () => {
    $("share-text").select();
    try {
        await navigator.clipboard.writeText($("share-text").value);
        $("share-said").textContent = "Copied.";
    } catch {
        // Pages without TLS, except for localhost, may not write to the clipboard.
        $("share-said").textContent = "Selected: copy it by the keyboard.";
    }
});
// A link that is opened in the same tab changes nothing but the fragment.
addEventListener("hashchange", () => location.reload());

start.request();
