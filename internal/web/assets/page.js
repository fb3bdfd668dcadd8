// The page of a server: pairing, and what people do in sessions besides reading them.
import { Connection } from "./acp.js";
import { showConversation } from "./conversation.js";
import { asking, baseName, h, say, visible } from "./dom.js";
import { Question } from "./question.js";
import { ShownSession } from "./session.js";
import { showSessions } from "./sessions.js";
import { showViews } from "./views.js";

const main = document.getElementById("main");
const code = new URLSearchParams(location.hash.slice(1)).get("pair");
if (code) history.replaceState(null, "", location.pathname); // before anything else
// What the browser kept of the page may be of another device, or of one that was signed out.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
// A link that is opened where the page is shown already does not load it.
addEventListener("hashchange", () => { if (location.hash.startsWith("#pair=")) location.reload(); });

// proof says that it is this page that asks: the browser shows it to no other origin, while it sends
// the cookie to every port of the host.
const proof = () => localStorage.proof ??= crypto.randomUUID();

const post = (path, body) => fetch(path, { method: "POST", headers: { "Content-Type": "application/json", "Acp-Agent-Proof": proof() }, body: JSON.stringify(body ?? {}) });

// show replaces what the page shows.
function show(name, ...content) {
  main.className = name;
  main.replaceChildren(...content.filter(Boolean));
}

// notPaired says how to pair this device, and why an attempt failed.
function notPaired(why) {
  show("empty", why && h("p", { role: "alert" }, why),
    h("p", {}, "This browser is not paired. On the machine of the server, run"),
    h("pre", {}, "acp-agent tokens pair NAME"), h("p", {}, "and open the link that it prints here."));
}

async function start() {
  const answer = await post("me");
  if (code) {
    // A link of somebody else must not put their sessions in the place of one's own.
    const { user, label } = answer.ok ? await answer.json() : {};
    if (user) {
      return show("empty", h("p", {}, visible(`This browser is paired with ${user}${label ? `, as ${label}` : ""}. Pair it with ${code.split(".").slice(0, -1).join(".")} instead?`)),
        h("button", { click: pair }, "Pair again"), " ", h("button", { click: () => location.reload() }, "Cancel"));
    }
    return pair();
  }
  if (answer.status === 401) return notPaired();
  if (!answer.ok) return show("empty", h("p", { role: "alert" }, await answer.text()));
  Object.assign(asking, { who: "The server", strange: "This browser is not paired any more.", how: () => ({ method: "POST", headers: { "Acp-Agent-Proof": proof() } }) });
  await showViews({ "": showSessions, session: showConversation }, new Live(await answer.json()));
}

async function pair() {
  const answer = await post("pair", { code });
  if (!answer.ok) return notPaired(await answer.text());
  location.reload();
}

// Live is what the server does for this device.
class Live {
  #me;
  #connection;
  #sessions = new Map(); // what the server lists, by id
  #joined = new Set();
  #turns = new Map(); // when the turns began that run, by session; null if nobody knows
  #calls = new Map(); // what is known of tool calls that have not ended, by session and id
  #known; // the ids of the other devices when the page was opened, or was shown last
  #lookAgain = 0; // when the server is told again that somebody looks
  #questions = new Map(); // the cards, by the id of the request
  #shown; // the session that is shown
  #list; // loads the list that is shown

  constructor(me) {
    this.#me = me;
    this.#known = JSON.parse(localStorage.getItem("devices") ?? "null") ?? me.devices.map((d) => d.id);
    document.getElementById("who").textContent = [me.user, { watch: "may watch", answer: "may answer" }[me.role]].filter(Boolean).join(" · ");
    const leave = document.getElementById("leave");
    leave.hidden = false;
    leave.addEventListener("click", async () => {
      await post("leave");
      localStorage.clear();
      location.reload();
    });
    this.#connection = new Connection(me.user, proof, {
      connected: () => this.#online(), lost: () => this.#lost(),
      asked: (...question) => this.#ask(...question), told: (method, params) => this.#tell(method, params),
    });
    for (const event of ["pointerdown", "keydown", "wheel", "touchmove"]) addEventListener(event, () => this.#looked(), { passive: true });
  }

  // #looked tells the server, once a minute, which sessions the user looks at. Others are told of
  // by its notifications.
  #looked() {
    if (!this.#connection.open || performance.now() < this.#lookAgain) return;
    this.#lookAgain = performance.now() + 60000;
    const seen = this.#shown ? [this.#shown.id] : new Set([...this.#questions.values()].map((q) => q.session).filter(Boolean));
    for (const sessionId of seen) this.#connection.call("session/status", { sessionId }).catch(() => {});
  }

  #online() {
    document.getElementById("lost").hidden = true;
    this.#enable();
    if (this.#shown) this.#join(this.#shown);
    this.#list?.();
  }

  async #lost() {
    document.getElementById("lost").hidden = false;
    // Questions belong to a connection. They are asked again on the next one.
    for (const card of this.#questions.values()) card.end();
    this.#questions.clear();
    this.#joined.clear();
    this.#turns.clear();
    this.#enable();
    this.#draw();
    await this.#renew();
  }

  #enable() {
    for (const control of main.querySelectorAll(".composer button, .begin button")) control.disabled = !this.#connection.open;
  }

  // #renew asks again who the user is.
  async #renew() {
    const me = await post("me").catch(() => undefined);
    if (me?.status === 401) location.reload();
    else if (me?.ok) this.#me = await me.json();
  }

  // above is what is shown above the list: questions, and the form for a new session in folders.
  above() {
    const questions = h("div", { class: "questions" }, [...this.#questions.values()].map((q) => q.element));
    if (this.#me.role !== "full") return [questions];
    const choice = h("select", { "aria-label": "Folders" });
    const other = h("input", { "aria-label": "Folder", placeholder: "/path/of/a/folder", autocomplete: "off", spellcheck: "false" });
    choice.addEventListener("change", () => { other.hidden = choice.value !== ""; });
    const submit = async (event) => {
      event.preventDefault();
      const [cwd, ...additionalDirectories] = choice.value ? JSON.parse(choice.value) : [other.value.trim()];
      try {
        const { sessionId } = await this.#connection.call("session/new", { cwd, additionalDirectories, mcpServers: [] });
        this.#joined.add(sessionId);
        location.hash = `#/session/${encodeURIComponent(sessionId)}`;
      } catch (error) {
        note.textContent = visible(error.message);
      }
    };
    const note = h("p", { class: "removed", role: "alert" });
    const form = h("form", { class: "begin", submit }, choice, other, h("button", { class: "accent" }, "New session"), note);
    form.offer = () => {
      const chosen = choice.value;
      const known = new Set([...[...this.#sessions.values()].map((s) => JSON.stringify([s.cwd, ...s.additionalDirectories ?? []])), ...this.#me.within.map((dir) => JSON.stringify([dir]))]);
      choice.replaceChildren(...[...known].map((folders) => h("option", { value: folders }, visible(JSON.parse(folders).map(baseName).join(", ")))), h("option", { value: "" }, "Another folder…"));
      if (known.has(chosen)) choice.value = chosen;
      other.hidden = choice.value !== "";
    };
    form.offer();
    return [questions, form];
  }

  // below is what is shown below the list.
  below() {
    return [h("section", { class: "devices" })];
  }

  // watch keeps a list up to date, which load shows again.
  watch(signal, load) {
    this.#list = async (again = true) => {
      if (again) await load();
      await Promise.all([this.#renew(), this.#find(signal)]).catch(() => {});
      if (!signal.aborted) this.#devices();
      main.querySelector(".begin")?.offer();
      this.#draw();
    };
    this.#list(false);
    signal.addEventListener("abort", () => { this.#list = undefined; });
    for (const q of this.#questions.values()) q.rest();
    this.#enable();
  }

  // #find asks which sessions are open, and joins them, to be asked their questions.
  async #find(signal) {
    let cursor;
    do {
      const part = await this.#connection.call("session/list", { cursor });
      cursor = part.nextCursor;
      for (const s of part.sessions) this.#sessions.set(s.sessionId, s);
      const live = part.sessions.filter((s) => s._meta?.["acp-agent"]?.open && !this.#joined.has(s.sessionId));
      await Promise.allSettled(live.map((s) => this.#resume(s)));
    } while (cursor && !signal.aborted);
  }

  async #resume({ sessionId, cwd, additionalDirectories = [] }) {
    this.#joined.add(sessionId);
    try {
      const joined = await this.#connection.call("session/resume", { sessionId, cwd, additionalDirectories, mcpServers: [] });
      if (joined?._meta?.["acp-agent"]?.turn?.running) this.turn(sessionId, true, null); // nobody says since when
    } catch (error) {
      this.#joined.delete(sessionId);
      throw error;
    }
  }

  // state says in a word what happens in a session.
  state(id) {
    if (this.questions(id).length > 0) return "asks a question";
    if (this.runs(id)) return "● working";
    return this.#sessions.get(id)?._meta?.["acp-agent"]?.open ? "open" : "";
  }

  // #draw shows what has changed.
  #draw() {
    for (const e of main.querySelectorAll("[data-session]")) e.textContent = this.state(e.dataset.session);
    this.#shown?.draw();
  }

  // #devices shows the user's other devices, and says which one is new.
  #devices() {
    const { devices, user } = this.#me;
    localStorage.setItem("devices", JSON.stringify(devices.map((d) => d.id)));
    main.querySelector(".devices")?.replaceChildren(...devices.length === 0 ? [] : [h("h2", {}, "Other paired devices"), h("ul", {}, devices.map((d) => {
      const isNew = !this.#known.includes(d.id);
      return h("li", {}, isNew && h("strong", {}, "New: "), visible(`${d.label || "no label"}, may ${d.role}, since ${new Date(d.created).toLocaleString()}. `),
        isNew && h("span", { role: "alert" }, "Not yours? End it on the server: ", h("code", {}, `acp-agent tokens revoke ${user} ${d.id}`)));
    }))]);
  }

  // What a session that is shown needs to know: what the device may do, whether the server can be reached,
  // which questions the session asks, whether a turn runs in it, since when, and what that does.
  get role() { return this.#me.role; }
  get online() { return this.#connection.open; }
  questions(id) { return [...this.#questions.values()].filter((q) => q.session === id); }
  runs(id) { return this.#turns.has(id); }
  since(id) { return this.#turns.get(id); }
  doing(id) { return [...this.#calls].filter(([key]) => key.startsWith(`${id} `)).pop()?.[1].title ?? ""; }
  call(method, params) { return this.#connection.call(method, params); }

  // open takes part in a session that is shown. view has what shows it.
  open(view) {
    const shown = this.#shown = new ShownSession(view, this);
    view.signal.addEventListener("abort", () => { if (this.#shown === shown) this.#shown = undefined; });
    for (const q of this.#questions.values()) q.rest();
    this.#enable();
    if (this.online) this.#join(shown);
  }

  // filled is called when a part of a session is shown.
  filled(id) {
    if (this.#shown?.id === id) this.#shown.filled();
  }

  // #join follows a session.
  async #join(shown) {
    const { folders, title } = shown.view.session;
    const s = this.#sessions.get(shown.id) ?? { sessionId: shown.id, title, cwd: folders[0], additionalDirectories: folders.slice(1) };
    this.#sessions.set(shown.id, s);
    try {
      if (!this.#joined.has(shown.id)) await this.#resume(s);
      shown.say("");
    } catch (error) {
      if (error.code !== undefined) shown.say(visible(error.message));
    }
    shown.look();
    this.#draw();
  }

  // stop stops the turn of a session.
  stop(id) {
    this.#connection.notify("session/cancel", { sessionId: id });
    for (const q of this.questions(id)) q.cancel();
    say("Stopped.");
  }

  // turn notes whether a turn runs.
  turn(id, runs, since = performance.now()) {
    if (!runs) {
      this.#turns.delete(id);
      for (const key of this.#calls.keys()) if (key.startsWith(`${id} `)) this.#calls.delete(key);
    } else if (!this.#turns.has(id)) this.#turns.set(id, since);
    if (this.#shown?.id === id) this.#shown.look();
    this.#draw();
  }

  #ask(id, method, params) {
    if (!Question.asks(method)) return false;
    const key = `${params.sessionId} ${params.toolCall?.toolCallId}`;
    const asked = { method, params, call: this.#calls.get(key), session: this.#sessions.get(params.sessionId), may: this.#me.role !== "watch" };
    const card = new Question(asked, (result) => {
      this.#questions.delete(id);
      this.#draw();
      if (!this.#connection.answer(id, result)) say("The connection was lost: the answer was not sent.");
    });
    card.key = key;
    card.session = params.sessionId;
    card.cancel = () => {
      this.#questions.delete(id);
      card.done("Stopped.");
      this.#connection.answer(id, method === "elicitation/create" ? { action: "cancel" } : { outcome: { outcome: "cancelled" } });
    };
    this.#questions.set(id, card);
    if (!this.#shown || this.#shown.id === params.sessionId) main.querySelector(".questions")?.append(card.element);
    this.#draw();
    return true;
  }

  // #note keeps what the agent says about a tool call for the question about it.
  #note(session, update) {
    const key = `${session} ${update.toolCallId}`;
    const call = { ...this.#calls.get(key), ...update };
    if (call.status === "completed" || call.status === "failed") this.#calls.delete(key);
    else this.#calls.set(key, call);
    for (const card of this.#questions.values()) {
      if (card.key === key) card.draw(call);
    }
  }

  #tell(method, params) {
    if (method === "$/cancel_request") {
      this.#questions.get(params.requestId)?.done("Answered elsewhere, or no longer asked.");
      this.#questions.delete(params.requestId);
      this.#draw();
      return;
    }
    if (method !== "session/update") return;
    const { update, sessionId } = params, shown = this.#shown;
    if (update.toolCallId) this.#note(sessionId, update);
    if (shown && (sessionId === shown.id || !this.#sessions.has(sessionId))) shown.look();
    if (update.sessionUpdate !== "session_info_update") return;
    const s = this.#sessions.get(sessionId);
    if (s && update.title) s.title = update.title;
    if (sessionId === shown?.id) shown.view.changed().catch(() => {});
    const turn = update._meta?.["acp-agent"]?.turn;
    if (!turn) return;
    this.turn(sessionId, turn.running);
    if (sessionId === shown?.id) say(turn.running ? "A turn began." : "The turn ended.");
  }
}

start().catch((error) => show("empty",
  h("p", { role: "alert" }, `This page cannot start: ${error.message}.`),
  h("p", {}, "It needs TLS or a loopback address, and a browser that lets it store data and cookies.")));
