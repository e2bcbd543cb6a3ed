// Classes of nodes against each other (Caspart et al. 2022): energy by class and phase, whether runtime tells the energy, what
// idle accelerators cost, and where CPU and GPU break even.
import {Figure, makeTable, tip} from "../figure.js";
import {h, name as isolated} from "../dom.js";
import {axisUnit, known, MISSING, percent, significant, tick, withUnit} from "../format.js";
import * as theme from "../theme.js";

const within = ([value, interval], text) => (interval ? `${text(value)} (${text(interval[0])} to ${text(interval[1])})` : text(value));
const seconds = (v) => withUnit(v, "s");
const factor = (v) => significant(v, 3);
const listOf = (parts) => parts.filter(Boolean).join(", ");

export function classTables(study) {
  const c = study.data.classes;
  return [c.rows.length ? energyFigure(c) : null, ratioTable(c), sentences(c)];
}

function energyFigure(c) {
  const mark = c.modelled ? "~" : "";
  const joules = (v) => mark + withUnit(v, "J");
  const works = [...new Set(c.rows.map((r) => listOf([r.phase, r.setting])))];
  const classes = [...new Set(c.rows.map((r) => r.class))];
  const at = (work, node) => c.rows.find((r) => listOf([r.phase, r.setting]) === work && r.class === node);
  const components = [...new Set(c.rows.flatMap((r) => Object.keys(r.shares)))];
  const most = c.rows.reduce((a, b) => (b.energy[0] > a.energy[0] ? b : a));
  const figure = new Figure({
    height: 120 + 26 * works.length * classes.length,
    title: `Energy by class of node: most is ${joules(most.energy[0])}, ${listOf([most.phase, most.setting])} on ${most.class}`,
    subtitle: `Of whole runs, means of the repetitions${c.modelled ? "; a model's estimate, nothing was measured" : ""}.`,
    words: works.map((w) => `${w || "all"}: ${classes.map((n) => at(w, n)).filter(Boolean).map((r) => `${r.class} ${joules(r.energy[0])} in ${seconds(r.runtime[0])}`).join(", ")}`).join("; ") + ".",
    option: () => {
      const {scale, unit} = axisUnit(most.energy[0], "J");
      return {
        grid: {left: 12, right: 24, top: 40, bottom: 40, containLabel: true},
        legend: {data: classes},
        xAxis: {type: "value", name: `energy, ${unit}`, nameLocation: "middle", nameGap: 26, axisLabel: {formatter: tick}},
        yAxis: {type: "category", inverse: true, data: works.map((w) => w || "all"), axisLabel: {width: 210, overflow: "truncate"}},
        series: classes.map((node, i) => ({name: node, type: "bar", itemStyle: {color: theme.colour(i)}, emphasis: {disabled: true}, data: works.map((w) => (at(w, node) ? {value: at(w, node).energy[0] / scale, row: at(w, node)} : null))})),
        tooltip: {trigger: "item", formatter: (p) => tip(listOf([p.seriesName, p.data.row.phase, p.data.row.setting]), [[p.color, "energy", within(p.data.row.energy, joules)], [null, "runtime", within(p.data.row.runtime, seconds)]])},
      };
    },
    table: () => ({
      columns: [{title: "Phase"}, {title: "Setting"}, {title: "Class"}, {title: "Runtime", right: true}, {title: "Energy", right: true}, {title: "Mean power", right: true}, ...components.map((x) => ({title: `Share of ${x}`, right: true}))],
      rows: c.rows.map((r) => [r.phase, r.setting, r.class, within(r.runtime, seconds), within(r.energy, joules), mark + withUnit(r.mean_power_w, "W"), ...components.map((x) => (known(r.shares[x]) ? percent(r.shares[x]) : MISSING))]),
    }),
  });
  return figure.element;
}

function ratioTable(c) {
  if (!c.ratios.length) return null;
  const wrong = c.ratios.filter((r) => r.is_proxy === false);
  const told = c.ratios.some((r) => r.is_proxy !== null);
  return h("div", {class: "card"}, h("h3", {}, told ? (wrong.length ? `Runtime does not tell the energy in ${wrong.length} of ${c.ratios.length} comparisons` : "Runtime tells the energy in all comparisons") : "Is runtime a proxy of energy?"),
    h("p", {class: "subtitle"}, "If runtime told the energy, both ratios would be the same."),
    h("div", {class: "scroll"}, makeTable({
      columns: [{title: "Phase"}, {title: "Setting"}, {title: "Class against class"}, {title: "Runtime, times", right: true}, {title: "Energy, times", right: true}, {title: "Runtime is wrong by", right: true}, {title: "Proxy"}],
      rows: c.ratios.map((r) => [r.phase, r.setting, `${r.a} : ${r.b}`, within(r.runtime, factor), within(r.energy, factor), `${r.proxy_error > 0 ? "+" : ""}${percent(r.proxy_error)}`, r.is_proxy === null ? "measured once: not known" : r.is_proxy ? "yes" : "no"]),
    }, "Runtime and energy ratios")));
}

function sentences(c) {
  const lines = [
    ...c.idle.map((r) => `${listOf([r.class, r.phase, r.setting])}: GPUs with nothing to do took ${withUnit(r.gpu_energy[0], "J")}, ${percent(r.share)} of the energy; that is ${percent(r.penalty)} more than the same work without them.`),
    ...c.break_even.map((r) => (r.kind === "at_batch"
      ? `${listOf([`${r.cpu_class} against ${r.gpu_class}`, r.setting])}: inference costs the same at a batch of about ${significant(r.batch, 3)} (measured at ${tick(r.low)} and ${tick(r.high)}).`
      : `${listOf([`${r.cpu_class} against ${r.gpu_class}`, r.setting])}: ${r.kind === "gpu_always" ? r.gpu_class : r.cpu_class} uses less energy a sample at every batch from ${tick(r.low)} to ${tick(r.high)}.`)),
  ];
  return lines.length ? h("div", {class: "card"}, h("h3", {}, "Idle accelerators and where CPU and GPU break even"), h("ul", {}, lines.map((text) => h("li", {}, isolated(text))))) : null;
}
