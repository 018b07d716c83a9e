
// ------------------------------------------------------------------------------- a choice of wire
//
// Python joins this to the Stepper's module. Above the Stepper is one radio button for each format;
// the keys 1, 2, … pick one from anywhere in the view. Python answers with another trace and its
// own menu of faults, so the Stepper below is drawn anew, at the same moment of the answer.

let choices = 0; // radio buttons of two views on one page must not be one group

function renderDialects({ model, el }) {
  const wires = model.get("wires") ?? [], group = `sl-wire-${(choices += 1)}`;
  const below = div("below");
  const tally = { step: 1, moves: 0 }; // on whichever wire
  let dispose = () => {}, drawn = null, queued = false, waiting = "";

  // While Python is asked for another wire, the person may go on in this one: each place says on
  // which wire it is, and Python finds the same moment on the other. A fault would mean the next.
  const inner = {
    get: (name) => model.get(name), on: (...args) => model.on(...args), off: (...args) => model.off(...args),
    set: (name, value) => { if (!(waiting && name === "at")) model.set(name, value); },
    send: ({ at, request }) => {
      if (!(waiting && request)) model.send?.({ at: { ...at, wire: drawn }, ...(request && { request }) });
    },
    save_changes: () => model.save_changes(),
  };
  const radios = wires.map((wire) => h("input", {
    type: "radio", name: group, value: wire, checked: wire === model.get("wire"),
    "data-lm-suppress-shortcuts": "true", onchange: () => pick(wire),
  }));
  const note = h("span", { class: "note", role: "status" });
  const bar = h("fieldset", {}, h("legend", {}, "the same answer, as told by"),
    ...wires.map((wire, n) => h("label", {}, radios[n], h("kbd", {}, String(n + 1)), span("", wire))), note);
  const root = h("div", { class: "sl-dialects" }, bar, below);

  // Who picks with the mouse goes on in the answer: there arrows step, among the buttons they pick.
  bar.addEventListener("click", ({ detail, target }) => {
    if (detail && target.closest("label")) below.firstElementChild?.focus({ preventScroll: true });
  });

  function pick(wire) {
    if (wire === model.get("wire")) return;
    waiting = wire;
    setTimeout(() => waiting === wire && put(note, "no answer from Python yet: the kernel is busy, or not running"), 1000);
    model.set("wire", wire);
    try { // at once: state waits for a busy kernel
      model.send?.({ at: { ...tally, by: "page", wire: drawn }, wire });
      if (!model.send) model.save_changes();
    } catch { // the kernel is gone
    }
    mark();
  }
  function mark() {
    for (const radio of radios) radio.checked = radio.value === model.get("wire");
  }
  function draw() {
    queued = false;
    mark();
    const { wire } = JSON.parse(model.get("trace") || "{}");
    const wanted = waiting === wire ? "" : waiting; // a pick that came after the one that is answered
    if (wire !== drawn) {
      const inside = below.contains(root.getRootNode().activeElement);
      waiting = wire; // its last move is one on the wire that goes
      dispose();
      below.replaceChildren();
      drawn = wire;
      dispose = render({ model: inner, el: below, tally });
      if (inside) below.firstElementChild.focus({ preventScroll: true });
    }
    waiting = wanted;
    if (!waiting) put(note, "");
  }
  function onChange() { // one message may change several traits: wait until all of them are there
    if (!queued) queueMicrotask(draw);
    queued = true;
  }
  // Before the Stepper hears it: there no digit means anything, and Lab would make headings of them.
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
    const wire = /^[1-9]$/.test(event.key) ? wires[event.key - 1] : undefined;
    if (wire) {
      event.preventDefault();
      pick(wire);
    }
    if (wire || bar.contains(event.target)) event.stopPropagation();
  }, true);

  const traits = ["change:trace", "change:wire"];
  for (const name of traits) model.on(name, onChange);
  el.append(root);
  draw();
  return () => {
    dispose();
    for (const name of traits) model.off(name, onChange);
  };
}

export default { render: renderDialects };
