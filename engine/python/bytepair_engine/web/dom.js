/** Helpers for elements. All text becomes text nodes: HTML is never parsed. */

/** The element with an id, which must exist. */
export const $ = (id) => document.getElementById(id);

/** Create an element: `h("b", {class: "x", onclick: f}, "text", child)`. */
export function h(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else if (value === true) element.setAttribute(name, "");
        else if (value !== false && value != null) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
}

/** Replace the options of a select element, and select one of them. */
export function fill(select, names, chosen) {
    select.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
    select.value = names.includes(chosen) ? chosen : (names[0] ?? "");
    return select.value;
}

/** Format a number: 1,234,567. */
export const number = (n) => Number(n).toLocaleString("en");

/** Format a number with a noun: "1 token", "2 tokens". */
export const plural = (n, noun) => `${number(n)} ${noun}${Number(n) === 1 ? "" : "s"}`;
