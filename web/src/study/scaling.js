// Time and energy against GPUs, cap, clock or any other factor of numbers, on log axes with fitted power laws.
import {choice, Figure, tip} from "../figure.js";
import {known, listed, significant, tick} from "../format.js";
import * as theme from "../theme.js";
import {capital, title} from "./model.js";

const GROUPS = 8;

export function scalingFigures(study) {
  const metrics = [study.data.time_metric, study.data.energy_metric].filter((m) => m && study.has.has(m));
  return study.numeric.filter((f) => f.values.filter((v) => v > 0).length > 1).map((factor) => metrics.length ? figureOf(study, factor, metrics) : null);
}

// Cells that differ in `factor` alone make one line.
function groupsOf(study, factor, metric) {
  const groups = new Map();
  study.cells.forEach((levels, cell) => {
    const x = study.value(cell, factor.index), centre = study.at(cell, metric);
    if (!(x > 0) || !centre || !(centre.value > 0)) return;
    const name = study.cellName(cell, [factor.index]);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push({x, cell, centre});
  });
  const list = [...groups.entries()].map(([name, points]) => ({name, points: points.sort((a, b) => a.x - b.x)})).filter((g) => g.points.length > 1);
  for (const g of list) {
    const cells = new Set(g.points.map((p) => p.cell));
    g.fit = study.data.fits.find((f) => f.factor === factor.name && f.metric === metric && f.cells.some((c) => cells.has(c))) ?? null;
  }
  return list.sort((a, b) => b.points[0].centre.value - a.points[0].centre.value);
}

function figureOf(study, factor, metrics) {
  let metric = metrics[0];
  const groups = () => groupsOf(study, factor, metric);
  const unit = () => study.metric.get(metric)?.unit ?? "";
  const figure = new Figure({
    height: 360,
    controls: metrics.length > 1 ? [choice("Show", metrics.map((m) => [m, study.metricTitle(m)]), metric, (value) => {
      metric = value;
      figure.draw();
    })] : [],
    title: () => headline(study, factor, metric, groups()),
    subtitle: () => `${capital(study.metricTitle(metric))}, ${unit()}, against ${title(factor.name)}${factor.unit ? `, ${factor.unit}` : ""}; both axes logarithmic. Lines are fitted power laws over the measured range, whiskers 95 % intervals.`,
    words: () => groups().slice(0, 10).map((g) => `${g.name}: ${g.points.map((p) => `${tick(p.x)} ${factor.unit} ${study.text(p.centre.value, metric, 3)}`).join(", ")}`).join("; ") + ".",
    notes: () => notes(groups()),
    option: () => option(study, factor, metric, groups(), unit()),
    // The axes span what is shown.
    wired: (chart) => chart.on("legendselectchanged", ({selected}) => {
      const shown = ranges(groups().filter((g) => selected[g.name]));
      chart.setOption({xAxis: shown.x, yAxis: shown.y});
    }),
    table: () => ({
      columns: [{title: "Setting"}, {title: `${title(factor.name)}${factor.unit ? `, ${factor.unit}` : ""}`, right: true}, {title: study.metricTitle(metric), right: true}, {title: "Runs", right: true}, {title: "Exponent of the fit", right: true}, {title: "R²", right: true}, {title: "Held-out error", right: true}],
      rows: groups().flatMap((g) => g.points.map((p, i) => [g.name, tick(p.x), study.centreText(p.centre), String(p.centre.count),
        i === 0 && g.fit ? exponent(g.fit) : "", i === 0 && g.fit ? significant(g.fit.r_squared, 3) : "", i === 0 && g.fit && known(g.fit.held_out_error) ? `${significant(100 * g.fit.held_out_error, 2)} %` : ""])),
    }),
    csv: () => [["setting", factor.name, metric, "low", "high", "runs", "fit_exponent"], ...groups().flatMap((g) => g.points.map((p) => [g.name, p.x, p.centre.value, p.centre.interval?.[0], p.centre.interval?.[1], p.centre.count, g.fit ? -g.fit.b : null]))],
  });
  return figure.element;
}

const exponent = (fit) => `${significant(-fit.b, 3)}${fit.b_interval ? ` (${significant(-fit.b_interval[1], 2)} to ${significant(-fit.b_interval[0], 2)})` : ""}`;

function headline(study, factor, metric, groups) {
  const name = capital(`${study.metricTitle(metric)} against ${title(factor.name)}`);
  if (!groups.length) return name;
  const ratios = groups.map((g) => ({name: g.name, ratio: g.points[g.points.length - 1].centre.value / g.points[0].centre.value, from: g.points[0].x, to: g.points[g.points.length - 1].x}));
  const span = ratios.filter((r) => r.from === ratios[0].from && r.to === ratios[0].to);
  const low = Math.min(...span.map((r) => r.ratio)), high = Math.max(...span.map((r) => r.ratio));
  const [least, most] = [significant(low, 2), significant(high, 2)];
  const range = least === most ? `${least} times` : `${least} to ${most} times`;
  return `${name}: from ${tick(ratios[0].from)} to ${tick(ratios[0].to)} ${factor.unit}`.trim() + ` it becomes ${range} as much`;
}

function notes(groups) {
  const out = [];
  if (groups.length > GROUPS) out.push(`${GROUPS} of ${groups.length} settings are drawn; choose others in the legend.`);
  const poor = groups.filter((g) => g.fit && g.fit.r_squared < 0.9);
  if (poor.length) out.push(`A power law does not describe ${listed(poor.slice(0, 4).map((g) => g.name))} well (R² below 0.9).`);
  if (groups.some((g) => !g.fit)) out.push("Settings with fewer than three values have no fit.");
  if (groups.some((g) => g.points.some((p) => p.centre.count === 1))) out.push("What was measured once has no whisker: nothing is known of chance there.");
  return out;
}

function option(study, factor, metric, groups, unit) {
  const g = theme.ground();
  const series = [];
  groups.forEach((group, i) => {
    const shown = {itemStyle: {color: theme.colour(i)}, emphasis: {disabled: true}};
    series.push({name: group.name, type: "scatter", symbol: theme.symbol(i), symbolSize: 9, data: group.points.map((p) => ({value: [p.x, p.centre.value], point: p})), z: 4, ...shown});
    series.push({name: group.name, type: "line", showSymbol: false, silent: true, tooltip: {show: false}, lineStyle: {width: 1.5, type: group.fit ? theme.dash(i) : "dotted"},
      data: group.fit ? lawPoints(group.fit) : group.points.map((p) => [p.x, p.centre.value]), ...shown});
    series.push(whisker(group, i));
  });
  const shown = ranges(groups.slice(0, GROUPS));
  return {
    grid: {left: 70, right: 20, top: 58, bottom: 48},
    legend: {data: groups.map((x) => x.name), selected: Object.fromEntries(groups.map((x, i) => [x.name, i < GROUPS]))},
    xAxis: {type: "log", ...shown.x, name: `${title(factor.name)}${factor.unit ? `, ${factor.unit}` : ""}`, nameLocation: "middle", nameGap: 28, splitLine: {show: false}},
    yAxis: {type: "log", ...shown.y, name: `${study.metricTitle(metric)}${unit ? `, ${unit}` : ""}`, nameGap: 12, nameTextStyle: {align: "left", padding: [0, 0, 0, -50]}, splitLine: {lineStyle: {color: g.line}}},
    series,
    tooltip: {trigger: "item", formatter: (p) => (p.data.point ? tip(p.seriesName, [[null, title(factor.name), `${tick(p.value[0])} ${factor.unit}`], [p.color, study.metricTitle(metric), study.centreText(p.data.point.centre)], [null, "runs", String(p.data.point.centre.count)]]) : "")},
  };
}

// Limits and labels of both axes.
function ranges(groups) {
  const padded = (list) => (list.length ? [Math.min(...list) / 1.15, Math.max(...list) * 1.15] : [1, 10]);
  const axis = ([min, max], customValues) => ({min, max, axisLabel: {customValues, formatter: tick}, axisTick: {customValues}});
  const xs = groups.flatMap((g) => g.points.map((p) => p.x));
  const ys = padded(groups.flatMap((g) => g.points.flatMap((p) => [p.centre.value, ...(p.centre.interval ?? [])])).filter((v) => v > 0));
  return {x: axis(padded(xs), [...new Set(xs)].sort((a, b) => a - b)), y: axis(ys, decades(ys))};
}

// 1, 2 and 5 times the powers of ten in a range.
function decades([low, high]) {
  const out = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power)
    for (const step of [1, 2, 5]) out.push(Number(`${step}e${power}`));
  return out.filter((v) => v >= low && v <= high);
}

function lawPoints({a, b, c, x_min: low, x_max: high}) {
  const at = (k) => low * (high / low) ** (k / 40);
  return Array.from({length: 41}, (_, k) => [at(k), a * at(k) ** -b + c]);
}

function whisker(group, i) {
  const points = group.points.filter((p) => p.centre.interval && p.centre.interval[0] > 0);
  return {name: group.name, type: "custom", silent: true, z: 3, encode: {x: 0, y: [1, 2]}, data: points.map((p) => [p.x, ...p.centre.interval]),
    renderItem: (params, api) => {
      const [x, low] = api.coord([api.value(0), api.value(1)]);
      const [, high] = api.coord([api.value(0), api.value(2)]);
      const line = (x1, y1, x2, y2) => ({type: "line", shape: {x1, y1, x2, y2}, style: {stroke: theme.colour(i), lineWidth: 1.25}});
      return {type: "group", children: [line(x, low, x, high), line(x - 4, low, x + 4, low), line(x - 4, high, x + 4, high)]};
    }};
}
