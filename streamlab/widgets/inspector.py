"""The Inspector: one recording, every frame and every byte of it, and what is wrong with it.

    Inspector("slow.har")            a file of any form that an importer knows
    Inspector(before, after)         two recordings on one axis
    Inspector()                      empty: open a file, or drop one onto it

The view gets a recording once and moves through it in the browser. Python is asked only to read
another one: a file that is dropped comes in pieces, is read as any other file, and takes the place
of the one in view. A bad file takes no place; and undo leads back to what was open before.

Read next: `analysis/inspection.py`, what the view is given; `inspector_page.py`, the same view as a
page of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import anywidget
import traitlets

from streamlab.analysis.comparison import compare
from streamlab.analysis.inspection import Inspection
from streamlab.errors import UsageError, WireError
from streamlab.streams.edit import whole
from streamlab.widgets import inspector_page
from streamlab.widgets.inspector_files import MAX_FILE, Incoming, Source, Stream, line, streams_of
from streamlab.widgets.messages import hear
from streamlab.widgets.onefile import to_text

__all__ = ["Inspector"]

#: How many openings undo can take back.
MAX_PAST = 10


class Side(NamedTuple):
    """The streams of what was opened, and the one in view."""

    streams: tuple[Stream, ...] = ()
    chosen: int = 0

    @property
    def inspection(self) -> Inspection | None:
        """The stream in view; None where nothing is open."""
        return self.streams[self.chosen].inspection if self.streams else None


class Open(NamedTuple):
    """What is open, which undo goes back to: a recording, and one beside it."""

    first: Side = Side()
    second: Side = Side()


class Inspector(anywidget.AnyWidget):
    """A recording to look into, and another to compare it with.

    Every method is a button of the view. `frame` is the frame in view, the first is 1; one behind
    the last stands for the end of the stream.
    """

    _esm = inspector_page.module()
    _css = inspector_page.style()

    shown = traitlets.Unicode(help="the recording, as JSON; empty: none").tag(sync=True)
    compared = traitlets.Unicode(help="the one beside it").tag(sync=True)
    comparison = traitlets.Dict(help="where the two differ").tag(sync=True)
    choices = traitlets.Dict(help="the streams of both files").tag(sync=True)
    #: No echo: that of an older move would come after a newer one, and undo it in the page.
    frame = traitlets.Int(1, help="the frame in view; the first is 1").tag(
        sync=True, echo_update=False
    )
    most = traitlets.Int(MAX_FILE, help="bytes of a file that can be sent").tag(sync=True)
    request = traitlets.Dict(help="what the view asks of Python").tag(sync=True)
    answer = traitlets.Dict(help="what Python says to that").tag(sync=True)

    def __init__(
        self, source: Source | None = None, beside: Source | None = None, title: str = ""
    ) -> None:
        self._past: list[Open] = []
        first = Side() if source is None else Side(streams_of(source, title))
        second = Side() if beside is None else Side(streams_of(beside))
        if second.streams and not first.streams:
            raise UsageError("nothing to compare it with: give the other recording first")
        self._now = Open(first, second)
        self._incoming = Incoming()
        super().__init__()
        hear(self, "frame", "request")
        self.on_msg(self._on_piece)
        self._show("")

    # --- What is in view ------------------------------------------------------------------------

    @property
    def inspection(self) -> Inspection | None:
        """The recording in view, as a value; None where nothing is open."""
        return self._now.first.inspection

    def goto(self, frame: int) -> None:
        """Show a frame; the first is 1."""
        whole("frame", frame)
        if frame != self._within({"value": frame}):
            last = self._rows() - 1
            raise UsageError(f"frame {frame}: there are frames 1 to {last}, and the end")
        self.frame = frame

    def _rows(self) -> int:
        return 1 if self.inspection is None else self.inspection.rows

    @traitlets.validate("frame")
    def _within(self, proposal: dict[str, Any]) -> int:
        return int(min(max(proposal["value"], 1), self._rows()))

    def save(self, path: str | Path) -> None:
        """Write the view as one HTML file that needs no kernel and no network."""
        shown = self.inspection
        if shown is None:
            raise UsageError("nothing is open, so there is nothing to save")
        second = self._now.second.inspection
        written = inspector_page.page(shown, second, self._compared(), self.frame)
        Path(path).write_text(written, "utf-8", newline="\n")

    # --- Opening --------------------------------------------------------------------------------

    def load(self, source: Source, name: str = "") -> None:
        """Look at another recording; the one beside it stays."""
        side = Side(streams_of(source, name))
        self._change(self._now._replace(first=side), f"opened {side.streams[0].name}")

    def compare(self, source: Source, name: str = "") -> None:
        """Put a recording beside the one in view."""
        if not self._now.first.streams:
            raise UsageError("nothing is open yet: open a recording, then compare it")
        side = Side(streams_of(source, name))
        self._change(self._now._replace(second=side), f"beside it: {side.streams[0].name}")

    def alone(self) -> None:
        """Take the recording beside it away."""
        self._change(self._now._replace(second=Side()), "no comparison")

    def choose(self, stream: int, beside: bool = False) -> None:
        """Look at another stream of the file, the first is 1; `beside`: of the other file."""
        side = self._now.second if beside else self._now.first
        whole("stream", stream)
        if not 1 <= stream <= len(side.streams):
            raise UsageError(f"stream {stream}: there are streams 1 to {len(side.streams)}")
        side = side._replace(chosen=stream - 1)
        changed = {"second" if beside else "first": side}
        self._change(self._now._replace(**changed), f"stream {stream} of {len(side.streams)}")

    def undo(self) -> None:
        """Go back to what was open before."""
        if not self._past:
            raise UsageError("there is nothing to undo: nothing was opened in place of another")
        self._now = self._past.pop()
        shown = self.inspection
        self._show(f"back to {shown.name}" if shown else "nothing is open")

    def _change(self, now: Open, said: str) -> None:
        """Show something else. It is laid out first: what cannot be shown takes no place."""
        _ = now.first.inspection, now.second.inspection
        self._past = [*self._past, self._now][-MAX_PAST:]
        self._now = now
        self._show(said)

    # --- Talking to the view --------------------------------------------------------------------

    def _compared(self) -> dict[str, Any] | None:
        first, second = self._now.first.inspection, self._now.second.inspection
        return None if first is None or second is None else compare(first, second)

    def _show(self, said: str) -> None:
        """Send what is open, all in one message, and stand where the verdict comes from."""
        first, second = self._now
        shown, beside = first.inspection, second.inspection
        with self.hold_sync():
            self.shown = "" if shown is None else to_text(shown.to_json())
            self.compared = "" if beside is None else to_text(beside.to_json())
            self.comparison = self._compared() or {}
            self.choices = {
                key: {"streams": [each.label for each in side.streams], "chosen": side.chosen}
                for key, side in (("first", first), ("second", second))
            }
            self.frame = 1 if shown is None else max(shown.first, 0) + 1
            self._say(said)

    def _say(self, text: str, ok: bool = True, id: Any = None) -> None:
        id = self.request.get("id") if id is None else id
        self.answer = {"id": id, "ok": ok, "text": text, "undo": bool(self._past)}

    @traitlets.observe("request")
    def _on_request(self, change: dict[str, Any]) -> None:
        """Do what a button asks."""
        asked = change["new"]

        def act() -> None:
            action = ACTIONS.get(str(asked.get("action")))
            if action is None:
                raise UsageError(f"{asked.get('action')!r} is none of {', '.join(ACTIONS)}")
            action(self, asked)

        self._try(act)

    def _on_piece(self, _: anywidget.AnyWidget, message: object, buffers: Any) -> None:
        """Take a piece of a file; with the last one, open it."""
        told = message.get("file") if isinstance(message, dict) else None
        if not isinstance(told, dict):
            return

        def act() -> None:
            arrived = self._incoming.take(told, buffers or ())
            if arrived is None:
                return
            path, label = arrived
            try:
                (self.compare if told.get("beside") else self.load)(path, label)
            finally:
                self._incoming.clear()
            self._say(self.answer["text"], id=told.get("id"))

        self._try(act, told.get("id"))

    def _try(self, act: Any, id: Any = None) -> None:
        """What makes no sense, and a bad file, is said in the view, never raised.

        Nor is a mistake of our own: it is said too, and the view stays as it was.
        """
        before = (self._past, self._now)
        try:
            act()
        except (UsageError, WireError, OSError) as why:
            self._past, self._now = before
            self._say(line(str(why)), ok=False, id=id)
        except Exception as why:
            self._past, self._now = before
            said = f"this failed inside streamlab: {type(why).__name__}: {why}"
            self._say(line(said), ok=False, id=id)

    def _save_here(self) -> None:
        """Save beside the notebook, over nothing that is there already."""
        name = inspector_page.free_name(self.inspection.name if self.inspection else "")
        self.save(name)
        self._say(f"saved as {name}; open it in a browser (in JupyterLab it needs Trust HTML)")

    # --- Standing still -------------------------------------------------------------------------

    def _still(self) -> tuple[Inspection | None, Inspection | None, dict[str, Any] | None]:
        return self.inspection, self._now.second.inspection, self._compared()

    def __repr__(self) -> str:
        return inspector_page.text(*self._still())

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        data["text/plain"] = repr(self)
        data["text/html"] = inspector_page.html(*self._still())
        return data, metadata


def _number(asked: dict[str, Any]) -> int:
    stream = asked.get("stream")
    return stream if isinstance(stream, int) else 0


#: What a button may ask for. Nothing else that a page sends is acted on.
ACTIONS = {
    "undo": lambda inspector, asked: inspector.undo(),
    "alone": lambda inspector, asked: inspector.alone(),
    "choose": lambda inspector, asked: inspector.choose(_number(asked), bool(asked.get("beside"))),
    "save": lambda inspector, asked: inspector._save_here(),
}
