// Energy of each epoch, or of whatever repeats in this run, with its interval.
import {absent, Figure, tip} from "../figure.js";
import {axisUnit, count, duration, energy, known, MISSING, significant, withUnit} from "../format.js";
import * as theme from "../theme.js";

const BARS = 200;

const family = (path) => path.replace(/\[[^\]]*\]/g, "");

// Epochs where there are any; else the family of most energy among those that repeat.
function repeated(regions) {
  const groups = new Map();
  for (const r of regions) {
    const key = family(r.path);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(r);
  }
  const list = [...groups.entries()].filter(([, g]) => g.some((r) => known(r.energy_j)));
  const epochs = list.filter(([, g]) => g[0].name === "epoch");
  const sum = ([, g]) => g.reduce((s, r) => s + (r.energy_j ?? 0), 0);
  const candidates = (epochs.length ? epochs : list.filter(([, g]) => g.length > 1)).sort((a, b) => sum(b) - sum(a));
  return candidates[0] ?? list.sort((a, b) => sum(b) - sum(a))[0] ?? null;
}

export function epochFigure(data) {
  const regions = data.summary.regions;
  const title = "Energy by epoch";
  if (!regions.length) return absent(title, "This run has no regions, so its energy cannot be told by epoch.",
    "Mark epochs and phases from the program (docs/markers.md), or give `ergometer run --epoch-regex` a pattern of its output.");
  const found = repeated(regions);
  if (!found) return absent(title, `The energy of none of the ${count(regions.length, "region")} is known.`, "See the warnings for why.");
  const [path, all] = found;
  const list = all.slice(0, BARS);
  const domains = [...new Set(list.flatMap((r) => r.domains.filter((d) => d.in_total && known(d.energy_j)).map((d) => d.domain)))];
  const whole = all.filter((r) => !r.cut && known(r.energy_j));
  const each = whole.reduce((s, r) => s + r.energy_j, 0) / whole.reduce((s, r) => s + r.count, 0);
  const word = all[0].name || path;
  const label = (r) => (all[0].index !== null && r.index !== null ? `${r.index}${r.cut ? " (cut)" : ""}` : r.path);
  const perSample = whole.filter((r) => known(r.metrics.energy_per_sample_j)).map((r) => r.metrics.energy_per_sample_j);
  const sample = perSample.length ? ` ${withUnit(perSample.reduce((s, x) => s + x, 0) / perSample.length, "J")} a sample.` : "";

  const figure = new Figure({
    height: 320,
    title: whole.length > 1 ? `Energy by ${word}: ${withUnit(each, "J")} each on average` : `Energy by ${word}`,
    subtitle: `${path}: energy of the domains in the total; whiskers are 95 % intervals.${sample}`,
    words: () => list.slice(0, 20).map((r) => `${word} ${label(r)}: ${energy(r.energy_j, r.uncertainty_j)}`).join("; ") + ".",
    notes: () => [all.length > BARS ? `The first ${BARS} of ${count(all.length, word)} are drawn.` : null,
      all.some((r) => r.cut) ? "What was cut short is drawn paler and is not part of the average." : null,
      all.some((r) => r.low_confidence) ? "Some are shorter than the sensors resolve: their intervals are wide." : null].filter(Boolean),
    option: () => option(list, domains, label, word),
    table: () => ({
      columns: [{title: word}, {title: "Time", right: true}, {title: "Energy", right: true}, {title: "±", right: true}, {title: "Mean power", right: true}, {title: "Per sample", right: true}],
      rows: all.map((r) => [r.path + (r.cut ? " (cut)" : ""), duration(r.duration_s), withUnit(r.energy_j, "J"), withUnit(r.uncertainty_j, "J", 2),
        known(r.energy_j) && r.duration_s > 0 ? withUnit(r.energy_j / r.duration_s, "W") : MISSING, withUnit(r.metrics.energy_per_sample_j, "J")]),
    }),
    csv: () => [["path", "count", "cut", "duration_s", "energy_j", "uncertainty_j", ...domains.map((d) => `${d}_energy_j`)],
      ...all.map((r) => [r.path, r.count, r.cut, r.duration_s, r.energy_j, r.uncertainty_j, ...domains.map((d) => part(r, d))])],
  });
  return figure.element;
}

const part = (r, domain) => {
  const parts = r.domains.filter((d) => d.domain === domain && d.in_total && known(d.energy_j));
  return parts.length ? parts.reduce((s, d) => s + d.energy_j, 0) : null;
};

function option(list, domains, label, word) {
  const g = theme.ground();
  const {scale, unit} = axisUnit(Math.max(...list.map((r) => (r.energy_j ?? 0) + (r.uncertainty_j ?? 0))), "J");
  return {
    grid: {left: 64, right: 16, top: 40, bottom: 46},
    legend: domains.length > 1 ? {data: domains} : undefined,
    xAxis: {type: "category", data: list.map(label), name: word, nameLocation: "middle", nameGap: 28, axisTick: {alignWithLabel: true}},
    yAxis: {type: "value", name: `energy, ${unit}`, nameGap: 12, nameTextStyle: {align: "left", padding: [0, 0, 0, -40]}, min: 0, axisLabel: {formatter: (v) => significant(v, 3)}},
    series: [...domains.map((d, i) => ({
      name: d, type: "bar", stack: "energy", barMaxWidth: 56, itemStyle: {color: theme.colour(i)},
      data: list.map((r) => ({value: known(part(r, d)) ? part(r, d) / scale : null, itemStyle: {opacity: r.cut ? 0.45 : 1}})),
    })), {
      type: "custom", silent: true, z: 5, data: list.map((r, i) => [i, r.energy_j, r.uncertainty_j]),
      renderItem: (params, api) => {
        const r = list[params.dataIndex];
        if (!known(r.energy_j) || !known(r.uncertainty_j)) return null;
        const [x, low] = api.coord([params.dataIndex, Math.max(0, r.energy_j - r.uncertainty_j) / scale]);
        const [, high] = api.coord([params.dataIndex, (r.energy_j + r.uncertainty_j) / scale]);
        const stroke = {stroke: g.text, lineWidth: 1.25};
        const line = (x1, y1, x2, y2) => ({type: "line", shape: {x1, y1, x2, y2}, style: stroke});
        return {type: "group", children: [line(x, low, x, high), line(x - 5, low, x + 5, low), line(x - 5, high, x + 5, high)]};
      },
    }],
    tooltip: {trigger: "axis", axisPointer: {type: "shadow"}, formatter: (hits) => {
      const r = list[hits[0].dataIndex];
      return tip(r.path, [[null, "energy", energy(r.energy_j, r.uncertainty_j)], [null, "time", duration(r.duration_s)],
        ...domains.map((d, i) => [theme.colour(i), d, withUnit(part(r, d), "J")])]);
    }},
  };
}
