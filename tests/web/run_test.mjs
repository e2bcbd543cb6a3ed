// The page of a run in a real browser: numbers, figures, zoom, legend, downloads, dark, phone and paper.
import assert from "node:assert/strict";
import fs from "node:fs";
import {after, test} from "node:test";
import {check, closeBrowser, data, downloaded, figure, makeRun, open, report, rows, screenshot, tool, toolFails} from "./harness.mjs";

after(closeBrowser);

const gpu = (i, watts) => ({power: rows("power_w,gpu_active_ratio,used_bytes", (t) => [watts + 60 * Math.sin(t * (1 + i)), 0.6 + 0.3 * Math.sin(t), 2e10 + 1e9 * t])});
const epochs = [0, 1, 2, 3].flatMap((i) => [[2.5 * i, 2.5 * i + 2.5, `train/epoch[${i}]`, "samples=100"], [2.5 * i, 2.5 * i + 2, `train/epoch[${i}]/forward`], [2.5 * i + 2, 2.5 * i + 2.5, `train/epoch[${i}]/backward`]]);

function richRun(folder) {
  const limits = [0, 1].map((index) => ({index, uuid: `GPU-${index}`, name: "Test GPU", memory_bytes: 8e10, power_limit_w: 400, visible: true, state: "ok"}));
  return makeRun(folder, {
    sensors: {gpu0: gpu(0, 300).power, gpu1: gpu(1, 250).power, package0: rows("energy_j", (t) => 1000 + 80 * t)},
    regions: [[0, 10, "train"], ...epochs], events: [[4, "gpu0-slow", "throttle", "GPU 0: power cap: begins"]],
    manifest: {command: ["train", "--epochs", "4"], clocks: [{mono_ns: 1e9, wall_ns: 1.7e18}]}, limits,
  });
}
const run = richRun("rich");
const file = report(run, "--price", "0.30", "--currency", "EUR", "--carbon", "400");

test("loads from file:// without a network, an error or an empty figure", async () => {
  const view = await open(file);
  await check(view);
  assert.ok(await view.page.locator(".figure").count() >= 7);
  await screenshot(view, "run-desktop");
  await view.close();
});

test("the first figure is drawn before the page has loaded wholly", async () => {
  const view = await open(file);
  // Drawn in the page's own script, not after a wait: what a reader sees first needs no second look.
  const first = await view.page.evaluate(() => document.querySelector(".figure .chart svg path") !== null);
  assert.ok(first);
  await view.close();
});

test("its numbers are those of summary.json", async () => {
  const summary = JSON.parse(tool("show", run, "--json"));
  const view = await open(file);
  const page = await data(view);
  assert.deepEqual(page.summary, summary);
  const table = await view.page.locator("#domains tbody tr").allInnerTexts();
  const value = (text) => Number(text.replace(/[^\d.]/g, "")) * (text.includes("MJ") ? 1e6 : text.includes("kJ") || text.includes("kW") ? 1e3 : 1);
  const domains = summary.nodes.flatMap((n) => n.domains);
  assert.equal(table.length, domains.length);
  for (const [i, line] of table.entries()) {
    const [name, energy, , mean] = line.split("\t");
    assert.equal(name, domains[i].domain);
    assert.ok(Math.abs(value(energy) / domains[i].energy_j - 1) < 1e-3, line);
    assert.ok(Math.abs(value(mean) / domains[i].mean_power_w - 1) < 1e-3, line);
  }
  await view.page.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = true)));
  const regions = await view.page.locator("#regions tbody tr").allInnerTexts();
  assert.equal(regions.length, summary.regions.length);
  for (const [i, line] of regions.entries()) assert.ok(Math.abs(value(line.split("\t")[2]) / summary.regions[i].energy_j - 1) < 1e-3, line);
  await view.close();
});

test("cost and emissions follow the factors, and without a factor there is no number", async () => {
  const view = await open(file);
  const {summary} = await data(view);
  const kwh = summary.run.energy_j / 3.6e6;
  const tile = (label) => view.page.locator(".tile", {hasText: label}).locator(".value").innerText();
  assert.equal(await tile("Cost"), `${(kwh * 0.3).toPrecision(3)} EUR`);
  assert.equal(await tile("Emissions"), `${(kwh * 400 * 1000).toFixed(0)} mg`);
  await view.page.getByLabel("Price of one kWh").fill("0,60");
  assert.equal(await tile("Cost"), `${(kwh * 0.6).toPrecision(3)} EUR`);
  for (const bad of ["", "abc", "-1"]) {
    await view.page.getByLabel("Price of one kWh").fill(bad);
    assert.equal(await tile("Cost"), "—");
  }
  await view.close();
});

const lineCount = (view) => figure(view, "Power over time").locator(".chart svg path[fill=none], .chart svg path[fill=transparent]").count();
const axis = (view) => figure(view, "Power over time").locator(".chart svg text").allTextContents();

test("zooms by its slider and shows the window's time", async () => {
  const view = await open(file);
  const chart = figure(view, "Power over time").locator(".chart");
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  const before = (await axis(view)).join(" ");
  const y = box.y + box.height - 17;
  await view.page.mouse.move(box.x + 65, y);
  await view.page.mouse.down();
  await view.page.mouse.move(box.x + box.width / 2, y, {steps: 8});
  await view.page.mouse.up();
  await view.page.waitForFunction((old) => [...document.querySelectorAll(".figure .chart svg")][0].textContent.replace(/\s/g, "") !== old.replace(/\s/g, ""), before);
  const after = await axis(view);
  assert.ok(!after.includes("2 s"), after.join(" "));
  assert.ok(after.some((text) => /^[6-9]/.test(text)), after.join(" "));
  await view.close();
});

test("a line leaves when its name in the legend is clicked", async () => {
  const view = await open(file);
  const before = await lineCount(view);
  await figure(view, "Power over time").locator(".chart svg text", {hasText: /^gpu\/1$/}).click();
  await view.page.waitForTimeout(100);
  assert.ok(await lineCount(view) < before);
  assert.deepEqual(view.problems, []);
  await view.close();
});

test("a choice redraws its figure", async () => {
  const view = await open(file);
  const card = figure(view, "Distribution of power");
  await card.locator("select").selectOption({label: "GPU busy"});
  assert.match(await figure(view, "Distribution of GPU busy").locator("h3").innerText(), /gpu\/0 spends most time near \d/);
  await check(view);
  await view.close();
});

test("every figure has a table, a CSV that holds numbers, an SVG that stands alone, and words", async () => {
  const view = await open(file);
  for (const card of await view.page.locator(".figure").all()) {
    const title = await card.locator("h3").innerText();
    assert.ok((await card.locator(".words").textContent()).length > 10, title);
    assert.ok((await card.locator(".chart").getAttribute("aria-label")).startsWith(title));
    await card.locator("summary").click();
    await card.locator("table tbody tr").first().waitFor();  // the table is made once the browser has told that it is open
    const csv = await downloaded(view, card.getByRole("button", {name: "CSV"}));
    const lines = csv.text.trim().split("\n");
    assert.ok(csv.name.endsWith(".csv") && lines.length > 1 && /\d/.test(lines[1]), title);
    const svg = await downloaded(view, card.getByRole("button", {name: "SVG"}));
    const valid = await view.page.evaluate((text) => new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror")?.textContent ?? "", svg.text);
    assert.equal(valid, "", title);
    assert.ok(svg.name.endsWith(".svg") && svg.text.includes("<path"), title);
  }
  await view.close();
});

test("dark, phone and paper", async () => {
  const dark = await open(file, {colorScheme: "dark"});
  const color = (view) => view.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const ground = (view) => figure(view, "Power over time").locator(".chart svg rect").first().getAttribute("fill");
  assert.equal(await color(dark), "rgb(17, 22, 27)");
  assert.equal(await ground(dark), "#1a2027");
  await check(dark);
  await screenshot(dark, "run-desktop-dark");
  await dark.page.getByRole("button", {name: "Light / dark"}).click();
  assert.equal(await color(dark), "rgb(244, 246, 248)");
  assert.equal(await ground(dark), "#ffffff");
  await dark.page.getByRole("button", {name: "Light / dark"}).click();
  // Paper is light, whatever the screen is.
  await dark.page.emulateMedia({media: "print"});
  assert.equal(await color(dark), "rgb(255, 255, 255)");
  assert.equal(await ground(dark), "#ffffff");
  assert.equal(await dark.page.getByRole("button", {name: "SVG"}).first().isVisible(), false);
  await screenshot(dark, "run-paper");
  const paper = await dark.page.pdf({format: "A4"});
  assert.ok(paper.length > 20_000);
  await dark.close();

  const phone = await open(file, {viewport: {width: 390, height: 800}, isMobile: true, hasTouch: true, deviceScaleFactor: 2});
  assert.equal(await phone.page.evaluate(() => document.documentElement.scrollWidth), 390, "nothing sticks out to the side");
  await check(phone);
  await screenshot(phone, "run-phone");
  await phone.close();
});

test("regions are bands and lanes, throttling is marked", async () => {
  const view = await open(file);
  const words = await axis(view);
  assert.ok(words.includes("epoch[0]") && words.includes("train"), words.join(" "));
  assert.ok(words.includes("throttled"));
  await view.close();
});

test("F123 power labelled as energy: an axis has the unit of its series", async () => {
  const view = await open(file);
  const power = await axis(view);
  assert.ok(power.includes("power, W"), power.join(" "));
  const energy = await figure(view, "Energy by epoch").locator(".chart svg text").allTextContents();
  assert.ok(energy.includes("energy, kJ"), energy.join(" "));
  const largest = Math.max(...energy.map(Number).filter((v) => v < 1e3));
  const {summary} = await data(view);
  const epoch = Math.max(...summary.regions.filter((r) => r.name === "epoch").map((r) => r.energy_j));
  assert.ok(largest >= epoch / 1000 && largest <= 3 * epoch / 1000, `${largest} kJ for ${epoch} J`);
  await view.close();
});

test("F130 last value shown as the run's power: the mean is energy by duration", async () => {
  const last = makeRun("last", {seconds: 4, sensors: {package0: rows("energy_j", (t) => [0, 300, 600, 900, 950][Math.round(t)], 0, 4, 1)}});
  const view = await open(report(last));
  const tile = await view.page.locator(".tile", {hasText: "Mean power"}).innerText();
  assert.match(tile, /237\.5 W/);
  const [line] = await view.page.locator("#domains tbody tr").allInnerTexts();
  assert.deepEqual(line.split("\t").slice(1, 6).filter((_, i) => i !== 1), ["950.0 J", "237.5 W", "300.0 W", "50.00 W"]);
  await check(view);
  await view.close();
});

test("a peak of one reading in a day is on the page, and stays when zoomed out", async () => {
  const peak = 54321.25;
  const day = makeRun("day", {seconds: 86400, sensors: {gpu0: rows("power_w", (t) => (t === 43210 ? peak : 200 + 100 * Math.sin(t / 50)), 0, 86400, 1)}});
  const file = report(day);
  const view = await open(file);
  const [series] = (await data(view)).series;
  assert.ok(series.readings > 86000 && series.v.length < 12000);
  assert.ok(series.v.includes(54321), "five digits of the peak");
  assert.ok(fs.statSync(file).size < 5e6);
  assert.match(await figure(view, "Power over time").locator("h3").innerText(), /54\.3 kW at its peak/);
  const drawn = await figure(view, "Power over time").locator(".chart svg path").evaluateAll((paths) => paths.map((p) => p.getBBox().height));
  assert.ok(Math.max(...drawn) > 100, "the line reaches the peak");
  await check(view);
  await view.close();
});

test("what cannot be is refused with the remedy", () => {
  for (const [args, code, says] of [
    [["report", "/nowhere/run"], 2, "/nowhere/run"],
    [["report", run, "--price", "cheap"], 2, "--price cannot be \"cheap\""],
    [["report", run, "-o", run], 2, "is a folder"],
    [["report", run, "-o", `${run}/run.json`], 2, "run.json"],
  ]) {
    const done = toolFails(...args);
    assert.equal(done.code, code, done.text);
    assert.ok(done.text.includes(says), done.text);
  }
  assert.ok(JSON.parse(fs.readFileSync(`${run}/run.json`, "utf8")).name, "the run is untouched");
});
