"""The Stepper: one stream, step by step, with everything that a consumer could see at each step.

The view gets the whole trace once and moves a pointer through it in the browser; Python is asked
only to change what happened. A fault that is injected here makes a new `Script`, folds it again and
sends the new trace, with the future that it cut off beside it. So the picture can't say anything
that the code does not: each button is one line of Python, and the view prints that line.

Read next: `analysis/trace.py`, which does the folding; `page.py`, the same view without Python.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import anywidget
import traitlets

from streamlab.analysis.trace import Script, Trace
from streamlab.analysis.trace import trace as fold
from streamlab.errors import UsageError
from streamlab.streams.recording import Recording
from streamlab.widgets import page, still

__all__ = ["Stepper"]


class Moment(NamedTuple):
    """A script, folded: what undo goes back to."""

    script: Script
    trace: Trace
    step: int  #: where the view stood when the script was left


class Stepper(anywidget.AnyWidget):
    """A script to step through, to break, and to mend.

    Every method is a button of the view. `after` is a frame number, as in `Script`; without one it
    is the frame in view. Methods that change the script return its new trace.
    """

    _esm = page.module()
    _css = page.style()

    trace = traitlets.Unicode(help="the trace, as JSON").tag(sync=True)
    machine = traitlets.Dict(help="states and edges of the attempt").tag(sync=True)
    step = traitlets.Int(1, help="the step in view; the first is 1").tag(sync=True)
    request = traitlets.Dict(help="what the view asks of Python").tag(sync=True)
    answer = traitlets.Dict(help="what Python says to that").tag(sync=True)

    def __init__(self, source: Script | Recording, title: str = "") -> None:
        script = source if isinstance(source, Script) else Script(source)
        self._title = title
        self._past: list[Moment] = []
        self._future: list[Moment] = []
        self._now = Moment(script, fold(script), 1)
        super().__init__(machine=page.machine())
        self._show("", "")

    # --- What is in view ------------------------------------------------------------------------

    @property
    def script(self) -> Script:
        """The script as it is now, with everything that was injected."""
        return self._now.script

    @property
    def folded(self) -> Trace:
        """The trace of that script, as a value."""
        return self._now.trace

    def goto(self, step: int) -> None:
        """Show a step; the first is 1."""
        if step != self._within({"value": step}):
            last = len(self.folded.steps)
            raise UsageError(f"step {step}: this trace has steps 1 to {last}")
        self.step = step

    @traitlets.validate("step")
    def _within(self, proposal: dict[str, Any]) -> int:
        return int(min(max(proposal["value"], 1), len(self.folded.steps)))

    def save(self, path: str | Path) -> None:
        """Write the view as one HTML file that needs no kernel and no network."""
        Path(path).write_text(page.page(self._json, step=self.step), "utf-8", newline="\n")

    # --- Injecting ------------------------------------------------------------------------------

    def disconnect(self, ending: str = "eof", after: int | None = None) -> Trace:
        """Let the transport stop: "eof", "cut", "reset" or "timeout"."""
        return self._change(self.script.disconnect(self._frame(after), ending))

    def cancel(self, after: int | None = None) -> Trace:
        """Cancel here; at a step that is no frame, after everything."""
        return self._change(self.script.cancel(after or self._frame_or_none()))

    def error(self, type: str = "overloaded_error", after: int | None = None) -> Trace:
        """Let the provider report an error."""
        return self._change(self.script.error(self._frame(after), type))

    def token_limit(self, after: int | None = None) -> Trace:
        """Let the answer run into its token limit."""
        return self._change(self.script.token_limit(self._frame(after)))

    def redeliver(self, frame: int | None = None) -> Trace:
        """Deliver a frame's envelope twice."""
        return self._change(self.script.redeliver(self._frame(frame)))

    def late(self, after: int | None = None) -> Trace:
        """Let a late callback come; at a step that is no frame, after everything."""
        return self._change(self.script.late(after or self._frame_or_none()))

    def unknown(self, after: int | None = None) -> Trace:
        """Let an event come that nobody knows."""
        return self._change(self.script.unknown(self._frame(after)))

    def undo(self) -> Trace:
        """Take the last change back."""
        if not self._past:
            raise UsageError("there is nothing to undo: nothing was injected yet")
        return self._swap(self._past, self._future, "stepper.undo()")

    def redo(self) -> Trace:
        """Make the change again that was taken back last."""
        if not self._future:
            raise UsageError("there is nothing to redo: nothing was undone")
        return self._swap(self._future, self._past, "stepper.redo()")

    def reset(self) -> Trace:
        """Go back to the recording as it was; undo brings the changes back."""
        if not self._past:
            raise UsageError("nothing was injected: this is the recording as it was")
        return self._change(self._past[0].script, "stepper.reset()")

    def _frame_or_none(self) -> int | None:
        frame = self.folded.steps[self.step - 1].frame
        return frame.number if frame else None

    def _frame(self, given: int | None) -> int:
        """The frame that a fault is about: the given one, or the one in view."""
        found = self._frame_or_none() if given is None else given
        if found is None:
            kind = self.folded.steps[self.step - 1].kind
            raise UsageError(f"step {self.step} is no frame but {kind!r}: go back to a frame first")
        return found

    def _change(self, script: Script, code: str = "") -> Trace:
        """Fold a script, make it the one in view, and stand where it first differs."""
        old, new = self.folded, fold(script)
        self._past.append(self._now._replace(step=self.step))
        self._future.clear()
        self._now = Moment(script, new, _first_difference(old, new, self.step))
        self._show(_outcome(old, new), code or f"trace({script.code})")
        return new

    def _swap(self, source: list[Moment], target: list[Moment], code: str) -> Trace:
        target.append(self._now._replace(step=self.step))
        self._now = source.pop()
        self._show(f"{code.removeprefix('stepper.')}: {self.folded.attempt.state}", code)
        return self.folded

    # --- Talking to the view --------------------------------------------------------------------

    def _show(self, text: str, code: str) -> None:
        """Send the script in view, all in one message."""
        self._json = page.slim(self.folded.to_json(self._title))
        with self.hold_sync():
            self.trace = page.to_text(self._json)
            self.step = self._now.step
            self._say(text, code)

    def _say(self, text: str, code: str = "", ok: bool = True) -> None:
        done = bool(self._past)
        state = {"undo": done, "redo": bool(self._future), "reset": done}
        self.answer = {"id": self.request.get("id"), "ok": ok, "text": text, "code": code, **state}

    @traitlets.observe("request")
    def _on_request(self, change: dict[str, Any]) -> None:
        """Do what a button asks; what makes no sense is said in the view, never raised."""
        asked, after = change["new"], change["new"].get("after")
        try:
            act = ACTIONS.get(str(asked.get("action")))
            if act is None:
                raise UsageError(f"{asked.get('action')!r} is none of {', '.join(ACTIONS)}")
            if isinstance(after, int):
                self.goto(after)
            act(self, asked)
        except (UsageError, OSError) as why:
            self._say(str(why), ok=False)

    def _save_here(self) -> None:
        """Save beside the notebook, over nothing that is there already."""
        stem = re.sub(r"[^a-z0-9]+", "-", str(self._json["title"]).lower()).strip("-")[:40]
        names = (f"{stem or 'stepper'}{n}.html" for n in ("", *(f"-{i}" for i in range(2, 1000))))
        name = next(name for name in names if not Path(name).exists())
        self.save(name)
        self._say(f"saved as {name}", f"stepper.save({name!r})")

    # --- Standing still -------------------------------------------------------------------------

    def __repr__(self) -> str:
        return still.text(self._json, self.step)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        data["text/plain"] = repr(self)
        data["text/html"] = still.html(self._json, self.step)
        return data, metadata


#: What a button may ask for. Nothing else that a page sends is acted on.
ACTIONS = {
    "disconnect": lambda stepper, asked: stepper.disconnect(str(asked.get("ending", "eof"))),
    "cancel": lambda stepper, asked: stepper.cancel(),
    "error": lambda stepper, asked: stepper.error(),
    "token_limit": lambda stepper, asked: stepper.token_limit(),
    "redeliver": lambda stepper, asked: stepper.redeliver(),
    "late": lambda stepper, asked: stepper.late(),
    "unknown": lambda stepper, asked: stepper.unknown(),
    "undo": lambda stepper, asked: stepper.undo(),
    "redo": lambda stepper, asked: stepper.redo(),
    "reset": lambda stepper, asked: stepper.reset(),
    "save": lambda stepper, asked: stepper._save_here(),
}


def _first_difference(old: Trace, new: Trace, step: int) -> int:
    """The first step of the new trace that the old one did not have, or else the step in view."""
    pairs = zip(old.steps, new.steps, strict=False)
    for n, (a, b) in enumerate(pairs, 1):
        if (a.kind, a.name, a.raw) != (b.kind, b.name, b.raw):
            return n
    longer = len(new.steps) > len(old.steps)
    return len(old.steps) + 1 if longer else min(step, len(new.steps))


def _outcome(old: Trace, new: Trace) -> str:
    before, after = old.attempt.state, new.attempt.state
    if before is after:
        return f"The attempt ends in {after}, as before."
    return f"The attempt ends in {after}; it was {before} before."
