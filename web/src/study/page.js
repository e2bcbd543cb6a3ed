// The page of a study, as parts that are made one after another.
import {h, name} from "../dom.js";
import {section, warnings} from "../run/tables.js";
import {classTables} from "./classes.js";
import {countTables, rateTable} from "./counts.js";
import {effectFigure, parallelFigure} from "./factors.js";
import {frontFigure, picksTable} from "./front.js";
import {studyHero} from "./hero.js";
import {Study} from "./model.js";
import {scalingFigures} from "./scaling.js";
import {cellTable, runTable} from "./tables.js";
import {busyFigure, workFigure} from "./work.js";

export function studyPage(data) {
  const study = new Study(data);
  const told = study.has.size > 0;
  if (!told) return [() => studyHero(study), () => section("Results", h("div", {class: "card absent"}, h("h3", {}, "No results yet"),
    h("p", {}, study.runs.length ? "No run of this study is valid, so there is nothing to draw. The table says why." : "This study has no runs."),
    h("p", {class: "remedy"}, "`ergometer study run` begins or goes on with a study."))), () => runTable(study), () => section("Warnings", warnings(study.warnings))];
  return [
    () => studyHero(study),
    () => section("Which work uses most", workFigure(study), busyFigure(study)),
    () => section("Which setting to choose", frontFigure(study), picksTable(study)),
    () => section("How it scales", scalingFigures(study), countTables(study), rateTable(study), parallelFigure(study), effectFigure(study)),
    () => (data.classes ? section("Which class of node", classTables(study)) : null),
    () => section("All numbers", cellTable(study), runTable(study)),
    () => section("Warnings", warnings(study.warnings), data.missing.length ? h("div", {class: "card"}, h("h3", {}, "Not derived"), h("ul", {}, data.missing.map((text) => h("li", {}, name(text))))) : null),
  ];
}
