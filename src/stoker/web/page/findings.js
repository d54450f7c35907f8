// What its log tells of a failure: the cause, the lines that prove it, and what to do.

import { service } from "./api.js";
import { h } from "./dom.js";
import { fill } from "./waiting.js";

const lines = (evidence) => h("pre", { tabindex: "0", "aria-label": "Evidence" }, evidence.map((one) => `${one.line}: ${one.text}`).join("\n"));

function finding(one) {
  return h("article", { class: "finding" }, h("h3", {}, one.title), h("p", { class: "dim" }, `${one.confidence} · rule ${one.rule}`),
    h("p", {}, one.cause), h("p", {}, h("strong", {}, "What to do: "), one.fix), one.command && h("pre", { tabindex: "0", "aria-label": "Command" }, one.command), lines(one.evidence));
}

function draw(found) {
  const about = h("p", { class: "dim" }, `${found.lines.toLocaleString("en")} lines, ${found.starts} starts; ${found.ready ? "it said that it is ready" : "it never said that it is ready"}`);
  if (found.findings.length) return [about, ...found.findings.map(finding)];
  if (!found.unknown.length) return [about, h("p", {}, "Nothing that is known to be a fault is in its log.")];
  return [about, h("p", {}, "No known cause; these lines tell most:"), lines(found.unknown)];
}

export function findingsTab(place, name) {
  const body = h("div", {});
  const again = h("button", { type: "button", onclick: () => fill(body, service(name, "diagnosis"), draw) }, "Look again");
  place.replaceChildren(again, body);
  again.click();
}
