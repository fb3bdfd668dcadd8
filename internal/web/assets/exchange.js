// What belongs together in a trace: a request and its answer, and what acp-agent received and what
// it passed on.

// Methods that wait for a person.
const questions = ["session/request_permission", "elicitation/create", "session/elicitation"];
const editor = /^editor(\[\d+ [^\]]+\])?$/; // the peer, with its connection and user in a server
const nearby = 200; // messages after which one that was not passed on is given up

// Starts are the starts of acp-agent in a trace, the first one first. Several processes may write
// to one trace, and after them others with the same number.
export class Starts {
  constructor() {
    this.all = [];
    this.running = new Map(); // by process
  }

  // add adds messages in their order.
  add(messages) {
    for (const m of messages) {
      m.lane = editor.test(m.peer) ? "editor" : "agent";
      const begins = m.lane === "editor" && m.method === "initialize" && !m.sent;
      let exchange = this.running.get(m.process);
      if (!exchange || begins && exchange.editors.has(m.peer)) {
        exchange = new Exchange(m.process);
        this.running.set(m.process, exchange);
        this.all.push(exchange);
      }
      if (begins) exchange.editors.add(m.peer);
      exchange.add(m);
    }
  }
}

// Exchange is what one process of acp-agent received and sent.
class Exchange {
  constructor(process) {
    this.process = process;
    this.all = [];
    this.editors = new Set(); // who has initialized
    this.open = new Map(); // requests without an answer
    this.waiting = []; // received messages that were not passed on yet
    this.errors = 0;
    this.behind = 0; // how far the clock was set back, in milliseconds
  }

  add(m) {
    m.index = this.all.length;
    m.clock = m.time;
    m.time += this.behind;
    if (m.time < this.end) {
      if (m.time < this.end - 1000) this.behind += this.end - m.time;
      m.time = this.end;
    }
    this.all.push(m);
    if (m.error || m.kind === "invalid") this.errors++;
    if (m.kind === "response") this.answer(m);
    else {
      if (m.kind === "request") this.open.set(key(m, m.sent), m);
      m.question = questions.includes(m.method);
      this.pass(m);
    }
  }

  // start is the time of the first message, end that of the last one.
  get start() {
    return this.all[0]?.time ?? 0;
  }

  get end() {
    return this.all[this.all.length - 1]?.time ?? 0;
  }

  // answer joins a response with its request.
  answer(m) {
    const request = this.open.get(key(m, !m.sent));
    if (!request) return;
    this.open.delete(key(m, !m.sent));
    m.request = request;
    m.method = request.method;
    request.response = m;
  }

  // pass joins a message that acp-agent sent with the one that it received from the other side.
  pass(m) {
    if (!m.sent) {
      this.waiting.push(m);
      if (this.waiting.length > nearby) this.waiting.shift().sum = "";
      return;
    }
    const from = this.waiting.filter((w) => w.lane !== m.lane && w.method === m.method && w.kind === m.kind && !w.response);
    const origin = from.find((w) => w.sum === m.sum) ?? from.find((w) => w.label === m.label);
    m.sum = ""; // it may be long
    if (!origin) return;
    origin.sum = "";
    this.waiting.splice(this.waiting.indexOf(origin), 1);
    m.pair = origin;
    origin.pair = m;
  }
}

function key(m, sent) {
  return `${m.peer} ${sent} ${m.id}`;
}

// counterpart returns what acp-agent received for what it sent, or sent for what it received.
export function counterpart(m) {
  return m.kind === "response" ? m.request?.pair?.response : m.pair;
}

// took returns how long the answer to a request took, in milliseconds, or has taken until end.
export function took(m, end) {
  return (m.response?.time ?? end) - m.time;
}

// parts returns the parts of the time until a request was answered: those in which the program that
// had to answer was busy itself, and those in which it waited for another one to which it had passed
// the request on. Open is one that has not ended.
export function parts(m, end) {
  const done = m.time + took(m, end), passed = !m.sent && m.pair;
  if (!passed) return [{ from: m.time, to: done, open: !m.response }];
  const back = passed.response?.time ?? done;
  return [{ from: m.time, to: passed.time }, { from: passed.time, to: back, waits: true }, { from: back, to: done }];
}

// duration returns a number of milliseconds for people.
export function duration(ms) {
  if (ms === 0) return "0 s";
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor(ms / 1000) % 60} s`;
  return minutes < 24 * 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.floor(minutes / 60 / 24)} d ${Math.floor(minutes / 60) % 24} h`;
}

// elapsed returns how long after the beginning something was.
export function elapsed(ms) {
  if (ms < 60_000) return duration(ms);
  const seconds = Math.floor(ms / 1000), two = (n) => String(n).padStart(2, "0");
  const hours = Math.floor(seconds / 3600), minutes = Math.floor(seconds / 60) % 60;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}.${Math.floor(ms % 1000 / 100)}`;
}
