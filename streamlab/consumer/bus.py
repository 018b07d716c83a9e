"""The bus between the stream's side and the screen's side: typed events, one writer, one reader.

    tool loop ──publish──▶ Bus ──async for──▶ show(screen, event) ──▶ Screen: one bubble a turn

Publishing never waits. A screen that is slow gets fewer and larger pieces of growing text, and one
that is far behind gets the whole `Screen` at once: so a slow reader costs no memory but that of
what it would show anyway, and never slows the stream.

The events are in `turn_events.py`, and what a screen makes of them in `screen.py`.
Read next: `toolloop.py`, which publishes all of this.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from io import StringIO

from streamlab.consumer.screen import BubbleOf, CaughtUp, Screen, by_turn, fold_screen, show
from streamlab.consumer.turn_events import BusEvent, SegmentGrew, SegmentRestated

__all__ = ["MOST_WAITING", "Bus"]

#: Events that wait for a reader before it is given the whole screen instead.
MOST_WAITING = 1000


class Bus:
    """Events from one writer to one reader, in one event loop.

    The reader's `async for` ends when the bus is closed and empty; `task.add_done_callback(
    bus.close)` closes it with the turn.
    """

    def __init__(self, limit: int = MOST_WAITING, bubble_of: BubbleOf = by_turn) -> None:
        self._limit, self._bubble_of = limit, bubble_of
        self._waiting: deque[tuple[BusEvent | CaughtUp, StringIO | None]] = deque()
        self._growing: dict[tuple[str, str], StringIO] = {}  #: text that waits, by part
        self._given = Screen()  #: what the reader has been given, folded
        self._news = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        """How many events wait."""
        return len(self._waiting)

    def publish(self, event: BusEvent) -> None:
        """Hand over an event; never waits. After `close` it is dropped."""
        if self._closed:
            return
        text = None
        if isinstance(event, SegmentGrew):
            key = (event.attempt, event.segment)
            waits = self._growing.get(key)
            if waits is not None:
                waits.write(event.text)
                return
            text = self._growing[key] = StringIO(newline="")
            text.write(event.text)
        elif isinstance(event, SegmentRestated):  # what grows from here on comes after it
            self._growing.pop((event.attempt, event.segment), None)
        if len(self._waiting) >= self._limit:
            self._catch_up()
        self._waiting.append((event, text))
        self._news.set()

    def close(self, *_: object) -> None:
        """Say that no more will come; what waits is still given."""
        self._closed = True
        self._news.set()

    def __aiter__(self) -> AsyncIterator[BusEvent | CaughtUp]:
        return self

    async def __anext__(self) -> BusEvent | CaughtUp:
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        event = self._next()
        self._given = show(self._given, event, self._bubble_of)
        return event

    def _next(self) -> BusEvent | CaughtUp:
        event, text = self._waiting.popleft()
        if text is None or not isinstance(event, SegmentGrew):
            return event
        key = (event.attempt, event.segment)
        if self._growing.get(key) is text:
            del self._growing[key]
        return SegmentGrew(event.turn, event.attempt, event.segment, text.getvalue())

    def _catch_up(self) -> None:
        """Put one event in the place of all that wait."""
        waiting = [self._next() for _ in range(len(self._waiting))]
        screen = fold_screen(waiting, self._given, self._bubble_of)
        self._waiting.append((CaughtUp(screen), None))
