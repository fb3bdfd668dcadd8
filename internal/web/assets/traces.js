// The list of traces.
import { baseName, get, h } from "./dom.js";

export async function showTraces(main, _, signal) {
  document.title = "Traces · acp-agent";
  const traces = await get("traces", {}, signal);
  main.replaceChildren(h("h1", {}, "Traces"));
  if (traces.length === 0) {
    main.append(h("div", { class: "empty" },
      h("p", {}, "A trace has every message between your editor, acp-agent and the agent."),
      h("p", {}, "Let your editor start ", h("code", {}, "acp-agent --trace FILE"), ", then run ", h("code", {}, "acp-agent inspect --trace FILE"), ".")));
    return;
  }
  main.append(h("div", { class: "results" }, h("ul", {}, traces.map((trace) => {
    const modified = new Date(trace.modified);
    return h("li", {}, h("a", { href: `#/trace/${encodeURIComponent(trace.name)}` },
      h("span", { class: "title" }, baseName(trace.name)),
      h("time", { datetime: trace.modified }, modified.toLocaleString("en", { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" })),
      h("span", { class: "about" }, size(trace.size), " ", h("code", {}, trace.name))));
  }))));
}

function size(bytes) {
  return bytes < 1 << 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`;
}
