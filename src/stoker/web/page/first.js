// What somebody sees who has nothing configured yet: the machine, and one way to begin.

import { ask } from "./api.js";
import { facts, h, show } from "./dom.js";
import { bytes } from "./format.js";

function machineFacts(machine) {
  const gpu = machine.gpus[0];
  return facts([["Machine", machine.product || machine.hostname], ["Processor", machine.cpu_model && `${machine.cpu_model}, ${machine.cpu_count} cores`],
    ["GPU", gpu ? `${gpu.name}${gpu.compute_capability ? ` (${gpu.compute_capability})` : ""}` : "none that NVIDIA's driver tells of"],
    ["Memory", `${bytes(machine.memory.total_bytes)}${machine.unified_memory ? ", shared by processor and GPU" : ""}`],
    ["Driver", machine.driver], ["System", machine.os]]);
}

export function firstVisit() {
  const known = h("div", {});
  const whole = h("section", { class: "card first", hidden: true, "aria-labelledby": "begin" },
    h("h2", { id: "begin" }, "Nothing is served yet"),
    h("p", {}, "Begin with the demo below: a model of 8 million parameters that comes with Stoker, runs on any machine and is ready in seconds. "
      + "Then name a model of yours in stoker.toml, or: ", h("code", {}, "stoker up MODEL.gguf")),
    known);
  let asked = false;
  function update(cards) {
    const isFirst = cards.every((card) => card.is_new);
    show(whole, isFirst);
    if (!isFirst || asked) return;
    asked = true;
    ask("GET", "/api/machine").then((machine) => known.replaceChildren(machineFacts(machine)), () => { asked = false; });
  }
  return { whole, update };
}
