import { clip, count } from "./steps.js";
import { bytesOf, duration, eventsOf, fieldsOf, gapOf, linesOf } from "./inspector_rows.js";
import { nameOfRow, pretty, problemsOf, rangeOf, textOf, wordsOf } from "./inspector_rows.js";
import { div, h, icon, plain, put, signed, span } from "./inspector_marks.js";

// One frame in full: what is wrong with it, what it means, its bytes, its fields.

const BYTES = { text: 4_000, hex: 1_024 }; // drawn at first; a button draws the rest, up to MOST
const MOST = { text: 200_000, hex: 16_384 };
const FIELD = 8_000; // characters of a field
const ENDED = {
  eof: "The connection ended cleanly.", cut: "The connection stopped inside the HTTP framing.",
  reset: "The connection was reset.", timeout: "We waited too long, and gave up.", cancelled: "We stopped reading.",
};

export function detail(toggle) {
  const title = h("h4", {}), facts = span("facts");
  const ways = ["text", "hex"].map((way) => h("button",
    { type: "button", class: "way", "data-way": way, title: `bytes as ${way} · X`, onclick: () => toggle(way) }, way));
  const head = div("head", title, facts, h("span", { class: "ways", role: "group", "aria-label": "bytes as" }, ...ways));
  const body = h("div", { class: "body", tabindex: 0, role: "group", "aria-label": "the frame" });
  const el = h("section", { class: "detail", "aria-label": "the frame in full" }, head, body);
  let drawn = "", most = 0;

  const part = (name, ...children) => h("section", { class: `part ${name}` }, h("h5", {}, name), ...children);

  function problems(index, row) {
    const found = problemsOf(index, row).slice(0, 20);
    return found.map(({ severity, rule, says }) => h("p", { class: `problem ${severity}` }, icon(severity),
      h("b", {}, `${severity} ${plain(rule, 60)}`), span("says", plain(says, 500))));
  }

  function means(index, row) {
    const found = eventsOf(index, row).filter(({ type }) => type !== "Problem"), { segments } = index.data; // they have their own place
    if (!found.length) return [];
    const rows = found.slice(0, 40).map(({ type, segment, text }) => h("tr", {},
      h("th", { scope: "row" }, wordsOf(type)), h("td", { class: "of" }, segment < 0 ? "" : plain(segments.id[segment], 14)),
      h("td", {}, ...signed(clip(text, 400).text))));
    const more = found.length - rows.length;
    return [part("means", h("table", {}, h("tbody", {}, ...rows)), more > 0 ? h("p", { class: "note" }, `and ${more} more`) : "")];
  }

  /** Where network reads begin between two bytes. */
  function readsIn({ data }, from, to) {
    const found = new Map(), { byte } = data.reads;
    let low = 0, high = byte.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (byte[middle] < from) low = middle + 1;
      else high = middle;
    }
    for (let i = low; i < byte.length && byte[i] < to; i++) found.set(byte[i], i + 1);
    return found;
  }

  function asText(bytes, from, start, reads) {
    return linesOf(bytes).map(({ at, bytes: line }) => {
      const cuts = [...reads.keys()].filter((byte) => byte >= from + at && byte < from + at + line.length);
      const nodes = [];
      let done = 0;
      for (const cut of [...cuts, from + at + line.length]) {
        nodes.push(...signed(textOf(line.subarray(done, cut - from - at))));
        if (cut < from + at + line.length) nodes.push(h("b", { class: "cut" }, `read ${reads.get(cut)}`));
        done = cut - from - at;
      }
      return div(from + at < start ? "line lead" : "line", span("at", count(from + at)), span("bytes", ...nodes));
    });
  }

  function asHex(bytes, from, start, reads) {
    const wide = el.clientWidth < 560 ? 8 : 16, lines = [];
    for (let at = 0; at < bytes.length; at += wide) {
      const row = [...bytes.subarray(at, at + wide)];
      const cells = row.map((byte, i) => {
        const cell = h("i", { class: from + at + i < start ? "lead" : "" }, byte.toString(16).padStart(2, "0"));
        const read = reads.get(from + at + i);
        if (read) {
          cell.classList.add("begins");
          cell.title = `read ${read} begins`;
        }
        return cell;
      });
      const seen = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·")).join("");
      lines.push(div("hexline", span("at", (from + at).toString(16).padStart(8, "0")), span(`bytes wide${wide}`, ...cells), span("seen", seen)));
    }
    return lines;
  }

  function raw(index, row, way) {
    const { from, start, end } = rangeOf(index, row), size = end - from;
    const limit = Math.max(BYTES[way], most), to = Math.min(end, from + limit);
    const bytes = bytesOf(index, from, to), reads = readsIn(index, from, to);
    const notes = [];
    if (row === index.n - 1 && size) notes.push(`${count(size)} bytes at the end that no frame took`);
    else if (start > from) notes.push(`the first ${count(start - from)} bytes (a comment, or a blank line) dispatched nothing`);
    if (bytes.length < to - from) notes.push(`only ${count(bytes.length)} of them were sent to this view`);
    else if (to < end) notes.push(`the first ${count(limit)} of ${count(size)} bytes`);
    const more = to < end && limit < MOST[way] && bytes.length === to - from
      ? [h("button", { type: "button", onclick: () => again(MOST[way]) }, "draw more")] : [];
    const drawnBytes = (way === "hex" ? asHex : asText)(bytes, from, start, reads);
    const box = h("div", { class: `raw ${way}`, role: "group", "aria-label": `bytes as ${way}` }, ...drawnBytes);
    return [part("bytes", ...notes.map((note) => h("p", { class: "note" }, note)), size ? box : h("p", { class: "note" }, "none"), ...more)];
  }

  function fields(index, row) {
    const { start, end } = rangeOf(index, row);
    if (row === index.n - 1) return [];
    const found = fieldsOf(bytesOf(index, start, Math.min(end, start + 500_000))).slice(0, 20);
    const rows = found.flatMap(([name, value]) => {
      const { text, note } = clip(name === "data" ? pretty(value) : value, FIELD);
      return [h("dt", {}, plain(name, 40)), h("dd", {}, h("pre", {}, ...signed(text).map((node) => (node.textContent === "LF" ? "\n" : node)), note && `\n… ${note}`))];
    });
    return [part("fields", h("dl", {}, ...rows))];
  }

  let last = null;
  function again(more) {
    most = more;
    drawn = "";
    draw(last);
  }

  function draw(view) {
    const { index, row, way, version } = view, key = [version, row, way, el.clientWidth < 560].join();
    if (key === drawn) return;
    if (last?.row !== row || last?.index !== index) most = 0;
    [last, drawn] = [view, [version, row, way, el.clientWidth < 560].join()];
    const end = row === index.n - 1, { from, end: to } = rangeOf(index, row), gap = gapOf(index, row);
    put(title, end ? "the end" : `frame ${count(row + 1)} · ${plain(nameOfRow(index, row) || "no name", 40)}`);
    put(facts, [
      index.axes.time ? `${index.axes.time[row].toFixed(3)} s` : "", gap == null ? "" : `+${duration(gap)}`,
      to > from ? `bytes ${count(from)} to ${count(to)}` : "",
    ].filter(Boolean).join(" · "));
    for (const button of ways) button.setAttribute("aria-pressed", button.dataset.way === way);
    const ended = end ? [h("p", { class: "ended" }, ENDED[index.data.facts.ending] ?? plain(index.data.facts.ending, 40))] : [];
    body.replaceChildren(...ended, ...problems(index, row), ...means(index, row), ...raw(index, row, way), ...fields(index, row));
    body.scrollTop = 0;
  }

  return { el, body, draw };
}
