"""The segments over the steps: one bar a segment, from its start to its stop, a tick a delta.

So interleaved segments are seen at once, and one that never stopped stands open.

Read next: `machine.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from streamlab.analysis.figures.drawing import WIDTH, Board, Drawing, fitted, wide
from streamlab.analysis.figures.steps_axis import (
    Axis,
    By,
    draw_marks,
    folded,
    marks,
    marks_height,
    span,
)
from streamlab.analysis.lanes import MAX_LANES
from streamlab.analysis.plain import clipped, counted
from streamlab.analysis.trace import Trace
from streamlab.streams.recording import Recording
from streamlab.streams.script import Script
from streamlab.wire import events as e

__all__ = ["Bar", "bars", "segment_timeline"]

HIGH, ROW, LEFT, RIGHT = 20, 32, 220, 120

DELTAS = (e.TextDelta, e.ThinkingDelta, e.InputDelta, e.SignatureDelta, e.Attached)


class Bar(msgspec.Struct):
    """One segment along the steps."""

    id: str
    kind: str
    name: str
    first: int
    last: int | None = None  #: None: it never stopped
    deltas: list[int] = []  #: the step of each
    error: bool = False  #: it stopped, and its input does not parse

    @property
    def label(self) -> str:
        """What it is called."""
        return f"{self.id} {self.kind}" + (f" {self.name}" if self.name else "")


def bars(trace: Trace) -> list[Bar]:
    """Every segment of a trace, in the order in which they started."""
    found: dict[str, Bar] = {}
    for step in trace.steps:
        for event in step.events:
            if isinstance(event, e.SegmentStarted):
                name = event.name or (event.type if event.kind == "other" else "")
                found.setdefault(event.segment, Bar(event.segment, event.kind, name, step.n))
                continue
            bar = found.get(getattr(event, "segment", ""))
            if bar is None or bar.last is not None:
                continue
            if isinstance(event, e.Identified):
                bar.name = event.name or bar.name
            elif isinstance(event, e.SegmentStopped):
                segment = step.turn.find(event.segment)
                bar.last, bar.error = step.n, segment is not None and bool(segment.error)
            elif isinstance(event, DELTAS):
                bar.deltas.append(step.n)
    return list(found.values())


def segment_timeline(given: Trace | Script | Recording, by: By = "steps") -> Drawing:
    """Draw the segments of one trace from left to right, one bar each."""
    trace = folded(given)
    every, axis = bars(trace), Axis([trace.steps], by, LEFT, WIDTH - RIGHT)
    shown, edges = every[:MAX_LANES], axis.edges(trace.steps)
    found = marks(trace, marker=True)
    places = [sum(edges[mark.first - 1]) / 2 for mark in found]
    top = 6 + marks_height(found, places)
    bottom = top + max(1, len(shown) + (len(every) > len(shown))) * ROW + 4
    board = Board(bottom + 28)
    for x, mark in zip(places, found, strict=True):
        if mark.sign in ("end", "marker"):
            dash = mark.sign == "marker"
            board.lines([[(x, top), (x, bottom)]], edge="dim", width=1.5, dash=dash)
    stop = next((x for x, mark in zip(places, found, strict=True) if mark.sign == "end"), None)
    for n, bar in enumerate(shown):
        _draw(board, bar, edges, stop or edges[-1][1], top + n * ROW + 8)
    if len(every) > len(shown):
        more = f"and {len(every) - len(shown)} more"
        board.text(LEFT - 12, bottom - 14, more, 11, "end", "dim")
    draw_marks(board, found, places, top)
    axis.draw(board, bottom)
    return board.drawing("The segments over the steps", _told(every, trace))


def _draw(
    board: Board, bar: Bar, edges: Sequence[tuple[float, float]], stop: float, y: float
) -> None:
    start = edges[bar.first - 1][0]
    end = edges[bar.last - 1][1] if bar.last else stop
    board.text(LEFT - 12, y + 14, fitted(bar.label, LEFT - 20, 11), 11, "end")
    fill = "soft" if bar.kind == "text" else "paper"
    if bar.last is None:
        outline = [*_torn(end, y), (start, y + HIGH), (start, y)]
        board.lines([[(start, y), *outline]], fill=fill)
        board.lines([[(end, y), (start, y), (start, y + HIGH), (end, y + HIGH)]], edge="ink")
        board.lines([_torn(end, y)], edge="bad", width=2)
        _beside(board, end + 6, y, "never stopped")
    else:
        board.box(start, y, end - start, HIGH, fill=fill, edge="ink")
        if bar.error:
            _beside(board, end + 4, y, "does not parse")
    ticks = dict.fromkeys(round(sum(edges[n - 1]) / 2, 1) for n in bar.deltas)
    thinned = dict.fromkeys(round(x) for x in ticks) if len(ticks) > 200 else ticks
    board.lines([[(x, y + 4), (x, y + HIGH - 4)] for x in thinned], edge="ink", width=2)


def _torn(x: float, y: float) -> list[tuple[float, float]]:
    """The end of a bar that was never closed."""
    return [(x + 4 * (n % 2), y + n * HIGH / 6) for n in range(7)]


def _beside(board: Board, x: float, y: float, words: str) -> None:
    board.box(x - 1, y + 3, wide(words, 11) + 4, 15, fill="paper")
    board.text(x + 1, y + 14, words, 11, colour="bad", bold=True)


# --- In words -------------------------------------------------------------------------------------


def _told(every: Sequence[Bar], trace: Trace) -> str:
    last = trace.steps[-1].n
    said = [*map(_told_bar, every[:MAX_LANES])] or ["No segment started"]
    if len(every) > MAX_LANES:
        said.append(f"{counted(len(every) - MAX_LANES, 'more segment')} started")
    pairs = list(_together(every[:MAX_LANES], last))
    if pairs:
        said.append(f"Open at the same time: {', '.join(pairs)}")
    where = {mark.sign: mark for mark in marks(trace, marker=True)}
    marker, end = where.get("marker"), where.get("end")
    said.append(
        f"The final marker came at {span(marker.first, marker.last)}"
        if marker
        else "The final marker never came"
    )
    if end:
        said.append(f"The transport stopped at {span(end.first, end.last)} ({end.word})")
    return ". ".join(said) + "."


def _told_bar(bar: Bar) -> str:
    stop = f"stopped at step {bar.last}" if bar.last else "never stopped"
    parse = ", and its input does not parse" if bar.error else ""
    deltas = counted(len(bar.deltas), "delta")
    return f"{clipped(bar.label, 60)}: started at step {bar.first}, {deltas}, {stop}{parse}"


def _together(every: Sequence[Bar], last: int) -> Iterator[str]:
    for n, one in enumerate(every):
        for other in every[n + 1 :]:
            if other.first < (one.last or last) and one.first < (other.last or last):
                yield f"{clipped(one.id, 12)} and {clipped(other.id, 12)}"
