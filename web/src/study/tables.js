// Every setting and every run of a study, also those that do not count, with why.
import {makeTable} from "../figure.js";
import {csv, download, fileName, h} from "../dom.js";
import {count} from "../format.js";

const fold = (heading, open, ...children) => h("details", {class: "card fold", open}, h("summary", {}, heading), ...children);
const MOST_METRICS = 8;
const FIRST = ["duration_s", "energy_j", "modelled_energy_j", "mean_power_w", "seconds_per_epoch", "energy_per_epoch_j", "energy_per_sample_j", "sm_active_ratio"];

export function cellTable(study) {
  const metrics = study.metrics.map((m) => m.name).filter((m) => study.has.has(m)).sort((a, b) => (FIRST.indexOf(a) + 1 || 99) - (FIRST.indexOf(b) + 1 || 99)).slice(0, MOST_METRICS);
  const rows = study.cells.map((_, cell) => [study.cellName(cell), ...metrics.map((m) => study.centreText(study.at(cell, m)))]);
  return fold(`Settings: ${study.cells.length}`, study.cells.length <= 24, h("p", {class: "subtitle"}, "Means of the valid runs with 95 % intervals where a setting was repeated."),
    h("div", {class: "scroll", id: "cells"}, makeTable({columns: [{title: "Setting"}, ...metrics.map((m) => ({title: study.metricTitle(m), right: true}))], rows}, "Settings")));
}

export function runTable(study) {
  const metrics = study.metrics.map((m) => m.name);
  const main = [study.data.time_metric, study.data.energy_metric].filter(Boolean);
  const rows = study.runs.map((r) => [study.cellName(r.cell), String(r.repetition + 1), r.verdict, ...main.map((m) => study.text(r.metrics[m]?.[0], m)), r.reasons.join("; "), r.folder]);
  const save = () => download(`${fileName(study.name || "study")}-runs.csv`, "text/csv", csv([
    [...study.factors.map((f) => f.name), "repetition", "block", "order", "verdict", "reasons", "folder", ...metrics],
    ...study.runs.map((r) => [...study.factors.map((_, i) => study.level(r.cell, i)), r.repetition, r.block, r.order, r.verdict, r.reasons.join("; "), r.folder, ...metrics.map((m) => r.metrics[m]?.[0])])]));
  return fold(`Runs: ${count(study.runs.length, "run")}`, false,
    h("div", {class: "scroll", id: "runs"}, makeTable({columns: [{title: "Setting"}, {title: "Repetition", right: true}, {title: "Verdict"}, ...main.map((m) => ({title: study.metricTitle(m), right: true})), {title: "Why, or what is odd"}, {title: "Folder"}], rows}, "Runs")),
    h("div", {class: "tools"}, h("button", {type: "button", onclick: save}, "CSV of all runs and metrics")));
}
