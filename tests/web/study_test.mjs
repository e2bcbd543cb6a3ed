// The page of a study in a real browser.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import {after, test} from "node:test";
import {check, closeBrowser, data, figure, open, report, scratch, screenshot, write} from "./harness.mjs";

after(closeBrowser);

const metric = (name, title, unit, lower = true) => ({name, title, unit, lower_is_better: lower});
const METRICS = [metric("seconds_per_epoch", "time per epoch", "s"), metric("energy_per_epoch_j", "energy per epoch", "J"), metric("energy_per_sample_j", "energy per sample", "J"),
  metric("samples_per_s", "samples per second", "1/s", false), metric("sm_active_ratio", "SM utilisation", "", false)];
const WORK = ["vgg16", "resnet50", "schnet"], GPUS = [1, 2, 4], CAPS = [150, 300, 600];
const BASE = {vgg16: [40, 400, 0.9], resnet50: [25, 300, 0.8], schnet: [10, 150, 0.5]};

function makeStudy(folder, change = (table) => table) {
  const cells = [], runs = [];
  WORK.forEach((work, w) => GPUS.forEach((n, g) => CAPS.forEach((cap, p) => {
    cells.push({levels: [w, g, p]});
    for (let repetition = 0; repetition < 3; ++repetition) {
      const [time, power, busy] = BASE[work];
      const seconds = time / n * Math.max(1, power / cap) ** 0.5 * (1 + 0.004 * (repetition - 1));
      const energy = seconds * Math.min(power, cap) * n;
      runs.push({cell: cells.length - 1, repetition, block: repetition, order: runs.length, folder: `runs/${runs.length}`, verdict: "valid", reasons: [],
        metrics: {seconds_per_epoch: {value: seconds}, energy_per_epoch_j: {value: energy}, energy_per_sample_j: {value: energy / 1000}, samples_per_s: {value: 1000 / seconds}, sm_active_ratio: {value: busy}}});
    }
  })));
  const table = change({schema: "ergometer.study-table/1", name: "Caps", description: "three networks", factors: [
    {name: "workload", unit: "", levels: WORK, values: [null, null, null]}, {name: "gpus", unit: "", levels: GPUS.map(String), values: GPUS}, {name: "power_limit", unit: "W", levels: CAPS.map((c) => `${c}W`), values: CAPS}],
  metrics: METRICS, cells, runs, warnings: []});
  write(path.join(scratch, folder, "table.json"), JSON.stringify(table));
  return path.join(scratch, folder);
}

test("says which network uses most joules per sample and why, and draws every figure", async () => {
  const view = await open(report(makeStudy("study")));
  await check(view);
  const text = await view.text();
  // vgg16 against schnet, without a cap: 40 s x 400 W against 10 s x 150 W; with caps a little more time.
  assert.match(text, /vgg16 uses most energy per sample: [\d.]+ J, [\d.]+ times that of schnet, since it takes [\d.]+ times as long at [\d.]+ times the power \(SM utilisation 90 % against 50 %\)/);
  for (const title of ["Time against energy", "Time per epoch against GPUs", "Time per epoch against power limit", "All settings: 27 combinations of 3 factors", "Effects: workload explains most", "Utilisation by workload"])
    assert.equal(await figure(view, title).count(), 1, title);
  await screenshot(view, "study-desktop");
  await view.close();
  const phone = await open(report(makeStudy("study")), {viewport: {width: 390, height: 800}, isMobile: true, hasTouch: true});
  assert.equal(await phone.page.evaluate(() => document.documentElement.scrollWidth), 390, "nothing sticks out to the side");
  await check(phone);
  await screenshot(phone, "study-phone");
  await phone.close();
});

test("its numbers are the table's: centres are means of the valid runs, fits and fronts hold", async () => {
  const view = await open(report(makeStudy("numbers")));
  const page = await data(view);
  for (const c of page.centres) {
    const values = page.table.runs.filter((r) => r.cell === c.cell).map((r) => r.metrics[c.metric][0]);
    assert.ok(Math.abs(values.reduce((s, v) => s + v, 0) / 3 / c.value - 1) < 1e-9);
    assert.ok(c.interval[0] <= c.value && c.value <= c.interval[1]);
  }
  const time = page.fits.find((f) => f.factor === "gpus" && f.metric === "seconds_per_epoch");
  assert.ok(Math.abs(time.b - 1) < 0.01, "time falls with the number of GPUs");
  for (const f of page.fronts) assert.ok(f.front.length >= 1 && f.cells.length === 9);
  await view.page.locator(".fold summary", {hasText: "Runs: 81 runs"}).click();
  assert.equal(await view.page.locator("#runs tbody tr").count(), 81);
  const table = figure(view, "Time against energy").locator("tbody tr");
  await figure(view, "Time against energy").locator("summary").click();
  await table.first().waitFor();
  const rows = await table.allInnerTexts();
  assert.equal(rows.length, 9);
  await view.close();
});

test("runs that do not count are shown with why and are in no mean", async () => {
  const view = await open(report(makeStudy("invalid", (table) => {
    table.runs[0] = {...table.runs[0], verdict: "invalid", reasons: ["throttled <b>12 %</b> of the time"], metrics: {seconds_per_epoch: {value: 1e6}}};
    table.runs[1] = {...table.runs[1], verdict: "failed", reasons: ["exit code 1"], metrics: {}};
    return table;
  })));
  await check(view);
  const page = await data(view);
  assert.equal(page.centres.find((c) => c.cell === 0 && c.metric === "seconds_per_epoch").count, 1);
  const text = await view.text();
  assert.ok(text.includes("2 runs did not count"));
  assert.ok(text.includes("throttled <b>12 %</b> of the time"));
  await view.close();
});

test("more GPUs and classes of nodes: their tables hold the analysis' numbers", async () => {
  const folder = makeStudy("classes", (t) => {
    const classes = ["cpu", "gpu", "gpu-idle"];
    const cells = classes.flatMap((_, c) => [0, 1].map((n) => ({levels: [0, c, n]})));
    const runs = cells.flatMap(({levels: [, c, n]}, cell) => [0, 1, 2].map((repetition) => {
      const off = 1 + repetition / 1000, time = (c === 1 ? 20 : 100) / (n + 1) * off, gpu = c === 0 ? null : c === 1 ? 400 : 300;
      const energy = (200 + (gpu ?? 0)) * time;
      return {cell, repetition, block: repetition, order: null, folder: "", verdict: "valid", reasons: [], metrics: {duration_s: {value: time}, energy_j: {value: energy},
        ...(gpu ? {gpu_energy_j: {value: gpu * time}, gpu_active_ratio: {value: c === 1 ? 0.9 : 0}} : {})}};
    }));
    return {...t, factors: [{name: "mode", unit: "", levels: ["train"], values: [null]}, {name: "node_class", unit: "", levels: classes, values: [null, null, null]}, {name: "gpus", unit: "", levels: ["1", "2"], values: [1, 2]}],
      metrics: [metric("duration_s", "time", "s"), metric("energy_j", "energy", "J"), metric("gpu_energy_j", "energy of the GPUs", "J"), metric("gpu_active_ratio", "GPU active", "", false)], cells, runs};
  });
  const view = await open(report(folder));
  await check(view);
  const page = await data(view);
  assert.equal(page.scaling.length, 3);
  for (const s of page.scaling) assert.ok(Math.abs(s.rows[1].efficiency - 1) < 1e-9, "twice as fast with two");
  assert.equal(page.classes.ratios.length, 6);
  const idle = page.classes.idle.find((r) => r.setting.includes("1"));
  assert.ok(Math.abs(idle.share - 0.6) < 1e-9 && Math.abs(idle.penalty - 1.5) < 1e-9);
  const text = await view.text();
  assert.ok(text.includes("Parallel efficiency: 100 % at 2 GPUs"));
  assert.ok(text.includes("GPUs with nothing to do took") && text.includes("60 % of the energy; that is 150 % more"));
  assert.match(text, /Runtime does not tell the energy in \d of 6 comparisons/);
  assert.equal(await figure(view, "Energy by class of node").count(), 1);
  await screenshot(view, "study-classes");
  await view.close();
});

test("each setting once: no interval is claimed", async () => {
  const view = await open(report(makeStudy("once", (table) => ({...table, runs: table.runs.filter((r) => r.repetition === 0)}))));
  await check(view);
  const page = await data(view);
  assert.ok(page.centres.every((c) => c.interval === null));
  assert.ok((await view.text()).includes("each measured once"));
  await view.close();
});

test("a study without results, without energy, or of one cell: what is missing is said", async () => {
  for (const [folder, change, says] of [
    ["none", (t) => ({...t, runs: []}), "This study has no runs"],
    ["missing", (t) => ({...t, runs: t.runs.map((r) => ({...r, verdict: "missing", metrics: {}}))}), "No run of this study is valid"],
    ["no-energy", (t) => ({...t, runs: t.runs.map((r) => ({...r, metrics: {seconds_per_epoch: r.metrics.seconds_per_epoch}}))}), "No valid run of this study tells its energy"],
    ["one-cell", (t) => ({...t, cells: t.cells.slice(0, 1), runs: t.runs.slice(0, 3)}), "fewer than two settings"],
  ]) {
    const view = await open(report(makeStudy(folder, change)));
    await check(view);
    assert.ok((await view.text()).includes(says), `${folder}: ${says}`);
    await view.close();
  }
});

test("names in a study cannot break its page", async () => {
  const name = "</script><img src=x onerror=window.hacked=1> \"q\" 😀 مرحبا";
  const view = await open(report(makeStudy("names", (t) => ({...t, name, description: name, factors: t.factors.map((f, i) => (i ? f : {...f, name: "work", levels: [name, "b", "c"]})),
    metrics: t.metrics.map((m) => ({...m, title: m.title + name}))}))));
  await check(view);
  assert.equal(await view.page.locator("h1").innerText(), name);
  assert.deepEqual(await view.page.evaluate(() => [window.hacked, document.querySelectorAll("img").length, document.scripts.length]), [undefined, 0, 2]);
  await view.close();
});

test("a large study: 3,400 runs", async () => {
  const folder = makeStudy("large", (t) => {
    const levels = Array.from({length: 17}, (_, i) => `net${i}`), batches = Array.from({length: 20}, (_, i) => 2 ** (i % 10) + i);
    const cells = levels.flatMap((_, w) => batches.map((_, b) => ({levels: [w, b]})));
    const runs = cells.flatMap((_, cell) => Array.from({length: 10}, (_, repetition) => ({cell, repetition, block: repetition, order: null, folder: "", verdict: "valid", reasons: [],
      metrics: {seconds_per_epoch: {value: 10 + cell % 7 + 0.01 * repetition}, energy_per_epoch_j: {value: 100 + cell + 0.1 * repetition}}})));
    return {...t, factors: [{name: "workload", unit: "", levels, values: levels.map(() => null)}, {name: "batch", unit: "", levels: batches.map(String), values: batches}], cells, runs};
  });
  const file = report(folder);
  assert.ok(fs.statSync(file).size < 5e6);
  const view = await open(file);
  await check(view);
  await view.close();
});
