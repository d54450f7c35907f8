// How it runs: every setting with who chose it and why, what another plan would change, and how fast it should be.

import { ask, service } from "./api.js";
import { facts, h } from "./dom.js";
import { bytes, number } from "./format.js";
import { fill, table } from "./waiting.js";

function setting(one) {
  const value = Array.isArray(one.value) ? one.value.join(" ") : String(one.value);
  return [h("code", {}, one.name), h("code", {}, value), one.rule ? [`${one.because} `, h("code", {}, one.rule)] : one.because];
}

const about = (plan) => facts([["Plan", plan.plan_id], ["Model", plan.model], ["Files", plan.model_path], ["Revision", plan.revision],
  ["Engine", `${plan.engine} ${plan.engine_version ?? ""}`], ["Image", plan.image],
  ["Memory", `${bytes(plan.memory_need_bytes)}: ${plan.memory_because}`],
  ["Cache", plan.kv_tokens && `${plan.kv_tokens.toLocaleString("en")} tokens`],
  ["Gate", plan.gate.length ? `${plan.gate.join(", ")} (${plan.gate_because})` : `none (${plan.gate_because || "nothing is required"})`]]);

const value = (text) => (text == null ? h("span", { class: "dim" }, "not set") : h("code", {}, text));
const change = (one) => [h("code", {}, one.name), value(one.here), h("span", { class: "there" }, value(one.there)), one.because];

function beside(title, other, none, same) {
  const body = !other ? h("p", {}, none) : other.changes.length ? table(["What", "Now", "Then", "Why"], other.changes.map(change), title) : h("p", {}, same);
  return [h("h2", {}, other ? `${title} (plan ${other.plan_id.slice(0, 8)})` : title), body];
}

const rate = (value) => `${number(value)} tokens / s`;

// The limit, what is expected and what was measured, as bars of one scale.
function speed({ speed: view, no_speed: why }, pace, run) {
  const title = h("h2", {}, "Speed of one request"), last = run && h("p", {}, "The last benchmark of it: ", h("a", { href: `#/bench/${run.id}` }, `run ${run.id}`));
  if (!view) return [title, h("p", {}, `Not predicted: ${why}.`), pace && h("p", {}, `Now: ${rate(pace)}.`), last];
  const { expected, measured } = view, bars = [["Limit by the memory's bandwidth", view.limit_tok_s, ""]];
  if (expected) bars.push(["Predicted", expected.decode_tok_s, `${number(expected.low_tok_s)} to ${number(expected.high_tok_s)} four times in five`]);
  if (measured) bars.push([`Measured without drafts${measured.run_id ? `, run ${measured.run_id}` : ""}`, measured.measured_tok_s, `${Math.round(100 * measured.of_limit)} % of the limit`]);
  if (pace) bars.push(["Now, all requests together", pace, "drafts that are accepted can bring it over the limit"]);
  const most = Math.max(...bars.map(([, one]) => one));
  const rows = bars.map(([name, one, note]) => {
    const bar = h("span", { class: "span" });
    bar.style.width = `${(100 * one) / most}%`;
    return [name, rate(one), h("div", { class: "spans" }, bar), note];
  });
  return [title, table(["", "", "", ""], rows, "Speed"), !expected && h("p", { class: "dim" }, why), last];
}

export function planTab(place, name) {
  let pace = null;
  const runs = ask("GET", "/api/bench/runs").catch(() => []);
  const draw = (view, known) => [about(view.plan),
    ...beside("What a start would change now", view.next, view.no_next, "Nothing: stoker.toml gives the same plan."),
    ...beside("What a roll back would change", view.former, "It was never READY by another plan.", "Nothing."),
    ...speed(view, pace, known.find((one) => one.service === name)),
    h("h2", {}, "Settings"), table(["Setting", "Value", "Why"], view.plan.settings.map(setting), "Settings")];
  runs.then((known) => fill(place, service(name, "plans"), (view) => draw(view, known)));
  return { update: (card) => { pace = card.pace.tokens_per_s; } };
}
