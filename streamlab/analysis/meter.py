"""The meter: takes one stream as it arrives, once, in bounded memory, and gives its `Metrics`.

It is fed the time of each read and what that read stated, and keeps two things: for each kind of
content a series of gaps, and how content came in bursts. Percentiles are exact up to `MAX_SAMPLE`
gaps; first, last, longest and the stalls always are.

`metrics.py` says what the numbers mean. Read next: `judge.py`, which feeds a meter.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from math import fsum

from streamlab.analysis.metrics import (
    HELD_PART,
    HELD_S,
    STALL_K,
    STALL_S,
    TOGETHER_MIN,
    TOGETHER_S,
    Metrics,
    Phase,
    Spread,
    Stalls,
)
from streamlab.wire.events import (
    Attached,
    Event,
    InputDelta,
    MessageCompleted,
    SegmentStarted,
    SegmentStopped,
    TextDelta,
    ThinkingDelta,
    Tokens,
    UsageReported,
)
from streamlab.wire.reader import Read

__all__ = ["Meter"]

#: Gaps kept for the percentiles; beyond this every second, fourth, eighth one is kept.
MAX_SAMPLE = 100_000

#: Gaps are rounded to the nanosecond: 30.473 - 30.471 must not be less than 0.473 - 0.471.
DIGITS = 9

#: Event -> the phase whose content it is.
PHASE_OF = {TextDelta: "text", ThinkingDelta: "thinking", InputDelta: "tool"}

PHASES = ("thinking", "text", "tool")

NO_TOKENS = Tokens()


class Meter:
    """Measure one stream: `feed` it what each read gave, `end` it, ask for its `metrics`.

    >>> meter = Meter()
    >>> meter.feed(0.5, [(None, (TextDelta("0", "Hi"),))])
    >>> meter.end(0.6)
    >>> meter.metrics(complete=False).ttft_s
    0.5
    """

    def __init__(self) -> None:
        self.now: float | None = None  #: seconds since the request; None where no time is known
        self._all = _Series()
        self._phases: dict[str, _Series] = {}
        self._phase = ""  # of the last content
        self._bursts = _Bursts()
        self._idle = self._wait = 0.0
        self._completed: float | None = None
        self._tokens = NO_TOKENS  # what came after all content; earlier ones are a guess
        self._others: set[str] = set()  # open segments of another kind: all they hold is content

    def feed(self, t: float | None, reads: Iterable[Read]) -> None:
        """Take what one read gave; without a time it came with the read before it."""
        if t is None:
            if self.now is None:
                return
            t = self.now
        self._idle = max(self._idle, t - (self.now or 0.0))
        self.now = t
        for _, events in reads:
            for event in events:
                phase = PHASE_OF.get(type(event))
                if phase is None:
                    self._other(t, event)
                elif event.text:  # type: ignore[union-attr]
                    self._content(t, phase)

    def end(self, t: float | None, reads: Iterable[Read] = ()) -> None:
        """Say when the stream ended, and what that left to report."""
        self.feed(t, reads)

    def _other(self, t: float, event: Event) -> None:
        if isinstance(event, SegmentStarted):
            if event.kind == "tool_call" and event.name:
                self._content(t, "tool")
            elif event.kind == "other":
                self._others.add(event.segment)
                self._content(t, "other")
        elif isinstance(event, Attached):
            if event.segment in self._others:
                self._content(t, "other")
        elif isinstance(event, SegmentStopped):
            self._others.discard(event.segment)
        elif isinstance(event, UsageReported):
            self._tokens = event.tokens
        elif isinstance(event, MessageCompleted) and self._completed is None:
            self._completed = t

    def _content(self, t: float, phase: str) -> None:
        gap = round(t - self._all.last, DIGITS)
        self._bursts.add(t, gap)
        if gap > self._wait:
            self._wait = gap
        self._all.add(t, gap)
        series = self._phases.get(phase)
        if series is None:
            series = self._phases[phase] = _Series()
        series.add(t, gap if phase == self._phase else None)
        self._phase, self._tokens = phase, NO_TOKENS

    def metrics(self, complete: bool) -> Metrics | None:
        """The timings of a stream that is over; None where it has no times."""
        if self.now is None:
            return None
        whole, first = self._all, self._first
        settled = self._completed if complete else None
        e2e = whole.last if whole.events else None
        last_wait = (self.now if settled is None else settled) - (e2e or 0.0)
        tokens = self._tokens.output
        return Metrics(
            ttfc_s=whole.first if whole.events else None,
            ttft_s=first("text"),
            time_to_first_thinking_s=first("thinking"),
            time_to_first_tool_s=first("tool"),
            icl_s=whole.spread(),
            tpot_s=_per_token(whole, tokens),
            e2e_s=e2e,
            settlement_lag_s=None if settled is None or e2e is None else settled - e2e,
            output_tokens_per_s=tokens / e2e if tokens and e2e else None,
            stalls=whole.stalls(last_wait if settled is None else 0.0),
            buffered=self._bursts.held * 2 > whole.events,
            together=self._bursts.together / whole.events if whole.events else None,
            longest_idle_s=self._idle,
            longest_wait_s=max(self._wait, last_wait),
            content_events=whole.events,
            phases={name: self._phase_metrics(name) for name in PHASES if name in self._phases},
        )

    def _first(self, phase: str) -> float | None:
        series = self._phases.get(phase)
        return series.first if series else None

    def _phase_metrics(self, name: str) -> Phase:
        series = self._phases[name]
        tokens = self._tokens.thinking if name == "thinking" else None
        return Phase(
            series.events,
            series.first,
            series.last,
            series.spread(),
            _per_token(series, tokens),
            series.stalls(),
        )


class _Series:
    """The content events of one kind: the first, the last, and the gaps between them."""

    def __init__(self) -> None:
        self.events = self.gaps = 0
        self.first = self.last = self.longest = 0.0
        self._sample = array("d")
        self._stride = 1
        self._long_at, self._long = array("d"), array("d")

    def add(self, t: float, gap: float | None) -> None:
        """Count one event, and the gap before it if there was one of its kind before."""
        if not self.events:
            self.first = t
        elif gap is not None:
            self._gap(gap)
        self.events += 1
        self.last = t

    def _gap(self, gap: float) -> None:
        self.gaps += 1
        if gap > self.longest:
            self.longest = gap
        if gap > STALL_S:
            self._long_at.append(self.last)
            self._long.append(gap)
        if self.gaps % self._stride == 0:
            self._sample.append(gap)
            if len(self._sample) > MAX_SAMPLE:
                self._sample = self._sample[1::2]
                self._stride *= 2

    def spread(self) -> Spread | None:
        """How the gaps are spread; None where there is none."""
        if not self.gaps:
            return None
        ordered = sorted(self._sample)
        median, p90, p99 = (_percentile(ordered, q) for q in (0.5, 0.9, 0.99))
        return Spread(median, p90, p99, self.longest)

    def stalls(self, last_wait: float = 0.0) -> Stalls:
        """The gaps that are stalls; `last_wait` is the one before an end that is no completion."""
        ordered = sorted(self._sample)
        waits = list(zip(self._long_at, self._long, strict=True))
        limit = _limit(ordered, len(ordered) - 1)
        found = [wait for wait in waits if wait[1] > limit]
        if self.events and last_wait > _limit(ordered, len(ordered)):
            found.append((self.last, last_wait))
        lasted = [wait for _, wait in found]
        at = tuple(start for start, _ in found)
        return Stalls(len(found), fsum(lasted), max(lasted, default=0.0), at, tuple(lasted))


def _limit(ordered: list[float], others: int) -> float:
    """The time from which on a gap is a stall, given how many others there are beside it.

    Others, because in a short answer a silence must not be its own measure. It is longer than most
    of them, so their (lower) median is where it would be if the silence were not among them.
    """
    return max(STALL_S, STALL_K * ordered[(others - 1) // 2]) if others > 0 else STALL_S


def _percentile(ordered: list[float], q: float) -> float:
    place = (len(ordered) - 1) * q
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


class _Bursts:
    """Whether content came together, and whether a wait before that had held it back."""

    def __init__(self) -> None:
        self.together = self.held = 0
        self._size = 0  # of the group that the last event belongs to
        self._until = -1.0  # what comes before this may have been held back

    def add(self, t: float, gap: float) -> None:
        """Take one content event and the time since the one before it, or since the request."""
        if gap >= HELD_S:
            self._until = t + gap * HELD_PART
        self._size = self._size + 1 if self._size and gap <= TOGETHER_S else 1
        if self._size > 1:
            self.together += 1 if self._size > 2 else 2
        if t <= self._until and self._size >= TOGETHER_MIN:
            self.held += 1 if self._size > TOGETHER_MIN else TOGETHER_MIN


def _per_token(series: _Series, tokens: int | None) -> float | None:
    """Seconds a token; undefined for a single one, and where all the content came as one event."""
    if tokens is None or tokens < 2 or series.events < 2:
        return None
    return (series.last - series.first) / (tokens - 1)
