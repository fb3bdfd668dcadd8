// What was changed in the folders of a session.
import { failed, get, h, update } from "./dom.js";

// changes returns a button, and the list that it shows over a conversation.
export function changes(id, scroller, signal) {
  const list = h("section", { id: "changes", class: "changes", tabindex: "0", "aria-label": "Changes", hidden: true });
  const button = h("button", { class: "opens", "aria-expanded": "false", "aria-controls": "changes", title: "Show what was changed in the folders since the session began" }, "Changes");
  let loading = new AbortController();
  const show = async (open) => {
    loading.abort();
    loading = new AbortController();
    const now = AbortSignal.any([signal, loading.signal]);
    list.hidden = !open;
    scroller.inert = open;
    button.ariaExpanded = String(open);
    if (!open) return;
    list.replaceChildren(h("p", { class: "dim", role: "status" }, "Comparing the folders…"));
    list.focus({ preventScroll: true });
    try {
      await fill(list, await get("changes", { id }, now), now);
    } catch (error) {
      if (error.name !== "AbortError") list.replaceChildren(failed(error, () => show(true)));
    }
  };
  button.addEventListener("click", () => show(list.hidden));
  list.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    show(false);
    button.focus();
  });
  return { button, list, close: () => show(false) };
}

// fill lists the files of each folder.
async function fill(list, folders, signal) {
  list.replaceChildren();
  for (const { folder, summary, files } of folders) {
    const shown = h("div");
    list.append(h("h2", {}, h("code", {}, folder)), h("p", { class: "dim" }, summary), shown);
    await update(shown, [], files, () => !signal.aborted);
    if (signal.aborted) return;
  }
}
