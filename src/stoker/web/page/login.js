// Lets somebody in by the control key, once; what is kept of it is a cookie that no script reads.

import { ask, keepWord } from "./api.js";
import { h, say } from "./dom.js";

export const session = () => ask("GET", "/page/session");

export async function leave() {
  await ask("DELETE", "/page/session");
  keepWord(null);
}

async function enter(key, looksOn) {
  const told = await ask("POST", `/page/session${looksOn ? "?looks-on" : ""}`, undefined, { authorization: `Bearer ${key}` });
  keepWord(told.word);
  return told;
}

export function showLogin(place, why, onEntered) {
  const key = h("input", { id: "key", type: "password", required: true, autocomplete: "off", spellcheck: "false" });
  const looksOn = h("input", { id: "only-look", type: "checkbox" });
  const problem = h("p", { class: "bad", role: "alert" });
  const button = h("button", { type: "submit", class: "main" }, "Log in");
  async function submit(event) {
    event.preventDefault();
    button.disabled = true;
    try {
      onEntered(await enter(key.value.trim(), looksOn.checked));
    } catch (fault) {
      say(problem, fault.message);
      key.select();
    } finally {
      button.disabled = false;
    }
  }
  place.replaceChildren(h("form", { class: "login card", onsubmit: submit },
    h("h1", {}, "Log in"), why && h("p", {}, why),
    h("p", { class: "dim" }, "The control key lies on the machine, for its owner alone: ",
      h("code", {}, "cat ~/.local/state/stoker/control.key")),
    h("label", { for: "key" }, "Control key"), key,
    h("label", { class: "check" }, looksOn, " Only look on: this browser changes nothing"),
    problem, button));
  key.focus();
}
