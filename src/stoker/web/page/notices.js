// Tells what came of something: for a while, and where a reader of the screen hears it.

import { h } from "./dom.js";

const LASTS_MS = 8000;

export function tell(text, kind = "") {
  const notice = h("div", { class: `notice ${kind}` }, text);
  notice.append(h("button", { type: "button", "aria-label": "Close", onclick: () => notice.remove() }, "×"));
  document.getElementById("notices").append(notice);
  setTimeout(() => notice.remove(), LASTS_MS);
}

export function tellFault(problem) {
  const parts = [problem.message, problem.why, problem.next && `Next: ${problem.next}`];
  tell(parts.filter(Boolean).join(". "), "bad");
}
