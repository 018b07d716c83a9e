import { count } from "./steps.js";
import { duration, gapOf, kindOf, nearest, ticksOf, worstOf } from "./inspector_rows.js";
import { clamp, div, h, icon, plain, put, span, svg } from "./inspector_marks.js";

// One recording along its seconds, or its bytes: a tick for each frame, a lane for each kind of
// segment, the stalls, and the problems by shape and colour. Two recordings share one `scale`, so
// the same place is the same moment in both. What stands still is drawn when the scale changes;
// a move changes only where the cursor is.

const LANES = [["thinking", "thinking"], ["text", "text"], ["tool_call", "tools"], ["other", "other"]];
const MOST_DEEP = 3; // lines of one lane for segments that overlap
const RANK = { note: 0, warning: 1, error: 2 };
const TICKS = 22, LINE = 15; // px: height of the frames' lane, and of one line of segments

/** Which part of which axis is in view. */
export function makeScale() {
  const scale = { by: "time", from: 0, to: 1, extent: 1 };
  const set = (from, to) => {
    const width = clamp(to - from, scale.extent / 1e5, scale.extent);
    scale.from = clamp(from, 0, scale.extent - width);
    scale.to = scale.from + width;
  };
  return Object.assign(scale, {
    fit: () => set(0, scale.extent),
    x: (value) => (value - scale.from) / (scale.to - scale.from), // 0 is the left edge, 1 the right
    value: (x) => scale.from + x * (scale.to - scale.from),
    zoom(factor, at) { // `at`: the place that stays where it is
      const width = (scale.to - scale.from) * factor, x = clamp(scale.x(at), 0, 1);
      set(at - x * width, at + (1 - x) * width);
    },
    pan: (share) => {
      const by = share * (scale.to - scale.from);
      set(scale.from + by, scale.to + by);
    },
    reveal(at) { // the cursor takes the view along
      if (at < scale.from || at > scale.to) set(at - (scale.to - scale.from) / 2, at + (scale.to - scale.from) / 2);
    },
    whole: () => scale.to - scale.from >= scale.extent * 0.999,
  });
}

/** Segments that overlap get a line each; those that follow one another share the first. */
function deepOf(segments, places) {
  const ends = [], deep = [];
  for (const i of places) {
    const free = ends.findIndex((end) => end < segments.first[i]);
    const line = free < 0 ? ends.length : free;
    ends[line] = segments.last[i];
    deep.push(Math.min(line, MOST_DEEP - 1));
  }
  return deep;
}

export function timeline(scale, { pick, zoomed, hasFocus }) {
  const labels = div("labels"), axis = div("axis"), ticks = svg("svg", { class: "ticks", "aria-hidden": "true", preserveAspectRatio: "none" }) /* a tick stands where its time is */;
  const all = svg("path", { class: "tick" }), faint = svg("path", { class: "tick faint" });
  ticks.append(faint, all);
  const lanes = div("lanes"), marks = div("marks"), stalls = div("stalls"), cursor = div("cursor"), beyond = div("beyond");
  const plane = div("plane", stalls, axis, ticks, lanes, marks, beyond, cursor);
  const track = h("div", {
    class: "track", role: "slider", tabindex: 0, "aria-label": "frame", "aria-orientation": "horizontal",
    "data-lm-suppress-shortcuts": "true",
  }, plane);
  const name = h("span", { class: "name" });
  const el = div("timeline", name, labels, track);
  let index = null, groups = [], drawn = "";

  const width = () => plane.clientWidth || 800;
  const at = (event) => scale.value(clamp((event.clientX - plane.getBoundingClientRect().left) / width(), 0, 1));
  function go(event) {
    const onMarks = marks.contains(event.target) || event.target === marks;
    if (onMarks && event.type === "pointerdown" && index.troubled.length) { // a mark is its own row, not its neighbour
      const places = index.troubled.map((row) => place(row));
      return pick(index.troubled[nearest(places, at(event))]);
    }
    pick(nearest(axisOf(), at(event)));
  }
  track.addEventListener("pointerdown", (event) => {
    if (event.button || !index) return;
    track.setPointerCapture(event.pointerId);
    go(event);
  });
  track.addEventListener("pointermove", (event) => track.hasPointerCapture(event.pointerId) && go(event));
  track.addEventListener("wheel", (event) => {
    if (!index || !(hasFocus() || event.ctrlKey)) return; // a page that is scrolled past must not zoom
    const aside = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (scale.whole() && (aside || event.deltaY > 0)) return; // nothing to do: the page scrolls on
    event.preventDefault();
    if (aside) scale.pan((event.deltaX || event.deltaY) / width());
    else scale.zoom(event.deltaY > 0 ? 1.25 : 0.8, at(event));
    zoomed();
  }, { passive: false });

  const axisOf = () => index.axes[scale.by] ?? index.axes.bytes;
  const place = (row) => axisOf()[row];

  function load(next) {
    index = next;
    drawn = "";
    const { segments } = index.data;
    groups = LANES.map(([kind, label]) => {
      const places = segments.kind.flatMap((each, i) => (each === kind ? [i] : []));
      const deep = deepOf(segments, places);
      return { kind, label, places, deep, lines: Math.max(0, ...deep) + 1 };
    }).filter(({ places }) => places.length);
    labels.replaceChildren(span("label of-axis", ""), span("label of-ticks", "frames"),
      ...groups.map(({ label, lines }) => {
        const el = span("label", label);
        el.style.height = `${lines * LINE + 3}px`;
        return el;
      }), span("label of-marks", "problems"));
    track.setAttribute("aria-valuemin", 1);
    track.setAttribute("aria-valuemax", index.n);
  }

  /** One line for each column of pixels that has frames; the fullest column is the highest. */
  function drawTicks(passes) {
    const wide = Math.round(width()), seen = new Uint32Array(wide + 1), left = new Uint32Array(wide + 1);
    const axis = axisOf();
    for (let row = 0; row < index.n - 1; row++) {
      const x = scale.x(axis[row]);
      if (x < 0 || x > 1) continue;
      (passes && !passes[row] ? left : seen)[Math.round(x * wide)] += 1;
    }
    const most = seen.reduce((a, b, x) => Math.max(a, b + left[x]), 1);
    const path = (counts) => {
      let d = "";
      counts.forEach((found, x) => {
        if (found) d += `M${x + 0.5} ${TICKS}v-${((TICKS - 4) * (most > 2 ? 0.3 + (0.7 * found) / most : 0.7)).toFixed(1)}`;
      });
      return d;
    };
    ticks.setAttribute("viewBox", `0 0 ${wide} ${TICKS}`);
    ticks.setAttribute("width", wide);
    all.setAttribute("d", path(seen));
    faint.setAttribute("d", path(left));
  }

  function drawAxis(shows) {
    axis.hidden = !shows;
    labels.firstChild.hidden = !shows;
    const found = ticksOf(scale.from, scale.to, width() / 90, scale.by).map(([value, label], i) => {
      const x = scale.x(value), tick = span(x > 0.97 ? "at right" : "at", label);
      tick.style.left = `${x * 100}%`;
      return tick;
    });
    axis.replaceChildren(...found);
    put(labels.firstChild, scale.by === "time" ? "seconds" : "bytes");
  }

  const percent = (from, to) => ({ left: `${clamp(from, -0.01, 1.01) * 100}%`, width: `${(clamp(to, 0, 1.01) - clamp(from, -0.01, 1)) * 100}%` });

  function drawLanes() {
    const { segments } = index.data;
    lanes.replaceChildren(...groups.map(({ kind, places, deep, lines }) => {
      const lane = div("lane");
      lane.style.height = `${lines * LINE + 3}px`;
      places.forEach((i, n) => {
        const from = scale.x(place(segments.first[i])), to = scale.x(place(segments.last[i]));
        if (to < 0 || from > 1) return;
        const size = `${count(segments.size[i])} characters`;
        const label = kind === "tool_call" || kind === "other" ? plain(segments.name[i], 40) || "(no name)" : size;
        const bar = h("div", { class: segments.stopped[i] ? "bar" : "bar open", "data-kind": kind,
          title: `${plain(segments.id[i], 20)} · ${label}${kind === "tool_call" ? ` · ${size}` : ""}${segments.stopped[i] ? "" : " · never stopped"}` },
        span("word", label));
        Object.assign(bar.style, percent(from, Math.max(to, from + 3 / width())), { top: `${deep[n] * LINE}px` });
        lane.append(bar);
      });
      return lane;
    }));
  }

  function drawStalls() {
    const found = scale.by === "time" ? index.data.stalls : [];
    stalls.replaceChildren(...found.map(([start, lasted]) => {
      const [from, to] = [scale.x(start), scale.x(start + lasted)];
      const band = h("div", { class: "stall", hidden: to < 0 || from > 1 }, span("word", `stall ${duration(lasted)}`));
      Object.assign(band.style, percent(from, to));
      return band;
    }));
  }

  /** One mark for what falls on the same place; the worst of them, and how many there are. */
  function drawMarks() {
    const cells = new Map();
    for (const row of index.troubled) {
      const x = scale.x(place(row)), severity = worstOf(index, row);
      if (x < 0 || x > 1.0001) continue;
      const cell = Math.floor((x * width()) / 13), known = cells.get(cell);
      if (!known) cells.set(cell, { x, severity, found: 1 });
      else {
        known.found += 1;
        if (RANK[severity] > RANK[known.severity]) Object.assign(known, { x, severity });
      }
    }
    marks.replaceChildren(...[...cells.values()].map(({ x, severity, found }) => {
      const mark = h("span", { class: `mark ${severity}`, title: `${found} × ${severity}` }, icon(severity));
      mark.style.left = `${x * 100}%`;
      return mark;
    }));
  }

  function drawBeyond() { // how much of the whole is in view
    beyond.hidden = scale.whole();
    beyond.style.left = `${(scale.from / scale.extent) * 100}%`;
    beyond.style.width = `${((scale.to - scale.from) / scale.extent) * 100}%`;
  }

  /** Draw what stands still, if anything of it changed; `passes` says which rows a filter leaves. */
  function draw({ title, shows, passes, version, dim }) {
    const key = [scale.by, scale.from, scale.to, scale.extent, width(), version, shows, title].join();
    el.classList.toggle("dim", dim);
    if (key === drawn) return;
    drawn = key;
    name.hidden = !title;
    put(name, title);
    drawAxis(shows);
    drawTicks(passes);
    drawLanes();
    drawStalls();
    drawMarks();
    drawBeyond();
  }

  function moveTo(row, says) {
    const x = scale.x(place(row));
    cursor.hidden = x < -0.001 || x > 1.001;
    cursor.style.left = `${clamp(x, 0, 1) * 100}%`;
    track.setAttribute("aria-valuenow", row + 1);
    track.setAttribute("aria-valuetext", says);
  }

  return { el, track, load, draw, moveTo, place };
}

/** What is said of a row where it can only be heard. */
export function spokenOf(index, row) {
  if (row === index.n - 1) return `the end: ${index.data.facts.ending}`;
  const gap = gapOf(index, row), worst = worstOf(index, row);
  return [`frame ${row + 1} of ${index.n - 1}`, kindOf(index, row), gap == null ? "" : `after ${duration(gap)}`, worst]
    .filter(Boolean).join(", ");
}
