// What is drawn of a service's past and of the machine's.

const GIB = 1024 ** 3;

export const CHARTS = [
  { name: "rate", title: "Tokens a second", unit: "tokens / s", lines: [["written", (row) => row.tokens_per_s, 0]] },
  { name: "accept-rate", title: "Accept rate", unit: "accepted / proposed", lines: [["accept rate", (row) => row.accept_rate, 2]], band: true, most: 1 },
  { name: "accept-length", title: "Accept length", unit: "tokens a verify step", lines: [["accept length", (row) => row.accept_length, 4]] },
  { name: "ttft", title: "Time to first token", unit: "s", lines: [["mean", (row) => row.ttft_mean_s, 0], ["slowest", (row) => row.ttft_most_s, 3]] },
  { name: "token", title: "Time of a token", unit: "ms", lines: [["mean", (row) => (row.token_mean_s == null ? null : row.token_mean_s * 1000), 0]] },
  { name: "requests", title: "Requests", unit: "at once, at most", lines: [["running", (row) => row.running_most, 0], ["waiting", (row) => row.waiting_most, 3]] },
  { name: "memory", title: "Memory available", unit: "GiB, at the least", isMachine: true,
    lines: [["MemAvailable", (row) => (row.available_least_bytes == null ? null : row.available_least_bytes / GIB), 5]] },
  { name: "power", title: "Power", unit: "W, at most", isMachine: true, lines: [["power", (row) => row.power_most_w, 3]] },
  { name: "clock", title: "SM clock", unit: "MHz, at the least", isMachine: true, lines: [["clock", (row) => row.clock_least_mhz, 4]] },
];

export const SPANS = [["hour", 3600], ["6 hours", 6 * 3600], ["day", 86400], ["week", 7 * 86400], ["month", 30 * 86400], ["year", 365 * 86400]];

// Columns as uPlot takes them; a chart of which nothing is known is none.
export function columns(chart, rows) {
  const values = chart.lines.map(([, read]) => rows.map((row) => read(row) ?? null));
  return values.some((one) => one.some((value) => value != null)) ? [rows.map((row) => row.at), ...values] : null;
}

// What happened: a line in each chart, and a list for whoever cannot see them.
export function events(history) {
  const alerts = history.alerts.flatMap((one) => [{ at: one.fired ?? one.since, kind: "alert", text: `${one.title}: ${one.why}` },
    ...(one.resolved ? [{ at: one.resolved, kind: "over", text: `over: ${one.title}` }] : [])]);
  const acts = history.acts.map((one) => ({ at: one.at, kind: "act", text: `${one.act}: ${one.outcome}` }));
  const starts = history.starts.map((at) => ({ at, kind: "start", text: "a start" }));
  return [...alerts, ...acts, ...starts].sort((one, other) => other.at - one.at);
}
