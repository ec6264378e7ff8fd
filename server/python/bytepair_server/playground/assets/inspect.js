/** The tab Findings: what Inspect finds in a text. */

import { call } from "./api.js";
import { $, fill } from "./dom.js";
import { drawFindings } from "./findings.js";
import { Live } from "./live.js";

/** Findings that are drawn; all are counted. */
const MOST = 300;

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
        drawFindings(text, {
            findings,
            total: (answer.totals ?? []).reduce((sum, each) => sum + Number(each.total), 0),
            count: answer.count ?? 0,
            stableTokens: answer.stableTokens ?? 0,
            stableEnd: Number(answer.stableEnd ?? 0),
        });
    }
}
