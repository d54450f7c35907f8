// How it runs: every setting with who chose it and why.

import { service } from "./api.js";
import { facts, h } from "./dom.js";
import { bytes } from "./format.js";
import { fill, table } from "./waiting.js";

function setting(one) {
  const value = Array.isArray(one.value) ? one.value.join(" ") : String(one.value);
  return [h("code", {}, one.name), h("code", {}, value), one.rule ? [`${one.because} `, h("code", {}, one.rule)] : one.because];
}

function draw(plan) {
  return [
    facts([["Plan", plan.plan_id], ["Model", plan.model], ["Files", plan.model_path], ["Revision", plan.revision], ["Engine", `${plan.engine} ${plan.engine_version ?? ""}`],
      ["Image", plan.image], ["Memory", `${bytes(plan.memory_need_bytes)}: ${plan.memory_because}`],
      ["Cache", plan.kv_tokens && `${plan.kv_tokens.toLocaleString("en")} tokens`],
      ["Gate", plan.gate.length ? `${plan.gate.join(", ")} (${plan.gate_because})` : `none (${plan.gate_because || "nothing is required"})`]]),
    table(["Setting", "Value", "Why"], plan.settings.map(setting), "Settings"),
  ];
}

export function planTab(place, name) {
  fill(place, service(name, "plan"), draw);
}
