// Visits a page in headless Chromium, under its own content security policy, and prints as JSON what was found:
// axe's violations, script errors, what was requested, how wide the page is, its text, and the value of an expression.
// Arguments: the page's file, the window's width, the colour scheme, whether scripts run (axe is one), and the expression.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.NPM_FOLDER}/`);
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [file, width, scheme, scripts, expression] = process.argv.slice(2);

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"], timeout: 60000,
});
const page = await browser.newPage();
const [errors, requests] = [[], []];
page.on("pageerror", (error) => errors.push(String(error)));
page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
page.on("request", (request) => requests.push(request.url()));
await page.setViewport({ width: Number(width), height: 800 });
await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
await page.setJavaScriptEnabled(scripts === "true");
await page.goto(pathToFileURL(file).href, { waitUntil: "load", timeout: 60000 });
const value = expression ? await page.evaluate(expression) : null;
let violations = [];
if (scripts === "true") {
  await page.evaluate(axe); // through the debugger, which no policy of the page forbids
  violations = await page.evaluate(async () => {
    const result = await axe.run(document, { resultTypes: ["violations"], preload: false });
    return result.violations.map(({ id, nodes }) => [id, nodes[0].html.slice(0, 200)]);
  });
}
const { wide, text } = await page.evaluate(() => {
  return { wide: document.documentElement.scrollWidth, text: document.body.innerText };
});
await browser.close();
const loaded = requests.filter((url) => !url.startsWith("data:"));
console.log(JSON.stringify({ violations, errors, requests: loaded, wide, text, value }));
