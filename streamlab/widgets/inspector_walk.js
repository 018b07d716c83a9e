import { filterRows, nearest, NO_FILTER } from "./inspector_rows.js";
import { clamp } from "./inspector_marks.js";

// Where the view stands, in each of its recordings, and every way to move there. Nothing is drawn
// here: whatever moves says so to `moved`; `filtered` sees to it that the rows are the filter's.

/** A recording in view: `rows` are those that the filter leaves, `passes` says it of each row. */
export const makeSide = (index) => ({ index, row: 0, rows: null, passes: null, filter: null });

/** Where a side's row stands among its rows, or would stand. */
export function placeOf({ rows, row }) {
  let low = 0, high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle] < row) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Ask each recording for its rows, if the filter is another one; whether there is a filter at all. */
export function refilter(sides, wanted) {
  const key = JSON.stringify(wanted);
  for (const side of sides) {
    if (side.filter === key) continue;
    side.filter = key;
    side.rows = filterRows(side.index, wanted);
    side.passes = new Uint8Array(side.index.n);
    for (const row of side.rows) side.passes[row] = 1;
  }
  return key !== JSON.stringify(NO_FILTER);
}

/** The moves of a view that has `sides`, of which `active` is looked at, on one `scale`. */
export function walker(view, { moved, say, parting, filtered }) {
  const now = () => view.sides[view.active];
  const axisOf = ({ index }) => index.axes[view.scale.by] ?? index.axes.bytes;

  function go(row, by = "view") {
    const side = now(), other = view.sides[1 - view.active];
    if (!side) return;
    side.row = clamp(Math.round(row) || 0, 0, side.index.n - 1);
    const at = axisOf(side)[side.row];
    if (other && by !== "both") other.row = nearest(axisOf(other), at); // the same moment
    view.scale.reveal(at);
    moved(by !== "python");
  }
  /** So many rows on, among those that the filter leaves. */
  function step(by) {
    filtered(); // a filter that was changed since the last picture counts at once
    const { rows, index, row } = now();
    if (!Number.isFinite(by)) return go(by < 0 ? rows[0] ?? 0 : rows.at(-1) ?? index.n - 1);
    if (!rows.length) return;
    const here = placeOf(now()), on = rows[here] === row;
    go(rows[clamp(on || by < 0 ? here + by : here + by - 1, 0, rows.length - 1)]);
  }
  /** To the next row with a problem, or to the one before. */
  function trouble(by) {
    const { index: { troubled }, row } = now();
    const next = by > 0 ? troubled.find((each) => each > row) : troubled.findLast((each) => each < row);
    if (next !== undefined) go(next);
    else say(troubled.length ? "no more problems in this direction" : "no problem in this recording");
  }
  /** To where the verdict comes from. */
  function jump() {
    const { first } = now().index.data;
    if (first >= 0) go(first);
  }
  /** To where two recordings first differ. */
  function differ() {
    const rows = parting();
    if (!rows || view.sides.length < 2) return;
    view.sides.forEach((side, i) => { side.row = rows[i]; });
    go(rows[view.active], "both");
  }
  return { now, go, step, trouble, jump, differ };
}
