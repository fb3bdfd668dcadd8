// One trace: its messages in order, between three programs, with the time that each answer took.
import { after, baseName, count, every, failed, h, say, svg, visible } from "./dom.js";
import { counterpart, duration, elapsed, parts, Starts, took } from "./exchange.js";
import { compared } from "./json.js";
import { Trace } from "./trace.js";

const height = 30; // of a row, in pixels

export async function showTrace(main, name, signal) {
  document.title = `${baseName(name)} · acp-agent`;
  new Timeline(main, name, signal);
}

class Timeline {
  constructor(main, name, signal) {
    this.name = name;
    this.signal = signal;
    this.trace = new Trace(name, signal);
    this.starts = new Starts();
    this.exchange = null; // what is shown: one of the starts
    this.rows = [];
    this.runs = new Map(); // of pieces of a message that are one row, by the first piece
    this.range = null; // [from, to] of what is shown, null for everything
    this.build(main);
    this.load();
  }

  build(main) {
    const problems = () => {
      this.which.value = "problems";
      this.filter();
      this.list.focus();
    };
    this.summary = h("span", {}, "Reading…");
    this.errors = h("button", { class: "problems", title: "Show them", hidden: true, click: problems });
    this.unanswered = h("button", { class: "problems open", title: "Show them", hidden: true, click: problems });
    this.text = h("input", { type: "search", "aria-label": "Find messages", placeholder: "Method, update, id or error", spellcheck: "false", autocomplete: "off" });
    this.text.addEventListener("input", after(100, () => this.filter()));
    this.start = h("select", { class: "start", "aria-label": "Start of acp-agent", hidden: true, change: () => {
      this.choose(this.starts.all[this.start.selectedIndex]);
      this.begin();
      this.chosen = true;
    } });
    this.side = h("select", { "aria-label": "Side", change: () => this.filter() },
      h("option", { value: "" }, "Both sides"), h("option", { value: "editor" }, "Editor"), h("option", { value: "agent" }, "Agent"));
    this.which = h("select", { "aria-label": "Messages", change: () => this.filter() },
      h("option", { value: "" }, "Summary"), h("option", { value: "all" }, "All messages"), h("option", { value: "requests" }, "Requests"), h("option", { value: "problems" }, "Errors and unanswered"), h("option", { value: "questions" }, "Questions to you"));
    const zoom = (label, title, change) => h("button", { title, "aria-label": title, click: () => this.zoom(change) }, label);
    this.overview = h("canvas", { class: "overview", role: "img", "aria-label": "When each program had to answer" });
    this.ticks = h("p", { class: "ticks", "aria-hidden": "true" });
    this.space = h("div", { class: "rows", role: "presentation" });
    this.list = h("div", { class: "list", role: "listbox", tabindex: "0", "aria-label": "Messages", keydown: (e) => this.key(e), scroll: () => this.draw() }, this.space);
    this.detail = h("section", { class: "detail", "aria-label": "Message", tabindex: "0" }, h("p", { class: "empty" }, "Select a message to see both sides of it."));
    main.replaceChildren(
      h("div", { class: "heading" }, h("div", {}, h("h1", { title: this.name }, baseName(this.name)), h("p", { class: "about" }, this.summary, this.errors, this.unanswered)),
        h("div", { class: "filters" }, this.start, this.text, this.side, this.which)),
      h("div", { class: "scale" },
        h("ul", { class: "legend", "aria-hidden": "true" }, h("li", { class: "editor" }, "editor"), h("li", { class: "ours" }, "acp-agent"), h("li", { class: "agent" }, "agent")),
        h("div", {}, this.overview, this.ticks),
        h("div", { class: "zoom", role: "group", "aria-label": "Part of the time" }, zoom("+", "Zoom in", (a, b) => [a + (b - a) / 4, b - (b - a) / 4]), zoom("−", "Zoom out", (a, b) => [a - (b - a) / 2, b + (b - a) / 2]),
          zoom("‹", "Earlier", (a, b) => [a - (b - a) / 2, b - (b - a) / 2]), zoom("›", "Later", (a, b) => [a + (b - a) / 2, b + (b - a) / 2]), zoom("All", "Show all of the time", () => null))),
      h("div", { class: "panes" }, h("div", { class: "messages" },
        h("div", { class: "head", "aria-hidden": "true" }, h("span", {}, "Time"), h("span", { class: "lanes" }, h("span", {}, "editor"), h("span", {}, "acp-agent"), h("span", {}, "agent")), h("span", {}, "Message"), h("span", {}, "Took"), h("span", {}, "")),
        this.list), this.detail));
    const resized = new ResizeObserver(() => this.draw());
    resized.observe(this.list);
    resized.observe(this.overview);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", () => this.paint(), { signal: this.signal });
    this.signal.addEventListener("abort", () => resized.disconnect());
    this.drag();
  }

  async load() {
    try {
      await this.read();
    } catch (error) {
      if (error.name !== "AbortError") this.detail.replaceChildren(failed(error, () => this.load()));
      return;
    }
    every(1000, this.signal, () => this.read());
  }

  // read reads the messages that were not read yet. It shows them now and then: to choose those to
  // show takes as long as there are messages.
  async read() {
    const { trace } = this;
    let grown, changed = false, shown = performance.now();
    do {
      const before = trace.next;
      this.starts.add(await trace.read());
      grown = trace.next > before;
      changed ||= grown;
      this.reading = grown && trace.next < trace.size ? ` · ${Math.floor(100 * trace.next / trace.size)} % read` : "";
      if (!changed || this.reading && this.exchange && performance.now() < shown + 500) continue;
      this.update();
      changed = false;
      shown = performance.now();
    } while (grown && trace.next < trace.size);
    if (!this.exchange) this.summary.textContent = trace.size > 0 ? "This file is not a trace of acp-agent." : "No messages yet.";
  }

  // update shows the messages of the newest start of acp-agent, or of the one that was chosen.
  update() {
    const { all } = this.starts, { options } = this.start, newest = all[all.length - 1];
    if (!newest) return;
    const follows = !this.exchange || !this.chosen && this.start.selectedIndex === options.length - 1;
    while (options.length < all.length) this.start.append(h("option"));
    all.forEach((one, i) => { options[i].textContent = [moment(one.all[0]), one.process, one.errors && count(one.errors, "error")].filter(Boolean).join(" · "); });
    this.start.hidden = all.length < 2;
    if (follows && this.exchange !== newest) {
      this.start.selectedIndex = all.length - 1;
      this.choose(newest);
    } else this.filter();
    if (!this.selected && !this.reading) this.begin();
  }

  // begin selects what people look for in a trace: the first request that failed, or else the one
  // whose answer took longest. Arrow keys go on from there.
  begin() {
    const { all, end } = this.exchange;
    const requests = all.filter((m) => m.kind === "request" && !m.question);
    const first = requests.find((m) => m.response?.error) ??
      requests.reduce((slowest, m) => !slowest || took(m, end) > took(slowest, end) ? m : slowest, null);
    const at = this.rows.indexOf(first);
    if (at < 0) return;
    if ([document.body, document.getElementById("main")].includes(document.activeElement)) this.list.focus({ preventScroll: true });
    this.list.scrollTop = Math.max((at + 0.5) * height - this.list.clientHeight / 2, 0);
    this.select(first);
  }

  // choose shows a start of acp-agent.
  choose(exchange) {
    this.exchange = exchange;
    this.selected = null;
    this.chosen = false; // what is selected, by the user
    this.runs.clear();
    this.detail.replaceChildren(h("p", { class: "empty" }, "Select a message to see both sides of it."));
    this.range = null;
    this.list.scrollTop = 0;
    this.filter();
  }

  // bounds returns the part of the time that is shown.
  bounds() {
    const { start, end } = this.exchange;
    return this.range ?? [start, Math.max(end, start + 1)];
  }

  // filter chooses the messages to show.
  filter() {
    if (!this.exchange) return;
    const words = this.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const [from, to] = this.bounds();
    const which = {
      requests: (m) => m.kind === "request",
      problems: (m) => m.error || m.kind === "invalid" || m.kind === "request" && !m.response || m.response?.error,
      questions: (m) => m.question || m.request?.question,
    }[this.which.value] ?? (() => true);
    const rows = this.exchange.all.filter((m) => (!this.side.value || m.lane === this.side.value) && which(m) &&
      (!this.range || m.time <= to && (m.response?.time ?? m.time) >= from) &&
      (this.which.value === "all" || m.kind !== "response" || !m.request) &&
      words.every((w) => `${m.method ?? ""} ${m.label ?? ""} ${m.text ?? ""} ${m.id ?? ""} ${m.error ?? ""} ${m.peer}`.toLowerCase().includes(w)));
    this.rows = this.which.value === "" && words.length === 0 ? this.fold(rows) : rows;
    this.space.style.height = `${this.rows.length * height}px`;
    const { all, errors, open, start, end } = this.exchange;
    this.summary.textContent = `${count(all.length, "message")} in ${duration(end - start)}${this.reading}`;
    this.errors.textContent = count(errors, "error");
    this.errors.hidden = errors === 0;
    this.unanswered.textContent = `${open.size.toLocaleString("en")} unanswered`;
    this.unanswered.hidden = open.size === 0;
    this.draw();
  }

  // fold returns rows in which consecutive pieces of a message are one.
  fold(rows) {
    const folded = [];
    let run = null;
    for (const m of rows) {
      if (!isPiece(m)) run = null;
      else if (run?.label === m.label) {
        run.pieces.push(m);
        if (run.open) folded.push(m);
        continue;
      } else {
        run = this.runs.get(m) ?? Object.assign(Object.create(m), { index: `${m.index}-run`, open: false });
        run.pieces = [m];
        this.runs.set(m, run);
        folded.push(run);
        if (run.open) folded.push(m);
        continue;
      }
      folded.push(m);
    }
    return folded;
  }

  // unfold shows the pieces of a row, or hides them.
  unfold(run, open) {
    run.open = open;
    this.filter();
    this.choice(run);
    this.list.focus({ preventScroll: true });
  }

  zoom(change) {
    if (!this.exchange) return;
    const range = change(...this.bounds());
    this.range = null;
    const [first, end] = this.bounds();
    if (range) {
      const width = Math.min(range[1] - range[0], end - first), from = Math.min(Math.max(range[0], first), end - width);
      if (width < end - first) this.range = [from, from + Math.max(width, 0.01)];
    }
    this.filter();
    say(`${count(this.rows.length, "message")} in ${duration(this.bounds()[1] - this.bounds()[0])}`);
  }

  // drag lets people choose a part of the time with the mouse.
  drag() {
    let from = null;
    const at = (event) => {
      const { left, width } = this.overview.getBoundingClientRect(), [a, b] = this.bounds();
      return a + (b - a) * Math.min(Math.max((event.clientX - left) / width, 0), 1);
    };
    this.overview.addEventListener("pointerdown", (event) => {
      from = at(event);
      this.overview.setPointerCapture(event.pointerId);
    });
    this.overview.addEventListener("pointerup", (event) => {
      const to = at(event), [a, b] = this.bounds();
      if (from !== null && Math.abs(to - from) > (b - a) / 200) this.zoom(() => [Math.min(from, to), Math.max(from, to)]);
      from = null;
    });
  }

  key(event) {
    const open = { ArrowRight: true, ArrowLeft: false }[event.key] ?? (event.key === "Enter" ? !this.selected?.open : undefined);
    if (open !== undefined && this.selected?.pieces) {
      event.preventDefault();
      this.unfold(this.selected, open);
      return;
    }
    const page = Math.max(1, Math.floor(this.list.clientHeight / height) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || this.rows.length === 0) return;
    event.preventDefault();
    const now = this.rows.indexOf(this.selected);
    const to = Math.min(Math.max(now < 0 ? 0 : now + step, 0), this.rows.length - 1);
    const { scrollTop, clientHeight } = this.list;
    this.list.scrollTop = Math.min(Math.max(scrollTop, (to + 1) * height - clientHeight), to * height);
    this.choice(this.rows[to]);
  }

  // draw makes the rows that are visible.
  draw() {
    if (!this.exchange) return;
    const first = Math.max(Math.floor(this.list.scrollTop / height) - 5, 0);
    const last = Math.ceil((this.list.scrollTop + this.list.clientHeight) / height) + 5;
    const [from, to] = this.bounds();
    this.space.replaceChildren(...this.rows.slice(first, last).map((m, i) => this.row(m, first + i, from, to)));
    if (this.rows.includes(this.selected)) this.list.setAttribute("aria-activedescendant", `m${this.selected.index}`);
    else this.list.removeAttribute("aria-activedescendant");
    this.paint();
  }

  row(m, position, from, to) {
    const { start, end } = this.exchange;
    const bar = h("span", { class: "bar" });
    if (m.kind === "request") {
      for (const part of parts(m, end)) {
        const left = Math.max((part.from - from) / (to - from), 0), right = Math.min((part.to - from) / (to - from), 1);
        if (left > 1 || right < 0) continue;
        const fill = h("i", { class: `${m.question ? "question" : m.sent ? m.lane : "ours"}${part.waits ? " waits" : ""}${part.open ? " open" : ""}${m.response?.error ? " error" : ""}` });
        fill.style.left = `${100 * left}%`;
        fill.style.width = `max(2px, ${100 * (right - left)}%)`;
        bar.append(fill);
      }
    }
    const answered = m.response?.error, problem = m.error || m.kind === "invalid" || this.which.value !== "all" && answered;
    const row = h("div", {
      class: `row ${m.kind}${problem ? " error" : ""}${m.question || m.request?.question ? " question" : ""}`, role: "option", id: `m${m.index}`,
      "aria-selected": String(m === this.selected), "aria-setsize": this.rows.length, "aria-posinset": position + 1,
      title: route(m), click: () => this.choice(m),
    },
    h("span", { class: "time" }, elapsed(m.time - start)), arrow(m),
    h("span", { class: "what" }, h("span", { class: "hidden" }, `${route(m)}, ${m.kind}: `),
      h("span", { class: "method" }, name(m)), m.label && !isPiece(m) && h("span", { class: "label" }, m.label), m.pieces && h("span", { class: "label" }, count(whole(m).length, "piece")),
      (m.text || m.pieces) && h("span", { class: "label text" }, m.pieces ? said(m).slice(0, 300) : m.text), problem && h("span", { class: "problem" }, m.error || answered || "not a message")),
    h("span", { class: `took${m.response ? "" : " open"}` }, m.kind !== "request" ? "" : m.response ? duration(took(m, end)) : "no answer"), bar);
    row.style.top = `${position * height}px`;
    return row;
  }

  // paint draws the overview: for each program, when it had to answer.
  paint() {
    if (!this.exchange) return;
    const { overview } = this, ratio = devicePixelRatio, width = overview.clientWidth, tall = overview.clientHeight;
    overview.width = width * ratio;
    overview.height = tall * ratio;
    const context = overview.getContext("2d"), style = getComputedStyle(overview);
    context.scale(ratio, ratio);
    const [from, to] = this.bounds(), { start, end } = this.exchange;
    this.ticks.replaceChildren(...[0, 1, 2, 3, 4].map((i) => h("span", {}, elapsed(from - start + i * (to - from) / 4))));
    const colour = (name) => style.getPropertyValue(`--${name}`);
    const lanes = ["editor", "ours", "agent"], lane = tall / 3;
    context.fillStyle = colour("line");
    for (const i of [1, 2]) context.fillRect(0, i * lane - 0.5, width, 1);
    for (const i of [1, 2, 3]) context.fillRect(i * width / 4 - 0.5, 0, 1, tall);
    for (const m of this.exchange.all) {
      if (m.kind !== "request") continue;
      const program = m.sent ? m.lane : "ours", y = lanes.indexOf(program) * lane;
      context.fillStyle = colour(m.response?.error ? "bad" : m.question ? "wait" : program);
      for (const part of parts(m, end)) {
        const x = Math.max(width * (part.from - from) / (to - from), -1), right = Math.min(width * (part.to - from) / (to - from), width);
        if (x > width || right < 0) continue;
        context.globalAlpha = part.waits ? 0.4 : 0.8;
        if (part.waits) context.fillRect(x, y + lane / 2 - 1, Math.max(right - x, 1.5), 2);
        else for (let at = x; at < right || at === x; at += part.open ? 7 : Infinity) context.fillRect(at, y + 4, Math.max(Math.min(right - at, part.open ? 4 : Infinity), 1.5), lane - 8);
      }
    }
    if (this.selected) {
      context.globalAlpha = 1;
      context.fillStyle = colour("text");
      context.fillRect(width * (this.selected.time - from) / (to - from), 0, 1, tall);
    }
  }

  // choice selects what the user has chosen.
  choice(m) {
    this.chosen = true;
    this.select(m);
  }

  select(m) {
    this.selected = m;
    this.draw();
    this.show(m);
  }

  // show shows both sides of a message, and of its answer.
  async show(m) {
    if (m.pieces) {
      this.detail.replaceChildren(h("h2", {}, m.label), h("p", { class: "about" }, `${count(whole(m).length, "piece")}, from ${time(m)} to ${time(m.pieces[m.pieces.length - 1])}.`),
        h("p", {}, h("button", { click: () => this.unfold(m, !m.open) }, m.open ? "Hide the pieces" : "Show each piece")), h("pre", {}, visible(said(m))));
      return;
    }
    const request = m.request ?? m, answer = request.response;
    const parts = [h("h2", {}, request.method || m.kind), h("p", { class: "about" }, this.story(request, answer))];
    try {
      parts.push(...await this.sides(m.kind === "response" && !m.request ? "Answer" : m.kind === "invalid" ? "Text" : request.kind === "request" ? "Request" : "Notification", request));
      if (answer) parts.push(...await this.sides("Answer", answer));
    } catch (error) {
      if (error.name === "AbortError") return;
      parts.push(failed(error));
    }
    if (this.selected === m) this.detail.replaceChildren(...parts);
  }

  // story says who sent a message to whom, and how long the answer took.
  story(request, answer) {
    const who = `${route(request)} at ${time(request)}`;
    if (request.kind !== "request") return `${who}.`;
    if (!answer) return `${who}. ${this.missing(request)}`;
    const passed = request.pair?.response;
    const whole = took(request, 0), behind = passed && took(request.pair, 0);
    const share = !passed ? "" : request.sent ? `; with acp-agent's own part ${duration(behind)}` : `, of which ${request.pair.peer} took ${duration(behind)}`;
    return `${who}. ${request.question ? "You answered" : answer.error ? "Failed" : "Answered"} after ${duration(whole)}${share}.`;
  }

  // missing says which program has to answer a request that has no answer.
  missing(request) {
    if (request.sent) return `No answer: ${request.peer} has not sent one.`;
    const { pair } = request;
    if (!pair) return "No answer: acp-agent has not sent one.";
    return pair.response ? `No answer: acp-agent has not passed on that of ${pair.peer}.` :
      `No answer: acp-agent passed it on to ${pair.peer}, which has not answered.`;
  }

  // sides returns a message as acp-agent received it and as it sent it.
  async sides(title, m) {
    const other = counterpart(m);
    const [received, sent] = m.sent ? [other, m] : [m, other];
    const values = await Promise.all([received, sent].map((one) => one && this.message(one)));
    const shown = [received, sent].flatMap((one, i) => !one ? [] : [h("div", {}, h("h4", {}, route(one)),
      values[i].json === undefined ? h("pre", {}, values[i].text) : compared(values[i].json, values[1 - i]?.json, Boolean(received && sent)))]);
    const note = received && sent ? "What acp-agent changed is marked." : m.sent ? "acp-agent sent this by itself." : "acp-agent did not pass this on.";
    return [h("h3", {}, title), h("p", { class: "about" }, note), h("div", { class: "sides" }, shown)];
  }

  async message(m) {
    const text = await this.trace.json(m);
    try {
      return { json: JSON.parse(text) };
    } catch {
      return { text: visible(text) };
    }
  }
}

// isPiece reports whether a message adds to what is said.
function isPiece(m) {
  return m.kind === "notification" && m.label?.endsWith("_chunk");
}

// name returns what a row is called: a piece has no room for its method.
function name(m) {
  if (isPiece(m)) return m.label.replace("_chunk", "").replaceAll("_", " ");
  return m.method || (m.kind === "invalid" ? "invalid" : "answer");
}

// whole returns the pieces of a run, each once: as acp-agent received it, or sent it by itself.
function whole(run) {
  return run.pieces.filter((m) => !m.sent || !m.pair);
}

// said returns the text of a run.
function said(run) {
  return whole(run).map((m) => m.text ?? "").join("");
}

// time returns the local time of a message, with its milliseconds.
function time(m) {
  return new Date(m.clock).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23" });
}

// moment returns the day and time of a message.
function moment(m) {
  return new Date(m.clock).toLocaleString("en", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
}

function route(m) {
  return m.sent ? `acp-agent → ${m.peer}` : `${m.peer} → acp-agent`;
}

const lanes = { editor: 20, ours: 80, agent: 140 };

// arrow returns a picture of who sent a message to whom.
function arrow(m) {
  const [from, to] = m.sent ? [lanes.ours, lanes[m.lane]] : [lanes[m.lane], lanes.ours];
  const tip = to + (from < to ? -6 : 6), middle = height / 2;
  return svg("svg", { class: "arrow", width: 160, height, "aria-hidden": "true" },
    ...Object.values(lanes).map((x) => svg("line", { class: "life", x1: x, x2: x, y1: 0, y2: height })),
    svg("line", { class: "way", x1: from, x2: tip, y1: middle, y2: middle }),
    svg("path", { class: "tip", d: `M ${to} ${middle} L ${tip} ${middle - 4} L ${tip} ${middle + 4} Z` }));
}
