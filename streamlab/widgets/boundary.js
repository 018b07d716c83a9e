// The byte-boundary explorer. Every outcome is in the table already; the page only looks one up.
// Every text reaches the page through a text node. Works without a kernel too.

function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) el.setAttribute(name, value);
  el.append(...children);
  return el;
}

function put(el, text) { // a live region must not speak when nothing has changed
  if (el.textContent !== text) el.textContent = text;
}

/** Places as text: runs are written 4 to 9. */
function ranges(places) {
  const runs = [];
  for (const place of places) {
    const last = runs[runs.length - 1];
    if (last && last[1] === place - 1) last[1] = place;
    else runs.push([place, place]);
  }
  return runs.map(([a, b]) => (a === b ? `${a}` : b === a + 1 ? `${a}, ${b}` : `${a} to ${b}`)).join(", ");
}

function choice(label, names) {
  const select = h("select", { "aria-label": label }, ...names.map((name, value) => h("option", { value }, name)));
  return { select, el: h("label", {}, h("span", { "aria-hidden": "true" }, label), select) };
}

/** The bytes: a line for each line of the stream, and a blank line stays with the one before it. */
function bytesView(units, cutAt) {
  const cells = [], box = h("div", { class: "bytes", "aria-hidden": "true" });
  let row = null, ended = false;
  for (const [at, sign, hex] of units) {
    const isEnd = sign === "LF" || sign === "CR";
    if (!row || (ended && !isEnd)) box.append(row = h("div", { class: "row" }));
    ended = isEnd;
    const bytes = hex.split(" ").map((byte, i) => {
      const cell = h("span", { class: "byte", title: `byte ${at + i + 1}` }, h("i", { class: "flag" }), byte);
      cell.addEventListener("click", () => cutAt(at + i));
      cells.push(cell);
      return cell;
    });
    const kind = [...sign].length > 1 ? "named" : "seen";
    row.append(h("span", { class: `unit ${kind}` }, h("b", {}, sign), h("span", { class: "hexes" }, ...bytes)));
  }
  return { box, cells };
}

/** One reader's panel: what it gives, and whether that is right. */
function panel(whose) {
  const name = h("code"), verdict = h("span", { class: "verdict" }), list = h("ol"), missing = h("p", { class: "missing" });
  const el = h("section", { class: "panel", "aria-label": whose },
    h("div", { class: "head" }, h("span", { class: "whose" }, whose), name, verdict), list, missing);
  return { el, show(title, came, expected) {
    put(name, title);
    el.dataset.right = came.right;
    put(verdict, came.right ? "✓ right" : came.error ? "✕ raises" : "✕ wrong");
    list.replaceChildren(...came.events.map((event) => {
      const ok = expected.includes(event);
      return h("li", ok ? {} : { class: "off" }, h("span", { class: "data" }, event || "(empty)"), ok ? "" : h("em", {}, "✕ never sent"));
    }));
    const lost = expected.filter((event) => !came.events.includes(event));
    put(missing, came.error ? `${came.error}. It gives nothing at all.` : lost.length ? `✕ missing: ${lost.join(" · ")}`
      : came.right ? "" : "✕ all were sent, but not like this");
  } };
}

function render({ model, el }) {
  const table = model.get("table");
  const { size, expected, readers, ours, deliveries } = table;
  const who = choice("naive reader", readers.map((reader) => reader.name));
  const how = choice("the stream comes", deliveries.map((each) => each.name));
  const says = h("span", { class: "says" }), code = h("pre", { tabindex: "0", "aria-label": "code of the naive reader" });
  const range = h("input", { type: "range", min: 0, max: size - 1, step: 1, "aria-label": "place of the cut" });
  const button = (text, label) => h("button", { type: "button", title: label, "aria-label": label }, text);
  const back = button("‹ ✕", "previous place that fails (p)"), on = button("✕ ›", "next place that fails (n)");
  const count = h("strong", { class: "count" }), where = h("span", { class: "where" });
  const list = h("span", { class: "list" }), spoken = h("span", { class: "spoken", role: "status" });
  const strip = h("div", { class: "strip", "aria-hidden": "true" });
  const x = (place) => `calc(8px + (100% - 16px) * ${size > 1 ? place / (size - 1) : 0})`;
  const ticks = Array.from({ length: size }, (_, place) => h("i", { style: `left: ${x(place)}` }));
  strip.append(...ticks.slice(1));
  const { box, cells } = bytesView(table.units, (place) => move(place));
  const theirs = panel("naive"), us = panel("ours");
  const root = h("section", { class: "sl-boundary", tabindex: "0", "aria-label": "Byte-boundary explorer" },
    h("div", { class: "choose" }, who.el, how.el, says),
    h("div", { class: "slide" }, back, h("div", { class: "track" }, strip, range), on),
    h("p", { class: "told" }, count, list),
    box,
    h("p", { class: "legend", "aria-hidden": "true" }, ...["cut|the cut", "read|a read ends", "fail|✕ a cut here makes it fail"].map((each) => {
      const [kind, text] = each.split("|");
      return h("span", { class: kind }, text);
    })),
    h("p", { class: "told" }, h("strong", {}, "The cut: "), where),
    h("div", { class: "panels" }, theirs.el, us.el),
    h("details", {}, h("summary", {}, "Code of the naive reader"), code), spoken);

  const now = () => ({ reader: readers[model.get("reader")], way: model.get("delivery"), cut: model.get("cut") });
  const allCut = (way) => readers[0].outcomes[way].at.length < size; // byte by byte: nothing is left to cut
  const came = (reader, way, cut) => {
    const { at, different } = reader.outcomes[way];
    return different[at[cut] ?? at[0]];
  };
  const failing = (reader, way) => ticks.map((_, place) => place).slice(1).filter((place) => !came(reader, way, place).right);

  function set(name, value) {
    model.set(name, value);
    model.save_changes();
    draw();
  }
  function move(cut) {
    if (!allCut(model.get("delivery"))) set("cut", Math.min(Math.max(cut, 0), size - 1));
  }
  function jump(step) { // to the next place that fails, round the end
    const { reader, way, cut } = now(), places = failing(reader, way);
    if (step < 0) places.reverse();
    move(places.find((place) => step * (place - cut) > 0) ?? places[0] ?? cut);
  }

  function keepInSight(cut) { // of a line that is wider than the view
    const left = cells[cut].getBoundingClientRect().left - box.getBoundingClientRect().left;
    if (left < 40 || left > box.clientWidth - 40) box.scrollLeft += left - box.clientWidth / 2;
  }

  function draw() {
    const { reader, way, cut } = now(), every = allCut(way), places = failing(reader, way);
    const fails = new Set(every ? [] : places), ends = new Set(deliveries[way].ends);
    const it = came(reader, way, cut), ourOwn = came(ours, way, cut), uncut = came(reader, way, 0).right;
    who.select.value = model.get("reader");
    how.select.value = way;
    put(says, reader.says);
    put(code, reader.code);
    range.value = every ? 0 : cut;
    range.disabled = every;
    back.disabled = on.disabled = every || !places.length;
    ticks.forEach((tick, place) => {
      tick.className = every ? (it.right ? "ok" : "fail") : fails.has(place) ? "fail" : "ok";
      tick.classList.toggle("now", place === cut && !every);
    });
    cells.forEach((cell, place) => {
      cell.classList.toggle("fail", fails.has(place));
      cell.classList.toggle("read", place > 0 && ends.has(place));
      cell.classList.toggle("cut", place > 0 && place === cut && !every);
      put(cell.firstChild, fails.has(place) ? "✕" : "");
    });
    const total = size - 1, said = every ? (it.right ? "right, cut at every place at once" : "fails, cut at every place at once")
      : places.length ? `fails at ${places.length} of ${total} places` : `fails at none of ${total} places`;
    put(count, said);
    put(list, every ? "" : `${places.length && places.length < total ? `: ${ranges(places)}` : ""}${uncut ? "" : "; and without a cut too"}`);
    const place = every ? `every byte is a read of its own: ${size} reads`
      : cut ? `place ${cut} of ${total}, ${table.where[cut]}` : `none yet (0 of ${total}): move the slider, click a byte, or press n`;
    put(where, place);
    range.setAttribute("aria-valuetext", place);
    theirs.show(reader.name, it, expected);
    us.show(ours.name, ourOwn, expected);
    keepInSight(cut);
    put(spoken, `${place}. ${reader.name}: ${it.right ? "right" : it.error ? "raises" : "wrong"}. ${ours.name}: ${ourOwn.right ? "right" : "wrong"}.`);
  }

  const KEYS = {
    ArrowLeft: () => move(model.get("cut") - 1), ArrowRight: () => move(model.get("cut") + 1),
    Home: () => move(0), End: () => move(size - 1), n: () => jump(1), p: () => jump(-1),
  };
  // In command mode JupyterLab acts on letters and arrows; those of this view are its own.
  root.addEventListener("keydown", (event) => {
    const runs = event.key === "Enter" && event.shiftKey;
    if (event.ctrlKey || event.metaKey || event.altKey || runs || event.key === "Escape") return;
    event.stopPropagation();
    if (event.target.tagName === "SELECT" || event.target === code || !KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  who.select.addEventListener("change", () => set("reader", Number(who.select.value)));
  how.select.addEventListener("change", () => set("delivery", Number(how.select.value)));
  range.addEventListener("input", () => move(Number(range.value)));
  back.addEventListener("click", () => jump(-1));
  on.addEventListener("click", () => jump(1));

  const traits = ["change:reader", "change:delivery", "change:cut"];
  for (const name of traits) model.on(name, draw);
  el.append(root);
  draw();
  return () => traits.forEach((name) => model.off(name, draw));
}

export default { render };
