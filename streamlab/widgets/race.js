// The race. It gets every order and its outcome once; dragging asks Python for nothing. It sets
// three traits, the places of the cancellation, of the trouble and of the second delivery. Every
// text reaches the page through a text node. Works without a kernel too.

const SVG = "http://www.w3.org/2000/svg";
const ICONS = { // 16 × 16, drawn in the colour of the text; the Stepper's own
  VALIDATED_PROPOSAL: "M3 8.5 6.5 12 13 4.5", COMMITTING: "M2.5 8h8M7.5 5l3 3-3 3M13.5 3v10",
  COMMITTED: "M8 2a6 6 0 1 1-.01 0zM5 8.2l2.2 2.2L11 6", ABORTED: "M8 2.5a5.5 5.5 0 1 1-.01 0zM4.2 4.2l7.6 7.6",
  RECONCILING: "M5.5 6a2.5 2.5 0 1 1 2.5 3v1.5M8 13v.2",
};
const TONES = {
  VALIDATED_PROPOSAL: "good", COMMITTED: "good", COMMITTING: "warn", RECONCILING: "warn", ABORTED: "warn",
};

// The axis: the events of a commit stand on even places, whatever comes between them on odd ones.
const LEFT = -1.5, RIGHT = 12.5, LAST = 11, STARTS = [2, 4], POINTS = ["begins", "the desk pays", "the answer", "recovery"];
const PLACE = { commit: 0, desk: 2, recover: 6 };
const WHO = { cancel: "the cancellation", commit: "the commit", again: "the second delivery", recover: "the recovery" };

function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) el.setAttribute(name, value);
  el.append(...children);
  return el;
}
const span = (name, ...children) => h("span", { class: name }, ...children);
const percent = (place) => `${((place - LEFT) / (RIGHT - LEFT)) * 100}%`;
const clamp = (value, least, most) => Math.min(Math.max(value, least), most);
const often = (n) => ["never", "once", "twice"][n] ?? `${n} times`;

function icon(name) {
  const path = document.createElementNS(SVG, "path"), el = document.createElementNS(SVG, "svg");
  path.setAttribute("d", ICONS[name] ?? "");
  for (const [key, value] of Object.entries({ viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" })) {
    el.setAttribute(key, value);
  }
  el.append(path);
  return el;
}

/** A state: sign and word. A long word may break after its underscore. */
function stateBox(state) {
  const words = state.split(/(?<=_)/).flatMap((word) => [word, h("wbr")]);
  return span(`state tone-${TONES[state] ?? "plain"}`, icon(state), span("word", ...words));
}

function put(el, text) { // a live region must not speak when nothing has changed
  if (el.textContent !== text) el.textContent = text;
}

function render({ model, el }) {
  const race = model.get("race"), said = (number) => race.said[number];
  const id = `sl-race-${Math.random().toString(36).slice(2)}`;
  let start = STARTS[0], at = 1; // where the commit begins, where the cancellation stands

  const orderOf = (cancel, trouble, again) => race.orders[(cancel * race.troubles.length + trouble) * race.again.length + again];
  const gapOf = () => clamp(Math.ceil((at - start) / 2), 0, race.gaps.length - 1);
  const value = (name) => model.get(name);

  function set(name, number) {
    if (model.get(name) === number) return;
    try { // at once: state waits for a busy kernel, and the next cell overtakes it
      model.send?.({ [name]: number });
    } catch { // the kernel is gone; the page goes on without it
    }
    model.set(name, number);
    model.save_changes();
  }

  // --- what can be moved
  function slider(name, label, text) {
    return h("div", { class: `grip ${name}`, role: "slider", tabindex: 0, "aria-label": label, "aria-orientation": "horizontal" },
      ...(text ? [span("pill", text)] : []));
  }
  const cancel = slider("cancel", "a person cancels", "cancel");
  const commit = slider("commit", "the commit");
  const again = slider("again", "the commit is delivered again", "commit again");
  const points = POINTS.map((text) => span("point", span("dot"), span("text", text)));
  const death = span("death");
  commit.append(...points, death);
  const lanes = [["a person", cancel], ["our programs", commit], ["a queue", again]].map(([name, grip]) =>
    h("div", { class: "lane" }, span("name", name), h("div", { class: "track" }, grip)));
  const strip = h("div", { class: "track strip" });
  const pays = h("div", { class: "track pays" });
  const axis = h("div", { class: "axis" }, ...lanes,
    h("div", { class: "lane row" }, span("name", "the row says"), strip),
    h("div", { class: "lane" }, span("name", "paid"), pays));
  const choices = race.troubles.map((name, place) => {
    const input = h("input", { type: "radio", name: id, value: place });
    input.addEventListener("change", () => { set("trouble", place); draw(); });
    return { input, el: h("label", {}, input, name) };
  });
  const verdict = h("p", { class: "verdict", role: "status" });
  const cards = h("div", { class: "cards" });
  const scroll = h("div", { class: "scroll" }, axis), room = h("div", { class: "room" }, scroll);
  const root = h("section", { class: "sl-race", "aria-label": "Cancel against commit" },
    h("p", { class: "how" }, "Drag ", h("b", {}, "cancel"), ", the lane of the commit, or ", h("b", {}, "commit again"), "; or go to one with Tab and press ← or →."),
    h("fieldset", {}, h("legend", {}, "What goes wrong:"), ...choices.map((choice) => choice.el)),
    room, verdict, cards, h("p", { class: "tie" }, race.tie));

  const MOVES = { // lane -> what moving it to a place on the axis does
    cancel: (place) => { at = clamp(2 * Math.round((place - 1) / 2) + 1, 1, LAST); },
    commit: (place) => { start = clamp(2 * Math.round(place / 2), STARTS[0], STARTS.at(-1)); },
    again: (place) => set("again", clamp(Math.ceil((place - start) / 2), 0, race.again.length - 1)),
  };
  const STANDS = { // what is never delivered again waits at the side
    cancel: () => at, commit: () => start, again: () => (value("again") ? start + 2 * value("again") - 1 : LEFT + 1.5),
  };
  const STEP = { // lane -> its next place but one
    cancel: (way) => at + way, commit: (way) => start + way, again: (way) => start + 2 * value("again") - 1 + way,
  };

  function move(name, place) {
    MOVES[name](place);
    set("cancel", gapOf());
    draw();
  }

  for (const [name, grip] of Object.entries({ cancel, commit, again })) {
    let held = null; // how far from its place it was taken
    const under = (event) => {
      const box = grip.parentElement.getBoundingClientRect();
      return LEFT + ((event.clientX - box.left) / box.width) * (RIGHT - LEFT);
    };
    grip.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      held = under(event) - STANDS[name]();
      grip.setPointerCapture(event.pointerId);
      grip.focus();
      event.preventDefault();
    });
    grip.addEventListener("pointermove", (event) => held !== null && move(name, under(event) - held));
    for (const end of ["pointerup", "pointercancel"]) grip.addEventListener(end, () => { held = null; });
    grip.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      const to = { ArrowLeft: STEP[name](-2), ArrowRight: STEP[name](2), Home: LEFT, End: RIGHT }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      move(name, to);
      grip.scrollIntoView({ block: "nearest", inline: "nearest" });
    });
  }

  // --- what is shown
  /** Where on the axis an event of an order stands. */
  function placeOf(who, says) {
    if (who === "cancel") return at;
    if (who === "again") return STANDS.again();
    if (who === "crash") return start + 2 * value("trouble") - 0.5;
    if (who === "commit" && (says === "the answer comes" || says === "no answer comes")) return start + 4;
    return start + PLACE[who];
  }

  function bar(track, pieces) { // (from, to, content) of each
    track.replaceChildren(...pieces.map(([from, to, ...content]) => {
      const piece = h("div", { class: "piece" }, ...content);
      piece.style.left = percent(from);
      piece.style.width = `${((to - from) / (RIGHT - LEFT)) * 100}%`;
      return piece;
    }));
  }

  /** Pieces of the axis in which a value stays the same. */
  function pieces(first, changes) {
    const found = [[LEFT, first]];
    for (const [place, now] of changes) if (now !== found.at(-1)[1]) found.push([place, now]);
    return found.map(([from, now], i) => [from, found[i + 1]?.[0] ?? RIGHT, now]);
  }

  function drawAxis(moments) {
    const happened = new Set(moments.map(({ who, says }) => placeOf(who, says)));
    cancel.style.left = percent(at);
    commit.style.left = percent(start);
    commit.style.width = `${(6 / (RIGHT - LEFT)) * 100}%`;
    points.forEach((point, i) => {
      point.style.left = `${(i / 3) * 100}%`;
      point.classList.toggle("not", !happened.has(start + 2 * i));
    });
    const never = value("again") === 0, mark = { crash: "✕ dies", lost: "✕ lost" };
    const wrong = moments.some((each) => each.who === "crash") ? "crash" : moments.some((each) => each.says === "no answer comes") ? "lost" : "";
    again.style.left = percent(STANDS.again());
    again.classList.toggle("never", never);
    put(again.firstChild, never ? "commit again: never" : "commit again");
    death.hidden = !wrong;
    put(death, mark[wrong] ?? "");
    death.style.left = `${((wrong === "lost" ? 4 : 2 * value("trouble") - 1) / 6) * 100}%`;
    bar(strip, pieces(race.start, moments.map((each) => [placeOf(each.who, each.says), each.row])).map(([a, b, state]) => [a, b, stateBox(state)]));
    bar(pays, pieces(0, moments.map((each) => [placeOf(each.who, each.says), each.effects])).map(([a, b, n]) => [a, b, n ? often(n) : "not yet"]));
    if (!moments.at(-1).effects) put(pays.lastChild, "never");
    const where = race.gaps[value("cancel")];
    cancel.ariaValueText = where;
    commit.ariaValueText = `the cancellation comes ${where}`;
    again.ariaValueText = race.again[value("again")];
    for (const [grip, now, least, most] of [[cancel, at, 1, LAST], [commit, start, STARTS[0], STARTS.at(-1)], [again, value("again"), 0, race.again.length - 1]]) {
      grip.ariaValueMin = least; grip.ariaValueMax = most; grip.ariaValueNow = now;
    }
  }

  function card(name, order, moments) {
    const rows = moments.map((each) => h("tr", {}, h("td", {}, each.says), h("td", {}, stateBox(each.row))));
    const told = moments.filter((each) => each.told && WHO[each.who]).map((each) =>
      h("li", {}, `${WHO[each.who]} is told `, h("b", {}, each.told)));
    if (moments.some((each) => each.who === "commit") && !moments.some((each) => each.who === "commit" && each.told)) {
      told.push(h("li", {}, "the commit is told nothing: its process is gone"));
    }
    return h("div", { class: "card" }, h("table", {}, h("caption", {}, name),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "what happens"), h("th", { scope: "col" }, "the row after it"))), h("tbody", {}, ...rows)),
      h("ul", {}, ...told, h("li", { class: "last" }, "everybody who asks later reads ", h("b", {}, said(order.recorded)), `: “${said(order.words)}”`)),
      h("p", { class: "count" }, `Submitted ${often(order.submissions)}, paid ${often(order.effects)}.`));
  }

  function draw() {
    const gap = value("cancel"), trouble = value("trouble"), twice = value("again");
    if (gapOf() !== gap) at = start + 2 * gap - 1; // Python has moved it
    choices.forEach((choice, place) => { choice.input.checked = place === trouble; });
    const read = (order) => order.moments.map(([who, says, row, effects, told]) =>
      ({ who: said(who), says: said(says), row: said(row), effects, told: told < 0 ? "" : said(told) }));
    const order = orderOf(gap, trouble, twice), other = orderOf(gap ? 0 : 1, trouble, twice);
    drawAxis(read(order));
    put(verdict, said(order.verdict));
    cards.replaceChildren(card(`In this order: cancel ${race.gaps[gap]}`, order, read(order)),
      card(`The other way round: cancel ${race.gaps[gap ? 0 : 1]}`, other, read(other)));
  }

  function hints() { // at which side of the lanes there is more, out of sight
    room.classList.toggle("before", scroll.scrollLeft > 8);
    room.classList.toggle("after", scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 8);
  }
  scroll.addEventListener("scroll", hints);
  const resized = new ResizeObserver(hints);
  resized.observe(scroll);

  // In command mode JupyterLab acts on letters and arrows; those of this form are its own.
  root.addEventListener("keydown", (event) => {
    const runs = event.key === "Enter" && event.shiftKey;
    if (event.ctrlKey || event.metaKey || event.altKey || runs || event.key === "Escape") return;
    event.stopPropagation();
  });

  const names = ["cancel", "trouble", "again"].map((name) => `change:${name}`);
  for (const name of names) model.on(name, draw);
  el.append(root);
  draw();
  return () => { resized.disconnect(); for (const name of names) model.off(name, draw); };
}

export default { render };
