// One service alone, in tabs; each tab asks for what it shows when it is opened.

import { serviceCard } from "./card.js";
import { h, mark } from "./dom.js";
import { chartsTab } from "./charts.js";
import { chatTab } from "./chat.js";
import { findingsTab } from "./findings.js";
import { logsTab } from "./logs.js";
import { planTab } from "./plan.js";
import { timelineTab } from "./timeline.js";

const TABS = [["charts", "Charts", chartsTab], ["plan", "Plan", planTab], ["timeline", "Timeline", timelineTab],
  ["findings", "Findings", findingsTab], ["logs", "Logs", logsTab], ["try", "Try it", chatTab]];

export function serviceView(place, name, wanted, { looksOn }) {
  const [tab, , open] = TABS.find(([one]) => one === wanted) ?? TABS[0];
  const card = serviceCard(name, { looksOn, isLink: false });
  const gone = h("p", { class: "card" }, `There is no service called ${name} any more.`);
  const links = TABS.map(([one, words]) =>
    h("a", { href: `#/service/${encodeURIComponent(name)}/${one}`, "aria-current": one === tab ? "page" : null }, words));
  const body = h("section", { class: "card tab", "aria-label": TABS.find(([one]) => one === tab)[1] });
  place.replaceChildren(h("p", {}, h("a", { href: "#/" }, "← All services")), card.whole, h("nav", { class: "tabs", "aria-label": name }, links), body);
  let opened = null; // only of a service that there is

  function update(pieces) {
    const found = pieces.get(`service/${name}`);
    if (!found) { if (!gone.isConnected) place.replaceChildren(h("p", {}, h("a", { href: "#/" }, "← All services")), gone); return; }
    opened ??= open(body, name, { looksOn }) ?? {};
    card.update(found, pieces.get("machine") ?? {}, pieces.get("alerts") ?? []);
    mark(body, "data-state", found.state);
    opened?.update?.(found, pieces);
  }
  return { update, close: () => opened?.close?.() };
}
