// Draws the past with uPlot, and goes on as time does. Colours are Okabe and Ito's, which colour-blind people tell apart too.

import { ask } from "./api.js";
import { h } from "./dom.js";
import { clock, number } from "./format.js";
import { CHARTS, columns, events, SPANS } from "./series.js";

export const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"];
const EVENTS = { alert: "#d55e00", over: "#009e73", act: "#cc79a7", start: "#0072b2" };
const HEIGHT = 170, RENEW_MS = 30_000;
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function axis(label) {
  const line = { stroke: colour("--line"), width: 1 };
  return { stroke: colour("--dim"), grid: line, ticks: line, font: "12px system-ui", ...(label ? { values: (_, splits) => splits.map((at) => number(at)), size: 56 } : {}) };
}

function drawEvents(happened) {
  return (plot) => {
    const { left, top, width, height } = plot.bbox, pen = plot.ctx;
    pen.save();
    for (const { at, kind } of happened) {
      const x = plot.valToPos(at, "x", true);
      if (x < left || x > left + width) continue;
      pen.fillStyle = EVENTS[kind];
      pen.fillRect(x - 1, top, 2, height);
    }
    pen.restore();
  };
}

function drawBand(band) {
  return (plot) => {
    const top = plot.valToPos(band[1], "y", true), bottom = plot.valToPos(band[0], "y", true);
    plot.ctx.fillStyle = colour("--healthy");
    plot.ctx.fillRect(plot.bbox.left, top, plot.bbox.width, bottom - top);
  };
}

function options(chart, width, span, happened, band) {
  const low = () => [0, chart.most ?? null];
  return {
    width, height: HEIGHT, cursor: { drag: { x: false, y: false } }, legend: { live: true },
    scales: { x: { range: () => [Date.now() / 1000 - span, Date.now() / 1000] }, y: { range: (_, __, high) => [0, low()[1] ?? (high > 0 ? high * 1.1 : 1)] } },
    axes: [axis(), axis(chart.unit)],
    hooks: { drawAxes: band && chart.band ? [drawBand(band)] : [], draw: [drawEvents(happened)] },
    series: [{ label: "time" }, ...chart.lines.map(([label, , at]) => ({ label, stroke: COLOURS[at], width: 2, spanGaps: false, points: { show: false }, value: (_, value) => number(value) }))],
  };
}

function summary(chart, data) {
  const values = data[1].filter((value) => value != null);
  return `${chart.title}: last ${number(values.at(-1))}, lowest ${number(Math.min(...values))}, highest ${number(Math.max(...values))} ${chart.unit}`;
}

export function chartsTab(place, name) {
  let span = 3600, band = null, timer = 0, isOpen = true, drawn = [];
  const choice = h("select", { id: "span", onchange: () => { span = Number(choice.value); read(); } }, SPANS.map(([words, length]) => h("option", { value: length }, words)));
  const body = h("div", { class: "charts" }), list = h("ul", { class: "events" });
  place.replaceChildren(h("div", { class: "row" }, h("label", { for: "span" }, "The last "), choice), body, list);

  function draw(service, machine) {
    const happened = events(service);
    drawn.forEach((plot) => plot.destroy());
    drawn = [];
    const charts = CHARTS.map((chart) => [chart, columns(chart, (chart.isMachine ? machine : service).rows)]).filter(([, data]) => data);
    body.replaceChildren();
    if (!charts.length) body.append(h("p", { class: "dim" }, "Nothing is kept yet: a point a minute is, while it is READY."));
    for (const [chart, data] of charts) {
      const figure = h("figure", { "data-chart": chart.name, role: "img", "aria-label": summary(chart, data) }, h("figcaption", {}, `${chart.title} (${chart.unit})`));
      body.append(figure);
      drawn.push(new uPlot(options(chart, figure.clientWidth, span, happened, band), data, figure));
    }
    list.replaceChildren(...happened.slice(0, 20).map((one) => h("li", {}, h("span", { class: `swatch ${one.kind}` }), `${clock(one.at)} ${one.text}`)));
  }

  async function read() {
    clearTimeout(timer);
    const of = (service) => ask("GET", `/api/history?service=${encodeURIComponent(service)}&span_s=${span}`).catch(() => ({ rows: [], alerts: [], acts: [], starts: [] }));
    const told = await Promise.all([of(name), of("")]);
    if (!isOpen) return;
    draw(...told);
    timer = setTimeout(read, RENEW_MS);
  }

  const redraw = () => read();
  addEventListener("resize", redraw);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", redraw);
  read();
  return {
    update: (card) => { band = card.pace.band; },
    close() { isOpen = false; clearTimeout(timer); removeEventListener("resize", redraw); scheme.removeEventListener("change", redraw); drawn.forEach((plot) => plot.destroy()); },
  };
}
