"""The turns of lesson 07: a model that answers from recordings, and a shelf of items to read.

Which of two tools is done first is decided here by events, and not by a clock, so a lesson prints
the same every time. Only in the live view do tools take seconds: so that a person can press Cancel.

Read next: `exercise_07.py`, the lesson's exercise; `../consumer/toolloop.py`, the loop itself.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any

from streamlab.analysis.judge import Outcome, judge
from streamlab.consumer.bus import Bus
from streamlab.consumer.history import Message
from streamlab.consumer.toolloop import Ask, Tool
from streamlab.consumer.toolrecord import Ended
from streamlab.consumer.turn_events import BusEvent, ToolResolved, ToolRunning
from streamlab.errors import UsageError
from streamlab.streams.parts import Text, ToolCall
from streamlab.streams.recording import Chunk, Recording
from streamlab.streams.synth import answer

__all__ = [
    "Items",
    "Model",
    "no_such_item",
    "noted",
    "settled",
    "slow_tools",
    "slowly",
    "start",
    "three_rounds",
]

#: The one that is not there.
MISSING = "W-9"

STATES = {"W-7": "a draft", "W-8": "open"}

#: Seconds that an item takes in the live view: long enough to press Cancel.
SECONDS = {"W-7": 3.5, "W-8": 2.0, MISSING: 2.0}


class Model:
    """A model that gives the next recording for each request, whole and judged."""

    def __init__(self, *recordings: Recording) -> None:
        self.requests: list[list[Message]] = []
        self._recordings = recordings

    async def ask(self, messages: list[Message]) -> Outcome:
        """Send a request, and wait for the whole answer."""
        if len(self.requests) == len(self._recordings):
            raise UsageError(f"there is no recording for request {len(self.requests) + 1}")
        self.requests.append(messages)
        return judge(self._recordings[len(self.requests) - 1])


class Items:
    """Work items, and the tool that reads one; `log` has when it began, and when it was done.

    `waits`: an item -> another one, whose end it waits for. `seconds`: an item -> how long it
    takes. W-9 is not there.
    """

    def __init__(
        self, waits: Mapping[str, str] | None = None, seconds: Mapping[str, float] | None = None
    ) -> None:
        self.log: list[str] = []
        self._waits, self._seconds = waits or {}, seconds or {}
        self._done: dict[str, asyncio.Event] = {}

    @property
    def tools(self) -> dict[str, Tool]:
        """What a tool loop is given: name -> function."""
        return {"read_item": self.read}

    async def read(self, input: dict[str, Any]) -> str:
        """Say how an item is."""
        item = str(input["item"])
        self.log.append(f"{item} started")
        if item in self._waits:
            await self._event(self._waits[item]).wait()
        await asyncio.sleep(self._seconds.get(item, 0))
        if item == MISSING:
            raise LookupError(f"there is no {item}")
        self.log.append(f"{item} done")
        self._event(item).set()
        return f"{item} is {STATES.get(item, 'closed')}"

    def _event(self, item: str) -> asyncio.Event:
        return self._done.setdefault(item, asyncio.Event())


# --- Streams, and how they come -------------------------------------------------------------------


def no_such_item() -> tuple[Recording, ...]:
    """Two rounds: two calls, one of them for an item that is not there; then the text."""
    return (
        _round(1, Text("I'll look at both."), _read("W-8"), _read(MISSING)),
        _round(2, Text("W-8 is open, and there is no W-9.")),
    )


def three_rounds() -> tuple[Recording, ...]:
    """Three rounds: two calls side by side, one that fails, then the text."""
    return (
        _round(1, Text("I'll look at the first two."), _read("W-7"), _read("W-8")),
        _round(2, Text("Now the third."), _read(MISSING)),
        _round(3, Text("W-7 is a draft, W-8 is open, and there is no W-9.")),
    )


def _read(item: str) -> ToolCall:
    return ToolCall("read_item", {"item": item})


def _round(number: int, *parts: Text | ToolCall) -> Recording:
    from streamlab.streams.rounds import PLAIN  # its policy has a schema, and that takes a second

    return answer(parts, seed=number, style=PLAIN, note=f"round {number}")


def slow_tools() -> dict[str, Tool]:
    """Tools that take seconds, for the live view."""
    return Items(seconds=SECONDS).tools


def slowly(ask: Ask, seconds: float) -> Ask:
    """The same answers, with a pause before each of their reads."""

    async def slow(messages: list[Message]) -> AsyncIterator[bytes | Chunk]:
        async for read in ask(messages):
            await asyncio.sleep(seconds)
            yield read  # type: ignore[misc]

    return slow


# --- The screen's side ----------------------------------------------------------------------------


def noted(log: list[str]) -> Callable[[BusEvent], None]:
    """Write into a log when the card of a call changes, by the number of its block."""

    def publish(event: BusEvent) -> None:
        if isinstance(event, ToolRunning):
            log.append(f"card {event.segment}: running")
        elif isinstance(event, ToolResolved):
            log.append(f"card {event.segment}: {event.status}")

    return publish


# --- Tasks ----------------------------------------------------------------------------------------


def start(turn: Coroutine[Any, Any, Ended], bus: Bus) -> asyncio.Task[Ended]:
    """Run a turn in a task of its own, and close the bus with it."""
    task = asyncio.create_task(turn)
    task.add_done_callback(bus.close)
    return task


def settled(function: Callable[..., Any]) -> Callable[..., Any]:
    """An async function as a plain one, for a check that cannot await.

    A notebook's own event loop is busy with the cell, so it runs in another one, in a thread.
    """

    def plain(*given: Any) -> Any:
        came: list[Any] = []
        thread = threading.Thread(target=lambda: came.append(_run(function, given)), daemon=True)
        thread.start()
        thread.join()
        (value, why), *_ = came
        if why is not None:
            raise why
        return value

    return plain


#: Seconds after which an answer that still waits is given up.
PATIENCE = 2.0


def _run(function: Callable[..., Any], given: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    """What a function gave, or what it raised."""

    async def main() -> Any:
        value = function(*given)
        if inspect.isawaitable(value):
            async with asyncio.timeout(PATIENCE):
                return await value
        return value

    try:
        return asyncio.run(main()), None
    except Exception as why:
        return None, why
    except asyncio.CancelledError:
        return None, UsageError("the function was cancelled")
