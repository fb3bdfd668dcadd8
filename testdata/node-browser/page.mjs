// Walks through the page of acp-agent serve on a phone, and fails if something is not as it should
// be: page.mjs LINK [DIRECTORY for pictures]. Another program acts between the steps.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const [link, pictures] = process.argv.slice(2);
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// The package turns off what keeps sites apart.
const args = chromium.args.filter((a) => !/web-security|isolat|insecure/i.test(a));
const browser = await puppeteer.launch({
  args: [...args, "--no-sandbox"], executablePath: await chromium.executablePath(), headless: "shell",
});
const problems = [];
const page = await browser.newPage();
await page.setBypassCSP(true); // for axe
await page.setViewport({ width: 320, height: 640 });
page.setDefaultTimeout(Number(process.env.PATIENCE ?? 120000)); // other tests run at the same time
page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
page.on("dialog", (dialog) => {
  problems.push(`dialog: ${dialog.message()}`);
  dialog.dismiss();
});
page.on("request", (request) => {
  if (new URL(request.url()).origin !== new URL(link).origin) problems.push(`request: ${request.url()}`);
});

// appears waits until an element has words.
async function appears(selector, words) {
  try {
    await page.waitForFunction((s, w) => [...document.querySelectorAll(s)].some((e) => e.textContent.includes(w)), {}, selector, words);
  } catch (error) {
    throw new Error(`${selector} never had "${words}": ${await page.$eval("body", (e) => e.innerText)}; ${problems}`, { cause: error });
  }
}

const vanishes = (selector) => page.waitForFunction((s) => !document.querySelector(s), {}, selector);
const enabled = (selector) => page.waitForFunction((s) => document.querySelector(s)?.disabled === false, {}, selector);

// happens lets something happen that the page has to show by itself.
async function happens(what) {
  const happened = once(process.stdin, "data");
  console.log(`now: ${what}`);
  await happened;
}

// look checks what is shown in both schemes, and takes pictures.
async function look(name) {
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run());
    for (const v of violations) problems.push(`${name}, ${scheme}: ${v.help}: ${v.nodes.map((n) => n.html).join(" ")}`);
    if (pictures) await page.screenshot({ path: join(pictures, `page-${name}-${scheme}.png`) });
  }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  if (wide > 320) problems.push(`${name} is ${wide} pixels wide`);
}

await page.goto(link);
await appears(".results .title", "Untitled");
assert.equal(await page.evaluate(() => location.hash), "", "the code stays in the address");

// A question appears in the list, and is answered there once its end was seen.
await happens("ask");
await appears(".question .asked", "a.txt");
assert.equal(await page.$eval(".question .allow", (e) => e.disabled), true, "a card can be answered at once");
assert.equal(await page.$eval(".question", (e) => e.textContent.includes("lways")), false);
await page.evaluate(() => document.querySelector(".question .allow").click()); // no person did that
await enabled(".question .reject");
await look("question");
await page.$eval(".question .asked", (e) => { e.scrollTop = e.scrollHeight; });
await enabled(".question .allow");
await page.click(".question .allow");
await happens("answered");

// In the session what others do appears by itself.
await page.click(".results a");
await appears(".prompt", "a.txt");
await happens("ask again");
await appears(".prompt", "b.txt");
await appears(".question .asked", "b.txt");
await look("session");
await happens("cancel");
await appears(".question", "elsewhere");
await vanishes(".question");

// A turn is stopped.
await happens("ask again");
await appears(".question .asked", "c.txt");
await page.click(".stop");
await happens("stopped");

// A connection that is lost comes back by itself.
await happens("cut");
await appears(".prompt", "c.txt");
await page.waitForFunction(() => document.getElementById("lost").hidden && document.querySelectorAll(".prompt").length === 4);

// A page on another site gets nothing.
const evil = await browser.newPage();
await evil.goto(link.replace("127.0.0.1", "localhost").replace(/#.*/, "style.css"));
const got = await evil.evaluate(async (to) => {
  const socket = await new Promise((resolve) => {
    const s = new WebSocket(`${to.replace("http", "ws")}acp`, ["acp.v1"]);
    s.onopen = () => resolve("open");
    s.onerror = () => resolve("refused");
  });
  const fetched = await fetch(`${to}me`, { method: "POST", credentials: "include" }).then((r) => r.text(), () => "refused");
  const frame = document.createElement("iframe");
  frame.src = to;
  document.documentElement.append(frame);
  await new Promise((resolve) => { frame.onload = resolve; });
  return { socket, fetched, frame: frame.contentDocument === null };
}, link.replace(/#.*/, ""));
assert.deepEqual(got, { socket: "refused", fetched: "refused", frame: true });
await evil.close();

await happens("revoke");
await appears("main", "not paired");
await browser.close();
process.stdin.destroy(); // otherwise the program waits for more
assert.deepEqual(problems, []);
