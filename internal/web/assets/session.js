// The session that is shown on the page of a server: a person follows it, writes prompts and stops turns.
import { h, hasMouse, say, visible } from "./dom.js";

const sleep = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

// ShownSession is a session that a conversation shows. view is what shows it, live what the server does for
// this device.
export class ShownSession {
  #live;
  #begun; // where the history ended when it was shown
  #working = h("p", { class: "working" });
  #composer;
  #pending; // the last prompt that was sent, until it is stored
  #looking = false;
  #again = false; // look once more

  constructor(view, live) {
    const { session, scroller, pages, signal } = view;
    Object.assign(this, { view, id: session.id });
    this.#live = live;
    this.#begun = pages.last?.page.to ?? 0;
    const stop = () => live.stop(this.id);
    this.#composer = { full: () => prompts(this.id, (prompt) => this.#send(prompt), stop), answer: () => stopButton(stop) }[live.role]?.() ?? nothing;
    this.say = this.#composer.say;
    scroller.after(h("footer", {}, h("div", { class: "questions" }, live.questions(this.id).map((q) => q.element)), this.#working, this.#composer.element));
    const clock = setInterval(() => this.draw(), 1000);
    signal.addEventListener("abort", () => clearInterval(clock));
    this.draw();
  }

  // draw shows what happens in the session.
  draw() {
    const live = this.#live, runs = live.runs(this.id), since = live.since(this.id);
    const time = since === null ? "" : ` ${Math.round((performance.now() - since) / 1000)} s`;
    this.#working.textContent = !runs ? "" : live.questions(this.id).length > 0 ? "Waits for your answer" : [`Working…${time}`, visible(live.doing(this.id))].filter(Boolean).join(" · ");
    this.#composer.draw(runs);
  }

  // look shows what is new soon, when it is stored. It does so once at a time.
  async look() {
    this.#again = true;
    if (this.#looking) return;
    this.#looking = true;
    const { pages, look, signal } = this.view;
    while (this.#again && !signal.aborted) {
      this.#again = false;
      await sleep(150);
      await look().catch(() => {}); // once the connection is back, it looks again
      this.filled();
      if (pages.last?.page.to > this.#pending?.after) this.#pending.element.remove();
    }
    this.#looking = false;
    this.filled();
  }

  // filled is called when a part of the session is shown, or a turn has ended: what can be done about it is
  // added, and what is complete and new is read out, in order.
  filled() {
    const { pages, scroller, last, signal } = this.view;
    if (signal.aborted) return; // another session is shown
    const live = this.#live, end = pages.last?.element.lastElementChild;
    for (const old of scroller.querySelectorAll(".again")) old.remove();
    if (live.role === "full" && end?.matches(".failure")) {
      end.append(h("button", { class: "again", click: async () => {
        const prompt = await last();
        if (prompt) this.#send(prompt);
      } }, "Send again"));
    }
    const mayGoOn = live.runs(this.id) || this.#looking || !live.online;
    const words = [];
    for (const item of pages.items) {
      const isOld = item.read === undefined && item.page.from < this.#begun, isWhole = item.filledTo === item.page.to;
      if (!isOld && !isWhole) pages.show(item); // what is said must not be out of sight
      if (!item.shown) continue;
      if (!isWhole) break; // its end comes first
      const whole = [...item.element.querySelectorAll(".answer > :not(h2), .failure > pre, .note")];
      item.read ??= isOld ? whole.length : 0;
      if (item === pages.last && mayGoOn) whole.pop();
      words.push(...whole.slice(item.read).map((e) => e.textContent));
      item.read = Math.max(item.read, whole.length);
    }
    if (words.length > 0) say(words.join(" "));
  }

  // #send sends a prompt once: if nobody knows whether it was received, its text stays, to be sent again by
  // hand.
  async #send(prompt) {
    const { scroller, pages, look } = this.view, live = this.#live;
    const element = h("article", { class: "prompt" }, h("h2", {}, "You"), h("p", {}, visible(prompt))), after = pages.last?.page.to ?? 0;
    scroller.querySelector(".empty")?.remove();
    scroller.append(element);
    this.#pending = { element, after };
    pages.showEnd();
    this.say("");
    live.turn(this.id, true);
    try {
      await live.call("session/prompt", { sessionId: this.id, prompt: [{ type: "text", text: prompt }] });
    } catch (error) {
      for (let i = 0; i < 4; i++) { // until its end is stored
        await look().catch(() => {});
        if (pages.last?.page.to > after && pages.last.element.lastElementChild?.matches(".failure")) return; // it says why
        await sleep(150);
      }
      this.say(error.code === undefined ? "The connection was lost. If the prompt is not in the conversation, send it again." : visible(error.message));
      this.#composer.keep(prompt);
    } finally {
      element.remove();
      live.turn(this.id, false);
    }
  }
}

// What is below a conversation: nothing, a button that stops the turn, or a form for prompts. draw says
// whether a turn runs, say what went wrong, and keep has a prompt that was not sent.
const nothing = { draw() {}, say() {}, keep() {} };

function stopButton(stop) {
  const button = h("button", { class: "stop accent", hidden: true, click: stop }, "Stop");
  return { ...nothing, element: h("div", { class: "composer" }, button), draw: (runs) => { button.hidden = !runs; } };
}

function prompts(id, send, stop) {
  const draft = `draft ${id}`;
  const text = h("textarea", { rows: "1", "aria-label": "Prompt", placeholder: "Write to the agent", "aria-keyshortcuts": "Control+Enter Meta+Enter" });
  const button = h("button", { class: "accent" }, "Send");
  const note = h("p", { class: "removed", role: "status" });
  let runs = false;
  const draw = (running = runs) => {
    runs = running;
    const stops = runs && text.value.trim() === "";
    button.className = stops ? "stop accent" : "accent";
    button.textContent = stops ? "Stop" : "Send";
  };
  const write = (words) => {
    text.value = words;
    if (words) localStorage.setItem(draft, words);
    else localStorage.removeItem(draft);
    draw();
  };
  text.value = localStorage.getItem(draft) ?? "";
  text.addEventListener("input", () => write(text.value));
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) element.requestSubmit();
  });
  const element = h("form", {
    class: "composer", submit: (event) => {
      event.preventDefault();
      const prompt = text.value.trim();
      if (button.disabled) return;
      if (prompt) {
        write("");
        send(prompt);
      } else if (runs) stop();
      text.focus();
    },
  }, h("div", { class: "entry" }, text, button), note);
  if (hasMouse) setTimeout(() => text.focus());
  return { element, draw, say: (words) => { note.textContent = words; }, keep: (prompt) => write(text.value || prompt) };
}
