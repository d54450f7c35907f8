// What a service waits for, and how far that is: memory by bytes, a start by how long the last ones took.

import { h, mark, say, show } from "./dom.js";
import { bytes, now, seconds } from "./format.js";

const STARTING = new Set(["STARTING", "LOADING", "PROVING"]);

// Returns the share that is done (null: nobody knows) and what is said of it.
export function read(card, machine) {
  if (card.state === "WAITING_FOR_MEMORY" && machine?.available_bytes != null) {
    const free = Math.max(0, machine.available_bytes - machine.floor_bytes);
    return [card.need_bytes ? Math.min(1, free / card.need_bytes) : null,
      `needs ${bytes(card.need_bytes)} above the floor, ${bytes(free)} are free`];
  }
  if (!STARTING.has(card.state)) return [null, ""];
  const took = Math.max(0, now() - card.since);
  if (!card.expected_s) return [null, `for ${seconds(took)}; how long it takes is not known yet`];
  return [Math.min(0.98, took / card.expected_s), `for ${seconds(took)}; a start took ${seconds(card.expected_s)} the last times`];
}

export function progress(name) {
  const words = h("span", {}), bar = h("progress", { max: 1, "aria-label": `How far ${name} is` });
  const whole = h("div", { class: "progress", hidden: true }, words, bar);
  function update(card, machine) {
    const [share, text] = read(card, machine);
    show(whole, Boolean(card.awaits || text));
    say(words, [card.awaits && `waits for ${card.awaits}`, text].filter(Boolean).join(" · "));
    if (share == null) bar.removeAttribute("value");
    else mark(bar, "value", share.toFixed(3));
    show(bar, Boolean(text));
  }
  return [whole, update];
}
