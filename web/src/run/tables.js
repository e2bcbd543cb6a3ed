// The numbers of summary.json as tables, and where they come from: command, machine, sensors, what is missing and why.
import {makeTable} from "../figure.js";
import {h, name} from "../dom.js";
import {count, duration, known, listed, MISSING, moment, percent, withUnit} from "../format.js";
import {METHODS} from "./names.js";

export const section = (title, ...children) => h("section", {class: "part"}, h("h2", {}, title), ...children);
const card = (...children) => h("div", {class: "card"}, ...children);
const fold = (title, open, ...children) => h("details", {class: "card fold", open}, h("summary", {}, title), ...children);

export function domainTable(data) {
  const rows = data.summary.nodes.flatMap((node) => node.domains.map((d) => [
    data.summary.nodes.length > 1 ? `${node.name}: ${d.domain}` : d.domain, (d.measured ? "" : "~") + withUnit(d.energy_j, "J"), withUnit(d.uncertainty_j, "J", 2), withUnit(d.mean_power_w, "W"),
    withUnit(d.max_power_w, "W"), withUnit(d.last_power_w, "W"), percent(d.coverage), METHODS[d.method] ?? d.method, d.in_total ? "yes" : "no", d.note ?? ""]));
  if (!rows.length) return card(h("p", {}, "No domain of this run has energy or power readings."));
  return card(h("h3", {}, "Energy by domain"), h("div", {class: "scroll", id: "domains"}, makeTable({
    columns: [{title: "Domain"}, {title: "Energy", right: true}, {title: "± 95 %", right: true}, {title: "Mean power", right: true}, {title: "Highest reading", right: true},
      {title: "Last reading", right: true}, {title: "Coverage", right: true}, {title: "From"}, {title: "In total"}, {title: "Note"}],
    rows}, "Energy by domain")));
}

export function regionTable(data) {
  const regions = data.summary.regions;
  if (!regions.length) return null;
  const samples = regions.some((r) => known(r.metrics.energy_per_sample_j));
  const rows = regions.map((r) => [
    r.path + (r.count > 1 ? ` × ${r.count}` : "") + (r.cut ? " (cut)" : ""), duration(r.duration_s), withUnit(r.energy_j, "J") + (r.low_confidence ? " ?" : ""), withUnit(r.uncertainty_j, "J", 2),
    known(r.energy_j) && r.duration_s > 0 ? withUnit(r.energy_j / r.duration_s, "W") : MISSING, withUnit(r.net_energy_j, "J"),
    known(r.modelled_j) ? `~${withUnit(r.modelled_j, "J", 2)}` : "", ...(samples ? [withUnit(r.metrics.energy_per_sample_j, "J")] : [])]);
  const total = data.regions_total;
  return fold(`Regions: ${count(total, "row")}`, rows.length <= 24, h("div", {class: "scroll", id: "regions"}, makeTable({
    columns: [{title: "Region"}, {title: "Time", right: true}, {title: "Energy", right: true}, {title: "± 95 %", right: true}, {title: "Mean power", right: true}, {title: "Above idle", right: true},
      {title: "Estimate", right: true}, ...(samples ? [{title: "Per sample", right: true}] : [])], rows, total}, "Energy by region")),
  total > rows.length ? h("p", {class: "more"}, `This page has ${rows.length} of ${total.toLocaleString("en")} rows, epochs and outer regions first; \`ergometer export\` writes all.`) : null,
  regions.some((r) => r.low_confidence) ? h("p", {class: "more"}, "? shorter than the sensors resolve") : null);
}

export function warnings(list) {
  if (!list.length) return card(h("p", {class: "good"}, "No warnings."));
  return card(h("ul", {class: "warnings"}, list.slice(0, 100).map((w) => h("li", {}, h("b", {}, name(w.message)), w.remedy ? h("span", {}, " ", name(w.remedy)) : null, h("code", {}, w.code)))),
    list.length > 100 ? h("p", {class: "more"}, `100 of ${list.length} warnings; \`ergometer show\` prints all.`) : null);
}

export function events(data) {
  if (!data.events.length) return null;
  const span = data.summary.run.duration_s ?? 0;
  return fold(`Events: ${count(data.events_total, "entry", "entries")}`, false, h("div", {class: "scroll"}, makeTable({
    columns: [{title: "Time"}, {title: "Kind"}, {title: "Source"}, {title: "What"}, {title: "Node"}],
    rows: data.events.map((e) => [moment(Number(e.t.toFixed(3)), span), e.kind, e.source, e.detail, e.node]), total: data.events_total}, "Events")));
}

export function provenance(data) {
  const {manifest, summary} = data;
  const m = manifest;
  const facts = [
    ["Command", m.command.length ? h("code", {}, name(m.command.join(" "))) : "measured from code"],
    ["Directory", m.directory ? h("code", {}, name(m.directory)) : null],
    ["Environment", Object.keys(m.environment).length ? h("code", {}, name(Object.entries(m.environment).map(([k, v]) => `${k}=${v}`).join(" "))) : null],
    ["Started", m.started ? m.started.replace("T", " ").replace("Z", " UTC") : "not recorded"],
    ["State", m.state === "complete" ? "complete" : m.state === "running" ? "not ended: still running, or cut short" : m.state],
    ["Recorded by", m.tool_version ? `ergometer ${m.tool_version}` : "another program or by hand"],
    ["Cost of measuring", known(summary.overhead.cpu_s) ? `${duration(summary.overhead.cpu_s)} of CPU time${known(summary.overhead.cpu_share) ? `, ${percent(summary.overhead.cpu_share, 2)} of one core` : ""}` : null],
  ].filter(([, value]) => value);
  const sensors = data.nodes.flatMap((n) => n.sensors.map((s) => [n.name, s.name, s.interface, s.interval_s > 0 ? duration(s.interval_s) : "—", listed(s.channels.map((c) => c.column)), [...new Set(s.channels.map((c) => c.profile).filter(Boolean))].join(", ")]));
  const absences = data.nodes.flatMap((n) => n.absences.map((a) => [n.name, a.interface, a.what, a.reason, a.remedy]));
  return [
    card(h("dl", {class: "facts"}, facts.map(([label, value]) => [h("dt", {}, label), h("dd", {}, value)]))),
    sensors.length ? fold(`Sensors: ${sensors.length}`, false, h("div", {class: "scroll"}, makeTable({columns: ["Node", "Sensor", "Interface", "Read each", "Channels", "Profile"].map((title) => ({title})), rows: sensors}, "Sensors"))) : null,
    absences.length ? fold(`Not measured: ${absences.length}`, false, h("div", {class: "scroll"}, makeTable({columns: ["Node", "Interface", "What", "Why", "Remedy"].map((title) => ({title})), rows: absences}, "What was not measured"))) : null,
  ];
}

export {card};
