// Energy of each epoch, or of whatever repeats in this run, with its interval.
import {absent, Figure, tip} from "../figure.js";
import {axisUnit, count, duration, known, MISSING, significant, tick, withUnit} from "../format.js";
import * as theme from "../theme.js";
import {paletteOf} from "./names.js";

const BARS = 200;

const family = (path) => path.replace(/\[[^\]]*\]/g, "");

// Measured energies where there are any, else a model's estimates, which are marked as such everywhere.
function source(regions) {
  if (regions.some((r) => known(r.energy_j)))
    return {of: (r) => r.energy_j, uncertainty: (r) => r.uncertainty_j, part: (d) => d.in_total, mark: ""};
  if (regions.some((r) => known(r.modelled_j)))
    return {of: (r) => r.modelled_j, uncertainty: () => null, part: (d) => !d.measured, mark: "~"};
  return null;
}

// Epochs where there are any; else the family of most energy among those that repeat.
function repeated(regions, energy) {
  const groups = new Map();
  for (const r of regions) {
    const key = family(r.path);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(r);
  }
  const list = [...groups.entries()].filter(([, g]) => g.some((r) => known(energy(r))));
  const sum = ([, g]) => g.reduce((s, r) => s + (energy(r) ?? 0), 0);
  const byEnergy = (a, b) => sum(b) - sum(a);
  const epochs = list.filter(([, g]) => g[0].name === "epoch");
  const several = list.filter(([, g]) => g.length > 1);
  return (epochs.length ? epochs : several.length ? several : list).sort(byEnergy)[0] ?? null;
}

export function epochFigure(data) {
  const regions = data.summary.regions;
  if (!regions.length) return absent("Energy by epoch", "This run has no regions, so its energy cannot be told by epoch.",
    "Mark epochs and phases from the program (docs/markers.md), or give `ergometer run --epoch-regex` a pattern of its output.");
  const from = source(regions);
  if (!from) return absent("Energy by epoch", `The energy of none of the ${count(data.regions_total, "region")} is known.`, "See the warnings for why.");
  const [path, all] = repeated(regions, from.of);
  const list = all.slice(0, BARS);
  const partOf = (r, domain) => {
    const parts = r.domains.filter((d) => d.domain === domain && from.part(d) && known(d.energy_j));
    return parts.length ? parts.reduce((s, d) => s + d.energy_j, 0) : null;
  };
  const domains = [...new Set(list.flatMap((r) => r.domains.map((d) => d.domain)))].filter((d) => list.some((r) => known(partOf(r, d))));
  const palette = paletteOf(data);
  const whole = all.filter((r) => !r.cut && known(from.of(r)));
  const each = whole.reduce((s, r) => s + from.of(r), 0) / whole.reduce((s, r) => s + r.count, 0);
  const word = all[0].name || path;
  const text = (r, digits) => (known(from.of(r)) ? from.mark + withUnit(from.of(r), "J", digits) : MISSING);
  const withInterval = (r) => text(r) + (known(from.uncertainty(r)) ? ` ± ${withUnit(from.uncertainty(r), "J", 2)}` : "");
  const label = (r) => (r.index !== null ? `${r.index}${r.cut ? " (cut)" : ""}` : r.path);
  const perSample = whole.map((r) => r.metrics.energy_per_sample_j).filter(known);
  const sample = perSample.length ? ` ${withUnit(perSample.reduce((s, x) => s + x, 0) / perSample.length, "J")} a sample.` : "";
  const meaning = from.mark ? "a model's estimate of the energy, not a measurement." : "energy of the domains in the total; whiskers are 95 % intervals.";

  const figure = new Figure({
    height: 320,
    title: `${from.mark ? "Estimated energy" : "Energy"} ${word === "epoch" ? "by epoch" : `of each “${word}”`}${whole.length > 1 ? `: ${from.mark}${withUnit(each, "J")} each on average` : ""}`,
    subtitle: `${path}: ${meaning}${sample}`,
    words: `${list.slice(0, 20).map((r) => `${word} ${label(r)}: ${withInterval(r)}`).join("; ")}.`,
    notes: [all.length > BARS ? `The first ${BARS} of ${count(all.length, word)} are drawn.` : null,
      all.some((r) => r.cut) ? "What was cut short is drawn paler and is not part of the average." : null,
      all.some((r) => r.low_confidence) ? "Some are shorter than the sensors resolve: their intervals are wide." : null].filter(Boolean),
    option: () => option({list, domains, partOf, from, label, word, color: (d, i) => theme.colour(palette(d, i))}),
    table: {
      columns: [{title: word}, {title: "Time", right: true}, {title: "Energy", right: true}, {title: "± 95 %", right: true}, {title: "Mean power", right: true}, {title: "Per sample", right: true}],
      rows: all.map((r) => [r.path + (r.cut ? " (cut)" : ""), duration(r.duration_s), text(r), withUnit(from.uncertainty(r), "J", 2),
        known(from.of(r)) && r.duration_s > 0 ? from.mark + withUnit(from.of(r) / r.duration_s, "W") : MISSING, withUnit(r.metrics.energy_per_sample_j, "J")]),
    },
    csv: () => [["path", "count", "cut", "duration_s", from.mark ? "modelled_j" : "energy_j", "uncertainty_j", ...domains.map((d) => `${d}_energy_j`)],
      ...all.map((r) => [r.path, r.count, r.cut, r.duration_s, from.of(r), from.uncertainty(r), ...domains.map((d) => partOf(r, d))])],
  });
  return figure.element;
}

function option({list, domains, partOf, from, label, word, color}) {
  const g = theme.ground();
  const {scale, unit} = axisUnit(Math.max(...list.map((r) => (from.of(r) ?? 0) + (from.uncertainty(r) ?? 0))), "J");
  const opacity = (r) => (r.cut ? 0.4 : from.mark ? 0.6 : 1);
  return {
    grid: {left: 64, right: 16, top: 58, bottom: 46},
    legend: {data: domains},
    xAxis: {type: "category", data: list.map(label), name: word, nameLocation: "middle", nameGap: 28, axisTick: {alignWithLabel: true}},
    yAxis: {type: "value", name: `energy, ${unit}`, nameGap: 12, nameTextStyle: {align: "left", padding: [0, 0, 0, -40]}, min: 0, axisLabel: {formatter: tick}},
    series: [...domains.map((d, i) => ({
      name: d, type: "bar", stack: "energy", barMaxWidth: 56, itemStyle: {color: color(d, i)},
      data: list.map((r) => ({value: known(partOf(r, d)) ? partOf(r, d) / scale : null, itemStyle: {opacity: opacity(r)}})),
    })), whiskers(list, from, scale, g)],
    tooltip: {trigger: "axis", axisPointer: {type: "shadow"}, formatter: (hits) => {
      const r = list[hits[0].dataIndex];
      return tip(r.path, [[null, "time", duration(r.duration_s)], [null, "±", withUnit(from.uncertainty(r), "J", 2)],
        ...domains.map((d, i) => [color(d, i), d, from.mark + withUnit(partOf(r, d), "J")])]);
    }},
  };
}

function whiskers(list, from, scale, g) {
  return {
    type: "custom", silent: true, z: 5, encode: {x: 0, y: [1, 2]},
    data: list.map((r, i) => (known(from.of(r)) && known(from.uncertainty(r)) ? [i, Math.max(0, from.of(r) - from.uncertainty(r)) / scale, (from.of(r) + from.uncertainty(r)) / scale] : [i, null, null])),
    renderItem: (params, api) => {
      if (!known(api.value(1))) return null;
      const [x, low] = api.coord([api.value(0), api.value(1)]);
      const [, high] = api.coord([api.value(0), api.value(2)]);
      const line = (x1, y1, x2, y2) => ({type: "line", shape: {x1, y1, x2, y2}, style: {stroke: g.text, lineWidth: 1.25}});
      return {type: "group", children: [line(x, low, x, high), line(x - 5, low, x + 5, low), line(x - 5, high, x + 5, high)]};
    },
  };
}
