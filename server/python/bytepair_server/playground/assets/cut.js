/** The tab Cut: where Truncate and Split cut a text. */

import { call } from "./api.js";
import { $, fill, h, number, plural } from "./dom.js";
import { Live } from "./live.js";
import { drawRanges } from "./ranges.js";
import { specialFields } from "./requests.js";

const FIELDS = {
    "cut-how": "how",
    "cut-keep": "keep",
    "cut-level": "level",
    "cut-marker": "marker",
    "cut-overlap": "overlap",
};
const DELAY_MS = 60;

/** What Truncate or Split is asked: [method, request]. */
export function cutRequest(state) {
    const { cut } = state;
    const request = {
        encoding: state.encoding,
        text: state.text,
        maxTokens: cut.tokens || "1",
        unit: "OFFSET_UNIT_UTF16",
        ...(cut.level && { level: `CUT_LEVEL_${cut.level}` }),
        ...specialFields(state.special),
    };
    return cut.how === "split"
        ? ["TokenizerService/Split", { ...request, overlapTokens: cut.overlap || "0" }]
        : [
              "TokenizerService/Truncate",
              { ...request, keep: `KEEP_${cut.keep}`, marker: cut.marker },
          ];
}

/** The tab. */
export class CutTab {
    constructor(state, encodings) {
        Object.assign(this, { state, encodings });
        this.live = new Live((signal) => this.#work(signal), $("cut-status"), $("cut-view"));
        this.lives = [this.live];
        $("cut-encoding").addEventListener("change", () => {
            state.encoding = $("cut-encoding").value;
            this.refresh();
        });
        for (const [id, field] of Object.entries(FIELDS)) {
            $(id).addEventListener("input", () => {
                state.cut[field] = $(id).value.toWellFormed();
                this.refresh(DELAY_MS);
            });
        }
        for (const id of ["cut-slider", "cut-tokens"]) {
            $(id).addEventListener("input", () => {
                state.cut.tokens = $(id).value;
                this.refresh(DELAY_MS);
            });
        }
    }

    refresh(delay = 0) {
        const { state } = this;
        state.encoding = fill($("cut-encoding"), [...this.encodings.keys()], state.encoding);
        for (const [id, field] of Object.entries(FIELDS)) {
            if ($(id).value !== state.cut[field]) $(id).value = state.cut[field];
            if ($(id).value !== state.cut[field])
                state.cut[field] = $(id).value = $(id).options[0].value;
        }
        const splits = state.cut.how === "split";
        $("cut-keep").parentElement.hidden = $("cut-marker").parentElement.hidden = splits;
        $("cut-overlap").parentElement.hidden = !splits;
        for (const id of ["cut-slider", "cut-tokens"])
            if ($(id).value !== state.cut.tokens) $(id).value = state.cut.tokens;
        if (state.encoding) this.live.request(delay);
    }

    async #work(signal) {
        const { state } = this;
        const { text } = state;
        const [method, request] = cutRequest(state);
        const counted = { encoding: state.encoding, text, ...specialFields(state.special) };
        const [{ count = 0 }, answer] = await Promise.all([
            call("TokenizerService/Count", counted, signal),
            call(
                method,
                method.endsWith("Truncate") ? { ...request, rangesOnly: true } : request,
                signal,
            ),
        ]);
        $("cut-slider").max = Math.max(1, Number(count));
        $("cut-slider").value = state.cut.tokens;
        $("cut-slider").setAttribute("aria-valuetext", plural(state.cut.tokens || 0, "token"));
        if (state.cut.how === "split") this.#drawChunks(text, answer.chunks ?? [], count);
        else this.#drawKept(text, answer, count);
    }

    #drawKept(text, answer, count) {
        const kept = (answer.kept ?? []).map(rangeOf);
        const marker = this.state.cut.marker;
        drawRanges(
            $("cut-text"),
            text,
            kept,
            (covering) => ({ class: covering.length ? "kept" : "left-out" }),
            ({ ranges }) =>
                !ranges.length && marker ? [h("span", { class: "marker" }, marker)] : [],
        );
        $("cut-status").textContent = answer.truncated
            ? `${plural(answer.count ?? 0, "token")} of ${number(count)} are kept.`
            : `All of it fits: ${plural(answer.count ?? 0, "token")}.`;
    }

    #drawChunks(text, chunks, count) {
        const ranges = chunks.map((chunk, i) => ({ ...rangeOf(chunk), number: i + 1, chunk }));
        const starts = new Map(ranges.map((range) => [range.start, range]));
        drawRanges(
            $("cut-text"),
            text,
            ranges,
            (covering) => ({
                class:
                    covering.length > 1
                        ? "overlap"
                        : `chunk c${((covering[0]?.number ?? 1) - 1) % 6}`,
            }),
            ({ start }) => {
                const range = starts.get(start);
                return range
                    ? [
                          h(
                              "span",
                              { class: "border", title: `${plural(range.chunk.count, "token")}` },
                              `${range.number}`,
                          ),
                      ]
                    : [];
            },
        );
        const counts = chunks.map((chunk) => Number(chunk.count));
        $("cut-status").textContent = chunks.length
            ? `${plural(chunks.length, "chunk")} of ${number(Math.min(...counts))} to ${plural(Math.max(...counts), "token")}; the text has ${number(count)}.`
            : "No text, no chunks.";
    }
}

const rangeOf = ({ start = 0, end = 0 }) => ({ start: Number(start), end: Number(end) });
