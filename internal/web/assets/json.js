// JSON of which the parts that differ from another are marked.
import { code, h, visible } from "./dom.js";

const longest = 3000; // lines that are shown

// compared returns a value in lines. What other does not have is marked, if there is another.
export function compared(value, other, compares) {
  const lines = [];
  write(lines, value, other, compares, "", "", "");
  const cut = lines.length - longest;
  const pre = h("pre", { class: "json" }, lines.slice(0, longest).map((line) =>
    h(line.differs ? "mark" : "span", {}, line.differs && h("span", { class: "hidden" }, "changed: "), `${visible(line.text)}\n`)),
  cut > 0 && h("span", {}, `… ${cut} more lines`));
  return code(pre, visible(JSON.stringify(value, null, 2)));
}

function write(lines, value, other, compares, indent, name, comma) {
  const differs = compares && (other === undefined || kind(value) !== kind(other) || kind(value) === "value" && value !== other);
  if (kind(value) === "value" || Object.keys(value).length === 0) {
    lines.push({ text: `${indent}${name}${JSON.stringify(value)}${comma}`, differs });
    return;
  }
  const brackets = Array.isArray(value) ? "[]" : "{}";
  const names = Object.keys(value);
  lines.push({ text: `${indent}${name}${brackets[0]}`, differs });
  names.forEach((n, i) => write(lines, value[n], differs ? undefined : matching(value, other, n), compares, `${indent}  `,
    Array.isArray(value) ? "" : `${JSON.stringify(n)}: `, i < names.length - 1 ? "," : ""));
  lines.push({ text: `${indent}${brackets[1]}${comma}`, differs });
}

function kind(value) {
  return Array.isArray(value) ? "array" : value !== null && typeof value === "object" ? "object" : "value";
}

// matching returns the member of other to compare with. An element of an array is compared with an
// equal one, wherever that is.
function matching(value, other, name) {
  if (!Array.isArray(value) || !Array.isArray(other)) return other?.[name];
  const text = JSON.stringify(value[name]);
  return other.find((o) => JSON.stringify(o) === text) ?? other[name];
}
