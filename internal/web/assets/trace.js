// The file of a trace. A line has the time, the process of acp-agent, an arrow, the peer and a message.
import { ask, visible } from "./dom.js";

const form = /^(\S+) (\S+) (->|<-) (.*?)([{(].*|(?<= )\[.*)$/s;
const most = 1 << 20; // bytes that are read at once, and shown of a message
const lineFeed = 10;

// Trace reads a file in parts.
export class Trace {
  constructor(name, signal) {
    Object.assign(this, { name, signal, next: 0, size: 0 });
  }

  // read returns the messages that follow those which were read. A line without its end is still
  // being written, or longer than a part.
  async read() {
    let bytes, part = most / 2;
    do {
      part *= 2;
      bytes = await this.bytes(this.next, part);
    } while (bytes.length === part && !bytes.includes(lineFeed));
    const messages = [];
    let at = 0;
    for (let end; (end = bytes.indexOf(lineFeed, at)) >= 0; at = end + 1) {
      const m = parse(decode(bytes.subarray(at, end)));
      if (m) messages.push(Object.assign(m, { at: this.next + at, length: end - at }));
    }
    this.next += at;
    return messages;
  }

  // json returns the JSON of a message, or the beginning of one that is too long.
  async json(m) {
    const line = decode(await this.bytes(m.at, Math.min(m.length, most)));
    return form.exec(line)[5] + (m.length > most ? "…" : "");
  }

  // bytes returns bytes from a place on, as many as there are. It asks for the one before too: a range
  // in which there are none would be an error.
  async bytes(from, length) {
    const before = Math.min(from, 1);
    const headers = { Range: `bytes=${from - before}-${from + length - 1}` };
    const response = await ask("trace", { name: this.name }, { signal: this.signal, headers });
    this.size = Number(response.headers.get("Content-Range")?.split("/")[1] ?? 0);
    return new Uint8Array(await response.arrayBuffer()).subarray(before);
  }
}

function decode(bytes) {
  return new TextDecoder().decode(bytes);
}

// parse returns what the timeline shows of a line, or null for one without a message.
function parse(line) {
  const [, moment, process, arrow, peer, body] = form.exec(line) ?? [];
  const time = Date.parse(moment) + Number(`0.${/\.\d{3}(\d+)/.exec(moment)?.[1] ?? 0}`);
  if (Number.isNaN(time)) return null;
  return { time, sent: arrow === "->", process: inLine(process, 100), peer: inLine(peer, 300), ...read(body) };
}

// read returns what the timeline shows of a message's JSON. sum is equal for messages with the same
// content, whatever their session and id.
function read(body) {
  let message;
  try {
    message = JSON.parse(body);
  } catch {
    return { kind: "invalid" };
  }
  const { id, method = "", params, result, error } = message;
  if (typeof method !== "string" || !method && id === undefined) return { kind: "invalid" };
  const kind = !method ? "response" : id === undefined ? "notification" : "request";
  const content = Object(kind === "response" ? result : params), { update, toolCall, outcome } = content;
  const label = [
    said(update, "sessionUpdate"), heading(update), said(update, "status"), heading(toolCall),
    said(outcome, "outcome"), said(outcome, "optionId"),
    said(content, "path"), said(content, "command"), said(content, "stopReason"),
  ].join(" ");
  const compared = Object.entries(content).filter(([name]) => name !== "sessionId").sort(([a], [b]) => a < b ? -1 : 1);
  return {
    kind, id: id === undefined ? "" : inLine(JSON.stringify(id), 100), method: inLine(method, 100), label: inLine(label, 200),
    error: error ? inLine(said(error, "message") || "error", 300) : "",
    text: visible(said(Object(update).content, "text").slice(0, 300)), sum: kind === "response" ? "" : JSON.stringify(compared),
  };
}

// said returns a text in an object.
function said(object, name) {
  const text = Object(object)[name];
  return typeof text === "string" ? text : "";
}

// heading returns the title of a tool call, with the name of the tool if the title does not say it.
function heading(call) {
  const title = said(call, "title"), name = said(call, "name");
  return !title || !name || title.toLowerCase().includes(name.toLowerCase()) ? title || name : `${title} (${name})`;
}

// inLine returns the beginning of a text in a line.
function inLine(text, longest) {
  return visible(text.replace(/\s+/g, " ").trim().slice(0, longest));
}
