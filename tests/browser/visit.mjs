// Visits a page in headless Chromium as it is, under its own content security policy, and prints as JSON what
// was found. Arguments: the page's file, and a list of visits as JSON: {width, dark, print, scripts, script, axe,
// screenshot}, of which all but the width may be missing. A script is the body of an async function, whose
// value is the visit's "value"; it runs even where scripts, the page's own, are false.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.NPM_FOLDER}/`);
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [file, visits] = [process.argv[2], JSON.parse(process.argv[3])];

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"], timeout: 60000,
});
const found = [];
for (const { width, dark, print, scripts, script, axe: audited, screenshot } of visits) {
  const page = await browser.newPage();
  const errors = [];
  const requests = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("request", (request) => requests.push(request.url().slice(0, 80)));
  await page.setViewport({ width, height: width < 500 ? 844 : 800 });
  if (scripts === false) await page.setJavaScriptEnabled(false);
  // Both at once: Chromium forgets the one when told of the other.
  await (await page.createCDPSession()).send("Emulation.setEmulatedMedia", {
    media: print ? "print" : "screen", features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }],
  });
  await page.goto(pathToFileURL(file).href, { waitUntil: "load", timeout: 60000 });
  const value = script && (await page.evaluate(`(async () => { ${script} })()`));
  let violations;
  if (audited) {
    await page.evaluate(axe); // through the debugger, which no policy of the page forbids
    const result = await page.evaluate(`axe.run(document, { resultTypes: ["violations"] })`);
    violations = result.violations.map(({ id, nodes }) => ({
      id, count: nodes.length, first: nodes[0].html.slice(0, 200), why: nodes[0].failureSummary,
    }));
  }
  if (screenshot) await page.screenshot({ path: screenshot, fullPage: screenshot.includes("full") });
  const size = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight]);
  found.push({ value, violations, errors, requests: requests.filter((url) => !url.startsWith("data:")), size });
  await page.close();
}
await browser.close();
console.log(JSON.stringify(found));
