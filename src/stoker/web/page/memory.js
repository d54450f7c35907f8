// The whole memory as one bar, and what could be started now.

import { h, mark, say } from "./dom.js";
import { bytes } from "./format.js";

const NAMES = { other: "system and others", cache: "page cache (comes back)", free: "free" };
const key = (part) => (part.kind === "service" ? `service ${part.service}` : part.kind);
const label = (part) => (part.kind === "service" ? part.service : NAMES[part.kind]);

function room(cards) {
  const resting = cards.filter((card) => card.has_room != null && ["STOPPED", "FAILED"].includes(card.state));
  const fits = resting.filter((card) => card.has_room).map((card) => card.name);
  const not = resting.filter((card) => !card.has_room)
    .map((card) => `${card.name} (needs ${bytes(card.need_bytes)}${card.goes.length ? `; a switch would stop ${card.goes.join(" and ")}` : ""})`);
  return [fits.length && `Could start now: ${fits.join(", ")}.`, not.length && `No room now: ${not.join(", ")}.`].filter(Boolean).join(" ");
}

function coming(cards) {
  return cards.filter((card) => card.coming_bytes).map((card) => `${card.name} has yet to take ${bytes(card.coming_bytes)}`).join("; ");
}

function machineText(machine) {
  return [machine.power_w != null && `${Math.round(machine.power_w)} W`, machine.temperature_c != null && `${machine.temperature_c} °C`,
    machine.clock_mhz != null && `${machine.clock_mhz} MHz`, machine.stalled_pct && `stalled for memory ${machine.stalled_pct.toFixed(1)} %`]
    .filter(Boolean).join(" · ");
}

export function memoryBar() {
  const bar = h("div", { class: "bar", role: "img" }), list = h("ul", { class: "legend" });
  const fits = h("p", {}), head = h("span", { class: "dim" }), gpu = h("span", { class: "dim" });
  const floor = h("div", { class: "floor" });
  const whole = h("section", { class: "card memory", "aria-labelledby": "memory" },
    h("div", { class: "row" }, h("h2", { id: "memory" }, "Memory"), head, h("span", { class: "grow" }), gpu), bar, list, fits);
  let drawn = "";

  function draw(machine) {
    const names = machine.parts.map(key).join("\n");
    if (names === drawn) return;
    drawn = names;
    let services = 0;
    const hue = (part) => (part.kind === "service" ? `service c${services++ % 6}` : part.kind);
    const classes = machine.parts.map(hue);
    bar.replaceChildren(...classes.map((one) => h("div", { class: `part ${one}` })), floor);
    list.replaceChildren(...classes.map((one) => h("li", {}, h("span", { class: `swatch ${one}` }), h("span", {}))));
  }

  function update(machine, cards) {
    const { total_bytes: total, available_bytes: available, floor_bytes: kept } = machine;
    if (total == null) return say(head, "is not known here");
    draw(machine);
    const texts = machine.parts.map((part) => `${label(part)} ${bytes(part.bytes)}`);
    machine.parts.forEach((part, at) => {
      bar.children[at].style.width = `${(100 * part.bytes) / total}%`;
      say(list.children[at].lastChild, texts[at]);
    });
    floor.style.right = `${(100 * kept) / total}%`;
    mark(floor, "title", `the floor: ${bytes(kept)} are kept for the system`);
    mark(bar, "aria-label", `${bytes(total)} in all: ${texts.join(", ")}; ${bytes(kept)} are kept as the floor`);
    say(head, `${bytes(available)} of ${bytes(total)} available, ${bytes(kept)} of that kept as the floor`);
    say(gpu, machineText(machine));
    say(fits, [coming(cards), room(cards)].filter(Boolean).join(". "));
    return undefined;
  }
  return { whole, update };
}
