// What channels are called on the page.

const COLUMNS = {
  gpu_active_ratio: "GPU busy", sm_active_ratio: "SMs active", sm_occupancy_ratio: "SM occupancy", memory_active_ratio: "memory busy",
  tensor_active_ratio: "tensor cores active", dram_active_ratio: "memory bandwidth used", used_bytes: "memory used",
  memory_used_bytes: "memory used", rss_bytes: "resident memory", cpu_s: "CPU use", sm_clock_hz: "SM clock",
  memory_clock_hz: "memory clock", temperature_c: "temperature", cpu_user_s: "CPU, user", cpu_system_s: "CPU, system",
};
const SUFFIX = /_(ratio|bytes|hz|c|cel|s|w|j)$/;

export function columnTitle(series) {
  const known = COLUMNS[series.column];
  if (known) return known;
  return series.column.replace(SUFFIX, "").replaceAll("_", " ");
}

const SCOPES = {tree: "measured processes", system: "whole node", node: "node", package: "processor", dram: "DRAM", gpu: "GPU"};
export function domainTitle(domain, node, several) {
  const text = SCOPES[domain] ?? domain;
  return several ? `${node}: ${text}` : text;
}

export const METHODS = {samples: "driver's sample buffer", counter: "energy counter", integral: "power readings, integrated",
  average: "averaged power, integrated", model: "model, not measured"};

// One place in the palette for each domain, so that gpu/0 has the same colour in every figure. Lines of several nodes would
// share it, so there the order of the lines decides.
export function paletteOf(data) {
  const domains = [...new Set([...data.summary.nodes.flatMap((n) => n.domains.map((d) => d.domain)), ...data.series.map((s) => s.domain)])];
  const gpusFirst = (domain) => (domain.startsWith("gpu/") ? 0 : 1);
  domains.sort((a, b) => gpusFirst(a) - gpusFirst(b) || a.localeCompare(b, "en", {numeric: true}));
  return data.summary.nodes.length > 1 ? (domain, i) => i : (domain, i) => (domains.includes(domain) ? domains.indexOf(domain) : i);
}
