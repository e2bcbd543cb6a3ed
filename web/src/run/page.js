// The page of a run, as parts that are made one after another.
import {h} from "../dom.js";
import {sectionParts} from "../figure.js";
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
  return [
    () => runHero(data),
    ...sectionParts((figure) => section("Power and energy", figure),
      () => powerFigure(data), () => h("div", {class: "pair"}, epochFigure(data), compositionFigure(data)), () => domainTable(data), () => regionTable(data)),
    ...sectionParts((figures) => section("Utilisation and memory", figures), () => levelFigures(data), () => h("div", {class: "pair"}, spreadFigure(data), activityFigure(data))),
    () => (serious ? section("Warnings", warnings(data.summary.warnings)) : null),
    () => section("Machine", h("div", {class: "card machines"}, machines(data).length ? machines(data) : h("p", {}, "This run does not say on which machine it was made."))),
    () => section("Provenance", provenance(data), events(data), serious ? null : warnings([])),
  ];
}
