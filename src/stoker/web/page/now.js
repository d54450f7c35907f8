// The first view: the memory, what is wrong, the switch that is under way, and all services.

import { boxCards } from "./boxes.js";
import { serviceCard } from "./card.js";
import { h, say, show } from "./dom.js";
import { cards } from "./feed.js";
import { ago } from "./format.js";
import { memoryBar } from "./memory.js";
import { firstVisit } from "./first.js";

function switchText(view) {
  if (!view) return "";
  const steps = view.steps.at(-1) ?? "begins";
  if (!view.outcome) return `A switch to ${view.service} is under way, for ${ago(view.since)}: ${steps}.`;
  return view.outcome === "ready" ? "" : `The switch to ${view.service} ${view.outcome}: ${view.why}.`;
}

function general(pieces) {
  const alerts = (pieces.get("alerts") ?? []).filter((one) => one.state === "firing" && !pieces.has(`service/${one.about}`));
  const run = pieces.get("daemon")?.run, idle = pieces.get("daemon")?.idle;
  const fix = pieces.get("fix");
  return [switchText(pieces.get("switch")), fix && !fix.outcome && `A fix of ${fix.service} is tried.`, run && `The workflow ${run.workflow} runs.`,
    idle?.returns_at && `${idle.default_service} comes back: ${idle.why}.`,
    ...alerts.map((one) => `${one.title}: ${one.why}. ${one.fix}`), ...(pieces.get("lost") ?? [])].filter(Boolean).join(" ");
}

export function nowView(place, { looksOn }) {
  const memory = memoryBar(), boxes = boxCards(), first = firstVisit(looksOn);
  const said = h("p", { class: "said", role: "status" }), grid = h("div", { class: "grid" });
  place.replaceChildren(h("h1", { class: "hidden" }, "Services"), first.whole, said, grid, memory.whole, boxes.whole);
  const known = new Map();

  function update(pieces) {
    const all = cards(pieces), machine = pieces.get("machine") ?? {}, alerts = pieces.get("alerts") ?? [];
    const names = new Set(all.map((card) => card.name));
    for (const [name, made] of known) if (!names.has(name)) { made.whole.remove(); known.delete(name); }
    for (const card of all) {
      if (!known.has(card.name)) {
        known.set(card.name, serviceCard(card.name, { looksOn }));
        grid.append(known.get(card.name).whole);
      }
      known.get(card.name).update(card, machine, alerts);
    }
    const text = general(pieces);
    say(said, text);
    show(said, Boolean(text));
    first.update(all, machine);
    memory.update(machine, all);
    boxes.update(pieces);
  }
  return { update, close() {} };
}
