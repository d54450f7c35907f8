// Where the time of the last start went, beside the one before.

import { service } from "./api.js";
import { h } from "./dom.js";
import { seconds } from "./format.js";
import { fill, table } from "./waiting.js";

function row(longest) {
  return (stage) => {
    const bar = h("span", { class: "span" });
    bar.style.width = `${(100 * (stage.took_s ?? 0)) / (longest || 1)}%`;
    return [stage.name, h("div", { class: "spans" }, bar), seconds(stage.took_s), seconds(stage.before_s)];
  };
}

function draw(view) {
  const longest = Math.max(...view.rows.map((one) => one.took_s ?? 0));
  const advice = view.advice.map((one) => h("li", {}, `${one.title}. ${one.fix} (${one.rule})`));
  return [
    h("p", {}, `The last start took ${seconds(view.last.total_s)}${view.before ? `, the one before ${seconds(view.before.total_s)}` : ""}`
      + (view.slowest ? `; most of it went into: ${view.slowest}.` : ".")),
    table(["Stage", "", "Last", "Before"], view.rows.map(row(longest)), "Stages of the start"),
    advice.length ? h("ul", {}, advice) : "",
  ];
}

export function timelineTab(place, name) {
  fill(place, service(name, "timeline"), draw);
}
