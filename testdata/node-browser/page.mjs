// Walks through the page of acp-agent serve on a phone, and fails if something is not as it should
// be: page.mjs LINK LINK-OF-ANOTHER LINK-OF-ANOTHER-SERVER [DIRECTORY for pictures]. Another program
// acts between the steps.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { launch } from "./browser.mjs";

const [link, another, elsewhere, pictures] = process.argv.slice(2);
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// The package turns off what keeps sites apart.
const browser = await launch((arg) => !/web-security|isolat|insecure/i.test(arg));
const problems = [];
const page = await browser.newPage();
await page.setViewport({ width: 320, height: 640 });
const patience = Number(process.env.PATIENCE ?? 120000); // other tests run at the same time
page.setDefaultTimeout(patience);
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

// allow reads a question to its end, and allows what it asks.
async function allow(card = ".question") {
  await page.$eval(`${card} .asked`, (e) => {
    e.scrollTop = e.scrollHeight;
    e.closest(".question").querySelector(".allow").scrollIntoView({ block: "center" });
  });
  while (await page.$(`${card} .allow`)) { // a click on a card that has just moved does nothing
    await page.waitForFunction((s) => document.querySelector(s)?.disabled !== true, {}, `${card} .allow`);
    await page.click(`${card} .allow`).catch(() => {});
    await new Promise((resolve) => { setTimeout(resolve, 200); });
  }
}

// look checks what is shown in both schemes, and takes pictures.
async function look(name) {
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run());
    for (const v of violations) problems.push(`${name}, ${scheme}: ${v.help}: ${v.nodes.map((n) => n.html).join(" ")}`);
    if (!pictures) continue;
    await page.setViewport({ width: 400, height: 800 });
    await new Promise((resolve) => { setTimeout(resolve, 1000); }); // the card has moved
    await page.screenshot({ path: join(pictures, `page-${name}-${scheme}.png`) });
    await page.setViewport({ width: 320, height: 640 });
  }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  if (wide > 320) problems.push(`${name} is ${wide} pixels wide`);
}

await page.goto(link);
await appears(".results .title", "Where is the timeout?");
assert.equal(await page.evaluate(() => location.hash), "", "the code stays in the address");

// A question that waits is answered in the list, once its end was seen.
await appears(".question .asked", "a.md");
assert.equal(await page.$eval(".question .allow", (e) => e.disabled), true, "a card can be answered at once");
assert.equal(await page.$eval(".question", (e) => e.textContent.includes("lways")), false);
await page.evaluate(() => document.querySelector(".question .allow").click()); // no person did that
await enabled(".question .reject");
await look("question");
await allow();
await happens("answered");
await vanishes(".question");
assert.equal(await page.$eval(".results", (e) => e.textContent.includes("asks a question")), false);

// Whatever an agent asks is shown as text, all of it, with what is invisible.
const hostile = Object.entries({
  HTML: { toolCall: { title: "<img src=x onerror=alert(1)>", rawInput: { command: "</pre><script>alert(1)</script>" } }, shown: ["</pre><script>alert(1)</script>"] },
  Markdown: { toolCall: { title: "[ok](javascript:alert(1))", rawInput: { command: "# a `b` ![](https://evil.example/x)" } }, shown: ["![](https://evil.example/x)"] },
  "an order that is not the one of the text": { toolCall: { title: "a\u202eb", rawInput: { command: "rm \u2066-rf\u2069 \u200f/" } }, shown: ["rm \\u2066-rf\\u2069 \\u200f/"] },
  "invisible characters": { toolCall: { title: "\u200b", rawInput: { command: "a\u200bb\u00adc\u2060d\ufeffe\u3164f\u{e0041}g\u2800h\u0000i\u001bj\rk\u034fl" } },
    shown: ["a\\u200bb\\u00adc\\u2060d\\ufeffe\\u3164f\\u{e0041}g\\u2800h\\u0000i\\u001bj\\u000dk\\u034fl"] },
  "halves of characters": { toolCall: { title: "x", rawInput: { command: "a\ud800b" } }, shown: ["a\\ud800b"] },
  emoji: { toolCall: { title: "x", rawInput: { command: "⚠️ 👩‍💻 1️⃣ 日本 می‌خواهم" } }, shown: ["⚠️ 👩‍💻 1️⃣ 日本 می‌خواهم"] },
  "many spaces": { toolCall: { title: "ls", rawInput: { command: `ls${" ".repeat(20000)}; rm -rf ~` } }, shown: ["; rm -rf ~"] },
  "JSON in JSON": { toolCall: { title: "x", rawInput: { a: { b: [{ c: '{"d":"\\u202e"}' }] } } }, shown: ['\\"d\\"'] },
  "a path": { toolCall: { title: "x", locations: [{ path: "/a/\u202e/b\n/c" }] }, shown: ["/a/\\u202e/b\n/c"] },
  "a change": { toolCall: { title: "x", content: [{ type: "diff", path: "f", oldText: "a\nz", newText: "a\n}\n}\nz" }, { type: "terminal", terminalId: "t1" }] }, shown: ["f\n+ }\n+ }", "t1"] },
  "no more than a title": { toolCall: { title: "x" }, shown: ["x"] },
  "nothing": { toolCall: {}, shown: ["May the agent do this?"] },
  "choices that lie": { toolCall: { title: "x" }, options: [{ optionId: "n", kind: "reject_once", name: "Allow" }, { optionId: "?", name: "\u202e\u200b".repeat(1000) }], shown: ["x"] },
  "a megabyte": { toolCall: { title: "t".repeat(1 << 20), rawInput: { command: `${"x\n".repeat(1 << 16)}END` } }, shown: ["t".repeat(1 << 20), "END"] },
});
const cards = await page.evaluate(async (asked) => {
  const { Question } = await import("/question.js");
  const cards = asked.map(([name, { toolCall, options }]) => {
    options ??= [{ optionId: "y", kind: "allow_once", name: "Yes" }, { optionId: "n", kind: "reject_once", name: "No" }];
    const { element } = new Question({ method: "session/request_permission", params: { toolCall, options }, session: { title: "\u202e<b>", cwd: "/\u200b" }, may: true }, () => {});
    element.classList.add("hostile");
    document.getElementById("main").append(element);
    element.querySelector(".asked").dispatchEvent(new Event("scroll"));
    return { name, element, allowed: [...element.querySelectorAll(".allow")].map((e) => e.disabled) };
  });
  return cards.map(({ name, element, allowed }) => {
    const text = element.querySelector(".asked");
    return {
      name, allowed, text: text.textContent, all: element.textContent, long: text.scrollHeight > text.clientHeight + 2,
      tags: [...new Set([...element.querySelectorAll("*")].map((e) => e.tagName))],
      wide: document.documentElement.scrollWidth,
    };
  });
}, hostile);
for (const [i, { name, text, all, tags, allowed, wide }] of cards.entries()) {
  for (const part of hostile[i][1].shown) assert.ok(text.includes(part), `${name}: ${text.slice(0, 300)}`);
  assert.doesNotMatch(all, /[\u0000\u001b\u00ad\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/, name);
  assert.deepEqual(tags.filter((tag) => !["H2", "P", "PRE", "DIV", "BUTTON", "INS", "DEL", "SPAN"].includes(tag)), [], name);
  assert.deepEqual(allowed, [true], `${name}: can be allowed at once`);
  assert.ok(wide <= 320, `${name} is ${wide} pixels wide`);
}
const all = (choice) => page.waitForFunction((s) => [...document.querySelectorAll(s)].every((e) => !e.disabled), {}, `.hostile ${choice}`);
await all(".reject");
const dead = await page.$$eval(".hostile", (found) => found.map((e) => e.querySelector(".allow").disabled));
for (const [i, { name, long }] of cards.entries()) assert.equal(dead[i], long, `${name}: can be allowed before its end was seen`);
await page.$$eval(".hostile .asked", (found) => {
  for (const e of found) e.scrollTop = e.scrollHeight;
});
await all(".allow");
// A card that moves, or whose call changes, rests.
assert.equal(await page.evaluate(async () => {
  const { Question } = await import("/question.js");
  const params = { toolCall: { toolCallId: "c", title: "x" }, options: [{ optionId: "y", kind: "allow_once", name: "Yes" }] };
  const card = new Question({ method: "session/request_permission", params, may: true }, () => {});
  document.getElementById("main").append(card.element);
  const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
  const until = async (disabled) => {
    while (card.element.querySelector(".allow").disabled !== disabled) await sleep(5);
  };
  await until(false);
  card.draw({ rawInput: { command: "something else" } });
  await until(true);
  await until(false);
  document.querySelector(".hostile").remove();
  await until(true);
  const text = card.element.querySelector(".asked").textContent;
  card.end();
  for (const e of document.querySelectorAll(".hostile")) e.remove();
  return text;
}), "something else");
// Values that an agent asks for are entered in a form.
await page.evaluate(async () => {
  const { Question } = await import("/question.js");
  const params = { message: "Which one?", requestedSchema: { required: ["name"], properties: { name: { type: "string" }, size: { type: "integer" },
    colour: { type: "string", enum: ["red", "blue"] }, sure: { type: "boolean", default: true } } } };
  const card = new Question({ method: "elicitation/create", params, may: true }, (result) => { window.said = result; });
  card.element.id = "form";
  document.getElementById("main").append(card.element);
});
await page.type("#form input[type=text]", "x");
await page.select("#form select", "blue");
await look("form");
await allow("#form");
assert.deepEqual(await page.evaluate(() => window.said), { action: "accept", content: { name: "x", colour: "blue", sure: true } });

// In the session what others do appears by itself.
await page.click(".results a");
await appears(".prompt", "a.md");
await happens("ask again");
await appears(".prompt", "b.md");
await appears(".question .asked", "b.md");
await look("session");
await happens("cancel");
await appears(".question", "elsewhere");
await vanishes(".question");

// A turn is stopped.
await happens("ask again");
await appears(".question .asked", "c.md");
await page.click(".stop");
await happens("stopped");

// How a turn ended is in the conversation after a reload, and the next prompt does not join the one before.
await happens("fail");
await happens("fail");
await page.reload();
await appears(".scroller .note", "The turn was cancelled.");
await appears(".scroller .failure", "no such luck");
await page.waitForFunction(() => document.querySelectorAll(".prompt").length === 6);

// A second tab shows the same, and the page comes back by itself when the server was started again.
const tab = await browser.newPage();
tab.setDefaultTimeout(patience);
await tab.goto(new URL("/", link).href);
await tab.waitForSelector(".results a");
await happens("restart");
await appears(".prompt", "c.md");
await page.waitForFunction(() => document.getElementById("lost").hidden && document.querySelectorAll(".prompt").length === 6);
await tab.waitForFunction(() => document.getElementById("lost").hidden);

// A link of another user does not take the place of this one unasked.
await tab.goto(another);
await tab.waitForFunction(() => document.body.textContent.includes("is paired with ana, as phone. Pair it with bob instead?"));
await tab.goto("about:blank");
await tab.goto(new URL("/", link).href);
await tab.waitForSelector(".results a");

// Another device is announced.
await happens("pair another");
await page.click(".name");
await appears(".devices", "New: tablet, may watch");
await page.click(".results a");
await appears(".prompt", "c.md");

// A server on another port of this host pairs the browser too, and signs out nobody. Any program on
// another port gets all its cookies, and no session with them.
await tab.goto(elsewhere);
await tab.waitForSelector("#leave:not([hidden])");
const sent = [];
const listener = createServer((request, response) => {
  sent.push(request.headers.cookie);
  response.end();
}).listen(0, "127.0.0.1");
await once(listener, "listening");
await tab.goto(`http://127.0.0.1:${listener.address().port}/`);
listener.close();
assert.equal(sent[0]?.match(/__Host-acp-agent-/g)?.length, 2, "a browser has a cookie of each server");
for (const { origin, href } of [link, elsewhere].map((l) => new URL("/", l))) {
  const { status } = await fetch(`${href}me`, { method: "POST", headers: { Cookie: sent[0], Origin: origin } });
  assert.equal(status, 401, "a cookie is enough for a session");
}
await tab.goto(new URL("/", link).href);
await tab.waitForSelector(".results a");

// A browser that lets the page store nothing is told so.
const closed = await browser.newPage();
await closed.evaluateOnNewDocument(() => Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("Access is denied", "SecurityError"); },
}));
await closed.goto(new URL("/", link).href);
await closed.waitForFunction(() => document.body.innerText.includes("lets it store data"));
await closed.close();

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
  return { socket, fetched };
}, link.replace(/#.*/, ""));
assert.deepEqual(got, { socket: "refused", fetched: "refused" });
assert.deepEqual(evil.frames().slice(1).map((frame) => frame.url()), ["chrome-error://chromewebdata/"]);
await evil.close();

// A device that is revoked while it is asked something is signed out, in all its tabs.
await happens("ask again");
await appears(".question .asked", "d.md");
await happens("revoke");
await appears("main", "not paired");
await tab.waitForFunction(() => document.body.textContent.includes("not paired"));
await browser.close();
process.stdin.destroy(); // otherwise the program waits for more
assert.deepEqual(problems, []);
