// Asks for something once and shows it, or why there is nothing to show; returns what was told.

import { ask } from "./api.js";
import { h } from "./dom.js";

export async function fill(place, path, draw) {
  place.replaceChildren(h("p", { class: "dim" }, "One moment …"));
  try {
    const told = await ask("GET", path);
    place.replaceChildren(...[draw(told)].flat().filter(Boolean));
    return told;
  } catch (problem) {
    place.replaceChildren(h("p", {}, [problem.message, problem.why].filter(Boolean).join(": ")),
      problem.next ? h("p", { class: "dim" }, `Next: ${problem.next}`) : "");
    return null;
  }
}

export function table(heads, rows, name) {
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": name }, h("table", {},
    h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell) => h("td", {}, cell)))))));
}
