// Shows the view that the address names.
import { failed, h } from "./dom.js";
import { showSessions } from "./sessions.js";
import { showConversation } from "./conversation.js";
import { showTraces } from "./traces.js";
import { showTrace } from "./timeline.js";

const views = { "": showSessions, session: showConversation, traces: showTraces, trace: showTrace };
const main = document.getElementById("main");
let leaving = new AbortController();

// showNothing says that an address leads nowhere.
function showNothing(main) {
  document.title = "No such page · acp-agent";
  main.append(h("div", { class: "empty" }, h("h1", {}, "No such page"), h("p", {}, "There is nothing at this address."), h("p", {}, h("a", { href: "#/" }, "All sessions"))));
}

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const [, name, argument, options] = /^#\/([a-z]*)\/?([^?]*)\??(.*)$/.exec(location.hash) ?? ["", location.hash && "none", "", ""];
  const view = Object.hasOwn(views, name) ? views[name] : showNothing;
  for (const link of document.querySelectorAll("nav a")) {
    const traces = link.hash === "#/traces";
    if (traces === name.startsWith("trace")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  main.replaceChildren();
  main.className = name || "sessions";
  try {
    await view(main, decodeURIComponent(argument), signal, new URLSearchParams(options));
  } catch (error) {
    if (!signal.aborted) main.replaceChildren(failed(error, show));
  }
}

// Who uses a mouse, or has just opened the page, needs no frame around all that a key would scroll.
const { classList } = document.documentElement;
classList.add("pointer");
addEventListener("pointerdown", () => classList.add("pointer"), { capture: true });
addEventListener("keydown", (event) => { if (event.key === "Tab") classList.remove("pointer"); }, { capture: true });

addEventListener("hashchange", async () => {
  if (location.hash === "#main") {
    main.focus();
    return;
  }
  await show();
  if (!main.contains(document.activeElement)) main.focus({ preventScroll: true });
});
show();
