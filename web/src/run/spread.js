// How the time is spread over power, utilisation or memory: the share of the time at each level.
import {choice, Figure, tip} from "../figure.js";
import {axisUnit, percent, significant, tick, withUnit} from "../format.js";
import * as theme from "../theme.js";
import {columnTitle, domainTitle, paletteOf} from "./names.js";

const LINES = 8;

export function spreadFigure(data) {
  const several = data.nodes.length > 1;
  const list = data.series.filter((s) => s.readings > 1 && s.spread.share.length && ["W", "1", "B"].includes(s.unit));
  if (!list.length) return null;
  const groups = new Map();
  for (const s of list) {
    const key = s.role === "power" ? "power" : s.column;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(s);
  }
  const order = ["power", "sm_active_ratio", "gpu_active_ratio", "used_bytes"];
  const keys = [...groups.keys()].sort((a, b) => (order.indexOf(a) + 1 || 99) - (order.indexOf(b) + 1 || 99));
  let key = keys[0];
  const palette = paletteOf(data);
  for (const lines of groups.values()) lines.forEach((s, i) => (s.slot = palette(s.domain, i)));
  const group = () => [...groups.get(key)].sort((a, b) => b.mean - a.mean).slice(0, LINES);
  const name = (k) => (k === "power" ? "power" : columnTitle(groups.get(k)[0]));
  const title = (s) => domainTitle(s.domain, s.node, several);
  const peak = (s) => {
    const i = s.spread.share.indexOf(Math.max(...s.spread.share));
    return level(s, i);
  };
  const figure = new Figure({
    height: 280,
    controls: keys.length > 1 ? [choice("Show", keys.map((k) => [k, name(k)]), key, (value) => {
      key = value;
      figure.draw();
    })] : [],
    title: () => {
      const s = group()[0];
      return `Distribution of ${name(key)}: ${title(s)} spends most time near ${withUnit(peak(s), s.unit, 3)}`;
    },
    subtitle: () => `Share of the time at each level of ${name(key)}, in 50 steps from lowest to highest.`,
    words: () => group().map((s) => `${title(s)}: most often near ${withUnit(peak(s), s.unit, 3)}, mean ${withUnit(s.mean, s.unit, 3)}`).join("; ") + ".",
    notes: () => (groups.get(key).length > LINES ? [`The ${LINES} largest of ${groups.get(key).length} are drawn.`] : []),
    option: () => option(group(), name(key), title),
    table: () => ({
      columns: [{title: "Domain"}, {title: "From", right: true}, {title: "To", right: true}, {title: "Share of the time", right: true}],
      rows: group().flatMap((s) => s.spread.share.map((share, i) => [title(s), withUnit(edge(s, i), s.unit, 4), withUnit(edge(s, i + 1), s.unit, 4), percent(share, 2)]).filter((_, i) => s.spread.share[i] > 0)),
    }),
    csv: () => [["node", "domain", "column", "unit", "from", "to", "share"],
      ...group().flatMap((s) => s.spread.share.map((share, i) => [s.node, s.domain, s.column, s.unit, edge(s, i), edge(s, i + 1), share]))],
  });
  return figure.element;
}

const edge = ({spread}, i) => spread.low + (spread.high - spread.low) * i / spread.share.length;
const level = (s, i) => (edge(s, i) + edge(s, i + 1)) / 2;

function option(group, name, title) {
  const {scale, unit} = axisUnit(Math.max(...group.map((s) => s.spread.high)), group[0].unit);
  return {
    grid: {left: 64, right: 20, top: 58, bottom: 48},
    legend: {data: group.map(title)},
    xAxis: {type: "value", name: `${name}, ${unit}`, nameLocation: "middle", nameGap: 28, axisLabel: {formatter: tick}, splitLine: {show: false}},
    yAxis: {type: "value", name: "share of the time, %", nameGap: 12, nameTextStyle: {align: "left", padding: [0, 0, 0, -40]}, min: 0},
    series: group.map((s) => ({
      name: title(s), type: "line", step: "start", showSymbol: false, data: [[edge(s, 0) / scale, 0], ...s.spread.share.map((share, n) => [edge(s, n + 1) / scale, 100 * share])],
      lineStyle: {width: 1.5, type: theme.dash(s.slot)}, itemStyle: {color: theme.colour(s.slot)}, areaStyle: {opacity: group.length > 3 ? 0 : 0.15}, emphasis: {disabled: true},
    })),
    tooltip: {trigger: "axis", formatter: (hits) => tip(`${significant(hits[0].axisValue, 4)} ${unit}`, hits.map((x) => [x.color, x.seriesName, `${significant(x.value[1], 3)} %`]))},
  };
}
