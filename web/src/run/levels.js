// Everything that is not power: utilisation, memory, clocks, temperatures, transfers. One figure a kind, with a choice of
// what is shown.
import {absent, choice, Figure, tip} from "../figure.js";
import {axisUnit, count, listed, moment, significant, tick, withUnit} from "../format.js";
import {extent, gaps, unpack, valueAt, view} from "../series.js";
import * as theme from "../theme.js";
import {pointsCsv, timeLabels} from "./power.js";
import {columnTitle, domainTitle, paletteOf} from "./names.js";

const BUCKETS = 500;
const LINES = 12;

const KINDS = [
  {name: "Utilisation", fits: (s) => s.unit === "1", first: ["sm_active_ratio", "gpu_active_ratio", "cpu_s"],
    none: "No sensor of this run told how busy a device was."},
  {name: "Memory", fits: (s) => s.unit === "B", first: ["used_bytes", "memory_used_bytes", "rss_bytes"], none: "No sensor of this run told how much memory was used."},
  {name: "Clocks and temperatures", fits: (s) => s.unit === "Hz" || s.unit === "Cel", first: ["sm_clock_hz"], none: null},
  {name: "Transfers", fits: (s) => s.unit === "B/s", first: [], none: null},
];

export function levelFigures(data) {
  return KINDS.map((kind) => {
    const list = data.series.filter((s) => s.role !== "power" && s.readings > 0 && kind.fits(s));
    if (!list.length) return kind.none ? absent(kind.name, kind.none, "`ergometer sensors` says what is missing here and why.") : null;
    return levelFigure(kind, list, data);
  });
}

// One entry of the choice: a quantity of one kind of domain, over all domains that have it.
function choices(list) {
  const groups = new Map();
  for (const s of list) {
    const key = `${s.domain.replace(/\/\d+$/, "")}\n${s.column}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(s);
  }
  return groups;
}

function groupTitle(group) {
  const s = group[0];
  const kind = s.domain.replace(/\/\d+$/, "");
  const where = kind === "gpu" ? "GPU" : domainTitle(kind, s.node, false);
  const column = columnTitle(s);
  return column.toLowerCase().startsWith(where.toLowerCase()) ? column : `${where}: ${column}`;
}

function levelFigure(kind, list, data) {
  const several = data.nodes.length > 1;
  const groups = choices(list);
  const rank = (key) => {
    const column = key.split("\n")[1];
    const at = kind.first.indexOf(column);
    return (at < 0 ? 100 : at) + (key.startsWith("gpu") ? 0 : key.startsWith("tree") ? 10 : 50);
  };
  const keys = [...groups.keys()].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  let key = keys[0];
  const palette = paletteOf(data);
  for (const lines of groups.values()) lines.forEach((s, i) => (s.slot = palette(s.domain, i)));
  const group = () => groups.get(key);
  const title = (s) => domainTitle(s.domain, s.node, several);
  const state = {};
  const reset = () => [state.from, state.to] = state.all = wide(extent(group()), data);
  reset();
  const figure = new Figure({
    height: 300,
    controls: keys.length > 1 ? [choice("Show", keys.map((k) => [k, groupTitle(groups.get(k))]), key, (value) => {
      key = value;
      reset();
      figure.draw();
    })] : [],
    title: () => headline(kind, group(), title),
    subtitle: () => `${groupTitle(group())} over time, ${count(group().length, "line")}, in ${axisUnit(highest(group()), group()[0].unit).unit || "counts"}.`,
    words: () => group().slice(0, 12).map((s) => `${title(s)}: mean ${withUnit(s.mean, s.unit, 3)}, lowest ${withUnit(s.lowest, s.unit, 3)}, highest ${withUnit(s.highest, s.unit, 3)}`).join("; ") + ".",
    notes: () => {
      const holed = group().filter((s) => gaps(s).count > 0);
      return [holed.length ? `Lines break where readings are missing: ${listed(holed.slice(0, 6).map(title))}.` : null,
        group().length > LINES ? `${LINES} of ${group().length} lines are drawn; choose others in the legend.` : null,
        group().every((s) => s.readings === 1) ? "There is one reading only." : null].filter(Boolean);
    },
    option: () => option(group(), title, state),
    csv: () => pointsCsv(group()),
    table: () => ({
      columns: [{title: "Domain"}, {title: "Quantity"}, {title: "Readings", right: true}, {title: "Mean", right: true}, {title: "Lowest", right: true}, {title: "Highest", right: true}],
      rows: list.map((s) => [title(s), columnTitle(s), s.readings.toLocaleString("en"), withUnit(s.mean, s.unit, 3), withUnit(s.lowest, s.unit, 3), withUnit(s.highest, s.unit, 3)]),
    }),
    wired: (chart) => chart.on("datazoom", () => {
      const zoom = chart.getOption().dataZoom[0];
      const [from, to] = state.all;
      state.from = from + (to - from) * zoom.start / 100;
      state.to = from + (to - from) * zoom.end / 100;
      const {scale} = axisUnit(highest(group()), group()[0].unit);
      chart.setOption({xAxis: timeLabels(state), series: group().map((s, i) => ({id: `level-${i}`, data: scaled(s, state, scale)}))}, {lazyUpdate: true});
    }),
  });
  return figure.element;
}

const highest = (group) => Math.max(...group.map((s) => s.highest ?? 0));

function wide([from, to], data) {
  const end = data.summary.run.duration_s;
  const range = typeof end === "number" ? [Math.min(0, from), Math.max(end, to)] : [from, to];
  return range[1] > range[0] ? range : [from - 0.5, to + 0.5];
}

function headline(kind, group, title) {
  const told = group.filter((s) => typeof s.mean === "number");
  const name = groupTitle(group);
  if (told.length === 0) return `${kind.name}: ${name}`;
  const unit = told[0].unit;
  if (told.length === 1) {
    const peak = told[0].highest > told[0].mean * 1.02 ? `, ${withUnit(told[0].highest, unit, 3)} at most` : "";
    return `${kind.name}: ${name} ${withUnit(told[0].mean, unit, 3)} on average${peak}`;
  }
  const sorted = [...told].sort((a, b) => b.mean - a.mean);
  const mean = told.reduce((s, x) => s + x.mean, 0) / told.length;
  const [least, most] = [sorted[sorted.length - 1], sorted[0]].map((s) => withUnit(s.mean, unit, 3));
  if (least === most) return `${kind.name}: ${name} ${most} on average on all ${told.length}`;
  return `${kind.name}: ${name} ${withUnit(mean, unit, 3)} on average, from ${least} (${title(sorted[sorted.length - 1])}) to ${most} (${title(sorted[0])})`;
}

const scaled = (s, state, scale) => view(unpack(s), state.from, state.to, BUCKETS).map(([t, v]) => [t, v === null ? null : v / scale]);

function option(group, title, state) {
  const g = theme.ground();
  const [from, to] = state.all;
  const peak = highest(group);
  const {scale, unit} = axisUnit(peak, group[0].unit);
  const share = group[0].unit === "1" && peak <= 1;
  const zoom = {start: 100 * (state.from - from) / (to - from), end: 100 * (state.to - from) / (to - from), filterMode: "none"};
  return {
    grid: {left: 64, right: 16, top: 58, bottom: 70},
    legend: {data: group.map(title), selected: Object.fromEntries(group.map((s, i) => [title(s), i < LINES]))},
    xAxis: {type: "value", min: from, max: to, ...timeLabels(state), name: "time since start", nameLocation: "middle", nameGap: 26,
      splitLine: {show: false}, axisPointer: {show: true, snap: false, label: {show: false}, lineStyle: {color: g.soft, type: "dashed"}}},
    yAxis: {type: "value", name: unit, nameGap: 12, min: group[0].unit === "Cel" ? undefined : 0, max: share ? 100 : undefined, scale: group[0].unit === "Cel",
      axisLabel: {formatter: tick}},
    series: group.map((s, i) => ({id: `level-${i}`, name: title(s), type: "line", data: scaled(s, state, scale), showSymbol: s.readings === 1, symbol: theme.symbol(s.slot), symbolSize: 8,
      connectNulls: false, lineStyle: {width: 1.5, type: theme.dash(s.slot)}, itemStyle: {color: theme.colour(s.slot)}, emphasis: {disabled: true}})),
    dataZoom: [{type: "slider", height: 16, bottom: 6, showDetail: false, showDataShadow: false, brushSelect: false, borderColor: g.line, fillerColor: g.band, handleStyle: {color: g.soft}, ...zoom},
      {type: "inside", zoomOnMouseWheel: "ctrl", ...zoom}],
    tooltip: {trigger: "axis", formatter: (hits) => {
      const t = hits[0].axisValue;
      const shown = new Set(hits.map((x) => x.seriesName));
      return tip(moment(Number(t.toPrecision(6)), to - from), group.map((s) => [theme.colour(s.slot), title(s), text(s, t)]).filter(([, name]) => shown.has(name)));
    }},
  };
}

function text(s, t) {
  const value = valueAt(unpack(s), t, 5 * (s.usual_s || 1));
  return value === null ? "no reading" : withUnit(value, s.unit, 3);
}
