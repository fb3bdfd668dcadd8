// The page: pairing, the list of sessions, and one session.
import { Connection } from "./acp.js";
import { baseName, h, say, visible } from "./dom.js";
import { Conversation } from "./conversation.js";
import { Question } from "./question.js";

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
  new App(await answer.json());
}

async function pair() {
  const answer = await post("pair", { code });
  if (!answer.ok) return notPaired(await answer.text());
  location.reload();
}

class App {
  #me;
  #connection;
  #sessions = new Map(); // what is known, by id
  #joined = new Set();
  #calls = new Map(); // what is known of tool calls that have not ended, by session and id
  #known; // the ids of the other devices when the page was opened, or was shown last
  #lookAgain = 0; // when the server is told again that somebody looks
  #questions = new Map(); // the cards, by the id of the request
  #shown; // the session that is shown
  #conversation;
  #held = []; // what the list of sessions shows first
  #draft = "";

  constructor(me) {
    this.#me = me;
    this.#known = JSON.parse(localStorage.getItem("devices") ?? "null") ?? me.devices.map((d) => d.id);
    document.getElementById("who").textContent = `${me.user} · ${{ watch: "may watch", answer: "may answer", full: "" }[me.role] ?? ""}`;
    const leave = document.getElementById("leave");
    leave.hidden = false;
    leave.addEventListener("click", async () => {
      await post("leave");
      location.reload();
    });
    this.#connection = new Connection(proof, {
      connected: () => this.#online(true), lost: () => this.#online(false),
      asked: (...question) => this.#ask(...question), told: (method, params) => this.#tell(method, params),
    });
    addEventListener("hashchange", () => this.#route());
    for (const event of ["pointerdown", "keydown", "wheel", "touchmove"]) addEventListener(event, () => this.#looked(), { passive: true });
  }

  // #looked tells the server, once a minute, which sessions the user looks at. Others are told of
  // by its notifications.
  #looked() {
    if (!this.#connection.open || performance.now() < this.#lookAgain) return;
    this.#lookAgain = performance.now() + 60000;
    const seen = this.#shown ? [this.#shown] : new Set([...this.#questions.values()].map((q) => q.session).filter(Boolean));
    for (const sessionId of seen) this.#connection.call("session/status", { sessionId }).catch(() => {});
  }

  // #devices shows the user's other devices, and says which one is new.
  #devices() {
    const { devices } = this.#me;
    localStorage.setItem("devices", JSON.stringify(devices.map((d) => d.id)));
    if (devices.length === 0) return undefined;
    return h("section", { class: "devices" }, h("h2", {}, "Other paired devices"), h("ul", {}, devices.map((d) => {
      const isNew = !this.#known.includes(d.id);
      return h("li", {}, isNew && h("strong", {}, "New: "), visible(`${d.label || "no label"}, may ${d.role}, since ${new Date(d.created).toLocaleString()}. `),
        isNew && h("span", { role: "alert" }, "Not yours? End it on the server: ", h("code", {}, `acp-agent tokens revoke ${this.#me.user} ${d.id}`)));
    })));
  }

  async #online(online) {
    document.getElementById("lost").hidden = online;
    if (online) {
      await this.#route();
      return;
    }
    // Questions belong to a connection. They are asked again on the next one.
    for (const card of this.#questions.values()) card.end();
    this.#questions.clear();
    this.#joined.clear();
    for (const control of main.querySelectorAll("button, textarea")) control.disabled = true;
    await this.#renew();
  }

  // #renew asks again who the user is.
  async #renew() {
    const me = await post("me").catch(() => undefined);
    if (me?.status === 401) location.reload();
    else if (me?.ok) this.#me = await me.json();
  }

  async #route() {
    if (!this.#connection.open) return;
    const id = location.hash.startsWith("#/s/") ? decodeURIComponent(location.hash.slice(4)) : undefined;
    try {
      await Promise.all([this.#list(), this.#renew()]);
      if (id) await this.#open(id);
      else this.#showList();
    } catch (error) {
      if (this.#connection.open) show("empty", h("p", { role: "alert" }, visible(error.message)), h("a", { href: "#/" }, "All sessions"));
    }
  }

  async #list() {
    const { sessions } = await this.#connection.call("session/list", {});
    this.#sessions = new Map(sessions.map((s) => [s.sessionId, s]));
    // Join the sessions that are open, to be asked their questions.
    const live = sessions.filter((s) => s._meta?.["acp-agent"]?.open && !this.#joined.has(s.sessionId)).slice(0, 20);
    await Promise.allSettled(live.map((s) => this.#join("session/resume", s)));
  }

  async #join(method, s) {
    this.#joined.add(s.sessionId);
    try {
      return await this.#connection.call(method, {
        sessionId: s.sessionId, cwd: s.cwd, additionalDirectories: s.additionalDirectories ?? [], mcpServers: [],
      });
    } catch (error) {
      this.#joined.delete(s.sessionId);
      throw error;
    }
  }

  #showList() {
    this.#shown = this.#conversation = undefined;
    document.title = "acp-agent";
    const waiting = new Set([...this.#questions.values()].map((q) => q.session));
    const order = (s) => waiting.has(s.sessionId) ? 0 : s._meta?.["acp-agent"]?.open ? 1 : 2;
    const sessions = [...this.#sessions.values()].sort((a, b) => order(a) - order(b));
    show("sessions", h("h1", {}, "Sessions"), h("div", { class: "questions" }, [...this.#questions.values()].map((q) => q.element)),
      this.#me.role === "full" && this.#beginning(),
      sessions.length === 0 ? h("p", { class: "empty" }, "There are no sessions yet.")
        : h("div", { class: "results" }, h("ul", {}, sessions.map((s) => h("li", {}, h("a", { href: `#/s/${encodeURIComponent(s.sessionId)}` },
          h("span", { class: "title" }, visible(s.title || "Untitled")),
          h("time", { datetime: s.updatedAt }, s.updatedAt ? new Date(s.updatedAt).toLocaleString() : ""),
          h("span", { class: "about" }, h("span", {}, waiting.has(s.sessionId) ? "asks a question" : order(s) === 1 ? "open" : ""),
            [s.cwd, ...s.additionalDirectories ?? []].map((dir) => h("code", { title: visible(dir) }, visible(baseName(dir) || dir))))))))), this.#devices());
    for (const q of this.#questions.values()) q.rest();
  }

  // #beginning is the form for a new session in the folders of one that exists.
  #beginning() {
    const folders = [...new Map([...this.#sessions.values()].map((s) => [JSON.stringify([s.cwd, s.additionalDirectories ?? []]), s])).values()];
    if (folders.length === 0) return undefined;
    const choice = h("select", { "aria-label": "Folders" }, folders.map((s, i) => h("option", { value: i }, visible([s.cwd, ...s.additionalDirectories ?? []].map(baseName).join(", ")))));
    return h("form", {
      class: "begin", submit: async (event) => {
        event.preventDefault();
        const s = folders[choice.value];
        const made = await this.#connection.call("session/new", { cwd: s.cwd, additionalDirectories: s.additionalDirectories ?? [], mcpServers: [] }).catch((error) => say(error.message));
        if (made) {
          this.#joined.add(made.sessionId);
          location.hash = `#/s/${encodeURIComponent(made.sessionId)}`;
        }
      },
    }, choice, h("button", {}, "New session"));
  }

  async #open(id) {
    const s = this.#sessions.get(id);
    if (!s) throw new Error("This session does not exist, or is not yours.");
    this.#shown = id;
    this.#conversation = new Conversation();
    const stop = h("button", { type: "button", class: "stop", click: () => {
      this.#connection.notify("session/cancel", { sessionId: id });
      for (const q of this.#questions.values()) {
        if (q.session === id) q.cancel();
      }
      say("Stopped.");
    } }, "Stop");
    this.turn = h("span", { class: "live" });
    document.title = `${visible(s.title || "Untitled")} · acp-agent`;
    show("session", h("div", { class: "heading" }, h("div", {}, h("h1", {}, visible(s.title || "Untitled")),
      h("p", { class: "about" }, [s.cwd, ...s.additionalDirectories ?? []].map((dir) => h("code", { title: visible(dir) }, visible(baseName(dir) || dir), " ")), this.turn)),
      this.#me.role !== "watch" && stop),
      this.#conversation.element,
      h("div", { class: "questions" }, this.#cards(id)),
      this.#me.role === "full" && this.#composer(id));
    const joined = await this.#join("session/load", s);
    if (joined?._meta?.["acp-agent"]?.turn?.running) this.turn.textContent = "● running";
    this.#conversation.end();
  }

  #cards(id) {
    return [...this.#questions.values()].filter((q) => q.session === id).map((q) => q.element);
  }

  // #composer is the form for prompts. A prompt is sent once: if nobody knows whether it was
  // received, its text stays, to be sent again by hand.
  #composer(id) {
    const text = h("textarea", { rows: "2", "aria-label": "Prompt", placeholder: "Prompt" });
    text.value = this.#draft;
    text.addEventListener("input", () => { this.#draft = text.value; });
    const note = h("p", { class: "dim", role: "status" });
    return h("form", {
      class: "composer", submit: async (event) => {
        event.preventDefault();
        const prompt = text.value.trim();
        if (!prompt) return;
        const conversation = this.#conversation;
        this.#draft = text.value = note.textContent = "";
        conversation.add({ sessionUpdate: "user_message_chunk", content: { type: "text", text: prompt } });
        this.turn.textContent = "● running";
        try {
          const ended = await this.#connection.call("session/prompt", { sessionId: id, prompt: [{ type: "text", text: prompt }] });
          conversation.add({ sessionUpdate: "acp-agent/turn_end", stopReason: ended.stopReason });
          this.turn.textContent = "";
        } catch (error) {
          conversation.add({ sessionUpdate: "acp-agent/turn_end" });
          note.textContent = error.code === undefined ? "The connection was lost. If the prompt is not in the conversation, send it again." : visible(error.message);
          this.#draft ||= prompt;
          text.value = this.#draft;
        }
      },
    }, text, h("button", {}, "Send"), note);
  }

  #ask(id, method, params) {
    if (!Question.asks(method)) return false;
    const key = `${params.sessionId} ${params.toolCall?.toolCallId}`;
    const asked = { method, params, call: this.#calls.get(key), session: this.#sessions.get(params.sessionId), may: this.#me.role !== "watch" };
    const card = new Question(asked, (result) => {
      this.#questions.delete(id);
      if (!this.#connection.answer(id, result)) say("The connection was lost: the answer was not sent.");
    });
    card.key = key;
    card.session = params.sessionId;
    card.ended = () => { if (main.className === "sessions") this.#showList(); };
    card.cancel = () => {
      this.#questions.delete(id);
      card.done("Stopped.");
      this.#connection.answer(id, method === "elicitation/create" ? { action: "cancel" } : { outcome: { outcome: "cancelled" } });
    };
    this.#questions.set(id, card);
    if (main.className === "sessions") this.#showList();
    else if (this.#shown === params.sessionId) main.querySelector(".questions")?.append(card.element);
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
      return;
    }
    if (method !== "session/update") return;
    const { update, sessionId } = params;
    if (sessionId === this.#shown) this.#conversation?.add(update);
    if (update.toolCallId) this.#note(sessionId, update);
    if (update.sessionUpdate !== "session_info_update") return;
    const s = this.#sessions.get(sessionId);
    if (s && update.title) s.title = update.title;
    const turn = update._meta?.["acp-agent"]?.turn;
    if (sessionId !== this.#shown || !turn) return;
    this.turn.textContent = turn.running ? "● running" : "";
    if (!turn.running) this.#conversation?.add({ ...turn, sessionUpdate: "acp-agent/turn_end" });
    say(turn.running ? "A turn began." : "The turn ended.");
  }
}

start().catch((error) => show("empty",
  h("p", { role: "alert" }, `This page cannot start: ${error.message}.`),
  h("p", {}, "It needs TLS or a loopback address, and a browser that lets it store data and cookies.")));
