// What the page's tests share: runs and studies written by hand, their reports, and a browser without a network.
import assert from "node:assert/strict";
import {execFileSync, spawnSync} from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import {pathToFileURL} from "node:url";

const {chromium} = await import(pathToFileURL(path.join(process.env.NODE_MODULES, "playwright-core/index.mjs")));
const TOOL = process.env.ERGOMETER_BIN;
export const SCREENSHOTS = process.env.SCREENSHOTS;

export const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "ergometer-web-"));
process.on("exit", () => fs.rmSync(scratch, {recursive: true, force: true}));

export const tool = (...args) => execFileSync(TOOL, args, {encoding: "utf8", maxBuffer: 1 << 28});
export const toolFails = (...args) => {
  const done = spawnSync(TOOL, args, {encoding: "utf8"});
  return {code: done.status, text: done.stdout + done.stderr};
};

const S = 1e9;
export const write = (file, text) => {
  fs.mkdirSync(path.dirname(file), {recursive: true});
  fs.writeFileSync(file, text);
};

// A run by hand: {name, seconds, sensors: {file: "t_ns,...\n..."}, regions: [[begin_s, end_s, path, attributes]],
// node: node.json's content, events: [[t_s, source, kind, detail]], manifest: further keys}. Times start at 1 s.
export function makeRun(folder, {seconds = 10, sensors = {}, regions, node, events, nodes, manifest = {}} = {}) {
  const run = path.join(scratch, folder);
  write(path.join(run, "run.json"), JSON.stringify({schema: "ergometer.run/1", name: folder, nodes: Object.keys(nodes ?? {n: 0}), begin_ns: S, end_ns: (1 + seconds) * S, exit_code: 0,
    state: "complete", ...manifest}));
  for (const [nodeName, own] of Object.entries(nodes ?? {n: {sensors, regions, node, events}})) {
    const at = path.join(run, "nodes", nodeName);
    fs.mkdirSync(path.join(at, "samples"), {recursive: true});
    for (const [sensor, text] of Object.entries(own.sensors ?? {})) write(path.join(at, "samples", `${sensor}.csv`), text);
    if (own.regions) write(path.join(at, "regions.csv"), "t_begin_ns,t_end_ns,path,attributes\n" + own.regions.map(([a, b, p, x]) => `${(1 + a) * S},${(1 + b) * S},"${String(p).replaceAll('"', '""')}",${x ?? ""}\n`).join(""));
    if (own.events) write(path.join(at, "events.csv"), "t_ns,source,kind,detail\n" + own.events.map(([t, ...rest]) => `${(1 + t) * S},${rest.join(",")}\n`).join(""));
    if (own.node) write(path.join(at, "node.json"), JSON.stringify(own.node));
  }
  return run;
}

// "t_ns,COLUMNS" and a row each `step` seconds from `from` to `to`, of values that `at` gives.
export function rows(columns, at, from = 0, to = 10, step = 0.1) {
  let text = `t_ns,${columns}\n`;
  for (let i = 0; from + i * step <= to + 1e-9; ++i) text += `${Math.round((1 + from + i * step) * S)},${[at(from + i * step)].flat().map((v) => v ?? "").join(",")}\n`;
  return text;
}

export function report(input, ...args) {
  const file = path.join(scratch, `${path.basename(input)}.html`);
  tool("report", input, "-o", file, ...args);
  return file;
}

let browser = null;
export async function closeBrowser() {
  await browser?.close();
}

// Opens a report: no network, and whatever the console says as an error fails the test at check().
export async function open(file, options = {}) {
  browser ??= await chromium.launch({executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"]});
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, offline: true, acceptDownloads: true, ...options});
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const problems = [], requests = [];
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && problems.push(m.text()));
  page.on("pageerror", (e) => problems.push(String(e.stack ?? e)));
  page.on("dialog", (d) => (problems.push(`dialog: ${d.message()}`), d.dismiss()));
  page.on("request", (r) => /^(file|data|blob):/.test(r.url()) || requests.push(r.url()));
  await page.goto(pathToFileURL(file).href);
  await page.waitForFunction(() => document.documentElement.dataset.ready === "yes" || document.querySelector(".notice"));
  return {page, problems, requests, close: () => context.close(), text: () => page.locator("body").innerText()};
}

// What must hold of every page: no error, no request, no number that is none, and no figure without a mark.
export async function check(view) {
  assert.deepEqual(view.problems, []);
  assert.deepEqual(view.requests, []);
  const {words, empty} = await view.page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
    const empty = [...document.querySelectorAll(".figure")].filter((figure) => {
      const shapes = figure.querySelectorAll(".chart svg path, .chart svg rect, .chart svg circle");
      return shapes.length < 4;
    }).map((figure) => figure.querySelector("h3").textContent);
    const labels = [...document.querySelectorAll("[aria-label]")].map((x) => x.getAttribute("aria-label")).join("\n");
    return {words: `${document.title}\n${document.body.textContent.replace(document.getElementById("ergometer-data").textContent, "").replace(/\(\(\)=>.*$/s, "")}\n${labels}`, empty};
  });
  assert.deepEqual(empty, [], "figures without marks");
  const odd = words.match(/.{0,60}\b(NaN|undefined|Infinity|null|\[object)\b.{0,40}/);
  assert.equal(odd, null, odd?.[0]);
}

export const figure = (view, title) => view.page.locator(".figure", {has: view.page.locator("h3", {hasText: title})});
export const data = (view) => view.page.evaluate(() => JSON.parse(document.getElementById("ergometer-data").textContent));

export async function screenshot(view, name) {
  fs.mkdirSync(SCREENSHOTS, {recursive: true});
  await view.page.screenshot({path: path.join(SCREENSHOTS, `${name}.png`), fullPage: true});
}

export async function downloaded(view, button) {
  const [file] = await Promise.all([view.page.waitForEvent("download"), button.click()]);
  return {name: file.suggestedFilename(), text: fs.readFileSync(await file.path(), "utf8")};
}
