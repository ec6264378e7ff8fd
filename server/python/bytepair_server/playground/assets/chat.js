/** The tab Chat: messages, what each costs, what fits into a window, and the tokens of all of it. */

import { call, CallError } from "./api.js";
import { $, fill, h, number, plural } from "./dom.js";
import { Live } from "./live.js";
import { tokensOfIds } from "./requests.js";
import { Tokens } from "./tokens.js";
import { TokenView } from "./view.js";

const DELAY_MS = 80;
const NOT_PERMITTED = "CHAT_FORMAT_NOT_PERMITTED";
const COUNTS_ONLY = "COUNTS_ONLY";

/** The request that the calls of this tab share. Throws CallError where the tools are no JSON. */
export function chatRequest(chat, format) {
    const fields = new Set(format?.fields ?? []);
    const messages = chat.messages.map(({ role, name, text }) => ({
        role,
        content: [{ text }],
        ...(name && fields.has("name") ? { name } : {}),
    }));
    const request = { encoding: chat.encoding, format: chat.format, messages };
    if (!chat.tools.trim() || !format?.tools) return request;
    let tools;
    try {
        tools = JSON.parse(chat.tools);
    } catch {
        throw new CallError("The tools are not JSON.");
    }
    return {
        ...request,
        tools: (Array.isArray(tools) ? tools : [tools]).map((tool) => ({
            json: JSON.stringify(tool),
        })),
    };
}

/** The tab. */
export class ChatTab {
    #rows = [];
    #counted = new Set();

    constructor(state, encodings, formats) {
        Object.assign(this, { state, encodings, formats });
        this.view = new TokenView($("chat-view"), "Tokens of the chat", $("chat-detail"));
        this.count = new Live((signal) => this.#count(signal), $("chat-status"));
        this.fit = new Live((signal) => this.#fit(signal), $("fit-status"));
        this.encode = new Live(
            (signal) => this.#encode(signal),
            $("chat-tokens-status"),
            $("chat-view"),
        );
        this.lives = [this.count, this.fit, this.encode];
        const { chat } = state;
        for (const [id, field, isSelect] of [
            ["chat-encoding", "encoding", true],
            ["chat-format", "format", true],
            ["chat-tools", "tools"],
            ["chat-window", "window"],
            ["chat-reserve", "reserve"],
        ]) {
            $(id).addEventListener(isSelect ? "change" : "input", () => {
                chat[field] = $(id).value;
                if (isSelect) this.refresh();
                else this.#request(DELAY_MS);
            });
        }
        $("chat-add").addEventListener("click", () => {
            const last = chat.messages.at(-1)?.role;
            const roles = this.format?.roles ?? [];
            chat.messages.push({
                role: last === "user" && roles.includes("assistant") ? "assistant" : "user",
                name: "",
                text: "",
            });
            this.refresh();
            this.#rows.at(-1)?.text.focus();
        });
    }

    get format() {
        return this.formats.get(this.state.chat.format);
    }

    /** Draw everything anew. */
    refresh() {
        const { chat } = this.state;
        const usable = [...this.formats.values()].filter((format) => format.encodings?.length);
        const encodings = [...this.encodings.keys()].filter((name) =>
            usable.some((format) => format.encodings.includes(name)),
        );
        chat.encoding = fill($("chat-encoding"), encodings, chat.encoding);
        const fitting = usable.filter((format) => format.encodings.includes(chat.encoding));
        chat.format = fill(
            $("chat-format"),
            fitting.map(({ name }) => name),
            chat.format,
        );
        $("chat-note").textContent = this.format
            ? `For ${this.format.audience}`
            : "No chat format fits the encodings of this server.";
        $("chat-tools-box").hidden = !this.format?.tools;
        for (const [id, field] of [
            ["chat-tools", "tools"],
            ["chat-window", "window"],
            ["chat-reserve", "reserve"],
        ]) {
            if ($(id).value !== chat[field]) $(id).value = chat[field];
        }
        if (!this.format) return;
        this.#draw();
        this.#request(0);
    }

    #request(delay) {
        this.count.request(delay);
        this.fit.request(delay);
        this.encode.request(delay);
    }

    #draw() {
        const { chat } = this.state;
        const hasNames = this.format.fields?.includes("name");
        const { roles } = this.format;
        this.#rows = chat.messages.map((message, i) => {
            const heading = `message ${i + 1}`;
            const role = h("select", {
                "aria-label": `Role of ${heading}`,
                onchange: () => this.#set(message, "role", role),
            });
            message.role = fill(role, roles, message.role);
            const name = h("input", {
                "aria-label": `Name in ${heading}`,
                placeholder: "name",
                size: 10,
                oninput: () => this.#set(message, "name", name),
            });
            name.value = message.name;
            const text = h("textarea", {
                "aria-label": `Text of ${heading}`,
                rows: 2,
                spellcheck: "false",
                oninput: () => this.#set(message, "text", text),
            });
            text.value = message.text;
            const count = h("span", { class: "count" });
            const button = (label, title, isOff, act) =>
                h(
                    "button",
                    {
                        type: "button",
                        "aria-label": `${title} ${heading}`,
                        title,
                        disabled: isOff,
                        onclick: act,
                    },
                    label,
                );
            const row = h(
                "li",
                {},
                h(
                    "div",
                    { class: "row" },
                    role,
                    ...(hasNames ? [name] : []),
                    button("↑", "Move up", i === 0, () => this.#move(i, i - 1)),
                    button("↓", "Move down", i === chat.messages.length - 1, () =>
                        this.#move(i, i + 1),
                    ),
                    button("×", "Remove", false, () => this.#remove(i)),
                    count,
                ),
                text,
            );
            return { row, text, count };
        });
        $("chat-messages").replaceChildren(...this.#rows.map(({ row }) => row));
    }

    #set(message, field, input) {
        message[field] = input.value.toWellFormed();
        this.#request(DELAY_MS);
    }

    #move(from, to) {
        const { messages } = this.state.chat;
        messages.splice(to, 0, ...messages.splice(from, 1));
        this.refresh();
        this.#rows[to].text.focus();
    }

    #remove(i) {
        this.state.chat.messages.splice(i, 1);
        this.refresh();
        (this.#rows[Math.min(i, this.#rows.length - 1)]?.text ?? $("chat-add")).focus();
    }

    async #count(signal) {
        const answer = await call(
            "ChatService/CountChat",
            chatRequest(this.state.chat, this.format),
            signal,
        );
        const isExact = answer.accuracy === "ACCURACY_EXACT";
        $("chat-status").replaceChildren(
            h("b", {}, plural(answer.count ?? 0, "token")),
            " ",
            h("span", { class: "badge" }, isExact ? "EXACT" : "ESTIMATE"),
            ` · frame ${number(answer.frameCount ?? 0)} · tools ${number(answer.toolsCount ?? 0)}`,
            h("div", { class: "soft" }, answer.rule ?? ""),
        );
        this.#rows.forEach(({ count }, i) => {
            count.textContent = plural(answer.messageCounts?.[i] ?? 0, "token");
        });
    }

    async #fit(signal) {
        const { chat } = this.state;
        const mark = (kept) =>
            this.#rows.forEach(({ row }, i) => {
                row.classList.toggle("kept", kept?.has(i) ?? false);
                row.classList.toggle("dropped", kept ? !kept.has(i) : false);
            });
        if (!chat.window) {
            mark(null);
            $("fit-status").replaceChildren();
            return;
        }
        mark(null);
        const request = {
            ...chatRequest(chat, this.format),
            maxTokens: chat.window,
            reserveTokens: chat.reserve || "0",
        };
        const answer = await call("ChatService/FitChat", request, signal);
        const kept = new Set(answer.kept ?? []);
        mark(kept);
        const dropped = [...chat.messages.keys()].filter((i) => !kept.has(i)).map((i) => i + 1);
        $("fit-status").textContent =
            `FitChat keeps ${plural(kept.size, "message")} with ${plural(answer.count ?? 0, "token")}` +
            (dropped.length
                ? `, and drops ${dropped.length === 1 ? "message" : "messages"} ${dropped.join(", ")}.`
                : ": everything fits.");
    }

    async #encode(signal) {
        const { chat } = this.state;
        const encoding = this.encodings.get(chat.encoding);
        let tokens = new Tokens([], [0], new Uint8Array(), encoding);
        let said = "";
        try {
            if (this.#counted.has(chat.format)) throw new CallError("", { reason: NOT_PERMITTED });
            if (!this.format.encodes) throw new CallError("", { reason: COUNTS_ONLY });
            const request = {
                ...chatRequest(chat, this.format),
                disallowedSpecial: "DISALLOWED_SPECIAL_AS_TEXT",
            };
            const answer = await call("ChatService/EncodeChat", request, signal);
            tokens = await tokensOfIds(encoding, answer.ids ?? [], signal);
        } catch (error) {
            signal.throwIfAborted();
            if (error.reason === NOT_PERMITTED) {
                this.#counted.add(chat.format);
                said = `The server's ceiling does not let you encode chats of the format ${chat.format}: set ceiling.default.formats to show them.`;
            } else if (error.reason === COUNTS_ONLY)
                said = "This format counts only: it has no tokens to show.";
            else throw error;
        }
        this.view.show(tokens);
        $("chat-tokens-status").textContent =
            said || `${plural(tokens.length, "token")}; control tokens have their own colour.`;
    }
}
