// The page of a comparison, as parts: two or more runs against the first of them.
import {Figure, makeTable, tip} from "../figure.js";
import {h, name} from "../dom.js";
import {axisUnit, count, duration, energy, known, MISSING, percent, tick, withUnit} from "../format.js";
import {header, tile} from "../run/hero.js";
import {section} from "../run/tables.js";
import * as theme from "../theme.js";

const signed = (share) => (known(share) ? `${share > 0 ? "+" : ""}${percent(share)}` : MISSING);
const range = (bounds) => (bounds && known(bounds.low) ? `${signed(bounds.low)} to ${signed(bounds.high)}` : null);

export function comparisonPage(data) {
  const {runs, comparisons, caveats} = data.comparison;
  const told = runs.some((r) => known(r.energy_j));
  return [
    () => hero(runs, comparisons),
    () => section("Energy and time", told ? energyFigure(runs) : h("div", {class: "card absent"}, h("h3", {}, "Energy by run"), h("p", {}, "No run of these has a measured energy.")), comparisons.length ? differenceFigure(runs, comparisons) : null),
    () => section("All numbers", runTable(runs), comparisonTable(runs, comparisons)),
    () => section("Warnings", caveats.length ? h("div", {class: "card"}, h("ul", {class: "warnings"}, caveats.map((text) => h("li", {}, h("b", {}, name(text)))))) : h("div", {class: "card"}, h("p", {class: "good"}, "No warnings."))),
  ];
}

function hero(runs, comparisons) {
  return h("div", {}, header("comparison", `${runs[0].name} and ${runs.length === 2 ? runs[1].name : count(runs.length - 1, "other")}`, ["Differences are against the first run."]),
    h("div", {class: "tiles"}, runs.slice(0, 8).map((r, i) => tile(r.name, known(r.energy_j) ? withUnit(r.energy_j, "J") : MISSING,
      [duration(r.duration_s), i > 0 ? signed(comparisons.find((c) => c.run === i && c.quantity === "energy")?.difference) : "the first"].join(", "), i === 0 ? "main" : ""))),
    comparisons.length ? h("ul", {class: "findings"}, comparisons.map((c) => h("li", {}, name(`${c.verdict.charAt(0).toUpperCase()}${c.verdict.slice(1)}.`)))) : h("p", {class: "lead"}, "Nothing that is known of both runs can be compared."));
}

function energyFigure(runs) {
  const domains = [...new Set(runs.flatMap((r) => Object.keys(r.domains_j)))];
  const told = runs.filter((r) => known(r.energy_j));
  const most = told.reduce((a, b) => (b.energy_j > a.energy_j ? b : a));
  const {scale, unit} = axisUnit(most.energy_j, "J");
  const figure = new Figure({
    height: 110 + 44 * runs.length,
    title: `Energy by run: ${most.name} used most, ${withUnit(most.energy_j, "J")}`,
    subtitle: "Measured domains in the total; their sum is the run's energy.",
    words: () => runs.map((r) => `${r.name}: ${energy(r.energy_j, r.uncertainty_j)} in ${duration(r.duration_s)}`).join("; ") + ".",
    option: () => ({
      grid: {left: 12, right: 24, top: 40, bottom: 40, containLabel: true},
      legend: {data: domains},
      xAxis: {type: "value", name: `energy, ${unit}`, nameLocation: "middle", nameGap: 26, axisLabel: {formatter: tick}},
      yAxis: {type: "category", inverse: true, data: runs.map((r) => r.name), axisLabel: {width: 150, overflow: "truncate"}},
      series: domains.map((d, i) => ({name: d, type: "bar", stack: "run", barMaxWidth: 34, emphasis: {disabled: true}, itemStyle: {color: theme.colour(i), borderColor: theme.ground().card, borderWidth: 1},
        data: runs.map((r) => (known(r.domains_j[d]) ? r.domains_j[d] / scale : null))})),
      tooltip: {trigger: "item", formatter: (p) => tip(runs[p.dataIndex].name, [[p.color, p.seriesName, withUnit(p.value * scale, "J")]])},
    }),
    table: () => ({
      columns: [{title: "Run"}, ...domains.map((d) => ({title: d, right: true})), {title: "Energy", right: true}],
      rows: runs.map((r) => [r.name, ...domains.map((d) => withUnit(r.domains_j[d], "J")), energy(r.energy_j, r.uncertainty_j)]),
    }),
    csv: () => [["run", ...domains, "energy_j", "uncertainty_j"], ...runs.map((r) => [r.name, ...domains.map((d) => r.domains_j[d]), r.energy_j, r.uncertainty_j])],
  });
  return figure.element;
}

// Each difference with its interval, as a point with whiskers around nought.
function differenceFigure(runs, comparisons) {
  const label = (c) => `${c.quantity}: ${runs[c.run].name}`;
  const shown = comparisons.filter((c) => known(c.difference));
  const known95 = shown.filter((c) => c.interval);
  const clear = known95.filter((c) => c.interval.low > 0 || c.interval.high < 0);
  const figure = new Figure({
    height: 90 + 40 * shown.length,
    title: `Differences from ${runs[0].name}${known95.length ? `: ${clear.length} of ${known95.length} with an interval are certain` : ""}`,
    subtitle: "Shares of the first run's value; whiskers are 95 % intervals of what the sensors leave open.",
    words: shown.map((c) => `${label(c)}: ${signed(c.difference)}${range(c.interval) ? ` (${range(c.interval)})` : ""}`).join("; ") + ".",
    option: () => {
      const g = theme.ground();
      return {
        grid: {left: 12, right: 30, top: 20, bottom: 44, containLabel: true},
        xAxis: {type: "value", name: "difference, %", nameLocation: "middle", nameGap: 28, axisLabel: {formatter: tick}},
        yAxis: {type: "category", inverse: true, data: shown.map(label), axisLabel: {width: 170, overflow: "truncate"}},
        series: [
          {type: "custom", silent: true, data: shown.map((c, i) => [c.interval ? 100 * c.interval.low : 100 * c.difference, i, c.interval ? 100 * c.interval.high : 100 * c.difference]), encode: {x: [0, 2], y: 1},
            renderItem: (params, api) => {
              const [x1, y] = api.coord([api.value(0), api.value(1)]);
              const [x2] = api.coord([api.value(2), api.value(1)]);
              const line = (a, b, c, d) => ({type: "line", shape: {x1: a, y1: b, x2: c, y2: d}, style: {stroke: g.text, lineWidth: 1.25}});
              return {type: "group", children: [line(x1, y, x2, y), line(x1, y - 5, x1, y + 5), line(x2, y - 5, x2, y + 5)]};
            }},
          {type: "scatter", symbolSize: 10, itemStyle: {color: theme.colour(0)}, emphasis: {disabled: true}, data: shown.map((c, i) => ({value: [100 * c.difference, i], c})),
            markLine: {silent: true, symbol: "none", label: {show: false}, lineStyle: {color: g.soft, type: "solid"}, data: [{xAxis: 0}]}},
        ],
        tooltip: {trigger: "item", formatter: (p) => (p.data.c ? tip(label(p.data.c), [[p.color, "difference", signed(p.data.c.difference)], ...(range(p.data.c.interval) ? [[null, "95 % interval", range(p.data.c.interval)]] : [])]) : "")},
      };
    },
    table: () => comparisonRows(runs, comparisons),
  });
  return figure.element;
}

function runTable(runs) {
  const flags = (r) => [r.valid ? null : "not valid", r.partial ? "incomplete" : null].filter(Boolean).join(", ");
  return h("div", {class: "card"}, h("h3", {}, "The runs"), h("div", {class: "scroll", id: "runs"}, makeTable({
    columns: [{title: "Run"}, {title: "Time", right: true}, {title: "Energy", right: true}, {title: "Mean power", right: true}, {title: "Per sample", right: true}, {title: "Folder"}, {title: "Note"}],
    rows: runs.map((r) => [r.name, duration(r.duration_s), energy(r.energy_j, r.uncertainty_j), withUnit(r.mean_power_w, "W"), withUnit(r.energy_per_sample_j, "J"), r.path, flags(r)]),
  }, "Runs")));
}

const comparisonRows = (runs, comparisons) => ({
  columns: [{title: "Run"}, {title: "Quantity"}, {title: "Difference", right: true}, {title: "95 % interval", right: true}, {title: "Paired regions"}, {title: "Of these", right: true}],
  rows: comparisons.map((c) => [runs[c.run].name, c.quantity, signed(c.difference), range(c.interval) ?? "not known", c.regions ? `${c.regions.pairs} × ${c.regions.family}` : "",
    c.regions ? `${signed(c.regions.difference)}${range(c.regions.interval) ? ` (${range(c.regions.interval)})` : ""}${c.regions.distinguishable ? "" : ", not told apart"}` : ""]),
});

function comparisonTable(runs, comparisons) {
  if (!comparisons.length) return null;
  return h("div", {class: "card"}, h("h3", {}, `Against ${runs[0].name}`), h("div", {class: "scroll", id: "differences"}, makeTable(comparisonRows(runs, comparisons), "Differences")));
}
