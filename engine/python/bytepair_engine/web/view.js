/** A list of tokens, rendered lazily, and the description of one of them. */

import { h, number, plural } from "./dom.js";
import { hex, shown, spoken, textOf } from "./visible.js";

const COLOURS = 6;
/** Number of tokens from which a block ends at the next line feed, and the maximum. */
const BLOCK = 200;
const MAX_BLOCK = 500;
const LINE_PX = 32;
const CHARACTER_PX = 10;
const STEPS = {
    ArrowRight: 1,
    ArrowDown: 1,
    ArrowLeft: -1,
    ArrowUp: -1,
    PageDown: 20,
    PageUp: -20,
};
const LINE_FEED = 10;
let views = 0;

/** A list of tokens. Blocks are filled when they come near the visible area. */
export class TokenView {
    #blocks = [];
    #current = -1;
    #tokens = null;

    /**
     * @param parent The element to which the list is appended.
     * @param label The accessible name of the list.
     * @param detail The element for the description of the hovered or chosen token.
     * @param onChoose Called with the tokens and the index of the chosen one.
     */
    constructor(parent, label, detail, onChoose = () => {}) {
        this.prefix = `t${views++}-`;
        Object.assign(this, { detail, onChoose });
        this.root = h("div", {
            class: "tokens",
            tabindex: 0,
            role: "group",
            "aria-label": label,
            onkeydown: (event) => this.#key(event),
            onclick: (event) => this.choose(numberOf(event.target)),
            onmouseover: (event) => this.#describe(numberOf(event.target)),
            onmouseleave: () => this.#describe(this.#current),
            onfocus: () => this.#current < 0 && this.choose(0),
        });
        parent.append(this.root);
        this.seen = new IntersectionObserver(
            (entries) => {
                for (const { isIntersecting, target } of entries)
                    if (isIntersecting) this.#fill(target);
            },
            { root: this.root, rootMargin: "400px" },
        );
    }

    /** Show other tokens. Unchanged blocks are reused. */
    show(tokens) {
        this.#tokens = tokens;
        const width = this.root.clientWidth || 600;
        const before = this.#blocks;
        const blocks = [];
        for (let from = 0; from < tokens.length;) {
            const to = blockEnd(tokens, from);
            const key = keyOf(tokens, from, to);
            const same = before[blocks.length];
            if (same && same.key === key && same.from === from) blocks.push(same);
            else {
                const element = h("div", { role: "presentation" });
                element.style.minHeight = `${heightOf(tokens.slice(from, to), width)}px`;
                blocks.push({ key, from, to, element, isFilled: false });
            }
            from = to;
        }
        for (const block of before) if (!blocks.includes(block)) this.seen.unobserve(block.element);
        this.#blocks = blocks;
        blocks.forEach((block, i) => {
            block.element.dataset.block = i;
            if (this.root.children[i] !== block.element)
                this.root.insertBefore(block.element, this.root.children[i] ?? null);
            if (!block.isFilled) this.seen.observe(block.element);
        });
        while (this.root.children.length > blocks.length) this.root.lastElementChild.remove();
        if (blocks.length) this.#fill(blocks[0].element);
        this.root.hidden = !blocks.length;
        this.root.setAttribute("role", blocks.length ? "listbox" : "group");
        const current = Math.min(this.#current, tokens.length - 1);
        this.#current = -1;
        this.root.removeAttribute("aria-activedescendant");
        if (current >= 0) this.choose(current, false);
        else this.#describe(-1);
    }

    #fill(element) {
        const block = this.#blocks[element.dataset.block];
        if (!block || block.element !== element || block.isFilled) return;
        this.seen.unobserve(element);
        block.isFilled = true;
        element.style.minHeight = "";
        const tokens = this.#tokens;
        for (let i = block.from; i < block.to;) {
            const [, to] = tokens.group(i);
            if (to === i + 1) element.append(this.#option(i, content(tokens, i)));
            else {
                const parts = [];
                for (let j = i; j < to; j++) parts.push(this.#option(j, [hex(tokens.slice(j))]));
                const text = textOf(tokens.slice(i, to));
                element.append(
                    h(
                        "span",
                        { class: "shared", role: "presentation" },
                        ...(text === null ? [] : shown(text)),
                        ...parts,
                    ),
                );
            }
            i = to;
        }
    }

    #option(i, nodes) {
        const tokens = this.#tokens;
        const id = tokens.ids[i];
        const kind = tokens.unknown.has(id)
            ? "unknown"
            : tokens.special.has(id)
              ? "special"
              : `c${i % COLOURS}`;
        const text = textOf(tokens.slice(i));
        const differs = tokens.differs?.has(i);
        return h(
            "span",
            {
                class: `t ${kind}${differs ? " differs" : ""}`,
                id: this.prefix + i,
                role: "option",
                "data-i": i,
                "aria-selected": i === this.#current ? "true" : "false",
                "aria-posinset": i + 1,
                "aria-setsize": tokens.length,
                "aria-label": `${text === null ? `bytes ${hex(tokens.slice(i))}` : spoken(text)}, id ${id}${differs ? ", differs" : ""}`,
            },
            ...nodes,
        );
    }

    #key(event) {
        const last = this.#tokens ? this.#tokens.length - 1 : -1;
        if (last < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
        let next = event.key === "Home" ? 0 : event.key === "End" ? last : null;
        if (event.key in STEPS)
            next = Math.max(0, Math.min(last, this.#current + STEPS[event.key]));
        if (next === null) return;
        event.preventDefault();
        this.choose(next);
    }

    get hasChoice() {
        return this.#current >= 0;
    }

    /** Choose a token. */
    choose(i, scrolls = true) {
        if (i < 0 || !this.#tokens || i >= this.#tokens.length) return;
        const block = this.#blocks.find(({ to }) => i < to);
        this.#fill(block.element);
        this.root.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
        const option = document.getElementById(this.prefix + i);
        option.setAttribute("aria-selected", "true");
        this.root.setAttribute("aria-activedescendant", option.id);
        this.#current = i;
        this.#describe(i); // before scrolling, or the description could cover the token
        if (scrolls) option.scrollIntoView({ block: "nearest" });
        this.onChoose(this.#tokens, i);
    }

    #describe(i) {
        this.detail.hidden = !this.#tokens?.length;
        if (i < 0 || !this.#tokens?.length) {
            this.detail.replaceChildren(
                h("p", { class: "soft" }, "Point at a token, or move with the arrow keys."),
            );
            return;
        }
        this.detail.replaceChildren(description(this.#tokens, i));
    }
}

function numberOf(element) {
    const i = element.closest?.("[data-i]")?.dataset.i;
    return i === undefined ? -1 : Number(i);
}

function blockEnd(tokens, from) {
    let to = from;
    while (to < tokens.length) {
        to = tokens.group(to)[1];
        const endsLine = tokens.bytes[tokens.starts[to] - 1] === LINE_FEED;
        if ((to - from >= BLOCK && endsLine) || to - from >= MAX_BLOCK) break;
    }
    return to;
}

/** All data that determine a block, as one string. */
function keyOf(tokens, from, to) {
    let key = `${tokens.encoding.name} ${tokens.ids.slice(from, to)} ${tokens.starts.slice(from, to + 1)}`;
    if (tokens.differs) for (let i = from; i < to; i++) if (tokens.differs.has(i)) key += ` ${i}`;
    return key;
}

function heightOf(bytes, width) {
    let lines = 1 + (bytes.length * CHARACTER_PX) / width;
    for (const byte of bytes) if (byte === LINE_FEED) lines += 0.7;
    return Math.round(lines * LINE_PX);
}

function content(tokens, i) {
    if (tokens.unknown.has(tokens.ids[i])) return [`unknown ${tokens.ids[i]}`];
    const bytes = tokens.slice(i);
    if (!bytes.length) return ["∅"];
    const text = textOf(bytes);
    return text === null ? [hex(bytes)] : shown(text);
}

function description(tokens, i) {
    const id = tokens.ids[i];
    const bytes = tokens.slice(i);
    const text = textOf(bytes);
    const list = h("dl");
    const add = (term, ...nodes) => list.append(h("dt", {}, term), h("dd", {}, ...nodes));
    add("token", `${number(i + 1)} of ${number(tokens.length)}`);
    add("id", String(id));
    if (tokens.unknown.has(id)) add("kind", "not an id of this encoding");
    else if (tokens.special.has(id)) add("kind", "control token");
    else for (const [term, value] of tokens.facts(i)) add(term, value);
    if (text !== null) add("text", ...shown(text));
    add("bytes", hex(bytes) || "none");
    add(
        "at",
        bytes.length
            ? `byte ${number(tokens.starts[i])} to ${number(tokens.starts[i + 1])}`
            : `byte ${number(tokens.starts[i])}`,
    );
    const [from, to] = tokens.group(i);
    if (to - from > 1) {
        const whole = textOf(tokens.slice(from, to));
        add(
            "shared",
            ...(whole === null ? [] : [...shown(whole), " "]),
            `by ${plural(to - from, "token")}`,
        );
    }
    return list;
}
