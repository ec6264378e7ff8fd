/** Work that follows what is typed: the newest alone counts, and failures are shown and tried again. */

import { CallError } from "./api.js";
import { h } from "./dom.js";

const SLOW_MS = 400;
const LONGEST_WAIT_MS = 8000;

/** The request of one view. */
export class Live {
    #abort = new AbortController();
    #timer = 0;
    #failures = 0;

    /**
     * @param work Called with a signal. What it shows, it shows after its last await, which throws
     *   where the signal was aborted: so an older answer never replaces a newer one.
     * @param status The element that says what went wrong.
     * @param view What is out of date while the work is slow or has failed; it may be missing.
     */
    constructor(work, status, view) {
        Object.assign(this, { work, status, view });
    }

    /** Do the work after a time without another request. What is under way is given up. */
    request(delay = 0) {
        clearTimeout(this.#timer);
        this.#abort.abort();
        this.#abort = new AbortController();
        const { signal } = this.#abort;
        this.#timer = setTimeout(() => this.#run(signal), delay);
    }

    /** Give up what is under way, and try nothing again: the view is no longer visible. */
    stop() {
        clearTimeout(this.#timer);
        this.#abort.abort();
    }

    async #run(signal) {
        const slow = setTimeout(() => {
            if (signal.aborted) return;
            this.status.classList.add("busy");
            this.#mark(true);
        }, SLOW_MS);
        try {
            await this.work(signal);
            this.#failures = 0;
            this.status.classList.remove("error");
            this.#mark(false);
        } catch (error) {
            if (!signal.aborted) this.#failed(error);
        } finally {
            clearTimeout(slow);
            if (!signal.aborted) this.status.classList.remove("busy");
        }
    }

    /** Say whether the view is out of date. */
    #mark(isStale) {
        this.view?.classList.toggle("stale", isStale);
        this.view?.setAttribute("aria-busy", isStale);
    }

    #failed(error) {
        if (!(error instanceof CallError)) console.error(error);
        this.status.classList.add("error");
        this.#mark(true);
        this.status.replaceChildren(
            error.reason ? `${error.reason}: ${error.message}` : error.message,
        );
        if (!error.isTemporary) return;
        const wait = Math.min(LONGEST_WAIT_MS, 500 * 2 ** this.#failures++);
        this.status.append(
            " Trying again. ",
            h("button", { type: "button", onclick: () => this.request() }, "Now"),
        );
        this.#timer = setTimeout(() => this.request(), wait);
    }
}
