// Runs that lack something, or bring what nobody expects: the page says what is missing, and never draws or states what
// nobody measured.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import {after, test} from "node:test";
import {check, closeBrowser, data, figure, makeRun, open, report, rows, screenshot, toolFails, write} from "./harness.mjs";

after(closeBrowser);

async function page(folder, run, ...says) {
  const view = await open(report(makeRun(folder, run)));
  await check(view);
  const text = await view.text();
  for (const words of says) assert.ok(text.includes(words), `"${words}" in:\n${text}`);
  return {...view, content: text};
}
const power = (watts, ...range) => rows("power_w", () => watts, ...range);

test("no sensors", async () => {
  const view = await page("no-sensors", {}, "The energy of this run is not known", "This run has no readings", "no sensor told energy or power");
  assert.ok(!/\b0 (J|W)\b/.test(view.content), "no zero that nobody measured");
  assert.equal(await view.page.locator(".figure").count(), 0);
  await screenshot(view, "no-sensors");
  await view.close();
});

test("no regions", async () => {
  const view = await page("no-regions", {sensors: {gpu0: power(200)}}, "This run has no regions", "docs/markers.md");
  await view.close();
});

test("one sample", async () => {
  const view = await page("one-sample", {sensors: {gpu0: power(200, 5, 5)}}, "was read once, at 200.0 W");
  assert.ok(await figure(view, "Power over time").locator(".chart svg path").count() > 0);
  await view.close();
});

test("regions without energy, and a run of no length", async () => {
  await (await page("regions-only", {regions: [[0, 5, "train/epoch[0]"]]}, "The energy of none of the 1 region is known")).close();
  await (await page("no-length", {seconds: 0, sensors: {gpu0: power(200, 0, 0)}})).close();
});

test("gaps of hours", async () => {
  const text = power(200, 0, 60, 1) + power(200, 7200, 7260, 1).split("\n").slice(1).join("\n");
  const view = await page("gap-of-hours", {seconds: 7260, sensors: {gpu0: text}}, "1 gap, 1 h 59 min in all", "energy inside gaps is not counted");
  await view.close();
});

test("cut short", async () => {
  const view = await page("cut", {sensors: {gpu0: power(200)}, regions: [[0, 4, "epoch[0]"]], manifest: {state: "running", end_ns: undefined, exit_code: undefined}}, "not ended: still running, or cut short");
  assert.match(view.content, /its end is not known/);
  await view.close();
});

test("mixed versions: unknown keys, another tool, and nodes without node.json", async () => {
  const view = await page("mixed", {manifest: {tool_version: "9.9.9", some_new_key: {a: [1]}},
    nodes: {a: {sensors: {gpu0: power(200)}, node: {schema: "ergometer.node/1", name: "a", future: true}}, b: {sensors: {gpu0: power(100)}}}}, "ergometer 9.9.9", "node.json");
  assert.ok(view.content.includes("a: gpu/0") && view.content.includes("b: gpu/0"));
  await view.close();
});

test("nodes whose clocks disagree", async () => {
  const view = await page("clocks", {nodes: {a: {sensors: {gpu0: power(200)}}, b: {sensors: {gpu0: power(200, 5000, 5010)}}}}, "the readings of node b lie outside of the run's time");
  assert.ok(!view.content.includes("the readings of node a"));
  await view.close();
});

test("a million regions", async () => {
  const run = makeRun("million", {seconds: 1000, sensors: {gpu0: power(200, 0, 1000)}});
  const lines = ["t_begin_ns,t_end_ns,path,attributes"];
  for (let i = 0; i < 1_000_000; ++i) lines.push(`${1e9 + i * 1e6},${1e9 + i * 1e6 + 9e5},step[${i}],`);
  write(path.join(run, "nodes/n/regions.csv"), lines.join("\n") + "\n");
  const file = report(run);
  assert.ok(fs.statSync(file).size < 5e6);
  const view = await open(file);
  await check(view);
  assert.match(await view.text(), /Some bars stand for several of 1,000,000 regions/);
  await view.close();
});

const NAMES = ["</script><script>window.hacked=1</script>", "<img src=x onerror=window.hacked=1>", "\"><svg onload=window.hacked=1>", "a<b>c", "it's", "x & y", "\"q\"", "-->", "<!--<script>",
  "😀 emoji", "مرحبا بالعالم", "{a|b} {name} ${x} %s", "=HYPERLINK(1)"];

test("F126 names break the HTML report: names are shown as they are, everywhere, and nothing of them runs", async () => {
  for (const [i, name] of NAMES.entries()) {
    const node = {schema: "ergometer.node/1", name: "n", hostname: name, cpu: {model: name}, gpus: [{index: 0, uuid: name, name, note: name}], versions: {[name]: name},
      absences: [{interface: name, what: name, reason: name, remedy: name}]};
    const run = makeRun(`names-${i}`, {sensors: {gpu0: power(200)}, node, regions: [[0, 5, `${name.replaceAll("/", "_")}[0]`], [5, 10, "epoch[1]"]], events: [[1, "x", "note", `"${name.replaceAll('"', '""')}"`]],
      manifest: {name, command: [name, name], directory: name, environment: {[name]: name}, warnings: [{code: "x", message: name, remedy: name}]}});
    const view = await open(report(run, "--currency", name));
    await check(view);
    assert.equal(await view.page.locator("h1").innerText(), name);
    assert.equal(await view.page.title(), `${name} · Ergometer`);
    const found = await view.page.evaluate(() => ({hacked: window.hacked, foreign: document.querySelectorAll("img, iframe, object, embed, link[rel=stylesheet], form, base").length, scripts: document.scripts.length,
      handlers: [...document.querySelectorAll("*")].filter((e) => e.getAttributeNames().some((n) => n.startsWith("on"))).length}));
    assert.deepEqual(found, {hacked: undefined, foreign: 0, scripts: 2, handlers: 0}, name);
    await view.page.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = true)));
    assert.ok((await view.page.locator("main").textContent()).split(name).length > 6, `${name} is on the page`);
    await view.close();
  }
});

test("text of the page outside its scripts is well-formed: no tag comes from data", async () => {
  const html = fs.readFileSync(report(makeRun("escape", {manifest: {name: NAMES.join(" ")}})), "utf8");
  assert.equal(html.match(/<\/script>/g).length, 2);
  assert.equal(html.match(/<title>[^<]*<\/title>/g).length, 1);
  const json = html.slice(html.indexOf('id="ergometer-data">') + 20, html.indexOf("</script>"));
  assert.ok(!/[<>&]/.test(json));
  assert.equal(JSON.parse(json).manifest.name, NAMES.join(" "));
});

test("F124 line drawn across missing data: two pieces, and the gap is stated", async () => {
  const text = power(100, 0, 10, 0.5) + power(100, 60, 70, 0.5).split("\n").slice(1).join("\n");
  const view = await page("f124", {seconds: 70, sensors: {gpu0: text}}, "1 gap, 50.00 s in all");
  const longest = await figure(view, "Power over time").locator(".chart svg path").evaluateAll((paths) => paths.map((p) => p.getAttribute("d")).filter((d) => (d.match(/M/g) ?? []).length === 2).length);
  assert.ok(longest >= 1, "a path of two pieces");
  const {summary} = await data(view);
  assert.ok(summary.run.energy_j < 2200, "the gap is not in the energy");
  await view.close();
});

const gpus = (count) => Array.from({length: count}, (_, index) => ({index, uuid: `GPU-${index}`, name: "Test GPU", visible: true, state: "ok"}));
const busy = (watts, ratio) => rows("power_w,gpu_active_ratio", () => [watts, ratio], 0, 60, 1);
const gpuRun = (watts, ratios) => ({seconds: 60, sensors: Object.fromEntries(watts.map((w, i) => [`gpu${i}`, busy(w, ratios[i])])), node: {schema: "ergometer.node/1", name: "n", gpus: gpus(watts.length)}});

test("F125 device without a value averaged as 0: the mean is of those that reported", async () => {
  const told = await page("f125-three", gpuRun([300, 300, 300, 300], [1, null, 1, 1]), "On average 100 % GPU utilisation (3 of 4 reported)");
  assert.ok(!told.content.includes("unevenly"));
  await told.close();
  const none = await page("f125-none", gpuRun([300, 300, 300, 300], [null, null, null, null]), "No GPU reported its utilisation");
  assert.ok(!none.content.includes("0 % GPU"));
  await none.close();
});

test("F128 sparse results crash the dashboard: one CPU-only run of one sample; a store without runs", async () => {
  await (await page("f128", {seconds: 1, sensors: {package0: rows("power_w", () => 50, 0, 0)}, node: {schema: "ergometer.node/1", name: "n"}}, "no GPU data")).close();
  const store = path.dirname(makeRun("empty-store/x", {}));
  fs.rmSync(path.join(store, "x"), {recursive: true});
  const done = toolFails("report", store);
  assert.equal(done.code, 2, done.text);
  assert.ok(done.text.includes("run.json"), done.text);
});

test("F129 text written for another set-up: sentences follow the devices that are there", async () => {
  const one = await page("f129-one", gpuRun([300], [0.9]), "The GPU's kernels ran 90 % of the time");
  const equal = await page("f129-equal", gpuRun([300, 300], [0.9, 0.9]));
  const uneven = await page("f129-uneven", gpuRun([300, 100], [0.9, 0.9]), "The 2 GPUs were loaded unevenly: gpu/0 drew 300 W on average, gpu/1 100 W");
  for (const view of [one, equal]) assert.ok(!/uneven|imbalance/i.test(view.content));
  for (const view of [one, equal, uneven]) await view.close();
});

test("F134 epoch count always 1: complete and cut epochs are counted apart", async () => {
  const regions = [...[0, 1, 2, 3].map((i) => [i, i + 1, `epoch[${i}]`]), [4, 4.5, "epoch[4]", "cut=true"]];
  const run = makeRun("f134", {seconds: 4.5, sensors: {gpu0: power(10, 0, 4.5)}, regions});
  const view = await open(report(run));
  await check(view);
  const text = await view.text();
  assert.ok(text.includes("4 epochs complete, 1 cut short; 10.00 J each on average"), text.slice(0, 600));
  const {summary} = await data(view);
  assert.equal(Math.round(10 * summary.regions[4].energy_j) / 10, 5);
  await view.close();
});
