// What its engine prints, as it comes; searched here, in what was read.

import { ask, service } from "./api.js";
import { h, say } from "./dom.js";

const LINES = 1000, PAUSE_MS = 1500;
const NOISE = /GET \/(health|metrics)|slot update_slots|srv +log_server_r/;

export function logsTab(place, name) {
  const search = h("input", { type: "search", id: "search", placeholder: "search", oninput: draw });
  const fold = h("input", { type: "checkbox", id: "fold", checked: true, onchange: draw });
  const count = h("span", { class: "dim" }), text = h("pre", { class: "log", tabindex: "0", "aria-label": `Log of ${name}` });
  place.replaceChildren(h("div", { class: "row" }, h("label", { for: "search", class: "hidden" }, "Search the log"), search,
    h("label", {}, fold, " fold noise"), count), text);
  let lines = [], timer = 0, isOpen = true;

  function draw() {
    const wanted = search.value.toLowerCase();
    const found = lines.filter((line) => (!fold.checked || !NOISE.test(line)) && line.toLowerCase().includes(wanted));
    const isAtEnd = text.scrollHeight - text.scrollTop - text.clientHeight < 40;
    say(text, found.join("\n"));
    say(count, `${found.length} of the last ${lines.length} lines`);
    if (isAtEnd) text.scrollTop = text.scrollHeight;
  }

  async function read() {
    try {
      lines = await ask("GET", `${service(name, "logs")}?lines=${LINES}`);
      draw();
    } catch (problem) {
      say(count, problem.message);
    }
    if (isOpen) timer = setTimeout(read, document.hidden ? 10 * PAUSE_MS : PAUSE_MS);
  }

  read();
  return { close() { isOpen = false; clearTimeout(timer); } };
}
