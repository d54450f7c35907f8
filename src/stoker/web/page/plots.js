// Draws a benchmark's charts, as `stoker bench report` does.

import { COLOURS, colour } from "./charts.js";
import { h } from "./dom.js";
import { number } from "./format.js";

const HEIGHT = 260, FEW = 13;

function axis(chart, isX) {
  const words = isX && chart.words.length > 0, line = { stroke: colour("--line"), width: 1 };
  return {
    stroke: colour("--dim"), grid: line, ticks: line, font: "12px system-ui", labelFont: "12px system-ui", label: isX ? chart.x_label : chart.y_label,
    size: words ? 96 : isX ? 44 : 58, rotate: words && chart.words.length > 2 ? -35 : 0,
    values: (_, splits) => splits.map((at) => (words ? chart.words[at] ?? "" : number(at, at > 0 && at < 1 ? 2 : 0))),
    splits: words || (isX && chart.name !== "time" && chart.x.length < FEW) ? () => chart.x : undefined,
  };
}

function line(chart) {
  const paths = chart.kind === "bars" ? uPlot.paths.bars({ size: [0.6, 80] }) : chart.kind === "steps" ? uPlot.paths.stepped({ align: 1 }) : undefined;
  return (one, at) => ({ label: one.label, stroke: COLOURS[at % COLOURS.length], width: 2, paths, value: (_, value) => number(value, 2), spanGaps: true,
    fill: chart.kind === "bars" ? `${COLOURS[at % COLOURS.length]}cc` : undefined, points: { show: chart.kind === "lines", size: 6 } });
}

function options(chart, width) {
  const isBars = chart.kind === "bars", isDoubling = chart.name === "throughput" && chart.kind === "lines" && chart.x.every((at) => at > 0);
  const x = { time: false, ...(isBars ? { range: () => [-0.7, chart.x.length - 0.3] } : isDoubling ? { distr: 3, log: 2 } : {}) };
  return {
    width, height: HEIGHT, cursor: { drag: { x: false, y: false } }, scales: { x, y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } }, axes: [axis(chart, true), axis(chart, false)],
    series: [{ label: chart.x_label || "cell", value: (_, value) => (value == null ? "–" : chart.words[value] ?? number(value)) }, ...chart.series.map(line(chart))],
  };
}

function summary(chart) {
  return `${chart.title}: ${chart.series.map((one) => `${one.label} up to ${number(Math.max(...one.values.filter((value) => value != null)), 2)}`).join(", ")} ${chart.y_label}`;
}

// Draws into the place; returns what takes the charts away again.
export function plots(place, charts) {
  let drawn = [];
  function draw() {
    close();
    place.replaceChildren();
    for (const chart of charts) {
      const figure = h("figure", { "data-chart": chart.name, role: "img", "aria-label": summary(chart) }, h("figcaption", {}, [chart.title, chart.note].filter(Boolean).join("; ")));
      place.append(figure);
      drawn.push(new uPlot(options(chart, figure.clientWidth), [chart.x, ...chart.series.map((one) => one.values)], figure));
    }
  }
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  function close() { drawn.forEach((one) => one.destroy()); drawn = []; }
  addEventListener("resize", draw);
  scheme.addEventListener("change", draw);
  draw();
  return () => { removeEventListener("resize", draw); scheme.removeEventListener("change", draw); close(); };
}
