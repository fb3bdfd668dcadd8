// What belongs together in a trace: a request and its answer, and what acp-agent received and what
// it passed on.

// Methods that wait for a person.
const questions = ["session/request_permission", "elicitation/create", "session/elicitation"];
const nearby = 200; // messages after which one that was not passed on is given up

export class Exchange {
  constructor() {
    this.all = [];
    this.open = new Map(); // requests without an answer
    this.waiting = []; // received messages that were not passed on yet
    this.errors = 0;
  }

  // add adds messages in their order.
  add(messages) {
    for (const m of messages) {
      m.index = this.all.length;
      m.lane = m.peer === "editor" ? "editor" : "agent";
      this.all.push(m);
      if (m.error || m.kind === "invalid") this.errors++;
      if (m.kind === "response") this.answer(m);
      else {
        if (m.kind === "request") this.open.set(key(m, m.sent), m);
        m.question = questions.includes(m.method);
        this.pass(m);
      }
    }
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
      if (this.waiting.length > nearby) this.waiting.shift();
      return;
    }
    const from = this.waiting.filter((w) => w.lane !== m.lane && w.method === m.method && w.kind === m.kind && !w.response);
    const origin = from.find((w) => w.sum === m.sum) ?? from.find((w) => w.label === m.label);
    if (!origin) return;
    this.waiting.splice(this.waiting.indexOf(origin), 1);
    m.pair = origin;
    origin.pair = m;
  }

  // end is the time of the last message.
  get end() {
    return this.all[this.all.length - 1]?.time ?? 0;
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
// the request on, or for an answer that never came.
export function parts(m, end) {
  const done = m.time + took(m, end), passed = !m.sent && m.pair;
  if (!passed) return [{ from: m.time, to: done, waits: !m.response }];
  const back = passed.response?.time ?? done;
  return [{ from: m.time, to: passed.time }, { from: passed.time, to: back, waits: true }, { from: back, to: done }];
}

// duration returns a number of milliseconds for people.
export function duration(ms) {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round(ms / 1000) % 60} s`;
}
