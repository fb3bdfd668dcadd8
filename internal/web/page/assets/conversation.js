// The conversation of a session, made from its updates.
import { h, visible } from "./dom.js";

const marks = { completed: "✓", failed: "✕", in_progress: "…", pending: "·" };
const kinds = { user_message_chunk: ["prompt", "You"], agent_message_chunk: ["answer", "Agent"], agent_thought_chunk: ["thought", "Thought"] };

// Conversation shows the updates that add gets.
export class Conversation {
  element = h("div", { class: "scroller", tabindex: "0", role: "log", "aria-label": "Conversation" });
  #last;
  #kind;
  #calls = new Map();
  #plan;

  add(update) {
    const kind = update.sessionUpdate;
    const atEnd = this.element.scrollTop + this.element.clientHeight >= this.element.scrollHeight - 40;
    if (kinds[kind]) this.#chunk(kind, update.content);
    else if (kind === "tool_call" || kind === "tool_call_update") this.#call(update);
    else if (kind === "plan") this.#steps(update.entries ?? []);
    else if (kind === "acp-agent/turn_end") this.#turnEnd(update);
    if (atEnd) this.end();
  }

  end() {
    this.element.scrollTop = this.element.scrollHeight;
  }

  #append(element) {
    this.#kind = this.#last = undefined;
    this.element.append(element);
    return element;
  }

  #chunk(kind, content) {
    const text = content?.type === "text" ? content.text : `[${content?.type ?? "content"}]`;
    if (this.#kind !== kind) {
      const [name, heading] = kinds[kind];
      const body = h("p", { class: "said" });
      this.#append(name === "thought" ? h("details", { class: name }, h("summary", {}, heading), body)
        : h("article", { class: name }, h("h2", {}, heading), body));
      this.#kind = kind;
      this.#last = body;
    }
    this.#last.append(visible(text));
  }

  #turnEnd({ stopReason = "end_turn", error }) {
    this.#kind = undefined;
    const how = error ? `The turn failed: ${error}` : stopReason === "cancelled" ? "The turn was cancelled." : `The turn was stopped: ${stopReason}`;
    if (error || stopReason !== "end_turn") this.#append(h("p", { class: "dim" }, visible(how)));
  }

  #call(update) {
    const known = this.#calls.get(update.toolCallId);
    const call = { ...known?.call, ...update };
    const body = (call.content ?? []).map((c) => {
      if (c.type === "diff") return h("p", { class: "said" }, visible(`changes ${c.path}`));
      return c.content?.text ? h("pre", {}, visible(c.content.text)) : undefined;
    });
    const title = [h("span", { class: "mark", "aria-hidden": "true" }, marks[call.status] ?? "·"), h("span", { class: "title" }, visible(call.title || "Tool call")),
      h("span", { class: call.status === "completed" ? "hidden" : "state" }, ` ${call.status ?? ""}`.replace("_", " "))];
    const element = body.some(Boolean) ? h("details", { class: `call ${call.status}`, open: known?.element.open }, h("summary", {}, title), body)
      : h("p", { class: `call ${call.status}` }, title);
    if (known) known.element.replaceWith(element);
    else this.#append(element);
    this.#calls.set(update.toolCallId, { call, element });
  }

  #steps(entries) {
    const plan = h("section", { class: "plan", "aria-label": "Plan" }, h("h3", {}, "Plan"),
      h("ol", {}, entries.map((e) => h("li", { class: e.status }, h("span", { class: "mark", "aria-hidden": "true" }, marks[e.status] ?? "·"), visible(e.content),
        h("span", { class: "hidden" }, ` (${e.status.replace("_", " ")})`)))));
    if (this.#plan?.isConnected) this.#plan.replaceWith(plan);
    else this.#append(plan);
    this.#plan = plan;
  }
}
