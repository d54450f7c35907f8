// Benchmarks: the runs kept, one of them with its figures and charts, or two compared.

import { ask } from "./api.js";
import { compared } from "./compared.js";
import { facts, h } from "./dom.js";
import { number, seconds, UNKNOWN } from "./format.js";
import { plots } from "./plots.js";
import { fill, table } from "./waiting.js";

const HEADS = { ttft_s: "TTFT, ms", itl_token_s: "a token, ms", prefill_tps: "prefill t/s", first_chunk_prefill_tps: "prefill t/s to the first chunk", request_decode_tps: "decode t/s each",
  total_e2e_tps: "e2e t/s all", total_decode_tps: "decode t/s all", accept_rate: "accept rate", accept_length: "accept length" };
const when = (at) => (at ? new Date(at * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }) : UNKNOWN);
const engine = (of) => [of.engine, of.engine_version].filter(Boolean).join(" ") || UNKNOWN;
const digits = (name, value) => number(value, name === "accept_rate" || name === "accept_length" ? 2 : 1);

function figure(one) {
  if (!one) return UNKNOWN;
  const say = (value) => digits(one.name, one.name.endsWith("_s") ? value * 1000 : value);
  return [`${say(one.median)}${one.is_mean ? "*" : ""}`, one.low != null && one.high != null && h("small", { class: "dim" }, ` ${say(one.low)} to ${say(one.high)}`)].filter(Boolean);
}

function cells(run) {
  const names = Object.keys(HEADS).filter((name) => run.cells.some((cell) => cell.figures.some((one) => one.name === name)));
  const rows = run.cells.map((cell) => [cell.name, ...names.map((name) => figure(cell.figures.find((one) => one.name === name)))]);
  return table(["Cell", ...names.map((name) => HEADS[name])], rows, "Cells");
}

function about({ run }) {
  const of = run.subject;
  return facts([["Model", of.model], ["Engine", engine(of)], ["Machine", of.machine], ["Service", of.service], ["Plan", of.plan_id], ["Revision", of.model_revision], ["Image", of.image_digest],
    ["Measured", `${when(run.began_at)}, by ${run.tool} ${run.tool_version}${run.took_s ? `, took ${seconds(run.took_s)}` : ""}`], ["Asked", run.words.join(" ")], ["Note", run.note]]);
}

function oneRun(place, id) {
  const charts = h("div", { class: "charts" });
  let close = () => {}, isOpen = true;
  fill(place, `/api/bench/runs/${encodeURIComponent(id)}`, (run) => {
    const doubts = run.cells.flatMap((cell) => cell.doubts.map((text) => h("li", {}, `${cell.name}: ${text}`)));
    return [h("h1", {}, `Run ${run.run.id ?? id}`), about(run), run.missing > 0 && h("p", {}, `${run.missing} cells are missing: stoker bench --resume ${id} measures them.`),
      cells(run), h("p", { class: "dim" }, "Medians, with the interval of 95 % where there are repeats enough; * a mean without values. More pictures: ", h("code", {}, `stoker bench report ${id} -o run.html`)),
      doubts.length > 0 && h("h2", {}, "What is doubtful"), doubts.length > 0 && h("ul", { class: "doubts" }, doubts), charts].filter(Boolean);
  }).then((run) => { if (isOpen && run) close = plots(charts, run.charts); });
  return () => { isOpen = false; close(); };
}

function listed(place) {
  const chosen = new Set();
  const button = h("button", { type: "button", class: "main", onclick: () => { location.hash = `#/bench/${[...chosen].sort((a, b) => a - b).join("/")}`; } }, "Compare the two");
  const update = () => { button.disabled = chosen.size !== 2; };
  const tick = (run) => h("input", { type: "checkbox", "aria-label": `Compare run ${run.id}`, "data-run": run.id, onchange: (event) => { chosen[event.target.checked ? "add" : "delete"](run.id); update(); } });
  const row = (run) => [tick(run), h("a", { href: `#/bench/${run.id}` }, `run ${run.id}`), when(run.began_at), run.model, engine(run), run.machine ?? UNKNOWN, run.tool,
    `${run.cells === run.asked ? run.cells : `${run.cells} of ${run.asked}`}${run.is_whole ? "" : " unfinished"}`];
  fill(place, "/api/bench/runs", (runs) => (runs.length
    ? [h("h1", {}, "Benchmarks"), table(["", "Run", "When", "Model", "Engine", "On", "By", "Cells"], runs.map(row), "Kept runs"), h("div", { class: "row" }, button, h("span", { class: "dim" }, "Choose two runs; the later one is told beside the earlier."))]
    : [h("h1", {}, "Benchmarks"), h("p", {}, "No run is kept yet: ", h("code", {}, "stoker bench"), " measures one, ", h("code", {}, "stoker bench import FILE"), " brings another tool's.")]));
  update();
  return () => {};
}

export function benchView(place, a, b) {
  const body = h("section", { class: "card", "aria-label": "Benchmarks" });
  place.replaceChildren(...(a ? [h("p", {}, h("a", { href: "#/bench" }, "← All runs"))] : []), body);
  const close = !a ? listed(body) : b ? compared(body, a, b) : oneRun(body, a);
  return { update() {}, close };
}
