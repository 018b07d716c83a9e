import { clip, visible } from "./steps.js";

// Elements, icons, and text that cannot become markup: a recording comes from a stranger, and every
// string of it reaches the page through a text node or an attribute that only is text.

const SVG = "http://www.w3.org/2000/svg";
const ICONS = { // 16 × 16, drawn in the colour of the text
  first: "M4 3v10M13 3 6.5 8l6.5 5z", back: "M10.5 3 4.5 8l6 5z", next: "M5.5 3l6 5-6 5z",
  last: "M12 3v10M3 3l6.5 5L3 13z", undo: "M6 3 3 6l3 3M3 6h6.5a3.5 3.5 0 0 1 0 7H6",
  save: "M8 2.5v7M5 7l3 3 3-3M3 13h10", close: "M4 4l8 8M12 4l-8 8",
  open: "M2 12.5v-9h4l1.5 2H14v7z", compare: "M2.5 4.5h11M2.5 11.5h11M5 2.5v4M10.5 9.5v4",
  before: "M10 3 5 8l5 5", after: "M6 3l5 5-5 5", drop: "M8 2v8M4.5 6.5 8 10l3.5-3.5M2.5 11v3h11v-3",
  error: "M3.5 3.5l9 9M12.5 3.5l-9 9", warning: "M8 2.5 14 13H2zM8 6.5v3M8 11.2v.3",
  note: "M8 4.5a3.5 3.5 0 1 1-.01 0z", good: "M3 8.5 6.5 12 13 4.5",
};

/** Make an element. Strings among the children become text nodes, so data is never markup. */
function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key.startsWith("on")) el.addEventListener(key.slice(2), value);
    else if (value !== false && value !== undefined) el.setAttribute(key, value === true ? "" : value);
  }
  el.append(...children);
  return el;
}
const div = (name, ...children) => h("div", { class: name }, ...children);
const span = (name, ...children) => h("span", { class: name }, ...children);

function svg(tag, props = {}, ...children) {
  const el = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(props)) el.setAttribute(key, value);
  el.append(...children);
  return el;
}

function icon(name) {
  return svg("svg", { viewBox: "0 0 16 16", class: `icon ${name}`, "aria-hidden": "true" },
    svg("path", { d: ICONS[name] ?? "" }));
}

function put(el, text) { // a live region must not speak when nothing has changed
  if (el.textContent !== text) el.textContent = text;
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** A stranger's text in one line: clipped, and what nobody would see as a sign of itself. */
function plain(value, most) {
  const pieces = visible(clip(String(value ?? ""), most).text);
  return pieces.map(({ text, sign }) => (sign ? (sign === "LF" ? "⏎" : `⟨${sign}⟩`) : text)).join("");
}

/** The same as nodes, a small box for each character that can't be seen. JSON has no spaces to break at. */
function signed(text) {
  return visible(text).flatMap(({ text: piece, sign }) =>
    (sign ? [h("b", { class: "sign" }, sign)] : piece.split(/(?<=[,{])/).flatMap((part) => [part, h("wbr")])));
}
