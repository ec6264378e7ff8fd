/** What is on the page, and its form in a link. */

const SAMPLE =
    "Hello, world! Tokens are pieces of text:\n\tnaïve café, 12345678, 🤖 and 你好.\nText that contains <|endoftext|> stays text.";
const LONGEST_TEXT = 1 << 20;

/** What a page starts with. */
export function initial() {
    return {
        tab: "tokens",
        mode: "text",
        text: SAMPLE,
        ids: "",
        special: "text",
        encoding: "o200k_base",
        cut: { how: "truncate", tokens: "16", keep: "START", level: "", marker: "", overlap: "0" },
        compare: ["o200k_base", "cl100k_base"],
        chat: {
            encoding: "o200k_base",
            format: "",
            tools: "",
            window: "",
            reserve: "0",
            messages: [
                { role: "system", name: "", text: "You are a helpful assistant." },
                { role: "user", name: "", text: "What is a token?" },
            ],
        },
    };
}

/** The parts of anything that have the types of `model`, on top of `model`. Links are anybody's. */
function checked(model, given) {
    if (typeof model === "string")
        return typeof given === "string" ? given.slice(0, LONGEST_TEXT).toWellFormed() : model;
    if (Array.isArray(model)) {
        return Array.isArray(given)
            ? given.slice(0, 1000).map((item) => checked(model[0], item))
            : model;
    }
    const known = given !== null && typeof given === "object" ? given : {};
    return Object.fromEntries(
        Object.keys(model).map((key) => [
            key,
            checked(model[key], Object.hasOwn(known, key) ? known[key] : undefined),
        ]),
    );
}

/** The fragment that holds a state, with "#". */
export async function toFragment(state) {
    const packed = new Blob([JSON.stringify(state)])
        .stream()
        .pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
    let binary = "";
    for (const byte of bytes) binary += String.fromCharCode(byte);
    return "#" + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The state that a fragment holds; null where it holds none. */
export async function fromFragment(fragment) {
    try {
        const binary = atob(fragment.slice(1).replaceAll("-", "+").replaceAll("_", "/"));
        if (!binary) return null;
        const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
        const reader = new Blob([bytes])
            .stream()
            .pipeThrough(new DecompressionStream("deflate-raw"))
            .getReader();
        const parts = [];
        for (let size = 0; ;) {
            const { done, value } = await reader.read();
            if (done) break;
            parts.push(value);
            if ((size += value.length) > 8 * LONGEST_TEXT) return null;
        }
        return checked(initial(), JSON.parse(await new Blob(parts).text()));
    } catch {
        return null;
    }
}
