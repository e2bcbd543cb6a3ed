// All factors at once: parallel coordinates of every setting, and how much each factor changes energy and time.
import {choice, Figure, tip} from "../figure.js";
import {known, percent, significant, tick} from "../format.js";
import * as theme from "../theme.js";
import {title} from "./model.js";

export function parallelFigure(study) {
  const metrics = [study.data.time_metric, study.data.energy_metric].filter((m) => m && study.has.has(m));
  const energy = metrics[metrics.length - 1];
  const cells = study.cells.map((_, cell) => cell).filter((cell) => metrics.every((m) => study.at(cell, m)));
  if (!metrics.length || cells.length < 3 || study.varying.length < 2) return null;
  const values = cells.map((c) => study.at(c, energy).value).sort((a, b) => a - b);
  const quarter = values[Math.floor((values.length - 1) / 4)];
  const axis = (f) => ({name: title(f.name) + (f.unit ? `, ${f.unit}` : ""), type: "category", data: f.levels});
  const figure = new Figure({
    height: 380,
    title: `All settings: ${cells.length} combinations of ${study.varying.length} factors, the most frugal quarter marked`,
    subtitle: `Each line is a setting, from its levels to its ${metrics.map((m) => study.metricTitle(m)).join(" and ")}. Drag along an axis to choose a range.`,
    words: `The most frugal quarter uses at most ${study.text(quarter, energy)}; the least frugal setting ${study.text(values[values.length - 1], energy)}.`,
    option: () => {
      const g = theme.ground();
      const log = (m) => {
        const list = cells.map((c) => study.at(c, m).value);
        return Math.min(...list) > 0 && Math.max(...list) > 20 * Math.min(...list);
      };
      const axes = [...study.varying.map(axis), ...metrics.map((m) => ({name: `${study.metricTitle(m)}${study.metric.get(m)?.unit ? `, ${study.metric.get(m).unit}` : ""}${log(m) ? " (log)" : ""}`, type: log(m) ? "log" : "value", scale: true, axisLabel: {formatter: tick}}))];
      const row = (c) => [...study.varying.map((f) => study.level(c, f.index)), ...metrics.map((m) => study.at(c, m).value)];
      const lines = (name, list, color, extra) => ({name, type: "parallel", data: list.map(row), lineStyle: {color, width: 1.5, opacity: 0.8}, ...extra});
      const best = cells.filter((c) => study.at(c, energy).value <= quarter), rest = cells.filter((c) => study.at(c, energy).value > quarter);
      return {
        parallel: {left: 70, right: 80, top: 70, bottom: 24, parallelAxisDefault: {nameTextStyle: {color: g.soft, fontSize: 12}, nameGap: 16, axisLine: {lineStyle: {color: g.soft}}, axisLabel: {color: g.text, fontSize: 11}, areaSelectStyle: {width: 16}}},
        parallelAxis: axes.map((a, dim) => ({dim, ...a, nameTruncate: {maxWidth: 130}})),
        legend: {data: ["most frugal quarter", "others"]},
        series: [lines("others", rest, theme.colour(7), {lineStyle: {color: theme.colour(7), width: 1, opacity: 0.35}, itemStyle: {color: theme.colour(7)}}), lines("most frugal quarter", best, theme.colour(2), {itemStyle: {color: theme.colour(2)}, z: 4})],
      };
    },
    table: {
      columns: [...study.varying.map((f) => ({title: title(f.name)})), ...metrics.map((m) => ({title: study.metricTitle(m), right: true}))],
      rows: [...cells].sort((a, b) => study.at(a, energy).value - study.at(b, energy).value).map((c) => [...study.varying.map((f) => study.level(c, f.index)), ...metrics.map((m) => study.centreText(study.at(c, m)))]),
    },
    csv: () => [[...study.varying.map((f) => f.name), ...metrics], ...cells.map((c) => [...study.varying.map((f) => study.level(c, f.index)), ...metrics.map((m) => study.at(c, m).value)])],
  });
  return figure.element;
}

export function effectFigure(study) {
  const effects = study.data.effects.filter((e) => e.levels.length);
  if (!effects.length) return null;
  const metrics = [...new Set(effects.map((e) => e.metric))];
  let metric = metrics[0];
  const rows = () => effects.filter((e) => e.metric === metric).flatMap((e) => e.levels.map((l) => ({...l, factor: study.factors[e.factor], level: study.factors[e.factor].levels[l.level], effect: e})));
  const figure = new Figure({
    height: 90 + 22 * rows().length,
    controls: metrics.length > 1 ? [choice("Show", metrics.map((m) => [m, study.metricTitle(m)]), metric, (value) => {
      metric = value;
      figure.draw();
    })] : [],
    title: () => {
      const top = effects.filter((e) => e.metric === metric).reduce((a, b) => (b.variance_share > a.variance_share ? b : a));
      return `Effects: ${title(study.factors[top.factor].name)} explains most of ${study.metricTitle(metric)} (${percent(top.variance_share, 0)} of its variance)`;
    },
    subtitle: () => `How much each level changes ${study.metricTitle(metric)} against the overall mean, other factors averaged; whiskers are 95 % intervals.`,
    words: () => rows().map((r) => `${title(r.factor.name)} ${r.level}: ${percent(r.change)}`).join("; ") + ".",
    notes: () => study.data.effects.filter((e) => e.not_estimable && e.metric === metric).map((e) => `${title(study.factors[e.factor].name)}: ${e.not_estimable}.`),
    option: () => option(rows()),
    table: () => ({
      columns: [{title: "Factor"}, {title: "Level"}, {title: "Change", right: true}, {title: "95 % interval", right: true}, {title: "Share of variance", right: true}, {title: "p", right: true}],
      rows: rows().map((r) => [title(r.factor.name), r.level, percent(r.change), r.interval ? `${percent(r.interval[0])} to ${percent(r.interval[1])}` : "—", percent(r.effect.variance_share), known(r.effect.p_value) ? significant(r.effect.p_value, 2) : "—"]),
    }),
    csv: () => [["metric", "factor", "level", "change", "low", "high"], ...rows().map((r) => [metric, r.factor.name, r.level, r.change, r.interval?.[0], r.interval?.[1]])],
  });
  return figure.element;
}

function option(rows) {
  const g = theme.ground();
  const list = [...rows].reverse();
  const factors = [...new Set(rows.map((r) => r.factor.name))];
  return {
    grid: {left: 12, right: 30, top: 16, bottom: 34, containLabel: true},
    xAxis: {type: "value", name: "change against the overall mean, %", nameLocation: "middle", nameGap: 26, axisLabel: {formatter: tick}},
    yAxis: {type: "category", data: list.map((r) => `${title(r.factor.name)} ${r.level}`), axisLabel: {width: 170, overflow: "truncate"}},
    series: [{type: "scatter", symbolSize: 8, z: 4, data: list.map((r) => ({value: [100 * r.change, `${title(r.factor.name)} ${r.level}`], itemStyle: {color: theme.colour(factors.indexOf(r.factor.name))}})),
      markLine: {silent: true, symbol: "none", lineStyle: {color: g.soft}, label: {show: false}, data: [{xAxis: 0}]}}, {
      type: "custom", silent: true, encode: {x: [0, 1], y: 2}, data: list.map((r, i) => (r.interval ? [100 * r.interval[0], 100 * r.interval[1], i] : [null, null, i])),
      renderItem: (params, api) => {
        const r = list[params.dataIndex];
        if (!r.interval) return null;
        const [x0, y] = api.coord([100 * r.interval[0], params.dataIndex]);
        const [x1] = api.coord([100 * r.interval[1], params.dataIndex]);
        return {type: "line", shape: {x1: x0, y1: y, x2: x1, y2: y}, style: {stroke: theme.colour(factors.indexOf(r.factor.name)), lineWidth: 2}};
      },
    }],
    tooltip: {trigger: "item", formatter: (p) => {
      const r = list[p.dataIndex];
      return tip(`${title(r.factor.name)} ${r.level}`, [[p.color, "change", percent(r.change)], [null, "95 % interval", r.interval ? `${percent(r.interval[0])} to ${percent(r.interval[1])}` : "not known"]]);
    }},
  };
}
