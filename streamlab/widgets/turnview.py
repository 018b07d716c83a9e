"""A turn with tools, live: one bubble, its tool cards with their chips, Run and Cancel.

Python runs the turn in a task of the notebook's own event loop, and sends the folded screen
whenever an event has crossed the bus. The view (`turnview.js`) only draws it, and says in a message
which button was pressed. What was recorded is there for code afterwards: `view.ended`.

JSON on its way to a tool is in no part of what is sent: a card has names and values, once its input
is whole. Read next: `../consumer/toolloop.py`, which runs; `../consumer/screen.py`, which folds.
"""

from __future__ import annotations

import asyncio
import html as markup
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from streamlab.consumer.bus import Bus
from streamlab.consumer.conversation import Conversation
from streamlab.consumer.screen import Part, Screen, fold_screen, show
from streamlab.consumer.toolloop import Tool, run_turn
from streamlab.consumer.toolrecord import Ended
from streamlab.consumer.turn_events import BusEvent, Status
from streamlab.streams.recording import Recording
from streamlab.streams.rounds import READING
from streamlab.streams.upstream import Replay
from streamlab.study import turns
from streamlab.wire.payload import NotJSON, parse

__all__ = ["TurnView", "data"]

HERE = Path(__file__).parent

QUESTION = "What about W-7, W-8 and W-9?"

#: Width of what is printed, in characters.
WIDTH = 88

Streams = Callable[[], tuple[Recording, ...]]
Tools = Callable[[], Mapping[str, Tool]]


class TurnView(anywidget.AnyWidget):
    """One scripted turn, to be run and cancelled by hand.

    `streams` and `tools` are made anew for each run; `pace` is the pause before each read.
    """

    _esm = HERE / "turnview.js"
    _css = HERE / "turnview.css"

    question = traitlets.Unicode(help="what the person asked").tag(sync=True)
    screen = traitlets.Dict(help="the bubble as it is now").tag(sync=True)
    running = traitlets.Bool(False, help="whether a turn is under way").tag(sync=True)

    def __init__(
        self,
        streams: Streams = turns.three_rounds,
        tools: Tools = turns.slow_tools,
        *,
        question: str = QUESTION,
        pace: float = 0.05,
    ) -> None:
        self._streams, self._tools, self._pace = streams, tools, pace
        self._asked = Conversation().ask(question)
        self._loop = _running_loop()  #: the one of the cell that made this view
        self._turn: asyncio.Task[Ended] | None = None
        self._watch: asyncio.Task[None] | None = None  #: kept, or it might be collected
        self.ended: Ended | None = None  #: the record of the last turn that is over
        self._still = data(finished(streams(), self._asked))
        super().__init__(question=question, screen=data(Screen()))
        self.on_msg(self._press)

    # --- what the buttons do

    def _press(self, _: TurnView, message: object, buffers: object) -> None:
        """Do what a button is for; what no button sends is ignored.

        A message, because state waits in the page while the kernel is busy: a Cancel would come
        late, and two presses would come as one.
        """
        button = message.get("press") if isinstance(message, dict) else None
        if button == "run":
            self._soon(self._begin)
        elif button == "cancel":
            self._soon(self._stop)

    def _soon(self, act: Callable[[], None]) -> None:
        """Do something in the notebook's own event loop, and wake it for that.

        JupyterLab hands a press over in a thread with a loop of its own (a subshell). A task that
        is cancelled from there hears of it only when its loop wakes for some other reason.
        """
        loop = self._loop or asyncio.get_running_loop()
        loop.call_soon_threadsafe(act)

    def _begin(self) -> None:
        if not self.running:
            self.running = True
            self._watch = asyncio.create_task(self._play())

    def _stop(self) -> None:
        if self._turn is not None:
            self._turn.cancel()

    async def _play(self) -> None:
        """Run the turn, and show what crosses the bus until it is over."""
        bus, screen = Bus(), Screen()
        try:
            self.screen, self.ended = data(screen), None
            ask = turns.slowly(Replay(*self._streams()), self._pace)
            turn = run_turn(self._asked, ask, self._tools(), READING, publish=bus.publish)
            self._turn = turns.start(turn, bus)
            async for event in bus:
                screen = show(screen, event)
                self.screen = data(screen)
            if not self._turn.cancelled():  # else it never began; it is over, or the bus were open
                self.ended = self._turn.result()
        finally:
            if self._turn is not None:
                self._turn.cancel()  # it outlives nobody who watches
            with self.hold_sync():
                self.screen, self.running, self._turn = data(screen), False, None

    # --- what stands still

    def __repr__(self) -> str:
        title = textwrap.shorten(f"TurnView, if nobody cancels: {self.question}", WIDTH)
        lines = (textwrap.shorten(line, WIDTH - 2) for line in _lines(self._still))
        return "\n  ".join([title, *lines])

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        bundle["text/plain"] = repr(self)
        bundle["text/html"] = _html(self.question, self._still)
        return bundle, metadata


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def finished(streams: tuple[Recording, ...], asked: Conversation) -> Screen:
    """The screen of a turn that nobody cancels, at its end; without a wait."""
    events: list[BusEvent] = []

    async def whole() -> Ended:
        tools = turns.Items().tools
        return await run_turn(asked, Replay(*streams), tools, READING, publish=events.append)

    turns.settled(whole)()
    return fold_screen(events)


# --- What is sent ---------------------------------------------------------------------------------


def data(screen: Screen) -> dict[str, Any]:
    """The last bubble of a screen as the view draws it; no JSON text is in it."""
    if not screen.bubbles:
        return {"parts": [], "rounds": 0, "state": "", "said": ""}
    bubble = screen.bubbles[-1]
    return {
        "parts": [_part(part) for part in bubble.parts],
        "rounds": bubble.rounds,
        "state": str(bubble.state or ""),
        "said": bubble.said,
    }


def _part(part: Part) -> dict[str, Any]:
    card = part.kind == "tool_call"
    return {
        "kind": part.kind,
        "tool": _sendable(part.tool),
        "status": str(part.status),
        "text": "" if card else _sendable(part.text),
        "input": _pairs(part) if card else [],
        "result": _sendable(part.result),
    }


def _pairs(part: Part) -> list[list[str]]:
    """What a tool is given, as names and values; nothing before its input is whole."""
    if part.status is Status.STREAMING:
        return []
    try:
        value = parse(part.text)
    except NotJSON:
        return []
    pairs = value.items() if isinstance(value, dict) else ()
    return [[_sendable(str(name)), _sendable(str(held))] for name, held in pairs]


def _sendable(text: str) -> str:
    """A stranger's text without halves of characters, which no message can hold."""
    return text.encode("utf-8", "replace").decode()


def _lines(shown: Mapping[str, Any]) -> list[str]:
    """A bubble as lines of text."""
    parts = [_words(part) for part in shown["parts"]]
    return [*parts, f"{shown['state']}: {shown['said']} ({shown['rounds']} rounds)"]


def _words(part: Mapping[str, Any]) -> str:
    if part["kind"] != "tool_call":
        return str(part["text"])
    given = ", ".join(f"{name} {value}" for name, value in part["input"])
    result = f" → {part['result']}" if part["result"] else ""
    return f"{part['tool']} ({given}) [{part['status']}]{result}"


def _html(question: str, shown: Mapping[str, Any]) -> str:
    lines = "".join(f"<p>{markup.escape(line)}</p>" for line in _lines(shown))
    return (
        f"<p><b>{markup.escape(question)}</b> (if nobody cancels)</p>"
        f"<blockquote>{lines}</blockquote>"
    )
