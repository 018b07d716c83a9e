import { count } from "./steps.js";
import { duration, filterRows, indexRows, kindOf, nearest, NO_FILTER, quantity } from "./inspector_rows.js";
import { clamp, div, h, icon, plain, put, span } from "./inspector_marks.js";
import { makeScale, spokenOf, timeline } from "./inspector_time.js";
import { frameList } from "./inspector_list.js";
import { detail } from "./inspector_detail.js";

// The Inspector's view. It gets a recording once and moves through it here; Python is asked only to
// read another one. Python joins these files to one module, in Jupyter and in a saved page:
//
//   inspector_rows.js    what was sent, as a lookup         inspector_time.js    the timeline
//   inspector_marks.js   elements, icons, safe text         inspector_list.js    the frames
//   steps.js             text that can be trusted           inspector_detail.js  one frame in full
//
// The model is used by get, set, on, off and save_changes alone, and by send where there is one, so
// a page can bring its own.

const COMMANDS = [ // name, keys, what it does, where its button is; keyboard and help are this table too
  ["first", ["Home"], "first frame", "move"],
  ["back", ["ArrowLeft", "ArrowUp"], "one frame back", "move"],
  ["next", ["ArrowRight", "ArrowDown"], "one frame on", "move"],
  ["last", ["End"], "the end", "move"],
  ["pageUp", ["PageUp"], "a page of frames back", ""],
  ["pageDown", ["PageDown"], "a page of frames on", ""],
  ["before", ["[", "p"], "the problem before", "problem"],
  ["after", ["]", "n"], "the next problem", "problem"],
  ["jump", ["j"], "jump to the first problem", ""],
  ["filter", ["f", "/"], "filter the frames", ""],
  ["way", ["x"], "bytes as text or as hex", ""],
  ["axis", ["a"], "along the seconds or the bytes", ""],
  ["out", ["-"], "zoom out", "zoom"],
  ["in", ["+", "="], "zoom in", "zoom"],
  ["fit", ["0"], "the whole recording", "zoom"],
  ["other", ["b"], "the other recording", ""],
  ["differ", ["d"], "where the two first differ", ""],
  ["open", ["o"], "open a file", "file"],
  ["beside", ["c"], "open a file to compare it", "file"],
  ["undo", ["u"], "back to what was open before", "file"],
  ["save", [], "save as one HTML file", "file"],
  ["help", ["?"], "show or hide this help", "file"],
  ["close", ["Escape"], "close the help; leave the filter", ""],
];
const KEY_NAMES = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", PageUp: "PgUp", PageDown: "PgDn" };
const FACES = { first: "first", back: "back", next: "next", last: "last", before: "before", after: "after", open: "open",
  beside: "compare", undo: "undo", save: "save" }; // icons; the others have a letter
const LETTERS = { out: "−", in: "+", fit: "fit", help: "?" };
const WORDS = { open: "open", beside: "compare", undo: "undo", save: "save" }; // said beside the icon
const LIVE = ["open", "beside", "undo", "save"]; // what a page without Python cannot do
const AGAIN = ["back", "next", "pageUp", "pageDown", "before", "after", "in", "out"]; // a held key repeats them
const PIECE = 1 << 20; // bytes of a file in one message; a server may refuse ten times that
const GAPS = [[0, "any gap"], [0.05, "> 50 ms"], [0.25, "> 250 ms"], [1, "> 1 s"], [2, "> 2 s"], [10, "> 10 s"]];
const GOOD = ["whole", "VALIDATED_PROPOSAL", "MESSAGE_COMPLETE"];
const keyName = (key) => KEY_NAMES[key] ?? (key.length === 1 ? key.toUpperCase() : key);

function helpBox(commands, close) {
  const rows = commands.filter(([, keys]) => keys.length).flatMap(([, keys, label]) =>
    [h("dt", {}, ...keys.map((key) => h("kbd", {}, keyName(key)))), h("dd", {}, label)]);
  const shut = h("button", { type: "button", class: "tool", "aria-label": "close", onclick: close }, icon("close"));
  return h("div", { class: "help", role: "dialog", "aria-label": "keys", hidden: true },
    div("head", span("name", "keys"), shut), h("dl", {}, ...rows),
    h("p", {}, "Drag along the timeline to scrub; the wheel zooms once the view has the focus."));
}

/** The doctor's words over everything. */
function verdictBox(jump) {
  const sign = span("sign"), verdict = h("b", { class: "verdict" }), layer = span("layer"), says = h("p", { class: "says" });
  const advice = h("p", { class: "advice" }), may = h("ul", {}), button = h("button", { type: "button", onclick: jump });
  const more = h("details", {}, h("summary", {}, "why, and what a consumer may do"), may);
  const el = h("section", { class: "doctor", "aria-label": "diagnosis" }, div("badge", sign, verdict, layer),
    div("words", says, advice, more), button);
  return { el, draw(index) {
    const { diagnosis, first, facts } = index.data, good = !diagnosis.layer && GOOD.includes(diagnosis.verdict);
    const tone = good && first < 0 ? "good" : facts.complete || good ? "warning" : "error";
    el.dataset.tone = tone;
    sign.replaceChildren(icon(tone));
    put(verdict, plain(diagnosis.verdict, 60));
    put(layer, diagnosis.layer ? `likely: ${plain(diagnosis.layer, 30)}` : "");
    layer.title = plain(diagnosis.because, 600);
    put(says, plain(diagnosis.says, 600));
    put(advice, plain(diagnosis.advice, 600));
    const lines = [...(diagnosis.because ? [["why", diagnosis.because]] : []), ...diagnosis.may.map((text) => ["may", text]), ...diagnosis.may_not.map((text) => ["may not", text])];
    may.replaceChildren(...lines.map(([word, text]) => h("li", {}, h("b", {}, word), ` ${plain(text, 300)}`)));
    more.hidden = !lines.length;
    button.hidden = first < 0;
    put(button, first === index.n - 1 ? "first problem: at the end" : `first problem: frame ${count(first + 1)}`);
  } };
}

/** The numbers: of one recording, or of two with their differences, and where the two part. */
function numbersBox(differ) {
  const summary = h("summary", {}), head = h("thead", {}), body = h("tbody", {});
  const table = h("table", {}, head, body), box = h("details", { class: "numbers" }, summary, h("div", { class: "scroll" }, table));
  const first = div("parting"), button = h("button", { type: "button", onclick: differ }, "go there");
  const parting = div("differ", first, button), el = div("compared", parting, box);
  const cells = (tag, ...texts) => h("tr", {}, ...texts.map((text, i) => h(i ? tag : "th", i ? {} : { scope: "row" }, text)));
  function two([a, b], { first: found, measures, facts }) {
    const says = (i) => plain(found.says[i], 200), where = (side, i) => (found.rows[i] === side.n - 1 ? "the end" : `frame ${count(found.rows[i] + 1)}`);
    const line = (name, side, i) => div("side", h("b", {}, `${name} `), span("at", where(side, i)), h("q", {}, says(i)));
    first.replaceChildren(...(found ? [h("b", {}, "First difference in meaning"), line("A", a, 0), line("B", b, 1)]
      : [h("b", {}, "They mean the same"), ", whatever the pieces."]));
    button.hidden = !found;
    head.replaceChildren(h("tr", {}, ...["", "A", "B", "B − A"].map((text) => h("th", { scope: "col" }, text))));
    body.replaceChildren(
      ...facts.map(([name, x, y]) => cells("td", name.replace("_", " "), plain(x ?? "–", 40), plain(y ?? "–", 40), x === y ? "same" : "differs")),
      ...measures.map(([name, unit, x, y, by]) => cells("td", name, quantity(x, unit), quantity(y, unit),
        by == null ? "" : by === 0 ? "same" : `${by > 0 ? "+" : "−"}${quantity(Math.abs(by), unit)}`)));
  }
  function one({ data }) {
    head.replaceChildren();
    body.replaceChildren(...data.measures.filter(([, , value]) => value != null)
      .map(([name, unit, value]) => cells("td", name, quantity(value, unit))));
  }
  return { el, draw(sides, comparison) {
    const both = sides.length > 1;
    parting.hidden = !both;
    box.classList.toggle("two", both);
    put(summary, both ? "the numbers of both" : "the numbers");
    if (both) two(sides, comparison);
    else one(sides[0]);
  } };
}

/** Which frames are listed. */
function filterBar(changed) {
  const text = h("input", { type: "search", placeholder: "filter: text, event, problem", "aria-label": "filter by text", oninput: changed });
  const kind = h("select", { "aria-label": "kind of frame", onchange: changed });
  const problems = h("input", { type: "checkbox", onchange: changed }), content = h("input", { type: "checkbox", onchange: changed });
  const gap = h("select", { "aria-label": "gap before the frame", onchange: changed },
    ...GAPS.map(([value, label]) => h("option", { value }, label)));
  const found = h("span", { class: "found", role: "status", "aria-live": "polite" });
  const clear = h("button", { type: "button", onclick: () => reset() }, "clear");
  const el = h("div", { class: "filter", role: "search" }, text, kind, gap, h("label", {}, problems, "problems"),
    h("label", {}, content, "content"), clear, found);
  function reset() {
    Object.assign(text, { value: "" });
    kind.value = "";
    gap.selectedIndex = 0;
    problems.checked = content.checked = false;
    changed();
  }
  return { el, text, reset,
    get: () => ({ text: text.value.slice(0, 200), kind: kind.value, problems: problems.checked, content: content.checked, gap: Number(gap.value) }),
    load(index) {
      const counts = new Map(), before = kind.value;
      for (let row = 0; row < index.n; row++) counts.set(kindOf(index, row), (counts.get(kindOf(index, row)) ?? 0) + 1);
      kind.replaceChildren(h("option", { value: "" }, "any kind"),
        ...[...counts].map(([name, n]) => h("option", { value: name }, `${name} (${count(n)})`)));
      kind.value = counts.has(before) ? before : "";
      gap.hidden = !index.axes.time;
    },
    says(rows, index, active) {
      put(found, active ? `${count(rows.length)} of ${count(index.n)} rows` : `${count(index.n - 1)} frames`);
      clear.hidden = !active;
    },
  };
}

/** Where a file can be dropped. */
function dropZone() {
  const first = div("zone", icon("drop"), span("", "drop it here to open it")), second = div("zone", icon("compare"), span("", "or here to compare it"));
  const el = h("div", { class: "dropping", hidden: true, "aria-hidden": "true" }, first, second);
  return { el, show(event, both) {
    el.hidden = !event;
    second.hidden = !both;
    if (!event) return false;
    const box = el.parentElement.getBoundingClientRect(), beside = both && event.clientX > box.left + box.width / 2;
    first.classList.toggle("here", !beside);
    second.classList.toggle("here", beside);
    return beside;
  } };
}

function render({ model, el }) {
  const live = model.get("live") !== false; // a saved page has no Python to ask
  const commands = COMMANDS.filter(([name]) => live || !LIVE.includes(name));
  let sides = [], active = 0, way = "text", version = 0, filtered = NO_FILTER, filterOn = false;
  let texts = ["", ""], heard = null, frame = 0, settle = 0, waiting = null;
  const scale = makeScale();
  const now = () => sides[active];

  const run = {
    first: () => step(-Infinity), back: () => step(-1), next: () => step(1), last: () => step(Infinity),
    pageUp: () => step(-list.page()), pageDown: () => step(list.page()),
    before: () => trouble(-1), after: () => trouble(1), jump: () => now().index.data.first >= 0 && go(now().index.data.first),
    filter: () => { filter.text.focus(); filter.text.select(); },
    way: () => setWay(way === "text" ? "hex" : "text"), axis: () => setAxis(scale.by === "time" ? "bytes" : "time"),
    in: () => zoom(0.5), out: () => zoom(2), fit: () => zoom(Infinity),
    other: () => sides.length > 1 && choose(1 - active), differ,
    open: () => pickFile(false), beside: () => pickFile(true), undo: () => ask("undo"), save: () => ask("save"),
    help: () => toggleHelp(help.hidden), close: () => (help.hidden ? root.focus({ preventScroll: true }) : toggleHelp(false)),
  };

  // --- what stands where
  const buttons = Object.fromEntries(commands.filter(([, , , group]) => group).map(([name, keys, label]) =>
    [name, h("button", {
      type: "button", class: WORDS[name] ? "worded" : "tool", "data-command": name, title: [label, ...keys.map(keyName)].join(" · "), "aria-label": label,
      onclick: () => (sides.length || ["open", "help", "undo"].includes(name)) && run[name](),
    }, FACES[name] ? icon(FACES[name]) : LETTERS[name], ...(WORDS[name] ? [span("word", WORDS[name])] : []))]));
  const group = (wanted) => commands.filter(([, , , group]) => group === wanted).map(([name]) => buttons[name]);
  const title = h("strong", { class: "name" }), facts = span("facts"), place = span("place"), which = span("which");
  const streams = [0, 1].map((i) => h("select", { "aria-label": i ? "stream of the second file" : "stream of the file",
    onchange: () => ask("choose", { stream: streams[i].selectedIndex + 1, beside: Boolean(i) }) }));
  const axis = h("button", { type: "button", class: "axisway", title: "along the seconds or the bytes · A", onclick: run.axis });
  const tools = h("div", { class: "tools", role: "group", "aria-label": "frames" },
    span("set", ...group("move"), place), span("set", ...group("problem"), which), span("space"), span("set", axis, ...group("zoom")));
  const files = h("div", { class: "files", role: "group", "aria-label": "files" }, ...group("file"));
  const header = h("header", {}, div("titles", title, facts), files);
  const doctor = verdictBox(() => run.jump());
  const lines = [0, 1].map((i) => timeline(scale, { pick: (row) => { choose(i); go(row); }, zoomed: schedule, hasFocus: () => root.contains(root.getRootNode().activeElement) }));
  const numbers = numbersBox(differ), filter = filterBar(schedule), list = frameList((row) => go(row)), full = detail(setWay);
  const tabs = [0, 1].map((i) => h("button", { type: "button", class: "tab", onclick: () => choose(i) }));
  const alone = h("button", { type: "button", class: "tool", title: "no comparison", "aria-label": "take the second recording away", onclick: () => ask("alone") }, icon("close"));
  const pair = h("div", { class: "pair", role: "group", "aria-label": "which recording" }, ...tabs, ...(live ? [alone] : []));
  const leftOut = h("p", { class: "leftout" });
  const spoken = h("div", { class: "spoken", role: "status", "aria-live": "polite" });
  const answer = h("p", { class: "answer", role: "status", "aria-live": "polite" });
  const help = helpBox(commands, () => toggleHelp(false)), drop = dropZone();
  const chooser = h("input", { type: "file", hidden: true, "aria-hidden": "true", onchange: () => sendFiles([...chooser.files], chooser.beside) });
  const empty = h("div", { class: "empty" }, icon("drop"), h("p", {}, h("b", {}, "Drop a recording here, or open a file.")),
    h("p", {}, "An event stream, one event a line, a timed recording, a HAR, a cassette, … up to 64 MB. It goes to this notebook's kernel, and nowhere else."));
  const inside = div("inside", doctor.el, tools, div("lines", ...lines.map((line) => line.el)), leftOut, numbers.el, pair, filter.el,
    div("panels", list.el, full.el));
  const root = h("div", { class: "sl-inspector", role: "group", tabindex: -1 }, header, div("streams", ...streams), answer, empty, inside,
    spoken, help, drop.el, chooser);

  // --- moving: however many moves came, one picture a frame; Python hears where a drag ended
  function go(row, by = "view") {
    const side = now();
    if (!side) return;
    side.row = clamp(Math.round(row) || 0, 0, side.index.n - 1);
    const at = lines[active].place(side.row), other = sides[1 - active];
    if (other && by !== "both") other.row = nearest(other.index.axes[scale.by] ?? other.index.axes.bytes, at); // the same moment
    scale.reveal(at);
    clearTimeout(settle);
    if (by === "view") settle = setTimeout(tell, 120);
    schedule();
  }
  function tell() {
    if (!live || !sides.length) return;
    send({ frame: sides[0].row + 1 });
    model.set("frame", sides[0].row + 1);
    model.save_changes();
  }
  /** So many rows on, among those that the filter leaves. */
  function step(by) {
    const { rows, index, row } = now();
    if (!Number.isFinite(by)) return go(by < 0 ? rows[0] ?? 0 : rows.at(-1) ?? index.n - 1);
    if (!rows.length) return;
    const here = placeOf(now()), on = rows[here] === row;
    go(rows[clamp(on || by < 0 ? here + by : here + by - 1, 0, rows.length - 1)]);
  }
  /** Where a side's row stands among its rows, or would stand. */
  function placeOf({ rows, row }) {
    let low = 0, high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle] < row) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  function trouble(by) {
    const { index: { troubled }, row } = now();
    const next = by > 0 ? troubled.find((each) => each > row) : troubled.findLast((each) => each < row);
    if (next !== undefined) go(next);
    else say(troubled.length ? "no more problems in this direction" : "no problem in this recording");
  }
  function differ() {
    const { rows } = model.get("comparison")?.first ?? {};
    if (!rows || sides.length < 2) return;
    sides[0].row = rows[0];
    sides[1].row = rows[1];
    go(rows[active], "both");
    clearTimeout(settle);
    settle = setTimeout(tell, 120);
  }
  function choose(side) {
    if (side === active || !sides[side]) return;
    active = side;
    filter.load(now().index);
    schedule();
  }
  function setWay(next) {
    way = next;
    schedule();
  }
  function setAxis(by) {
    scale.by = sides.every(({ index }) => index.axes.time) ? by : "bytes";
    measure();
    scale.fit();
    schedule();
  }
  function measure() {
    const ends = sides.map(({ index }) => (index.axes[scale.by] ?? index.axes.bytes).at(-1));
    scale.extent = Math.max(...ends, scale.by === "time" ? 1e-3 : 1);
  }
  function zoom(factor) {
    if (factor === Infinity) scale.fit();
    else scale.zoom(factor, lines[active].place(now().row));
    schedule();
  }

  // --- drawing
  function schedule() {
    frame ||= requestAnimationFrame(draw);
  }
  function draw() {
    frame = 0;
    if (!sides.length) return;
    refilter();
    const { index, row, rows } = now(), end = row === index.n - 1;
    sides.forEach((side, i) => {
      lines[i].draw({ title: sides.length > 1 ? `${"AB"[i]} · ${plain(side.index.data.name, 40)}` : "", shows: i === 0,
        passes: filterOn ? side.passes : null, version: `${version},${side.filter}`, dim: i !== active });
      lines[i].moveTo(side.row, spokenOf(side.index, side.row));
    });
    list.draw({ index, row, rows, place: placeOf(now()) });
    full.draw({ index, row, way, version: `${version},${active}` });
    filter.says(rows, index, filterOn);
    put(place, end ? `the end of ${count(index.n - 1)}` : `frame ${count(row + 1)} of ${count(index.n - 1)}`);
    const at = index.troubled.indexOf(row), many = index.troubled.length;
    put(which, !many ? "no problem" : at < 0 ? `${count(many)} ${many > 1 ? "places" : "place"} with problems` : `problem ${count(at + 1)} of ${count(many)}`);
    put(spoken, spokenOf(index, row));
    put(axis, scale.by === "time" ? "seconds" : "bytes");
    tabs.forEach((tab, i) => tab.setAttribute("aria-pressed", i === active));
    mark("first", row === 0);
    mark("back", row === 0);
    mark("next", end);
    mark("last", end);
    mark("before", !many || index.troubled[0] >= row);
    mark("after", !many || index.troubled.at(-1) <= row);
    mark("out", scale.whole());
    mark("fit", scale.whole());
  }
  const mark = (name, off) => buttons[name].setAttribute("aria-disabled", off);

  /** Ask each recording for its rows, if the filter is another one. */
  function refilter() {
    filtered = filter.get();
    filterOn = JSON.stringify(filtered) !== JSON.stringify(NO_FILTER);
    const key = JSON.stringify(filtered);
    for (const side of sides) {
      if (side.filter === key) continue;
      side.filter = key;
      side.rows = filterRows(side.index, filtered);
      side.passes = new Uint8Array(side.index.n);
      for (const row of side.rows) side.passes[row] = 1;
    }
  }

  // --- asking Python, which alone reads files
  function send(message, buffers) {
    try {
      model.send?.(message, undefined, buffers);
      return true;
    } catch { // the kernel is gone; scrubbing goes on without it
      return false;
    }
  }
  function await_(id, seconds) {
    waiting = id;
    const silence = "No answer from Python yet: the kernel is busy, or not running.";
    setTimeout(() => waiting === id && say(silence, "problem"), seconds * 1000);
  }
  const newId = () => `${Date.now()}-${Math.random()}`;
  function ask(action, more = {}) {
    if (!live) return;
    clearTimeout(settle);
    const id = newId();
    say("asking Python …");
    await_(id, 3);
    send({ frame: (sides[0]?.row ?? 0) + 1, request: { id, action, ...more } });
  }
  function pickFile(beside) {
    chooser.beside = beside;
    chooser.value = ""; // the same file again is a change too
    chooser.click();
  }
  async function sendFiles(found, beside) {
    const two = found.length > 1; // two at once: one, and the other beside it
    if (!found.length) return;
    await sendFile(found[0], !two && beside && sides.length > 0);
    if (two) await sendFile(found[1], true);
    if (found.length > 2) say(`the first two of ${found.length} files`);
  }
  async function sendFile(file, beside) {
    const most = model.get("most"), id = newId(), name = plain(file.name, 200), { size } = file;
    if (size > most) return say(`${name}: ${count(size)} bytes are too many, ${count(most)} at most`, "problem");
    try {
      for (let at = 0; at === 0 || at < size; at += PIECE) {
        const piece = await file.slice(at, at + PIECE).arrayBuffer();
        if (size > PIECE) say(`sending ${name}: ${count(Math.min(at + PIECE, size))} of ${count(size)} bytes`);
        if (!send({ file: { id, name: file.name, size, at, beside } }, [piece])) throw new Error("no kernel");
      }
    } catch (why) { // a folder, or a file that is gone
      return say(`${name} cannot be read here (${why.message})`, "problem");
    }
    say(`Python reads ${name} …`);
    await_(id, 20);
  }
  function hear() {
    heard = model.get("answer");
    if (!live || !heard) return;
    buttons.undo.disabled = !heard.undo;
    if (heard.id === waiting) waiting = null;
    say(plain(heard.text ?? "", 400), heard.ok === false ? "problem" : "");
  }
  function say(text, kind = "") {
    put(answer, text);
    answer.dataset.kind = kind;
  }

  // --- what Python sent
  function load() {
    const sent = [model.get("shown") ?? "", model.get("compared") ?? ""];
    const known = sides;
    const next = sent.filter(Boolean).map((text, i) =>
      text === texts[i] && known[i] ? known[i] : { index: indexRows(JSON.parse(text)), row: 0, rows: null, filter: null });
    texts = sent;
    sides = next;
    version += 1;
    active = Math.min(active, Math.max(sides.length - 1, 0));
    empty.hidden = sides.length > 0;
    inside.hidden = !sides.length;
    for (const name of ["beside", "save"]) if (buttons[name]) buttons[name].disabled = !sides.length;
    root.setAttribute("aria-label", `Inspector: ${sides.length ? plain(sides[0].index.data.name, 60) : "nothing is open"}`);
    loadStreams();
    if (!sides.length) {
      put(title, "Inspector");
      put(facts, "nothing is open");
      return;
    }
    sides.forEach((side, i) => lines[i].load(side.index));
    lines[1].el.hidden = pair.hidden = sides.length < 2;
    const { data } = sides[0].index;
    put(title, plain(data.name, 120));
    put(facts, factsOf(data));
    tabs.forEach((tab, i) => put(tab, sides[i] ? `${"AB"[i]} · ${plain(sides[i].index.data.name, 40)}` : ""));
    put(leftOut, sides.map(({ index }) => plain(index.data.left_out, 400)).filter(Boolean).join(" "));
    leftOut.hidden = !leftOut.textContent;
    doctor.draw(sides[0].index);
    numbers.draw(sides.map(({ index }) => index), model.get("comparison") ?? {});
    filter.load(now().index);
    setAxis(spreadInTime() ? "time" : "bytes");
    go(clamp((model.get("frame") ?? 1) - 1, 0, sides[0].index.n - 1), "python");
  }
  /** Whether seconds show anything: they do not where all came in one burst. */
  const spreadInTime = () => sides.every(({ index }) => index.axes.time && index.axes.time.at(-1) > 0 && new Set(index.axes.time.slice(0, 500)).size > 2);
  function factsOf({ facts: f, problems }) {
    const form = [f.form, f.where, f.request, f.status && `HTTP ${f.status}`, f.masked && `masked: ${f.masked}`];
    return [f.wire ?? "no known wire format", plain(f.model, 60), `${count(f.frames)} frames`, `${count(f.bytes)} bytes`,
      f.timed ? `${count(f.reads)} reads in ${duration(f.end_t)}` : "no times", `ends: ${f.ending}`,
      problems.row.length ? `${count(problems.row.length)} problems` : "", ...form.map((each) => plain(each ?? "", 120)), plain(f.note, 160), plain(f.truncated, 120)]
      .filter(Boolean).join(" · ");
  }
  function loadStreams() {
    const { first, second } = model.get("choices") ?? {};
    [first, second].forEach((side, i) => {
      const labels = side?.streams ?? [];
      streams[i].hidden = labels.length < 2;
      streams[i].replaceChildren(...labels.map((label, n) => h("option", { selected: n === side.chosen },
        `${i ? "B: " : ""}stream ${n + 1} of ${labels.length} ${plain(label, 100)}`)));
    });
    streams[0].parentElement.hidden = streams.every((each) => each.hidden);
  }
  // One message may change several traits: wait until all of them are there, then take them in order.
  let queued = false;
  function sync() {
    queued = false;
    const held = root.getRootNode().activeElement, inRoot = held && root.contains(held);
    if (model.get("shown") !== texts[0] || model.get("compared") !== texts[1]) load();
    else if (sides.length && model.get("frame") - 1 !== sides[0].row) {
      active = 0;
      go(model.get("frame") - 1, "python");
    }
    if (model.get("answer") !== heard) hear();
    if (inRoot && (!held.isConnected || held.disabled || !held.getClientRects().length)) root.focus({ preventScroll: true });
  }
  function onChange() {
    if (!queued) queueMicrotask(sync);
    queued = true;
  }
  function toggleHelp(open) {
    if (open === !help.hidden) return;
    help.hidden = !open;
    buttons.help.setAttribute("aria-expanded", open);
    (open ? help.querySelector("button") : buttons.help).focus();
  }

  // Lab acts on letters and arrows in command mode, so no plain key may pass the root.
  root.addEventListener("keydown", (event) => {
    const on = event.target, typing = on.localName === "input" && on.type === "search";
    if (event.ctrlKey || event.metaKey || event.altKey) return typing ? event.stopPropagation() : undefined;
    event.stopPropagation();
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (typing && key !== "Escape" && key !== "Enter" && key !== "ArrowDown") return;
    if (typing && key !== "Escape") return event.preventDefault(), list.body.focus({ preventScroll: true }), step(0);
    if (on.localName === "select" && key !== "Escape") return;
    if ((key === " " || key === "Enter") && ["button", "summary", "input"].includes(on.localName)) return;
    const name = commands.find(([, keys]) => keys.includes(key))?.[0];
    if (!name || (!sides.length && !["open", "undo", "help", "close"].includes(name))) return;
    event.preventDefault();
    if (!event.repeat || AGAIN.includes(name)) run[name]();
  });
  const hasFiles = ({ dataTransfer }) => live && dataTransfer?.types.includes("Files");
  function dragging(event) {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.stopPropagation();
    drop.show(event, sides.length > 0);
  }
  root.addEventListener("dragenter", dragging);
  root.addEventListener("dragover", dragging);
  root.addEventListener("dragleave", ({ relatedTarget }) => !root.contains(relatedTarget) && drop.show(null));
  root.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.stopPropagation();
    const beside = drop.show(event, sides.length > 0);
    drop.show(null);
    root.focus({ preventScroll: true }); // the keys go where the file went
    sendFiles([...event.dataTransfer.files], beside);
  });

  const traits = ["shown", "compared", "comparison", "choices", "frame", "answer"].map((name) => `change:${name}`);
  for (const name of traits) model.on(name, onChange);
  el.append(root);
  load();
  hear();
  draw();
  const resized = new ResizeObserver(schedule);
  resized.observe(root);
  return () => { // this view is closed; its model may live on
    clearTimeout(settle);
    cancelAnimationFrame(frame);
    resized.disconnect();
    for (const name of traits) model.off(name, onChange);
  };
}

export default { render };
