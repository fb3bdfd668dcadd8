// Shows the view that the address names.
import { failed, h } from "./dom.js";

const main = document.getElementById("main");
let leaving = new AbortController();

// showNothing says that an address leads nowhere.
function showNothing(main) {
  document.title = "No such page · acp-agent";
  main.replaceChildren(h("div", { class: "empty" }, h("h1", {}, "No such page"), h("p", {}, "There is nothing at this address."), h("p", {}, h("a", { href: "#/" }, "All sessions"))));
}

// skeleton is in the place of a view that is loaded.
function skeleton() {
  return h("div", { class: "skeleton", role: "status" }, h("span", { class: "hidden" }, "Loading"), [1, 2, 3, 4, 5].map(() => h("p")));
}

// showViews shows one of the views, and each time the address changes that which it names. live is
// what a page has that does more than to show what is stored.
export async function showViews(views, live) {
  const show = async () => {
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
    main.replaceChildren(skeleton());
    main.className = name || "sessions";
    try {
      await view(main, decodeURIComponent(argument), signal, new URLSearchParams(options), live);
    } catch (error) {
      if (!signal.aborted) main.replaceChildren(failed(error, show));
    }
  };

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
  await show();
}
