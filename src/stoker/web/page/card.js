// One service: what it is, how it is and why, what it waits for, how it goes, what is wrong, and what can be done.

import { deedButtons } from "./deeds.js";
import { h, mark, say, show } from "./dom.js";
import { figures } from "./figures.js";
import { ago, bytes } from "./format.js";
import { progress } from "./progress.js";

const BUSY = new Set(["WAITING_FOR_MEMORY", "STARTING", "LOADING", "PROVING", "DRAINING", "STOPPING", "SETTLING", "BACKOFF"]);
const mood = (state) => (state === "READY" ? "ready" : BUSY.has(state) ? "busy" : state === "STOPPED" ? "rests" : "bad");

function identity(card) {
  const engine = card.engine === "auto" ? "" : `${card.engine} ${card.engine_version ?? ""}`.trim();
  return [card.model === card.name ? "" : card.model, engine, card.revision && `revision ${card.revision.slice(0, 12)}`,
    card.plan_id && `plan ${card.plan_id.slice(0, 8)}`, card.restarts ? `${card.restarts} restarts` : ""].filter(Boolean).join(" · ");
}

function memory(card) {
  if (card.need_bytes == null) return "";
  const held = card.resident_bytes == null ? "" : `, holds ${bytes(card.resident_bytes)}`;
  return `memory: needs ${bytes(card.need_bytes)}${held}`;
}

function verdict({ verdict: last }) {
  if (!last) return "";
  const odd = last.probes.filter(([, one]) => one !== "pass" && one !== "not offered").map(([name, one]) => `${name}: ${one}`);
  const plan = last.is_of_this_plan ? "" : ", by another plan";
  return `${last.occasion === "gate" ? "Gate" : "Verified"} ${ago(last.at)} ago${plan}: ${last.verdict}, ${last.probes.length} probes`
    + (odd.length ? ` (${odd.join(", ")})` : "");
}

export function serviceCard(name, { looksOn, isLink = true }) {
  const state = h("span", { class: "state" }), since = h("span", { class: "dim" });
  const what = h("p", { class: "dim what" }), why = h("p", { class: "why" }), checked = h("p", { class: "verdict dim" });
  const held = h("p", { class: "dim" }), alerts = h("ul", { class: "alerts" });
  const [numbers, updateNumbers] = figures(), [wait, updateWait] = progress(name), [deeds, updateDeeds] = deedButtons(name, looksOn);
  const title = h(isLink ? "h2" : "h1", {}, isLink ? h("a", { href: `#/service/${encodeURIComponent(name)}` }, name) : name);
  const whole = h("article", { class: "card service", "aria-label": name },
    h("div", { class: "row" }, title, state, since), what, why, wait, numbers, held, checked, alerts, deeds);

  function update(card, machine, alarms) {
    mark(whole, "data-mood", mood(card.state));
    mark(whole, "data-state", card.state);
    say(state, card.is_new ? "NOT STARTED" : card.state.replaceAll("_", " "));
    say(since, card.is_new ? "" : `for ${ago(card.since)}`);
    say(what, identity(card));
    say(why, [card.why, ...card.warnings].filter(Boolean).join(". "));
    say(held, memory(card));
    say(checked, verdict(card));
    show(numbers, card.state === "READY");
    updateNumbers(card.pace);
    updateWait(card, machine);
    updateDeeds(card);
    const mine = alarms.filter((one) => one.about === name && one.state === "firing");
    const text = mine.map((one) => `${one.title}: ${one.why}. ${one.fix}`);
    if (alerts.dataset.text !== text.join("\n")) {
      alerts.dataset.text = text.join("\n");
      alerts.replaceChildren(...text.map((line) => h("li", {}, line)));
    }
  }
  return { whole, update };
}
