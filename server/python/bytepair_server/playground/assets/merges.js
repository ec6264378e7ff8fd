/** The tab Merges: how a token is merged from its bytes. */

import { $, fill, plural } from "./dom.js";
import { Live } from "./live.js";
import { mergedBy, ranksUpTo } from "./ranks.js";
import { tokensOfText } from "./requests.js";
import { drawTree } from "./tree.js";
import { TokenView } from "./view.js";

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

    /** Encodings whose ids are ranks: those that ship, and extensions of them. */
    refresh(delay = 0) {
        const known = [...this.encodings.values()].filter(({ source }) =>
            source.startsWith("builtin"),
        );
        const name = fill(
            $("merges-encoding"),
            known.map((encoding) => encoding.name),
            this.state.encoding,
        );
        if (name) this.live.request(delay);
        else
            $("merges-status").textContent =
                "No encoding here is a table of ranks: bytepair explain shows the merges of others.";
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
        this.#chosen = {
            id,
            bytes: tokens.slice(i).slice(),
            encoding: tokens.encoding,
            isSpecial: tokens.special.has(id),
        };
        this.tree.request();
    }

    async #draw(signal) {
        const { id, bytes, encoding, isSpecial } = this.#chosen;
        if (isSpecial) {
            $("tree").replaceChildren();
            $("tree-status").textContent = "A control token is not merged.";
            return;
        }
        const said = (share) => {
            if (!signal.aborted)
                $("tree-status").textContent = `Fetching ranks: ${Math.round(100 * share)} %`;
        };
        const ranks = await ranksUpTo(encoding, id, signal, said);
        $("tree-status").textContent = drawTree($("tree"), id, mergedBy(ranks, bytes), "rank");
    }
}

/** The longest token: one to begin with. */
function longest(tokens) {
    let best = 0;
    for (const i of tokens.ids.keys())
        if (tokens.slice(i).length > tokens.slice(best).length) best = i;
    return best;
}
