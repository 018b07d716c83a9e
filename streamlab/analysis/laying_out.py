"""Lay a stream out in columns while it is judged: a judge's `watch`, in bounded memory.

`KIND_OF` says what a frame is to a person who scans ten thousand of them: the first kind of
`KINDS` that one of its events has. `SAYS` says what is shown of each event. Both are tables over
the types of `wire/events.py`; no vendor is named here.

Read next: `inspection.py`, whose value this fills.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from streamlab.analysis.doctor import Diagnosis, Finding
from streamlab.analysis.judge import Outcome
from streamlab.analysis.metrics import HELD_S, TOGETHER_MIN, TOGETHER_S, Metrics
from streamlab.analysis.problems import problems_of
from streamlab.streams.recording import Chunk
from streamlab.wire import events as e
from streamlab.wire.reader import Read
from streamlab.wire.sse import Frame

__all__ = ["CONTENT", "KINDS", "LIMITS", "Limits", "Meaning", "Sheet", "problem_columns", "shown"]

#: What a frame can be; of several, the first. "end" is the last row's.
KINDS = (
    *("error", "text", "thinking", "tool", "other", "done", "stop", "start", "part"),
    *("usage", "unknown", "problem", "keep-alive", "nothing", "end"),
)

#: The kinds that carry content, as the timings count it.
CONTENT = ("text", "thinking", "tool", "other")


class Limits(NamedTuple):
    """How much is laid out. What is beyond is still judged, measured and counted."""

    frames: int = 50_000
    bytes: int = 16 * 1024 * 1024
    events: int = 200_000
    text: int = 400  #: characters of one event
    texts: int = 8_000_000  #: characters of all of them
    segments: int = 500
    problems: int = 1_000
    names: int = 300  #: different names of events
    tail: int = 64 * 1024  #: bytes that no frame took


LIMITS = Limits()


class Meaning(NamedTuple):
    """One thing that a stream says, whoever says it and in whatever pieces."""

    row: int
    what: str  #: "text", "thinking", "input": `text` may go on in the next; else a whole fact
    segment: int
    text: str


def shown(value: object, most: int) -> str:
    """A text for a view: clipped."""
    text = str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _tool_start(event: e.SegmentStarted) -> str:
    if event.kind == "tool_call":
        return "tool" if event.name else "part"
    return "other" if event.kind == "other" else "part"


def _text(kind: str) -> Callable[[Any], str]:
    return lambda event: kind if event.text else "part"


#: Type of event -> what it makes of its frame. A type that is not here makes nothing of it.
KIND_OF: dict[type, Callable[[Any], str]] = {
    e.ProviderError: lambda event: "error",
    e.TextDelta: _text("text"),
    e.ThinkingDelta: _text("thinking"),
    e.InputDelta: _text("tool"),
    e.SegmentStarted: _tool_start,
    e.Attached: lambda event: "part",
    e.Restated: lambda event: "part",
    e.Identified: lambda event: "part",
    e.SignatureDelta: lambda event: "part",
    e.SegmentStopped: lambda event: "part",
    e.MessageCompleted: lambda event: "done",
    e.StopReported: lambda event: "stop",
    e.MessageStarted: lambda event: "start",
    e.UsageReported: lambda event: "usage",
    e.Unknown: lambda event: "unknown",
    e.Problem: lambda event: "problem",
    e.Ambiguous: lambda event: "problem",
    e.BoundExceeded: lambda event: "problem",
    e.KeepAlive: lambda event: "keep-alive",
}

RANK = {kind: place for place, kind in enumerate(KINDS)}


def _tokens(event: e.UsageReported) -> str:
    tokens = event.tokens
    named = {"input": tokens.input, "output": tokens.output, "thinking": tokens.thinking}
    return ", ".join(f"{name} {count}" for name, count in named.items() if count is not None)


#: Type of event -> what is shown of it.
SAYS: dict[type, Callable[[Any], str]] = {
    e.MessageStarted: lambda event: f"{event.model} {event.id}".strip(),
    e.SegmentStarted: lambda event: " ".join(filter(None, (event.kind, event.name or event.type))),
    e.Identified: lambda event: " ".join(filter(None, (event.name, event.call_id))),
    e.TextDelta: lambda event: event.text,
    e.ThinkingDelta: lambda event: event.text,
    e.InputDelta: lambda event: event.text,
    e.SignatureDelta: lambda event: f"{len(event.text):,} characters",
    e.Attached: lambda event: event.name,
    e.Restated: lambda event: event.text,
    e.StopReported: lambda event: f"{event.reason} ({event.raw!r:.120})",
    e.UsageReported: _tokens,
    e.ProviderError: lambda event: f"{event.type}: {event.message}",
    e.Unknown: lambda event: event.type,
    e.Problem: lambda event: f"{event.severity} {event.rule}: {event.message}",
    e.Ambiguous: lambda event: event.message,
    e.BoundExceeded: lambda event: f"{event.bound}: {event.found:g}, over {event.limit:g}",
    e.StreamEnded: lambda event: event.ending,
}

#: Type of event -> (rule, severity) where it is a problem by itself.
FAULTS: dict[type, tuple[str, str]] = {
    e.ProviderError: ("provider-error", "error"),
    e.Ambiguous: ("ambiguous", "warning"),
    e.BoundExceeded: ("bound", "warning"),
}

#: Type of event -> what it means, and the text of that. What is not here differs in every answer
#: (ids, token counts, signatures) or is only life (a ping), so it is no difference in meaning.
MEANS: dict[type, tuple[str, Callable[[Any], str]]] = {
    e.TextDelta: ("text", SAYS[e.TextDelta]),
    e.ThinkingDelta: ("thinking", SAYS[e.ThinkingDelta]),
    e.InputDelta: ("input", SAYS[e.InputDelta]),
    e.SegmentStarted: ("begins", lambda event: event.kind),
    e.Restated: ("restated", SAYS[e.Restated]),
    e.SegmentStopped: ("stops", lambda event: ""),
    e.StopReported: ("stop reason", lambda event: event.reason),
    e.MessageCompleted: ("complete", lambda event: ""),
    e.ProviderError: ("provider error", lambda event: event.type),
    e.StreamEnded: ("the stream ends", SAYS[e.StreamEnded]),
}


class Sheet:
    """Watch one stream: give it to `judge` as its `watch`, then `finish`."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self.frames: dict[str, list[Any]] = {k: [] for k in ("t", "start", "end", "name", "kind")}
        self.events: dict[str, list[Any]] = {k: [] for k in ("row", "type", "segment", "text")}
        keys = ("id", "kind", "name", "first", "last", "stopped", "size", "choice")
        self.segments: dict[str, list[Any]] = {key: [] for key in keys}
        self.found: list[tuple[int, str, str, str]] = []  #: problems: row, severity, rule, says
        self.reads: list[int] = []
        self.names: dict[str, int] = {}
        self.types: dict[str, int] = {}
        self.meaning: list[Meaning] = []
        self.raw = bytearray()
        self.timed = False
        self.reads_seen = 0
        self.end_t: float | None = None
        self._places: dict[str, int] = {}  # id of a segment -> its place
        self._bytes = self._characters = self._more_events = self._more_segments = 0
        self._full = False
        self._last: list[e.Event] = []  # what no frame states: the end's own
        self._end = 0

    def __call__(self, chunk: Chunk, reads: list[Read]) -> None:
        """Take one read, and what it stated; the last one has no bytes, and the time of the end."""
        t = None if chunk.t is None else round(chunk.t, 6)
        if t is not None:
            self.timed, self.end_t = True, t
        if chunk.data:
            self.reads_seen += 1
            if len(self.reads) < self.limits.frames:
                self.reads.append(self._bytes)
            room = self.limits.bytes - len(self.raw)
            if room > 0:
                self.raw += chunk.data[:room]
            self._bytes += len(chunk.data)
        for frame, events in reads:
            if frame is None:
                self._last += events
            elif not self._full:
                self._take(frame, events)

    def _take(self, frame: Frame, events: tuple[e.Event, ...]) -> None:
        columns, row = self.frames, len(self.frames["t"])
        if row == self.limits.frames or frame.end > self.limits.bytes:
            self._full = True
            return
        kinds = [RANK[KIND_OF[type(event)](event)] for event in events if type(event) in KIND_OF]
        columns["t"].append(self.end_t)
        columns["start"].append(frame.start)
        columns["end"].append(frame.end)
        columns["name"].append(self._name(frame.event))
        columns["kind"].append(min(kinds, default=RANK["nothing"]))
        self._end = frame.end
        for event in events:
            self._event(row, event)

    def _name(self, name: str) -> int:
        """The place of a name: a stream has a dozen, a hostile one shares the last."""
        name = shown(name, 120)
        if name not in self.names and len(self.names) >= self.limits.names:
            name = "(another name)"
        return self.names.setdefault(name, len(self.names))

    def _event(self, row: int, event: e.Event) -> None:
        kind = type(event)
        if kind is e.SegmentStarted:
            self._start(row, event)  # type: ignore[arg-type]
        place = self._places.get(getattr(event, "segment", ""), -1)
        if place >= 0:
            self._grow(place, row, event)
        self._problem(row, event)
        self._means(row, place, event)
        if len(self.events["row"]) >= self.limits.events:
            self._more_events += 1
            return
        say = SAYS.get(kind)
        most = self.limits.text if self._characters < self.limits.texts else 20
        text = shown(say(event), most) if say else ""
        self._characters += len(text)
        columns = self.events
        columns["row"].append(row)
        columns["type"].append(self.types.setdefault(kind.__name__, len(self.types)))
        columns["segment"].append(place)
        columns["text"].append(text)

    def _start(self, row: int, event: e.SegmentStarted) -> None:
        if len(self._places) >= self.limits.segments:
            self._more_segments += event.segment not in self._places
            return
        if event.segment in self._places:
            return
        self._places[event.segment] = len(self._places)
        values = (shown(event.segment, 60), event.kind, shown(event.name or event.type, 120))
        for key, value in zip(
            self.segments, (*values, row, row, False, 0, event.choice), strict=True
        ):
            self.segments[key].append(value)

    def _grow(self, place: int, row: int, event: e.Event) -> None:
        segments, kind = self.segments, type(event)
        segments["last"][place] = row
        if kind in (e.TextDelta, e.ThinkingDelta, e.InputDelta):
            segments["size"][place] += len(event.text)  # type: ignore[union-attr]
        elif kind is e.Identified and event.name:  # type: ignore[union-attr]
            segments["name"][place] = shown(event.name, 120)  # type: ignore[union-attr]
        elif kind is e.SegmentStopped:
            segments["stopped"][place] = True

    def _problem(self, row: int, event: e.Event) -> None:
        found: tuple[int, str, str, str]
        if isinstance(event, e.Problem):
            found = (row, event.severity, event.rule, event.message)
        elif (fault := FAULTS.get(type(event))) is not None:
            found = (row, fault[1], fault[0], SAYS[type(event)](event))
        else:
            return
        if len(self.found) < self.limits.problems:
            self.found.append((*found[:2], shown(found[2], 60), shown(found[3], 500)))

    def _means(self, row: int, place: int, event: e.Event) -> None:
        means = MEANS.get(type(event))
        if means is None or len(self.meaning) >= self.limits.events:
            return
        what, text = means[0], means[1](event)
        if text or what not in ("text", "thinking", "input"):
            self.meaning.append(Meaning(row, what, place, text))
        name = getattr(event, "name", "")
        if name and isinstance(event, e.SegmentStarted):
            self.meaning.append(Meaning(row, "name", place, name))

    def finish(self, outcome: Outcome) -> None:
        """Add the row of the end: the bytes that no frame took, and the last words."""
        row = len(self.frames["t"])
        del self.raw[self._end + self.limits.tail :]
        values = (self.end_t, self._end, self._bytes, self._name(outcome.ending), RANK["end"])
        for key, value in zip(self.frames, values, strict=True):
            self.frames[key].append(value)
        for event in self._last:
            self._event(row, event)

    def left_out(self, frames: int) -> str:
        """What is not laid out, in a sentence; "" where everything is."""
        rows = len(self.frames["t"]) - 1
        said = [
            f"frames {rows + 1:,} to {frames:,} are not drawn (the first {rows:,} are, of "
            f"{self._bytes:,} bytes)"
        ] * (frames > rows)
        said += [f"{self._more_events:,} events more are not listed"] * (self._more_events > 0)
        said += [f"{self._more_segments:,} segments more have no lane"] * (self._more_segments > 0)
        if not said:
            return ""
        return f"{'; '.join(said)}. The verdict and the timings are of the whole stream."


def problem_columns(
    sheet: Sheet, diagnosis: Diagnosis, outcome: Outcome
) -> tuple[dict[str, list[Any]], int]:
    """The problems that the wire had, with what the doctor found beside them, and the first one.

    The first is the doctor's own first; without one, the first of the worst severity. A note is no
    problem to jump to.
    """
    end, found = len(sheet.frames["t"]) - 1, list(sheet.found)
    known = {(row, rule) for row, _, rule, _ in found} | {(-1, says) for *_, says in found}
    rows: list[int] = []
    for finding in diagnosis.findings[: sheet.limits.problems]:
        row = _row_of(finding, sheet, outcome)
        rows.append(row)
        says = shown(finding.says, 500)
        if not {(row, finding.rule), (-1, says)} & known:
            found.append((row, finding.severity, shown(finding.rule, 60), says))
    for problem in problems_of(outcome):
        if problem.rule in ("more-problems", "recording-truncated"):
            found.append((end, problem.severity, problem.rule, shown(problem.message, 500)))
    found.sort(key=lambda one: one[0])
    keys = ("row", "severity", "rule", "says")
    columns = {key: [one[place] for one in found] for place, key in enumerate(keys)}
    worst = {severity: row for row, severity, *_ in reversed(found)}
    order = [worst[severity] for severity in ("error", "warning") if severity in worst]
    first = rows[:1] if diagnosis.first is not None else []
    return columns, next(iter([*first, *order]), -1)


def _row_of(finding: Finding, sheet: Sheet, outcome: Outcome) -> int:
    """The row of a frame; of what is about all of them, where it is to be seen, or the end's.

    What lies behind the last byte of a frame is the end's too: it came with the last words.
    """
    ends = sheet.frames["end"]
    end, row = len(ends) - 1, (finding.frame or 0) - 1
    if finding.frame is None and (seen := SEEN.get(finding.rule)) is not None:
        return next(seen(sheet.frames["t"], outcome.metrics), end)
    if not 0 <= row < end:
        return end
    return end if finding.byte is not None and finding.byte >= ends[row] else row


def _after_stall(times: Sequence[float | None], metrics: Metrics | None) -> Iterator[int]:
    """The rows that came after the longest silence; the end may be what ended it."""
    if metrics is None or not metrics.stalls.count:
        return iter(())
    lasted, at = max(zip(metrics.stalls.lasted_s, metrics.stalls.at, strict=True))
    over = round(at + lasted, 6)
    return (row for row, t in enumerate(times) if (t or 0.0) >= over)


def _after_wait(times: Sequence[float | None], metrics: Metrics | None) -> Iterator[int]:
    """The rows that came after a wait, and with others in the same moment; the end is none."""
    known = [0.0, *(t or 0.0 for t in times[:-1])]
    for row, (before, t) in enumerate(pairwise(known)):
        together = known[row + 1 : row + 1 + TOGETHER_MIN]
        at_once = all(b - a <= TOGETHER_S for a, b in pairwise(together))
        if t - before >= HELD_S and len(together) == TOGETHER_MIN and at_once:
            yield row


#: Rule about the whole stream -> the rows where it is to be seen; the first one is shown.
SEEN: dict[str, Callable[[Sequence[float | None], Metrics | None], Iterator[int]]] = {
    "stall": _after_stall,
    "buffered": _after_wait,
}
