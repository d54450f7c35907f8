// What its log tells of a failure: the cause, the lines that prove it, what to do, and the change that mends it.

import { service } from "./api.js";
import { h } from "./dom.js";
import { fixOffer } from "./fix.js";
import { fill } from "./waiting.js";

const lines = (evidence) => h("pre", { tabindex: "0", role: "group", "aria-label": "Evidence" }, evidence.map((one) => `${one.line}: ${one.text}`).join("\n"));
const isMended = (one) => one.confidence !== "possible" && (one.drop.length > 0 || Object.keys(one.use).length > 0);

function finding(one, offer) {
  return h("article", { class: "finding" }, h("h3", {}, one.title), h("p", { class: "dim" }, `${one.confidence} · rule ${one.rule}`),
    h("p", {}, one.cause), h("p", {}, h("strong", {}, "What to do: "), one.fix), one.command && h("pre", { tabindex: "0", role: "group", "aria-label": "Command" }, one.command),
    offer && isMended(one) && [h("div", { class: "row" }, offer.look), offer.body], lines(one.evidence));
}

function draw(found, offer) {
  const about = h("p", { class: "dim" }, `${found.lines.toLocaleString("en")} lines, ${found.starts} starts; ${found.ready ? "it said that it is ready" : "it never said that it is ready"}${found.stopped ? ", and was told to stop" : ""}`);
  // The first is the cause of those after it: only that is mended.
  if (found.findings.length) return [about, ...found.findings.map((one, at) => finding(one, at === 0 && offer))];
  if (!found.unknown.length) return [about, h("p", {}, "Nothing that is known to be a fault is in its log.")];
  return [about, h("p", {}, "No known cause; these lines tell most:"), lines(found.unknown)];
}

export function findingsTab(place, name, { looksOn }) {
  const body = h("div", {}), offer = fixOffer(name, looksOn);
  const again = h("button", { type: "button", onclick: () => fill(body, service(name, "diagnosis"), (found) => draw(found, offer)) }, "Look again");
  place.replaceChildren(again, offer.said, body);
  again.click();
  return { update: (card, pieces) => offer.update(pieces) };
}
