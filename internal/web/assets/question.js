// A question of an agent, as a card.
import { h, say, visible } from "./dom.js";

// dead is for how long, in milliseconds, nothing can be chosen after a card appears, changes or moves,
// so that a tap meant for something else does not answer.
const dead = 500;

// forms are the requests that are questions, with what is shown of each: a title, the parts of
// the text, of which a list is lines of a change, fields, and the choices. A choice that allows something needs the text to be seen.
const forms = { "session/request_permission": permission, "elicitation/create": elicitation };

// Question shows a question. answer is called with the result of the request.
export class Question {
  element = h("section", { class: "question", "aria-label": "Question of the agent" });
  over = false;
  #buttons = [];
  #live = 0;
  #seen;
  #text;
  #why;
  #place;
  #form;

  static asks(method) {
    return method in forms;
  }

  constructor({ method, params, call, session, may }, answer) {
    this.draw = (known) => {
      const form = forms[method](params, known);
      if (JSON.stringify(form) === this.#form) return;
      this.#form = JSON.stringify(form);
      this.#fill(form, session, may, answer);
    };
    this.draw(call);
    document.addEventListener("visibilitychange", this.rest);
    addEventListener("focus", this.rest); // another window may have covered this one
    this.watching = setInterval(() => this.#still(), 100);
    say("The agent asks a question.");
  }

  #fill({ title, parts, fields = [], choices, note }, session, may, answer) {
    this.#seen = false;
    this.#text = h("pre", { class: "asked", tabindex: "0", "aria-label": "What is asked" }, parts.flatMap((part, i) => typeof part === "string" ? [i > 0 && "\n", visible(part)]
      : ["\n", ...["-", "+"].map((sign) => of(part, sign)).filter((own) => own.length > 0).map((own) => h(own[0][0] === "+" ? "ins" : "del", {}, visible(own.join(""))))]));
    this.#why = h("p", { class: "why" });
    const changes = parts.filter(Array.isArray).flat();
    const inputs = fields.map(input);
    this.#buttons = !may ? [] : choices.map(({ name, allows, result }) => {
      const button = h("button", { type: "button", class: allows ? "allow" : "reject" }, clip(name, 80));
      button.addEventListener("click", (event) => {
        if (!event.isTrusted || performance.now() < this.#live || button.disabled) return;
        if (allows && inputs.some(({ control }) => !control.reportValidity())) return;
        const said = typeof result === "function" ? result(inputs) : result;
        this.done("Answered.");
        answer(said);
      });
      button.allows = allows;
      return button;
    });
    this.element.replaceChildren(h("h2", {}, clip(title, 200)),
      h("p", { class: "dim" }, h("span", { class: "whose" }, clip([session?.title || "Untitled", session?.cwd].filter(Boolean).join(" · "), 300)), " ",
        changes.length > 0 && [h("span", { class: "added" }, ` +${of(changes, "+").length}`), h("span", { class: "removed" }, ` −${of(changes, "-").length}`)]),
      this.#text, ...inputs.map(({ element }) => element),
      note ? h("p", { class: "dim" }, note) : "",
      this.#why, this.#buttons.length > 0 ? h("div", { class: "choices" }, this.#buttons)
        : h("p", { class: "dim" }, "It cannot be answered on this device. Answer it where the session is open."));
    this.#text.addEventListener("scroll", () => this.#look());
    new ResizeObserver(() => this.#look()).observe(this.#text);
    this.rest();
  }

  // rest makes the card ignore taps for a moment.
  rest = () => {
    this.#live = performance.now() + dead;
    this.#show();
    setTimeout(() => this.#show(), dead + 20);
  };

  // #still makes the card rest when the choices have moved.
  #still() {
    const { top, left } = (this.#buttons[0] ?? this.element).getBoundingClientRect();
    const place = `${top} ${left}`;
    if (place !== this.#place) this.rest();
    this.#place = place;
  }

  // #look notes whether the end of the text was seen, without which nothing can be allowed.
  #look() {
    const { scrollTop, clientHeight, scrollHeight } = this.#text;
    this.#seen ||= clientHeight > 0 && scrollTop + clientHeight >= scrollHeight - 2;
    this.#show();
  }

  #show() {
    const { scrollTop, clientHeight, scrollHeight } = this.#text;
    const more = Math.ceil((scrollHeight - scrollTop - clientHeight) / parseFloat(getComputedStyle(this.#text).lineHeight));
    this.#why.textContent = this.#seen || !(more > 0) || this.#buttons.length === 0 ? "" : `Scroll to the end: ${more} more line${more === 1 ? "" : "s"}`;
    for (const button of this.#buttons) {
      button.disabled = this.over || performance.now() < this.#live || button.allows && !this.#seen;
    }
  }

  // end takes the card away.
  end() {
    this.over = true;
    clearInterval(this.watching);
    document.removeEventListener("visibilitychange", this.rest);
    removeEventListener("focus", this.rest);
    this.element.remove();
  }

  // done says why the card ends, and takes it away after a while.
  done(why) {
    this.over = true;
    if (this.element.contains(document.activeElement)) (document.querySelector(".composer textarea") ?? document.getElementById("main")).focus({ preventScroll: true });
    this.element.replaceChildren(h("p", { class: "dim", role: "status" }, why));
    this.#buttons = [];
    setTimeout(() => this.end(), 4000);
  }
}

// of returns the lines of a change that it removes, or adds.
const of = (lines, sign) => lines.filter((line) => line[0] === sign);

// clip returns the beginning of a text, as it is shown.
function clip(text, most) {
  return visible(text.length > most ? `${text.slice(0, most)}…` : text);
}

// permission asks whether a tool may be called. known is what else the agent said about the call.
function permission(params, known) {
  const call = { ...known, ...params.toolCall };
  const command = shell(call.rawInput?.command);
  const title = call.title && call.title.replace(/^`(.*)`$/s, "$1") !== command ? call.title : command ? "May the agent run this?" : "May the agent do this?";
  const parts = describe(call, command);
  const rejects = (o) => Boolean(o.kind?.startsWith("reject"));
  const options = [...params.options ?? []].sort((a, b) => rejects(a) - rejects(b));
  return {
    title, parts: title.length > 200 || parts.length === 0 ? [title, ...parts] : parts,
    note: parts.length > 0 ? undefined : "The agent says no more about it here.",
    choices: options.map((o) => ({
      name: o.name || o.optionId, allows: !rejects(o),
      result: { outcome: { outcome: "selected", optionId: o.optionId } },
    })),
  };
}

// elicitation asks the user for values.
function elicitation(params) {
  const { properties = {}, required = [] } = params.requestedSchema ?? {};
  const fields = Object.entries(properties).map(([name, schema]) => ({ name, schema, required: required.includes(name) }));
  const possible = fields.every(({ schema }) => ["string", "number", "integer", "boolean"].includes(schema.type));
  const send = {
    name: "Send", allows: true,
    result: (inputs) => ({ action: "accept", content: Object.fromEntries(inputs.map((i) => [i.name, i.value()]).filter(([, value]) => value !== undefined)) }),
  };
  return {
    title: "The agent asks", parts: [params.message ?? ""], fields: possible ? fields : [],
    note: possible ? undefined : "This page cannot show all that is asked. Answer it where the session is open.",
    choices: [possible && send, { name: "Decline", allows: false, result: { action: "decline" } }].filter(Boolean),
  };
}

// input returns the control of a field.
function input({ name, schema, required }) {
  const choices = schema.enum?.map((value) => ({ const: value })) ?? schema.oneOf;
  const numeric = schema.type === "number" || schema.type === "integer";
  const control = choices ? h("select", { required }, !required && h("option", { value: "" }, "–"),
    choices.map((c) => h("option", { value: c.const }, clip(String(c.title ?? c.const), 80))))
    : h("input", schema.type === "boolean" ? { type: "checkbox" } : { type: numeric ? "number" : "text", step: schema.type === "number" ? "any" : undefined, required, autocomplete: "off" });
  if (schema.type === "boolean") control.checked = schema.default === true;
  else if (schema.default !== undefined) control.value = schema.default;
  const value = () => {
    if (schema.type === "boolean") return control.checked;
    if (control.value === "") return undefined;
    return numeric ? Number(control.value) : control.value;
  };
  return {
    name, control, value,
    element: h("label", { class: "field" }, h("span", {}, clip(schema.title || name, 200)),
      control, h("span", { class: "dim" }, clip(schema.description ?? "", 300))),
  };
}

// shell returns a command as one line. Words that a shell would read otherwise are strings of JSON.
function shell(command) {
  return Array.isArray(command) ? command.map((word) => /^[\w./:=@%+,-]+$/.test(word) ? word : JSON.stringify(word)).join(" ") : command;
}

// describe returns all of what is asked about, each thing once.
function describe({ rawInput, locations, content }, command) {
  const parts = new Set(typeof command === "string" ? [command] : []);
  const whole = new Set([rawInput?.command]); // what need not be shown again
  for (const { path } of locations ?? []) parts.add(path);
  for (const c of content ?? []) {
    if (c.type === "diff") {
      parts.add(c.path).add(changed(c.oldText ?? "", c.newText ?? ""));
      if (!c.oldText) whole.add(c.newText); // of any other text lines are left out
    } else parts.add(c.content?.text ?? JSON.stringify(c));
  }
  const more = JSON.stringify(rawInput, (name, value) => name && value && (whole.has(value) || parts.has(value)) ? undefined : value, 1);
  if (rawInput && more !== "{}") parts.add(more);
  return [...parts];
}

// changed returns the lines that a change removes and adds.
function changed(before, after) {
  const old = before.split("\n"), now = after.split("\n");
  let start = 0, end = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  return [...old.slice(start, old.length - end).map((l) => `- ${l}\n`), ...now.slice(start, now.length - end).map((l) => `+ ${l}\n`)];
}
