// Makes elements. Text is only ever set as text, so nothing that a session contains is parsed.

// h returns an element. Properties that are functions listen to events; a child is a node, text, or
// nothing.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child));
  return element;
}

// What a conversation is made of: a server that says otherwise is not obeyed.
const tags = new Set("a article blockquote code del details div em figcaption figure h2 h3 hr img ins li ol p pre section span strong summary table tbody td th thead tr ul".split(" "));
const attributes = { href: /^https?:/, src: /^data:image\/(png|jpeg|gif|webp);/, "aria-hidden": /./, "aria-label": /./, alt: /./, class: /./, dir: /./, rel: /./, role: /./, start: /./, tabindex: /./ };

// build returns what a server describes: an element, or a text if it has no tag.
export function build({ tag, text = "", attributes: given = [], children = [] }) {
  built++;
  if (!tag) return document.createTextNode(text);
  const element = h(tags.has(tag) ? tag : "span", tag === "a" ? { target: "_blank" } : {}, children.map(build));
  for (let i = 0; i < given.length; i += 2) if (attributes[given[i]]?.test(given[i + 1])) element.setAttribute(given[i], given[i + 1]);
  if (tag !== "pre") return element;
  return code(element, element.className === "diff" && ((shown) => {
    const path = shown.closest("figure").firstChild.textContent;
    return `--- ${path}\n+++ ${path}\n${shown.textContent}`;
  }));
}

let built = 0; // elements and texts since the last pause

// pause lets the browser show what was built, and do what people want.
async function pause() {
  await Promise.race([new Promise(requestAnimationFrame), new Promise((resolve) => { setTimeout(resolve, 100); })]);
  await new Promise((resolve) => { setTimeout(resolve); });
  built = 0;
}

// update changes the children of an element from some trees to others, while wanted says so. What is
// the same stays as it is.
export async function update(element, from, to, wanted) {
  for (let i = 0; i < to.length; i++) {
    const tree = to[i], old = from[i], node = old && element.childNodes[i];
    if (old && JSON.stringify(old) === JSON.stringify(tree)) continue;
    const same = node && tree.tag && tree.tag === old.tag && tree.tag !== "pre" && String(old.attributes) === String(tree.attributes);
    const large = tree.children?.length > 8 && tree.tag !== "pre"; // it is built in parts
    if (built > 100) await pause();
    if (!wanted()) return;
    if (!same) {
      const made = build(large ? { ...tree, children: [] } : tree);
      if (node?.open) made.open = true;
      if (node) node.replaceWith(made);
      else element.append(made);
    }
    if (same || large) await update(element.childNodes[i], same ? old.children ?? [] : [], tree.children ?? [], wanted);
  }
  while (element.childNodes.length > to.length) element.lastChild.remove();
}

// svg returns an element of an SVG image.
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// say tells users of screen readers what has happened, after what was said before.
export function say(text) {
  const said = h("p", {}, text);
  document.getElementById("status").append(said);
  setTimeout(() => said.remove(), 5000);
}

// asking is who answers what the page asks for, how it is asked, and what it means that it does not
// know the page. A page may change it.
export const asking = {
  who: "acp-agent inspect", how: () => ({}),
  strange: "This page was opened by an earlier start of acp-agent inspect. Open the address that it prints.",
};

// ask returns an answer of the server.
export async function ask(name, parameters, options) {
  const response = await fetch(`api/${name}?${new URLSearchParams(parameters)}`, { ...options, ...asking.how() });
  if (response.status === 401) throw new Error(asking.strange);
  if (!response.ok) throw Object.assign(new Error((await response.json()).error), { status: response.status });
  return response;
}

// get returns the JSON that the server answers with.
export async function get(name, parameters, signal) {
  return (await ask(name, parameters, { signal })).json();
}

// failed shows an error in place of what could not be loaded.
export function failed(error, again) {
  const text = error instanceof TypeError ? `${asking.who} does not answer. Is it still running?` : error.message;
  return h("div", { class: "empty", role: "alert" }, h("p", {}, text),
    again && h("button", { click: again }, "Try again"));
}

// count returns a number with its noun.
export function count(n, one, many = `${one}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

// baseName returns the last name of a path.
export function baseName(path) {
  return path.split(/[\\/]/).pop();
}

// chips returns the names of a session's folders, with their paths. Those that have the same name say more.
export function chips({ folders, readOnly = [] }) {
  const names = folders.map(baseName);
  return folders.map((folder, i) => h("span", { class: "chip", title: folder },
    names.indexOf(names[i]) === names.lastIndexOf(names[i]) && names[i] ? names[i] : folder.split(/[\\/]/).slice(-2).join("/"), readOnly.includes(folder) && " (read-only)"));
}

// code returns a pre with a button that copies a text: what it shows, unless there is another, which
// may be a function of the pre.
export function code(pre, text) {
  const button = h("button", {
    class: "copy", click: async () => {
      await navigator.clipboard.writeText(typeof text === "function" ? text(pre) : text || pre.textContent);
      say("Copied");
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    },
  }, "Copy");
  return h("div", { class: "code" }, pre, button);
}

// visible returns text in which characters that are invisible or reorder text are escapes: those that
// package text counts as hidden.
export function visible(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}\u2800]/gu, (c, at) => belongs(c, text, at) ? c
    : `\\u${c.length > 1 ? `{${c.codePointAt(0).toString(16)}}` : c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// belongs reports whether a character belongs to the one before it, or to the layout.
function belongs(c, text, at) {
  const before = [...text.slice(Math.max(0, at - 2), at)].pop() ?? "";
  const symbol = before > "\x7f" && /[\p{S}\p{P}]/u.test(before);
  if (c === "\ufe0e" || c === "\ufe0f") return symbol || text[at + 1] === "\u20e3";
  if (c === "\u200c" || c === "\u200d") return symbol || before === "\ufe0f" || joining.test(before);
  return c === "\n" || c === "\t";
}

// joining matches letters of scripts that need joiners.
const joining = new RegExp(`[${["Arab", "Syrc", "Mong", "Nkoo", "Deva", "Beng", "Guru", "Gujr", "Orya", "Taml", "Telu", "Knda", "Mlym", "Sinh",
  "Mymr", "Khmr", "Tibt"].map((script) => `\\p{Script=${script}}`).join("")}]`, "u");

// hasMouse says that this is no phone, on which a field that gets the focus opens a keyboard.
export const hasMouse = !matchMedia("(pointer: coarse)").matches;

// after calls do once no call has come for a while.
export function after(milliseconds, call) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(call, milliseconds);
  };
}

// every calls poll again and again while the page is visible, until signal. One call ends before
// the next begins. The page says so while the server does not answer.
export async function every(milliseconds, signal, poll) {
  while (!signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
    if (signal.aborted || document.hidden) continue;
    let lost = false;
    try {
      await poll();
    } catch (error) {
      if (error.status === 404) return;
      lost = error instanceof TypeError; // of fetch
    }
    document.getElementById("lost").hidden = !lost;
  }
}
