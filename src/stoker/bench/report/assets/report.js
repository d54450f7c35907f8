// Draws the charts of a report. Colours are Okabe and Ito's, which colour-blind people tell apart too.
"use strict";
(() => {
  const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c8c8c", "#b8a800"];
  const HEIGHT = 320;
  const charts = JSON.parse(document.getElementById("data").textContent);
  const place = document.getElementById("charts");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const number = (value) => value == null ? "–" : value >= 1000 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(4));

  function axis(chart, side) {
    const isX = side === "x";
    const words = chart.words.length ? (_, splits) => splits.map((at) => chart.words[at] ?? "") : (_, splits) => splits.map(number);
    return {
      stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") },
      label: isX ? chart.x_label : chart.y_label, size: isX ? (chart.words.length ? 90 : 46) : 70,
      values: isX ? words : (_, splits) => splits.map(number),
      rotate: isX && chart.words.length > 3 ? -35 : 0,
      splits: isX && chart.words.length ? () => chart.x : isX && chart.name !== "time" && chart.x.length < 13 ? () => chart.x : undefined,
    };
  }

  function options(chart, width) {
    const paths = chart.kind === "bars" ? uPlot.paths.bars({ size: [0.6, 80] }) : chart.kind === "steps" ? uPlot.paths.stepped({ align: 1 }) : undefined;
    const isWide = chart.x.length > 1 && chart.x.every((at) => at > 0) && chart.name === "throughput" && chart.kind === "lines";
    const x = chart.kind === "bars" ? { time: false, range: () => [-0.7, chart.x.length - 0.3] } : isWide ? { time: false, distr: 3, log: 2 } : { time: false };
    return {
      width, height: HEIGHT, scales: { x, y: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
      axes: [axis(chart, "x"), axis(chart, "y")],
      series: [
        { label: chart.x_label || "cell", value: (_, value) => value == null ? "–" : chart.words[value] ?? number(value) },
        ...chart.series.map((one, at) => ({
          label: one.label, stroke: COLOURS[at % COLOURS.length], width: 2, paths, value: (_, value) => number(value),
          fill: chart.kind === "bars" ? COLOURS[at % COLOURS.length] : undefined,
          points: { show: chart.kind === "lines", size: 6 }, spanGaps: true,
        })),
      ],
    };
  }

  function save(chart, drawn) {
    const sheet = document.createElement("canvas");
    const from = drawn.ctx.canvas;
    sheet.width = from.width;
    sheet.height = from.height;
    const pen = sheet.getContext("2d");
    pen.fillStyle = colour("--paper");
    pen.fillRect(0, 0, sheet.width, sheet.height);
    pen.drawImage(from, 0, 0);
    const link = document.createElement("a");
    link.download = chart.name + ".png";
    link.href = sheet.toDataURL("image/png");
    link.click();
  }

  function show(chart) {
    const figure = document.createElement("figure");
    figure.id = "chart-" + chart.name;
    const caption = document.createElement("figcaption");
    caption.textContent = chart.title;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "PNG";
    figure.append(button, caption);
    place.append(figure);
    const data = [chart.x, ...chart.series.map((one) => one.values)];
    const drawn = new uPlot(options(chart, place.clientWidth), data, figure);
    button.addEventListener("click", () => save(chart, drawn));
    if (chart.note) {
      const note = document.createElement("div");
      note.className = "note";
      note.textContent = chart.note;
      figure.append(note);
    }
  }

  function showAll() {
    place.replaceChildren();
    charts.forEach(show);
  }

  document.getElementById("shade").addEventListener("click", () => {
    const isDark = document.documentElement.classList.contains("dark") ||
      (!document.documentElement.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.className = isDark ? "light" : "dark";
    showAll();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showAll);
  addEventListener("resize", showAll);
  showAll();
})();
