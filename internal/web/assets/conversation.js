// One session: what was said in it, and what is known about it.
import { build, chips, code, count, every, failed, get, h, update, visible } from "./dom.js";
import { changes } from "./changes.js";
import { Pages } from "./pages.js";

// showConversation shows a session. If options say at, role and words of a message, it shows that.
// On a live page a person takes part in it.
export async function showConversation(main, id, signal, options, live) {
  const session = await get("session", { id }, signal);
  const scroller = h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Conversation" });
  const title = h("h1"), turns = h("span", { class: "turns" }), updated = h("time"), state = h("span", { class: "live" });
  const describe = (now) => {
    title.textContent = now.title || "Untitled";
    document.title = `${title.textContent} · acp-agent`;
    turns.textContent = count(now.turns, "turn");
    updated.dateTime = now.updated;
    updated.textContent = new Date(now.updated).toLocaleString("en", { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });
  };
  describe(session);
  const end = h("button", { title: "Show the newest messages, and follow them" }, "Latest");
  const changed = changes(id, scroller, signal);
  main.replaceChildren(
    h("div", { class: "heading" },
      h("div", {}, live && h("a", { class: "back", href: "#/" }, "‹ Sessions"), title, h("p", { class: "about" }, h("span", { class: "agent" }, session.agent), " ", chips(session), " ", turns, " · ", updated, " ", state)),
      changed.button, end),
    h("div", { class: "columns" }, h("div", { class: "reading" }, changed.list, scroller), about(session, signal)));

  const pages = new Pages(scroller, async (item) => {
    await (item.filling = fill(item, id, signal));
    live?.filled(id);
  });
  end.addEventListener("click", () => {
    changed.close();
    pages.showEnd();
    scroller.focus({ preventScroll: true });
  });
  scroller.addEventListener("keydown", (event) => {
    if (event.target === scroller && event.key === "End" && !event.ctrlKey) {
      event.preventDefault();
      pages.showEnd();
    }
  });

  // load reads the pages from one on, and reports whether there were new ones.
  const load = async (first) => {
    let from = pages.items[first]?.page.from ?? 0, added = false;
    for (let more = true; more;) {
      const part = await get("pages", { id, from }, signal);
      if (part.pages.length === 0 && first > 0) { // there is another history now
        first = from = 0;
        continue;
      }
      const known = pages.last?.page;
      pages.set(first, part.pages);
      const last = part.pages[part.pages.length - 1];
      added ||= last !== undefined && last.to !== known?.to;
      more = part.more;
      first = pages.items.length;
      from = last?.to ?? from;
    }
    return added;
  };
  scroller.focus({ preventScroll: true });
  await load(0);
  if (pages.items.length === 0) scroller.append(h("div", { class: "empty" }, h("p", {}, "Nothing has been said in this session.")));
  if (options.has("at")) await showMessage(pages, id, options, signal);

  const look = async () => {
    const added = await load(Math.max(pages.items.length - 1, 0));
    if (added) scroller.querySelector(".empty")?.remove();
    if (added) pages.refresh((item) => item.unfinished && item !== pages.last);
    await pages.last?.filling;
    return added;
  };
  if (live) {
    live.open({ session, scroller, pages, look, signal, changed: async () => describe(await get("session", { id }, signal)), last: async () => (await get("prompt", { id }, signal)).text });
    if (!options.has("at")) pages.showEnd();
    return;
  }
  let quiet = 0;
  every(1000, signal, async () => {
    try {
      if (await look()) {
        quiet = 0;
        describe(await get("session", { id }, signal));
        state.textContent = "● Live";
      } else if (++quiet === 10) state.textContent = "";
    } catch (error) {
      if (error.status === 404) state.textContent = "Deleted";
      throw error;
    }
  });
}

// Segments are numbered from this bit of a place on: see the server's type place.
const segment = 2 ** 16;
const kindOf = { user: "prompt", agent: "answer", thought: "thought", tool: "call" };

// showMessage scrolls to a message that begins in the segment at a place, and selects its first word.
async function showMessage(pages, id, options, signal) {
  const at = Number(options.get("at")), words = options.getAll("word"), kind = kindOf[options.get("role")];
  const near = pages.items.filter(({ page }) => page.to > at && page.from < at + segment);
  for (const item of near) {
    const { from, to } = item.page;
    const { entries } = await get("entries", { id, from, to }, signal);
    const i = entries.findIndex((e) => {
      const shown = build(e);
      return shown.classList.contains(kind) && words.every((word) => shown.textContent.includes(word));
    });
    if (i < 0) continue;
    await pages.reveal(item);
    select(pages, item.element.children[i], words[0]);
    return;
  }
  if (near.length > 0) await pages.reveal(near[0]);
}

// select scrolls to a word in an element and selects it.
function select(pages, element, word) {
  if (!element) return;
  if (element.matches("details") && !element.firstChild.textContent.includes(word)) element.open = true;
  const range = document.createRange();
  range.selectNodeContents(element);
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node; (node = texts.nextNode());) {
    const start = node.data.indexOf(word);
    if (start < 0) continue;
    range.setStart(node, start);
    range.setEnd(node, start + word.length);
    break;
  }
  pages.scrollTo(range);
  const selection = getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
}

// fill puts the entries of a page into its element.
async function fill(item, id, signal) {
  const { from, to } = item.page;
  const { element, shown } = item;
  const wanted = () => item.shown === shown;
  try {
    const { entries, unfinished } = await get("entries", { id, from, to }, signal);
    if (item.page.to !== to || !wanted()) return; // there is a newer answer, or none is wanted
    item.unfinished = unfinished;
    element.querySelector(".empty")?.remove();
    await item.updating; // one after the other
    await (item.updating = update(element, item.content ?? [], entries, wanted));
    if (wanted()) Object.assign(item, { content: entries, filledTo: to });
  } catch (error) {
    if (error.name !== "AbortError") element.replaceChildren(failed(error, () => fill(item, id, signal)));
  }
}

// about returns what is known of a session besides the conversation.
function about(session, signal) {
  const found = h("div", { class: "found" });
  const look = h("button", {}, "Look for instructions, skills and servers");
  look.addEventListener("click", async () => {
    look.disabled = true;
    try {
      found.replaceChildren(...artifacts(await get("context", { id: session.id }, signal)));
      look.remove();
    } catch (error) {
      found.replaceChildren(failed(error));
      look.disabled = false;
    }
  });
  // Below the conversation it is folded first, to leave room for that.
  const beside = matchMedia("(min-width: 761px)");
  const known = h("details", { open: beside.matches },
    h("summary", { class: "narrow" }, "About this session"),
    h("h2", {}, "Folders"),
    h("ol", { class: "folders", start: "0" }, session.folders.map((folder, i) => h("li", {}, h("code", {}, folder),
      h("span", { class: "from" }, session.from?.[i] || (i === 0 ? "working directory" : "given when the session was opened"), session.readOnly?.includes(folder) && ", read-only")))),
    session.given && h("p", { class: "given" }, `Given to the agent ${session.given}`),
    session.cost && h("p", { class: "cost" }, `Cost: ${session.cost.join(" + ")}, as reported by the agent`),
    look, found,
    session.continue && h("p", { class: "dim" }, "Questions for permission, your answers, and the MCP servers that the editor gave are not stored: ", h("a", { href: "#/traces" }, "a trace"), " has them."),
    h("h2", {}, "In the terminal"),
    session.continue && [h("p", { class: "dim" }, "Continue it:"), copied(session.continue)],
    h("p", { class: "dim" }, "Write it to a file:"), copied(`acp-agent sessions export ${session.id} --format html -o conversation.html`),
    session.states?.length > 0 && h("details", { class: "states" }, h("summary", {}, "Mode, commands and usage"), session.states.flatMap((s) => state(s.update ?? s))),
    h("details", { class: "states" }, h("summary", {}, "Delete this session"), copied(`acp-agent sessions delete ${session.id}`)));
  beside.addEventListener("change", () => { known.open = beside.matches; }, { signal });
  return h("aside", { "aria-label": "About this session" }, known);
}

// copied returns a command whose lines break between its words only.
function copied(command) {
  return code(h("pre", {}, command.split(/(?<= )/).map((word) => h("span", { class: "word" }, word))), command);
}

// state returns what an agent said about its session: names and what they mean.
function state(u) {
  const terms = (list) => h("dl", {}, list.flatMap(([name, about]) => [h("dt", {}, visible(String(name))), h("dd", {}, visible(String(about ?? "")))]));
  switch (u.sessionUpdate) {
    case "current_mode_update":
      return terms([["Mode", u.currentModeId]]);
    case "available_commands_update":
      return [h("h3", {}, "Commands"), terms((u.availableCommands ?? []).map((c) => [`/${c.name}`, c.description]))];
    case "config_option_update":
      return terms((u.configOptions ?? []).map((o) => {
        const value = (o.options ?? []).flatMap((v) => v.options ?? v).find((v) => v.value === o.currentValue);
        return [o.name ?? o.id, [value?.name ?? o.currentValue, value?.description ?? o.description].filter((s) => s !== undefined).join(": ")];
      }));
    case "usage_update":
      return terms([["Context", `${Number(u.used ?? 0).toLocaleString("en")} of ${Number(u.size ?? 0).toLocaleString("en")} tokens`]]);
    default:
      return [];
  }
}

const kinds = { instruction: "Instructions", skill: "Skills", command: "Commands", mcp_server: "MCP servers", subagent: "Subagents", hook: "Hooks", plugin: "Plugins" };

function artifacts(list) {
  if (list.length === 0) return [h("p", { class: "dim" }, "These folders contain none.")];
  return Object.entries(kinds).filter(([kind]) => list.some((a) => a.kind === kind)).flatMap(([kind, name]) => [h("h3", {}, name),
    h("ul", {}, list.filter((a) => a.kind === kind).map((a) => h("li", { class: a.state, title: a.path },
      h("span", { class: "title" }, a.name), " ", h("span", { class: "dim" }, `in folder ${a.folder}${a.state === "active" ? "" : ` · ${a.state.replace("_", " ")}: ${a.reason ?? ""}`}`))))]);
}
