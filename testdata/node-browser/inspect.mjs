// Walks through the page of acp-agent inspect with a keyboard, and fails if something is not as it
// should be: inspect.mjs URL EXPORTED-PAGE [DIRECTORY for pictures].
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { launch } from "./browser.mjs";

const [url, exportedPage, pictures] = process.argv.slice(2);
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await launch();
const problems = [];
let page;

// open opens a page whose console, errors and requests are watched.
async function open(address) {
  page = await browser.newPage();
  await page.setViewport({ width: 1400, height: 900 });
  page.setDefaultTimeout(Number(process.env.PATIENCE ?? 120000)); // other tests run at the same time
  page.on("console", (message) => problems.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    const to = new URL(request.url());
    if (to.protocol !== "data:" && to.origin !== new URL(url).origin) problems.push(`request: ${request.url()}`);
  });
  await page.goto(address);
}

// becomes waits until a function is true in the page. It does not look in each frame, which would
// make the browser draw them all.
const becomes = (is, ...args) => page.waitForFunction(is, { polling: 50 }, ...args);
const text = (selector) => page.$eval(selector, (e) => e.textContent);
const appears = (selector, words) => becomes(
  (s, w) => [...document.querySelectorAll(s)].some((e) => e.textContent.includes(w)), selector, words);

// press types keys, and tab goes to the element that matches, as somebody without a mouse would.
async function press(...keys) {
  for (const key of keys) await page.keyboard.press(key);
}

async function tab(selector) {
  for (let i = 0; i < 60; i++) {
    await press("Tab");
    if (await page.evaluate((s) => document.activeElement.matches(s), selector)) return;
  }
  throw new Error(`the keyboard does not reach ${selector}`);
}

// happens lets something happen that the page has to show by itself.
async function happens(what) {
  const happened = once(process.stdin, "data");
  console.log(`now: ${what}`);
  await happened;
}

// check looks for what people with disabilities could not use, in both colour schemes.
async function check(view) {
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    // Through the debugger, because the page's own policy allows no scripts of others.
    if (!await page.evaluate(() => window.axe)) await page.evaluate(axe);
    const { violations } = await page.evaluate((dark) => axe.run(dark ? { runOnly: ["color-contrast"] } : {}), scheme === "dark");
    for (const v of violations) problems.push(`${view}, ${scheme}: ${v.help}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" ")}`);
  }
  await picture(view);
}

async function picture(view) {
  if (!pictures) return;
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    for (const width of [400, 1400]) {
      await page.setViewport({ width, height: 900 });
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      // Without the empty part of a view that does not fill the screen.
      const bottom = await page.evaluate(() => Math.max(...[...document.querySelectorAll("main > *")].map((e) => e.getBoundingClientRect().bottom)));
      const clip = { x: 0, y: 0, width, height: Math.min(900, Math.ceil(bottom) + 40) };
      await page.screenshot({ path: join(pictures, `${view}-${scheme}-${width}.png`), clip });
    }
  }
}

async function sessions() {
  await open(url);
  await appears(".results .title", "Orders fail");
  assert.deepEqual(await page.$$eval(".results li", (all) => [...all.find((e) => e.textContent.includes("Orders fail")).querySelectorAll(".chip")].map((e) => e.textContent)),
    ["shop", "shared", "skills (read-only)"]);
  assert.ok(!page.url().includes("token"), "the token stays in the address");
  assert.equal(await page.evaluate(() => document.cookie), "", "scripts see the cookie");
  await check("sessions");
  const before = (await page.$$(".results li")).length;
  await page.focus(".results section:last-of-type li:last-child a");
  await tab(".more");
  await press("Enter");
  await becomes((n) => document.querySelectorAll(".results li").length > n, before);
  await page.focus("#filter");
  await page.keyboard.type("idempotency key");
  await appears(".snippet mark", "idempotency");
  await check("search");
  await page.$eval("#filter", (e) => e.select());
  await page.keyboard.type("orders fail \"answers 503\"");
  await becomes(() => document.querySelectorAll(".results li .snippet").length === 1);
  await tab(".results a.snippet");
  await press("Enter");
}

async function conversation() {
  await appears("article h2", "You");
  await appears("article", "idempotency");
  assert.match(await text("h1"), /^Orders fail/);
  await appears(".heading .chip", "skills (read-only)");
  const folders = await page.$$eval(".folders .from", (all) => all.map((e) => e.textContent.includes("read-only")));
  assert.deepEqual(folders, [false, false, true]);
  await page.focus(".scroller");
  await tab(".page summary");
  await press("Enter");
  await appears(".thought[open] p", "existing helper");
  await tab(".call summary");
  await tab(".call summary");
  await press("Enter");
  await appears(".diff ins", "ErrUnavailable");
  await page.evaluate(() => { navigator.clipboard.writeText = async (copied) => { window.copied = copied; }; });
  await tab(".diff + .copy");
  await press("Enter");
  await appears(".diff + .copy", "Copied");
  await appears(".diff + .copy", "Copy");
  assert.match(await page.evaluate(() => window.copied), /^--- .*client\.go\n\+\+\+ .*client\.go\n@@ -1,7 \+1,10 @@\n func .*\n-\tresponse/);
  await tab(".call summary");
  await press("Enter");
  const output = await page.$eval(".call.failed .result", (e) => [e.textContent, getComputedStyle(e).fontFamily, getComputedStyle(e).whiteSpace]);
  assert.match(output[0], /\n {4}client_test/);
  assert.match(output.slice(1).join(" "), /mono.* pre-wrap/);
  await appears("td strong", "repeats");
  await tab("aside button");
  await press("Enter");
  await appears(".found li", "AGENTS.md");
  await appears("aside pre", "run --agent opencode --resume sess_shop");
  await appears("aside dt", "/review");
  await appears("aside dd", "1,200 of 200,000 tokens");
  await page.$eval(".scroller", (e) => e.scrollTo(0, 0));
  await check("conversation");
  await page.focus(".back, .scroller");
  await page.keyboard.down("Shift");
  await tab(".opens");
  await page.keyboard.up("Shift");
  await press("Enter");
  await appears(".changes .dim", "1 file, +3 -0 since");
  assert.equal(await page.$eval(".opens", (e) => e.ariaExpanded), "true");
  await tab(".changes summary");
  assert.equal(await text(".changes summary"), "backoff.go +3 −0");
  await press("Enter");
  await appears(".changes [open] .diff ins", "const attempts = 4");
  await appears(".changes > p", "as tool calls reported");
  await check("changes");
  await press("Escape");
  await becomes(() => document.querySelector(".changes").hidden && document.activeElement.matches(".opens"));
  // What is said now is shown without asking for it.
  await happens("turn");
  await appears("article", "order is kept");
  await appears(".heading .about", "3 turns");
}

// Only who uses the keyboard sees a frame around what a key scrolls.
async function frames() {
  const frame = () => page.$eval(".scroller", (e) => e === document.activeElement && getComputedStyle(e).outlineStyle);
  await page.evaluate(() => { location.hash = "#/"; });
  await appears(".results .title", "Orders fail");
  await page.click(".results a[href*=sess_shop]");
  await appears("article", "idempotency");
  assert.equal(await frame(), "none");
  await press("Tab");
  await page.keyboard.down("Shift");
  await press("Tab");
  await page.keyboard.up("Shift");
  assert.notEqual(await frame(), "none");
}

// An address that leads nowhere says so.
async function mistyped() {
  await page.evaluate(() => { location.hash = "#/sesion/x"; });
  await appears("h1", "No such page");
  await check("mistyped");
}

async function longConversation() {
  await page.evaluate(() => { location.hash = "#/session/sess_long"; });
  await appears("article", "piece 0 of it");
  await press("End");
  await appears("article", "piece 19997 of it");
  assert.ok(await page.evaluate(() => document.querySelectorAll("main *").length) < 4000, "too much is rendered");
  await check("long");
  await press("Home");
  await appears("article", "piece 0 of it");
}

// A message that was found is shown where it is in the conversation.
async function foundMessage() {
  await page.evaluate(() => { location.hash = "#/"; });
  await becomes(() => document.activeElement.id === "filter");
  await page.keyboard.type("\"piece 12345\"");
  await appears(".snippet mark", "piece 12345");
  await tab(".results a.snippet");
  await press("Enter");
  await becomes(() => {
    const selection = getSelection();
    if (selection.toString() !== "piece 12345") return false;
    const { top, bottom } = selection.getRangeAt(0).getBoundingClientRect();
    return top > 0 && bottom < innerHeight;
  });
}

async function hostileText() {
  await page.evaluate(() => { location.hash = "#/session/sess_hostile"; });
  await appears("article.prompt", "<img src=x onerror=alert(1)>");
  await page.evaluate(() => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
  for (const selector of ["article.answer h3", "article.answer li", "article.answer pre", ".thought", ".plan", ".call .title", "figcaption", ".diff", "h1"]) {
    await appears(selector, "<script>document.title");
  }
  const shown = await text("main");
  assert.ok(!/[\x1b\u202e\u200b]/.test(shown), "a character that is obeyed is not replaced");
  assert.equal(await page.evaluate(() => document.querySelectorAll("main script, main img, main b").length), 0);
  assert.deepEqual(await page.$$eval(".page a", (all) => all.map((a) => a.href)), ["https://example.org/"]);
  assert.match(await page.title(), /^<img/);
  await check("hostile");
}

async function traces() {
  await page.focus("nav a:nth-of-type(2)");
  await press("Enter");
  await appears(".results a", "orders.trace");
  await check("traces");
  await tab(".results a[href*=orders]");
  await press("Enter");
  await appears(".row .method", "session/prompt");
  assert.match(await text("main .about"), /^\d+ messages in 15.9 s2 errors2 unanswered$/);
  // What failed first is selected, and keys go on from there.
  await appears(".row[aria-selected=true] .method", "fs/read_text_file");
  await becomes(() => document.activeElement.matches(".list"));
  await press("Home");
  for (let i = 0; i < 6; i++) await press("ArrowDown");
  await appears(".row[aria-selected=true] .label", "12 pieces");
  await appears(".row[aria-selected=true] .text", "piece 0 piece 1 piece 2");
  const folded = await page.$$eval(".row", (all) => all.length);
  await press("ArrowRight");
  await becomes((n) => document.querySelectorAll(".row").length > n, folded);
  await press("ArrowLeft", "Home", "ArrowDown", "ArrowDown");
  await appears(".row[aria-selected=true] .method", "session/new");
  await appears(".detail mark", "mcp-relay");
  await appears(".detail mark", "ses_91");
  await appears(".detail .about", "of which opencode[4711] took 410 ms");
  for (let i = 0; i < 2; i++) await press("ArrowDown");
  await appears(".detail .about", "Answered after 10.");
  await check("trace");
  await press("End");
  await appears(".detail mark", "<script>document.title");
  await page.focus(".problems");
  await press("Enter");
  await becomes(() => document.querySelectorAll(".row").length === 4);
  await appears(".row .took", "no answer");
  await press("Home");
  await appears(".detail .about", "Failed after 2.0 ms");
  await press("ArrowDown");
  await appears(".detail .about", "acp-agent passed it on to opencode[4711], which has not answered");
  await page.select("[aria-label=Messages]", "questions");
  await becomes(() => document.querySelectorAll(".row").length === 2);
  await page.select("[aria-label=Messages]", "");
  await page.focus(".zoom button");
  await press("Enter", "Enter");
  await appears("#status", "messages in 3.9");
  await page.focus("[aria-label='Find messages']");
  await page.keyboard.type("terminal/create");
  await becomes(() => document.querySelectorAll(".row").length > 0 && [...document.querySelectorAll(".row .method")].every((e) => e.textContent === "terminal/create"));
  // What is written now is shown without asking for it.
  await page.focus(".zoom button:last-of-type");
  await press("Enter");
  await page.$eval("[aria-label='Find messages']", (e) => e.select());
  await page.keyboard.type("set_mode");
  await becomes(() => [...document.querySelectorAll(".row .took")].some((e) => e.textContent === "no answer"));
  await happens("answers");
  await becomes(() => document.querySelector(".problems.open").hidden);
  await becomes(() => ![...document.querySelectorAll(".row .took")].some((e) => e.textContent === "no answer"));
}

// Each start of acp-agent in a trace is shown by itself, the newest one first.
async function starts() {
  await page.evaluate(() => { location.hash = "#/traces"; });
  await appears(".results a", "windows.trace");
  await page.evaluate(() => [...document.querySelectorAll(".results a")].find((a) => a.textContent.includes("windows.trace")).click());
  const summary = "57 messages in 15.9 s2 errors2 unanswered";
  await appears("main .about", summary);
  const names = await page.$$eval(".start option", (all) => all.map((o) => o.textContent));
  assert.deepEqual(names.map((n) => n.replace(/^.*? · /, "")), ["acp-agent[4710] · 2 errors", "acp-agent[4712] · 2 errors", "acp-agent[4710] · 2 errors"]);
  assert.equal(await page.$eval(".start", (e) => e.selectedIndex), 2);
  await check("starts");
  await page.focus(".start");
  await press("ArrowUp");
  await appears("main .about", summary);
  await press("ArrowUp");
  await appears("main .about", summary);
}

// A long trace is read in parts, each once, also if that takes longer than the page waits for more.
async function slowTrace() {
  await page.setRequestInterception(true);
  const slow = (request) => setTimeout(() => request.continue(), request.url().includes("/trace?") ? 1500 : 0);
  page.on("request", slow);
  await page.evaluate(() => { location.hash = "#/traces"; });
  await appears(".results a", "long.trace");
  await page.evaluate(() => [...document.querySelectorAll(".results a")].find((a) => a.textContent.includes("long.trace")).click());
  await appears("main .about", "% read");
  await becomes(() => /^[\d,]+ messages in 0 s0 errors[\d,]+ unanswered$/.test(document.querySelector("main .about").textContent));
  assert.match(await text("main .about"), /^20,000 messages/);
  page.off("request", slow);
  await page.setRequestInterception(false);
}

// The page says when it does not follow what happens any more.
async function ended() {
  await page.evaluate(() => { location.hash = "#/session/sess_shop"; });
  await appears("article", "idempotency");
  await page.setOfflineMode(true);
  await page.waitForSelector("#lost:not([hidden])");
  await check("ended");
  await page.setOfflineMode(false);
  await page.waitForSelector("#lost[hidden]");
  const expected = problems.filter((p) => p.includes("ERR_INTERNET_DISCONNECTED"));
  for (const problem of expected) problems.splice(problems.indexOf(problem), 1);
}

// Every view can be used on a narrow screen, and enlarged.
async function narrow() {
  await page.setViewport({ width: 400, height: 800 });
  for (const [view, shown] of [["", ".results .title"], ["session/sess_arabic", "article"], ["traces", ".results .title"]]) {
    await page.evaluate((v) => { location.hash = `#/${v}`; }, view);
    await page.waitForSelector(shown);
    assert.ok(await page.evaluate(() => document.querySelector("main").scrollWidth <= 400), `${view} is wider than the screen`);
  }
  await page.evaluate(() => { location.hash = "#/session/sess_shop"; });
  await page.waitForSelector("aside details:not([open])");
  await page.setViewport({ width: 1400, height: 900 });
  await page.waitForSelector("aside details[open] .folders");
  await page.setViewport({ width: 400, height: 800 });
  await page.evaluate(() => { location.hash = "#/traces"; });
  await appears(".results a", "orders.trace");
  await page.evaluate(() => [...document.querySelectorAll(".results a")].find((a) => a.textContent.includes("orders.trace")).click());
  await appears(".row .method", "session/new");
  assert.ok(await page.evaluate(() => document.querySelector("main").scrollWidth <= 400), "a trace is wider than the screen");
  const method = await page.$eval(".row .method", (e) => e.getBoundingClientRect().toJSON());
  const row = await page.$eval(".row", (e) => e.getBoundingClientRect().toJSON());
  assert.ok(method.width > 50 && method.top >= row.top && method.bottom <= row.bottom, "a message cannot be read");
  await page.click(".row[aria-selected=true]");
  await appears(".detail h3", "Request");
  const detail = await page.$eval(".detail", (e) => [e.clientHeight, e.scrollHeight]);
  assert.ok(detail[0] > 200 && detail[0] >= detail[1], `the detail of a message is ${detail} high`);
  await check("narrow");
  await page.setViewport({ width: 1400, height: 900 });
}

// Text is in its own direction.
async function rightToLeft() {
  await page.evaluate(() => { location.hash = "#/session/sess_arabic"; });
  await appears("article.answer", "config.json");
  for (const selector of ["article.answer p", "article.answer li"]) {
    const ends = await page.$eval(selector, (e) => {
      const range = document.createRange();
      range.selectNodeContents(e);
      return [range.getBoundingClientRect().right, e.getBoundingClientRect().right].map(Math.round);
    });
    assert.equal(ends[0], ends[1], `${selector} begins at the left`);
  }
}

// An exported page has the same look, and can be used by everybody too.
async function exported() {
  await page.close();
  await open("about:blank");
  await page.setContent(await readFile(exportedPage, "utf8"));
  await page.evaluate(() => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
  await appears(".diff ins", "ErrUnavailable");
  const widths = await page.$eval(".diff ins", (e) => [e.clientWidth, e.parentElement.clientWidth]);
  assert.equal(widths[0], widths[1], "a changed line is marked in part");
  await check("exported");
}

try {
  for (const step of [sessions, conversation, frames, mistyped, longConversation, foundMessage, hostileText, rightToLeft, traces, starts, slowTrace, ended, narrow, exported]) {
    const begin = Date.now();
    await step();
    console.log(step.name, Date.now() - begin, "ms");
  }
  assert.deepEqual(problems, []);
} catch (error) {
  console.error(problems.join("\n"), error, await page?.evaluate(() => document.querySelector("main").innerText.slice(-1500)));
  if (pictures) await picture("failed");
  process.exitCode = 1;
} finally {
  await browser.close();
  process.stdin.destroy();
}
