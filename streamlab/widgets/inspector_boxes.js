import { count } from "./steps.js";
import { kindOf, quantity } from "./inspector_rows.js";
import { div, h, icon, plain, put, span } from "./inspector_marks.js";

// The boxes around the frames: the verdict, the numbers, the filter, the keys, where a file is dropped.
// Each makes its elements once, and draws what it is told; none knows where the view stands.

const KEY_NAMES = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", PageUp: "PgUp", PageDown: "PgDn" };
const GAPS = [[0, "any gap"], [0.05, "> 50 ms"], [0.25, "> 250 ms"], [1, "> 1 s"], [2, "> 2 s"], [10, "> 10 s"]];
const GOOD = ["whole", "VALIDATED_PROPOSAL", "MESSAGE_COMPLETE"];
const keyName = (key) => KEY_NAMES[key] ?? (key.length === 1 ? key.toUpperCase() : key);

function helpBox(commands, close) {
  const rows = commands.filter(([, keys]) => keys.length).flatMap(([, keys, label]) =>
    [h("dt", {}, ...keys.map((key) => h("kbd", {}, keyName(key)))), h("dd", {}, label)]);
  const shut = h("button", { type: "button", class: "tool", "aria-label": "close", onclick: close }, icon("close"));
  return h("div", { class: "help", role: "dialog", "aria-label": "keys", hidden: true },
    div("head", span("name", "keys"), shut), h("dl", {}, ...rows),
    h("p", {}, "Drag along the timeline to scrub; the wheel zooms once the view has the focus."));
}

/** The doctor's words over everything. */
function verdictBox(jump) {
  const sign = span("sign"), verdict = h("b", { class: "verdict" }), layer = span("layer"), says = h("p", { class: "says" });
  const advice = h("p", { class: "advice" }), may = h("ul", {}), button = h("button", { type: "button", onclick: jump });
  const more = h("details", {}, h("summary", {}, "why, and what a consumer may do"), may);
  const el = h("section", { class: "doctor", "aria-label": "diagnosis" }, div("badge", sign, verdict, layer),
    div("words", says, advice, more), button);
  return { el, draw(index) {
    const { diagnosis, first, facts } = index.data, good = !diagnosis.layer && GOOD.includes(diagnosis.verdict);
    const tone = good && first < 0 ? "good" : facts.complete || good ? "warning" : "error";
    el.dataset.tone = tone;
    sign.replaceChildren(icon(tone));
    put(verdict, plain(diagnosis.verdict, 60));
    put(layer, diagnosis.layer ? `likely: ${plain(diagnosis.layer, 30)}` : "");
    layer.title = plain(diagnosis.because, 600);
    put(says, plain(diagnosis.says, 600));
    put(advice, plain(diagnosis.advice, 600));
    const lines = [...(diagnosis.because ? [["why", diagnosis.because]] : []), ...diagnosis.may.map((text) => ["may", text]), ...diagnosis.may_not.map((text) => ["may not", text])];
    may.replaceChildren(...lines.map(([word, text]) => h("li", {}, h("b", {}, word), ` ${plain(text, 300)}`)));
    more.hidden = !lines.length;
    button.hidden = first < 0;
    put(button, first === index.n - 1 ? "show where: the end" : `show where: frame ${count(first + 1)}`);
  } };
}

/** The numbers: of one recording, or of two with their differences, and where the two part. */
function numbersBox(differ) {
  const summary = h("summary", {}), head = h("thead", {}), body = h("tbody", {});
  const table = h("table", {}, head, body), box = h("details", { class: "numbers" }, summary, h("div", { class: "scroll" }, table));
  const first = div("parting"), button = h("button", { type: "button", onclick: differ }, "go there");
  const parting = div("differ", first, button), el = div("compared", parting, box);
  const cells = (tag, ...texts) => h("tr", {}, ...texts.map((text, i) => h(i ? tag : "th", i ? {} : { scope: "row" }, text)));
  function two([a, b], { first: found, measures, facts }) {
    const says = (i) => plain(found.says[i], 200), where = (side, i) => (found.rows[i] === side.n - 1 ? "the end" : `frame ${count(found.rows[i] + 1)}`);
    const line = (name, side, i) => div("side", h("b", {}, `${name} `), span("at", where(side, i)), h("q", {}, says(i)));
    first.replaceChildren(...(found ? [h("b", {}, "First difference in meaning"), line("A", a, 0), line("B", b, 1)]
      : [h("b", {}, "They mean the same"), ", whatever the pieces."]));
    button.hidden = !found;
    head.replaceChildren(h("tr", {}, ...["", "A", "B", "B − A"].map((text) => h("th", { scope: "col" }, text))));
    body.replaceChildren(
      ...facts.map(([name, x, y]) => cells("td", name.replace("_", " "), plain(x ?? "–", 40), plain(y ?? "–", 40), x === y ? "same" : "differs")),
      ...measures.map(([name, unit, x, y, by]) => cells("td", name, quantity(x, unit), quantity(y, unit),
        by == null ? "" : by === 0 ? "same" : `${by > 0 ? "+" : "−"}${quantity(Math.abs(by), unit)}`)));
  }
  function one({ data }) {
    head.replaceChildren();
    body.replaceChildren(...data.measures.filter(([, , value]) => value != null)
      .map(([name, unit, value]) => cells("td", name, quantity(value, unit))));
  }
  return { el, draw(sides, comparison) {
    const both = sides.length > 1;
    parting.hidden = !both;
    box.classList.toggle("two", both);
    put(summary, both ? "the numbers of both" : "the numbers");
    if (both) two(sides, comparison);
    else one(sides[0]);
  } };
}

/** Which frames are listed. */
function filterBar(changed) {
  const text = h("input", { type: "search", placeholder: "filter: text, event, problem", "aria-label": "filter by text", oninput: changed });
  const kind = h("select", { "aria-label": "kind of frame", onchange: changed });
  const problems = h("input", { type: "checkbox", onchange: changed }), content = h("input", { type: "checkbox", onchange: changed });
  const gap = h("select", { "aria-label": "gap before the frame", onchange: changed },
    ...GAPS.map(([value, label]) => h("option", { value }, label)));
  const found = h("span", { class: "found", role: "status", "aria-live": "polite" });
  const clear = h("button", { type: "button", onclick: () => reset() }, "clear");
  const el = h("div", { class: "filter", role: "search" }, text, kind, gap, h("label", {}, problems, "problems"),
    h("label", {}, content, "content"), clear, found);
  function reset() {
    Object.assign(text, { value: "" });
    kind.value = "";
    gap.selectedIndex = 0;
    problems.checked = content.checked = false;
    changed();
  }
  return { el, text, reset,
    get: () => ({ text: text.value.slice(0, 200), kind: kind.value, problems: problems.checked, content: content.checked, gap: Number(gap.value) }),
    load(index) {
      const counts = new Map(), before = kind.value;
      for (let row = 0; row < index.n; row++) counts.set(kindOf(index, row), (counts.get(kindOf(index, row)) ?? 0) + 1);
      kind.replaceChildren(h("option", { value: "" }, "any kind"),
        ...[...counts].map(([name, n]) => h("option", { value: name }, `${name} (${count(n)})`)));
      kind.value = counts.has(before) ? before : "";
      gap.hidden = !index.axes.time;
    },
    says(rows, index, active) {
      put(found, active ? `${count(rows.length)} of ${count(index.n)} rows` : `${count(index.n - 1)} frames`);
      clear.hidden = !active;
    },
  };
}

/** Where a file can be dropped. */
function dropZone() {
  const first = div("zone", icon("drop"), span("", "drop it here to open it")), second = div("zone", icon("compare"), span("", "or here to compare it"));
  const el = h("div", { class: "dropping", hidden: true, "aria-hidden": "true" }, first, second);
  return { el, show(event, both) {
    el.hidden = !event;
    second.hidden = !both;
    if (!event) return false;
    const box = el.parentElement.getBoundingClientRect(), beside = both && event.clientX > box.left + box.width / 2;
    first.classList.toggle("here", !beside);
    second.classList.toggle("here", beside);
    return beside;
  } };
}
