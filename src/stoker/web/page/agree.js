// Asks whether something is meant that stops or changes what runs; its first button has the focus.

import { h } from "./dom.js";

export function agreed(title, text, yes, ...more) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "asked", onclose: () => { dialog.remove(); resolve(dialog.returnValue === "yes"); } },
      h("h2", { id: "asked" }, title), h("p", {}, text), more,
      h("form", { method: "dialog", class: "row" },
        h("button", { value: "yes", class: "main" }, yes), h("button", { value: "no" }, "Not now")));
    document.body.append(dialog);
    dialog.showModal();
  });
}
