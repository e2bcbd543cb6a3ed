// The page of a run.
import {h} from "../dom.js";
import {activityFigure} from "./activity.js";
import {compositionFigure, machines} from "./composition.js";
import {epochFigure} from "./epochs.js";
import {runHero} from "./hero.js";
import {levelFigures} from "./levels.js";
import {powerFigure} from "./power.js";
import {spreadFigure} from "./spread.js";
import {domainTable, events, provenance, regionTable, section, warnings} from "./tables.js";

export function runPage(data) {
  const serious = data.summary.warnings.length > 0;
  const attention = serious ? section("Warnings", warnings(data.summary.warnings)) : null;
  return [
    runHero(data),
    section("Power and energy", powerFigure(data), h("div", {class: "pair"}, epochFigure(data), compositionFigure(data)), domainTable(data), regionTable(data)),
    section("Utilisation and memory", levelFigures(data), h("div", {class: "pair"}, spreadFigure(data), activityFigure(data))),
    attention,
    section("Machine", h("div", {class: "card machines"}, machines(data).length ? machines(data) : h("p", {}, "This run does not say on which machine it was made."))),
    section("Provenance", provenance(data), events(data), serious ? null : warnings([])),
  ];
}
