// What more GPUs, ranks or nodes bring: speed-up, efficiency and energy against the smallest count, and k of E = k x GPU-hours.
import {Figure, makeTable, tip} from "../figure.js";
import {h} from "../dom.js";
import {known, MISSING, percent, significant, tick, withUnit} from "../format.js";
import * as theme from "../theme.js";
import {capital, title} from "./model.js";

const range = (value, interval, text) => (interval ? `${text(value)} (${text(interval[0])} to ${text(interval[1])})` : text(value));
const times = (value) => significant(value, 3);

export function countTables(study) {
  const factors = [...new Set(study.data.scaling.map((s) => s.factor))];
  return factors.map((factor) => figureOf(study, factor, study.data.scaling.filter((s) => s.factor === factor)));
}

function figureOf(study, factor, groups) {
  const {time_metric: time, energy_metric: energy} = study.data;
  const last = groups.map((g) => g.rows[g.rows.length - 1]);
  const least = Math.min(...last.map((r) => r.efficiency)), most = Math.max(...last.map((r) => r.efficiency));
  const name = (g) => g.group || "all";
  const figure = new Figure({
    height: 320,
    title: `Parallel efficiency: ${percent(least, 0)}${percent(least, 0) === percent(most, 0) ? "" : ` to ${percent(most, 0)}`} at ${tick(last[0].count)} ${title(factor)}`,
    subtitle: `Speed-up over the smallest count, divided by how many times more ${title(factor)}; 100 % would be ideal. The table has the energy as well.`,
    words: groups.slice(0, 10).map((g) => `${name(g)}: ${g.rows.map((r) => `${tick(r.count)} ${title(factor)} ${percent(r.efficiency)}`).join(", ")}`).join("; ") + ".",
    option: () => ({
      grid: {left: 56, right: 20, top: 44, bottom: 48},
      legend: {data: groups.map(name)},
      xAxis: {type: "category", data: [...new Set(groups.flatMap((g) => g.rows.map((r) => r.count)))].sort((a, b) => a - b).map(tick), name: capital(title(factor)), nameLocation: "middle", nameGap: 28},
      yAxis: {type: "value", min: 0, name: "%", axisLabel: {formatter: tick}},
      series: groups.map((g, i) => ({name: name(g), type: "line", symbol: theme.symbol(i), symbolSize: 8, lineStyle: {width: 1.5, type: theme.dash(i)}, itemStyle: {color: theme.colour(i)}, emphasis: {disabled: true},
        data: g.rows.map((r) => ({value: [tick(r.count), 100 * r.efficiency], row: r}))})),
      tooltip: {trigger: "item", formatter: (p) => tip(p.seriesName, [[p.color, "efficiency", range(p.data.row.efficiency, p.data.row.efficiency_interval, percent)], [null, "speed-up", range(p.data.row.speed_up, p.data.row.speed_up_interval, times)]])},
    }),
    table: () => ({
      columns: [{title: "Setting"}, {title: capital(title(factor)), right: true}, {title: study.metricTitle(time), right: true}, {title: "Speed-up", right: true}, {title: "Efficiency", right: true}, {title: energy ? study.metricTitle(energy) : "Energy", right: true}, {title: "Energy, of the smallest", right: true}],
      rows: groups.flatMap((g) => g.rows.map((r) => [name(g), tick(r.count), range(r.time, r.time_interval, (v) => study.text(v, time)), range(r.speed_up, r.speed_up_interval, times), range(r.efficiency, r.efficiency_interval, percent),
        known(r.energy) ? range(r.energy, r.energy_interval, (v) => study.text(v, energy)) : MISSING, known(r.energy_ratio) ? range(r.energy_ratio, r.energy_ratio_interval, percent) : MISSING])),
    }),
  });
  return figure.element;
}

export function rateTable(study) {
  const {rates} = study.data;
  if (!rates.length) return null;
  const joules = (v) => withUnit(v, "J");
  return h("div", {class: "card"}, h("h3", {}, "Energy of the GPUs from GPU-hours: E = k × hours"),
    h("p", {class: "subtitle"}, "k is the mean power of a GPU under this work; it foretells the energy of longer runs of the same work."),
    h("div", {class: "scroll"}, makeTable({
      columns: [{title: "Work"}, {title: "k, per GPU-hour", right: true}, {title: "Mean power of a GPU", right: true}, {title: "R²", right: true}, {title: "Farthest run", right: true}, {title: "Runs", right: true}],
      rows: rates.map((r) => [r.work || "all", range(r.joules_per_gpu_hour, r.interval, joules), withUnit(r.mean_power_w, "W"), significant(r.r_squared, 3), percent(r.largest_deviation), String(r.runs)]),
    }, "Energy rate by work")));
}
