// Power by domain over time, regions as bands and lanes below, throttling as marks.
import {absent, Figure, tip} from "../figure.js";
import {count, duration, known, listed, moment, moments, significant, tick, withUnit} from "../format.js";
import {extent, gaps, unpack, valueAt, view} from "../series.js";
import * as theme from "../theme.js";
import {domainTitle, METHODS, paletteOf} from "./names.js";

const SELECTED = 10;   // lines shown at first; the others wait in the legend
const BUCKETS = 700;   // of one line on the screen; of several lines fewer each, since drawing costs by the point
const ALL_BUCKETS = 4000, LEAST_BUCKETS = 250;
const MARKS = 300;

export function powerFigure(data) {
  const several = data.nodes.length > 1;
  const list = data.series.filter((s) => s.role === "power" && s.readings > 0);
  if (!list.length) return absent("Power over time", missingPower(data),
    "`ergometer sensors` lists what this machine can measure and what would bring the rest; the absences are listed below.");
  const inTotal = new Set(data.summary.nodes.flatMap((n) => n.domains.filter((d) => d.in_total).map((d) => `${n.name}\n${d.domain}`)));
  // The mean is that of the table, energy by covered time; the series' own knows its readings only.
  const means = new Map(data.summary.nodes.flatMap((n) => n.domains.map((d) => [`${n.name}\n${d.domain}`, d.mean_power_w])));
  const lines = list.map((s) => ({...s, counted: inTotal.has(`${s.node}\n${s.domain}`), title: domainTitle(s.domain, s.node, several),
    mean: means.get(`${s.node}\n${s.domain}`) ?? s.mean}))
    .sort((a, b) => b.counted - a.counted || (b.mean ?? 0) - (a.mean ?? 0));
  const palette = paletteOf(data);
  lines.forEach((s, i) => (s.slot = palette(s.domain, i)));
  const [from, to] = widened(extent(lines), data);
  const lanes = laneRows(data);
  const throttles = data.events.filter((e) => e.kind === "throttle");
  const single = lines.every((s) => s.readings === 1);
  const state = {from, to};

  const figure = new Figure({
    height: 360 + lanes.height,
    title: () => headline(lines),
    subtitle: () => `Power in watts by domain over the time since the command's start${lanes.rows.length ? ", regions below" : ""}. ${
      single ? "There is one reading only." : "Drag or pinch to zoom; every peak is kept."}`,
    words: () => lines.slice(0, 12).map((s) => `${s.title}: mean ${withUnit(s.mean, "W")}, lowest ${withUnit(s.lowest, "W")}, highest ${withUnit(s.highest, "W")}`).join("; ") + ".",
    notes: () => notes(lines, lanes, throttles, data),
    option: () => option({lines, lanes, throttles, from, to, state, data}),
    table: () => ({
      columns: [{title: "Domain"}, {title: "Readings", right: true}, {title: "Mean", right: true}, {title: "Lowest", right: true},
        {title: "Highest", right: true}, {title: "Drawn from"}, {title: "In the total"}],
      rows: lines.map((s) => [s.title, s.readings.toLocaleString("en"), withUnit(s.mean, "W"), withUnit(s.lowest, "W"), withUnit(s.highest, "W"), METHODS[s.method] ?? s.column, s.counted ? "yes" : "no"]),
    }),
    csv: () => pointsCsv(lines),
    wired: (chart) => chart.on("datazoom", () => rezoom(chart, lines, from, to, state)),
  });
  return figure.element;
}

const bucketsOf = (lines) => Math.min(BUCKETS, Math.max(LEAST_BUCKETS, Math.round(ALL_BUCKETS / Math.min(lines.length, SELECTED))));

function missingPower(data) {
  if (data.series.length) return "No sensor of this run told power or energy, so there is no power to draw.";
  return "This run has no readings: no sensor was there, or its files are empty.";
}

function widened(range, data) {
  const end = data.summary.run.duration_s;
  let [from, to] = range;
  if (known(end)) {
    from = Math.min(from, 0);
    to = Math.max(to, end);
  }
  return to > from ? [from, to] : [from - 0.5, to + 0.5];
}

function headline(lines) {
  const counted = lines.filter((s) => s.counted);
  const top = (counted.length ? counted : lines).reduce((a, b) => ((b.highest ?? -1) > (a.highest ?? -1) ? b : a));
  if (top.readings === 1) return `Power over time: ${top.title} was read once, at ${withUnit(top.highest, "W")}`;
  return `Power over time: ${top.title} draws ${withUnit(top.mean, "W", 3)} on average and ${withUnit(top.highest, "W", 3)} at its peak`;
}

function notes(lines, lanes, throttles, data) {
  const out = [];
  const holed = lines.map((s) => [s, gaps(s)]).filter(([, g]) => g.count > 0);
  if (holed.length) out.push(`Lines break where readings are missing: ${listed(holed.slice(0, 5).map(([s, g]) => `${s.title} ${count(g.count, "gap")}, ${duration(g.sum)} in all`))}.`);
  if (lines.length > SELECTED) out.push(`The ${SELECTED} largest of ${lines.length} domains are drawn; choose others in the legend.`);
  if (lines.some((s) => !s.measured)) out.push("Dotted lines are a model's estimate, not a measurement.");
  if (!lanes.rows.length) out.push("This run has no regions: mark them (docs/markers.md) or give --epoch-regex to see what the program was doing.");
  out.push(...lanes.notes);
  if (throttles.length) out.push(`${count(throttles.length, "throttle event")} marked on the time axis; the list is under “Events”.`);
  if (data.events_total > data.events.length) out.push(`Only the first ${data.events.length} of ${data.events_total} events are on this page.`);
  return out;
}

// The rows below the figure: for each rank of each node one a depth; of many ranks only the outermost regions.
function laneRows(data) {
  const tracks = data.lanes.filter((l) => l.bars.length);
  if (!tracks.length) return {rows: [], bars: [], height: 0, notes: [], labels: []};
  const most = tracks.length > 8 ? 1 : tracks.length > 3 ? 2 : 6;
  const several = data.nodes.length > 1;
  const bars = [], labels = [], out = [];
  let row = 0, inner = 0;
  for (const lane of tracks) {
    const depths = Math.min(most, 1 + Math.max(...lane.bars.map((b) => b[0])));
    for (const bar of lane.bars) {
      if (bar[0] < depths) bars.push([bar[0] + row, ...bar.slice(1)]);
      else inner += bar[4];
    }
    labels.push({row, text: [several ? lane.node : null, lane.track || null].filter(Boolean).join(" ")});
    row += depths;
  }
  const hidden = tracks.reduce((n, l) => n + l.hidden, 0), deeper = tracks.reduce((n, l) => n + l.deeper, 0) + inner;
  const regions = tracks.reduce((n, l) => n + l.regions, 0);
  if (tracks.length > 1) out.push(`Regions of ${listed(labels.map((l) => l.text))} are drawn, one below the other.`);
  if (hidden) out.push(`${tracks.length === 1 && tracks[0].track ? `Regions of ${tracks[0].track} are drawn; ` : ""}${count(hidden, "region")} of others overlap them.`);
  if (bars.some((b) => b[4] > 1)) out.push(`Some bars stand for several of ${count(regions, "region")} that are too narrow to be told apart.`);
  if (deeper) out.push(`${count(deeper, "region")} nested deeper than ${count(most, "level")} are left out.`);
  if (data.nodes_total > data.nodes.length) out.push(`Figures are of the first ${data.nodes.length} of ${data.nodes_total} nodes; the totals are of all.`);
  return {rows: Array.from({length: row}, (_, i) => i), bars, height: (tracks.length > 3 ? 16 : 22) * row + 14, notes: out, labels: tracks.length > 1 ? labels : []};
}

const shortName = (path) => path.slice(path.lastIndexOf("/") + 1);

function option({lines, lanes, throttles, from, to, state, data}) {
  const g = theme.ground();
  const span = to - from;
  const below = lanes.height;
  const selected = Object.fromEntries(lines.map((s, i) => [s.title, i < SELECTED]));
  const legend = {data: lines.map((s) => s.title), selected};
  const series = lines.map((s, i) => line(s, i, view(unpack(s), state.from, state.to, bucketsOf(lines))));
  const first = series[0];
  first.markArea = {silent: true, data: bands(data), itemStyle: {color: g.band}, label: {show: false}};
  const marks = throttleSeries(throttles, lines);
  if (marks) {
    series.push(marks);
    legend.data.push(marks.name);
  }
  const grids = [{left: 64, right: 16, top: 58, bottom: 76 + below}];
  const xAxes = [{type: "value", min: from, max: to, ...timeLabels(state), name: "time since start", nameLocation: "middle", nameGap: 26,
    axisPointer: {show: true, snap: false, label: {show: false}, lineStyle: {color: g.soft, type: "dashed"}}, splitLine: {show: false}}];
  const yAxes = [{type: "value", name: "power, W", nameGap: 12, nameTextStyle: {align: "left", padding: [0, 0, 0, -40]}, min: 0, axisLabel: {formatter: tick}}];
  if (lanes.rows.length) {
    grids.push({left: 64, right: 16, height: below - 14, bottom: 44});
    xAxes.push({type: "value", gridIndex: 1, min: from, max: to, show: false});
    yAxes.push({type: "value", gridIndex: 1, min: 0, max: lanes.rows.length, inverse: true, show: false});
    series.push(laneSeries(lanes));
    if (lanes.labels.length) yAxes[1] = {...yAxes[1], show: true, axisLine: {show: false}, axisTick: {show: false}, splitLine: {show: false},
      axisLabel: {customValues: lanes.labels.map((l) => l.row + 0.5), formatter: (y) => laneLabel(lanes, y), fontSize: 10}};
  }
  const slider = {type: "slider", xAxisIndex: xAxes.map((_, i) => i), height: 18, bottom: 8, filterMode: "none", showDetail: false, brushSelect: false,
    borderColor: g.line, fillerColor: g.band, handleStyle: {color: g.soft}, moveHandleSize: 4, showDataShadow: false,
    start: 100 * (state.from - from) / span, end: 100 * (state.to - from) / span};
  return {
    grid: grids, xAxis: xAxes, yAxis: yAxes, legend, series,
    dataZoom: [slider, {type: "inside", xAxisIndex: slider.xAxisIndex, filterMode: "none", zoomOnMouseWheel: "ctrl", start: slider.start, end: slider.end}],
    tooltip: {trigger: "axis", formatter: (hits) => tooltip(hits, lines, span)},
  };
}

function line(s, i, points) {
  const alone = s.readings === 1;
  return {id: `power-${i}`, name: s.title, type: "line", data: points, showSymbol: alone, symbol: theme.symbol(s.slot), symbolSize: alone ? 9 : 5, connectNulls: false,
    lineStyle: {width: 1.5, type: s.measured ? theme.dash(s.slot) : "dotted"}, itemStyle: {color: theme.colour(s.slot)}, emphasis: {disabled: true}, z: 3};
}

function tooltip(hits, lines, span) {
  const list = [hits].flat();
  const axis = list.find((x) => x.axisDim === "x");
  if (!axis) return "";
  const t = axis.axisValue;
  const shown = new Set(list.map((x) => x.seriesName));
  const rows = lines.filter((s) => shown.has(s.title)).map((s) => {
    const value = valueAt(unpack(s), t, 5 * (s.usual_s || 1));
    return [theme.colour(s.slot), s.title, value === null ? "no reading" : withUnit(value, "W")];
  });
  return tip(moment(Number(t.toPrecision(6)), span), rows);
}

// Every other epoch is shaded, so that they can be told apart without a line more.
function bands(data) {
  const epochs = (data.lanes.find((l) => l.bars.length)?.bars ?? []).filter((b) => /(^|\/)epoch(\[\d+\])?$/.test(b[3]));
  return epochs.filter((_, i) => i % 2 === 0).slice(0, 400).map((b) => [{xAxis: b[1]}, {xAxis: b[2]}]);
}

function throttleSeries(throttles, lines) {
  const begins = throttles.filter((e) => !/ended/.test(e.detail)).slice(0, MARKS);
  if (!begins.length) return null;
  const top = Math.max(...lines.map((s) => s.highest ?? 0));
  return {name: "throttled", type: "scatter", symbol: "triangle", symbolRotate: 180, symbolSize: 10, itemStyle: {color: theme.ground().warn}, z: 6,
    data: begins.map((e) => ({value: [e.t, top], detail: e.detail})), tooltip: {trigger: "item", formatter: (p) => tip("Throttled", [[null, p.data.detail, ""]])}};
}

function laneSeries(lanes) {
  const g = theme.ground();
  return {
    id: "lanes", type: "custom", xAxisIndex: 1, yAxisIndex: 1, clip: true, data: lanes.bars.map((b) => [b[1], b[2], b[0]]),
    encode: {x: [0, 1], y: 2}, tooltip: {trigger: "item", formatter: (p) => {
      const [, begin, end, path, members, cut] = lanes.bars[p.dataIndex];
      return tip(members > 1 ? `${members} × ${path}` : path, [[null, members > 1 ? "all together" : "took", duration(end - begin)], ...(cut ? [[null, "never ended", "cut"]] : [])]);
    }},
    renderItem: (params, api) => {
      const [depth, , , path, members] = lanes.bars[params.dataIndex];
      const [x0, y0] = api.coord([api.value(0), depth]);
      const [x1, y1] = api.coord([api.value(1), depth + 1]);
      const area = params.coordSys;
      const left = Math.max(x0, area.x), right = Math.min(Math.max(x1, x0 + 1), area.x + area.width);
      if (right < left) return null;
      const width = Math.max(0.5, right - left - (right - left > 3 ? 1 : 0));
      const text = members > 1 ? `${members} × ${shortName(path)}` : shortName(path);
      const color = theme.colour(hash(family(path)));
      return {type: "rect", shape: {x: left, y: y0 + 1, width, height: y1 - y0 - 2, r: 2}, style: {fill: color, opacity: members > 1 ? 0.45 : 0.75},
        textContent: width > 7 * text.length + 6 ? {type: "text", style: {text, fill: g.card === "#ffffff" ? "#fff" : "#10141a", fontSize: 11}} : undefined,
        textConfig: {position: "inside"}};
    },
  };
}

function laneLabel(lanes, y) {
  const text = lanes.labels.find((l) => Math.abs(l.row + 0.5 - y) < 0.01)?.text ?? "";
  return text.length > 11 ? `${text.slice(0, 4)}…${text.slice(-6)}` : text;
}

const family = (path) => shortName(path).replace(/\[.*$/, "");
const hash = (text) => [...text].reduce((n, c) => (n * 31 + c.codePointAt(0)) % 9973, 7) % 8;

// Labels of the time axis for the window that is shown.
export function timeLabels({from, to}) {
  const customValues = moments(from, to);
  return {axisLabel: {customValues, formatter: (t) => moment(t, to - from)}, axisTick: {customValues}};
}

// While zoomed, the lines are made of the readings of the window.
function rezoom(chart, lines, from, to, state) {
  const zoom = chart.getOption().dataZoom[0];
  state.from = from + (to - from) * zoom.start / 100;
  state.to = from + (to - from) * zoom.end / 100;
  chart.setOption({xAxis: [timeLabels(state)], series: lines.map((s, i) => ({id: `power-${i}`, data: view(unpack(s), state.from, state.to, bucketsOf(lines))}))}, {lazyUpdate: true});
}

// The CSV has the points of the figure, not the few rows of its table.
export function pointsCsv(lines) {
  return [["node", "domain", "column", "unit", "t_s", "value"],
    ...lines.flatMap((s) => unpack(s).map(([t, v]) => [s.node, s.domain, s.column, s.unit, Number(t.toFixed(6)), v]))];
}
