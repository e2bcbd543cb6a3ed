// Which work uses most energy, and why: energy, time and power by the first factor that is a name.
import {absent, choice, Figure, tip} from "../figure.js";
import {axisUnit, known, listed, percent, significant} from "../format.js";
import * as theme from "../theme.js";
import {capital, estimated, geometric, isRatio, title} from "./model.js";

const ENERGY = ["energy_per_sample_j", "energy_per_epoch_j", "energy_j", "modelled_energy_per_sample_j", "modelled_energy_per_epoch_j", "modelled_energy_j"];
const TIME_OF = {energy_per_sample_j: "samples_per_s", modelled_energy_per_sample_j: "samples_per_s", energy_per_epoch_j: "seconds_per_epoch", modelled_energy_per_epoch_j: "seconds_per_epoch",
  energy_j: "duration_s", modelled_energy_j: "duration_s"};
const PREFERRED = ["workload", "model", "network"];

export function mainFactor(study) {
  return study.named.find((f) => PREFERRED.includes(f.name)) ?? study.named[0] ?? null;
}

// For each level the cells that all levels have in common, so that like is compared with like; all cells if there are none.
function rowsOf(study, factor, metric) {
  const rest = (cell) => study.cells[cell].filter((_, i) => i !== factor.index).join(",");
  const byLevel = factor.levels.map((_, level) => study.cells.map((c, i) => [c, i]).filter(([c, i]) => c[factor.index] === level && study.at(i, metric)).map(([, i]) => i));
  const filled = byLevel.filter((list) => list.length);
  const common = filled.length ? filled.map((list) => new Set(list.map(rest))).reduce((a, b) => new Set([...a].filter((x) => b.has(x)))) : new Set();
  const time = TIME_OF[metric] ?? study.data.time_metric;
  return byLevel.map((list, level) => {
    const cells = common.size ? list.filter((c) => common.has(rest(c))) : list;
    const values = cells.map((c) => study.at(c, metric));
    const seconds = geometric(cells.map((c) => study.at(c, time)?.value));
    const one = values.length === 1 ? values[0] : null;
    const energy = geometric(values.map((v) => v.value));
    return {level: factor.levels[level], cells, energy, interval: one?.interval ?? null, time: known(seconds) ? (time === "samples_per_s" ? 1 / seconds : seconds) : null,
      lowest: values.length ? Math.min(...values.map((v) => v.value)) : null, highest: values.length ? Math.max(...values.map((v) => v.value)) : null,
      busy: ["sm_active_ratio", "gpu_active_ratio", "cpu_ratio"].map((m) => [m, geometric(cells.map((c) => study.at(c, m)?.value))]).find(([, v]) => known(v)) ?? null};
  }).filter((r) => known(r.energy)).sort((a, b) => b.energy - a.energy);
}

const metricsOf = (study) => {
  const list = ENERGY.filter((m) => study.has.has(m));
  return list.length ? list : [study.data.energy_metric].filter((m) => m && study.has.has(m));
};

// "resnet50 uses most energy per sample: 12 J, 4.1 times that of schnet. It takes 5.0 times as long at 0.8 times the power."
export function comparison(study) {
  const factor = mainFactor(study);
  const metric = metricsOf(study)[0];
  if (!factor || !metric) return null;
  return sentence(study, rowsOf(study, factor, metric), metric);
}

function sentence(study, rows, metric) {
  if (rows.length < 2) return null;
  const [most, least] = [rows[0], rows[rows.length - 1]];
  const ratio = most.energy / least.energy;
  const lead = `${most.level} uses most ${study.metricTitle(metric)}: ${study.text(most.energy, metric, 3)}, ${significant(ratio, 2)} times that of ${least.level}`;
  if (!known(most.time) || !known(least.time)) return `${lead}.`;
  const time = most.time / least.time, power = ratio / time;
  const busy = most.busy && least.busy && most.busy[0] === least.busy[0] ? ` (${title(study.metricTitle(most.busy[0]))} ${percent(most.busy[1], 0)} against ${percent(least.busy[1], 0)})` : "";
  return `${lead}, since it takes ${significant(time, 2)} times as long at ${significant(power, 2)} times the power${busy}.`;
}

export function workFigure(study) {
  const factor = mainFactor(study);
  const metrics = metricsOf(study);
  if (!metrics.length) return absent("Energy", "No valid run of this study tells its energy.", "`ergometer doctor` says which sensors this machine has and how to allow them.");
  if (!factor) return null;
  let metric = metrics[0];
  const rows = () => rowsOf(study, factor, metric);
  const figure = new Figure({
    height: 90 + 42 * factor.levels.length,
    controls: metrics.length > 1 ? [choice("Show", metrics.map((m) => [m, study.metricTitle(m)]), metric, (value) => {
      metric = value;
      figure.draw();
    })] : [],
    title: () => sentence(study, rows(), metric) ?? capital(`${study.metricTitle(metric)} by ${title(factor.name)}`),
    subtitle: () => `${capital(study.metricTitle(metric))} by ${title(factor.name)}${estimated(metric) ? ", a model's estimate" : ""}: geometric mean over the settings that all have; the line spans lowest to highest setting.`,
    words: () => rows().map((r) => `${r.level}: ${study.text(r.energy, metric)}`).join("; ") + ".",
    option: () => option(study, rows(), metric),
    table: () => ({
      columns: [{title: title(factor.name)}, {title: study.metricTitle(metric), right: true}, {title: "Lowest", right: true}, {title: "Highest", right: true}, {title: "Time of the same work", right: true}, {title: "Energy by time", right: true}, {title: "Settings", right: true}],
      rows: rows().map((r) => [r.level, study.text(r.energy, metric), study.text(r.lowest, metric), study.text(r.highest, metric), study.text(r.time, "duration_s"),
        known(r.time) ? study.text(r.energy / r.time, "mean_power_w") : "—", String(r.cells.length)]),
    }),
    csv: () => [[factor.name, metric, "lowest", "highest", "time_s", "settings"], ...rows().map((r) => [r.level, r.energy, r.lowest, r.highest, r.time, r.cells.length])],
  });
  return figure.element;
}

function option(study, rows, metric) {
  const g = theme.ground();
  const unitName = study.metric.get(metric)?.unit ?? "";
  const {scale, unit} = axisUnit(Math.max(...rows.map((r) => r.highest)), unitName);
  // Works whose energies differ a hundredfold are told apart on a log axis only.
  const log = rows[0].energy > 30 * rows[rows.length - 1].energy;
  const list = [...rows].reverse();
  const floor = log ? 10 ** Math.floor(Math.log10(Math.min(...rows.map((r) => r.lowest)) / scale)) : 0;
  return {
    grid: {left: 12, right: 90, top: 16, bottom: 34, containLabel: true},
    xAxis: {type: log ? "log" : "value", min: floor || (log ? undefined : 0), name: `${study.metricTitle(metric)}, ${unit}${log ? " (log)" : ""}`, nameLocation: "middle", nameGap: 26},
    yAxis: {type: "category", data: list.map((r) => r.level), axisLabel: {width: 130, overflow: "truncate"}},
    // A bar's length says nothing on a log axis: there it is a point.
    series: [{...(log ? {type: "scatter", symbolSize: 13} : {type: "bar", barMaxWidth: 26}), itemStyle: {color: theme.colour(0), borderRadius: log ? undefined : [0, 3, 3, 0], opacity: estimated(metric) ? 0.6 : 1},
      data: list.map((r, i) => [r.energy / scale, i])}, {
      type: "custom", silent: true, z: 5, encode: {x: [0, 1], y: 2}, data: list.map((r, i) => [r.lowest / scale, r.highest / scale, i]),
      renderItem: (params, api) => {
        const [x0, y] = api.coord([api.value(0), api.value(2)]);
        const [x1] = api.coord([api.value(1), api.value(2)]);
        const text = study.text(list[params.dataIndex].energy, metric, 3);
        return {type: "group", children: [{type: "line", invisible: x1 - x0 < 2, shape: {x1: x0, y1: y, x2: x1, y2: y}, style: {stroke: g.text, lineWidth: 1.5, opacity: 0.6}},
          {type: "text", x: x1 + 8, y, style: {text, fill: g.text, fontSize: 12, fontWeight: 600, verticalAlign: "middle"}}]};
      },
    }],
    tooltip: {trigger: "item", formatter: (p) => {
      const r = list[p.dataIndex];
      return tip(r.level, [[p.color, study.metricTitle(metric), study.text(r.energy, metric)], [null, "time of the same work", study.text(r.time, "duration_s")], [null, "settings", String(r.cells.length)]]);
    }},
  };
}

// Utilisation by work, as far as the runs tell it.
export function busyFigure(study) {
  const factor = mainFactor(study);
  const metrics = study.metrics.filter((m) => isRatio(m) && m.name !== "coverage_ratio" && study.has.has(m.name));
  if (!metrics.length) return absent("Utilisation", "No run of this study tells how busy a device was.", null);
  if (!factor) return null;
  const cellsOf = (level) => study.cells.map((c, i) => [c, i]).filter(([c]) => c[factor.index] === level).map(([, i]) => i);
  const mean = (level, m) => {
    const list = cellsOf(level).map((c) => study.at(c, m.name)?.value).filter(known);
    return list.length ? list.reduce((s, v) => s + v, 0) / list.length : null;
  };
  const table = factor.levels.map((_, level) => metrics.map((m) => mean(level, m)));
  const busiest = factor.levels.map((level, i) => [level, table[i][0]]).filter(([, v]) => known(v)).sort((a, b) => b[1] - a[1]);
  const figure = new Figure({
    height: 300,
    title: busiest.length > 1 ? `Utilisation by ${title(factor.name)}: ${metrics[0].title} from ${percent(busiest[busiest.length - 1][1], 0)} (${busiest[busiest.length - 1][0]}) to ${percent(busiest[0][1], 0)} (${busiest[0][0]})` : `Utilisation by ${title(factor.name)}`,
    subtitle: `Mean of ${listed(metrics.slice(0, 4).map((m) => m.title))} over the runs of each ${title(factor.name)}.`,
    words: factor.levels.map((level, i) => `${level}: ${metrics.map((m, k) => `${m.title} ${percent(table[i][k], 0)}`).join(", ")}`).join("; ") + ".",
    option: () => ({
      grid: {left: 56, right: 16, top: 58, bottom: 40},
      legend: {data: metrics.map((m) => m.title)},
      xAxis: {type: "category", data: factor.levels, axisLabel: {interval: 0, width: 90, overflow: "truncate", rotate: factor.levels.length > 6 ? 30 : 0}},
      yAxis: {type: "value", name: "%", min: 0},
      series: metrics.map((m, k) => ({name: m.title, type: "bar", barMaxWidth: 30, itemStyle: {color: theme.colour(k)}, data: table.map((row) => (known(row[k]) ? 100 * row[k] : null))})),
      tooltip: {trigger: "axis", axisPointer: {type: "shadow"}, formatter: (hits) => tip(factor.levels[hits[0].dataIndex], hits.map((x) => [x.color, x.seriesName, known(x.value) ? `${significant(x.value, 3)} %` : "—"]))},
    }),
    table: {columns: [{title: title(factor.name)}, ...metrics.map((m) => ({title: m.title, right: true}))], rows: factor.levels.map((level, i) => [level, ...table[i].map((v) => percent(v))])},
    csv: () => [[factor.name, ...metrics.map((m) => m.name)], ...factor.levels.map((level, i) => [level, ...table[i]])],
  });
  return figure.element;
}
