// The page of a comparison in a real browser.
import assert from "node:assert/strict";
import path from "node:path";
import {after, test} from "node:test";
import {check, closeBrowser, figure, makeRun, open, rows, scratch, screenshot, tool, toolFails} from "./harness.mjs";

after(closeBrowser);

const run = (folder, watts, name = folder) => makeRun(folder, {sensors: {gpu0: rows("power_w", () => watts), package0: rows("power_w", () => 80)},
  regions: [0, 1, 2, 3, 4].map((i) => [2 * i, 2 * i + 2, `train/epoch[${i}]`, "samples=1000"]), manifest: {name}});

function page(file, ...runs) {
  const html = path.join(scratch, file);
  const json = JSON.parse(tool("compare", ...runs, "--json", "--html", html));
  return {html, json};
}

test("its numbers are those of compare --json, and figures have marks, on a desk and in a hand", async () => {
  const {html, json} = page("two.html", run("base", 320), run("capped", 220));
  const view = await open(html);
  await check(view);
  const text = await view.text();
  for (const {verdict} of json.comparisons) assert.ok(text.includes(verdict.slice(1)), verdict);
  assert.match(text, /Energy by run: base used most, 4\.000 kJ/);
  assert.equal(await figure(view, "Differences from base").count(), 1);
  assert.deepEqual(await view.page.locator("#runs tbody tr td:nth-child(3)").allInnerTexts().then((cells) => cells.map((c) => c.split(" ±")[0])), ["4.000 kJ", "3.000 kJ"]);
  assert.match(await view.page.locator("#differences tbody tr").first().innerText(), /−25 %/);
  await screenshot(view, "compare-desktop");
  await view.close();
  const phone = await open(html, {viewport: {width: 390, height: 800}, isMobile: true, hasTouch: true});
  assert.equal(await phone.page.evaluate(() => document.documentElement.scrollWidth), 390, "nothing sticks out to the side");
  await check(phone);
  await screenshot(phone, "compare-phone");
  await phone.close();
});

test("runs of which nothing is known, and names that are markup", async () => {
  const name = "<img src=x onerror=window.hacked=1>";
  const {html} = page("bad.html", makeRun("empty-a", {manifest: {name}}), makeRun("empty-b", {seconds: 12}));
  const view = await open(html);
  await check(view);
  const text = await view.text();
  assert.ok(text.includes("No run of these has a measured energy"));
  assert.ok(text.includes(name));
  assert.equal(await view.page.evaluate(() => window.hacked), undefined);
  await view.close();
});

test("a page that cannot be written is refused before the runs are read", () => {
  const a = run("refused-a", 100), b = run("refused-b", 100);
  assert.match(toolFails("compare", a, b, "--html", path.join(scratch, "absent/x.html")).text, /there is no folder .*absent/);
  const inside = toolFails("compare", a, b, "--html", path.join(a, "run.json"));
  assert.notEqual(inside.code, 0);
  assert.match(inside.text, /run\.json/);
});
