// The report card. It gets every cell once, and what was sent for it; moving asks Python for
// nothing. It sets two traits, the places of the fault and of the client. Every text reaches the
// page through a text node. Works without a kernel too.

function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) el.setAttribute(name, value);
  el.append(...children);
  return el;
}
const span = (name, ...children) => h("span", { class: name }, ...children);
const clamp = (value, most) => Math.min(Math.max(value, 0), most);

function render({ model, el }) {
  const card = model.get("card"), text = (number) => card.texts[number];
  const { faults, clients } = card;
  const at = () => [model.get("fault"), model.get("client")];
  const sign = (kind) => card.kinds[kind][0];

  function set(name, place) {
    if (model.get(name) === place) return;
    try { // at once: state waits for a busy kernel, and the next cell overtakes it
      model.send?.({ [name]: place });
    } catch { // the kernel is gone; the page goes on without it
    }
    model.set(name, place);
    model.save_changes();
  }

  // --- the map: a row for each fault, a column for each client
  const heads = clients.map(([name]) => h("th", { scope: "col" }, span("tall", name)));
  const names = faults.map(([name, says]) => h("th", { scope: "row", title: says }, name));
  const squares = faults.map(([fault], row) => clients.map(([client], column) => {
    const [kind, word] = card.cells[row][column];
    const square = h("td", { role: "gridcell", tabindex: -1, class: `kind-${kind.replace("/", "")}`,
      "aria-label": `${fault}, ${client}: ${card.kinds[kind][1]}`, title: text(word) }, sign(kind));
    square.addEventListener("click", () => { go(row, column); square.focus(); });
    return square;
  }));
  const grid = h("table", { role: "grid", "aria-label": "Faults by clients" },
    h("thead", {}, h("tr", {}, h("td", {}), ...heads)),
    h("tbody", {}, ...squares.map((row, n) => h("tr", {}, names[n], ...row))));
  const legend = h("ul", { class: "legend" }, ...Object.entries(card.kinds).map(([name, [mark, says]]) =>
    h("li", {}, h("span", { class: `key kind-${name.replace("/", "")}`, "aria-hidden": "true" }, mark), says)));

  // --- one cell in full
  const title = h("h4", {}), says = h("p", { class: "says" });
  const verdict = h("p", { class: "verdict" }), handed = h("pre", { class: "handed", tabindex: 0, role: "region", "aria-label": "what the program was handed" });
  const how = h("p", { class: "how" }), wire = span("wire");
  const frames = h("ol", { class: "frames", tabindex: 0, "aria-label": "what was sent, frame by frame" });
  const end = h("p", { class: "end" }), judged = h("p", { class: "judged" }), code = h("code", {});
  const detail = h("div", { class: "detail" }, title, says,
    h("h5", {}, "What the program was handed"), how, verdict, handed,
    h("h5", {}, "What streamlab says of the same bytes"), judged,
    h("h5", {}, "What the server sent, ", wire), frames, end,
    h("p", { class: "code" }, "in code: ", code));
  const map = h("div", { class: "map" }, grid);
  const spoken = h("div", { class: "spoken", role: "status" });
  const root = h("section", { class: "sl-card", "aria-label": "Report card" },
    h("p", { class: "how" }, "Click a square, or go to one with Tab and move with ← → ↑ ↓, Home and End."),
    h("div", { class: "sides" }, h("div", { class: "left" }, map, legend), detail),
    h("p", { class: "stamp" }, "Measured with ", card.stamp, "."), spoken);

  /** A frame: its mark in words, its lines; of a changed one what is new, and what stood there. */
  function frame([mark, ...parts]) {
    const [before, middle, after, gone] = parts.map(text);
    const shown = (piece) => piece.replaceAll("\n", "⏎"); // of a change, a line's end counts too
    const pieces = mark === "~" ? [before, gone && h("del", {}, shown(gone)), middle && h("ins", {}, shown(middle)), after]
      : [before + middle + gone];
    const lines = pieces.map((piece, n) => n === pieces.length - 1 ? piece.trimEnd() : piece);
    const label = mark === " " ? [] : [span("mark", card.marks[mark])];
    const names = { " ": "same", "~": "changed", "+": "new", "-": "never" };
    return h("li", { class: names[mark] }, ...label, h("pre", {}, ...lines.filter(Boolean)));
  }

  function draw() {
    const [row, column] = at(), [fault, what] = faults[row], [client, asks, place] = clients[column];
    const [kind, , lines] = card.cells[row][column], sent = card.sent[row][place];
    squares.forEach((each, n) => each.forEach((square, m) => {
      const here = n === row && m === column;
      square.setAttribute("aria-selected", here);
      square.tabIndex = here ? 0 : -1;
    }));
    names.forEach((name, n) => name.classList.toggle("here", n === row));
    heads.forEach((head, n) => head.classList.toggle("here", n === column));
    title.textContent = `${fault}, ${client}`;
    says.replaceChildren(...what.split("`").map((part, n) => n % 2 ? h("code", {}, part) : part));
    how.textContent = asks;
    verdict.className = `verdict kind-${kind.replace("/", "")}`;
    verdict.replaceChildren(span("sign", sign(kind)), card.kinds[kind][1]);
    handed.textContent = lines.map(text).join("\n");
    wire.textContent = `on the wire ${card.wires[place]}`;
    frames.replaceChildren(...(sent ? sent[0].map(frame) : []));
    frames.hidden = !sent?.[0].length;
    end.textContent = sent ? `then: ${text(sent[1])}` : "nothing: there is no such thing on this wire";
    judged.replaceChildren(...(sent ? [h("b", {}, sent[2]), `: ${text(sent[3])}`] : ["nothing was sent"]));
    code.textContent = `card.at("${fault}", "${client}")`;
    toTheFault();
  }

  function toTheFault() { // with the frame before it; where no frame is marked, to the end
    const first = frames.querySelector("li:not(.same)");
    frames.scrollTop = first ? (first.previousElementSibling ?? first).offsetTop : frames.scrollHeight;
  }

  function go(row, column) {
    set("fault", clamp(row, faults.length - 1));
    set("client", clamp(column, clients.length - 1));
    draw();
  }

  function intoView(square) { // in the map alone: the page stays where it is
    const box = map.getBoundingClientRect(), mine = square.getBoundingClientRect();
    const top = box.top + grid.tHead.offsetHeight;
    if (mine.top < top) map.scrollTop -= top - mine.top + 4;
    else if (mine.bottom > box.bottom) map.scrollTop += mine.bottom - box.bottom + 4;
  }

  const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
    Home: [0, -99], End: [0, 99], PageUp: [-8, 0], PageDown: [8, 0] };
  grid.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    const [row, column] = at();
    go(row + step[0], column + step[1]);
    const [now, then] = at();
    squares[now][then].focus({ preventScroll: true });
    intoView(squares[now][then]);
    spoken.textContent = `${handed.textContent}. streamlab: ${judged.textContent}`;
  });

  // In command mode JupyterLab acts on letters and arrows; those of this view are its own.
  root.addEventListener("keydown", (event) => {
    const runs = event.key === "Enter" && event.shiftKey;
    if (event.ctrlKey || event.metaKey || event.altKey || runs || event.key === "Escape") return;
    event.stopPropagation();
  });

  const traits = ["change:fault", "change:client"];
  for (const name of traits) model.on(name, draw);
  el.append(root);
  draw();
  const sized = new ResizeObserver(() => { // only what is on the page has places to scroll to
    if (!frames.offsetHeight && !frames.hidden) return;
    sized.disconnect();
    toTheFault();
    intoView(squares[model.get("fault")][model.get("client")]);
  });
  sized.observe(root);
  return () => { sized.disconnect(); for (const name of traits) model.off(name, draw); };
}

export default { render };
