"""The Inspector without Jupyter: one HTML file to send, and what stands still of it.

The file holds the view's own module and what it was given: it scrubs, filters, zooms, jumps and
compares as the live view does; it opens nothing, because there is no Python to read it. The text
and the tables are for a page without a kernel, and for a check that compares notebooks.

Read next: `onefile.py`, how the file is made; `inspector.py`, the same view with Python behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from streamlab.analysis.inspection import Inspection
from streamlab.analysis.plain import clipped, counted, size
from streamlab.errors import UsageError
from streamlab.widgets.onefile import HERE, joined, one_file, to_text
from streamlab.widgets.still import escape

__all__ = ["free_name", "html", "module", "page", "style", "text"]

#: The view's files, in an order in which each needs only those before it.
FILES = (
    "steps.js",
    "inspector_rows.js",
    "inspector_marks.js",
    "inspector_time.js",
    "inspector_list.js",
    "inspector_detail.js",
    "inspector_boxes.js",
    "inspector_walk.js",
    "inspector_talk.js",
    "inspector_input.js",
    "inspector.js",
)

#: What stands in for Jupyter.
SHIM = """
const text = (id) => document.getElementById(id).textContent;
const read = (id) => JSON.parse(text(id));
const state = { shown: text("shown"), compared: read("second") ? text("second") : "",
  comparison: read("comparison"), frame: read("frame"), choices: {}, answer: {}, live: false };
const model = { get: (name) => state[name], set: (name, value) => { state[name] = value; },
  on() {}, off() {}, save_changes() {} };
render({ model, el: document.getElementById("view") });
const inspector = document.querySelector(".sl-inspector");
document.addEventListener("keydown", (event) => { // nothing else on this page wants the keys
  if (inspector.contains(event.target)) return;
  const same = new KeyboardEvent("keydown", { key: event.key, bubbles: true, cancelable: true,
    ctrlKey: event.ctrlKey, metaKey: event.metaKey, altKey: event.altKey });
  if (!inspector.dispatchEvent(same)) event.preventDefault();
});
"""

#: Problems that are listed.
MAX_PROBLEMS = 8


@cache
def module() -> str:
    """The view's own ES module."""
    return joined(*FILES)


@cache
def style() -> str:
    """The view's style."""
    return (HERE / "inspector.css").read_text("utf-8")


def page(
    shown: Inspection,
    second: Inspection | None = None,
    comparison: dict[str, Any] | None = None,
    frame: int = 1,
) -> str:
    """Make one self-contained HTML file of a recording, or of two."""
    data = {
        "shown": to_text(shown.to_json()),
        "second": to_text(None if second is None else second.to_json()),
        "comparison": to_text(comparison or {}),
        "frame": str(frame),
    }
    still = html(shown, second, comparison)
    return one_file(shown.name, style(), module() + SHIM, data, still)


def free_name(title: str) -> str:
    """A name for the file beside the notebook that nothing there has yet."""
    stem = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or "recording"
    names = (f"{stem}{n}.html" for n in ("", *(f"-{i}" for i in range(2, 1000))))
    name = next((name for name in names if not Path(name).exists()), None)
    if name is None:
        raise UsageError(f"{stem}.html and 998 more of its kind are here already")
    return name


# --- Standing still -------------------------------------------------------------------------------


def _place(shown: Inspection, row: int) -> str:
    return "the end" if row == shown.rows - 1 else f"frame {row + 1:,}"


def _heading(shown: Inspection) -> str:
    facts = shown.facts
    wire, frames = facts["wire"] or "no known wire format", counted(facts["frames"], "frame")
    name, much = clipped(shown.name, 60), size(facts["bytes"])
    return f"{name}: {wire}, {frames}, {much}; {facts['state']}"


def _verdict(shown: Inspection) -> str:
    found = shown.diagnosis
    layer = f" ({found['layer']})" if found["layer"] else ""
    return f"{found['verdict']}{layer}: {clipped(found['says'], 90)}"


def _problems(shown: Inspection) -> list[tuple[str, str, str]]:
    columns = shown.problems
    every = zip(*(columns[key] for key in ("row", "severity", "rule", "says")), strict=True)
    found = [
        (_place(shown, row), f"{severity} {clipped(rule, 40)}", clipped(says, 90))
        for row, severity, rule, says in every
    ]
    more = len(found) - MAX_PROBLEMS
    return found[:MAX_PROBLEMS] + [("…", f"{more} more", "")] * (more > 0)


def _difference(shown: Inspection, second: Inspection, comparison: dict[str, Any]) -> Iterator[str]:
    yield f"beside {_heading(second)}"
    first = comparison["first"]
    if first is None:
        yield "they mean the same"
        return
    for each, row, says in zip((shown, second), first["rows"], first["says"], strict=True):
        where = _place(each, row)
        yield f"they first differ: {clipped(each.name, 30)}, {where}: {clipped(says, 70)}"


def text(
    shown: Inspection | None,
    second: Inspection | None = None,
    comparison: dict[str, Any] | None = None,
) -> str:
    """What is open, in a few lines: the same every time, without addresses."""
    if shown is None:
        return "Inspector: nothing is open"
    lines = [f"Inspector: {_heading(shown)}", f"  {_verdict(shown)}"]
    lines += [f"  {place}: {what}: {says}".rstrip(": ") for place, what, says in _problems(shown)]
    if second is not None and comparison is not None:
        lines += [f"  {each}" for each in _difference(shown, second, comparison)]
    return "\n".join(lines)


def html(
    shown: Inspection | None,
    second: Inspection | None = None,
    comparison: dict[str, Any] | None = None,
) -> str:
    """The same as tables of plain HTML, for a web page with no kernel; everything is escaped."""
    if shown is None:
        return "<div><p>Inspector: nothing is open</p></div>"
    blocks = [f"<p><b>{escape(_heading(shown))}</b></p>", f"<p>{escape(_verdict(shown))}</p>"]
    if shown.diagnosis["advice"]:
        blocks.append(f"<p>{escape(clipped(shown.diagnosis['advice'], 200))}</p>")
    if problems := _problems(shown):
        blocks.append(_table(("where", "problem", "what"), problems))
    numbers = [
        (name, f"{value:,.9g} {unit}".strip())
        for name, unit, value in shown.measures
        if value is not None
    ]
    blocks.append(_table(("measure", "value"), numbers))
    if second is not None and comparison is not None:
        said = "<br>".join(map(escape, _difference(shown, second, comparison)))
        blocks.append(f"<p>{said}</p>")
    return f"<div>{''.join(blocks)}</div>"


def _table(heads: tuple[str, ...], body: Iterable[tuple[str, ...]]) -> str:
    def row(cells: Iterable[str], tag: str) -> str:
        made = (f'<{tag} style="text-align: left">{escape(cell)}</{tag}>' for cell in cells)
        return f"<tr>{''.join(made)}</tr>"

    return f"<table>{row(heads, 'th')}{''.join(row(cells, 'td') for cells in body)}</table>"
