// A trace as a lookup: what is there at step k is found, never replayed, so the last of ten thousand
// steps costs what the first one costs. Nothing here draws or knows a browser; `stepper.js` does.
// Steps are counted from 1, as in Python. The data comes from a stranger: no text of it is ever used
// as a key of a plain object, and no text is trusted to be short, visible or from left to right.

/** Read a trace once: segments with their lengths over time, runs of states, marks, histories. */
export function indexTrace(trace) {
  const steps = trace.steps ?? [], ghost = trace.ghost ?? [];
  const shared = (trace.ghost_from ?? steps.length + 1) - 1; // steps before the futures part
  const shift = steps.length - shared; // ghost steps are drawn behind the last real one
  const would = ghost.length ? partsOf([...steps.slice(0, shared), ...ghost]) : [];
  return {
    trace, steps, ghost,
    total: steps.length + ghost.length,
    parts: partsOf(steps),
    ghostParts: would
      .filter((part) => part.to > shared)
      .map((part) => ({ ...part, from: Math.max(part.from, shared + 1) + shift, to: part.to + shift })),
    runs: runsOf(steps),
    marks: marksOf(steps, trace.ghost_from),
    kept: keptOf(steps, "history", []),
    said: keptOf(steps, "said", ""),
    verdicts: keptOf(steps, "verdicts", []),
    chunks: trace.chunks ?? [], // the byte at which each network read begins
  };
}

/** Add to a segment's text; what is said `anew` takes the place of all that was there. */
function grow(k, part, text, anew) {
  if (!part) return;
  const end = part.length.at(-1) ?? 0;
  part.pieces.push(text);
  part.at.push(k);
  part.begin.push(anew ? end : part.begin.at(-1) ?? 0);
  part.length.push(end + text.length);
}

/** Segments over all steps: the whole text once, and how much of it was there after each step. */
function partsOf(steps) {
  const parts = new Map();
  const apply = {
    start(k, id, kind, name, callId, server) {
      if (parts.has(id)) return;
      parts.set(id, {
        id, kind, name: name ?? "", callId: callId ?? "", server: Boolean(server),
        from: k, to: steps.length, stop: null, status: "streaming", input: null,
        pieces: [], at: [], begin: [], length: [], notes: [], known: [],
      });
    },
    identify(k, id, name, callId) {
      parts.get(id)?.known.push({ at: k, ...(name && { name }), ...(callId && { callId }) });
    },
    append(k, id, text) {
      grow(k, parts.get(id), text, false);
    },
    restate(k, id, text) {
      grow(k, parts.get(id), text, true);
    },
    stop(k, id, status, input) {
      const part = parts.get(id);
      if (part) Object.assign(part, { stop: k, to: k, status, input });
    },
    note(k, id, what) {
      parts.get(id)?.notes.push({ at: k, what });
    },
  };
  steps.forEach((step, i) => {
    for (const [op, ...rest] of step.ops ?? []) {
      if (Object.hasOwn(apply, op)) apply[op](i + 1, ...rest);
    }
  });
  const all = [...parts.values()];
  for (const part of all) part.text = part.pieces.join("");
  return giveLanes(all);
}

/** Segments that overlap get a lane each; those that follow one another share the first. */
function giveLanes(parts) {
  const ends = [];
  for (const part of parts) {
    const free = ends.findIndex((end) => end < part.from);
    part.lane = free < 0 ? ends.length : free;
    ends[part.lane] = part.to;
  }
  return parts;
}

function runsOf(steps) {
  const runs = [];
  steps.forEach(({ state }, i) => {
    if (runs.at(-1)?.state === state) runs.at(-1).to = i + 1;
    else runs.push({ state, from: i + 1, to: i + 1 });
  });
  return runs;
}

/** Where something was injected, or a problem appeared. */
function marksOf(steps, parting) {
  const found = [];
  const bolt = (i) => Boolean(steps[i]?.injected) || i + 1 === parting;
  steps.forEach(({ name, problems = [] }, i) => {
    if (bolt(i) && !bolt(i - 1)) { // one sign for all that one fault put in
      let n = i + 1;
      while (n < steps.length && bolt(n)) n += 1;
      const more = n - i > 1 ? ` and the ${n - i - 1} after it` : "";
      found.push({ at: i + 1, sign: "bolt", what: `injected: ${name}${more}` });
    } else if (problems.length) found.push({ at: i + 1, sign: "alert", what: problems[0].message });
  });
  const every = Math.ceil(found.length / 200); // a flood of warnings is still a picture
  return found.filter((_, i) => i % every === 0);
}

/** What each step has, or else (Python leaves out what did not change) keeps from the step before. */
function keptOf(steps, key, first) {
  let now = first;
  return steps.map((step) => (now = step[key]?.length ? step[key] : now));
}

/** The last position in a sorted list whose value is at most `value`; -1 where there is none. */
function lastUpTo(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Everything that the view shows at step k. */
export function viewAt(index, k) {
  return {
    k, index,
    step: index.steps[k - 1] ?? {},
    parts: index.parts.filter((part) => part.from <= k).map((part) => partAt(part, k)),
    said: index.said[k - 1] ?? "",
    verdicts: index.verdicts[k - 1] ?? [],
    history: index.kept[k - 1] ?? [],
    before: index.kept[0]?.length ?? 0, // messages that the conversation held before this turn
  };
}

/** A segment at step k; the text from `old` on is what this very step brought. */
function partAt(part, k) {
  const i = lastUpTo(part.at, k);
  const end = i < 0 ? 0 : part.length[i], begin = i < 0 ? 0 : part.begin[i];
  let first = i; // one frame may carry several fragments
  while (first >= 0 && part.at[first] === k) first -= 1;
  const stopped = part.stop !== null && part.stop <= k;
  return {
    ...part,
    ...Object.assign({}, ...part.known.filter((known) => known.at <= k)),
    text: part.text.slice(begin, end),
    old: first < 0 ? 0 : Math.max(0, part.length[first] - begin),
    last: stopped ? part.stop : i < 0 ? part.from : part.at[i], // the step that changed it last
    status: stopped ? part.status : "streaming",
    input: stopped ? part.input : null,
    notes: part.notes.filter((note) => note.at <= k).map((note) => note.what),
  };
}

/** Keep every run in sight on a long trace: a short one takes a little from the one before it. */
export function spread(runs, span) {
  const least = span * 0.022;
  const out = runs.map((run) => ({ ...run }));
  for (let i = out.length - 1; i > 0; i--) {
    out[i].from = Math.min(out[i].from, out[i].to + 1 - least);
    out[i - 1].to = Math.min(out[i - 1].to, out[i].from - 1);
  }
  return out;
}

// --- Text -----------------------------------------------------------------------------------------

const NAMES = new Map([["\0", "NUL"], ["\t", "TAB"], ["\n", "LF"], ["\r", "CR"], ["\x1b", "ESC"],
  ["\x7f", "DEL"], ["\ufeff", "BOM"], ["\ufffd", "not UTF-8"]]);
// Controls, and the invisible characters that hide or reorder what stands beside them.
const UNSEEN = /([\0-\x1f\x7f-\xa0\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffd])/u;
const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;

function nameOf(char) {
  return NAMES.get(char) ?? `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Split text into `{ text }` and, for each character that nobody would see, `{ text, sign }`. */
export function visible(text) {
  return text.split(UNSEEN).filter(Boolean)
    .map((piece) => (UNSEEN.test(piece) ? { text: piece, sign: nameOf(piece) } : { text: piece }));
}

export const count = new Intl.NumberFormat("en").format;

/** Clip a text at its start or (`tail`) its end, say how long it is, and name what would turn it. */
export function clip(text, most, tail = false) {
  const long = text.length > most;
  const kept = long ? (tail ? text.slice(-most) : text.slice(0, most)) : text;
  return {
    text: kept.replace(TURNING, (char) => `⟨${nameOf(char)}⟩`),
    note: long ? `${count(text.length)} characters; the ${tail ? "last" : "first"} ${count(most)} are drawn` : "",
  };
}

/** Where network reads begin inside a frame's text: [position, chunk number]. */
export function cutsIn(step, chunks) {
  const cuts = [], raw = step.raw ?? "";
  let next = lastUpTo(chunks, step.start) + 1, at = step.start, position = 0;
  for (const char of raw) {
    while (next < chunks.length && chunks[next] <= at) cuts.push([position, ++next]);
    if (next >= chunks.length || chunks[next] >= step.end) break;
    const code = char.codePointAt(0); // how many bytes it was; U+FFFD stands for a byte that wasn't text
    at += code < 0x80 || code === 0xfffd ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    position += char.length;
  }
  return cuts;
}
