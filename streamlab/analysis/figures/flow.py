"""When the content of one stream came: what the figures of a report are drawn from.

A judge's `watch`, as the timeline is, which it holds. It keeps for each content event its time, its
byte, its phase and its segment, up to `MAX_ARRIVALS`; the metrics are always of the whole stream.
A recording without times still has an order: its figures go by bytes, where they can.

Read next: `stream.py`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from streamlab.analysis.content import Content
from streamlab.analysis.given import Given, Many, Named, each, one
from streamlab.analysis.judge import Outcome, judge
from streamlab.analysis.metrics import Metrics
from streamlab.analysis.plain import counted, seconds, size
from streamlab.analysis.timeline import Mark, Timeline
from streamlab.errors import UsageError
from streamlab.streams.recording import Chunk
from streamlab.wire.events import KeepAlive
from streamlab.wire.reader import Read

__all__ = ["PHASES", "Flow", "Run", "amount", "flow_of", "flows_of", "timed"]

#: Content events that are kept one by one, and pings.
MAX_ARRIVALS, MAX_PINGS = 200_000, 1000

PHASES = ("thinking", "text", "tool", "other")


class Run(NamedTuple):
    """Content of one segment in a row, without a stall in it."""

    phase: str
    segment: str
    first: float  #: in seconds, or in bytes
    last: float
    events: int


class Flow:
    """One stream, watched. Its places are in seconds, or in bytes where it has no times."""

    outcome: Outcome

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.early = False  #: content came before any time was known
        self.by_bytes = False  #: over its bytes all the same, beside one that has no times
        self.timeline = Timeline()
        self.first_byte: float | None = None
        self.t, self.byte = array("d"), array("q")  #: of each content event
        self.more = 0  #: content events that are not kept
        self.pinged: list[tuple[float, int]] = []  #: the time and the byte of each ping
        self.more_pings = 0
        self._phase, self._segment = array("b"), array("l")
        self._segments: dict[str, int] = {}
        self._content = Content()

    def __call__(self, chunk: Chunk, reads: list[Read]) -> None:
        """Take one read, and what it stated."""
        self.timeline(chunk, reads)
        t = self.timeline.end.t
        if self.first_byte is None and chunk.data and self.timeline.timed:
            self.first_byte = t
        for frame, events in reads:
            byte = self.timeline.end.byte if frame is None else frame.start
            for event, phase in zip(events, self._content.phases(events), strict=True):
                if phase:
                    self._arrive(t, byte, phase, getattr(event, "segment", ""))
                elif isinstance(event, KeepAlive):
                    self._ping(t, byte)

    def _arrive(self, t: float, byte: int, phase: str, segment: str) -> None:
        self.early = self.early or not self.timeline.timed
        if len(self.t) == MAX_ARRIVALS:
            self.more += 1
            return
        self.t.append(t)
        self.byte.append(byte)
        self._phase.append(PHASES.index(phase))
        self._segment.append(self._segments.setdefault(segment, len(self._segments)))

    def _ping(self, t: float, byte: int) -> None:
        if len(self.pinged) == MAX_PINGS:
            self.more_pings += 1
        else:
            self.pinged.append((t, byte))

    @property
    def timed(self) -> bool:
        """Whether it is known when its content came."""
        return self.outcome.metrics is not None and not self.early

    @property
    def by_time(self) -> bool:
        """Whether its places are in seconds; else they are in bytes."""
        return self.timed and not self.by_bytes

    @property
    def metrics(self) -> Metrics:
        """The timings; only of a stream that has times."""
        assert self.outcome.metrics is not None
        return self.outcome.metrics

    @property
    def places(self) -> array[float] | array[int]:
        """Where each content event was."""
        return self.t if self.by_time else self.byte

    @property
    def pings(self) -> list[float]:
        """Where each ping was."""
        return [t if self.by_time else byte for t, byte in self.pinged]

    @property
    def end(self) -> float:
        """Where the stream ended."""
        return self.timeline.end.t if self.by_time else self.timeline.end.byte

    @property
    def stalls(self) -> list[tuple[float, float]]:
        """When each stall began, and how long it lasted, in seconds."""
        if not self.by_time:
            return []
        found = self.metrics.stalls
        return list(zip(found.at, found.lasted_s, strict=True))

    def at(self, mark: Mark) -> float:
        """Where a mark was."""
        return mark.at.t if self.by_time else mark.at.byte

    def mark(self, kind: str) -> float | None:
        """Where the first mark of a kind was."""
        return next((self.at(mark) for mark in self.timeline.marks if mark.kind == kind), None)

    def phase(self, n: int) -> str:
        """The phase of a content event, by its number from 0 on."""
        return PHASES[self._phase[n]]

    def runs(self) -> Iterator[Run]:
        """The content in turn: a run ends where another segment goes on, and at a stall."""
        ids, begun = list(self._segments), {start for start, _ in self.stalls}
        places, first = self.places, 0
        for n in range(1, len(places) + 1):
            last = n == len(places)
            if last or self._key(n) != self._key(n - 1) or places[n - 1] in begun:
                segment = ids[self._segment[first]]
                yield Run(self.phase(first), segment, places[first], places[n - 1], n - first)
                first = n

    def _key(self, n: int) -> tuple[int, int]:
        return self._phase[n], self._segment[n]


def flow_of(given: Given, unnamed: str = "the stream") -> Flow:
    """Watch one stream to its end (of a file, the first)."""
    return one(given, 1, lambda named: _watched(named, short(named) or unnamed))


def flows_of(given: Sequence[Many], most: int, what: str) -> list[Flow]:
    """Watch many streams; each without a name is known by its number.

    Raises `UsageError` where there are none, or more than `most`.
    """
    found: list[Flow] = []
    for many in given:
        for named in each(many):
            if len(found) == most:
                raise UsageError(f"{what} takes at most {counted(most, 'stream')}")
            name = named.name if isinstance(many, Mapping) else short(named)
            found.append(_watched(named, name))
    if not found:
        raise UsageError(f"{what} needs at least one stream")
    for n, flow in enumerate(found, 1):
        flow.name = flow.name or ("the stream" if len(found) == 1 else f"stream {n}")
    return found


def timed(flows: Iterable[Flow], what: str) -> tuple[list[Flow], str]:
    """Those that have times, and what to say of the others. Raises `UsageError` where none has."""
    every = list(flows)
    kept = [flow for flow in every if flow.timed]
    if not kept:
        raise UsageError(f"{what} needs times, and no recording here has any")
    lost, late = len(every) - len(kept), sum(flow.more for flow in kept)
    notes = [f"{counted(lost, 'recording')} without times left out."] if lost else []
    notes += [f"{counted(late, 'later content event')} not drawn."] if late else []
    return kept, " ".join(notes)


def amount(value: float, by_time: bool) -> str:
    """A place in words: of a time, or of a number of bytes."""
    return seconds(value) if by_time else size(int(value))


def short(named: Named) -> str:
    """The name of a stream's file without its folders, and which of the file's streams it is."""
    return " ".join(filter(None, (PurePath(named.name).name, named.about.where)))


def _watched(named: Named, name: str) -> Flow:
    flow = Flow(name)
    flow.outcome = judge(named.recording, watch=flow)
    return flow
