/** The tabs about one text: Tokens and Compare. */

import { $, fill, h, number, plural } from "./dom.js";
import { Live } from "./live.js";
import { parseIds, tokensOfIds, tokensOfText } from "./requests.js";
import { TokenView } from "./view.js";

const MOST_COMPARED = 4;
const MOST_NAMES = 4;

/** Wait for more typing, longer for a long text. */
export const delayFor = (text) => (text.length < 20_000 ? 60 : 250);

function words(text) {
    return text.match(/\S+/gu)?.length ?? 0;
}

/** "12 tokens · 40 characters …", of tokens and the text that they are of. */
function summary(tokens, text) {
    const count = words(text);
    const facts = [
        plural([...text].length, "character"),
        plural(tokens.bytes.length, "byte"),
        plural(count, "word"),
        ...(count ? [`${(tokens.length / count).toFixed(2)} tokens per word`] : []),
        ...(tokens.length
            ? [`${(tokens.bytes.length / tokens.length).toFixed(2)} bytes per token`]
            : []),
    ];
    return [h("b", {}, plural(tokens.length, "token")), ` · ${facts.join(" · ")}`];
}

/** Other names of an encoding: those of models. */
function alsoCalled({ aliases = [] }) {
    if (!aliases.length) return "";
    return ` · also ${aliases.slice(0, MOST_NAMES).join(", ")}${aliases.length > MOST_NAMES ? ", …" : ""}`;
}

/** The tab Tokens. */
export class TokensTab {
    constructor(state, encodings) {
        Object.assign(this, { state, encodings });
        this.view = new TokenView($("tokens-view"), "Tokens", $("tokens-detail"));
        this.live = new Live((signal) => this.#work(signal), $("tokens-status"), $("tokens-view"));
        this.lives = [this.live];
        $("encoding").addEventListener("change", () => {
            state.encoding = $("encoding").value;
            this.refresh();
        });
    }

    refresh(delay = 0) {
        const { state } = this;
        state.encoding = fill($("encoding"), [...this.encodings.keys()], state.encoding);
        const encoding = this.encodings.get(state.encoding);
        $("encoding-note").textContent = encoding
            ? `${number(encoding.nVocab)} ids · ${encoding.fingerprint.slice(0, 19)}…${alsoCalled(encoding)}`
            : "";
        if (encoding) this.live.request(delay);
    }

    async #work(signal) {
        const { state } = this;
        const encoding = this.encodings.get(state.encoding);
        const isText = state.mode === "text";
        const tokens = isText
            ? await tokensOfText(encoding, state.text, state.special, signal)
            : await tokensOfIds(encoding, parseIds(state.ids), signal);
        const text = isText
            ? state.text
            : new TextDecoder("utf-8", { ignoreBOM: true }).decode(tokens.bytes);
        this.view.show(tokens);
        $("tokens-status").replaceChildren(...summary(tokens, text));
        const controls = tokens.ids.filter((id) => tokens.special.has(id)).length;
        const spellings = isText ? spelledIn(text, tokens.special.values()) - controls : 0;
        $("tokens-note").textContent = [
            ...(controls ? [`${plural(controls, "control token")}.`] : []),
            ...(spellings > 0
                ? [
                      `${plural(spellings, "spelling")} of special tokens ${spellings === 1 ? "is" : "are"} ordinary text.`,
                  ]
                : []),
            ...(tokens.unknown.size
                ? [`${plural(tokens.unknown.size, "id")} unknown to this encoding.`]
                : []),
        ].join(" ");
    }
}

function spelledIn(text, spellings) {
    let count = 0;
    for (const spelling of spellings) count += text.split(spelling).length - 1;
    return count;
}

/** The tab Compare. */
export class CompareTab {
    constructor(state, encodings) {
        Object.assign(this, { state, encodings });
        this.views = [];
        this.live = new Live(
            (signal) => this.#work(signal),
            $("compare-status"),
            $("compare-views"),
        );
        this.lives = [this.live];
    }

    refresh(delay = 0) {
        const { state } = this;
        const names = [...this.encodings.keys()];
        if (!names.length) return;
        state.compare = state.compare
            .slice(0, MOST_COMPARED)
            .map((name) => (names.includes(name) ? name : names[0]));
        while (state.compare.length < 2)
            state.compare.push(names[state.compare.length % names.length]);
        this.#drawSelects(names);
        if (this.views.length !== state.compare.length) this.#drawViews();
        this.live.request(delay);
    }

    #drawSelects(names) {
        const { state } = this;
        const change = (next, focused) => {
            state.compare = next;
            this.refresh();
            // A button that has just been disabled leaves the focus to the one beside it.
            const inputs = [...$("compare-encodings").querySelectorAll("select, button")];
            [focused, focused + 1, focused - 1]
                .map((i) => inputs[i])
                .find((input) => input && !input.disabled)
                ?.focus();
        };
        const selects = state.compare.map((name, i) => {
            const select = h("select", {
                onchange: () => change(state.compare.with(i, select.value), i),
            });
            fill(select, names, name);
            return h("label", {}, `Encoding ${i + 1} `, select);
        });
        const count = state.compare.length;
        const unused = names.find((name) => !state.compare.includes(name)) ?? names[0];
        $("compare-encodings").replaceChildren(
            ...selects,
            h(
                "button",
                {
                    type: "button",
                    disabled: count >= MOST_COMPARED,
                    onclick: () => change([...state.compare, unused], count + 1),
                },
                "Add",
            ),
            h(
                "button",
                {
                    type: "button",
                    disabled: count <= 2,
                    onclick: () => change(state.compare.slice(0, -1), count),
                },
                "Remove the last",
            ),
        );
    }

    #drawViews() {
        $("compare-views").replaceChildren();
        this.views = this.state.compare.map((_, i) => {
            const title = h("h2");
            const place = h("section", { "aria-label": `Encoding ${i + 1}` }, title);
            $("compare-views").append(place);
            return {
                title,
                view: new TokenView(place, `Tokens of encoding ${i + 1}`, $("compare-detail")),
            };
        });
    }

    async #work(signal) {
        const { text, special, compare } = this.state;
        const lists = await Promise.all(
            compare.map((name) => tokensOfText(this.encodings.get(name), text, special, signal)),
        );
        const span = ({ starts }, i) => starts[i] * 2 ** 26 + starts[i + 1]; // texts are far below 64 MiB
        const spans = lists.map((tokens) => new Set(tokens.ids.map((_, i) => span(tokens, i))));
        const lengths = lists.map(({ length }) => length);
        const fewest = Math.min(...lengths);
        const least = fewest < Math.max(...lengths) ? " · fewest" : "";
        lists.forEach((tokens, n) => {
            tokens.differs = new Set(tokens.ids.keys());
            for (const i of tokens.ids.keys()) {
                const here = span(tokens, i);
                if (spans.every((each) => each.has(here))) tokens.differs.delete(i);
            }
            const { title, view } = this.views[n];
            const more = fewest ? ` · +${Math.round((100 * tokens.length) / fewest - 100)} %` : "";
            title.textContent = `${compare[n]}: ${plural(tokens.length, "token")}${tokens.length === fewest ? least : more}`;
            view.show(tokens);
        });
        const count = words(text);
        $("compare-status").textContent = `${plural(count, "word")} · ${lists
            .map((tokens, n) => `${compare[n]} ${count ? (tokens.length / count).toFixed(2) : 0}`)
            .join(", ")} tokens per word`;
    }
}
