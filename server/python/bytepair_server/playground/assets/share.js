/** What is on the page as a link, as code, as a command, and as a request. */

import { hasKey } from "./api.js";
import { chatRequest } from "./chat.js";
import { cutRequest } from "./cut.js";
import { toFragment } from "./state.js";
import { encodeRequest, parseIds, specialFields } from "./requests.js";

/** The call that the page shows: [method, request, lines of Python]. Throws Error. */
function shownCall(state, formats) {
    if (state.tab === "chat") {
        const request = chatRequest(state.chat, formats.get(state.chat.format));
        const { encoding, format } = request;
        const messages = request.messages.map(({ role, content, name }) => ({
            role,
            content: content[0].text,
            ...(name ? { name } : {}),
        }));
        const tools = request.tools
            ? `, tools=${python(request.tools.map(({ json }) => JSON.parse(json)))}`
            : "";
        return [
            "ChatService/CountChat",
            request,
            `client.count_chat(\n    ${python(messages)},\n    encoding=${python(encoding)}, format=${python(format)}${tools},\n)`,
        ];
    }
    if (state.tab === "cut") {
        const [method, request] = cutRequest(state);
        const { how, tokens, keep, level, marker, overlap } = state.cut;
        const { allowedSpecial, disallowedSpecial } = specialFields(state.special);
        const named =
            (level ? `, level=${python(level.toLowerCase())}` : "") +
            (allowedSpecial ? ', allowed_special="all"' : "") +
            (disallowedSpecial.endsWith("REJECT") ? ', disallowed_special="all"' : "");
        const options =
            how === "split"
                ? `, overlap_tokens=${Number(overlap)}${named}`
                : `, keep=${python(keep.toLowerCase())}${named}${marker ? `, marker=${python(marker)}` : ""}`;
        return [
            method,
            request,
            `client.${how}(${python(state.text)}, ${Number(tokens)}${options}, encoding=${python(state.encoding)})`,
        ];
    }
    if (state.tab === "findings") {
        const { text, encoding } = state;
        return [
            "TokenizerService/Inspect",
            { encoding, text },
            `client.inspect(${python(text)}, encoding=${python(encoding)})`,
        ];
    }
    const encoding = state.tab === "compare" ? state.compare[0] : state.encoding;
    if (state.tab === "tokens" && state.mode === "ids") {
        const request = { encoding, ids: parseIds(state.ids) };
        return [
            "TokenizerService/Decode",
            request,
            `client.decode(${python(request.ids)}, encoding=${python(encoding)})`,
        ];
    }
    const { allowedSpecial, disallowedSpecial } = specialFields(state.special);
    const options =
        (allowedSpecial ? ', allowed_special="all"' : "") +
        (disallowedSpecial.endsWith("AS_TEXT") ? ", disallowed_special=()" : "");
    const call = (name) =>
        `client.encode(${python(state.text)}, encoding=${python(name)}${options})`;
    const calls =
        state.tab === "compare"
            ? state.compare.map((name) => `len(${call(name)})`)
            : [call(encoding)];
    return [
        "TokenizerService/Encode",
        encodeRequest(encoding, state.text, state.special),
        calls.join(")\nprint("),
    ];
}

/** Where a program reads the API key: what is copied never holds it. */
const KEY = "BYTEPAIR_API_KEY";

/** A state in one of the forms "link", "python", "curl" and "json". Throws Error. */
export async function shared(state, formats, form) {
    if (form === "link") return location.href.replace(/#.*$/s, "") + (await toFragment(state));
    const [method, request, call] = shownCall(state, formats);
    if (form === "json") return escaped(JSON.stringify(request, null, 2));
    if (form === "curl") {
        const url = new URL(`bytepair.v1.${method}`, document.baseURI);
        const key = hasKey() ? ` -H "authorization: Bearer $${KEY}"` : "";
        return `curl -H 'content-type: application/json'${key} \\\n    -d ${quoted(escaped(JSON.stringify(request)))} \\\n    ${quoted(url.href)}`;
    }
    const isSecure = location.protocol === "https:";
    // Of a target without a port, gRPC takes 443.
    const target = `${location.hostname}:${location.port || (isSecure ? 443 : 80)}`;
    const options =
        (isSecure ? ", tls=True" : "") + (hasKey() ? `, api_key=os.environ["${KEY}"]` : "");
    return `${hasKey() ? "import os\n\n" : ""}from bytepair_client import TokenizerClient\n\nclient = TokenizerClient(${python(target)}${options})\nprint(${call})`;
}

/** JSON with everything invisible escaped, so that what is copied shows all that it holds. */
const escaped = (json) =>
    json.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu, (character) =>
        character === "\n"
            ? character
            : [...Array(character.length).keys()]
                  .map((i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`)
                  .join(""),
    );

/** A literal of Python. */
function python(value) {
    if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
    if (value === null) return "None";
    if (value === true) return "True";
    if (value === false) return "False";
    if (typeof value === "object")
        return `{${Object.entries(value)
            .map(([key, item]) => `${python(key)}: ${python(item)}`)
            .join(", ")}}`;
    if (typeof value === "number") return String(value);
    return JSON.stringify(value).replace(
        /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu,
        (character) => `\\U${character.codePointAt(0).toString(16).padStart(8, "0")}`,
    );
}

/** A word for a shell. */
const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;
