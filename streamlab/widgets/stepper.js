import { clip, count, cutsIn, indexTrace, spread, viewAt, visible } from "./steps.js";

// The Stepper's view. It gets the whole trace once, so scrubbing never asks Python for anything;
// Python joins this file to `steps.js`, and the two are one module, in Jupyter and in a saved page.
//
// 1. marks        elements, icons, and text that cannot become markup
// 2. panels       each is { el, draw(view) } and knows nothing of the others
// 3. the machine  states and edges come from Python's table; only the layout is ours
// 4. the menu     every fault, as Python lists them
// 5. render       commands, keys, the clock, and the two-way talk with the model
//
// A recording comes from a stranger: every string of it reaches the page through a text node only.
// The model is used by get, set, on, off and save_changes alone, and by send where there is one, so
// a page can bring its own.
//
// Where the view stands is `at`: a step, and how many moves of the person had been made or heard of
// by then. An `at` that knows fewer moves than the view has made is older than what the person did
// last, and is passed over: Python will hear of the move, and stand there too.

// ------------------------------------------------------------------------------- 1. marks

const SVG = "http://www.w3.org/2000/svg";
const ICONS = { // 16 × 16, drawn in the colour of the text; states have one each
  first: "M4 3v10M13 3 6.5 8l6.5 5z", back: "M10.5 3 4.5 8l6 5z", next: "M5.5 3l6 5-6 5z",
  last: "M12 3v10M3 3l6.5 5L3 13z", play: "M5 3l8 5-8 5z", pause: "M5 3v10M11 3v10",
  undo: "M6 3 3 6l3 3M3 6h6.5a3.5 3.5 0 0 1 0 7H6", redo: "M10 3l3 3-3 3M13 6H6.5a3.5 3.5 0 0 0 0 7H10",
  reset: "M3 8a5 5 0 1 0 1.6-3.7M3 2.5v3h3", save: "M8 2.5v7M5 7l3 3 3-3M3 13h10",
  copy: "M6 6h7v7H6zM3 10V3h7", down: "M4 6l4 4 4-4", close: "M4 4l8 8M12 4l-8 8",
  bolt: "M9 2 4 9h4l-1 5 5-7H8z", alert: "M8 2.5 14 13H2zM8 6.5v3M8 11.2v.3",
  PREVIEW: "M3 8h.01M8 8h.01M13 8h.01", MESSAGE_COMPLETE: "M3.5 3.5h9v9h-9z",
  VALIDATED_PROPOSAL: "M3 8.5 6.5 12 13 4.5", COMMITTING: "M2.5 8h8M7.5 5l3 3-3 3M13.5 3v10",
  COMMITTED: "M8 2a6 6 0 1 1-.01 0zM5 8.2l2.2 2.2L11 6", HELD: "M5.5 3.5v9M10.5 3.5v9",
  RECONCILING: "M5.5 6a2.5 2.5 0 1 1 2.5 3v1.5M8 13v.2", INCOMPLETE: "M2 8h4l2-4M9.5 12 11 8h3",
  ABORTED: "M8 2.5a5.5 5.5 0 1 1-.01 0zM4.2 4.2l7.6 7.6", INVALID: "M4 4l8 8M12 4l-8 8",
};
const TONES = {
  VALIDATED_PROPOSAL: "good", COMMITTED: "good", COMMITTING: "warn", RECONCILING: "warn",
  HELD: "warn", ABORTED: "warn", INCOMPLETE: "bad", INVALID: "bad",
};
const tone = (state) => `tone-${TONES[state] ?? "plain"}`;
const numbered = ({ id, kind, name }) => `${short(id, 12)} · ${short(name || kind, 40)}`; // two may have one name
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const short = (value, most) => clip(String(value ?? ""), most).text;

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

function icon(name, place = {}) {
  const path = svg("path", { d: ICONS[name] ?? "" });
  return svg("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true", ...place }, path);
}

function put(el, text) {
  if (el.textContent !== text) el.textContent = text;
}

/** Raw text as nodes: a sign for each character that can't be seen, a tick where a read began. */
function signed(text, { breaks = true, cuts = [] } = {}) {
  const nodes = [];
  let from = 0;
  for (const [end, chunk] of [...cuts, [text.length, null]]) {
    for (const { text: piece, sign } of visible(text.slice(from, end))) {
      if (sign) nodes.push(h("b", { class: "sign" }, sign));
      else if (!breaks) nodes.push(piece);
      else nodes.push(...piece.split(/(?<=[,{])/).flatMap((part) => [part, h("wbr")])); // JSON has no spaces
      if (breaks && piece === "\n") nodes.push("\n");
    }
    if (chunk !== null) nodes.push(h("b", { class: "cut" }, `chunk ${chunk}`));
    from = end;
  }
  return nodes;
}

// ------------------------------------------------------------------------------ 2. panels

function panel(label, name) {
  const body = h("div", { class: "body", tabindex: 0, role: "group", "aria-label": label });
  const aside = span("aside"), foot = div("foot");
  const el = h("section", { class: `panel ${name}` }, div("head", span("name", label), aside), body, foot);
  return { el, body, aside, foot };
}

const ROW = 22, OPEN = 96, ABOVE = 66; // px: a frame; what the current one has more; where it stands
const UNDER = 12; // px that stay free under the part in change
const NO_BYTES = {
  end: "No bytes: this is how the connection stopped.",
  cancelled: "No bytes: we cancelled.",
  gates: "No bytes: the gates judged the whole message.",
  cancel: "No bytes: we cancelled.",
  redeliver: "No new bytes: an envelope that was handled before came again.",
  late: "No bytes: a callback that comes too late.",
  bound: "One of our own bounds was passed.",
  commit: "No bytes: the commit has begun, if this state allows one.",
  effect: "No bytes: the effect was submitted, and this is what came of it.",
  reconcile: "No bytes: we asked for the record of the effect.",
};

const noBytes = ({ kind, name }) =>
  NO_BYTES[kind === "end" && name === "cancelled" ? name : kind] ?? "No bytes.";

/** The raw frames. Only those in sight exist; the current one always stands at the same height. */
function wirePanel(go) {
  const { el, body, aside, foot } = panel("on the wire", "wire");
  foot.remove();
  const sheet = div("sheet"), rows = new Map();
  body.append(sheet);
  let view = null;
  sheet.addEventListener("click", (event) => {
    const row = event.target.closest(".row:not(.now)");
    if (row && !String(getSelection())) go(Number(row.dataset.k));
  });
  body.addEventListener("scroll", () => view && fill(), { passive: true });

  const rank = (i) => (i === view.k ? "now" : i < view.k ? "before" : "after");

  function makeRow(i) {
    const step = view.index.steps[i - 1], last = view.index.steps[i - 2];
    const starts = step.chunk != null && step.chunk !== last?.chunk; // a network read begins here
    const what = span("what", step.injected ? icon("bolt") : "", short(step.name ?? step.kind, 60));
    const events = (step.events ?? []).slice(0, 3).map(({ type }) => type).join(", ");
    const tail = i === view.k ? span("means", events && `→ ${events}`)
      : span("tail", h("span", {}, ...signed((step.raw ?? "").slice(-90), { breaks: false })));
    const kinds = ["row", rank(i), step.raw ? "bytes" : "control", starts ? "starts" : ""].join(" ");
    const row = h("div", { class: kinds, "data-k": i },
      span("chunk", starts ? `chunk ${step.chunk}` : ""), span("n", String(i)), what, tail);
    if (i === view.k) row.append(rawOf(step));
    row.style.top = `${ABOVE + (i - 1) * ROW + (i > view.k ? OPEN : 0)}px`;
    return row;
  }

  function rawOf(step) {
    if (!step.raw) return h("pre", { class: "raw" }, h("i", {}, noBytes(step)));
    const { note } = clip(step.raw, 8000);
    const cuts = cutsIn(step, view.index.chunks).filter(([position]) => position < 8000);
    const more = note ? [h("i", {}, `\n… ${note}`)] : [];
    return h("pre", { class: "raw" }, ...signed(step.raw.slice(0, 8000), { cuts }), ...more);
  }

  function fill() {
    const n = view.index.steps.length;
    const first = clamp(Math.floor((body.scrollTop - ABOVE - OPEN) / ROW), 1, n);
    const end = Math.min(first + Math.ceil((body.clientHeight + OPEN) / ROW) + 3, n);
    for (const [i, row] of rows) {
      const needed = i === view.k || (i >= first && i <= end); // the current one may hold the focus
      if (needed && row.rank === rank(i)) continue;
      row.el.remove();
      rows.delete(i);
    }
    for (let i = first; i <= end; i++) {
      if (rows.has(i)) continue;
      rows.set(i, { el: makeRow(i), rank: rank(i) });
      sheet.append(rows.get(i).el);
    }
  }

  function draw(next) {
    if (next.index !== view?.index) {
      rows.clear();
      sheet.replaceChildren();
    }
    view = next;
    const { start, end, raw } = view.step;
    put(aside, raw ? `bytes ${count(start)} to ${count(end)}` : "");
    sheet.style.height = `${(view.index.steps.length - 1) * ROW + body.clientHeight}px`;
    body.scrollTop = (view.k - 1) * ROW;
    fill();
  }
  return { el, draw };
}

/** What a person sees: the display buffer. It may be partial, and it is never what is kept. */
function screenPanel() {
  const { el, body, foot } = panel("on screen", "screen");
  const opened = new Set();
  let shown = new Map(), index = null;

  function make(part) {
    const node = { note: h("i", { class: "note" }), text: h("span"), fresh: span("fresh") };
    const words = div("words", node.note, node.text, node.fresh);
    if (part.kind === "text") return { ...node, el: div("part text", words) };
    const title = span("title"), chip = span("chip"), label = h("span");
    const fold = h("details", { open: opened.has(part.id) }, h("summary", {}, label), words);
    fold.addEventListener("toggle", () => opened[fold.open ? "add" : "delete"](part.id));
    const card = div("part card", div("top", title, chip), fold);
    card.dataset.kind = part.kind;
    return { ...node, el: card, title, chip, label };
  }

  function update(node, part) {
    const { text, note } = clip(part.text.slice(0, part.old), 4000, true);
    put(node.note, note && `… ${note}\n`);
    put(node.text, text);
    put(node.fresh, clip(part.text.slice(part.old), 4000, true).text);
    node.el.classList.toggle("open", part.status === "streaming");
    if (!node.chip) return;
    const name = part.name || (part.kind === "tool_call" ? "(no name)" : part.kind);
    put(node.title, `${short(part.id, 12)} · ${short(name, 60)}`);
    put(node.chip, part.server ? `${part.status}, run by the provider` : part.status);
    node.chip.dataset.status = part.status;
    const parsed = part.status === "ready" ? "parsed" : part.status === "error" ? "not JSON" : "a fragment";
    const what = part.kind === "tool_call" ? `input, ${parsed}` : "text";
    const notes = part.notes.slice(-3).map((text) => short(text, 80));
    put(node.label, [`${what}, ${count(part.text.length)} characters`, ...notes].join(" · "));
  }

  function draw(view) {
    const parts = view.parts.slice(-60), alive = new Set(parts.map((part) => part.id));
    for (const [id, node] of shown) {
      if (index === view.index && alive.has(id)) continue;
      node.el.remove();
      shown.delete(id);
    }
    index = view.index;
    for (const part of parts) {
      if (!shown.has(part.id)) {
        shown.set(part.id, make(part));
        body.append(shown.get(part.id).el);
      }
      update(shown.get(part.id), part);
    }
    const newest = parts.reduce((a, b) => (b.last >= a.last ? b : a), parts[0]); // not always the last one
    const changed = shown.get(newest?.id)?.el;
    if (changed) body.scrollTop = changed.offsetTop + changed.offsetHeight + UNDER - body.clientHeight;
    put(foot, view.said);
    foot.title = view.said;
  }
  return { el, draw };
}

/** What the conversation keeps, and so what the next request would hold. */
function keptPanel() {
  const { el, body, foot } = panel("kept in the conversation", "kept");
  let drawn = null;

  function message({ role, text: whole }, isNew) {
    const { text, note } = clip(String(whole ?? ""), 2000);
    const words = div("words", text, h("i", { class: "note" }, note && `\n… ${note}`));
    return div(`message ${isNew ? "new" : ""}`, span("role", short(role, 20)), words);
  }

  function draw({ history, before, index, k }) {
    if (drawn !== history) {
      drawn = history;
      const skipped = Math.max(history.length - 40, 0);
      body.replaceChildren(...history.slice(skipped).map((each, i) => message(each, skipped + i >= before)));
      body.scrollTop = body.scrollHeight;
    }
    const over = k === index.steps.length;
    put(foot, history.length > before ? "This turn is kept."
      : over ? "Nothing is kept; a retry starts here." : "Nothing of this turn yet.");
  }
  return { el, draw };
}

/** Time from left to right: states, segments, marks, and what an injection cut off. */
function timeline(go) {
  const slider = h("input", { type: "range", min: 1, step: 1, "aria-label": "step" });
  const ghostName = h("span", { class: "ghostname", title: "what would have been" },
    span("long", "what would have been"), span("short", "cut off"));
  const marks = div("marks"), states = h("div", { class: "lane states", role: "img" });
  const parts = h("div", { class: "lane parts", role: "img" }), cursor = div("cursor");
  const track = div("track", div("lead", slider, ghostName), marks, states, parts, cursor);
  const labels = h("div", { class: "labels", "aria-hidden": "true" },
    ...["step", "", "state", "parts"].map((name) => span("label", name)));
  const el = div("timeline", labels, track);
  let index = null;

  // The slider's thumb is 16 px wide, so step 1 is drawn 8 px from the left and the last from the right.
  const width = () => Math.max(index.total - 1, 1);
  const share = (position) => clamp((position - 1) / width(), 0, 1);
  const x = (position) => `calc(8px + (100% - 16px) * ${share(position)})`;

  function pick(event) {
    const box = track.getBoundingClientRect();
    go(Math.round(1 + ((event.clientX - box.left - 8) / (box.width - 16)) * width()));
  }
  for (const lane of [marks, states, parts]) {
    lane.addEventListener("pointerdown", (event) => {
      lane.setPointerCapture(event.pointerId);
      pick(event);
    });
    lane.addEventListener("pointermove", (event) => lane.hasPointerCapture(event.pointerId) && pick(event));
  }
  slider.addEventListener("input", () => go(Number(slider.value)));

  function bar(name, { from, to }, ...children) {
    const el = div(`bar ${name}`, ...children);
    el.style.left = x(from - 0.5);
    el.style.width = `calc((100% - 16px) * ${share(to + 0.5) - share(from - 0.5)})`;
    return el;
  }
  function run(each, i, all) {
    const spills = i === all.length - 1 && index.ghost.length; // its name has room over the ghost
    const el = bar(`run ${tone(each.state)} ${spills ? "spill" : ""}`, each, icon(each.state), span("word", each.state));
    el.title = each.state;
    return el;
  }
  function part(each, ghost) {
    const name = ghost ? "" : numbered(each);
    const el = bar(ghost ? "part ghost" : "part", each, span("word", name));
    el.dataset.kind = each.kind;
    el.style.top = `${Math.min(each.lane, 3) * 16}px`;
    return el;
  }
  function mark({ at, sign, what }) {
    const el = h("span", { class: `mark ${sign}`, title: short(what, 200) }, icon(sign));
    el.style.left = x(at);
    return el;
  }

  function load(next) {
    index = next;
    const { steps, ghost, runs, total } = index, n = Math.max(steps.length, 1);
    slider.max = n;
    slider.style.flexBasis = `calc(16px + (100% - 16px) * ${share(n)})`;
    ghostName.hidden = !ghost.length;
    marks.replaceChildren(...index.marks.map(mark));
    states.replaceChildren(...spread(runs, width()).map(run));
    if (ghost.length) states.append(bar("ghost", { from: n + 1, to: total }));
    parts.replaceChildren(...index.parts.slice(0, 400).map((each) => part(each, false)),
      ...index.ghostParts.slice(0, 200).map((each) => part(each, true)));
    parts.style.height = `${16 * clamp(1 + Math.max(0, ...index.parts.map((each) => each.lane)), 1, 4)}px`;
    const told = (name, { from, to }) => `${short(name, 40)} from step ${from} to ${to}`;
    const cut = ghost.length ? [`${ghost.length} steps were cut off`] : [];
    states.setAttribute("aria-label", ["states:", ...runs.map((each) => told(each.state, each)), ...cut].join(", "));
    const named = index.parts.slice(0, 40).map((each) => told(numbered(each), each));
    parts.setAttribute("aria-label", ["parts:", ...named].join(", "));
  }

  function draw(view) {
    if (view.index !== index) load(view.index);
    if (Number(slider.value) !== view.k) slider.value = view.k;
    const done = (view.k - 1) / Math.max(index.steps.length - 1, 1);
    slider.style.setProperty("--done", `${100 * done}%`);
    slider.setAttribute("aria-valuetext", `step ${view.k} of ${index.steps.length}, ${view.step.state}`);
    cursor.style.left = x(view.k);
  }
  return { el, draw };
}

// ------------------------------------------------------------------------- 3. the machine

const PLACES = [ // the way to an effect above, the ways out below
  ["PREVIEW", "MESSAGE_COMPLETE", "VALIDATED_PROPOSAL", "COMMITTING", "COMMITTED"],
  ["INCOMPLETE", "INVALID", "HELD", "ABORTED", "RECONCILING"],
];
const WIDE = { box: 40, between: 20, down: 46 }; // px: a box's height, the gaps beside and under it
const SLIM = { box: 34, between: 14, down: 36 };
const LEAST = 540; // px: in less, the machine is scrolled
const LINE = 15; // px between a label's two lines: the first ends in an underscore

const GATE_SIGNS = { waiting: "·", unchecked: "–", passed: "✓", failed: "✕" };

function attemptPanel(machine) {
  const picture = svg("svg", { class: "machine", role: "img" });
  const frame = h("div", { class: "frame", role: "group", "aria-label": "the machine" }, picture), exits = h("p", { class: "exits" });
  const gates = h("ul", { class: "gates", "aria-label": "gates" });
  const el = h("section", { class: "attempt" },
    div("left", div("head", span("name", "attempt")), frame, exits),
    div("right", div("head", span("name", "gates")), gates));
  const states = new Map((machine.states ?? []).map((state) => [state.name, state]));
  const edges = joined(machine.edges ?? []).filter(([from, to]) => states.has(from) && states.has(to));
  let boxes = new Map(), lines = [], width = 0, drawn = null, size = WIDE;

  function build() {
    const { box: high, down } = size, between = width < 640 ? 8 : size.between;
    const wide = (width - 4 * between) / 5;
    const others = [...states.keys()].filter((name) => !PLACES.flat().includes(name));
    const rows = [...PLACES, ...(others.length ? [others] : [])];
    const at = new Map(rows.flatMap((names, row) => names.map((name, column) =>
      [name, { row, column, wide, high, x: column * (wide + between), y: 1 + row * (high + down) }])));
    const height = rows.length * (high + down) - down + 2;
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.setAttribute("height", height);
    picture.setAttribute("width", width);
    lines = edges.map(([from, to]) =>
      ({ from, to, el: svg("path", { class: "edge", d: route(at.get(from), at.get(to)) }) }));
    boxes = new Map([...states.keys()].map((name) => [name, box(name, at.get(name))]));
    picture.replaceChildren(...lines.map((line) => line.el), ...boxes.values());
    drawn = null;
  }

  function box(name, { x, y, wide, high }) {
    const words = wide < 160 ? name.split(/(?<=_)/) : [name], near = wide < 110 ? 3 : 0;
    const lines = words.map((word, i) =>
      svg("text", { x: x + 25 - near, y: y + high / 2 + 3.5 + LINE * (i - (words.length - 1) / 2) }, word));
    return svg("g", { class: `box ${tone(name)}` },
      svg("rect", { x: x + 1, y, width: Math.max(wide - 2, 0), height: high, rx: 5 }),
      icon(name, { x: x + 7 - near, y: y + high / 2 - 7, width: 14, height: 14 }), ...lines,
      svg("title", {}, states.get(name).said ?? name));
  }

  function light(path) {
    const now = path.at(-1), taken = new Set(path.slice(1).map((state, i) => `${path[i]} ${state}`));
    for (const [name, el] of boxes) {
      el.classList.toggle("now", name === now);
      el.classList.toggle("been", name !== now && path.includes(name));
    }
    for (const { from, to, el } of lines) {
      el.classList.toggle("taken", taken.has(`${from} ${to}`));
      el.classList.toggle("open", from === now);
    }
    picture.setAttribute("aria-label", `the attempt came through ${path.join(", ")}`);
    const ways = edges.filter(([from]) => from === now).map(([, to, inputs]) => `${inputs.join(", ")} → ${to}`);
    const final = `${now} is final: nothing that arrives later revives it`;
    put(exits, ways.length ? `from here: ${ways.join(" · ")}` : final);
  }

  function judge({ index, verdicts }) {
    const found = new Map(verdicts.map((verdict) => [verdict.gate, verdict]));
    const names = [...new Set([...(index.trace.gate_names ?? []), ...found.keys()])];
    while (gates.children.length > names.length) gates.lastChild.remove();
    while (gates.children.length < names.length) gates.append(h("li", {}, h("b"), span("gate"), span("saw")));
    const decided = !verdicts.length || verdicts.at(-1).passed === false;
    const otherwise = decided ? "not reached" : "no call to judge";
    names.forEach((name, i) => {
      const row = gates.children[i], [sign, gate, saw] = row.children, verdict = found.get(name);
      const kind = !verdict ? "waiting" : verdict.passed == null ? "unchecked" : verdict.passed ? "passed" : "failed";
      row.className = kind;
      put(sign, GATE_SIGNS[kind]);
      put(gate, short(name, 40).replaceAll("_", " "));
      put(saw, !verdict ? otherwise : `${kind === "unchecked" ? "not checked: " : ""}${short(verdict.saw, 300)}`);
      row.title = saw.textContent;
    });
  }

  function draw(view) {
    const room = Math.round(frame.clientWidth), here = Math.max(room, LEAST);
    const fits = frame.clientWidth > 0.75 * el.clientWidth ? SLIM : WIDE; // below each other, height is dear
    if (here !== width || fits !== size) {
      width = here;
      size = fits;
      build();
    }
    frame.tabIndex = room < here ? 0 : -1; // what is scrolled is reached by keyboard too
    const path = view.index.runs.filter((run) => run.from <= view.k).map((run) => run.state);
    if (path.join() !== drawn) light(path);
    drawn = path.join();
    judge(view);
  }
  return { el, draw };
}

/** Edges that join the same two states, as one: [from, to, inputs]. */
function joined(edges) {
  const out = new Map();
  for (const [from, input, to] of edges) {
    if (from === to) continue;
    const key = `${from} ${to}`;
    if (!out.has(key)) out.set(key, [from, to, []]);
    out.get(key)[2].push(input);
  }
  return [...out.values()];
}

/** A line from box to box, with its tip: straight along a row, an S between rows. */
function route(a, b) {
  if (a.row === b.row) {
    const right = b.column > a.column, tip = right ? 5 : -5;
    const [from, to] = right ? [a.x + a.wide, b.x - 2] : [a.x, b.x + b.wide + 2];
    return `M${from} ${a.y + a.high / 2}H${to}m${-tip} -4l${tip} 4l${-tip} 4`;
  }
  const down = b.row > a.row, tip = down ? 5 : -5;
  const lean = clamp((b.column - a.column) * 14, -40, 40); // edges of one box leave side by side
  const [x1, x2] = [a.x + a.wide / 2 + lean, b.x + b.wide / 2 - lean];
  const [y1, y2] = down ? [a.y + a.high, b.y - 2] : [a.y, b.y + b.high + 2];
  const middle = (y1 + y2) / 2;
  return `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}m-4 ${-tip}l4 ${tip}l4 ${-tip}`;
}

// ---------------------------------------------------------------------------- 4. the menu

/** Every fault, in columns by kind; below them, what the one says that is pointed at. */
function faultMenu(items, choose) {
  const says = h("p", { class: "says", "aria-hidden": "true" });
  const entries = items.map((item, i) => {
    const about = item.cannot ? `Not on this wire: ${item.cannot}.` : item.says;
    const el = h("button", { type: "button", role: "menuitem", tabindex: -1, "aria-description": about,
      "aria-disabled": item.cannot ? "true" : undefined, "data-item": `${item.action} ${item.fault}`.trim() }, item.label);
    let pointing = false; // a finger points and presses at once: its first tap only points
    el.addEventListener("pointerdown", ({ pointerType }) => (pointing = pointerType === "touch" && active() !== el));
    el.addEventListener("pointermove", ({ pointerType }) => pointerType !== "touch" && active() !== el && look(i));
    el.addEventListener("focus", () => {
      last = i;
      put(says, about);
    });
    el.addEventListener("click", () => {
      if (pointing || item.cannot) look(i);
      else {
        close(true);
        choose(item);
      }
      pointing = false;
    });
    return el;
  });
  const kinds = [...new Set(items.map((item) => item.kind))];
  const columns = kinds.map((kind) => entries.filter((_, i) => items[i].kind === kind));
  const list = div("kinds", ...kinds.map((kind, i) =>
    h("div", { class: "kind", role: "group", "aria-label": kind }, span("name", kind), ...columns[i])));
  const more = span("below", "↓ there is more below");
  const keys = h("p", { class: "keys", "aria-hidden": "true" },
    span("", "arrows move · Enter injects · F or Esc closes"), more);
  const el = h("div", { class: "menu", role: "menu", "aria-label": "every fault", hidden: true }, list, says, keys);
  const button = h("button", { type: "button", class: "more", "aria-haspopup": "menu", "aria-expanded": "false",
    title: "every fault · F opens and closes", onclick: () => (el.hidden ? open() : close(true)) }, "more faults", icon("down"));
  let last = 0; // where it opens: at what was chosen or looked at before

  const active = () => el.getRootNode().activeElement;
  const look = (i) => entries.at(i % items.length)?.focus();
  function below() { // a scrollbar may be hidden until one scrolls
    const left = list.scrollHeight - list.clientHeight - list.scrollTop > 4;
    list.classList.toggle("cut", left);
    more.hidden = !left;
  }
  list.addEventListener("scroll", below, { passive: true });
  new ResizeObserver(below).observe(list);
  function open() {
    el.hidden = false;
    button.setAttribute("aria-expanded", "true");
    look(last);
    el.scrollIntoView({ block: "nearest" });
    below();
  }
  function close(back) {
    el.hidden = true;
    button.setAttribute("aria-expanded", "false");
    if (back) button.focus({ preventScroll: true });
  }
  function beside(i, step) { // the same row of the next column, round and round
    const from = columns.findIndex((column) => column.includes(entries[i]));
    const to = columns[(from + step + columns.length) % columns.length];
    return entries.indexOf(to[Math.min(columns[from].indexOf(entries[i]), to.length - 1)]);
  }
  const moves = {
    ArrowDown: (i) => i + 1, ArrowUp: (i) => i - 1, ArrowRight: (i) => beside(i, 1), ArrowLeft: (i) => beside(i, -1),
    Home: () => 0, End: () => -1,
  };
  function begins(i, letter) { // the next item that begins so
    const after = (n) => (i + 1 + n) % items.length;
    const n = items.findIndex((_, n) => items[after(n)].label.startsWith(letter));
    return n < 0 ? i : after(n);
  }
  el.addEventListener("keydown", (event) => {
    const { key } = event, i = entries.indexOf(active());
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopPropagation();
    if (key === "Escape" || key.toLowerCase() === "f") close(true);
    else if (key === "Tab" || key === "Enter" || key === " ") return; // leave it, or choose
    else if (Object.hasOwn(moves, key)) look(moves[key](i));
    else if (key.length === 1) look(begins(i, key.toLowerCase()));
    event.preventDefault();
  });
  button.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    open();
  });
  el.addEventListener("focusout", ({ relatedTarget: next }) => {
    if (!el.hidden && !el.contains(next) && next !== button) close(false);
  });
  return { el, button, open };
}

// ------------------------------------------------------------------------------ 5. render

const COMMANDS = [ // name, keys, what it does, where its button is; keyboard and help are this table too
  ["first", ["Home"], "first step", "move"],
  ["back", ["ArrowLeft"], "one step back", "move"],
  ["play", [" ", "p"], "play or pause", "move"],
  ["next", ["ArrowRight"], "one step on", "move"],
  ["last", ["End"], "last step", "move"],
  ["slower", ["-"], "play slower", ""],
  ["faster", ["+", "="], "play faster", ""],
  ["undo", ["u"], "undo the last injection", "edit"],
  ["redo", ["y"], "do it again", "edit"],
  ["reset", ["r"], "back to the recording as it was", "edit"],
  ["save", [], "save as one HTML file", "edit"],
  ["faults", ["f"], "show or hide every fault", ""],
  ["help", ["?"], "show or hide this help", "edit"],
  ["close", ["Escape"], "close the help or the faults", ""],
];
const KEY_NAMES = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc", Home: "Home", End: "End" };
const FROM_PYTHON = ["undo", "redo", "reset", "save"];
const LIVE = [...FROM_PYTHON, "faults"]; // what a page without Python cannot do
const ENDINGS = ["eof", "cut", "reset", "timeout"];
const FAULTS = { // what Python is asked for, and what the button says
  cancel: "cancel", error: "error event", token_limit: "token limit",
  redeliver: "redeliver", late: "late callback", unknown: "unknown event",
};
const UNTOUCHED = "trace(script)"; // the code of a recording as it was
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
const keyName = (key) => KEY_NAMES[key] ?? key.toUpperCase();

function helpBox(commands, close) {
  const rows = commands.filter(([, keys]) => keys.length).flatMap(([, keys, label]) =>
    [h("dt", {}, ...keys.map((key) => h("kbd", {}, keyName(key)))), h("dd", {}, label)]);
  const shut = h("button", { type: "button", class: "tool", "aria-label": "close", onclick: close }, icon("close"));
  return h("div", { class: "help", role: "dialog", "aria-label": "keys", hidden: true },
    div("head", span("name", "keys"), shut), h("dl", {}, ...rows),
    h("p", {}, "Click a frame or a timeline to go there. Python folds the stream; this view moves a pointer."));
}

/** `tally` is the step and the count of moves; who draws several views one after another keeps it. */
function render({ model, el, tally = { step: 1, moves: 0 } }) {
  const live = model.get("live") !== false; // a saved page has no Python to ask
  const commands = COMMANDS.filter(([name]) => live || !LIVE.includes(name));
  let text = null, heard = null, stood = null, index = indexTrace({});
  let k = 0, frame = 0, settle = 0, clock = 0, speed = 1, waiting = null;

  const run = {
    first: () => go(1), back: () => go(k - 1), next: () => go(k + 1), last: () => go(index.steps.length),
    play: () => (clock ? pause() : play()),
    slower: () => setSpeed(SPEEDS.indexOf(speed) - 1), faster: () => setSpeed(SPEEDS.indexOf(speed) + 1),
    help: () => toggleHelp(help.hidden), close: () => toggleHelp(false), faults: () => menu.open(),
    ...Object.fromEntries(FROM_PYTHON.map((name) => [name, () => ask(name)])),
  };

  // --- what stands where
  const buttons = Object.fromEntries(commands.filter(([, , , group]) => group).map(([name, keys, label]) =>
    [name, h("button", {
      type: "button", class: "tool", title: [label, ...keys.map(keyName)].join(" · "), "aria-label": label,
      onclick: run[name],
    }, ICONS[name] ? icon(name) : "?")]));
  const group = (wanted) => commands.filter(([, , , group]) => group === wanted).map(([name]) => buttons[name]);
  const pace = h("select",
    { "aria-label": "speed", title: "speed · - · +", onchange: () => setSpeed(pace.selectedIndex) },
    ...SPEEDS.map((each) => h("option", { selected: each === speed }, `${each}×`)));
  const place = span("place"), title = h("strong", { class: "name" }), facts = span("facts");
  const tools = h("div", { class: "tools", role: "group", "aria-label": "steps" },
    ...group("move"), pace, place, span("space"), ...group("edit"));

  const stateSign = span("sign"), stateName = h("b", { class: "state" }), stepName = span("event");
  const why = h("p", { class: "why" }), problem = h("p", { class: "problem" });
  const headline = div("headline", div("badge", stateSign, stateName, stepName), div("reason", why, problem));
  const spoken = h("div", { class: "spoken", role: "status", "aria-live": "polite" });

  const time = timeline(go), wire = wirePanel(go), screen = screenPanel(), kept = keptPanel();
  const attempt = attemptPanel(model.get("machine") ?? {});
  const drawers = [time, wire, screen, kept, attempt];

  const fault = (action, label) =>
    h("button", { type: "button", "data-action": action, onclick: () => ask(action) }, label);
  const ending = h("select", { "aria-label": "how the connection stops" },
    ...ENDINGS.map((each) => h("option", {}, each)));
  const menu = faultMenu(model.get("menu") ?? [], (item) => ask(item.action, item.fault));
  const here = span("name"), answer = h("p", { class: "answer", role: "status", "aria-live": "polite" });
  const faults = [here, span("pair", fault("disconnect", "disconnect"), ending),
    ...Object.entries(FAULTS).map(([action, label]) => fault(action, label)), menu.button, menu.el];
  const inject = h("section", { class: "inject", "aria-label": "inject" }, ...(live ? faults : []), answer);
  if (!live) say("Injecting needs a notebook; this page holds the trace");

  const code = h("code", { tabindex: 0, "aria-label": "the same in Python" });
  const copy = h("button",
    { type: "button", class: "tool", title: "copy", "aria-label": "copy the line of Python", onclick: copyCode },
    icon("copy"));
  const codeRow = div("code", span("name", "code"), code, copy);
  const help = helpBox(commands, () => toggleHelp(false));
  const root = h("div", { class: "sl-stepper", role: "group", tabindex: -1 },
    h("header", {}, title, facts), tools, time.el, headline, spoken,
    div("panels", wire.el, screen.el, kept.el), attempt.el, inject,
    codeRow, help);

  // --- moving: however many moves came, one picture a frame; Python hears where a drag ended
  function go(to, by = "view") {
    const next = clamp(Math.round(Number(to)) || 1, 1, Math.max(index.steps.length, 1));
    if (next === k && by === "view") return;
    tally.step = k = next;
    if (live && by !== "trace") put(code, `stepper.goto(${k})`);
    if (live && by === "view" && !waiting) say(""); // what was said is about another step
    if (by === "view") {
      tally.moves += 1;
      hush();
      settle = setTimeout(tellStep, 120);
    }
    schedule();
  }
  function hush() {
    clearTimeout(settle);
    settle = 0;
  }
  /** Tell Python at once: state waits for a busy kernel, comes late, and would undo what came first. */
  function send(message) {
    try {
      model.send?.(message);
      return Boolean(model.send);
    } catch { // the kernel is gone; scrubbing goes on without it
      return true;
    }
  }
  const told = () => ({ ...tally, by: "page" });
  function tellStep() {
    hush();
    model.set("at", told()); // other views of this model follow
    if (!send({ at: told() })) model.save_changes();
  }
  function schedule() {
    frame ||= requestAnimationFrame(draw);
  }

  /** Do what may take the focused element away; the keys must go on working. */
  function keepFocus(act) {
    const held = root.getRootNode().activeElement;
    const inside = held && root.contains(held);
    act();
    if (inside && (!held.isConnected || held.disabled)) root.focus({ preventScroll: true });
  }

  function draw() {
    frame = 0;
    keepFocus(drawAll);
  }
  function drawAll() {
    const view = viewAt(index, k), { step } = view, n = index.steps.length;
    for (const each of drawers) each.draw(view);
    put(place, `step ${count(k)} of ${count(n)}`);
    let last = k; // a fault's place is a frame; the end and the gates are no frames
    while (last > 0 && index.steps[last - 1].frame == null) last -= 1;
    put(here, `inject after frame ${count(last ? index.steps[last - 1].frame : 0)}`);
    headline.className = `headline ${tone(step.state)}`;
    if (stateName.textContent !== step.state) stateSign.replaceChildren(icon(step.state));
    put(stateName, step.state ?? "");
    put(stepName, `${short(step.name, 60)}${step.t == null ? "" : ` · ${step.t.toFixed(3)} s`}`);
    put(why, short(step.why, 400));
    why.title = why.textContent;
    const problems = (step.problems ?? []).slice(0, 2);
    const said = (text) => (step.why ?? "").toLowerCase().includes(text.toLowerCase());
    put(problem, problems.map(({ severity, rule, message }) =>
      `${severity} ${short(rule, 40)}${said(message) ? "" : `: ${short(message, 300)}`}`).join(" · "));
    problem.dataset.severity = problems[0]?.severity ?? "";
    if (!clock) put(spoken, `step ${k} of ${n}, ${step.state}: ${short(step.why, 200)}`);
    for (const name of ["first", "back"]) buttons[name].setAttribute("aria-disabled", k <= 1);
    for (const name of ["next", "last"]) buttons[name].setAttribute("aria-disabled", k >= n);
  }

  // --- the clock: 1× is two steps a second, or the whole trace in a minute where that is faster
  function play() {
    if (k >= index.steps.length) go(1);
    const each = () => Math.min(500, 60000 / index.steps.length) / speed;
    let due = performance.now() + each();
    const tick = (now) => {
      const steps = Math.max(Math.floor((now - due) / each()) + 1, 0);
      due += steps * each();
      if (steps) go(k + steps);
      if (k >= index.steps.length) pause();
      else clock = requestAnimationFrame(tick);
    };
    clock = requestAnimationFrame(tick);
    showClock();
  }
  function pause() {
    cancelAnimationFrame(clock);
    clock = 0;
    showClock();
    schedule();
  }
  function showClock() {
    buttons.play.replaceChildren(icon(clock ? "pause" : "play"));
    buttons.play.setAttribute("aria-pressed", Boolean(clock));
  }
  function setSpeed(i) {
    pace.selectedIndex = clamp(i, 0, SPEEDS.length - 1);
    speed = SPEEDS[pace.selectedIndex];
  }

  // --- asking Python, which alone decides what happened
  function ask(action, fault = "") {
    if (!live) return;
    pause();
    hush(); // the request says itself where the view stands
    const id = (waiting = `${Date.now()}-${Math.random()}`);
    say("asking Python …");
    const after = FROM_PYTHON.includes(action) ? {} : { after: k }; // a fault is about what is seen here
    send({ at: told(), request: { id, action, fault, ending: ending.value, ...after } });
    const silence = "No answer from Python yet: the kernel is busy, or not running.";
    setTimeout(() => waiting === id && say(silence, "problem"), 3000);
  }
  function hear() {
    heard = model.get("answer");
    if (!live || !heard) return;
    keepFocus(() => {
      for (const name of ["undo", "redo", "reset"]) buttons[name].disabled = !heard[name];
    });
    if (heard.code) put(code, heard.code);
    if (heard.id === waiting) waiting = null;
    say(heard.text ?? "", heard.ok === false ? "problem" : "");
  }
  function say(text, kind = "") {
    put(answer, text);
    answer.dataset.kind = kind;
  }

  function load() {
    text = model.get("trace");
    index = indexTrace(JSON.parse(text || "{}"));
    const { title: name, wire, bytes } = index.trace;
    put(title, short(name || "a recording", 120));
    put(facts, `${wire ?? "unknown wire"} · ${count(bytes ?? 0)} bytes · ${count(index.steps.length)} steps`);
    root.setAttribute("aria-label", `Stepper: ${title.textContent}`);
    const { code: line = "" } = index.trace; // on a page, only what somebody did is worth a row
    put(code, line);
    codeRow.hidden = !live && (!line || line === UNTOUCHED);
  }
  /** Stand where Python, or another view, says; unless the person has moved since they knew. */
  function stand(by) {
    const first = stood === null;
    stood = model.get("at") ?? {};
    const { step = 1, moves = 0 } = stood;
    if (moves < tally.moves && !first) return by === "trace" ? go(k, by) : undefined;
    tally.moves = Math.max(tally.moves, moves);
    hush();
    go(step, by);
  }
  // One message may change several traits: wait until all of them are there, then take them in order.
  let queued = false, closed = false;
  function sync() {
    queued = false;
    if (closed) return;
    if (model.get("trace") !== text) {
      load();
      stand("trace");
    } else if (model.get("at") !== stood) stand("python");
    if (model.get("answer") !== heard) hear();
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
  async function copyCode() {
    try {
      await navigator.clipboard.writeText(code.textContent);
      say("copied");
    } catch { // a page that isn't secure, or no permission: select it, so that the usual key copies
      getSelection().selectAllChildren(code);
      say("selected: press the copy key");
    }
  }

  // Lab acts on letters and arrows in command mode, so no plain key may pass the root.
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopPropagation();
    const on = event.target.tagName, key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (on === "SELECT" && key !== "Escape") return;
    if ((key === " " || key === "Enter") && (on === "BUTTON" || on === "SUMMARY")) return;
    const name = commands.find(([, keys]) => keys.includes(key))?.[0];
    if (!name) return;
    event.preventDefault();
    if (!event.repeat || name === "back" || name === "next") run[name]();
  });

  const traits = ["change:trace", "change:at", "change:answer"];
  for (const name of traits) model.on(name, onChange);
  el.append(root);
  sync();
  draw();
  const resized = new ResizeObserver(schedule);
  resized.observe(root);
  return () => { // this view is closed; its model may live on
    pause();
    if (settle) tellStep(); // a move that Python was not told of yet
    closed = true;
    cancelAnimationFrame(frame);
    resized.disconnect();
    for (const name of traits) model.off(name, onChange);
  };
}

export default { render };
