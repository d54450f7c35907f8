// What its engine prints, as it comes; or, where something is searched, all that is kept of its log.

import { ask, service } from "./api.js";
import { h, say } from "./dom.js";

const LINES = 1000, PAUSE_MS = 1500, TYPING_MS = 300;

export function logsTab(place, name) {
  const search = h("input", { type: "search", id: "search", maxlength: "200", placeholder: "search all of it", oninput: () => soon(TYPING_MS) });
  const fold = h("input", { type: "checkbox", id: "fold", checked: true, onchange: () => soon(0) });
  const count = h("span", { class: "dim", role: "status" }), text = h("pre", { class: "log", tabindex: "0", role: "group", "aria-label": `Log of ${name}` });
  place.replaceChildren(h("div", { class: "row" }, h("label", { for: "search", class: "hidden" }, "Search the log"), search,
    h("label", {}, fold, " fold noise"), count), text);
  let timer = 0, isOpen = true, asked = 0;

  function draw(lines, said) {
    const isAtEnd = text.scrollHeight - text.scrollTop - text.clientHeight < 40;
    say(text, lines.join("\n"));
    say(count, said);
    if (isAtEnd) text.scrollTop = text.scrollHeight;
  }

  const folded = (told) => (told.folded ? `, ${told.folded.toLocaleString("en")} of noise folded` : "");

  async function find(wanted) {
    const query = new URLSearchParams({ text: wanted, most: LINES, fold: Number(fold.checked) });
    const told = await ask("GET", `${service(name, "logs/search")}?${query}`);
    const shown = told.found > told.lines.length ? `the last ${told.lines.length} of ` : "";
    return [told.lines.map((one) => `${one.line}: ${one.text}`), `${shown}${told.found.toLocaleString("en")} in ${told.read_lines.toLocaleString("en")} lines${folded(told)}`];
  }

  async function follow() {
    if (!fold.checked) {
      const lines = await ask("GET", `${service(name, "logs")}?lines=${LINES}`);
      return [lines, `the last ${lines.length} lines`];
    }
    const told = await ask("GET", `${service(name, "logs/tail")}?lines=${LINES}`);
    return [told.lines, `the last ${told.lines.length} lines${folded(told)}`];
  }

  // What is searched is asked for once; what is followed again and again. An answer that came late is not shown.
  async function read() {
    const wanted = search.value, mine = ++asked;
    try {
      const [lines, said] = wanted ? await find(wanted) : await follow();
      if (mine === asked && isOpen) draw(lines, said);
    } catch (problem) {
      if (mine === asked) say(count, problem.message);
    }
    if (mine === asked && !wanted) soon(document.hidden ? 10 * PAUSE_MS : PAUSE_MS);
  }

  function soon(after) {
    clearTimeout(timer);
    if (isOpen) timer = setTimeout(read, after);
  }

  read();
  return { close() { isOpen = false; clearTimeout(timer); } };
}
