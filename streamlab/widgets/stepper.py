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

from streamlab.analysis.trace import Step, Trace
from streamlab.analysis.trace import trace as fold
from streamlab.errors import UsageError
from streamlab.streams.catalogue import FAULTS
from streamlab.streams.edit import whole
from streamlab.streams.recording import Recording
from streamlab.streams.script import Script
from streamlab.widgets import page, still
from streamlab.widgets.menu import offered
from streamlab.widgets.messages import hear

__all__ = ["Stepper"]


class Moment(NamedTuple):
    """A script, folded: what undo goes back to."""

    script: Script
    trace: Trace
    first: int  #: the first step that the script before it did not have: redo leads here
    change: str = ""  #: what made the script of the one before it, in words
    left: int = 1  #: the step at which the next change was made: undo leads here


class Stepper(anywidget.AnyWidget):
    """A script to step through, to break, and to mend.

    Every method is a button of the view. `after` is a frame number, as in `Script`; without one it
    is the last frame that has come at the step in view. Methods that change the script return its
    new trace.
    """

    _esm = page.module()
    _css = page.style()

    trace = traitlets.Unicode(help="the trace, as JSON").tag(sync=True)
    machine = traitlets.Dict(help="states and edges of the attempt").tag(sync=True)
    menu: traitlets.List[Any] = traitlets.List(help="what can be injected").tag(sync=True)
    step = traitlets.Int(1, help="the step in view; the first is 1")
    #: No echo: that of an older move would come after a newer one, and undo it in the page.
    at = traitlets.Dict(
        {"step": 1, "moves": 0},
        help="the step in view, how many moves of the page were heard of by then, and who says so",
    ).tag(sync=True, echo_update=False)
    request = traitlets.Dict(help="what the view asks of Python").tag(sync=True)
    answer = traitlets.Dict(help="what Python says to that").tag(sync=True)

    def __init__(self, source: Script | Recording, title: str = "") -> None:
        script = source if isinstance(source, Script) else Script(source)
        self._title = title
        self._past: list[Moment] = []
        self._future: list[Moment] = []
        self._now = Moment(script, fold(script), 1)
        self._moves = 0  # of the page, that were heard of
        super().__init__(machine=page.machine(), menu=offered(script.recording))
        hear(self, "at", "request")
        self._show("", "", 1)

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
        whole("step", step)
        if step != self._within({"value": step}):
            last = len(self.folded.steps)
            raise UsageError(f"step {step}: this trace has steps 1 to {last}")
        self.step = step

    @traitlets.validate("step")
    def _within(self, proposal: dict[str, Any]) -> int:
        return int(min(max(proposal["value"], 1), len(self.folded.steps)))

    @traitlets.validate("at")
    def _known_place(self, proposal: dict[str, Any]) -> dict[str, Any]:
        """A page may say anything; what is no place leaves the view where it is."""
        told = proposal["value"]
        if type(told.get("step")) is not int or type(told.get("moves")) is not int:
            return {"step": self.step, "moves": self._moves}
        by_page = {"by": "page"} if told.get("by") == "page" else {}
        if by_page and told["moves"] == self._moves:  # no move since: where Python led is newer
            return {"step": self.step, "moves": self._moves, **by_page}
        step = self._within({"value": self._in_view(told)})
        return {"step": step, "moves": told["moves"], **by_page}

    def _in_view(self, told: dict[str, Any]) -> int:
        """The step that a page means."""
        return int(told["step"])

    @traitlets.observe("at")
    def _on_move(self, change: dict[str, Any]) -> None:
        self._moves, self.step = self.at["moves"], self.at["step"]

    @traitlets.observe("step")
    def _on_step(self, change: dict[str, Any]) -> None:
        """Tell the page, with what was heard of it: it passes over what is older than its own.

        A place of the page is marked as its own: ipywidgets does not send back what it has just
        heard, and an earlier answer may have led the page away from there in the meantime.
        """
        if self.step != self.at["step"]:
            self.at = {"step": self.step, "moves": self._moves}

    def save(self, path: str | Path) -> None:
        """Write the view as one HTML file that needs no kernel and no network."""
        Path(path).write_text(page.page(self._json, step=self.step), "utf-8", newline="\n")

    # --- Injecting ------------------------------------------------------------------------------

    def disconnect(self, ending: str = "eof", after: int | None = None) -> Trace:
        """Let the transport stop: "eof", "cut", "reset" or "timeout"."""
        place = self._last_frame(after)
        changed = self.script.disconnect(place, ending)
        return self._change(changed, f"the disconnect after frame {place}", given=after)

    def inject(self, fault: str, after: int | None = None) -> Trace:
        """Break it here by a fault of the catalogue, such as "duplicate"."""
        found = FAULTS.get(fault)
        if found is None:
            raise UsageError(f"{fault!r} is none of {', '.join(FAULTS)}")
        given = found.here(self.script.recording, self._last_frame(after))
        changed = self.script.inject(found.function, **given)
        return self._change(changed, f"the fault {fault}", given=after)

    def cancel(self, after: int | None = None, hang_up: bool = True) -> Trace:
        """Cancel here; once the gates have judged, after everything."""
        place = None if after is None and self._ended(1) else self._last_frame(after)
        changed = self.script.cancel(place, hang_up)
        return self._change(changed, f"the cancellation {_place(place)}", given=after)

    def error(self, type: str = "overloaded_error", after: int | None = None) -> Trace:
        """Let the provider report an error."""
        place = self._last_frame(after)
        changed = self.script.error(place, type)
        return self._change(changed, f"the error after frame {place}", given=after)

    def token_limit(self, after: int | None = None) -> Trace:
        """Let the answer run into its token limit, which it can only while it is being written."""
        place = self._last_frame(after)
        try:
            changed = self.script.token_limit(place)
        except UsageError as why:
            said = f"no answer is being written here, so no limit can cut it ({why})"
            raise UsageError(said) from why
        return self._change(changed, f"the token limit after frame {place}", given=after)

    def redeliver(self, frame: int | None = None) -> Trace:
        """Deliver a frame's envelope twice."""
        number = self._last_frame(frame)
        changed = self.script.redeliver(number)
        return self._change(changed, f"the second delivery of frame {number}", given=frame)

    def late(self, after: int | None = None) -> Trace:
        """Let a late callback come; once the transport has stopped, after everything."""
        place = None if after is None and self._ended(0) else self._last_frame(after)
        changed = self.script.late(place)
        return self._change(changed, f"the late callback {_place(place)}", given=after)

    def unknown(self, after: int | None = None) -> Trace:
        """Let an event come that nobody knows."""
        place = self._last_frame(after)
        changed = self.script.unknown(place)
        return self._change(changed, f"the unknown event after frame {place}", given=after)

    def undo(self) -> Trace:
        """Take the last change back."""
        if not self._past:
            raise UsageError("there is nothing to undo: nothing was injected yet")
        undone, before = self._now, self._past[-1]
        text = f"undone: {undone.change} is taken back; {_ends(undone.trace, before.trace)}"
        self._future.append(undone)
        self._now = self._past.pop()
        shared = self.step < undone.first  # there the view stays where it is
        return self._show(text, "stepper.undo()", self.step if shared else before.left)

    def redo(self) -> Trace:
        """Make the change again that was taken back last."""
        if not self._future:
            raise UsageError("there is nothing to redo: nothing was undone")
        redone = self._future.pop()
        text = f"done again: {redone.change}; {_ends(self.folded, redone.trace)}"
        self._past.append(self._now)
        self._now = redone
        return self._show(text, "stepper.redo()", redone.first)

    def reset(self) -> Trace:
        """Go back to the recording as it was; undo brings the changes back."""
        if not self._past:
            raise UsageError("nothing was injected: this is the recording as it was")
        return self._change(self._past[0].script, "the reset", "stepper.reset()")

    def _last_frame(self, given: int | None) -> int:
        """The frame that a fault is about: the given one, or the last that has come."""
        if given is not None:
            return given
        come = (step.frame for step in reversed(self.folded.steps[: self.step]) if step.frame)
        frame = next(come, None)
        if frame is None:
            raise UsageError(f"no frame has come by step {self.step}: nothing can be injected here")
        return frame.number

    def _ended(self, steps_ago: int) -> bool:
        """Whether the transport had stopped so many steps before the one in view."""
        return any(step.kind == "end" for step in self.folded.steps[: self.step - steps_ago])

    def _change(
        self, script: Script, change: str, code: str = "", given: int | None = None
    ) -> Trace:
        """Fold a script, make it the one in view, and stand where it first differs.

        Undo leads back to where the learner stands now; of a change at a given place, to just
        before the difference. What changes nothing is no change, and there is nothing to undo.
        """
        old, new = self.folded, fold(script)
        if not code and _alike(old, new):
            said = f"nothing changed: {change} leaves every step as it was"
            self._say(said, f"trace({script.code})")
            return old
        differs = _first_difference(old, new)
        left = self.step if given is None or differs is None else max(differs - 1, 1)
        self._past.append(self._now._replace(left=left))
        self._future.clear()
        self._now = Moment(script, new, differs or min(self.step, len(new.steps)), change)
        return self._show(_outcome(old, new), code or f"trace({script.code})", self._now.first)

    # --- Talking to the view --------------------------------------------------------------------

    def _show(self, text: str, code: str, step: int) -> Trace:
        """Send the script in view, all in one message."""
        self._json = page.slim(self.folded.to_json(self._title))
        with self.hold_sync():
            self.trace = page.to_text(self._json)
            self.step = step
            self._say(text, code)
        return self.folded

    def _say(self, text: str, code: str = "", ok: bool = True) -> None:
        done = bool(self._past)
        state = {"undo": done, "redo": bool(self._future), "reset": done}
        self.answer = {"id": self.request.get("id"), "ok": ok, "text": text, "code": code, **state}

    @traitlets.observe("request")
    def _on_request(self, change: dict[str, Any]) -> None:
        """Do what a button asks; what makes no sense is said in the view, never raised.

        Nor is a mistake of our own: it is said too, and the view stays as it was.
        """
        asked, after = change["new"], change["new"].get("after")
        before = (self._past[:], self._future[:], self._now, self._json)
        try:
            act = ACTIONS.get(str(asked.get("action")))
            if act is None:
                raise UsageError(f"{asked.get('action')!r} is none of {', '.join(ACTIONS)}")
            if isinstance(after, int):
                self.goto(after)
            act(self, asked)
        except (UsageError, OSError) as why:
            self._say(_line(str(why)), ok=False)
        except Exception as why:
            self._past, self._future, self._now, self._json = before
            self._say(_line(f"this failed inside streamlab: {type(why).__name__}: {why}"), ok=False)

    def _save_here(self) -> None:
        """Save beside the notebook, over nothing that is there already."""
        stem = re.sub(r"[^a-z0-9]+", "-", str(self._json["title"]).lower()).strip("-")[:40]
        names = (f"{stem or 'stepper'}{n}.html" for n in ("", *(f"-{i}" for i in range(2, 1000))))
        name = next((name for name in names if not Path(name).exists()), None)
        if name is None:
            raise UsageError(f"{stem or 'stepper'}.html and 998 more of its kind are here already")
        self.save(name)
        where = "open it in a browser (in JupyterLab it needs Trust HTML)"
        self._say(f"saved as {name}; {where}", f"stepper.save({name!r})")

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
    "cancel_only": lambda stepper, asked: stepper.cancel(hang_up=False),
    "inject": lambda stepper, asked: stepper.inject(str(asked.get("fault", ""))),
    "undo": lambda stepper, asked: stepper.undo(),
    "redo": lambda stepper, asked: stepper.redo(),
    "reset": lambda stepper, asked: stepper.reset(),
    "save": lambda stepper, asked: stepper._save_here(),
}


def _place(after: int | None) -> str:
    return "after everything" if after is None else f"after frame {after}"


def _line(text: str, most: int = 300) -> str:
    """What went wrong, in one line that fits into the view."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[:most] + "…"


def _ends(old: Trace, new: Trace) -> str:
    """Where the attempt ends once a change is taken back, or made again."""
    before, after = old.attempt.state, new.attempt.state
    still, again = ("still ", "") if before is after else ("", " again")
    return f"the attempt {still}ends in {after}{again}"


def _first_difference(old: Trace, new: Trace) -> int | None:
    """The first step of the new trace that the old one did not have; None where it has none."""
    pairs = zip(old.steps, new.steps, strict=False)
    for n, (a, b) in enumerate(pairs, 1):
        if (a.kind, a.name, a.raw) != (b.kind, b.name, b.raw):
            return n
    return len(old.steps) + 1 if len(new.steps) > len(old.steps) else None


def _alike(old: Trace, new: Trace) -> bool:
    """Whether two traces show the same at every step: bytes, reads, times, states, reasons."""
    pairs = zip(old.steps, new.steps, strict=False)
    return len(old.steps) == len(new.steps) and all(_seen(a) == _seen(b) for a, b in pairs)


def _seen(step: Step) -> tuple[Any, ...]:
    shown = (step.kind, step.name, step.raw, step.chunk, step.t, step.why)
    return (*shown, step.attempt.state, step.injected, step.verdicts)


def _outcome(old: Trace, new: Trace) -> str:
    before, after = old.attempt.state, new.attempt.state
    if before is after:
        return f"The attempt ends in {after}, as before."
    return f"The attempt ends in {after}; it was {before} before."
