"""The Stepper without Jupyter: one HTML file to send, which still scrubs.

`page` wraps the live view's own module, its style and one trace into a single file that works from
`file://`: no network, no kernel, no other file. A recording comes from a stranger: in the page it
is JSON inside a data block, with every character escaped that could end the block, under a policy
that lets nothing run but the view, by its hash.

Read next: `onefile.py`, how such a file is made; `stepper.py`, the same view with Python behind it;
`still.py`, the same trace as a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from streamlab.widgets.onefile import joined, one_file, to_text
from streamlab.widgets.still import html

__all__ = ["machine", "module", "page", "slim", "style", "to_text"]

HERE = Path(__file__).parent

#: What stands in for Jupyter: the view asks of its model nothing but these five.
SHIM = """
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const state = { trace: document.getElementById("trace").textContent, machine: read("machine"),
  at: { step: read("step"), moves: 0 }, answer: {}, live: false };
const model = { get: (name) => state[name], set: (name, value) => { state[name] = value; },
  on() {}, off() {}, save_changes() {} };
render({ model, el: document.getElementById("view") });
const stepper = document.querySelector(".sl-stepper");
document.addEventListener("keydown", (event) => { // nothing else on this page wants the keys
  if (!stepper.contains(event.target)) stepper.dispatchEvent(new KeyboardEvent("keydown", event));
});
"""


@cache
def module() -> str:
    """The view's own ES module."""
    return joined("steps.js", "stepper.js")


@cache
def style() -> str:
    """Read the view's style."""
    return (HERE / "stepper.css").read_text("utf-8")


def machine() -> dict[str, Any]:
    """Give the attempt's states and edges from its own table: no drawing can disagree with it."""
    from streamlab.consumer.attempt import SAID, TABLE

    states = [
        {"name": state.name, "terminal": not TABLE.get(state), "said": SAID[state]}
        for state in type(next(iter(TABLE)))
    ]
    edges = [
        [state.name, given.value, after.name]
        for state, row in TABLE.items()
        for given, after in row.items()
    ]
    return {"states": states, "edges": edges}


def slim(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out of each step what says nothing new; the view fills it in again."""

    def news(step: dict[str, Any], last: dict[str, Any]) -> dict[str, Any]:
        same = [key for key in ("history", "said") if step.get(key) == last.get(key)]
        dull = [key for key in ("verdicts", "problems", "injected", "ops") if not step.get(key)]
        events = [{"type": event["type"]} for event in step.get("events", ())]
        return {k: v for k, v in step.items() if k not in (*same, *dull)} | {"events": events}

    def each(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [news(step, last) for step, last in zip(steps, [{}, *steps], strict=False)]

    return {**trace, "steps": each(trace["steps"]), "ghost": each(trace.get("ghost") or [])}


def page(trace: Mapping[str, Any], title: str = "", *, step: int | None = None) -> str:
    """Make one self-contained HTML file of a trace (as `Trace.to_json` gives it).

    It opens at the last step, where the verdict is, or at the one that is asked for.
    """
    step = len(trace["steps"]) if step is None else step
    title = title or str(trace.get("title") or "a recording")
    data = {
        "trace": to_text({**slim(trace), "title": title}),
        "machine": to_text(machine()),
        "step": str(step),
    }
    return one_file(title, style(), module() + SHIM, data, html(trace, step))
