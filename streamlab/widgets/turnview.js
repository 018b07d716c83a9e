// A turn with tools. The page decides nothing: it draws the bubble that the model holds, and says
// when Run or Cancel is pressed: as a message, since state waits in the page while the kernel is
// busy, and a Cancel must not. Every text reaches the page through a text node.

const SIGNS = { // a sign beside each word, so that no colour is needed
  streaming: "…", ready: "○", running: "▸", done: "✓", error: "✕", cancelled: "⊘",
  "not run": "–", proposed: "?", discarded: "⌫",
};
const TONES = {
  running: "busy", done: "good", error: "bad", cancelled: "warn", "not run": "warn", proposed: "busy",
};
const ENDS = { ANSWERED: "good", PROPOSED: "busy", CANCELLED: "warn", HELD: "warn" };

function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) el.setAttribute(name, value);
  el.append(...children);
  return el;
}
const span = (name, ...children) => h("span", { class: name }, ...children);

function put(el, text) { // a live region must not speak when nothing has changed
  if (el.textContent !== text) el.textContent = text;
}

/** A tool's card: name, what it is given, chip, and what came of it. */
function card(part) {
  const { status } = part;
  const given = part.input.map(([name, value]) => span("given", span("key", name), " ", span("value", value)));
  const chip = h("span", { class: `chip tone-${TONES[status] ?? "plain"}`, "data-status": status },
    h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[status] ?? "·"), status);
  return h("div", { class: "card", role: "group", "aria-label": `tool ${part.tool}` },
    h("div", { class: "line" }, span("tool", part.tool), ...given, chip),
    ...(part.result ? [h("div", { class: "result" }, part.result)] : []));
}

function drawn(part) {
  if (part.kind === "tool_call") return card(part);
  return h("p", { class: `${part.kind} ${part.status}` }, part.text);
}

function render({ model, el }) {
  const run = h("button", { type: "button", class: "run" });
  const cancel = h("button", { type: "button", class: "cancel" }, "Cancel");
  const rounds = span("rounds");
  const asks = h("p", { class: "asks" });
  const bubble = h("div", { class: "bubble", role: "group", "aria-label": "the answer" });
  const state = span("state"), said = span("said");
  const foot = h("p", { class: "foot", role: "status" }, state, " ", said);
  const root = h("section", { class: "sl-turn", "aria-label": "One turn, live" },
    h("div", { class: "head" }, run, cancel, rounds), asks, bubble, foot);
  let before = [];

  function press(name) {
    try {
      model.send?.({ press: name });
    } catch { // the kernel is gone, and the turn with it
    }
  }
  run.addEventListener("click", () => { if (!busy(run)) press("run"); });
  cancel.addEventListener("click", () => { if (!busy(cancel)) press("cancel"); });
  // A button that was disabled would lose the focus, and the keyboard its place.
  const busy = (button) => button.getAttribute("aria-disabled") === "true";
  const allow = (button, may) => button.setAttribute("aria-disabled", String(!may));

  function draw() {
    const screen = model.get("screen"), running = model.get("running");
    const over = !running && screen.state;
    put(asks, model.get("question"));
    put(run, over ? "Run again" : "Run");
    allow(run, !running);
    allow(cancel, running);
    put(rounds, screen.rounds ? `round ${screen.rounds}` : "");
    const now = screen.parts.map((part) => JSON.stringify(part));
    now.forEach((text, place) => { // only what has changed: a selection elsewhere stays
      if (text === before[place]) return;
      const fresh = drawn(screen.parts[place]);
      if (bubble.children[place]) bubble.children[place].replaceWith(fresh);
      else bubble.append(fresh);
    });
    while (bubble.children.length > now.length) bubble.lastChild.remove();
    before = now;
    bubble.hidden = !now.length;
    put(state, screen.state || (running ? "under way" : ""));
    put(said, screen.said || (running ? "" : "Press Run. While a tool is running, press Cancel."));
    foot.dataset.tone = ENDS[screen.state] ?? (screen.state ? "bad" : "plain");
  }

  // In command mode JupyterLab acts on letters and on Enter; those of this form are its own.
  root.addEventListener("keydown", (event) => {
    const runs = event.key === "Enter" && event.shiftKey;
    if (event.ctrlKey || event.metaKey || event.altKey || runs || event.key === "Escape") return;
    event.stopPropagation();
  });

  const traits = ["change:screen", "change:running", "change:question"];
  for (const name of traits) model.on(name, draw);
  el.append(root);
  draw();
  return () => traits.forEach((name) => model.off(name, draw));
}

export default { render };
