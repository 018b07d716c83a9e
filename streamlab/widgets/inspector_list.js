import { count } from "./steps.js";
import { duration, gapOf, kindOf, nameOfRow, rangeOf, saysOf, worstOf } from "./inspector_rows.js";
import { clamp, div, h, icon, plain, put, span } from "./inspector_marks.js";

// The list of frames. Only the rows in sight exist: 50,000 cost what 50 cost.

const ROW = 23; // px
const HEADS = [["n", "frame"], ["t", "time"], ["gap", "gap"], ["size", "bytes"], ["event", "event"], ["says", "means"]];
const NAME = 16; // characters of an event's name
const STALL = 1; // s: a gap from which on it is marked in the list

/** The end of a long name, from a word on: "content_block_start" and "…_stop" begin alike. */
function tail(name) {
  const words = name.split(/(?<=[._])/);
  while (words.length > 1 && words.join("").length > NAME) words.shift();
  const end = words.join("");
  return end === name ? name : `…${end}`;
}

let lists = 0; // ids of two views on one page must differ

export function frameList(pick) {
  const id = `sl-inspector-${(lists += 1)}`;
  const head = h("div", { class: "heads", role: "row" },
    ...HEADS.map(([name, label]) => h("span", { class: name, role: "columnheader" }, label)));
  const sheet = h("div", { class: "sheet", role: "rowgroup" }), none = h("p", { class: "none" }, "no frame passes the filter");
  const body = h("div", { class: "body", role: "grid", tabindex: 0, "aria-label": "frames", "data-lm-suppress-shortcuts": "true" }, sheet, none);
  const el = h("section", { class: "list", "aria-label": "frames" }, head, body);
  const made = new Map();
  let view = null, current = null;

  sheet.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row && !String(getSelection())) pick(Number(row.dataset.row));
  });
  body.addEventListener("scroll", () => view && fill(), { passive: true });

  function cells(index, row) {
    const { from, end } = rangeOf(index, row), gap = gapOf(index, row);
    const worst = worstOf(index, row), kind = kindOf(index, row), last = row === index.n - 1;
    const long = gap > STALL ? "gap long" : "gap", name = plain(nameOfRow(index, row) || (last ? "" : "(no name)"), 60);
    return [
      span("n", worst ? icon(worst) : "", last ? "end" : count(row + 1)),
      span("t", index.axes.time ? index.axes.time[row].toFixed(3) : ""),
      span(long, gap == null ? "" : duration(gap)),
      span("size", count(end - from)),
      h("span", { class: "event", title: name }, h("i", { class: "kind", "data-kind": kind }), tail(name)),
      span("says", plain(saysOf(index, row) || kind, 160)),
    ];
  }

  function make(place) {
    const row = view.rows[place];
    const el = h("div", { class: "row", role: "row", id: `${id}-${row}`, "data-row": row, "data-worst": worstOf(view.index, row) },
      ...cells(view.index, row));
    for (const cell of el.children) cell.setAttribute("role", "gridcell");
    el.setAttribute("aria-rowindex", place + 2); // the heads are the first
    el.style.top = `${place * ROW}px`;
    return el;
  }

  function fill() {
    const first = clamp(Math.floor(body.scrollTop / ROW) - 4, 0, view.rows.length);
    const end = Math.min(first + Math.ceil(body.clientHeight / ROW) + 8, view.rows.length);
    for (const [place, el] of made) {
      if (place >= first && place < end) continue;
      el.remove();
      made.delete(place);
    }
    for (let place = first; place < end; place++) {
      if (made.has(place)) continue;
      made.set(place, make(place));
      sheet.append(made.get(place));
    }
    mark();
  }

  function mark() {
    const now = made.get(view.place);
    const here = now && Number(now.dataset.row) === view.row ? now : null;
    if (current !== here) {
      current?.removeAttribute("aria-selected");
      here?.setAttribute("aria-selected", "true");
      current = here;
    }
    if (here) body.setAttribute("aria-activedescendant", here.id);
    else body.removeAttribute("aria-activedescendant");
  }

  /** Show row `row` of `rows`; `place` is where it stands there, or would stand. */
  function draw(next) {
    if (next.rows !== view?.rows || next.index !== view?.index) {
      made.clear();
      sheet.replaceChildren();
      sheet.style.height = `${next.rows.length * ROW}px`;
      body.setAttribute("aria-rowcount", next.rows.length + 1);
      el.classList.toggle("untimed", !next.index.axes.time);
      none.hidden = next.rows.length > 0;
    }
    view = next;
    const top = view.place * ROW, room = body.clientHeight - ROW;
    if (top < body.scrollTop + ROW) body.scrollTop = Math.max(0, top - ROW);
    else if (top > body.scrollTop + room - ROW) body.scrollTop = top - room + ROW;
    fill();
  }

  return { el, body, draw, page: () => Math.max(1, Math.floor(body.clientHeight / ROW) - 1) };
}
