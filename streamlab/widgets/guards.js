// The board of guards. It gets every finding once, so switching and stepping ask Python for nothing;
// it sets one trait, `picked`. Every text reaches the page through a text node. Works without a
// kernel too.

const SVG = "http://www.w3.org/2000/svg";
const ICONS = { // 16 × 16, drawn in the colour of the text; the Stepper's own
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

function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) el.setAttribute(name, value);
  el.append(...children);
  return el;
}
const span = (name, ...children) => h("span", { class: name }, ...children);

function icon(name) {
  const path = document.createElementNS(SVG, "path"), el = document.createElementNS(SVG, "svg");
  path.setAttribute("d", ICONS[name] ?? "");
  for (const [key, value] of Object.entries({ viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" })) {
    el.setAttribute(key, value);
  }
  el.append(path);
  return el;
}

/** A state in its box: sign and word. A long word may break after its underscore. */
function stateBox({ state, happened }, extra = "") {
  if (!happened) return span(`state none ${extra}`, "does not happen");
  const words = state.split(/(?<=_)/).flatMap((word) => [word, h("wbr")]);
  return span(`state tone-${TONES[state] ?? "plain"} ${extra}`, icon(state), span("word", ...words));
}

function put(el, text) { // a live region must not speak when nothing has changed
  if (el.textContent !== text) el.textContent = text;
}

function render({ model, el }) {
  const board = model.get("board");
  // A counter would not tell two boards apart: every model loads a copy of this module.
  const id = `sl-guards-${Math.random().toString(36).slice(2)}`;
  const choices = ["", ...board.guards.map((guard) => guard.name)].map((name, place) => {
    const input = h("input", { type: "radio", name: id, id: `${id}-${place}`, value: name });
    const sign = span("sign"), label = h("label", { for: input.id, class: "choice" }, input,
      span("text", name || "every guard is on"), sign);
    input.addEventListener("change", () => {
      send({ picked: name });
      model.set("picked", name);
      model.save_changes();
      draw();
    });
    return { name, input, sign, el: label };
  });
  const title = h("p", { class: "title" }), says = h("p", { class: "says" });
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "the steps" });
  const steps = h("div"), row = h("div", { class: "row" }, steps);
  const end = h("div", { class: "end", role: "status" });
  const facts = h("tbody"), heads = h("tr"), name = h("caption");
  const detail = h("div", { class: "detail", role: "tabpanel", id: `${id}-detail`, tabindex: 0 },
    h("table", {}, name, h("thead", {}, heads), facts));
  const root = h("section", { class: "sl-guards", "aria-label": "What if this guard were missing?" },
    h("fieldset", {}, h("legend", {}, "Switch one guard off"), h("div", { class: "choices" }, ...choices.map((c) => c.el))),
    h("div", { class: "found" }, title, says, end, row, detail));
  let drawn = null, at = 0, columns = [];

  function send(message) { // at once: state waits for a busy kernel, and the next cell overtakes it
    try {
      model.send?.(message);
    } catch { // the kernel is gone; the page goes on without it
    }
  }

  const guardOf = (name) => board.guards.find((guard) => guard.name === name);

  /** The steps as [without, with]; where every guard is on there is only one way. */
  function pairs(guard) {
    return guard ? guard.steps.map((step, i) => [step, guard.instead[i]]) : board.good.map((step) => [step, step]);
  }

  function column([step, right], place, guard) {
    const wrong = guard?.wrong === place + 1;
    const parts = step.state !== right.state || step.happened !== right.happened;
    const said = ({ state, happened }) => (happened ? state : "does not happen");
    const spoken = guard
      ? `${step.says}; without the guard ${said(step)}, with it ${said(right)}${wrong ? "; here it goes wrong" : ""}`
      : `${step.says}; ${step.state}`;
    const tab = h("button", {
      type: "button", role: "tab", class: wrong ? "step wrong" : "step", "aria-controls": detail.id,
      "aria-label": `step ${place + 1}: ${spoken}`,
    },
    span("does", span("n", `${place + 1}`), step.says), span("gap"), stateBox(step, "here"),
    ...(guard ? [span("mark", wrong ? "✕ goes wrong" : ""), stateBox(right, parts ? "parts" : "")] : []));
    tab.addEventListener("click", () => choose(place));
    return tab;
  }

  function choose(place) {
    at = Math.min(Math.max(place, 0), columns.length - 1);
    columns.forEach((tab, i) => {
      tab.setAttribute("aria-selected", i === at);
      tab.tabIndex = i === at ? 0 : -1;
    });
    show();
    tell();
  }

  function show() { // the chosen step stays in sight where the row is too narrow for all
    const { offsetLeft: left, offsetWidth: wide } = columns[at];
    const edge = 28; // what the hint at a side may cover
    steps.scrollLeft = Math.min(Math.max(steps.scrollLeft, left + wide + edge - steps.clientWidth), left - edge);
    hints();
  }

  function hints() { // at which side of the row there are steps out of sight
    row.classList.toggle("before", steps.scrollLeft > 8);
    row.classList.toggle("after", steps.scrollLeft + steps.clientWidth < steps.scrollWidth - 8);
  }

  /** What differs after the chosen step; with every guard on, what is new with it. */
  function tell() {
    const guard = guardOf(model.get("picked")), all = pairs(guard);
    const [step, right] = all[at], before = at ? all[at - 1][0].facts : board.start;
    const rows = step.facts.map((number, i) => [number, guard ? right.facts[i] : before[i]])
      .filter(([number, other]) => number !== other)
      .map(([number, other]) => h("tr", {}, h("td", {}, board.said[number]),
        ...(guard ? [h("td", {}, h("b", {}, "≠ "), board.said[other])] : [])));
    const none = guard ? "nothing is different yet" : "nothing else is new";
    name.replaceChildren(`After step ${at + 1}, ${step.says}`, span("note", rows.length ? "" : `: ${none}`));
    heads.parentElement.hidden = !rows.length;
    facts.replaceChildren(...rows);
  }

  function draw() {
    const picked = model.get("picked");
    for (const choice of choices) {
      choice.input.checked = choice.name === picked;
      put(choice.sign, choice.name === "" ? "" : choice.name === picked ? "off" : "on");
    }
    if (picked === drawn) return;
    drawn = picked;
    const guard = guardOf(picked);
    put(title, guard ? `Without: ${guard.name}` : "Every guard is on");
    put(says, guard ? guard.says : "The shortest way to a good end:");
    end.className = guard ? "end bad" : "end good";
    const kept = `${board.worlds.toLocaleString("en")} different moments can be reached, and in none of them is a promise broken:`;
    end.replaceChildren(...(guard
      ? [h("p", {}, span("sign", "✕ "), guard.verdict), h("p", { class: "better" }, span("sign", "✓ "), guard.better)]
      : [h("p", {}, span("sign", "✓ "), kept), h("ul", {}, ...board.promises.map((promise) => h("li", {}, promise))), h("p", { class: "out" }, board.left_out)]));
    root.querySelector(".found").replaceChildren(...(guard ? [title, says, end, row, detail] : [title, end, says, row, detail]));
    const labels = guard ? ["without the guard", "with the guard"] : ["the attempt"];
    steps.className = guard ? "steps both" : "steps one";
    steps.replaceChildren(...labels.map((text) => h("span", { class: "label", "aria-hidden": "true" }, text)), tabs);
    columns = pairs(guard).map((pair, place) => column(pair, place, guard));
    tabs.replaceChildren(...columns);
    heads.replaceChildren(...(guard ? ["without the guard", "with the guard"] : ["what is new"]).map((text) => h("th", { scope: "col" }, text)));
    choose(guard ? guard.wrong - 1 : columns.length - 1);
  }

  const MOVES = { ArrowLeft: () => at - 1, ArrowRight: () => at + 1, Home: () => 0, End: () => columns.length - 1 };
  tabs.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    choose(move());
    columns[at].focus();
  });

  // In command mode JupyterLab acts on letters and arrows; those of this form are its own.
  root.addEventListener("keydown", (event) => {
    const runs = event.key === "Enter" && event.shiftKey;
    if (event.ctrlKey || event.metaKey || event.altKey || runs || event.key === "Escape") return;
    event.stopPropagation();
  });

  steps.addEventListener("scroll", hints);
  model.on("change:picked", draw);
  el.append(root);
  draw();
  const resized = new ResizeObserver(show); // also when the view first has a width
  resized.observe(steps);
  return () => {
    resized.disconnect();
    model.off("change:picked", draw);
  };
}

export default { render };
