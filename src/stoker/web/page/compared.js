// Two benchmarks: what differs between them, and how much each figure changed, in the words of `stoker bench compare`.

import { h } from "./dom.js";
import { UNKNOWN } from "./format.js";
import { fill, table } from "./waiting.js";

const name = (letter, run) => h("p", {}, h("strong", {}, `${letter}: `), run.id == null ? "" : h("a", { href: `#/bench/${run.id}` }, `run ${run.id}`),
  ` ${run.subject.model} on ${[run.subject.engine, run.subject.engine_version].filter(Boolean).join(" ") || "an unknown engine"}`);
const says = (one) => h("span", { class: `change ${one.verdict}` }, one.says);
const texts = (words) => (words.length ? h("ul", { class: "doubts" }, words.map((text) => h("li", {}, text))) : "");

function draw(view) {
  const differences = view.differences.map((one) => [one.what, one.a ?? UNKNOWN, one.b ?? UNKNOWN]);
  const rows = view.cells.flatMap((cell) => cell.changes.map((one, at) => [at ? "" : cell.name, one.figure, one.a, one.b, says(one)]));
  const doubts = [...view.doubts, ...view.cells.flatMap((cell) => cell.doubts.map((text) => `${cell.name}: ${text}`))];
  const alone = [["A", view.only_a], ["B", view.only_b]].filter(([, cells]) => cells.length).map(([side, cells]) => h("p", { class: "dim" }, `Only in ${side}: ${cells.join("; ")}`));
  return [h("h1", {}, "B beside A"), name("A", view.a), name("B", view.b),
    view.overall.length ? [h("h2", {}, "All cells together"), table(["Figure", "B beside A"], view.overall.map((one) => [one.figure, says(one)]), "All cells together")] : "",
    rows.length ? [h("h2", {}, "Cell by cell"), table(["Cell", "Figure", "A", "B", "B beside A"], rows, "Cells compared")]
      : h("p", {}, "No cell was asked of both, so nothing is compared: measure the same prompt, new tokens, depth and concurrency."),
    h("h2", {}, "What differs"), differences.length ? table(["What", "A", "B"], differences, "Differences") : h("p", {}, "The same subject, as far as is known."),
    doubts.length ? h("h2", {}, "What is doubtful") : "", texts(doubts), ...alone].flat();
}

export function compared(place, a, b) {
  fill(place, `/api/bench/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`, draw);
  return () => {};
}
