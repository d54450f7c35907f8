// What somebody sees who has nothing configured yet: the machine, what would run well on it, and a button to begin.

import { ask } from "./api.js";
import { facts, h, mark, show } from "./dom.js";
import { bytes } from "./format.js";
import { tell, tellFault } from "./notices.js";

const LOOK_AGAIN_MS = 60_000;

function machineFacts(machine) {
  const gpu = machine.gpus[0];
  return facts([["Machine", machine.product || machine.hostname], ["Processor", machine.cpu_model && `${machine.cpu_model}, ${machine.cpu_count} cores`],
    ["GPU", gpu ? `${gpu.name}${gpu.compute_capability ? ` (${gpu.compute_capability})` : ""}` : "none that NVIDIA's driver tells of"],
    ["Memory", `${bytes(machine.memory.total_bytes)}${machine.unified_memory ? ", shared by processor and GPU" : ""}`],
    ["Driver", machine.driver], ["System", machine.os]]);
}

async function serve(one, button) {
  button.setAttribute("aria-busy", "true");
  await ask("POST", "/api/services", { name: one.service, model: one.target }).catch(tellFault);
  button.removeAttribute("aria-busy");
}

function suggestion(one, isBest, looksOn) {
  const size = [one.quantisation, one.parameters && `${(one.parameters / 1e9).toPrecision(3)} billion parameters`, one.need_bytes && bytes(one.need_bytes), one.engine];
  const button = h("button", { type: "button", "data-serve": one.target, class: isBest ? "main" : null,
    onclick: () => (looksOn ? tell("Serve: this browser only looks on") : serve(one, button)) }, "Serve it");
  mark(button, "aria-disabled", String(looksOn));
  const canStart = one.reach === "now" || one.reach === "waits";
  return h("li", { "data-reach": one.reach }, h("div", { class: "row" }, h("strong", {}, one.target), h("span", { class: "dim" }, size.filter(Boolean).join(" · ")), canStart && button),
    h("p", {}, `${one.because.join("; ")}.`), one.obstacle && h("p", { class: "dim" }, one.obstacle));
}

function suggestionList({ suggestions, found, order }, looksOn) {
  const here = suggestions.filter((one) => one.reach !== "elsewhere"), best = here.find((one) => one.reach === "now");
  const elsewhere = suggestions.filter((one) => one.reach === "elsewhere");
  const list = (all, name) => h("ol", { class: "suggestions", "aria-label": name }, all.map((one) => suggestion(one, one === best, looksOn)));
  return [
    h("h3", {}, here.length ? "What would run well here" : "No models were found here"),
    h("p", { class: "dim" }, here.length ? order : "Looked in the hub's cache and in folders called models; name others in stoker.toml."),
    list(here, "Models on this machine"), found > here.length && h("p", { class: "dim" }, `${here.length} of ${found} that lie here are shown.`),
    elsewhere.length > 0 && [h("h3", {}, "What others run on such a machine"), list(elsewhere, "Published models")],
  ].flat().filter(Boolean);
}

export function firstVisit(looksOn) {
  const known = h("div", {}), suggested = h("div", { class: "suggested" }, h("p", { class: "dim" }, "Looks for models …"));
  const whole = h("section", { class: "card first", hidden: true, "aria-labelledby": "begin" },
    h("h2", { id: "begin" }, "Nothing is served yet"), known,
    h("p", {}, "The demo below always works: a model of 8 million parameters that comes with Stoker, runs on any machine and is ready in seconds. "
      + "A model of yours is served by its button, by its name in stoker.toml, or by ", h("code", {}, "stoker up MODEL.gguf")),
    suggested);
  let askedAt = -LOOK_AGAIN_MS;
  function update(cards) {
    const isFirst = cards.every((card) => card.is_new);
    show(whole, isFirst);
    if (!isFirst || performance.now() - askedAt < LOOK_AGAIN_MS) return;
    askedAt = performance.now();
    const above = ask("GET", "/api/machine").then((machine) => known.replaceChildren(machineFacts(machine)), tellFault);
    // Below what stands there already: else the buttons move away under a click.
    ask("GET", "/api/suggestions").then((told) => above.then(() => suggested.replaceChildren(...suggestionList(told, looksOn))), tellFault);
  }
  return { whole, update };
}
