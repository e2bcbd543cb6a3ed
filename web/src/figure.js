// A figure: a title that says what it shows, the chart, its words for who cannot see it, its table, and downloads.
import {echarts} from "./charts.js";
import {append, csv, download, fileName, h} from "./dom.js";
import * as theme from "./theme.js";

const figures = [];
const ROWS_SHOWN = 500;

// spec: {title, subtitle, words, height, option(width), table: {columns: [{title, right}], rows: [[cell]]},
//        csv() (lines of exact values, where the table's are for reading), controls: [element], notes: [text], wired(chart)}. `option`, `table`, `title`... are read anew at each draw.
export class Figure {
  constructor(spec) {
    this.spec = spec;
    this.chart = null;
    this.id = `figure-${figures.length + 1}`;
    this.heading = h("h3", {id: `${this.id}-title`});
    this.subtitle = h("p", {class: "subtitle"});
    this.canvas = h("div", {class: "chart", role: "img", "aria-describedby": `${this.id}-words`});
    this.canvas.style.height = `${spec.height ?? 340}px`;
    this.words = h("p", {class: "words", id: `${this.id}-words`});
    this.notes = h("div", {class: "notes"});
    this.table = h("div", {class: "scroll"});
    this.details = h("details", {class: "data", ontoggle: () => this.fillTable()}, h("summary", {}, "Table"), this.table);
    const button = (text, title, action) => h("button", {type: "button", title, onclick: action}, text);
    this.element = h("figure", {class: "card figure", id: this.id, "aria-labelledby": `${this.id}-title`},
      h("figcaption", {}, this.heading, this.subtitle),
      spec.controls?.length ? h("div", {class: "controls"}, spec.controls) : null,
      this.canvas, this.words, this.notes,
      h("div", {class: "tools"}, button("SVG", "Download this figure as SVG", () => this.saveSvg()),
        button("CSV", "Download this figure's data as CSV", () => this.saveCsv())),
      this.details);
    figures.push(this);
  }

  // Draws anew: at first, when the theme changes, and when a control asks for other data.
  draw() {
    const spec = this.spec;
    const value = (x) => (typeof x === "function" ? x() : x);
    this.heading.textContent = value(spec.title);
    this.subtitle.textContent = value(spec.subtitle) ?? "";
    this.words.textContent = value(spec.words) ?? "";
    this.canvas.setAttribute("aria-label", `${this.heading.textContent}. ${this.words.textContent}`);
    this.notes.replaceChildren(...(value(spec.notes) ?? []).map((text) => h("p", {}, text)));
    this.chart?.dispose();
    this.chart = echarts.init(this.canvas, null, {renderer: "svg", width: this.canvas.clientWidth || 640});
    this.width = this.canvas.clientWidth;
    this.chart.setOption(base(spec.option(this.chart.getWidth())));
    spec.wired?.(this.chart);
    if (this.details.open) this.fillTable(true);
  }

  fit() {
    if (this.chart && this.canvas.clientWidth > 0 && this.canvas.clientWidth !== this.width) this.draw();
  }

  data() {
    return typeof this.spec.table === "function" ? this.spec.table() : this.spec.table;
  }

  fillTable(again = false) {
    if (!this.details.open || (this.table.firstChild && !again)) return;
    this.table.replaceChildren(makeTable(this.data(), this.heading.textContent));
  }

  saveSvg() {
    const svg = this.chart.renderToSVGString({useViewBox: true});
    download(`${fileName(this.heading.textContent)}.svg`, "image/svg+xml", svg);
  }

  saveCsv() {
    const {columns, rows} = this.data();
    const lines = this.spec.csv?.() ?? [columns.map((c) => c.title), ...rows];
    download(`${fileName(this.heading.textContent)}.csv`, "text/csv", csv(lines));
  }
}

// columns: [{title, right}]; rows: cells as text or elements; only the first of very many are shown.
export function makeTable({columns, rows, total}, caption) {
  const shown = rows.slice(0, ROWS_SHOWN);
  const table = h("table", {}, h("caption", {class: "hidden"}, caption),
    h("thead", {}, h("tr", {}, columns.map((c) => h("th", {scope: "col", class: c.right ? "right" : null}, c.title)))),
    h("tbody", {}, shown.map((row) => h("tr", {}, row.map((cell, i) =>
      h("td", {class: columns[i].right ? "right" : null}, columns[i].right || cell instanceof Node ? cell : h("bdi", {}, cell)))))));
  const all = total ?? rows.length;
  return h("div", {}, table, all > shown.length
    ? h("p", {class: "more"}, `The first ${shown.length} of ${all.toLocaleString("en")} rows; the CSV has ${
      rows.length === all ? "all" : rows.length.toLocaleString("en")}.`) : null);
}

// A figure that cannot be: why, and what would bring it. Never an empty frame.
export function absent(title, why, remedy) {
  return h("section", {class: "card absent"}, h("h3", {}, title), h("p", {}, why), remedy ? h("p", {class: "remedy"}, remedy) : null);
}

// What all charts share.
function base(option) {
  const g = theme.ground();
  const text = {color: g.soft, fontSize: 12};
  const axes = (list) => (list === undefined ? undefined : [list].flat().map((axis) => ({
    axisLine: {lineStyle: {color: g.line}}, axisTick: {lineStyle: {color: g.line}}, splitLine: {lineStyle: {color: g.line, opacity: 0.7}},
    ...axis, axisLabel: {...text, hideOverlap: true, ...axis.axisLabel}, nameTextStyle: {...text, ...axis.nameTextStyle}})));
  const legend = option.legend && {type: "scroll", top: 0, left: 0, itemWidth: 22, itemHeight: 10, icon: undefined,
    pageTextStyle: text, pageIconColor: g.soft, inactiveColor: g.line, ...option.legend, textStyle: {color: g.text, fontSize: 12}};
  return {
    animation: false, backgroundColor: g.card, aria: {enabled: false},
    textStyle: {fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif", color: g.text},
    ...option, legend, xAxis: axes(option.xAxis), yAxis: axes(option.yAxis),
    tooltip: option.tooltip && {backgroundColor: g.card, borderColor: g.line, textStyle: {color: g.text, fontSize: 12}, confine: true,
      renderMode: "html", ...option.tooltip},
  };
}

// The content of a tooltip as elements: markup in a name stays text.
export function tip(title, rows) {
  return h("div", {class: "tip"}, h("strong", {}, h("bdi", {}, title)), rows.map(([mark, label, value]) =>
    h("div", {class: "tip-row"}, mark ? swatch(mark) : null, h("bdi", {}, label), h("b", {}, value))));
}

function swatch(color) {
  const element = h("i", {class: "swatch"});
  element.style.background = color;
  return element;
}

// A choice above a figure. `options` are [value, text].
export function choice(label, options, chosen, onchange) {
  const select = h("select", {onchange: (event) => onchange(event.target.value)},
    options.map(([value, text]) => h("option", {value, selected: value === chosen}, text)));
  return h("label", {class: "choice"}, h("span", {}, label), select);
}

// A section whose pieces are made one after another: parts for buildPage. `make` gives the section with its first piece.
export function sectionParts(make, ...pieces) {
  let element = null;
  return pieces.map((piece, i) => () => {
    if (i > 0) return append(element, [piece()]);
    return (element = make(piece()));
  });
}

// Makes the page part by part, and each figure as soon as its part is there. Up to the first figure that is done at once, the rest
// in tasks of its own, so that the page can be read and scrolled meanwhile. A part gives an element, or nothing.
export function buildPage(root, parts, done, failed) {
  let drawn = 0, made = 0;
  const step = () => {
    try {
      do {
        if (drawn < figures.length) figures[drawn++].draw();
        else if (made < parts.length) append(root, [parts[made++]()]);
        else return done();
      } while (drawn === 0);
    } catch (error) {
      return failed(error);
    }
    setTimeout(step, 0);
  };
  theme.onChange(() => figures.forEach((figure) => figure.draw()));
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => figures.forEach((figure) => figure.fit()), 120);
  });
  addEventListener("beforeprint", () => figures.forEach((figure) => figure.draw()));
  step();
}
