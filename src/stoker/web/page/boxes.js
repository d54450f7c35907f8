// The linked boxes: what each serves, its memory, what fires there, or since when it is away and why.

import { h, mark, say } from "./dom.js";
import { ago, bytes, clock } from "./format.js";

function boxCard(name) {
  const state = h("span", { class: "state" }), since = h("span", { class: "dim" }), why = h("p", { class: "why" });
  const used = h("div", { class: "part other" }), bar = h("div", { class: "bar", role: "img" }, used);
  const head = h("p", { class: "dim" }), services = h("ul", { class: "legend" }), alerts = h("ul", { class: "alerts" });
  const whole = h("article", { class: "card service", "aria-label": `box ${name}` },
    h("div", { class: "row" }, h("h2", {}, `box ${name}`), state, since), why, bar, head, services, alerts);

  function list(place, lines) {
    const text = lines.join("\n");
    if (place.dataset.text === text) return;
    place.dataset.text = text;
    place.replaceChildren(...lines.map((line) => h("li", {}, line)));
  }

  function update(box) {
    const { total_bytes: total, available_bytes: available, alerts: firing = [] } = box.health ?? {};
    mark(whole, "data-mood", box.is_here ? "ready" : "bad");
    say(state, box.is_here ? "HERE" : "AWAY");
    say(since, `for ${ago(box.since)}, since ${clock(box.since)}`);
    say(why, box.why);
    used.style.width = total ? `${100 * (1 - available / total)}%` : "0";
    say(head, total ? `${bytes(available)} of ${bytes(total)} available` : "Its memory is not known.");
    mark(bar, "aria-label", head.textContent);
    list(services, box.replicas.map((one) => `${one.service} ${one.state}`));
    list(alerts, firing.map((one) => one.title));
  }
  return { whole, update };
}

export function boxCards() {
  const whole = h("div", { class: "grid" }), known = new Map();

  function update(pieces) {
    const boxes = [...pieces].filter(([name]) => name.startsWith("box/")).map(([, box]) => box);
    const names = new Set(boxes.map((box) => box.name));
    for (const [name, made] of known) if (!names.has(name)) { made.whole.remove(); known.delete(name); }
    for (const box of boxes) {
      if (!known.has(box.name)) {
        known.set(box.name, boxCard(box.name));
        whole.append(known.get(box.name).whole);
      }
      known.get(box.name).update(box);
    }
  }
  return { whole, update };
}
