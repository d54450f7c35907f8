// Asks before something is done; the first button is the one that does it.

import { h } from "./dom.js";

// Returns whether it is meant, once that is said.
export function asked(title, yes, ...content) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "asked", onclose: () => { dialog.remove(); resolve(dialog.returnValue === "yes"); } },
      h("h2", { id: "asked" }, title), content,
      h("form", { method: "dialog", class: "row" }, h("button", { value: "yes", class: "main", autofocus: true }, yes), h("button", { value: "no" }, "Not now")));
    document.body.append(dialog);
    dialog.showModal();
  });
}
