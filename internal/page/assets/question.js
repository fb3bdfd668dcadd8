// A question of an agent, as a card.
import { h, say, visible } from "./dom.js";

// dead is for how long, in milliseconds, nothing can be chosen after a card appears or moves, so that
// a tap meant for something else does not answer.
const dead = 500;

// Question shows a question. choose is called with the id of the option that the user chose.
export class Question {
  element;
  #buttons = [];
  #live = 0;
  #seen;
  #text;

  constructor(params, session, choose) {
    const call = params.toolCall ?? {};
    this.#text = h("pre", { class: "asked", tabindex: "0", "aria-label": "What is asked" }, visible(describe(call)));
    const allows = (o) => o.kind?.startsWith("allow");
    const options = [...params.options ?? []].sort((a, b) => allows(b) - allows(a));
    this.#buttons = options.map((o) => {
      const button = h("button", { type: "button", class: allows(o) ? "allow" : "reject" }, visible(o.name ?? o.optionId));
      button.addEventListener("click", (event) => {
        if (!event.isTrusted || performance.now() < this.#live || button.disabled) return;
        this.done("Answered.");
        choose(o.optionId);
      });
      button.allows = allows(o);
      return button;
    });
    this.element = h("section", { class: "question", "aria-label": "Question of the agent" },
      h("h2", {}, visible(call.title ?? "May the agent do this?")),
      h("p", { class: "dim" }, visible(`${session.title || "Untitled"} · ${session.cwd ?? ""}`)),
      this.#text,
      this.#buttons.length > 0 ? h("div", { class: "choices" }, this.#buttons)
        : h("p", { class: "dim" }, "This device may only watch. Answer it where the session is open."));
    this.#text.addEventListener("scroll", () => this.#look());
    new ResizeObserver(() => this.#look()).observe(this.#text);
    this.rest();
    document.addEventListener("visibilitychange", this.rest);
    say("The agent asks a question.");
  }

  // rest makes the card ignore taps for a moment.
  rest = () => {
    this.#live = performance.now() + dead;
    this.#show();
    setTimeout(() => this.#show(), dead);
  };

  // #look notes whether the end of the text was seen, without which nothing can be allowed.
  #look() {
    const { scrollTop, clientHeight, scrollHeight } = this.#text;
    this.#seen ||= clientHeight > 0 && scrollTop + clientHeight >= scrollHeight - 2;
    this.#show();
  }

  #show() {
    for (const button of this.#buttons) {
      button.disabled = this.over || !this.online || performance.now() < this.#live || button.allows && !this.#seen;
    }
  }

  online = true;
  over = false;

  // connected enables or disables the choices.
  connected(online) {
    this.online = online;
    this.rest();
  }

  // done ends the card, and says why.
  done(why) {
    this.over = true;
    document.removeEventListener("visibilitychange", this.rest);
    this.element.replaceChildren(h("p", { class: "dim", role: "status" }, why));
    setTimeout(() => this.element.remove(), 4000);
  }
}

// describe returns all of what is asked about, as text.
function describe(call) {
  const parts = [];
  const input = call.rawInput;
  if (typeof input?.command === "string") parts.push(input.command);
  else if (Array.isArray(input?.command)) parts.push(input.command.join(" "));
  for (const { path } of call.locations ?? []) parts.push(path);
  for (const content of call.content ?? []) {
    if (content.type === "diff") parts.push(content.path, ...changed(content.oldText ?? "", content.newText ?? ""));
    else if (content.content?.text) parts.push(content.content.text);
  }
  if (input !== undefined) parts.push(JSON.stringify(input, null, 1));
  return [...new Set(parts)].join("\n") || call.title || "";
}

// changed returns the lines that a change removes and adds.
function changed(before, after) {
  const old = before.split("\n"), now = after.split("\n");
  let start = 0, end = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  return [...old.slice(start, old.length - end).map((l) => `- ${l}`), ...now.slice(start, now.length - end).map((l) => `+ ${l}`)];
}
