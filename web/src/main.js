// Reads the page's data and builds the page of its kind.
import {comparisonPage} from "./compare/page.js";
import {h} from "./dom.js";
import {buildPage} from "./figure.js";
import {runPage} from "./run/page.js";
import {studyPage} from "./study/page.js";
import {start} from "./theme.js";

const PAGES = {run: runPage, study: studyPage, comparison: comparisonPage};

function build() {
  start();
  const root = document.getElementById("page");
  // The console has the stack; the reader gets a sentence in place of a blank page.
  const failed = (error) => {
    root.append(h("p", {class: "notice"}, `This page could not be drawn: ${error.message}. The numbers are in the run's summary.json.`));
    throw error;
  };
  try {
    const data = JSON.parse(document.getElementById("ergometer-data").textContent);
    const page = PAGES[data.kind];
    if (data.schema !== "ergometer.page/1" || !page) throw new Error(`unknown data: ${data.schema} ${data.kind}`);
    const footer = () => h("footer", {}, "Made by Ergometer. This file needs no network; its data stand in it as JSON.");
    buildPage(root, [...page(data), footer], () => (document.documentElement.dataset.ready = "yes"), failed);
  } catch (error) {
    failed(error);
  }
}

build();
