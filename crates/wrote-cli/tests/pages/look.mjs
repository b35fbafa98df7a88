// Examines pages in headless Chromium, and prints a line for each fault that it finds.
//
// node look.mjs MODULES CHROMIUM FOLDER PAGE..: MODULES is the folder into which npm installed.
// With WROTE_PICTURES, a screenshot of every view is saved in FOLDER.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, executablePath, folder, ...pages] = process.argv.slice(2);
const require = createRequire(pathToFileURL(join(modules, "any.js")));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const WIDTHS = [390, 1280, 1920];
// The width of an A4 page with margins of 14 mm, in CSS pixels.
const PAPER_WIDTH = 688;
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

let faults = 0;
const fault = (view, words) => {
  faults += 1;
  console.log(`FAULT ${view}: ${words}`);
};

// Runs inside the page. Returns what overflows, overlaps or is cut off.
const inspect = () => {
  const found = [];
  const width = document.documentElement.clientWidth;
  const name = (of) => `${of.tagName.toLowerCase()}.${of.getAttribute("class") || ""} ` +
    `"${(of.textContent || "").trim().slice(0, 40)}"`;
  if (document.documentElement.scrollWidth > width) {
    found.push(`the page is ${document.documentElement.scrollWidth} wide, the window ${width}`);
  }
  const seen = [...document.body.querySelectorAll("*")].filter((of) =>
    of.checkVisibility() && !of.closest("svg") && of.getClientRects().length > 0);
  const scrolls = (of) => ["auto", "scroll"].includes(getComputedStyle(of).overflowX);
  for (const of of seen) {
    const box = of.getBoundingClientRect();
    const isInside = of.parentElement && of.parentElement.closest(".table, pre");
    if (!(isInside && scrolls(isInside)) && (box.left < -0.5 || box.right > width + 0.5)) {
      found.push(`outside the window: ${name(of)}`);
    }
    const style = getComputedStyle(of);
    const isCut = of.scrollWidth > of.clientWidth + 1 && style.display !== "inline";
    if (isCut && style.overflowX === "hidden" && !of.closest(".unseen")) {
      found.push(`cut: ${name(of)}`);
    }
    if (isCut && scrolls(of) && of.tabIndex < 0) {
      found.push(`scrolls, but not by keys: ${name(of)}`);
    }
    if (isCut && style.overflowX === "visible" && of.matches("p, h1, h2, h3, li, dd, dt, td, th, .table")) {
      found.push(`overflows: ${name(of)}`);
    }
  }
  const overlaps = (one, other) => Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1 &&
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 1;
  const blocks = seen.filter((of) => of.matches("h1, h2, h3, p, figcaption, table, dt, dd, pre, .legend, button"));
  const boxes = blocks.map((of) => [of, of.getBoundingClientRect()]).sort((a, b) => a[1].top - b[1].top);
  boxes.forEach(([of, box], number) => {
    for (let next = number + 1; next < boxes.length && boxes[next][1].top < box.bottom; next += 1) {
      const [other, otherBox] = boxes[next];
      const isButton = of.tagName === "BUTTON" || other.tagName === "BUTTON";
      if (!isButton && !of.contains(other) && !other.contains(of) && overlaps(box, otherBox)) {
        found.push(`overlap: ${name(of)} and ${name(other)}`);
      }
    }
  });
  for (const svg of document.querySelectorAll("svg")) {
    if (!svg.checkVisibility()) continue;
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map((of) => [of.textContent, of.getBoundingClientRect()]);
    texts.forEach(([text, box], number) => {
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 ||
          box.bottom > frame.bottom + 1) {
        found.push(`outside the chart "${svg.getAttribute("aria-label")}": "${text}"`);
      }
      for (const [other, otherBox] of texts.slice(number + 1)) {
        const deep = Math.min(box.bottom, otherBox.bottom) - Math.max(box.top, otherBox.top);
        if (overlaps(box, otherBox) && deep > 3) {
          found.push(`overlap in the chart "${svg.getAttribute("aria-label")}": "${text}" and "${other}"`);
        }
      }
    });
  }
  return [...new Set(found)].slice(0, 12);
};

const picture = async (page, view) => {
  if (process.env.WROTE_PICTURES) {
    await page.screenshot({ path: join(folder, `${view.replaceAll(" ", "-")}.png`), fullPage: true });
  }
};

// Opens or closes all folded parts, because their content is examined as well.
const fold = (page, isOpen) => page.evaluate((isOpen) => {
  for (const of of document.querySelectorAll("details")) of.open = isOpen;
}, isOpen);

const listen = (page, name, address) => {
  page.on("request", (request) => {
    const url = request.url();
    if (url !== address && !url.startsWith("data:")) fault(name, `a request went out: ${url.slice(0, 80)}`);
  });
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) fault(name, `console: ${message.text()}`);
  });
  page.on("pageerror", (error) => fault(name, `script: ${error}`));
};

const look = async (browser, path) => {
  const [name, address] = [basename(path, ".html"), pathToFileURL(path).href];
  const context = await browser.newContext();
  // A slow machine is not the page's fault, so there is no time limit here. The caller kills a
  // browser that hangs.
  context.setDefaultTimeout(0);
  const page = await context.newPage();
  listen(page, name, address);
  await page.goto(address);
  for (const colorScheme of ["light", "dark"]) {
    for (const width of WIDTHS) {
      const view = `${name} ${width} ${colorScheme}`;
      await page.emulateMedia({ media: "screen", colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await fold(page, false);
      await picture(page, view);
      await fold(page, true);
      await picture(page, `${view} open`);
      // Colours do not affect the layout, so only one width is inspected in dark mode.
      if (colorScheme === "light" || width === WIDTHS[0]) {
        (await page.evaluate(inspect)).forEach((words) => fault(view, words));
      }
    }
    // The rules do not depend on the width, and most of them do not depend on colours.
    await page.setViewportSize({ width: colorScheme === "light" ? 390 : 1280, height: 900 });
    await page.evaluate(axe);
    const rules = colorScheme === "light" ? {} : { runOnly: ["color-contrast"] };
    const { violations } = await page.evaluate((options) => axe.run(options), rules);
    for (const { id, help, nodes } of violations) {
      fault(`${name} ${colorScheme}`, `axe: ${id}: ${help}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
    }
  }
  await page.emulateMedia({ media: "print", colorScheme: "light" });
  await page.setViewportSize({ width: PAPER_WIDTH, height: 970 });
  (await page.evaluate(inspect)).forEach((words) => fault(`${name} print`, words));
  const cut = await page.evaluate(() => [...document.querySelectorAll("details > :not(summary)")]
    .filter((of) => !of.checkVisibility()).length);
  if (cut > 0) fault(`${name} print`, `${cut} details are closed`);
  await page.emulateMedia({ media: null, colorScheme: null });
  if (process.env.WROTE_PICTURES) await page.pdf({ path: join(folder, `${name}.pdf`), format: "A4" });
  await use(page, name);
  await context.close();
  await withoutScript(browser, name, address);
};

// Checks that a pointer over a mark shows its value, that a button copies, and that the document
// can be saved.
const use = async (page, name) => {
  await page.setViewportSize({ width: 1280, height: 900 });
  const mark = page.locator("svg.wide g:has(title) > :not(title)").first();
  if (await mark.count() > 0) {
    await mark.scrollIntoViewIfNeeded();
    const title = await mark.evaluate((of) => of.parentNode.querySelector("title").textContent);
    await mark.dispatchEvent("pointermove", { bubbles: true, clientX: 200, clientY: 200 });
    const shown = await page.locator(".tip").textContent();
    if (shown !== title) fault(name, `a pointer over a mark shows "${shown}", not "${title}"`);
  }
  const button = page.locator(".code button").first();
  if (await button.count() > 0) {
    await button.click();
    await page.waitForFunction((of) => of.textContent !== "Copy", await button.elementHandle());
  }
  const link = page.locator("a[download]").first();
  if (await link.count() > 0) {
    const [download] = await Promise.all([page.waitForEvent("download"), link.click()]);
    const saved = join(folder, `${name}.saved.json`);
    await download.saveAs(saved);
    JSON.parse(readFileSync(saved, "utf8"));
  }
};

const withoutScript = async (browser, name, address) => {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 1280, height: 900 } });
  context.setDefaultTimeout(0);
  const page = await context.newPage();
  // Without `listen`, a script that is not allowed to run is not reported as a fault.
  await page.goto(address);
  const counts = await page.evaluate(() => ({
    hidden: [...document.querySelectorAll("table, svg.wide, .card, .findings")]
      .filter((of) => !of.checkVisibility() && !of.closest("details.fold")).length,
    buttons: [...document.querySelectorAll("button")].filter((of) => of.checkVisibility()).length,
  }));
  if (counts.hidden > 0) fault(`${name} without script`, `${counts.hidden} parts are not seen`);
  if (counts.buttons > 0) fault(`${name} without script`, `${counts.buttons} buttons do nothing`);
  (await page.evaluate(inspect)).forEach((words) => fault(`${name} without script`, words));
  await context.close();
};

const browser = await chromium.launch({ executablePath, args: ARGUMENTS, timeout: 0 });
for (const page of pages) await look(browser, page);
await browser.close();
console.log(`${pages.length} pages, ${faults} faults`);
process.exit(faults > 0 ? 1 : 0);
