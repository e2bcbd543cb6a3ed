// How soon a report can be read: from opening the file to its first figure and to its last, in Chromium without a network.
// usage: NODE_MODULES=build/release/web/node_modules node benchmarks/page_open.mjs REPORT.html [REPEATS]
import path from "node:path";
import {pathToFileURL} from "node:url";

const [file, repeats = "5"] = process.argv.slice(2);
if (!file || !process.env.NODE_MODULES) {
  console.error("usage: NODE_MODULES=BUILD/web/node_modules node benchmarks/page_open.mjs REPORT.html [REPEATS]");
  process.exit(2);
}
const {chromium} = await import(pathToFileURL(path.resolve(process.env.NODE_MODULES, "playwright-core/index.mjs")));
const browser = await chromium.launch({executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"]});
const first = [], all = [];
for (let i = 0; i < Number(repeats); ++i) {
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, offline: true});
  const page = await context.newPage();
  // Times since navigation began, taken inside the page.
  await page.addInitScript(() => {
    new MutationObserver((_, observer) => {
      if (window.firstFigure === undefined && document.querySelector(".chart svg path")) window.firstFigure = performance.now();
      if (document.documentElement.dataset.ready === "yes") {
        window.lastFigure = performance.now();
        observer.disconnect();
      }
    }).observe(document, {subtree: true, childList: true, attributes: true, attributeFilter: ["data-ready"]});
  });
  await page.goto(pathToFileURL(path.resolve(file)).href);
  await page.waitForFunction(() => window.lastFigure !== undefined);
  const times = await page.evaluate(() => [window.firstFigure, window.lastFigure]);
  first.push(times[0]);
  all.push(times[1]);
  await context.close();
}
await browser.close();
const told = (list) => {
  const sorted = [...list].sort((a, b) => a - b);
  return `${(sorted[Math.floor(sorted.length / 2)] / 1000).toFixed(2)} (${(sorted[0] / 1000).toFixed(2)} to ${(sorted[sorted.length - 1] / 1000).toFixed(2)})`;
};
console.log(`first figure drawn (s)  ${told(first)}  reach 1`);
console.log(`all figures drawn (s)   ${told(all)}`);
