import { count } from "./steps.js";
import { duration, indexRows } from "./inspector_rows.js";
import { div, h, icon, plain, put, span } from "./inspector_marks.js";
import { makeScale, spokenOf, timeline } from "./inspector_time.js";
import { frameList } from "./inspector_list.js";
import { detail } from "./inspector_detail.js";
import { dropZone, filterBar, helpBox, keyName, numbersBox, verdictBox } from "./inspector_boxes.js";
import { makeSide, placeOf, refilter, walker } from "./inspector_walk.js";
import { talk } from "./inspector_talk.js";
import { hearDrops, hearKeys } from "./inspector_input.js";

// The Inspector's view. It gets a recording once and moves through it here; Python is asked only to
// read another one. Python joins these files to one module, in Jupyter and in a saved page:
//
//   steps.js             text that can be trusted           inspector_detail.js  one frame in full
//   inspector_rows.js    what was sent, as a lookup         inspector_boxes.js   verdict, numbers, filter
//   inspector_marks.js   elements, icons, safe text         inspector_walk.js    where it stands, and moves
//   inspector_time.js    the timeline                       inspector_talk.js    what Python is asked
//   inspector_list.js    the frames                         inspector_input.js   keys and drops
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
  ["jump", ["j"], "to where the verdict comes from", ""],
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
const FACES = { first: "first", back: "back", next: "next", last: "last", before: "before", after: "after", open: "open",
  beside: "compare", undo: "undo", save: "save" }; // icons; the others have a letter
const LETTERS = { out: "−", in: "+", fit: "fit", help: "?" };
const WORDS = { open: "open", beside: "compare", undo: "undo", save: "save" }; // said beside the icon
const LIVE = ["open", "beside", "undo", "save"]; // what a page without Python cannot do

const BEYOND = 1.02; // how far an axis goes on, so that what comes last is not on the edge
const TRAITS = ["shown", "compared", "comparison", "choices", "frame", "answer"];

/** The buttons, by the names of their commands. */
function makeButtons(commands, press) {
  return Object.fromEntries(commands.filter(([, , , group]) => group).map(([name, keys, label]) =>
    [name, h("button", {
      type: "button", class: WORDS[name] ? "worded" : "tool", "data-command": name, title: [label, ...keys.map(keyName)].join(" · "),
      "aria-label": label, onclick: () => press(name),
    }, FACES[name] ? icon(FACES[name]) : LETTERS[name], ...(WORDS[name] ? [span("word", WORDS[name])] : []))]));
}

/** What is said of a whole recording, under its name. */
function factsOf({ facts: f, problems }) {
  const status = f.status ? `HTTP ${f.status}` : "", told = String(f.note ?? "").startsWith(status); // a capture's note begins so
  const form = [f.form, f.where, f.request, told ? "" : status, f.masked && `masked: ${f.masked}`];
  return [f.wire ?? "no known wire format", plain(f.model, 60), `${count(f.frames)} frames`, `${count(f.bytes)} bytes`,
    f.timed ? `${count(f.reads)} reads in ${duration(f.end_t)}` : "no times", `ends: ${f.ending}`,
    problems.row.length ? `${count(problems.row.length)} problems` : "", ...form.map((each) => plain(each ?? "", 120)), plain(f.note, 160), plain(f.truncated, 120)]
    .filter(Boolean).join(" · ");
}

/** Name and facts of what is open, and the streams of its files. */
function heading(files, choose) {
  const title = h("strong", { class: "name" }), facts = span("facts");
  const streams = [0, 1].map((i) => h("select", { "aria-label": i ? "stream of the second file" : "stream of the file",
    onchange: () => choose(streams[i].selectedIndex + 1, Boolean(i)) }));
  const header = h("header", {}, div("titles", title, facts), files), below = div("streams", ...streams);
  return { header, below, draw(data, choices) {
    put(title, data ? plain(data.name, 120) : "Inspector");
    put(facts, data ? factsOf(data) : "nothing is open");
    [choices?.first, choices?.second].forEach((side, i) => {
      const labels = side?.streams ?? [];
      streams[i].hidden = labels.length < 2;
      streams[i].replaceChildren(...labels.map((label, n) => h("option", { selected: n === side.chosen },
        `${i ? "B: " : ""}stream ${n + 1} of ${labels.length} ${plain(label, 100)}`)));
    });
    below.hidden = streams.every((each) => each.hidden);
  } };
}

/** The row of buttons over the timeline, and where the view stands. */
function toolbar(buttons, group, flip) {
  const place = span("place"), which = span("which");
  const axis = h("button", { type: "button", class: "axisway", title: "along the seconds or the bytes · A", onclick: flip });
  const el = h("div", { class: "tools", role: "group", "aria-label": "frames" },
    span("set", ...group("move"), place), span("set", ...group("problem"), which), span("space"), span("set", axis, ...group("zoom")));
  const off = (names, is) => names.forEach((name) => buttons[name].setAttribute("aria-disabled", is));
  return { el, draw({ index, row }, scale) {
    const { troubled } = index, at = troubled.indexOf(row), many = troubled.length, end = row === index.n - 1;
    put(place, end ? `the end of ${count(index.n - 1)}` : `frame ${count(row + 1)} of ${count(index.n - 1)}`);
    put(which, !many ? "no problem" : at < 0 ? `${count(many)} ${many > 1 ? "places" : "place"} with problems` : `place ${count(at + 1)} of ${count(many)} with problems`);
    put(axis, scale.by === "time" ? "seconds" : "bytes");
    off(["first", "back"], row === 0);
    off(["next", "last"], end);
    off(["before"], !many || troubled[0] >= row);
    off(["after"], !many || troubled.at(-1) <= row);
    off(["out", "fit"], scale.whole());
  } };
}

/** Which of two recordings is looked at. */
function pairBar(live, choose, alone) {
  const tabs = [0, 1].map((i) => h("button", { type: "button", class: "tab", onclick: () => choose(i) }));
  const away = h("button", { type: "button", class: "tool", title: "no comparison", "aria-label": "take the second recording away", onclick: alone }, icon("close"));
  const el = h("div", { class: "pair", role: "group", "aria-label": "which recording" }, ...tabs, ...(live ? [away] : []));
  return { el, load(sides) {
    el.hidden = sides.length < 2;
    tabs.forEach((tab, i) => put(tab, sides[i] ? titleOf(sides[i], i) : ""));
  }, draw(active) {
    tabs.forEach((tab, i) => tab.setAttribute("aria-pressed", i === active));
  } };
}
const titleOf = ({ index }, i) => `${"AB"[i]} · ${plain(index.data.name, 40)}`;

/** What stands there before anything is open. */
const emptyBox = () => h("div", { class: "empty" }, icon("drop"), h("p", {}, h("b", {}, "Drop a recording here, or open a file.")),
  h("p", {}, "An event stream, one event a line, a timed recording, a HAR, a cassette, … up to 64 MB. It goes to this notebook's kernel, and nowhere else."));

/** Whether seconds show anything: they do not where all came in one burst. */
const spreadInTime = (sides) => sides.every(({ index: { axes } }) => axes.time && axes.time.at(-1) > 0 && new Set(axes.time.slice(0, 500)).size > 2);

function render({ model, el }) {
  const live = model.get("live") !== false; // a saved page has no Python to ask
  const commands = COMMANDS.filter(([name]) => live || !LIVE.includes(name));
  const view = { sides: [], active: 0, scale: makeScale(), way: "text", version: 0, filterOn: false };
  const { scale } = view, isOpen = () => view.sides.length > 0;
  let texts = ["", ""], frame = 0, stood = null; // the frame that the model last said

  const answer = h("p", { class: "answer", role: "status", "aria-live": "polite" });
  const python = talk(model, live, answer, { isOpen, frameNow: () => view.sides[0].row + 1,
    follow: () => { stood = view.sides[0].row + 1; model.set("frame", stood); },
    answered: ({ undo }) => { buttons.undo.disabled = !undo; } });
  const { now, go, step, trouble, jump, differ } = walker(view, { say: python.say,
    parting: () => model.get("comparison")?.first?.rows, filtered: () => refilter(view.sides, filter.get()),
    moved(mine) { // however many moves came, one picture a frame; Python hears where a drag ended
      python.stop();
      if (mine) python.tellSoon();
      schedule();
    } });

  const run = {
    first: () => step(-Infinity), back: () => step(-1), next: () => step(1), last: () => step(Infinity),
    pageUp: () => step(-list.page()), pageDown: () => step(list.page()),
    before: () => trouble(-1), after: () => trouble(1), jump, differ,
    filter: () => { filter.text.focus(); filter.text.select(); },
    way: () => setWay(view.way === "text" ? "hex" : "text"), axis: () => setAxis(scale.by === "time" ? "bytes" : "time"),
    in: () => zoom(0.5), out: () => zoom(2), fit: () => zoom(Infinity),
    other: () => view.sides.length > 1 && choose(1 - view.active),
    open: () => pickFile(false), beside: () => pickFile(true), undo: () => python.ask("undo"), save: () => python.ask("save"),
    help: () => toggleHelp(help.hidden), close: () => (help.hidden ? root.focus({ preventScroll: true }) : toggleHelp(false)),
  };

  // --- what stands where
  const buttons = makeButtons(commands, (name) => (isOpen() || ["open", "help", "undo"].includes(name)) && run[name]());
  const group = (wanted) => commands.filter(([, , , group]) => group === wanted).map(([name]) => buttons[name]);
  const files = h("div", { class: "files", role: "group", "aria-label": "files" }, ...group("file"));
  const head = heading(files, (stream, beside) => python.ask("choose", { stream, beside }));
  const doctor = verdictBox(jump), tools = toolbar(buttons, group, run.axis);
  const lines = [0, 1].map((i) => timeline(scale, { pick: (row) => { choose(i); go(row); }, zoomed: schedule, hasFocus: () => root.contains(root.getRootNode().activeElement) }));
  const numbers = numbersBox(differ), pair = pairBar(live, choose, () => python.ask("alone"));
  const filter = filterBar(schedule), list = frameList((row) => go(row)), full = detail(setWay);
  const leftOut = h("p", { class: "leftout" }), spoken = h("div", { class: "spoken", role: "status", "aria-live": "polite" });
  const help = helpBox(commands, () => toggleHelp(false)), drop = dropZone(), empty = emptyBox();
  const chooser = h("input", { type: "file", hidden: true, "aria-hidden": "true", onchange: () => python.sendFiles([...chooser.files], chooser.beside) });
  const inside = div("inside", doctor.el, tools.el, div("lines", ...lines.map((line) => line.el)), leftOut, numbers.el, pair.el, filter.el,
    div("panels", list.el, full.el));
  const root = h("div", { class: "sl-inspector", role: "group", tabindex: -1 }, head.header, head.below, answer, empty, inside,
    spoken, help, drop.el, chooser);

  // --- what is looked at
  function choose(side) {
    if (side === view.active || !view.sides[side]) return;
    view.active = side;
    filter.load(now().index);
    doctor.draw(now().index);
    schedule();
  }
  function setWay(next) {
    view.way = next;
    schedule();
  }
  function setAxis(by) {
    scale.by = view.sides.every(({ index }) => index.axes.time) ? by : "bytes";
    const ends = view.sides.map(({ index }) => (index.axes[scale.by] ?? index.axes.bytes).at(-1));
    scale.extent = Math.max(...ends, scale.by === "time" ? 1e-3 : 1) * BEYOND;
    scale.fit();
    schedule();
  }
  function zoom(factor) {
    if (factor === Infinity) scale.fit();
    else scale.zoom(factor, lines[view.active].place(now().row));
    schedule();
  }
  function toggleHelp(open) {
    if (open === !help.hidden) return;
    help.hidden = !open;
    buttons.help.setAttribute("aria-expanded", open);
    (open ? help.querySelector("button") : buttons.help).focus();
  }
  function pickFile(beside) {
    chooser.beside = beside;
    chooser.value = ""; // the same file again is a change too
    chooser.click();
  }

  // --- drawing
  function schedule() {
    frame ||= requestAnimationFrame(draw);
  }
  function draw() {
    frame = 0;
    if (!isOpen()) return;
    view.filterOn = refilter(view.sides, filter.get());
    const { sides, active, version, filterOn } = view, { index, row, rows } = now();
    sides.forEach((side, i) => {
      lines[i].draw({ title: sides.length > 1 ? titleOf(side, i) : "", shows: i === 0,
        passes: filterOn ? side.passes : null, version: `${version},${side.filter}`, dim: i !== active });
      lines[i].moveTo(side.row, spokenOf(side.index, side.row));
    });
    list.draw({ index, row, rows, place: placeOf(now()) });
    full.draw({ index, row, way: view.way, version: `${version},${active}` });
    filter.says(rows, index, filterOn);
    tools.draw(now(), scale);
    pair.draw(active);
    put(spoken, spokenOf(index, row));
  }

  // --- what Python sent
  function load() {
    const sent = [model.get("shown") ?? "", model.get("compared") ?? ""], known = view.sides;
    view.sides = sent.filter(Boolean).map((text, i) => (text === texts[i] && known[i] ? known[i] : makeSide(indexRows(JSON.parse(text)))));
    texts = sent;
    view.version += 1;
    view.active = Math.min(view.active, Math.max(view.sides.length - 1, 0));
    empty.hidden = isOpen();
    inside.hidden = !isOpen();
    for (const name of ["beside", "save"]) if (buttons[name]) buttons[name].disabled = !isOpen();
    const data = view.sides[0]?.index.data;
    root.setAttribute("aria-label", `Inspector: ${data ? plain(data.name, 60) : "nothing is open"}`);
    head.draw(data, model.get("choices"));
    if (data) loadSides(view.sides);
  }
  function loadSides(sides) {
    sides.forEach((side, i) => lines[i].load(side.index));
    lines[1].el.hidden = sides.length < 2;
    pair.load(sides);
    put(leftOut, sides.map(({ index }) => plain(index.data.left_out, 400)).filter(Boolean).join(" "));
    leftOut.hidden = !leftOut.textContent;
    doctor.draw(now().index);
    numbers.draw(sides.map(({ index }) => index), model.get("comparison") ?? {});
    filter.load(now().index);
    setAxis(spreadInTime(sides) ? "time" : "bytes");
    stand();
  }
  /** Stand where Python says, which speaks of the first recording. */
  function stand() {
    stood = model.get("frame");
    choose(0);
    go((stood ?? 1) - 1, "python");
  }
  // One message may change several traits: wait until all of them are there, then take them in order.
  let queued = false;
  function sync() {
    queued = false;
    const moved = model.get("frame") !== stood; // else it is where the person has left since
    stood = model.get("frame");
    const held = root.getRootNode().activeElement, inRoot = held && root.contains(held);
    if (model.get("shown") !== texts[0] || model.get("compared") !== texts[1]) load();
    else if (moved && isOpen() && stood - 1 !== view.sides[0].row) stand();
    python.hear();
    if (inRoot && (!held.isConnected || held.disabled || !held.getClientRects().length)) root.focus({ preventScroll: true });
  }
  function onChange() {
    if (!queued) queueMicrotask(sync);
    queued = true;
  }

  hearKeys(root, commands, { run, isOpen, leaveFilter: () => { list.body.focus({ preventScroll: true }); step(0); } });
  hearDrops(root, drop, { live, isOpen, took: python.sendFiles });
  const changes = TRAITS.map((name) => `change:${name}`);
  for (const name of changes) model.on(name, onChange);
  el.append(root);
  load();
  python.hear();
  draw();
  const resized = new ResizeObserver(schedule);
  resized.observe(root);
  return () => { // this view is closed; its model may live on
    python.stop();
    cancelAnimationFrame(frame);
    resized.disconnect();
    for (const name of changes) model.off(name, onChange);
  };
}

export default { render };
