"""The board of guards: switch one off, and see the shortest sequence that then goes wrong.

Python searches, once, for every guard (`study/guards.py`) and sends all findings; switching and
stepping happen in the browser. The view (`guards.js`) sets one trait, `picked`: the guard that is
off, so code can go on from what was picked: `without(board.picked)`.

Read next: `../study/guards.py`, where the findings come from.
"""

from __future__ import annotations

import html as markup
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from streamlab.errors import UsageError
from streamlab.study.guards import GUARDS, LEFT_OUT, Step, facts, steps_of, without
from streamlab.study.search import PROPERTIES, search
from streamlab.study.world import RULES, START
from streamlab.widgets.messages import hear

__all__ = ["GuardBoard"]

HERE = Path(__file__).parent

WIDTH = 88  #: of what is printed, in characters


class GuardBoard(anywidget.AnyWidget):
    """A switch for every guard; one is off at a time, or none."""

    _esm = HERE / "guards.js"
    _css = HERE / "guards.css"

    board = traitlets.Dict(help="every finding").tag(sync=True)
    picked = traitlets.Unicode("", help='the guard that is off; "": all are on').tag(sync=True)

    def __init__(self, picked: str = "") -> None:
        if picked and picked not in GUARDS:
            raise UsageError(f"no guard {picked!r}; there are: {'; '.join(GUARDS)}")
        self._first = picked  #: what stands still shows this one, whatever is picked later
        super().__init__(board=board(), picked=picked)
        hear(self, "picked")

    @traitlets.validate("picked")
    def _is_a_guard(self, proposal: dict[str, Any]) -> str:
        name = str(proposal["value"])
        if name and name not in GUARDS:
            raise traitlets.TraitError(f"there is no guard {name!r}")
        return name

    def __repr__(self) -> str:
        wide = max(map(len, GUARDS))
        rows = (f"  {name:<{wide}}  {_place(name)}" for name in GUARDS)
        left_out = textwrap.wrap(LEFT_OUT, WIDTH)
        text = "\n".join([f"GuardBoard: {_safe()}", *left_out, "Without this guard:", *rows])
        return f"{text}\n\n{without(self._first)!r}" if self._first else text

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        rows = "".join(
            f"<tr><td>{markup.escape(name)}</td><td>{_place(name)}</td>"
            f"<td>{markup.escape(without(name).promise)}</td></tr>"
            for name in GUARDS
        )
        heads = "<tr><th>without this guard</th><th>it goes wrong</th><th>broken promise</th></tr>"
        first = without(self._first)._repr_html_() if self._first else ""
        data["text/plain"] = repr(self)
        data["text/html"] = (
            f"<div><p>{_safe()} {LEFT_OUT}</p><table>{heads}{rows}</table>{first}</div>"
        )
        return data, metadata


def _place(name: str) -> str:
    return f"at step {without(name).wrong}"


def _safe() -> str:
    return f"with every guard on, no promise is broken in {search().worlds:,} moments."


@cache
def board() -> dict[str, Any]:
    """All that the view shows. Each sentence is sent once; a step has the numbers of its own."""
    said: dict[str, int] = {}
    findings = [without(name) for name in GUARDS]
    good = search()
    return {
        "worlds": good.worlds,
        "left_out": LEFT_OUT,
        "start": _facts((*facts(START), _read(RULES.said[START.state])), said),
        "promises": [each.says for each in PROPERTIES.values()],
        "good": [_step(each, said) for each in steps_of(good.path)],
        "guards": [
            {
                "name": found.guard,
                "says": found.says,
                "verdict": found.verdict(),
                "better": found.better(),
                "wrong": found.wrong,
                "steps": [_step(each, said) for each in found.steps],
                "instead": [_step(each, said) for each in found.instead],
            }
            for found in findings
        ],
        "said": list(said),
    }


def _step(step: Step, said: dict[str, int]) -> dict[str, Any]:
    return {
        "says": step.says,
        "state": step.after.value,
        "happened": step.happened,
        "facts": _facts((*step.knows, _read(step.told)), said),
    }


def _facts(sentences: tuple[str, ...], said: dict[str, int]) -> list[int]:
    return [said.setdefault(sentence, len(said)) for sentence in sentences]


def _read(told: str) -> str:
    return f"A person reads: {told}."
