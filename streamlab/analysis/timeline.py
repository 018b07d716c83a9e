"""The timeline: what happened when in one stream, as much of it as a picture needs.

A judge's `watch`: it is told each read and what that stated, and keeps where every segment began
and stopped, the marks that matter, the states, and how dense the frames were. Positions are kept
in seconds and in bytes, because a recording without times still has an order. Memory is bounded,
however long the stream. Read next: `picture.py`, which draws it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

from streamlab.consumer.attempt import Attempt, State, observe
from streamlab.streams.recording import Chunk
from streamlab.wire import events as e
from streamlab.wire.reader import Read
from streamlab.wire.sse import Frame

__all__ = ["Change", "Density", "Mark", "Place", "Span", "Timeline"]

#: The most that is kept of each; a picture has no room for more.
MAX_SPANS, MAX_MARKS = 200, 500


class Place(NamedTuple):
    """Where in a stream: the frame, the offset of a byte, and the time of its read."""

    frame: int
    byte: int
    t: float


class Mark(NamedTuple):
    """Something that happened at one place."""

    kind: str  #: "start", "reason", "marker", "error", "warning", "note"
    at: Place


class Change(NamedTuple):
    """The attempt got into another state."""

    attempt: Attempt
    at: Place


class Span:
    """From where to where a segment came."""

    def __init__(self, start: e.SegmentStarted, first: Place) -> None:
        self.id, self.kind = start.segment, start.kind
        self.name = start.name or start.type or start.kind
        self.first = self.last = first
        self.stopped = False


class Density:
    """How much fell where on a line whose length nobody knows yet: the bins grow, in pairs."""

    BINS = 512

    def __init__(self, width: float) -> None:
        self.width = width  #: of one bin
        self.bins = array("L", bytes(array("L").itemsize * self.BINS))

    def add(self, x: float) -> None:
        """Count one at `x`, which is 0 or more."""
        while x >= self.width * self.BINS:
            half = self.BINS // 2
            for n in range(half):
                self.bins[n] = self.bins[2 * n] + self.bins[2 * n + 1]
            self.bins[half:] = array("L", bytes(self.bins.itemsize * half))
            self.width *= 2
        self.bins[int(x / self.width)] += 1

    def columns(self, count: int, extent: float) -> list[int]:
        """The counts in `count` columns that share the line from 0 to `extent`."""
        sums = [0] * count
        for n, found in enumerate(self.bins):
            if found:
                column = int(n * self.width / extent * count) if extent else 0
                sums[min(column, count - 1)] += found
        return sums


#: Event -> the kind of its mark.
MARKS: dict[type, Callable[[Any], str]] = {
    e.MessageStarted: lambda event: "start",
    e.StopReported: lambda event: "reason",
    e.MessageCompleted: lambda event: "marker",
    e.ProviderError: lambda event: "error",
    e.Problem: lambda event: str(event.severity),
    e.Unknown: lambda event: "note",
    e.Ambiguous: lambda event: "warning",
    e.BoundExceeded: lambda event: "warning",
}


class Timeline:
    """Watch one stream: give it to `judge` as its `watch`."""

    def __init__(self) -> None:
        self.timed = False  #: whether any time is known
        self.reads = 0
        self.spans: dict[str, Span] = {}
        self.more_spans = 0
        self.marks: list[Mark] = []
        self.changes: list[Change] = []
        self.over_time, self.over_bytes = Density(0.001), Density(1.0)  #: how many frames, where
        self.end = Place(0, 0, 0.0)
        self._attempt = Attempt()

    def __call__(self, chunk: Chunk, reads: list[Read]) -> None:
        """Take one read, and what it stated."""
        self.timed = self.timed or chunk.t is not None
        t = self.end.t if chunk.t is None else chunk.t
        self.reads += bool(chunk.data)
        self.end = Place(self.end.frame, self.end.byte + len(chunk.data), t)
        for frame, events in reads:
            self._take(frame, events, t)

    def place_of(self, frame: int) -> Place | None:
        """Where a frame was, if it has a mark or is the first or last of a segment."""
        marked = (mark.at for mark in self.marks)
        ends = (place for span in self.spans.values() for place in (span.first, span.last))
        return next((place for place in (*marked, *ends) if place.frame == frame), None)

    def _take(self, frame: Frame | None, events: tuple[e.Event, ...], t: float) -> None:
        if frame is None:
            start = stop = self.end
        else:
            start, stop = Place(frame.number, frame.start, t), Place(frame.number, frame.end, t)
            self.end = self.end._replace(frame=frame.number)
            self.over_time.add(t)
            self.over_bytes.add(frame.start)
        for event in events:
            self._event(event, start, stop)

    def _event(self, event: e.Event, start: Place, stop: Place) -> None:
        kind = type(event)
        if kind is e.SegmentStarted:
            self._start(event, start, stop)  # type: ignore[arg-type]
        elif (span := self.spans.get(getattr(event, "segment", ""))) is not None:
            span.last = stop
            if kind is e.Identified:
                span.name = event.name or span.name  # type: ignore[union-attr]
            span.stopped = span.stopped or kind is e.SegmentStopped
        elif (tell := MARKS.get(kind)) is not None:
            if len(self.marks) < MAX_MARKS:
                self.marks.append(Mark(tell(event), start))
            self._observe(event, start)
        else:
            self._observe(event, start)

    def _observe(self, event: e.Event, at: Place) -> None:
        attempt = observe(self._attempt, event)
        if attempt is not self._attempt:
            self._attempt = attempt
            self.changes.append(Change(attempt, at))

    def _start(self, event: e.SegmentStarted, start: Place, stop: Place) -> None:
        if len(self.spans) == MAX_SPANS:
            self.more_spans += 1
            return
        span = self.spans[event.segment] = Span(event, start)
        span.last = stop

    def states(self, last: Attempt) -> list[Change]:
        """Every state in turn, up to the one that the gates led to."""
        first = Change(Attempt(State.PREVIEW), Place(0, 0, 0.0))
        changes = [first, *self.changes]
        return (
            changes
            if changes[-1].attempt.state is last.state
            else [*changes, Change(last, self.end)]
        )
