import { clip, count } from "./steps.js";

// What Python sent, as a lookup. Nothing here draws or knows a browser. A row is a frame, and the
// last row is the end; rows are counted from 0, as Python's columns are. Every column comes once,
// and is never copied: a question about one of 50,000 rows costs what it costs about one of 50.

/** Read a recording once; everything that the view asks for is found from this. */
export function indexRows(data) {
  const { frames, events, problems } = data, n = frames.start.length;
  const first = new Int32Array(n + 1).fill(events.row.length); // the first event of each row
  for (let i = events.row.length - 1; i >= 0; i--) first[events.row[i]] = i;
  for (let row = n - 1; row >= 0; row--) if (first[row] > first[row + 1]) first[row] = first[row + 1];
  const troubles = new Map();
  problems.row.forEach((row, i) => troubles.set(row, [...(troubles.get(row) ?? []), i]));
  return {
    data, n, first, troubles,
    troubled: [...troubles.keys()].sort((a, b) => a - b),
    axes: { time: data.facts.timed ? Float64Array.from(timesOf(data)) : null, bytes: Float64Array.from(frames.end) },
    lower: "", // the bytes in small letters, made at the first search
  };
}

/** When each row came; what came before any time is known came at 0. */
function timesOf({ frames, facts }) {
  let now = 0;
  const times = frames.t.map((t) => (now = t ?? now));
  times[times.length - 1] = Math.max(now, facts.end_t ?? 0);
  return times;
}

/** Seconds since the row before, or since the request; null without times. */
export function gapOf({ axes }, row) {
  return axes.time && axes.time[row] - (row ? axes.time[row - 1] : 0);
}

/** The last place in a sorted list whose value is at most `value`; -1 where there is none. */
function upTo(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The row whose place on a sorted axis is nearest to `value`. */
export function nearest(axis, value) {
  const i = upTo(axis, value);
  if (i < 0) return 0;
  return i + 1 < axis.length && axis[i + 1] - value < value - axis[i] ? i + 1 : i;
}

export const kindOf = ({ data }, row) => data.kinds[data.frames.kind[row]];
export const nameOfRow = ({ data }, row) => data.names[data.frames.name[row]];

/** The events that a row states: { type, segment, text }. */
export function eventsOf({ data, first }, row) {
  const { type, segment, text } = data.events, found = [];
  for (let i = first[row]; i < first[row + 1]; i++) {
    found.push({ type: data.types[type[i]], segment: segment[i], text: text[i] });
  }
  return found;
}

/** The problems at a row: { severity, rule, says }. */
export function problemsOf({ data, troubles }, row) {
  const { severity, rule, says } = data.problems;
  return (troubles.get(row) ?? []).map((i) => ({ severity: severity[i], rule: rule[i], says: says[i] }));
}

const SEVERITIES = ["error", "warning", "note"];
/** The worst severity at a row; "" where nothing is wrong. */
export function worstOf(index, row) {
  const found = index.troubles.has(row) ? problemsOf(index, row).map(({ severity }) => severity) : [];
  return SEVERITIES.find((severity) => found.includes(severity)) ?? "";
}

/** "TextDelta" as a person says it. */
export const wordsOf = (type) => type.replace(/Delta$/, "").replace(/(?<=[a-z])[A-Z]/g, " $&").toLowerCase();

/** What a row states, in one line. */
export function saysOf(index, row) {
  const all = eventsOf(index, row), news = all.filter(({ type }) => type !== "Problem");
  const events = news.length ? news : all;
  const said = events.slice(0, 3).map(({ type, text }) =>
    type.endsWith("Delta") && type !== "SignatureDelta" ? `${wordsOf(type)} ${JSON.stringify(clip(text, 120).text)}`
      : `${wordsOf(type)} ${clip(text, 120).text}`.trim());
  return [...said, ...(events.length > 3 ? [`and ${events.length - 3} more`] : [])].join(" · ");
}

// --- Bytes ----------------------------------------------------------------------------------------

/** Where a row's bytes are: from the end of the row before, for what no frame took belongs to it. */
export function rangeOf({ data, n }, row) {
  const { start, end } = data.frames;
  const from = row ? end[row - 1] : 0;
  return { from, start: row === n - 1 ? from : start[row], end: end[row] };
}

/** Bytes of the stream, as far as they were sent. */
export function bytesOf({ data }, from, to) {
  const text = data.raw.slice(from, to), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** Bytes as lines: { at, bytes }; a line keeps its line end. */
export function linesOf(bytes) {
  const lines = [];
  let at = 0;
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i] !== 10 && (bytes[i] !== 13 || bytes[i + 1] === 10)) continue;
    lines.push({ at, bytes: bytes.subarray(at, i + 1) });
    at = i + 1;
  }
  if (at < bytes.length) lines.push({ at, bytes: bytes.subarray(at) });
  return lines;
}

const UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });
export const textOf = (bytes) => UTF8.decode(bytes);

/** The fields of a block of an event stream, or of a line of JSON: [name, value]; data is joined. */
export function fieldsOf(bytes) {
  const text = textOf(bytes).replace(/^\ufeff/, "");
  if (/^[\s,]*[[{]/.test(text)) return [["data", text.replace(/^[\s,[]*(?=\{)/, "").replace(/[\s,\]]*$/, "")]];
  const fields = new Map();
  for (const line of text.split(/\r\n|\r|\n/)) {
    const [, name, value] = /^([^:]*):? ?(.*)$/su.exec(line) ?? [];
    if (!line || line.startsWith(":")) continue;
    fields.set(name, fields.has(name) && name === "data" ? `${fields.get(name)}\n${value}` : value);
  }
  return [...fields];
}

/** JSON with a line for each of its parts; what is no JSON, or too deep to be built, as it is. */
export function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2) ?? text;
  } catch {
    return text;
  }
}

// --- Finding --------------------------------------------------------------------------------------

const CONTENT = ["text", "thinking", "tool", "other"];
export const NO_FILTER = { text: "", kind: "", problems: false, content: false, gap: 0 };

/** The rows that a filter leaves. The last row, the end, is left out as any other. */
export function filterRows(index, { text, kind, problems, content, gap }) {
  const { data, n } = index, tests = [];
  if (kind) {
    const place = data.kinds.indexOf(kind);
    tests.push((row) => data.frames.kind[row] === place);
  }
  if (content) {
    const places = CONTENT.map((each) => data.kinds.indexOf(each));
    tests.push((row) => places.includes(data.frames.kind[row]));
  }
  if (problems) tests.push((row) => index.troubles.has(row));
  if (gap > 0) tests.push((row) => gapOf(index, row) > gap);
  if (text) {
    const found = rowsWith(index, text);
    tests.push((row) => found.has(row));
  }
  const rows = [];
  for (let row = 0; row < n; row++) if (tests.every((test) => test(row))) rows.push(row);
  return Int32Array.from(rows);
}

/** The rows that hold a text: in their bytes, in what they state, in the problems at them. */
function rowsWith(index, text) {
  const { data } = index, { frames, events, problems } = data, found = new Set();
  const wanted = text.toLowerCase(), has = (value) => value.toLowerCase().includes(wanted);
  const coded = String.fromCharCode(...new TextEncoder().encode(text)).toLowerCase();
  index.lower ||= data.raw.toLowerCase();
  for (let at = index.lower.indexOf(coded); at >= 0;) {
    const row = Math.min(upTo(frames.end, at) + 1, index.n - 1);
    found.add(row);
    at = index.lower.indexOf(coded, Math.max(frames.end[row], at + 1));
  }
  const names = new Set(data.names.flatMap((name, i) => (has(name) ? [i] : [])));
  frames.name.forEach((name, row) => names.has(name) && found.add(row));
  const types = new Set(data.types.flatMap((type, i) => (has(wordsOf(type)) || has(type) ? [i] : [])));
  events.row.forEach((row, i) => (types.has(events.type[i]) || has(events.text[i])) && found.add(row));
  problems.row.forEach((row, i) => (has(problems.says[i]) || has(problems.rule[i])) && found.add(row));
  return found;
}

// --- Numbers --------------------------------------------------------------------------------------

/** Seconds for a person. */
export function duration(s) {
  if (s == null) return "";
  const size = Math.abs(s);
  if (size < 0.0995) return `${(s * 1000).toFixed(size < 0.00095 && s ? 2 : size < 0.00995 && s ? 1 : 0)} ms`;
  return size < 1000 ? `${Number(s.toPrecision(3))} s` : `${count(Math.round(s))} s`;
}

/** A number with its unit, as Python names it. */
export function quantity(value, unit) {
  if (value == null) return "–";
  if (unit === "s") return duration(value);
  if (unit === "share") return `${(value * 100).toFixed(0)} %`;
  const number = Number.isInteger(value) ? count(value) : Number(value.toPrecision(3));
  return unit ? `${number} ${unit}` : `${number}`;
}

/** Round places on a stretch of an axis, about `most` of them: [value, label]. */
export function ticksOf(from, to, most, unit) {
  const rough = (to - from) / Math.max(most, 1);
  if (!(rough > 0)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999);
  if (unit === "bytes") step = Math.max(step, 1);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), ticks = [];
  for (let i = Math.max(0, Math.ceil(from / step - 1e-9)); i * step <= to * (1 + 1e-9); i++) {
    const label = digits ? (i * step).toFixed(digits) : count(Math.round(i * step));
    ticks.push([i * step, label]);
  }
  return ticks;
}
