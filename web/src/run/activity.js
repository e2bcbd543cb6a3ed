// Power against activity, as a roofline sets speed against intensity: what a device draws for how busy it is, below its limit.
import {absent, choice, Figure, tip} from "../figure.js";
import {count, known, percent, significant, withUnit} from "../format.js";
import * as theme from "../theme.js";
import {columnTitle, domainTitle, paletteOf} from "./names.js";

const ORDER = ["sm_active_ratio", "tensor_active_ratio", "dram_active_ratio", "gpu_active_ratio", "memory_active_ratio"];

export function activityFigure(data) {
  const several = data.nodes.length > 1;
  const power = new Map(data.series.filter((s) => s.role === "power").map((s) => [`${s.node}\n${s.domain}`, s]));
  const activity = data.series.filter((s) => s.column.endsWith("_ratio") && s.unit === "1" && power.has(`${s.node}\n${s.domain}`) && s.readings > 1);
  const columns = [...new Set(activity.map((s) => s.column))].sort((a, b) => (ORDER.indexOf(a) + 1 || 99) - (ORDER.indexOf(b) + 1 || 99));
  const palette = paletteOf(data);
  const clouds = (column) => activity.filter((s) => s.column === column).map((s, i) => {
    const p = power.get(`${s.node}\n${s.domain}`);
    return {slot: palette(s.domain, i), title: domainTitle(s.domain, s.node, several), points: pairs(s, p), limit: limitOf(data, s), mean: [s.mean, p.mean]};
  }).filter((c) => c.points.length);
  const usable = columns.filter((c) => clouds(c).length);
  if (!usable.length) return absent("Power against activity", "No device of this run told both its power and how busy it was, so the two cannot be set against each other.", null);
  let column = usable[0];
  const figure = new Figure({
    height: 340,
    controls: usable.length > 1 ? [choice("Activity", usable.map((c) => [c, columnTitle({column: c})]), column, (value) => {
      column = value;
      figure.draw();
    })] : [],
    title: () => headline(clouds(column), column),
    subtitle: () => `Each point is the mean of a part of the run: power against ${columnTitle({column})}. Dashed: power limit.`,
    words: () => clouds(column).map((c) => `${c.title}: ${count(c.points.length, "point")}, on average ${percent(c.mean[0], 0)} at ${withUnit(c.mean[1], "W", 3)}`).join("; ") + ".",
    option: () => option(clouds(column), columnTitle({column})),
    table: () => ({
      columns: [{title: "Domain"}, {title: "Activity", right: true}, {title: "Power", right: true}],
      rows: clouds(column).flatMap((c) => c.points.map(([x, y]) => [c.title, `${significant(x, 3)} %`, withUnit(y, "W", 4)])),
    }),
    csv: () => [["domain", `${column}`, "power_w"], ...clouds(column).flatMap((c) => c.points.map(([x, y]) => [c.title, x / 100, y]))],
  });
  return figure.element;
}

// Both channels are averaged over the same parts of the time.
function pairs(activity, power) {
  if (activity.parts.width_ns !== power.parts.width_ns) return [];
  const out = [];
  activity.parts.v.forEach((x, i) => {
    const y = power.parts.v[i + activity.parts.first - power.parts.first];
    if (known(x) && known(y)) out.push([100 * x, y]);
  });
  return out;
}

function limitOf(data, s) {
  const gpu = data.nodes.find((n) => n.name === s.node)?.gpus.find((g) => g.domain === s.domain);
  return gpu?.power_limit_w ?? null;
}

function headline(clouds, column) {
  const top = clouds.reduce((a, b) => ((b.mean[1] ?? 0) > (a.mean[1] ?? 0) ? b : a));
  const share = known(top.limit) && top.limit > 0 ? `, ${percent(top.mean[1] / top.limit, 0)} of its limit` : "";
  return `Power against activity: at ${percent(top.mean[0], 0)} ${columnTitle({column})} ${top.title} draws ${withUnit(top.mean[1], "W", 3)}${share}`;
}

function option(clouds, name) {
  const g = theme.ground();
  const limits = [...new Set(clouds.map((c) => c.limit).filter(known))];
  const peak = Math.max(...clouds.flatMap((c) => c.points.map((p) => p[1])));
  const series = clouds.map((c) => ({
    name: c.title, type: "scatter", symbol: theme.symbol(c.slot), symbolSize: 7, itemStyle: {color: theme.colour(c.slot), opacity: 0.6}, data: c.points, emphasis: {disabled: true},
  }));
  series[0].markLine = {silent: true, symbol: "none", lineStyle: {color: g.soft, type: "dashed"}, label: {formatter: (p) => `limit ${withUnit(p.value, "W", 3)}`, color: g.soft, position: "insideEndTop"},
    data: limits.filter((l) => l < 3 * peak).map((l) => ({yAxis: l}))};
  const top = Math.max(peak, ...limits.filter((l) => l < 3 * peak)) * 1.05;
  return {
    grid: {left: 64, right: 20, top: 58, bottom: 48},
    legend: {data: clouds.map((c) => c.title)},
    xAxis: {type: "value", min: 0, max: (v) => Math.max(100, Math.ceil(v.max)), name: `${name}, %`, nameLocation: "middle", nameGap: 28},
    yAxis: {type: "value", min: 0, max: Number(top.toPrecision(2)), name: "power, W", nameGap: 12, nameTextStyle: {align: "left", padding: [0, 0, 0, -40]}},
    series,
    tooltip: {trigger: "item", formatter: (p) => tip(p.seriesName, [[p.color, name, `${significant(p.value[0], 3)} %`], [null, "power", withUnit(p.value[1], "W")]])},
  };
}
