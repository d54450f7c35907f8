// The numbers of a service: how fast, how soon, how many, and what its drafts are worth.

import { h, mark, say } from "./dom.js";
import { number, seconds, UNKNOWN } from "./format.js";

const share = (value) => (value == null ? UNKNOWN : value.toFixed(2));

function accept(pace) {
  if (pace.accept_rate == null) return UNKNOWN;
  return pace.accept_length == null ? share(pace.accept_rate) : `${share(pace.accept_rate)} · ${pace.accept_length.toFixed(2)}`;
}

function isOut({ accept_rate: rate, band }) {
  return rate != null && band != null && (rate < band[0] || rate > band[1]);
}

const FIGURES = [
  ["tokens / s", (pace) => number(pace.tokens_per_s), "Tokens written a second, all requests together, over ten seconds"],
  ["TTFT", (pace) => seconds(pace.ttft_s), "Time to the first token: the median of the streams of the last quarter of an hour"],
  ["a token", (pace) => (pace.token_s == null ? UNKNOWN : `${number(pace.token_s * 1000)} ms`), "Time of a token after the first: the median of streams"],
  ["running", (pace) => pace.running ?? UNKNOWN, "Requests that the engine works on"],
  ["queued", (pace) => pace.waiting ?? UNKNOWN, "Requests that wait for their turn"],
  ["accept rate · length", accept, "Accepted of proposed draft tokens, and tokens a verify step"],
];

export function figures() {
  const values = FIGURES.map(() => h("dd", {}, UNKNOWN));
  const list = h("dl", { class: "figures" },
    FIGURES.map(([name, , what], at) => h("div", { title: what }, h("dt", {}, name), values[at])));
  function update(pace) {
    FIGURES.forEach(([, read], at) => say(values[at], String(read(pace))));
    const last = values.at(-1);
    mark(last, "class", isOut(pace) ? "out" : "");
    mark(last.parentElement, "title", pace.band ? `usual accept rate: ${share(pace.band[0])} to ${share(pace.band[1])}` : FIGURES.at(-1)[2]);
  }
  return [list, update];
}
