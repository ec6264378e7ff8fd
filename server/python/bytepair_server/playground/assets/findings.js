/** The tab Findings: what Inspect finds in a text, underlined and explained. */

import { call } from "./api.js";
import { $, fill, h, number, plural } from "./dom.js";
import { Live } from "./live.js";
import { drawRanges } from "./ranges.js";
import { codePoint, spoken } from "./visible.js";

/** Findings that are drawn and listed; all are counted. */
const MOST = 300;
const SHOWN = 40;

const EXPLAINED = {
    TRAILING_WHITESPACE:
        "White space at the end: text that follows would join it, and the tokens would change.",
    UNSTABLE_TAIL: "From here on, text that follows can change the tokens.",
    SPECIAL_TOKEN_SPELLED:
        "A special token is spelled. It is ordinary text unless a request allows it.",
    SPECIAL_TOKEN_LOOKALIKE:
        "Almost a special token: but for case, compatible or invisible characters.",
    NOT_NFC: "Not in Unicode's normal form C: text that looks the same has other tokens.",
    INVISIBLE_CHARACTER: "A character without width.",
    TAG_CHARACTER: "A tag character: invisible text.",
    BIDI_CONTROL: "A character that changes the direction of text.",
    REPLACEMENT_CHARACTER: "U+FFFD: something was decoded wrongly before.",
    CONTROL_CHARACTER: "A control character.",
    FLAGGED_TOKEN: "A token of the operator's list.",
    UNKNOWN_TOKEN: "The vocabulary cannot spell this.",
    LONG_RUN: "A long run that can only be encoded as one.",
};

/** The tab. */
export class FindingsTab {
    constructor(state, encodings) {
        Object.assign(this, { state, encodings });
        this.live = new Live(
            (signal) => this.#work(signal),
            $("findings-status"),
            $("findings-view"),
        );
        this.lives = [this.live];
        $("findings-encoding").addEventListener("change", () => {
            state.encoding = $("findings-encoding").value;
            this.refresh();
        });
    }

    refresh(delay = 0) {
        const { state } = this;
        state.encoding = fill($("findings-encoding"), [...this.encodings.keys()], state.encoding);
        if (state.encoding) this.live.request(delay);
    }

    async #work(signal) {
        const { encoding, text } = this.state;
        const request = { encoding, text, unit: "OFFSET_UNIT_UTF16", maxFindings: MOST };
        const answer = await call("TokenizerService/Inspect", request, signal);
        const findings = (answer.findings ?? []).map((finding) => ({
            ...finding,
            start: Number(finding.start ?? 0),
            end: Number(finding.end ?? 0),
            code: finding.code.replace(/^FINDING_CODE_/, ""),
        }));
        const total = (answer.totals ?? []).reduce((sum, each) => sum + Number(each.total), 0);
        $("findings-status").textContent =
            `${plural(total, "finding")} in ${plural(answer.count ?? 0, "token")}. ` +
            `Whatever follows, the first ${plural(answer.stableTokens ?? 0, "token")} stay.`;
        const stable = Number(answer.stableEnd ?? 0);
        drawRanges(
            $("findings-text"),
            text,
            findings,
            (covering) => ({
                class: covering.length
                    ? `found ${covering.every(({ code }) => code === "UNSTABLE_TAIL") ? "tail" : ""}`
                    : "",
                "data-at": covering.length
                    ? covering.map((each) => findings.indexOf(each)).join(" ")
                    : null,
            }),
            ({ start, end }) =>
                start === stable && end > stable
                    ? [h("span", { class: "border" }, "stable up to here")]
                    : [],
        );
        const listed = findings.slice(0, SHOWN);
        $("findings-list").replaceChildren(
            ...listed.map((finding, i) => this.#entry(finding, i, text)),
        );
        $("findings-more").textContent =
            total > listed.length ? `${number(total - listed.length)} more are not listed.` : "";
    }

    #entry(finding, i, text) {
        const { code, start, end } = finding;
        const about = [
            ...(finding.token ? [spoken(finding.token)] : []),
            ...(finding.codePoint ? [codePoint(String.fromCodePoint(finding.codePoint))] : []),
            ...(finding.tokenId !== undefined ? [`id ${finding.tokenId}`] : []),
        ].join(", ");
        const show = (isOn) => {
            for (const part of $("findings-text").querySelectorAll("[data-at]")) {
                part.classList.toggle(
                    "current",
                    isOn && part.dataset.at.split(" ").includes(String(i)),
                );
            }
            if (isOn)
                $("findings-text").querySelector(".current")?.scrollIntoView({ block: "nearest" });
        };
        const before = [...text.slice(0, start)].length;
        return h(
            "li",
            {},
            h(
                "button",
                {
                    type: "button",
                    onfocus: () => show(true),
                    onblur: () => show(false),
                    onmouseenter: () => show(true),
                    onmouseleave: () => show(false),
                },
                h("b", {}, code),
                ` at character ${number(before + 1)}${end - start > 1 ? `, ${plural([...text.slice(start, end)].length, "character")}` : ""}${about ? ` · ${about}` : ""}`,
            ),
            h("p", { class: "soft" }, EXPLAINED[code] ?? ""),
        );
    }
}
