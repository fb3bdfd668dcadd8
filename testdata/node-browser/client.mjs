// Uses the page of acp-agent serve as somebody does who may do everything, and fails if something is
// not as it should be: client.mjs LINK LINK-OF-SOMEBODY-WITHOUT-SESSIONS PROMPT-THAT-ASKS
// ANOTHER-LINK.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { launch } from "./browser.mjs";
import { poorNetwork } from "./network.mjs";

const [link, without, asks, another] = process.argv.slice(2);
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await launch((arg) => !/web-security|isolat|insecure/i.test(arg));
const problems = [];
let page = await browser.newPage();
await page.setViewport({ width: 1440, height: 900 });
page.setDefaultTimeout(Number(process.env.PATIENCE ?? 120000)); // other tests run at the same time
page.on("pageerror", (error) => problems.push(`error: ${error.message}`));

const becomes = (is, ...args) => page.waitForFunction(is, { polling: 50 }, ...args);
const appears = (selector, words = "") => becomes(
  (s, w) => [...document.querySelectorAll(s)].some((e) => e.textContent.includes(w)), selector, words);
const vanishes = (selector) => becomes((s) => !document.querySelector(s), selector);
const text = (selector) => page.$eval(selector, (e) => e.textContent);
const count = (selector) => page.$$eval(selector, (all) => all.length);
const go = (hash) => page.evaluate((h) => { location.hash = h; }, hash);
const says = (words) => becomes((w) => document.querySelector(".composer .accent:not(:disabled)")?.textContent === w, words);
const box = (selector) => page.$eval(selector, (e) => e.getBoundingClientRect().toJSON());

// send types a prompt and sends it with the keyboard.
async function send(prompt) {
  await says("Send");
  await page.$eval(".composer textarea", (e, value) => {
    e.focus();
    e.value = value;
    e.dispatchEvent(new Event("input"));
  }, prompt);
  await page.keyboard.down("Control");
  await page.keyboard.press("Enter");
  await page.keyboard.up("Control");
}

// check looks for what people with disabilities could not use.
async function check(view) {
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run());
    for (const v of violations) problems.push(`${view}, ${scheme}: ${v.help}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" ")}`);
  }
}

// All questions come first, however many sessions are open.
async function questions() {
  await page.goto(link);
  await appears(".questions .question", "asked.md");
  await appears("[data-session]", "asks a question");
  const first = await box(".question"), row = await box(".results li");
  assert.ok(first.bottom <= row.top, "a question is below sessions");
  // It says why it cannot be allowed yet, and what it changes.
  await appears(".why", "Scroll to the end: ");
  assert.match(await text(".question .added"), /\+41$/);
  assert.notEqual(await page.$eval(".asked ins", (e) => getComputedStyle(e).backgroundColor), "rgba(0, 0, 0, 0)");
  await page.$eval(".asked", (e) => { e.scrollTop = e.scrollHeight; });
  await becomes(() => document.querySelector(".why").textContent === "");
  const once = await page.evaluate(async () => {
    const { Question } = await import("/question.js");
    const card = new Question({ method: "session/request_permission", may: true, params: { options: [{ optionId: "y", name: "Yes" }],
      toolCall: { title: "`npm test -- --grep x`", rawInput: { command: "npm test -- --grep x", cwd: "/src" } } } }, () => {});
    const all = card.element.textContent;
    card.end();
    return all;
  });
  assert.equal(once.split("npm test").length, 2, once);
  assert.ok(once.includes("/src"), once);
}

// All sessions are shown, by day, and each can be opened.
async function sessions() {
  await appears(".results h2", "Today");
  await appears(".results time", ":");
  const title = await box(".results .title"), about = await box(".results .about");
  assert.ok(title.bottom <= about.top, "a title shares its line");
  const before = await count(".results li");
  await page.focus("#filter");
  await becomes((n) => {
    document.querySelector(".results").scrollIntoView({ block: "end" }); // rows get their height when they are seen
    return document.querySelectorAll(".results li").length > n;
  }, before);
  assert.equal(await page.evaluate(() => document.activeElement.id), "filter", "more sessions take the focus");
  await page.type("#filter", "old77"); // the name of the folder has random digits
  await becomes(() => document.querySelectorAll(".results .title").length === 1);
  await check("list");
  await go("#/session/old80");
  await appears("h1", "Session 80");
  await appears(".back", "‹ Sessions");
}

// What is Markdown is shown so, in a width that can be read.
async function conversation() {
  await go("#/session/rich");
  for (const selector of [".answer h3", ".answer ul ul", ".answer ol[start='3']", ".answer li.task", ".answer del", ".answer td.end", ".answer pre", "figure ins"]) {
    await page.waitForSelector(selector);
  }
  assert.doesNotMatch(await text(".answer"), /\*\*|~~|\|--/);
  await appears(".call .added", "+1");
  await appears(".heading .chip", "shared (read-only)");
  assert.deepEqual(await page.$$eval(".folders .from", (all) => all.map((e) => e.textContent.includes("read-only"))), [false, true]);
  const [read, write] = [await box(".page"), await box(".composer")];
  assert.deepEqual([read.left, read.width].map(Math.round), [write.left, write.width].map(Math.round), "the composer is as wide as what is read");
  assert.ok(read.width <= 740, `lines are ${read.width} wide`);
  await check("conversation");
}

// Fields can be seen, flags stay whole, and a phone's keyboard opens only when a field is touched.
async function fields() {
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    const contrast = await page.$eval(".composer textarea", (field) => {
      const light = (color) => color.match(/[\d.]+/g).slice(0, 3).map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0.05);
      let below = field.parentElement;
      while (getComputedStyle(below).backgroundColor === "rgba(0, 0, 0, 0)") below = below.parentElement;
      let framed = field;
      while (parseFloat(getComputedStyle(framed).borderTopWidth) === 0) framed = framed.parentElement;
      const both = [light(getComputedStyle(framed).borderTopColor), light(getComputedStyle(below).backgroundColor)];
      return Math.max(...both) / Math.min(...both);
    });
    assert.ok(contrast >= 3, `${scheme}: the border of the composer has a contrast of ${contrast}`);
  }
  const words = await page.$$eval(".word", (all) => all.map((e) => [e.textContent, getComputedStyle(e).display]));
  assert.ok(words.some(([word]) => /^--?\w/.test(word)) && words.every(([, display]) => display === "inline-block"), JSON.stringify(words));
  const phone = await browser.newPage();
  await phone.emulate({ viewport: { width: 390, height: 844, isMobile: true, hasTouch: true }, userAgent: await browser.userAgent() });
  await phone.goto(new URL("/", page.url()).href);
  await phone.waitForSelector(".results li");
  assert.equal(await phone.evaluate(() => document.activeElement.matches("input, textarea")), false, "a phone's keyboard covers the list");
  await phone.close();
}

// A turn that fails says so, and can be sent again, also after a reload.
async function failure() {
  await go("#/");
  await page.waitForSelector(".begin button:not(:disabled)");
  await page.locator(".begin button").click();
  await becomes(() => document.activeElement.matches(".composer textarea"));
  await send("Fail. *now*");
  await appears(".failure", "no such luck");
  await says("Send");
  assert.equal(await text(".working"), "");
  assert.equal(await page.evaluate(() => document.activeElement.value), "", "the prompt is still there, or has no focus");
  await page.reload();
  await page.waitForSelector(".failure .again");
  await check("failure");
  await page.locator(".again").click();
  await becomes(() => document.querySelectorAll(".failure").length === 2 && document.querySelectorAll(".again").length === 1);
  await becomes(() => [...document.querySelectorAll(".page .prompt em")].filter((e) => e.textContent === "now").length === 2);
}

// One button sends and stops, and a line says what happens.
async function working() {
  await send("Wait.");
  await appears(".working", "Working… ");
  await becomes(() => / \d+ s · Read main\.go$/.test(document.querySelector(".working").textContent));
  await appears(".composer .stop", "Stop");
  await page.type(".composer textarea", "later");
  await appears(".composer .accent", "Send");
  // A draft belongs to its session.
  const here = await page.evaluate(() => location.hash);
  await go("#/session/rich");
  await appears("h1", "Rich");
  await becomes(() => document.querySelector(".composer textarea")?.value === "");
  await go(here);
  await becomes(() => document.querySelector(".composer textarea")?.value === "later");
  await page.$eval(".composer textarea", (e) => {
    e.value = "";
    e.dispatchEvent(new Event("input"));
  });
  await page.locator(".stop").click();
  await appears(".note", "The turn was cancelled.");
  await says("Send");
  await send(asks);
  await appears(".working", "Waits for your answer");
  await page.waitForSelector(".question .reject:not(:disabled)");
  await check("question");
  await page.locator(".stop").click();
  await vanishes(".question");
}

// A question says as much in a window that opens later as in the first one.
async function asked() {
  await says("Send");
  await send("Ask.");
  await appears(".question h2", "Edit b.go");
  const card = () => [...document.querySelectorAll(".question :is(h2, .asked, .added, .removed)")].map((e) => e.textContent).join("\n");
  const before = await page.evaluate(card);
  for (const part of ["go generate", "/src/b.go", "+ new line", "+1"]) assert.ok(before.includes(part), before);
  await page.reload();
  await appears(".question h2");
  assert.equal(await page.evaluate(card), before, "after a reload");
  const other = await browser.newPage();
  other.setDefaultTimeout(page.getDefaultTimeout());
  await other.goto(page.url());
  await other.waitForSelector(".question .asked");
  assert.equal(await other.evaluate(card), before, "in a second window");
  await other.close();
  while (await page.$(".question .reject")) { // a click on a card that has just moved does nothing
    await page.click(".question .reject").catch(() => {});
    await new Promise((resolve) => { setTimeout(resolve, 200); });
  }
  await vanishes(".question");
}

// What the agent says is read out in whole paragraphs, each once, however it arrives.
async function announced() {
  await says("Send");
  await page.evaluate(() => {
    window.heard = [];
    new MutationObserver((changes) => window.heard.push(...changes.flatMap(({ addedNodes }) => [...addedNodes]).map((e) => e.textContent))).observe(document.getElementById("status"), { childList: true, subtree: true });
  });
  await page.setRequestInterception(true);
  // Answers about a page come between those about another.
  const late = (request) => setTimeout(() => request.continue(), request.url().includes("/entries?") ? Math.random() * 300 : 0);
  page.on("request", late);
  await send("Stream.");
  await becomes(() => window.heard.some((words) => words.includes("Paragraph 99")));
  page.off("request", late);
  await page.setRequestInterception(false);
  const heard = await page.evaluate(() => window.heard);
  const spoken = heard.filter((words) => words.includes("Paragraph"));
  const whole = /Paragraph (\d+) begins, goes on(?: and on)*, goes on(?: and on)*, ends\. ?/g;
  assert.deepEqual([...spoken.join(" ").matchAll(whole)].map(([, i]) => Number(i)), Array.from({ length: 100 }, (_, i) => i));
  assert.equal(spoken.join(" ").replaceAll(whole, "").slice(0, 500), "");
  assert.ok(spoken.length > 1 && heard.length < 250, `${heard.length} times something is said, ${spoken.length} times paragraphs`);
}

// On a slow network something is shown at once, and nothing is sent twice.
async function slow() {
  await says("Send");
  await page.setRequestInterception(true);
  const late = (request) => setTimeout(() => request.continue(), request.url().includes("/api/") ? 1500 : 0);
  page.on("request", late);
  await go("#/session/rich");
  await page.waitForSelector(".skeleton");
  await appears("h1", "Rich");
  page.off("request", late);
  await page.setRequestInterception(false);
}

// On a network that is slow and fails, what a person does is on the screen before anything is answered,
// nothing is sent twice, and what may be old says so.
async function poor() {
  const first = page, network = await poorNetwork(new URL(link).port);
  page = await browser.newPage();
  page.setDefaultTimeout(first.getDefaultTimeout());
  await page.goto(another.replace(new URL(another).host, `localhost:${network.port}`)); // has cookies of its own
  await appears(".results .title", "Rich");
  network.late = 750;
  network.hold("server");
  await go("#/session/rich");
  await page.waitForSelector(".skeleton");
  network.release();
  await says("Send");

  const prompts = (words) => page.$$eval(".page .prompt", (all, w) => all.filter((e) => e.textContent.includes(w)).length, words);
  const draft = () => page.$eval(".composer textarea", (e) => e.value);
  // sendAndLose sends a prompt whose connection ends when side has said the next thing.
  const sendAndLose = async (words, side, received) => {
    network.hold(side);
    await send(words);
    await appears(".scroller > .prompt", words);
    await appears(".working", "Working…");
    assert.equal(await draft(), "");
    await received?.();
    network.cut();
    await page.waitForSelector("#lost:not([hidden])");
    await appears(".composer .removed", "If the prompt is not in the conversation, send it again.");
    assert.equal(await draft(), words);
    assert.equal(await page.$eval(".composer .accent", (e) => e.disabled), true, "it can be sent to nobody");
    network.restore();
    await page.waitForSelector("#lost", { hidden: true });
    await says("Send");
  };
  await sendAndLose("Fail. It never arrives.", "browser");
  assert.equal(await prompts("never arrives"), 0);
  await page.locator(".composer .accent").click();
  await becomes(() => [...document.querySelectorAll(".page .prompt")].some((e) => e.textContent.includes("never arrives")));
  await says("Send");
  await sendAndLose("Fail. It arrives.", "server", async () => {
    await first.goto(new URL("/#/session/rich", link).href);
    await first.waitForFunction(() => [...document.querySelectorAll(".page .prompt")].some((e) => e.textContent.includes("It arrives")));
  });
  await becomes(() => [...document.querySelectorAll(".page .prompt")].some((e) => e.textContent.includes("It arrives")));
  await page.close();
  page = first;
  await page.reload();
  await becomes(() => document.querySelectorAll(".page .failure").length >= 2);
  assert.deepEqual([await prompts("never arrives"), await prompts("It arrives")], [1, 1]);
  network.close();
}

// Who has no session yet is offered folders.
async function nothing() {
  await page.evaluate(() => fetch("/leave", { method: "POST", headers: { "Acp-Agent-Proof": localStorage.proof } }));
  await page.goto("about:blank");
  await page.goto(without);
  await appears(".empty", "There are no sessions yet.");
  assert.deepEqual(await page.$$eval(".begin option", (all) => all.map((o) => o.textContent)), ["shop", "Another folder…"]);
  await check("empty");
  for (const width of [320, 390, 820]) {
    await page.setViewport({ width, height: 640 });
    assert.ok(await page.evaluate((w) => document.documentElement.scrollWidth <= w, width), `wider than ${width}`);
  }
}

try {
  for (const step of [questions, sessions, conversation, fields, failure, working, asked, announced, slow, poor, nothing]) {
    const begin = Date.now();
    await step();
    console.log(step.name, Date.now() - begin, "ms");
  }
  assert.deepEqual(problems, []);
} catch (error) {
  console.error(problems.join("\n"), error, await page.evaluate(() => document.body.innerText.slice(0, 1500)));
  process.exitCode = 1;
} finally {
  await browser.close();
}
