// The list of sessions.
import { after, chips, count, failed, get, h, hasMouse, say } from "./dom.js";

// showSessions shows the list. A live page has more above and below it.
export async function showSessions(main, _, signal, options, live) {
  document.title = "Sessions · acp-agent";
  const facets = await get("facets", {}, signal);
  const text = h("input", { type: "search", id: "filter", maxlength: "500", placeholder: "Words, title, folder, agent or id", autocomplete: "off", spellcheck: "false" });
  const folder = choice("folder", "All folders", facets.folders);
  const agent = choice("agent", "All agents", facets.agents);
  const archived = h("input", { type: "checkbox", id: "archived" });
  const results = h("div", { class: "results" });
  const form = h("form", { role: "search", class: "filters", submit: (event) => event.preventDefault() },
    h("label", { for: "filter" }, "Find sessions"), text,
    h("label", { for: "folder" }, "Folder"), folder,
    h("label", { for: "agent" }, "Agent"), agent,
    h("span", { class: "check" }, archived, h("label", { for: "archived" }, "Archived")));
  const shown = { results, several: facets.folders.length > 1, live };
  main.replaceChildren(h("h1", {}, "Sessions"), ...live?.above(signal, facets.folders) ?? [], form, results, ...live?.below() ?? []);
  form.hidden = facets.total === 0;

  let loading = new AbortController();
  const load = async () => {
    loading.abort();
    loading = new AbortController();
    const filter = { text: text.value, folder: folder.value, agent: agent.value };
    if (archived.checked) filter.archived = "1";
    try {
      await list(shown, filter, AbortSignal.any([signal, loading.signal]));
    } catch (error) {
      if (error.name !== "AbortError") results.replaceChildren(failed(error, load));
    }
  };
  text.addEventListener("input", after(150, load));
  for (const input of [folder, agent, archived]) input.addEventListener("change", load);
  await load();
  live?.watch(signal, load);
  if (hasMouse) text.focus();
}

function choice(id, all, facets) {
  return h("select", { id }, h("option", { value: "" }, all),
    facets.map((f) => h("option", { value: f.name }, `${f.name} (${f.count})`)));
}

// list shows the sessions that a filter selects, and the messages in which its text is.
async function list(shown, filter, signal) {
  const { results } = shown;
  const [first, said] = await Promise.all([get("sessions", filter, signal), filter.text.trim().length > 1 ? search(filter, signal) : []]);
  results.replaceChildren();
  const bySession = Map.groupBy(said, (m) => m.id);
  first.sessions = first.sessions.filter((s) => !bySession.has(s.id));
  if (said.length > 0) results.append(h("section", {}, h("h2", {}, "In conversations"), h("ul", {}, [...bySession.values()].map((hits) => item(shown, hits[0], hits)))));
  if (said.length > 0 && first.sessions.length > 0) results.append(h("p", { class: "about" }, "By title, folder, agent or id:"));
  if (first.sessions.length === 0 && !first.next) {
    if (said.length > 0) return;
    const filtered = filter.text || filter.folder || filter.agent;
    results.append(h("div", { class: "empty" }, h("p", {}, filtered ? "No session matches." :
      filter.archived ? "No session is archived." : "There are no sessions yet."),
    !filtered && !filter.archived && h("p", {}, `They appear here once an editor has used acp-agent${shown.live ? ", or you begin one" : ""}.`)));
    say("No sessions");
    return;
  }
  let group = { name: "", items: null };
  const add = (sessions) => {
    for (const session of sessions) {
      const name = period(new Date(session.updated));
      if (name !== group.name) {
        group = { name, items: h("ul") };
        results.append(h("section", {}, h("h2", {}, name), group.items));
      }
      group.items.append(item(shown, session));
    }
  };
  const more = h("button", { class: "more" }, "Show more");
  const next = (part) => {
    add(part.sessions);
    more.remove();
    if (!part.next) return;
    more.onclick = async () => {
      const last = document.activeElement === more && results.querySelector("section:last-of-type li:last-child a");
      next(await get("sessions", { ...filter, cursor: part.next }, signal));
      if (last) last.focus(); // unless nobody has pressed it
    };
    results.append(more);
    near.observe(more);
  };
  // Who scrolls to the end gets more without asking.
  const near = new IntersectionObserver(([{ isIntersecting }]) => isIntersecting && shown.live && more.click());
  signal.addEventListener("abort", () => near.disconnect());
  next(first);
  say(`${count(first.sessions.length, "session")}${first.next ? " and more" : ""}, ${count(said.length, "message")}`);
}

// search returns the messages with the words of a filter, in sessions that the rest of it selects.
async function search(filter, signal) {
  const found = await get("search", { text: filter.text }, signal);
  return found.filter((m) => (!filter.folder || m.folders.includes(filter.folder)) && (!filter.agent || m.agent === filter.agent) && Boolean(m.archived) === Boolean(filter.archived));
}

const roles = { user: "You", agent: "Agent", thought: "Thought", tool: "Tool" };

const someHits = 3; // messages of a session that are shown at first

// item shows a session, and lines of messages that were found in it, with links to them.
function item({ several, live }, session, hits = []) {
  const updated = new Date(session.updated), address = `#/session/${encodeURIComponent(session.id)}`;
  const links = hits.map((found) => hit(address, found)), rest = links.slice(someHits);
  return h("li", {}, h("a", { href: address },
    h("span", { class: "title" }, session.title || "Untitled"),
    h("span", { class: "about" }, live && h("span", { class: "live", "data-session": session.id }, live.state(session.id)), " ",
      h("span", { class: "agent" }, session.agent), " ", several && chips(session), " ",
      session.turns > 0 && h("span", {}, count(session.turns, "turn")), " ",
      session.cost && h("span", { class: "cost", title: "As reported by the agent" }, session.cost.join(" + "))),
    h("time", { datetime: session.updated, title: updated.toLocaleString() }, moment(updated))),
  links.slice(0, someHits), rest.length > 0 && h("details", { class: "hits" }, h("summary", {}, count(rest.length, "more message")), rest));
}

// hit is a link to a message that was found.
function hit(address, found) {
  const words = found.pieces.filter((_, i) => i % 2).slice(0, 8);
  return h("a", { class: "snippet", href: `${address}?${new URLSearchParams([["at", found.at], ["role", found.role], ...words.map((word) => ["word", word])])}` },
    h("span", { class: "dim" }, `${roles[found.role] ?? found.role}: `), found.pieces.map((piece, i) => i % 2 ? h("mark", {}, piece) : piece));
}

const day = 24 * 60 * 60 * 1000;

function period(time) {
  const today = new Date();
  today.setHours(0, 0, 0, 0);
  if (time >= today) return "Today";
  if (time >= today - day) return "Yesterday";
  if (time >= today - 6 * day) return "This week";
  return time.toLocaleDateString("en", { month: "long", year: "numeric" });
}

function moment(time) {
  const recent = Date.now() - time < day;
  return recent ? time.toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false }) :
    time.toLocaleDateString("en", { day: "numeric", month: "short" });
}
