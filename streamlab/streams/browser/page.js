// One turn as it comes. The page decides nothing: it draws the events that the server forwards, one
// bubble a turn, however many streams the turn takes. Every text reaches it through a text node.
//
// From top to bottom: frames out of the bytes; what each event changes; how a part is drawn; the form.

// --- Frames -------------------------------------------------------------------------------------

/** The events of a body, one at a time. Our server ends lines with \n, and sends data in one line. */
async function* framesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return; // a frame without its blank line is no frame
    let from = Math.max(0, rest.length - 1);
    rest += value;
    for (let end; (end = rest.indexOf("\n\n", from)) >= 0; from = 0) {
      const fields = Object.fromEntries(rest.slice(0, end).split("\n").map((line) => {
        const colon = line.indexOf(": ");
        return [line.slice(0, colon), line.slice(colon + 2)];
      }));
      rest = rest.slice(end + 2);
      if (fields.event) yield { name: fields.event, id: Number(fields.id), ...JSON.parse(fields.data) };
    }
  }
}

// --- What each event changes ----------------------------------------------------------------------

const SIGNS = { // a sign beside each word, so that no colour is needed
  streaming: "…", ready: "○", running: "▸", done: "✓", error: "✕", cancelled: "⊘",
  "not run": "–", proposed: "?", discarded: "⌫",
};
const TONES = {
  running: "busy", done: "good", error: "bad", cancelled: "warn", "not run": "warn", proposed: "busy",
};
const ENDS = { ANSWERED: "good", PROPOSED: "busy", CANCELLED: "warn", HELD: "warn" };

/** Event -> what it does to a bubble. An event that is not here changes nothing. */
const CHANGES = {
  RoundStarted(bubble, { number }) {
    bubble.keep((part) => part.status !== "discarded"); // what a failed try has left behind
    bubble.round(number);
  },
  SegmentOpened: (bubble, event) => bubble.open(event),
  SegmentNamed: (bubble, event) => bubble.change(event, { tool: event.tool }),
  SegmentGrew: (bubble, event) => bubble.change(event, { more: event.text }),
  SegmentRestated: (bubble, event) => bubble.change(event, { text: event.text }),
  InputGrew: (bubble, event) => bubble.change(event, { size: event.size }),
  SegmentStopped: (bubble, event) => bubble.change(event,
    { status: event.error ? "error" : "ready", result: event.error, input: event.input }),
  ToolRunning: (bubble, event) => bubble.change(event, { status: "running" }),
  ToolProposed: (bubble, event) => bubble.change(event, { status: "proposed" }),
  ToolResolved: (bubble, event) => bubble.change(event, { status: event.status, result: event.text }),
  RoundEnded(bubble, { attempt, kept }) {
    for (const part of bubble.parts.values()) {
      if (!kept && part.attempt === attempt) part.update({ status: "discarded" });
    }
  },
  CaughtUp(bubble, { parts, rounds }) { // we were far behind: all at once, as it looks now
    bubble.keep(() => false);
    parts.forEach((part) => bubble.open(part));
    bubble.round(rounds);
  },
  ProblemFound(bubble, { severity, message }) {
    if (severity !== "note") bubble.problem(severity, message);
  },
  TurnEnded: (bubble, { state, said, why }) => bubble.end(state, said, why),
};

// --- How it is drawn --------------------------------------------------------------------------------

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

/** A text: it only grows, so only what is new reaches the page. */
class Text {
  constructor(event) {
    this.attempt = event.attempt;
    this.text = document.createTextNode("");
    const words = h("p", {}, this.text);
    const folded = event.kind === "thinking";
    this.el = folded ? h("details", {}, h("summary", {}, "Thinking"), words) : words;
    this.kind = event.kind;
    this.update({ status: "streaming", ...event });
  }

  update({ status, text, more }) {
    if (status) this.status = status;
    if (text !== undefined) this.text.data = text;
    if (more) this.text.appendData(more);
    this.el.className = `${this.kind} ${this.status}`;
    this.el.hidden = !this.text.length;
  }
}

/** A tool's card: folded, with its name and a chip; what it is given, and gave, inside. */
class Card {
  constructor(event) {
    this.attempt = event.attempt;
    this.server = event.server;
    this.name = span("tool");
    this.brief = span("brief");
    this.sign = h("span", { class: "sign", "aria-hidden": "true" });
    this.word = span("word");
    this.chip = span("chip", this.sign, this.word);
    this.given = h("dl");
    this.result = h("p", { class: "result" });
    this.el = h("details", { class: "card" },
      h("summary", {}, this.name, this.brief, this.chip), this.given, this.result);
    this.update({ status: "streaming", ...event });
  }

  update({ status, tool, size, input, result }) {
    if (status) this.status = status;
    if (tool !== undefined) put(this.name, tool || "a tool");
    if (size !== undefined) put(this.brief, `${size.toLocaleString("en")} characters of input`);
    if (input) this.give(input);
    if (result !== undefined) put(this.result, result);
    const word = this.server && this.status === "ready" ? "run by the provider" : this.status;
    put(this.sign, SIGNS[this.status] ?? "·");
    put(this.word, word);
    this.chip.className = `chip tone-${TONES[this.status] ?? "plain"}`;
    this.el.dataset.status = this.status;
    this.result.hidden = !this.result.textContent;
  }

  give(input) {
    this.given.replaceChildren(...input.flatMap(([name, value]) =>
      [h("dt", {}, name || "input"), h("dd", {}, value)]));
    put(this.brief, input.map(([, value]) => value).join(", "));
  }
}

class Bubble {
  constructor(question) {
    this.parts = new Map();
    this.over = false;
    this.body = h("div", { class: "parts" });
    this.state = span("state");
    this.said = span("said");
    this.rounds = span("rounds");
    this.why = h("p", { class: "why", hidden: "" });
    this.problems = h("ul", { class: "problems", hidden: "" });
    this.foot = h("p", { class: "foot", role: "status" }, this.state, " ", this.said);
    this.el = h("article", { class: "bubble", "aria-label": "the answer", "aria-busy": "true" },
      this.body, h("footer", {}, this.foot, this.rounds), this.why, this.problems);
    this.all = h("section", { class: "turn" }, h("p", { class: "asks" }, question), this.el);
    put(this.state, "under way");
  }

  open(event) {
    const key = JSON.stringify([event.attempt, event.segment]);
    const part = event.kind === "tool_call" ? new Card(event) : new Text(event);
    this.parts.set(key, part);
    this.body.append(part.el);
  }

  change(event, what) {
    this.parts.get(JSON.stringify([event.attempt, event.segment]))?.update(what);
  }

  keep(which) {
    for (const [key, part] of this.parts) {
      if (which(part)) continue;
      part.el.remove();
      this.parts.delete(key);
    }
  }

  round(number) {
    put(this.rounds, number ? `round ${number}` : "");
  }

  problem(severity, message) {
    this.problems.append(h("li", {}, span("severity", severity), " ", message));
    this.problems.hidden = false;
  }

  end(state, said, why = "") {
    this.over = true;
    put(this.state, state);
    put(this.said, said);
    const tone = ENDS[state] ?? "bad";
    put(this.why, tone === "good" ? "" : why);
    this.why.hidden = !this.why.textContent;
    this.foot.dataset.tone = tone;
    this.el.setAttribute("aria-busy", "false");
  }
}

// --- The form ---------------------------------------------------------------------------------------

const turns = document.getElementById("turns"), form = document.getElementById("ask");
const question = document.getElementById("question");
const send = document.getElementById("send"), stop = document.getElementById("stop");
let flight = null; // the request that is under way

// A button that was disabled would lose the focus, and the keyboard its place.
function allow() {
  send.setAttribute("aria-disabled", String(flight !== null));
  stop.setAttribute("aria-disabled", String(flight === null));
}

let following = false; // whether a frame is due that scrolls

/**
 * Follow the end of the page while the reader is there; who has scrolled up is left alone. The page
 * is measured once a frame: to lay out a long text anew for each event takes longer than it comes.
 */
function follow(draw) {
  const page = document.documentElement;
  if (!following) {
    following = true;
    const there = page.scrollHeight - page.scrollTop - page.clientHeight < 80;
    requestAnimationFrame(() => {
      following = false;
      if (there) page.scrollTop = page.scrollHeight;
    });
  }
  draw();
}

async function run(words) {
  const bubble = new Bubble(words), mine = flight = new AbortController();
  allow();
  turns.append(bubble.all);
  document.documentElement.scrollTop = document.documentElement.scrollHeight;
  try {
    const answer = await fetch("turn", {
      method: "POST", signal: mine.signal,
      headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
      body: JSON.stringify({ question: words }),
    });
    if (answer.status !== 200) bubble.end("REFUSED", "The server did not begin", (await answer.text()).trim());
    else for await (const event of framesOf(answer.body)) follow(() => CHANGES[event.name]?.(bubble, event));
    if (!bubble.over) bubble.end("LOST", "The line ended before the last event: nothing here is complete");
  } catch (why) {
    if (mine.signal.aborted) bubble.end("STOPPED", "You left it: its stream was closed, and is not complete");
    else bubble.end("LOST", "The line broke: nothing here is complete", String(why));
  } finally {
    if (flight === mine) flight = null;
    allow();
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!flight && question.value.trim()) run(question.value);
});
stop.addEventListener("click", () => flight?.abort());
document.addEventListener("keydown", (event) => { if (event.key === "Escape") flight?.abort(); });
// A page in the browser's back-forward cache would keep its request open.
addEventListener("pagehide", () => flight?.abort());
