/** The tab Merges: how a token is merged. */

import { call } from "./api.js";
import { $, fill, plural } from "./dom.js";
import { Live } from "./live.js";
import { tokensOfText } from "./requests.js";
import { bytesOf } from "./tokens.js";
import { drawTree } from "./tree.js";
import { TokenView } from "./view.js";

const ORDERS = {
    MERGE_ORDER_RANK: "rank",
    MERGE_ORDER_PRIORITY: "priority",
    MERGE_ORDER_SCORE: "score",
};
const NOT_MERGED = {
    TOKEN_KIND_BYTE: "This token stands for one byte: merging begins with it.",
    TOKEN_KIND_SPECIAL: "A control token is not merged.",
    TOKEN_KIND_UNKNOWN: "The unknown token stands for text that has no token in the vocabulary.",
};

/** The tab. */
export class MergesTab {
    #chosen = null;

    constructor(state, encodings) {
        Object.assign(this, { state, encodings });
        this.view = new TokenView(
            $("merges-view"),
            "Tokens to look into",
            $("merges-detail"),
            (tokens, i) => this.#choose(tokens, i),
        );
        this.live = new Live((signal) => this.#work(signal), $("merges-status"), $("merges-view"));
        this.tree = new Live((signal) => this.#draw(signal), $("tree-status"), $("tree"));
        this.lives = [this.live, this.tree];
        $("merges-encoding").addEventListener("change", () => {
            state.encoding = $("merges-encoding").value;
            this.refresh();
        });
    }

    refresh(delay = 0) {
        const names = [...this.encodings.keys()];
        this.state.encoding = fill($("merges-encoding"), names, this.state.encoding);
        if (this.state.encoding) this.live.request(delay);
    }

    async #work(signal) {
        const encoding = this.encodings.get($("merges-encoding").value);
        const tokens = await tokensOfText(encoding, this.state.text, this.state.special, signal);
        this.view.show(tokens);
        $("merges-status").textContent =
            `${plural(tokens.length, "token")}. Choose one to see how it is merged.`;
        if (!tokens.length) $("tree").replaceChildren();
        else if (!this.view.hasChoice) this.view.choose(longest(tokens), false);
    }

    #choose(tokens, i) {
        const id = tokens.ids[i];
        if (this.#chosen?.id === id && this.#chosen.encoding === tokens.encoding) return;
        this.#chosen = { id, encoding: tokens.encoding };
        this.tree.request();
    }

    async #draw(signal) {
        const { id, encoding } = this.#chosen;
        const request = { encoding: encoding.name, id };
        const token = await call("TokenizerService/GetToken", request, signal);
        const parts = (token.parts ?? []).map((part) => ({
            ...part,
            bytes: bytesOf(part.spelling ?? ""),
        }));
        const said = drawTree($("tree"), id, parts, ORDERS[token.order]);
        $("tree-status").textContent = NOT_MERGED[token.kind] ?? said;
    }
}

/** The longest token: one to begin with. */
function longest(tokens) {
    let best = 0;
    for (const i of tokens.ids.keys())
        if (tokens.slice(i).length > tokens.slice(best).length) best = i;
    return best;
}
