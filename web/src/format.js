// Numbers for people: few digits, units with decimal prefixes, a dash for what is not known.

export const MISSING = "—";
const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

export const known = (value) => typeof value === "number" && Number.isFinite(value);

// `digits` significant digits without an exponent.
export function significant(value, digits = 4) {
  if (!known(value)) return MISSING;
  if (value === 0) return "0";
  // What rounds up to the next power of ten has a digit more before the point.
  const before = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(digits))))) + 1;
  const text = value.toFixed(Math.min(12, Math.max(0, digits - before)));
  return text.replace("-", "−");
}

// A number on an axis.
export const tick = (value) => String(Number(value.toPrecision(6))).replace("-", "−");

// Units that take prefixes; others (s, %, °C) are written plain.
const PREFIXED = /^(W|J|Wh|B|B\/s|Hz|J\/.+)$/;

export function withUnit(value, unit, digits = 4) {
  if (!known(value)) return MISSING;
  if (unit === "1") return percent(value);
  if (unit === "Cel") return `${significant(value, 3)} °C`;
  if (unit === "s") return duration(value);
  if (!PREFIXED.test(unit)) return unit ? `${significant(value, digits)} ${unit}` : significant(value, digits);
  if (value === 0) return `0 ${unit}`;
  const size = Math.abs(value);
  const rounding = 1 - 0.5 * 10 ** -digits;
  const [scale, prefix] = PREFIXES.find(([s]) => size >= s * rounding) ?? PREFIXES[PREFIXES.length - 1];
  return `${significant(value / scale, digits)} ${prefix}${unit}`;
}

export function percent(ratio, digits = 1) {
  if (!known(ratio)) return MISSING;
  const value = 100 * ratio;
  const whole = Math.abs(value - Math.round(value)) < 0.05;
  return `${value.toFixed(whole ? 0 : digits).replace("-", "−")} %`;
}

export function duration(seconds) {
  if (!known(seconds)) return MISSING;
  const size = Math.abs(seconds);
  if (size > 0 && size < 1) return size < 1e-3 ? `${significant(seconds * 1e6, 3)} µs` : `${significant(seconds * 1e3, 3)} ms`;
  if (size < 120) return `${significant(seconds, 4)} s`;
  const whole = Math.round(seconds);
  const two = (n) => String(n).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor(whole / 60) % 60)} min`;
}

// A moment since the command's start, for an axis that spans `span` seconds.
export function moment(seconds, span) {
  if (span < 180) return `${Number(seconds.toPrecision(6))} s`;
  const sign = seconds < 0 ? "−" : "";
  const whole = Math.abs(Math.round(seconds));
  const two = (n) => String(n).padStart(2, "0");
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h > 0 || span >= 7200 ? `${sign}${h}:${two(m)}${span < 7200 && s ? `:${two(s)}` : ""} h` : `${sign}${m}:${two(s)} min`;
}

const STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
// Moments for the labels of a time axis from `from` to `to`: about six, at round numbers of seconds, minutes or hours.
export function moments(from, to) {
  const wanted = (to - from) / 6;
  const decimal = 10 ** Math.ceil(Math.log10(wanted));
  const step = wanted < 1 ? [decimal / 5, decimal / 2, decimal].find((s) => s >= wanted * 0.99) ?? decimal : STEPS.find((s) => s >= wanted) ?? 86400 * Math.ceil(wanted / 86400);
  const out = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to * (1 + 1e-12); ++i) out.push(Number((i * step).toPrecision(12)));
  return out;
}

// Joules with their interval: "12.35 kJ ± 0.11 kJ".
export function energy(joules, uncertainty) {
  if (!known(joules)) return MISSING;
  return known(uncertainty) ? `${withUnit(joules, "J")} ± ${withUnit(uncertainty, "J", 2)}` : withUnit(joules, "J");
}

export function wattHours(joules) {
  return withUnit(known(joules) ? joules / 3600 : null, "Wh");
}

// The prefix that suits an axis whose largest value is `largest`: divide by `scale`, write `unit`.
export function axisUnit(largest, unit) {
  if (unit === "1") return {scale: 0.01, unit: "%"};
  if (unit === "Cel") return {scale: 1, unit: "°C"};
  if (!PREFIXED.test(unit) || !(largest > 0)) return {scale: 1, unit};
  const [scale, prefix] = PREFIXES.find(([s]) => largest >= s) ?? [1, ""];
  return {scale, unit: prefix + unit};
}

// A number for a table's cell or a CSV field: as exact as the data, without an exponent where it is readable.
export const exact = (value) => (known(value) ? String(value) : "");

const plurals = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
export {plurals as count};

// "a, b and c".
export function listed(items) {
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} and ${items[items.length - 1]}`;
}
