// Time against energy of every setting, with the front of those that nothing beats; and what each rule would choose.
import {absent, choice, Figure, makeTable, tip} from "../figure.js";
import {h} from "../dom.js";
import {axisUnit, count, listed, significant, tick} from "../format.js";
import * as theme from "../theme.js";
import {alikeText, change, settings} from "./hero.js";

export function frontFigure(study) {
  const {time_metric: time, energy_metric: energy, fronts} = study.data;
  const usable = fronts.filter((f) => f.cells.length > 1);
  if (!usable.length) return absent("Time against energy", !time || !energy ? "The study has no metric of time together with one of energy." : "There are fewer than two settings with both time and energy to choose from.", null);
  let group = usable[0].group;
  const front = () => usable.find((f) => f.group === group);
  const point = (cell) => [study.at(cell, time).value, study.at(cell, energy).value];
  const role = (cell) => (front().front.includes(cell) ? "on the front" : front().maybe.includes(cell) ? "perhaps" : "beaten");
  const figure = new Figure({
    height: 380,
    controls: usable.length > 1 ? [choice("Work", usable.map((f) => [f.group, f.group || "all"]), group, (value) => {
      group = value;
      figure.draw();
    })] : [],
    title: () => {
      const f = front();
      return `Time against energy${group ? `, ${group}` : ""}: ${f.front.length === 1 ? `${settings(study, f.front[0])} is fastest and uses least energy` : `${f.front.length} of ${count(f.cells.length, "setting")} are worth choosing`}`;
    },
    subtitle: `Each point is a setting. No other is both faster and more frugal than those on the line; hollow ones are beaten, but not beyond their 95 % intervals.`,
    words: () => `On the front: ${listed(front().front.map((c) => `${settings(study, c)} (${study.text(point(c)[0], time, 3)}, ${study.text(point(c)[1], energy, 3)})`))}.`,
    option: () => option(study, front(), point, time, energy),
    table: () => ({
      columns: [{title: "Setting"}, {title: study.metricTitle(time), right: true}, {title: study.metricTitle(energy), right: true}, {title: "Front"}],
      rows: [...front().cells].sort((a, b) => point(a)[0] - point(b)[0]).map((c) => [settings(study, c), study.centreText(study.at(c, time)), study.centreText(study.at(c, energy)), role(c)]),
    }),
    csv: () => [["group", "setting", time, energy, "front"], ...usable.flatMap((f) => f.cells.map((c) => [f.group, settings(study, c), ...point(c), f.front.includes(c) ? "front" : f.maybe.includes(c) ? "maybe" : "beaten"]))],
  });
  return figure.element;
}

function option(study, front, point, time, energy) {
  const g = theme.ground();
  const cells = front.cells;
  const xs = cells.map((c) => point(c)[0]), ys = cells.map((c) => point(c)[1]);
  const x = axisUnit(Math.max(...xs), study.metric.get(time)?.unit ?? ""), y = axisUnit(Math.max(...ys), study.metric.get(energy)?.unit ?? "");
  const at = (c) => [point(c)[0] / x.scale, point(c)[1] / y.scale];
  const onFront = [...front.front].sort((a, b) => point(a)[0] - point(b)[0]);
  const rest = cells.filter((c) => !front.front.includes(c) && !front.maybe.includes(c));
  const data = (list) => list.map((c) => ({value: at(c), cell: c}));
  const few = onFront.length <= 10;
  const scatter = (name, list, extra) => ({name, type: "scatter", data: data(list), symbolSize: 9, emphasis: {disabled: true}, ...extra});
  return {
    grid: {left: 70, right: 30, top: 58, bottom: 48},
    legend: {data: ["front", ...(front.maybe.length ? ["perhaps"] : []), ...(rest.length ? ["beaten"] : [])]},
    xAxis: {type: "value", scale: true, name: `${study.metricTitle(time)}, ${x.unit}`, nameLocation: "middle", nameGap: 28, axisLabel: {formatter: tick}},
    yAxis: {type: "value", scale: true, name: `${study.metricTitle(energy)}, ${y.unit}`, nameGap: 12, nameTextStyle: {align: "left", padding: [0, 0, 0, -50]}, axisLabel: {formatter: tick}},
    series: [
      scatter("beaten", rest, {symbol: "circle", symbolSize: 7, itemStyle: {color: theme.colour(7), opacity: 0.6}}),
      scatter("perhaps", front.maybe, {symbol: "emptyCircle", itemStyle: {color: theme.colour(0), borderWidth: 2}}),
      {name: "front", type: "line", data: data(onFront), symbol: "diamond", symbolSize: 11, lineStyle: {width: 1.5}, itemStyle: {color: theme.colour(1)}, emphasis: {disabled: true}, z: 5,
        label: {show: few, position: "top", color: g.text, fontSize: 11, formatter: (p) => settings(study, p.data.cell)}, labelLayout: {hideOverlap: true}},
    ],
    tooltip: {trigger: "item", formatter: (p) => tip(settings(study, p.data.cell), [[null, study.metricTitle(time), study.centreText(study.at(p.data.cell, time))], [p.color, study.metricTitle(energy), study.centreText(study.at(p.data.cell, energy))]])},
  };
}

export function picksTable(study) {
  const picks = study.data.picks;
  if (!picks.length) return null;
  const grouped = picks.some((p) => p.group);
  return h("div", {class: "card"}, h("h3", {}, "What to run with, by rule"), h("p", {class: "subtitle"}, "Changes are against the reference: the setting without a cap, or the fastest."),
    h("div", {class: "scroll"}, makeTable({
      columns: [...(grouped ? [{title: "Work"}] : []), {title: "Rule"}, {title: "Setting"}, {title: "Energy", right: true}, {title: "Time", right: true}, {title: "Reference"}, {title: "Certainty"}],
      rows: picks.map((p) => [...(grouped ? [p.group] : []), p.rule, settings(study, p.cell), change(p.energy, true), change(p.time, true), settings(study, p.reference),
        !p.intervals_known ? "each measured once: not known" : p.alike.length ? alikeText(study, p) : "told apart from all others"]),
    }, "Choices by rule")));
}
