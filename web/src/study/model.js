// A study's table with what the figures ask of it: names of cells, levels, centres by cell and metric.
import {known, significant, withUnit} from "../format.js";

export class Study {
  constructor(data) {
    Object.assign(this, data.table, {data});
    this.metric = new Map(this.metrics.map((m) => [m.name, m]));
    this.centre = new Map(data.centres.map((c) => [`${c.cell}\n${c.metric}`, c]));
    this.varying = this.factors.map((f, i) => ({...f, index: i})).filter((f) => f.levels.length > 1);
    this.named = this.varying.filter((f) => f.values.some((v) => !known(v)) || f.values.length === 0);
    this.numeric = this.varying.filter((f) => !this.named.some((n) => n.index === f.index));
    this.has = new Set(data.centres.map((c) => c.metric));
  }

  at(cell, metric) {
    return this.centre.get(`${cell}\n${metric}`) ?? null;
  }

  level(cell, factor) {
    return this.factors[factor].levels[this.cells[cell][factor]];
  }

  value(cell, factor) {
    return this.factors[factor].values[this.cells[cell][factor]] ?? null;
  }

  // The levels of what varies, those of `without` aside.
  cellName(cell, without = []) {
    const parts = this.varying.filter((f) => !without.includes(f.index)).map((f) => (this.named.some((n) => n.index === f.index) ? this.level(cell, f.index) : `${title(f.name)} ${this.level(cell, f.index)}`));
    return parts.join(", ") || "all";
  }

  text(value, metric, digits = 4) {
    const m = this.metric.get(metric);
    if (!known(value)) return "—";
    const text = m?.unit ? withUnit(value, m.unit === "1/s" ? "/s" : m.unit, digits) : isRatio(m) ? withUnit(value, "1") : significant(value, digits);
    return estimated(metric) ? `~${text}` : text;
  }

  centreText(centre) {
    if (!centre) return "—";
    const unit = this.text(centre.value, centre.metric);
    return centre.interval ? `${unit} (${this.text(centre.interval[0], centre.metric, 3)} to ${this.text(centre.interval[1], centre.metric, 3)})` : unit;
  }

  metricTitle(metric) {
    return this.metric.get(metric)?.title || title(metric);
  }
}

export const title = (name) => name.replaceAll("_", " ").replace(/\bgpus?\b/g, (word) => (word === "gpu" ? "GPU" : "GPUs"));
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
export const estimated = (metric) => metric.startsWith("modelled_");
export const isRatio = (m) => Boolean(m) && m.unit === "" && m.name.endsWith("_ratio");

// Geometric mean: a ratio of two of them is the mean ratio.
export function geometric(values) {
  const list = values.filter((v) => known(v) && v > 0);
  return list.length ? Math.exp(list.reduce((s, v) => s + Math.log(v), 0) / list.length) : null;
}
