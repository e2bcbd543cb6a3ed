// Where the energy went: the parts of each node, with what the machine is made of.
import {absent, Figure, tip} from "../figure.js";
import {h, name} from "../dom.js";
import {axisUnit, count, energy, known, percent, significant, tick, withUnit} from "../format.js";
import * as theme from "../theme.js";
import {paletteOf} from "./names.js";

export function compositionFigure(data) {
  // Where nothing was measured the parts of the estimate are shown, and said to be one.
  const measured = data.summary.nodes.some((node) => node.domains.some((d) => d.in_total && d.measured && known(d.energy_j)));
  const mark = measured ? "" : "~";
  const nodes = data.summary.nodes.map((node) => ({name: node.name, unexplained: node.unexplained_j,
    parts: node.domains.filter((d) => known(d.energy_j) && (measured ? d.in_total : !d.measured))}));
  const told = nodes.filter((n) => n.parts.length);
  if (!told.length) return absent("Where the energy went", "No domain of this run has a measured energy, so its parts cannot be shown.", null);
  const domains = [...new Set(told.flatMap((n) => n.parts.map((d) => d.domain)))];
  const sum = told.flatMap((n) => n.parts).reduce((s, d) => s + d.energy_j, 0);
  const value = (node, domain) => node.parts.find((d) => d.domain === domain)?.energy_j ?? null;
  const rest = (node) => (known(node.unexplained) && node.unexplained > 0 ? node.unexplained : null);
  const hasRest = told.some((n) => rest(n) !== null);
  const largest = told.flatMap((n) => n.parts).reduce((a, b) => (b.energy_j > a.energy_j ? b : a));
  const palette = paletteOf(data);
  const figure = new Figure({
    height: 110 + 46 * told.length,
    title: sum > 0 ? `Where the energy went: ${largest.domain} took ${percent(largest.energy_j / sum, 0)} of ${mark}${withUnit(sum, "J", 3)}` : "Where the energy went",
    subtitle: `${measured ? "Energy of the domains in the total, by node." : "A model's estimate by node; nothing was measured."}${hasRest ? " “Unexplained” is what the node's meter saw beyond them; it is not part of the total." : ""}`,
    words: () => told.map((n) => `${n.name}: ${n.parts.map((d) => `${d.domain} ${withUnit(d.energy_j, "J")}`).join(", ")}`).join("; ") + ".",
    option: () => {
      const g = theme.ground();
      const {scale, unit} = axisUnit(Math.max(...told.map((n) => n.parts.reduce((s, d) => s + d.energy_j, 0) + (rest(n) ?? 0))), "J");
      const bar = (title, color, values) => ({name: title, type: "bar", stack: "node", barMaxWidth: 34, itemStyle: {color, borderColor: g.card, borderWidth: 1}, data: values.map((v) => (known(v) ? v / scale : null))});
      return {
        grid: {left: 12, right: 20, top: 36, bottom: 30, containLabel: true},
        legend: {data: [...domains, ...(hasRest ? ["unexplained"] : [])]},
        xAxis: {type: "value", name: `energy, ${unit}`, nameLocation: "middle", nameGap: 26, axisLabel: {formatter: tick}},
        yAxis: {type: "category", data: told.map((n) => n.name), axisLabel: {width: 110, overflow: "truncate"}},
        series: [...domains.map((d, i) => bar(d, theme.colour(palette(d, i)), told.map((n) => value(n, d)))), ...(hasRest ? [bar("unexplained", g.line, told.map(rest))] : [])],
        tooltip: {trigger: "item", formatter: (p) => tip(told[p.dataIndex].name, [[p.color, p.seriesName, mark + withUnit(p.value * scale, "J")]])},
      };
    },
    table: () => ({
      columns: [{title: "Node"}, {title: "Domain"}, {title: "Energy", right: true}, {title: "Share", right: true}],
      rows: told.flatMap((n) => [...n.parts.map((d) => [n.name, d.domain, mark + energy(d.energy_j, d.uncertainty_j), sum > 0 ? percent(d.energy_j / sum) : "—"]),
        ...(known(n.unexplained) ? [[n.name, "unexplained", withUnit(n.unexplained, "J"), "—"]] : [])]),
    }),
  });
  return figure.element;
}

const bytes = (value) => (known(value) ? `${significant(value / 2 ** 30, 3)} GiB` : null);

// What each machine is made of, as far as it is known.
export function machines(data) {
  return data.nodes.map((node) => {
    const cpu = node.cpu;
    const same = new Map();
    for (const gpu of node.gpus) {
      const key = JSON.stringify([gpu.name, gpu.memory_bytes, gpu.power_limit_w, gpu.visible, gpu.state]);
      if (!same.has(key)) same.set(key, []);
      same.get(key).push(gpu);
    }
    const facts = [
      ["Processor", [cpu.model, known(cpu.sockets) ? count(cpu.sockets, "socket") : null, known(cpu.cores) ? count(cpu.cores, "core") : null,
        known(cpu.threads) ? count(cpu.threads, "thread") : null, known(cpu.quota_cpus) ? `limited to ${significant(cpu.quota_cpus, 3)} CPUs` : null]],
      ["Memory", [bytes(node.memory_bytes), known(node.memory_limit_bytes) ? `limited to ${bytes(node.memory_limit_bytes)}` : null]],
      ...[...same.values()].map((list) => [list.length > 1 ? `GPUs, ${list.length}` : "GPU", [list[0].name, bytes(list[0].memory_bytes),
        known(list[0].power_limit_w) ? `power limit ${withUnit(list[0].power_limit_w, "W", 3)}` : null, list[0].visible ? null : "not used by the command", list[0].mig ? "cut into slices (MIG)" : null,
        list[0].state === "ok" ? null : list[0].state, list.map((g) => g.domain.replace("gpu/", "")).length > 1 ? `numbers ${list.map((g) => g.domain.replace("gpu/", "")).join(", ")}` : null]]),
      ["GPUs", node.gpus.length ? [] : ["no GPU data"]],
      ["System", [node.kernel, ...Object.entries(node.versions).map(([k, v]) => `${k} ${v}`)]],
    ].map(([label, parts]) => [label, parts.filter(Boolean)]).filter(([, parts]) => parts.length);
    return h("div", {class: "machine"}, h("h4", {}, name(node.hostname || node.name)),
      h("dl", {}, facts.map(([label, parts]) => [h("dt", {}, label), h("dd", {}, name(parts.join(" · ")))])));
  });
}
