// One question. The page decides nothing: it shows what the model holds and sets what was picked.
// The guess goes to Python as a message, too. State waits in the page while the kernel is busy, and
// the next cell overtakes it; a message is sent at once. Every text reaches the page through a text
// node. Works without a kernel too: only then nobody keeps the guess.

const letter = (place) => String.fromCharCode(65 + place);

function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) el.setAttribute(name, value);
  el.append(...children);
  return el;
}

/** Text as nodes: what stands between backticks is code. */
function worded(text) {
  return text.split("`").map((piece, i) => (i % 2 ? h("code", {}, piece) : piece));
}

function put(el, text) { // a live region must not speak when nothing has changed
  if (el.textContent !== text) el.textContent = text;
}

function render({ model, el }) {
  const { text, options } = model.get("question");
  // Radio buttons of one name are one group in the whole page, so each view has its own. A counter
  // would not do: every model loads a copy of this module.
  const id = `sl-quiz-${Math.random().toString(36).slice(2)}`;
  const explain = h("button", { type: "button" }, "Explain my guess");
  const status = h("span", { class: "status", role: "status" });
  const rows = options.map((option, place) => {
    const input = h("input", { type: "radio", name: id, id: `${id}-${place}` });
    const says = h("div", { class: "says", id: `${id}-${place}-says`, "aria-live": "polite" });
    const sign = h("span", { class: "sign", "aria-hidden": "true" });
    const label = h("label", { for: `${id}-${place}` }, input,
      h("span", { class: "letter" }, letter(place)), h("span", { class: "text" }, ...worded(option.text)), sign);
    input.addEventListener("change", () => pick(place));
    return { option, input, says, sign, el: h("div", { class: "option" }, label, says) };
  });
  const root = h("section", { class: "sl-quiz", "aria-label": "Predict" },
    h("fieldset", {},
      h("legend", {}, h("span", { class: "name" }, "Predict"), h("span", { class: "ask" }, ...worded(text))),
      ...rows.map((row) => row.el)),
    h("div", { class: "foot" }, explain, status));

  const isTold = () => model.get("told") || model.get("revealed");

  function pick(place) {
    model.set("picked", place);
    if (!isTold() || model.get("guess") < 0) {
      send({ guess: place });
      model.set("guess", place);
    }
    model.save_changes();
    draw();
  }
  function send(message) { // before the state that says the same
    try {
      model.send?.(message);
    } catch { // the kernel is gone; the page goes on without it
    }
  }
  explain.addEventListener("click", () => {
    model.set("told", true);
    model.save_changes();
    draw();
    rows[model.get("picked")].input.focus(); // the button goes; the keyboard stays here
  });

  function draw() {
    const picked = model.get("picked"), guess = model.get("guess"), told = isTold();
    rows.forEach((row, place) => {
      const { option } = row, open = told && place === picked;
      const known = told && picked >= 0 && (place === picked || (option.right && model.get("revealed")));
      row.input.checked = place === picked;
      row.el.dataset.state = !known ? "" : option.right ? "right" : "wrong";
      put(row.sign, !known ? "" : option.right ? "✓ right" : "✕ not so");
      if (row.says.hidden !== !open || !row.says.hasChildNodes()) {
        row.says.replaceChildren(...(open ? [h("b", {}, option.right ? "Right. " : "Not so. "), ...worded(option.says)] : []));
      }
      row.says.hidden = !open;
    });
    explain.hidden = told;
    explain.disabled = picked < 0;
    put(status, guess < 0
      ? (told ? "Pick one; the reason appears here." : "Pick one, then run the next cell.")
      : told ? `You guessed ${letter(guess)}. Pick another to read about that one.`
      : `Your guess is ${letter(guess)}. Now run the next cell.`);
  }

  // In command mode JupyterLab acts on letters and arrows; those of this form are its own.
  root.addEventListener("keydown", (event) => {
    const runs = event.key === "Enter" && event.shiftKey;
    if (event.ctrlKey || event.metaKey || event.altKey || runs || event.key === "Escape") return;
    event.stopPropagation();
  });

  const traits = ["change:picked", "change:guess", "change:told", "change:revealed"];
  for (const name of traits) model.on(name, draw);
  el.append(root);
  draw();
  return () => traits.forEach((name) => model.off(name, draw));
}

export default { render };
