// What a verdict rests on: each check with what was sent and what came back.

import { service } from "./api.js";
import { h } from "./dom.js";
import { clock, seconds } from "./format.js";
import { fill } from "./waiting.js";

const heads = (pairs) => pairs.map(([name, value]) => `${name}: ${value}`).join("\n");

function exchange(one) {
  const told = one.status == null ? `no answer: ${one.problem}` : `${one.status}${one.problem ? `, ${one.problem}` : ""}`;
  return h("details", {}, h("summary", {}, h("code", {}, `${one.method} ${one.url}`), ` → ${told}, ${seconds(one.took_s)}`),
    h("pre", { tabindex: "0", role: "group", "aria-label": "Request" }, [heads(one.headers), one.body].filter(Boolean).join("\n\n")),
    h("pre", { tabindex: "0", role: "group", "aria-label": "Reply" }, [heads(one.reply_headers), one.reply].filter(Boolean).join("\n\n")));
}

function check(one) {
  return h("article", { class: "finding" }, h("h3", {}, one.name, " ", h("span", { class: `verdict-word ${one.verdict.replace(" ", "-")}` }, one.verdict)), h("p", {}, one.says),
    one.mend && h("p", {}, h("strong", {}, "What to do: "), one.mend), one.exchanges.map(exchange));
}

export async function evidence(place, name, probe, found) {
  await fill(place, `${service(name, "verifications")}?most=20`, (all) => {
    const kept = all.find((one) => one.verification.begun === found.at);
    const result = kept?.verification.probes.find((one) => one.name === probe);
    if (!result) return h("p", {}, "This verification is not kept any more.");
    const checks = result.checks.some((one) => one.exchanges.length) ? "" : "What passed is kept without its exchanges; stoker verify --json has them all. ";
    return [h("h2", {}, `${name}: ${probe}, ${result.verdict}`),
      h("p", { class: "dim" }, `${new Date(found.at * 1000).toLocaleDateString("en-GB")} ${clock(found.at)}, ${kept.occasion === "gate" ? "by its gate" : "by stoker verify"}, plan ${kept.plan_id.slice(0, 8)}, took ${seconds(result.took_s)}. ${checks}`),
      ...result.checks.map(check)];
  });
}
