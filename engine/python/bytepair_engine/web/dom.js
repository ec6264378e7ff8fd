/** Elements. All text becomes text nodes: nothing here reads HTML. */

/** The element of an id, which the page has. */
export const $ = (id) => document.getElementById(id);

/** A new element: `h("b", {class: "x", onclick: f}, "text", child)`. */
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

/** Make the options of a select these, and choose one of them. */
export function fill(select, names, chosen) {
    select.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
    select.value = names.includes(chosen) ? chosen : (names[0] ?? "");
    return select.value;
}

/** 1234567 as 1,234,567. */
export const number = (n) => Number(n).toLocaleString("en");

/** "1 token", "2 tokens". */
export const plural = (n, noun) => `${number(n)} ${noun}${Number(n) === 1 ? "" : "s"}`;
