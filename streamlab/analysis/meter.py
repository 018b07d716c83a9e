"""The meter: takes one stream as it arrives, once, in bounded memory, and gives its `Metrics`.

It is fed the time of each read and what that read stated, and keeps two things: for each kind of
content a series of gaps, and how content came in bursts. Percentiles are exact up to `MAX_SAMPLE`
gaps; first, last, longest and the stalls always are.

`metrics.py` says what the numbers mean. Read next: `judge.py`, which feeds a meter.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import fsum
from operator import sub
from typing import Any

from streamlab.analysis.metrics import (
    FASTEST,
    HELD_PART,
    HELD_S,
    PHASES,
    STALL_K,
    STALL_S,
    TOGETHER_MIN,
    TOGETHER_S,
    Metrics,
    Phase,
    Spread,
    Stalls,
)
from streamlab.analysis.runs import Other, Whole
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
DIGITS, NS = 9, 1e9

#: Content events that are counted together.
MAX_RUN = 1024

#: Event -> the phase whose content it is; and the same of a part's kind.
PHASE_OF = {TextDelta: "text", ThinkingDelta: "thinking", InputDelta: "tool"}
PHASE_OF_KIND = {"text": "text", "thinking": "thinking", "tool_call": "tool"}

NO_TOKENS = Tokens()

#: Offsets of the ends of frames -> when each came, in seconds; None before the first known time.
When = Callable[[list[int]], list[float | None]]


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
        self._run: list[float] = []  # when the last content came, one phase's, not counted yet
        self._phase = ""  # that phase
        self._changed = False  # whether other content came before it
        self._bursts = _Bursts()
        self._idle = self._wait = 0.0
        self._completed: float | None = None
        self._tokens = NO_TOKENS  # the last ones
        self._before = 0  # content before them: where more came, they are a guess
        self._begun: tuple[str, Any] = "", None  # the last part of another kind, and its frame
        self._open: dict[str, str] = {}  # parts that have not stopped, and their phases

    def feed(self, t: float | None, reads: Sequence[Read]) -> None:
        """Take what one read gave; without a time it came with the read before it."""
        if t is None:
            if self.now is None:
                return
            t = self.now
        self._idle = max(self._idle, t - (self.now or 0.0))
        self.now = t
        self.take([t] * len(reads), reads)

    def when(self, times: Sequence[float | None]) -> list[float | None]:
        """Take the times of many reads, and say for each when it came: None before the first."""
        now, known = self.now, []
        for t in times:
            now = now if t is None else t
            known.append(now)
        came = [t for t in known if t is not None]
        if came:
            self._idle = max(self._idle, *map(sub, came, [self.now or 0.0, *came]))
            self.now = now
        return known

    def take(self, times: Sequence[float], reads: Sequence[Read]) -> None:
        """Take frames, each with the time of the read that brought it."""
        run, phase = self._run, self._phase
        for t, (_, events) in zip(times, reads, strict=True):
            for event in events:
                found = PHASE_OF.get(type(event))
                if found is None:
                    self._other(t, event, events)
                    run, phase = self._run, self._phase
                elif event.text:  # type: ignore[union-attr]
                    if found != phase:
                        run, phase = self._count_run(found), found
                    run.append(t)
        if len(run) > MAX_RUN:
            self._count_run(phase)

    def take_runs(self, runs: Iterable[Whole | Other], when: When) -> None:
        """Take what many frames stated, in runs; `when` says when frames came, given their ends."""
        for run in runs:
            if isinstance(run, Other):
                (t,) = when([run.end])
                if t is not None:
                    self._other(t, run.event, run.beside)
                continue
            phase, came, start = PHASE_OF[run.kind], when(run.ends), 0
            for stop, usage in run.counts[-1:]:  # later ones take the place of the earlier
                self._contents(came[:stop], run.texts[:stop], phase)
                if came[stop - 1] is not None:
                    self._counted(usage)
                start = stop
            self._contents(came[start:], run.texts[start:], phase)

    def _contents(self, times: list[float | None], texts: list[str], phase: str) -> None:
        """Take deltas of one phase; an empty one is no content."""
        known: Any = times
        if "" in texts or None in times:
            both = zip(times, texts, strict=True)
            known = [t for t, text in both if text and t is not None]
        if known:
            run = self._run if phase == self._phase else self._count_run(phase)
            run += known
            if len(run) > MAX_RUN:
                self._count_run(phase)

    def end(self, t: float | None, reads: Sequence[Read] = ()) -> None:
        """Say when the stream ended, and what that left to report."""
        self.feed(t, reads)

    def _other(self, t: float, event: Event, frame: tuple[Event, ...]) -> None:
        if isinstance(event, UsageReported):
            self._counted(event)
        elif isinstance(event, SegmentStarted):
            phase = self._open[event.segment] = PHASE_OF_KIND.get(event.kind, "other")
            if phase == "other":
                self._begun = event.segment, frame
            if phase == "other" or (phase == "tool" and event.name):
                self._content(t, phase)
        elif isinstance(event, Attached):
            # All that such a part holds is content; what it begins with has been counted.
            begins = event.segment == self._begun[0] and frame is self._begun[1]
            if self._open.get(event.segment) == "other" and not begins:
                self._content(t, "other")
        elif isinstance(event, SegmentStopped):
            self._count_run(self._phase)
            series = self._phases.get(self._open.pop(event.segment, ""))
            if series is not None:
                series.closed = t
        elif isinstance(event, MessageCompleted) and self._completed is None:
            self._completed = t

    def _counted(self, event: UsageReported) -> None:
        self._tokens, self._before = event.tokens, self._all.events + len(self._run)

    def _content(self, t: float, phase: str) -> None:
        run = self._run if phase == self._phase else self._count_run(phase)
        run.append(t)

    def _count_run(self, phase: str) -> list[float]:
        """Count the content that has come; give the list for what comes next, of a phase."""
        times, whole = self._run, self._all
        if times:
            gaps = [round((t - last) * NS) / NS for last, t in pairwise([whole.last, *times])]
            self._wait = max(self._wait, *gaps)
            self._bursts.add(times, gaps, self._phase)
            whole.add(times, gaps)
            series = self._phases.setdefault(self._phase, _Series())
            series.add(times, gaps[1:] if self._changed else gaps)
        self._changed = phase != self._phase or (self._changed and not times)
        self._phase, self._run = phase, []
        return self._run

    def metrics(self, complete: bool) -> Metrics | None:
        """The timings of a stream that is over; None where it has no times."""
        if self.now is None:
            return None
        self._count_run(self._phase)
        whole, first = self._all, self._first
        if self._before < whole.events:
            self._tokens = NO_TOKENS
        together, held = self._bursts.counted()
        share = _share(held.values(), whole.events)
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
            buffered=share > 0.5,
            together=_share(together.values(), whole.events) if whole.events else None,
            held=share if whole.events else None,
            longest_idle_s=self._idle,
            longest_wait_s=max(self._wait, last_wait),
            content_events=whole.events,
            phases={
                name: self._phase_metrics(name, together.get(name, 0), held.get(name, 0))
                for name in PHASES
                if name in self._phases
            },
        )

    def _first(self, phase: str) -> float | None:
        series = self._phases.get(phase)
        return series.first if series else None

    def _phase_metrics(self, name: str, together: int, held: int) -> Phase:
        series = self._phases[name]
        tokens = self._tokens.thinking if name == "thinking" else None
        return Phase(
            content_events=series.events,
            ttfc_s=series.first,
            e2e_s=series.last,
            icl_s=series.spread(),
            tpot_s=_per_token(series, tokens),
            output_tokens_per_s=tokens / series.last if tokens and series.last else None,
            settlement_lag_s=None if series.closed is None else series.closed - series.last,
            stalls=series.stalls(),
            buffered=held * 2 > series.events,
            together=together / series.events,
            held=held / series.events,
        )


class _Series:
    """The content events of one kind: the first, the last, and the gaps between them."""

    def __init__(self) -> None:
        self.events = self.gaps = 0
        self.first = self.last = self.longest = 0.0
        self.closed: float | None = None  # when the part of the last event stopped
        self._sample = array("d")
        self._sorted: tuple[int, list[float]] = 0, []  # how many gaps there were, and the sample
        self._stride = 1
        self._long_at, self._long = array("d"), array("d")

    def add(self, times: list[float], gaps: list[float]) -> None:
        """Count events, and the gap before each; the first may have none that is of its kind."""
        if not self.events:
            self.first, gaps = times[0], gaps[-len(times) + 1 :] if len(times) > 1 else []
        if gaps:
            self._add_gaps(times, gaps)
        self.events += len(times)
        self.last, self.closed = times[-1], None

    def _add_gaps(self, times: list[float], gaps: list[float]) -> None:
        longest = max(gaps)
        self.longest = max(self.longest, longest)
        if longest > STALL_S:
            before = [self.last, *times][-len(gaps) - 1 : -1]
            for last, gap in zip(before, gaps, strict=True):
                if gap > STALL_S:
                    self._long_at.append(last)
                    self._long.append(gap)
        if self._stride == 1 and len(self._sample) + len(gaps) <= MAX_SAMPLE:
            self._sample.extend(gaps)
            self.gaps += len(gaps)
            return
        for gap in gaps:
            self.gaps += 1
            if self.gaps % self._stride == 0:
                self._sample.append(gap)
                if len(self._sample) > MAX_SAMPLE:
                    self._sample = self._sample[1::2]
                    self._stride *= 2

    def _ordered(self) -> list[float]:
        """The sample in order; it is sorted once for all that is asked of it."""
        if self._sorted[0] != self.gaps:
            self._sorted = self.gaps, sorted(self._sample)
        return self._sorted[1]

    def spread(self) -> Spread | None:
        """How the gaps are spread; None where there is none."""
        if not self.gaps:
            return None
        ordered = self._ordered()
        median, p90, p99 = (_percentile(ordered, q) for q in (0.5, 0.9, 0.99))
        return Spread(median, p90, p99, self.longest)

    def stalls(self, last_wait: float = 0.0) -> Stalls:
        """The gaps that are stalls; `last_wait` is the one before an end that is no completion."""
        ordered = self._ordered()
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
    """Linear interpolation, to the last bit as numpy's: always from the nearer neighbour."""
    place = (len(ordered) - 1) * q
    low = int(place)
    part = place - low
    below, above = ordered[low], ordered[min(low + 1, len(ordered) - 1)]
    step = above - below
    return below + step * part if part < 0.5 else above - step * (1 - part)


class _Bursts:
    """How much content came together, and how much of that a wait had held back, by phase.

    A group is what came together. A clump is what may have been held back by one wait: it begins
    with the first event after the wait, and may be several groups, since a large answer is several
    reads; it is over when its time is up, or when it has become too slow to be a backlog.
    """

    def __init__(self) -> None:
        self._together: dict[str, int] = {}
        self._held: dict[str, int] = {}
        self._group: dict[str, int] = {}  # how many of each phase
        self._group_held: dict[str, int] = {}  # how many of them the clump has had so far
        self._since = self._until = -1.0  # the clump
        self._came = 0  # events of the clump

    def add(self, times: list[float], gaps: list[float], phase: str) -> None:
        """Take content events of one phase, and the time since the one before each."""
        group, until = self._group, self._until
        size = group.pop(phase, 0)
        for t, gap in zip(times, gaps, strict=True):
            if gap > TOGETHER_S:
                if size > 1 or group:
                    group[phase] = size
                    self._close()
                if gap >= HELD_S:
                    self._since, self._until, self._came = t, t + gap * HELD_PART, 0
                    until = self._until
                size = 0
            size += 1
            if t <= until:
                self._came += 1
                if self._came >= FASTEST * (t - self._since):
                    self._group_held = group | {phase: size}
        group[phase] = size

    def _close(self) -> None:
        """The group is over."""
        self._count(self._together, self._held)
        self._group.clear()
        self._group_held = {}

    def counted(self) -> tuple[dict[str, int], dict[str, int]]:
        """The events of each phase that came together, and those that were held back."""
        together, held = dict(self._together), dict(self._held)
        self._count(together, held)
        return together, held

    def _count(self, together: dict[str, int], held: dict[str, int]) -> None:
        """Add the last group to the totals."""
        if sum(self._group.values()) > 1:
            _add(together, self._group)
        if sum(self._group_held.values()) >= TOGETHER_MIN:
            _add(held, self._group_held)


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for phase, count in more.items():
        total[phase] = total.get(phase, 0) + count


def _share(counted: Iterable[int], events: int) -> float:
    return sum(counted) / events if events else 0.0


def _per_token(series: _Series, tokens: int | None) -> float | None:
    """Seconds a token; undefined for a single one, and where all the content came as one event."""
    if tokens is None or tokens < 2 or series.events < 2:
        return None
    return (series.last - series.first) / (tokens - 1)
