// Ready-made settings for the programs that ask the models here. No key is in them, and none comes here.

import { ask } from "./api.js";
import { h, mark, say } from "./dom.js";
import { tell } from "./notices.js";
import { fill, table } from "./waiting.js";

async function copy(text, place) {
  try {
    await navigator.clipboard.writeText(text);
    tell("Copied.");
  } catch { // a browser gives its clipboard to pages of this machine, or by TLS, alone
    getSelection().selectAllChildren(place);
    tell("It is selected: copy it with Ctrl+C.");
  }
}

function shown(one) {
  const text = h("pre", { tabindex: "0", role: "group", "aria-label": `Settings for ${one.title}` }, one.text);
  return [h("div", { class: "row" }, h("h2", {}, one.title), h("span", { class: "dim" }, one.place), h("span", { class: "grow" }),
    h("button", { type: "button", class: "main", "data-copy": one.client, onclick: () => copy(one.text, text) }, "Copy")), text,
    one.settings.length ? table(["Setting", "Value", "Why"], one.settings.map((each) => [h("code", {}, each.name), h("code", {}, each.value), each.because]), "Reasons") : ""];
}

function key(file) {
  return h("p", {}, "The key is in none of them. It lies on the machine, for its owner alone: ", h("code", {}, `cat ${file}`), ". A key of its own, which can be revoked alone: ", h("code", {}, "stoker keys add NAME"), ".");
}

export function clientsView(place, wanted) {
  const body = h("section", { class: "card", "aria-label": "Clients" });
  place.replaceChildren(body);

  function draw(view) {
    const groups = [["Programs that ask the models", "", view.configs], ["Agents that ask Stoker itself, by stoker mcp", "mcp-", view.agents]];
    const all = new Map(groups.flatMap(([, before, configs]) => configs.map((one) => [`${before}${one.client}`, one])));
    const first = all.has(wanted) ? wanted : all.keys().next().value, one = h("div", { class: "settings", role: "status" });
    const links = new Map([...all].map(([name, config]) => [name, h("button", { type: "button", "data-client": name, onclick: () => choose(name) }, config.title)]));
    function choose(name) {
      for (const [other, link] of links) mark(link, "aria-pressed", String(other === name));
      one.replaceChildren(...shown(all.get(name)).filter(Boolean));
      history.replaceState(null, "", `#/clients/${name}`); // without a visit in between
    }
    const model = h("select", { id: "model", onchange: () => read(model.value) }, !view.model && h("option", { value: "" }, "choose one"), view.models.map((name) => h("option", { value: name, selected: name === view.model }, name)));
    const choice = view.models.length > 0 && h("div", { class: "row" }, h("label", { for: "model" }, "Model"), model);
    const none = !view.model && h("p", {}, view.models.length ? "Choose a model: several are here." : "No model is here yet: start a service first.");
    const lists = groups.filter(([, , configs]) => configs.length).map(([words, before, configs]) =>
      h("div", { class: "row", role: "group", "aria-label": words }, h("span", { class: "dim" }, words), configs.map((config) => links.get(`${before}${config.client}`))));
    if (first) choose(first);
    return [h("h1", {}, "Clients"), choice, none, key(view.key_file), ...lists, one].filter(Boolean);
  }

  const read = (model) => fill(body, `/api/clients${model ? `?model=${encodeURIComponent(model)}` : ""}`, draw);
  read();
  return { update() {}, close() {} };
}
