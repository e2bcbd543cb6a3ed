// The top of a study's page: what was asked, how much of it is done, and the answers in sentences.
import {h, name} from "../dom.js";
import {count, known, listed, MISSING, percent, significant, wattHours, withUnit} from "../format.js";
import {factorTiles, header, tile} from "../run/hero.js";
import {comparison} from "./work.js";

export function studyHero(study) {
  const {data, runs} = study;
  const of = (verdict) => runs.filter((r) => r.verdict === verdict).length;
  const measured = runs.map((r) => r.metrics.energy_j?.[0]).filter(known);
  const modelled = runs.map((r) => r.metrics.modelled_energy_j?.[0]).filter(known);
  const list = measured.length ? measured : modelled;
  const joules = list.length ? list.reduce((s, x) => s + x, 0) : null;
  const guess = !measured.length && modelled.length > 0;
  const others = [["invalid", of("invalid")], ["failed", of("failed")], ["missing", of("missing")]].filter(([, n]) => n).map(([word, n]) => `${n} ${word}`);
  const repetitions = study.cells.length ? of("valid") / study.cells.length : 0;
  return h("div", {}, header("study report", study.name || "Study", [study.description ? name(study.description) : null]),
    h("div", {class: "tiles"},
      tile("Valid runs", String(of("valid")), others.length ? others.join(", ") : "all that were planned", "main"),
      tile("Settings", String(study.cells.length), `${significant(repetitions, 2)} valid runs each on average`),
      tile("Energy of all runs", joules === null ? MISSING : `${guess ? "~" : ""}${withUnit(joules, "J")}`, joules === null ? "no run tells it" : `${wattHours(joules)}${list.length < runs.length ? `; ${list.length} of ${runs.length} runs tell it` : ""}`),
      factorTiles(data.factors, joules, guess)),
    findings(study));
}

function findings(study) {
  const out = [];
  const most = comparison(study);
  if (most) out.push(most);
  for (const pick of study.data.picks.filter((p) => p.rule.startsWith("least energy, at most")).slice(0, 6)) {
    if (pick.cell === pick.reference) continue;
    const where = pick.group ? `${pick.group}: ` : "";
    out.push(`${where}${settings(study, pick.cell)} uses ${change(pick.energy)} energy than ${settings(study, pick.reference)} for ${change(pick.time)} time${pick.alike.length ? "; " + alikeText(study, pick) : ""}${pick.intervals_known ? "" : " (each measured once)"}.`);
  }
  const bad = study.runs.filter((r) => r.verdict === "invalid" || r.verdict === "failed");
  if (bad.length) out.push(`${count(bad.length, "run")} did not count; why stands in the table of runs.`);
  return out.length ? h("ul", {class: "findings"}, out.map((text) => h("li", {}, name(text)))) : null;
}

export const settings = (study, cell) => study.cellName(cell, study.data.work);

export const alikeText = (study, pick) => `${listed(pick.alike.slice(0, 3).map((c) => settings(study, c)))}${pick.alike.length > 3 ? ` and ${pick.alike.length - 3} more` : ""} cannot be told from it`;

export function change({share, interval}, plain = false) {
  if (!known(share)) return MISSING;
  const word = share < 0 ? "less" : "more";
  const range = interval ? [Math.abs(interval[0]), Math.abs(interval[1])].sort((a, b) => a - b) : null;
  const crosses = interval && interval[0] < 0 && interval[1] > 0;
  const text = interval ? ` (${crosses ? `${percent(interval[0])} to ${percent(interval[1])}` : `${percent(range[0])} to ${percent(range[1])}`})` : "";
  return plain ? `${share > 0 ? "+" : ""}${percent(share)}${text}` : `${percent(Math.abs(share))} ${word}`;
}
