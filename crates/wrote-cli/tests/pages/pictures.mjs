// Takes pictures of pages in headless Chromium.
//
// node pictures.mjs MODULES TEXT PAGE PICTURE [PAGE QUESTION PICTURE]..: the first picture shows the
// text of a terminal next to its page, the next ones show the page at three widths (PICTURE-390.png
// ..), and each further picture shows the chart of a page that answers a question.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, text, page, picture, ...charts] = process.argv.slice(2);
const require = createRequire(pathToFileURL(join(modules, "any.js")));
const { chromium } = require("playwright-core");

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const open = async (path, width, height) => {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: "light" });
  const opened = await context.newPage();
  if (path) await opened.goto(pathToFileURL(path).href);
  return opened;
};

const HEIGHT = 1180;
const report = await open(page, 960, HEIGHT);
const shot = (await report.screenshot()).toString("base64");
const beside = await open(null, 1720, HEIGHT + 40);
await beside.setContent(`<!doctype html><style>
body{margin:0;padding:20px;display:flex;gap:20px;background:#e4e6e8;height:${HEIGHT}px}
pre{margin:0;padding:16px;width:670px;overflow:hidden;box-sizing:border-box;border-radius:8px;background:#14171a;color:#e8eaec;
font:13px/1.42 "DejaVu Sans Mono",monospace}
img{display:block;border-radius:8px}</style><pre></pre><img alt="">`);
await beside.evaluate(([words, image]) => {
  document.querySelector("pre").textContent = words;
  document.querySelector("img").src = `data:image/png;base64,${image}`;
}, [`$ wrote bench /data --html report.html\n${readFileSync(text, "utf8")}`, shot]);
await beside.waitForFunction(() => document.querySelector("img").complete);
await beside.screenshot({ path: picture });

// The page on a phone, on a laptop and on a large screen.
for (const width of [390, 1280, 1920]) {
  const opened = await open(page, width, 1000);
  await opened.screenshot({ path: picture.replace(".png", `-${width}.png`) });
  await opened.context().close();
}

for (let at = 0; at < charts.length; at += 3) {
  const [from, question, to] = charts.slice(at, at + 3);
  const opened = await open(from, 1000, 900);
  await opened.evaluate(() => document.querySelectorAll("details").forEach((of) => { of.open = true; }));
  const caption = opened.locator("figcaption", { hasText: question }).first();
  const figure = opened.locator("figure", { has: caption }).first();
  await figure.screenshot({ path: to });
  await opened.context().close();
}
await browser.close();
