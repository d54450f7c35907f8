// What can be done with a service: what cannot be done now says why, and what stops something asks first.

import { agreed } from "./agree.js";
import { ask, service } from "./api.js";
import { h, mark, say } from "./dom.js";
import { bytes, seconds } from "./format.js";
import { tell, tellFault } from "./notices.js";

const WORDS = { start: "Start", stop: "Stop", switch: "Switch to it", restart: "Restart", rollback: "Roll back" };
const USES = { start: "start", stop: "down", switch: "switch", restart: "restart", rollback: "rollback" };

// Of one that was never started only its group is known: what it needs is found out when it is planned.
function leaves(card) {
  const more = card.is_new && card.goes.length ? ["what else leaves it no room"] : [];
  return [...card.goes, ...more].join(" and ") || "what leaves it no room";
}

function consequence(deed, card) {
  const again = card.expected_s ? ` It took ${seconds(card.expected_s)} to start the last times.` : "";
  if (deed === "stop") return `Requests that run may end first; then its memory (${bytes(card.held_bytes)}) comes back.`;
  if (deed === "restart") return `Requests that run may end first; then it starts again by the same plan.${again}`;
  if (deed === "rollback") return `It goes back to the plan by which it was READY before; what runs by this one stops.${again}`;
  if (deed === "switch") return `This stops ${leaves(card)}.${again}`;
  return "";
}

async function act(deed, card, button) {
  const text = consequence(deed, card);
  if (text && !(await agreed(`${WORDS[deed]}: ${card.name}`, text, WORDS[deed]))) return;
  button.setAttribute("aria-busy", "true");
  try {
    await ask("POST", service(card.name, USES[deed]));
  } catch (problem) {
    tellFault(problem);
  } finally {
    button.removeAttribute("aria-busy");
  }
}

// Returns the buttons, and what brings them up to date.
export function deedButtons(name, looksOn) {
  let card = null;
  const reason = (deed) => (looksOn ? "this browser only looks on" : card.deeds[deed]);
  const made = Object.keys(WORDS).map((deed) => {
    const button = h("button", { type: "button", "data-deed": deed, onclick: () => {
      const why = reason(deed);
      if (why) tell(`${WORDS[deed]}: ${why}`);
      else act(deed, card, button);
    } }, WORDS[deed]);
    return [deed, button];
  });
  const row = h("div", { class: "row deeds", role: "group", "aria-label": `What can be done with ${name}` }, made.map(([, button]) => button));
  function update(fresh) {
    card = fresh;
    for (const [deed, button] of made) {
      const why = reason(deed);
      mark(button, "aria-disabled", String(Boolean(why)));
      mark(button, "title", why ?? (consequence(deed, card) || `${WORDS[deed]} ${name}`));
      button.hidden = deed === "rollback" && Boolean(card.is_new);
      say(button, WORDS[deed]);
    }
  }
  return [row, update];
}
