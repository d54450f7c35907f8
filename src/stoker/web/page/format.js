// Says amounts as people read them. Unknown is a dash, and never 0.

export const UNKNOWN = "–";
const GIB = 1024 ** 3, MIB = 1024 ** 2;

export function bytes(count) {
  if (count == null) return UNKNOWN;
  return count >= GIB ? `${(count / GIB).toFixed(1)} GiB` : `${Math.round(count / MIB)} MiB`;
}

export function number(value, digits = 1) {
  if (value == null) return UNKNOWN;
  return value >= 1000 ? Math.round(value).toLocaleString("en") : value.toFixed(value >= 100 ? 0 : digits);
}

export function seconds(value) {
  if (value == null) return UNKNOWN;
  if (value < 0.995) return `${Math.round(value * 1000)} ms`;
  if (value < 9.95) return `${value.toFixed(1)} s`;
  if (value < 59.5) return `${Math.round(value)} s`;
  const minutes = Math.floor(value / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

export const now = () => Date.now() / 1000;

export function ago(since) {
  return since ? seconds(Math.max(0, Math.round(now() - since)) || 1) : UNKNOWN;
}

export function clock(at) {
  return new Date(at * 1000).toLocaleTimeString("en-GB");
}
