// What would mend a service: the change in its plan and in stoker.toml, and a button that has it tried through its gate.

import { agreed } from "./agree.js";
import { ask, service } from "./api.js";
import { h, say, show } from "./dom.js";
import { tell, tellFault } from "./notices.js";
import { fill } from "./waiting.js";

const diff = (lines, name) => h("pre", { class: "diff", tabindex: "0", role: "group", "aria-label": name },
  lines.map((line) => h("span", { class: line.startsWith("+") ? "plus" : "minus" }, `${line}\n`)));

function outcome(fix) {
  if (!fix.outcome) return `The fix of ${fix.rule} is tried: the service starts with it, and has to pass its gate.`;
  return `The fix of ${fix.rule} was ${fix.outcome}: ${fix.why}.`;
}

export function fixOffer(name, looksOn) {
  const body = h("div", { class: "card fix", hidden: true }), said = h("p", { role: "status", hidden: true });
  const look = h("button", { type: "button", "data-deed": "fix", onclick: () => { show(body, true); fill(body, service(name, "fix"), draw); } }, "Show the change");

  async function apply(fix, button) {
    if (looksOn) { tell("Apply: this browser only looks on"); return; }
    const stops = fix.goes.length ? `This stops ${fix.goes.join(" and ")}. ` : "";
    const text = `${stops}${name} starts so and has to pass its gate. Only then is it written into ${fix.file}; else what ran before runs again.`;
    if (!(await agreed(`Apply the fix: ${name}`, text, "Apply"))) return;
    button.setAttribute("aria-busy", "true");
    await ask("POST", service(name, "fix"), { digest: fix.digest }).then(() => show(body, false), tellFault);
    button.removeAttribute("aria-busy");
  }

  function draw(fix) {
    const button = h("button", { type: "button", class: "main", "data-deed": "apply", "aria-disabled": String(looksOn), onclick: () => apply(fix, button) }, "Apply");
    return [h("p", {}, `The plan of ${fix.service} would change:`), diff(fix.settings, "Changes of the plan"),
      h("p", {}, "And once it is READY, ", h("code", {}, fix.file), ":"), diff(fix.lines, "Changes of stoker.toml"),
      h("div", { class: "row" }, button)];
  }

  function update(pieces) {
    const fix = pieces.get("fix"), mine = fix?.service === name;
    show(said, Boolean(mine));
    if (mine) say(said, outcome(fix));
  }
  return { look, body, said, update };
}
