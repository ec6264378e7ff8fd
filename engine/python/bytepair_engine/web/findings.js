/** The findings in a text: underlined, listed and explained. */

import { $, h, number, plural } from "./dom.js";
import { drawRanges } from "./ranges.js";
import { codePoint, spoken } from "./visible.js";

/** Maximum number of findings listed; all are counted. */
const MAX_LISTED = 40;

const EXPLAINED = {
    TRAILING_WHITESPACE:
        "White space at the end: text that follows would join it, and the tokens would change.",
    UNSTABLE_TAIL: "From here on, text that follows can change the tokens.",
    SPECIAL_TOKEN_SPELLED:
        "The text of a special token. It is ordinary text unless a request allows it.",
    SPECIAL_TOKEN_LOOKALIKE:
        "Almost a special token, except for case, compatible or invisible characters.",
    NOT_NFC: "Not in Unicode's normal form C: text that looks the same has other tokens.",
    INVISIBLE_CHARACTER: "A character without width.",
    TAG_CHARACTER: "A tag character: invisible text.",
    BIDI_CONTROL: "A character that changes the direction of text.",
    REPLACEMENT_CHARACTER: "U+FFFD: something was decoded wrongly before.",
    CONTROL_CHARACTER: "A control character.",
    FLAGGED_TOKEN: "A token of the operator's list.",
    UNKNOWN_TOKEN: "The vocabulary has no token for this.",
    LONG_RUN: "A long run that can only be encoded as one.",
};

/**
 * Draw findings into their elements of the page.
 * @param found `{findings, total, count, stableTokens, stableEnd}`; positions are UTF-16 code units.
 */
export function drawFindings(text, { findings, total, count, stableTokens, stableEnd }) {
    $("findings-status").textContent =
        `${plural(total, "finding")} in ${plural(count, "token")}. ` +
        `Whatever follows, the first ${plural(stableTokens, "token")} stay.`;
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
            start === stableEnd && end > stableEnd
                ? [h("span", { class: "border" }, "stable up to here")]
                : [],
    );
    const listed = findings.slice(0, MAX_LISTED);
    $("findings-list").replaceChildren(
        ...listed.map((finding, i) => entry($("findings-text"), finding, i, text)),
    );
    $("findings-more").textContent =
        total > listed.length ? `${number(total - listed.length)} more are not listed.` : "";
}

function entry(root, finding, i, text) {
    const { code, start, end } = finding;
    const about = [
        ...(finding.token ? [spoken(finding.token)] : []),
        ...(finding.codePoint ? [codePoint(String.fromCodePoint(finding.codePoint))] : []),
        ...(finding.tokenId != null ? [`id ${finding.tokenId}`] : []),
    ].join(", ");
    const show = (isOn) => {
        for (const part of root.querySelectorAll("[data-at]")) {
            part.classList.toggle(
                "current",
                isOn && part.dataset.at.split(" ").includes(String(i)),
            );
        }
        if (isOn) root.querySelector(".current")?.scrollIntoView({ block: "nearest" });
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
