"""The Stepper with a choice of wire format: one answer, to be walked through in each dialect.

Whoever picks another format stays at the same moment of the answer: the view goes to the first step
at which as much has been said. So what changes is the panel of the wire, and what stays is all the
rest. Each format keeps its own script, so what was injected into one is there again on return.

Read next: `stepper.py`, which this is; `dialects.js`, which adds the choice.
"""

from __future__ import annotations

import html as markup
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import traitlets

from streamlab.analysis.trace import Step, Trace, trace
from streamlab.errors import UsageError
from streamlab.streams import synth
from streamlab.streams.recording import Recording
from streamlab.streams.script import Script
from streamlab.widgets import page
from streamlab.widgets.menu import offered
from streamlab.widgets.messages import hear
from streamlab.widgets.stepper import Moment, Stepper

__all__ = ["DialectStepper", "moment"]

HERE = Path(__file__).parent

#: How the Stepper's own module ends; here another function is what a page is given.
ENDS = "export default { render };\n"


@cache
def _module() -> str:
    return page.module().replace(ENDS, "") + (HERE / "dialects.js").read_text("utf-8")


@cache
def _style() -> str:
    return page.style() + (HERE / "dialects.css").read_text("utf-8")


class DialectStepper(Stepper):
    """One answer on several wires. `tell` makes its recording for each of them."""

    _esm = _module()
    _css = _style()

    wires: traitlets.List[Any] = traitlets.List(help="the formats to choose from").tag(sync=True)
    wire = traitlets.Unicode(help="the one in view").tag(sync=True, echo_update=False)

    def __init__(
        self,
        tell: Callable[[str], Recording] = synth.story,
        wires: tuple[str, ...] = ("claude", "openai-chat", "openai-responses", "gemini"),
        title: str = "one answer",
    ) -> None:
        if not wires:
            raise UsageError("no wire format to choose from")
        scripts = {wire: Script(tell(wire)) for wire in wires}
        #: Of each wire that is not in view: its past, its future, and where it is now.
        self._kept: dict[str, tuple[list[Moment], list[Moment], Moment]] = {
            wire: ([], [], Moment(script, trace(script), 1)) for wire, script in scripts.items()
        }
        self._still = [_row(wire, moment.trace) for wire, (_, _, moment) in self._kept.items()]
        self._shown = wires[0]
        super().__init__(scripts[wires[0]], title)
        self.wires, self.wire = list(wires), wires[0]
        self.observe(self._switch, "wire")
        hear(self, "wire")  # after `at`, which the same message may bring

    @traitlets.validate("wire")
    def _known(self, proposal: dict[str, Any]) -> str:
        """A page may ask for anything, and what is not there changes nothing; a person is told."""
        asked = proposal["value"]
        if asked not in self._kept and not self._property_lock:  # it comes from a cell
            raise UsageError(f"wire {asked!r} is none of {', '.join(self._kept)}")
        return str(asked if asked in self._kept else self._shown)

    def _in_view(self, told: dict[str, Any]) -> int:
        """A place on a wire that is no longer in view is the same moment on the one that is.

        Whoever picks a wire may go on in the old one until Python answers.
        """
        step, wire = int(told["step"]), str(told.get("wire", self._shown))
        if wire == self._shown or wire not in self._kept:
            return step
        steps = self._kept[wire][-1].trace.steps
        return same_moment(self.folded, steps[min(max(step, 1), len(steps)) - 1])

    def _switch(self, change: dict[str, Any]) -> None:
        if self.wire == self._shown:
            return
        here = self.folded.steps[self.step - 1]
        self._kept[self._shown] = (self._past, self._future, self._now)
        self._past, self._future, self._now = self._kept[self.wire]
        self._shown = self.wire
        with self.hold_sync():
            self.menu = offered(self.script.recording)
            self._show("", f"stepper.wire = {self.wire!r}", same_moment(self.folded, here))

    # --- Standing still -------------------------------------------------------------------------

    def __repr__(self) -> str:
        wide = [max(map(len, column)) for column in zip(*self._still, strict=True)]
        lines = (
            "  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True)).rstrip()
            for row in self._still
        )
        return "\n  ".join([f"DialectStepper: {self._title}", *lines])

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs)
        rows = "".join(
            f"<tr>{''.join(f'<td>{markup.escape(cell)}</td>' for cell in row)}</tr>"
            for row in self._still
        )
        title = markup.escape(self._title)
        data["text/html"] = f"<div><p><b>{title}</b></p><table>{rows}</table></div>"
        return data, metadata


def moment(step: Step) -> tuple[int, int]:
    """How far an answer has come at a step, in a measure that all formats share.

    What is visible is counted without spaces: JSON may come with or without them.
    """
    said = sum(len("".join(part.text.split())) for part in step.turn.segments)
    far = (bool(step.turn.facts.stop_reason), step.turn.complete, step.kind == "gates")
    return said, sum(far)


def same_moment(there: Trace, here: Step) -> int:
    """The number of the first step at which as much has come as here; the last one, if none."""
    come, last = moment(here), len(there.steps)
    return next((n for n, step in enumerate(there.steps, 1) if moment(step) >= come), last)


def _row(wire: str, folded: Trace) -> tuple[str, str, str]:
    frames = sum(step.frame is not None for step in folded.steps)
    return wire, f"{frames} frames", f"{len(folded.steps)} steps, {folded.attempt.state}"
