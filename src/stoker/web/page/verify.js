// All services by all probes: what each was found to do, when, and by which evidence; and a button that asks again.

import { agreed } from "./agree.js";
import { ask, service } from "./api.js";
import { evidence } from "./evidence.js";
import { h, say, show } from "./dom.js";
import { ago, now, seconds } from "./format.js";
import { tell, tellFault } from "./notices.js";

export const SIGNS = { pass: "✓", fail: "✗", degraded: "≈", "not offered": "–", unknown: "?" };
const LENGTHS = [["the usual probes, for at most a minute", {}], ["everything, for at most 15 minutes", { deep: true }], ["everything, for at most an hour", { deep: true, budget_s: 3600 }]];
const POLL_MS = 1000, RENEW_MS = 15_000;

export const kind = (verdict) => verdict.replace(" ", "-");

async function begin(name, redraw) {
  const choice = h("select", { id: "length" }, LENGTHS.map(([words], at) => h("option", { value: at }, words)));
  const text = "It is asked through the gateway, as its clients would, beside whatever it does now. What is found is kept with its plan.";
  if (!(await agreed(`Verify: ${name}`, text, "Verify", h("p", {}, h("label", { for: "length" }, "How long? "), choice)))) return;
  try {
    await ask("POST", service(name, "verify"), LENGTHS[choice.value][1]);
  } catch (problem) {
    tellFault(problem);
  }
  redraw();
}

function underWay(stop) {
  const words = h("span", {}), bar = h("progress", { "aria-label": "How far the verification is" });
  const button = h("button", { type: "button", onclick: stop }, "Stop it");
  const whole = h("div", { class: "card progress", role: "status" }, words, bar, h("div", {}, button));
  function update(proving, looksOn) {
    show(whole, Boolean(proving));
    if (!proving) return;
    const isOver = proving.outcome != null, probe = proving.probe ? `${proving.probe}, ${proving.number} of ${proving.count}` : "it begins";
    say(words, isOver ? [`${proving.service}: ${proving.outcome}`, proving.why].filter(Boolean).join("; ")
      : `${proving.service} is being verified: ${probe}, for ${seconds(Math.max(0, now() - proving.since))} of at most ${seconds(proving.budget_s)}`);
    bar.max = proving.count;
    bar.value = Math.max(0, proving.number - 1);
    show(bar, !isOver);
    show(button, !isOver && !looksOn);
  }
  return [whole, update];
}

function cell(found, name, probe, open) {
  if (!found) return h("td", { class: "dim" }, h("span", { role: "img", "aria-label": "never asked" }, "·"));
  const when = `${found.verdict}, ${ago(found.at)} ago by ${found.occasion === "gate" ? "its gate" : "stoker verify"}${found.is_of_this_plan ? "" : ", by another plan"}`;
  return h("td", {}, h("button", { type: "button", class: `verdict-sign ${kind(found.verdict)}${found.is_of_this_plan ? "" : " old"}`, title: `${probe}: ${when}`,
    "aria-label": `${name}, ${probe}: ${when}`, onclick: () => open(name, probe, found) }, SIGNS[found.verdict]));
}

export function verifyView(place, wanted, _, { looksOn }) {
  let timer = 0, isOpen = true, drawn = "";
  const body = h("div", { class: "wide matrix", tabindex: "0", role: "region", "aria-label": "Verdicts" }), detail = h("section", { class: "card", hidden: true, tabindex: "-1" });
  const [running, updateRunning] = underWay(() => ask("DELETE", "/api/verifications").catch(tellFault).then(read));
  const legend = h("p", { class: "dim legend" }, Object.entries(SIGNS).map(([verdict, sign]) => h("span", {}, h("span", { class: `verdict-sign ${kind(verdict)}` }, sign), ` ${verdict}`)),
    h("span", {}, h("span", { class: "verdict-sign pass old" }, "✓"), " by another plan"), h("span", {}, "· never asked"));
  place.replaceChildren(h("section", { class: "card", "aria-labelledby": "title" }, h("h1", { id: "title" }, "Verify"),
    h("p", { class: "dim" }, "What each service was found to do for its clients, the last time that it was asked. A verdict opens its evidence."), body, legend), running, detail);
  show(running, false);

  function open(name, probe, found) {
    show(detail, true);
    evidence(detail, name, probe, found).then(() => detail.focus());
  }

  function button(row) {
    const why = looksOn ? "this browser only looks on" : row.why_not;
    return h("button", { type: "button", "aria-disabled": String(Boolean(why)), "data-verify": row.service, title: why ?? `Verify ${row.service}`,
      onclick: () => (why ? tell(`Verify ${row.service}: ${why}`) : begin(row.service, read)) }, "Verify");
  }

  function draw({ probes, rows }) {
    const head = h("tr", {}, h("th", { scope: "col" }, "Service"), probes.map((probe) => h("th", { scope: "col", class: "probe", title: probe.expects }, h("span", {}, probe.name))), h("td", {}));
    const lines = rows.map((row) => {
      const found = new Map(row.cells.map((one) => [one.probe, one]));
      return h("tr", { "data-service": row.service }, h("th", { scope: "row" }, h("a", { href: `#/service/${encodeURIComponent(row.service)}` }, row.service)),
        probes.map((probe) => cell(found.get(probe.name), row.service, probe.name, open)), h("td", {}, button(row)));
    });
    body.replaceChildren(rows.length ? h("table", {}, h("thead", {}, head), h("tbody", {}, lines)) : h("p", {}, "No service was ever started: there is nothing to verify yet."));
  }

  async function read() {
    clearTimeout(timer);
    try {
      const view = await ask("GET", "/api/verifications");
      if (!isOpen) return;
      const fresh = JSON.stringify([view.probes.length, view.rows]);
      if (fresh !== drawn) draw(view); // nothing loses its focus while nothing changes
      drawn = fresh;
      updateRunning(view.proving, looksOn);
      timer = setTimeout(read, view.proving && !view.proving.outcome ? POLL_MS : RENEW_MS);
    } catch (problem) {
      if (isOpen) { body.replaceChildren(h("p", {}, problem.message)); timer = setTimeout(read, RENEW_MS); drawn = ""; }
    }
  }

  read();
  return { update() {}, close() { isOpen = false; clearTimeout(timer); } };
}
