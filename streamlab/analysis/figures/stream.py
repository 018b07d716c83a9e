"""One stream over its seconds: thinking, text and each tool call as bars, stalls, and its end.

A recording without times is drawn over its bytes, and says so: the order is known, silences are
not.

Read next: `compare.py`, which draws two of them on one axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from streamlab.analysis.figures.drawing import WIDTH, Board, Drawing, fitted, wide
from streamlab.analysis.figures.flow import Flow, Run, amount, flow_of
from streamlab.analysis.figures.phase_look import BIG, Item, Key, bars, symbol, tinted
from streamlab.analysis.figures.scale import HEIGHT, Scale, joined
from streamlab.analysis.given import Given
from streamlab.analysis.lanes import HOW_ENDED
from streamlab.analysis.plain import clipped, counted, seconds, visible

__all__ = ["Lane", "Strip", "lanes_of", "stream_timeline"]

LEFT, RIGHT = 176, WIDTH - 44
TITLE, LANE, BAR, STALLS, PINGS, MARKS = 36, 36, 22, 34, 26, 34

#: Tool calls that have a lane of their own, stalls that are named, and stalls that are drawn.
MAX_TOOLS, MAX_STALLS, MAX_DRAWN = 6, 12, 100


class Lane(NamedTuple):
    """One line of bars."""

    label: str
    phase: str
    runs: tuple[Run, ...]
    open: bool  #: whether a segment of it never stopped


class Marked(NamedTuple):
    """Something that happened at one place, with its name in the key."""

    symbol: str
    at: float
    words: str


def stream_timeline(given: Given) -> Drawing:
    """Draw one stream (of a file, its first): what came when, where it stalled, how it ended."""
    flow = flow_of(given)
    strip = Strip(flow, Scale(flow.end, LEFT, RIGHT, flow.by_time))
    key = Key([*strip.key(), *(Item(mark.symbol, mark.words) for mark in strip.told_marks())])
    board = Board(strip.height + HEIGHT + key.height + 8)
    strip.draw(board, 0)
    strip.scale.draw(board, strip.height)
    key.draw(board, strip.height + HEIGHT)
    return board.drawing("One stream: what came when", told(flow))


def lanes_of(flow: Flow) -> list[Lane]:
    """The lanes of a stream, by their first content: one a phase, one a tool call."""
    spans, found = flow.timeline.spans, dict[str, list[Run]]()
    for run in flow.runs():
        found.setdefault(f"tool {run.segment}" if run.phase == "tool" else run.phase, []).append(
            run
        )
    tools = [name for name in found if name.startswith("tool ")]
    lanes, rest = [], list[Run]()
    for name, runs in found.items():
        if name in tools[MAX_TOOLS:]:
            rest += runs
            continue
        span = spans.get(runs[0].segment)
        label = span.name if span and runs[0].phase == "tool" else runs[0].phase
        lanes.append(_lane(flow, label, runs))
    if rest:
        lanes.append(_lane(flow, f"{len(tools) - MAX_TOOLS} more tools", rest))
    return lanes


def _lane(flow: Flow, label: str, runs: Sequence[Run]) -> Lane:
    spans = (flow.timeline.spans.get(run.segment) for run in runs)
    return Lane(label, runs[0].phase, tuple(runs), any(span and not span.stopped for span in spans))


def marks_of(flow: Flow) -> Iterator[Marked]:
    """What is marked under the lanes, with its place."""
    if flow.places:
        yield Marked("first content", flow.places[0], "first content")
    error, reason, marker = (flow.mark(kind) for kind in ("error", "reason", "marker"))
    if error is not None:
        yield Marked("error", error, "error")
    if reason is not None:
        word = clipped(flow.outcome.turn.facts.stop_reason or "none", 40)
        yield Marked("stop reason", reason, f"stop reason {word}")
    if flow.outcome.complete:
        yield Marked("complete", flow.end if marker is None else marker, "complete")
    else:
        yield Marked("broken", flow.end, f"not complete ({HOW_ENDED[flow.outcome.ending]})")


class Strip:
    """The lanes of one stream on a scale, with its name over them and its marks under them."""

    def __init__(self, flow: Flow, scale: Scale) -> None:
        self.flow, self.scale = flow, scale
        self.lanes, self.marks = lanes_of(flow), sorted(marks_of(flow), key=lambda m: m.at)
        longest = sorted(flow.stalls, key=lambda stall: stall[1])[-MAX_DRAWN:]
        self.stalls, self.pinged = sorted(longest), bool(flow.pinged)
        self.top = TITLE + STALLS * bool(self.stalls)
        self.bottom = self.top + LANE * len(self.lanes) + PINGS * self.pinged
        self.height = self.bottom + MARKS + 6

    def told_marks(self) -> Iterator[Marked]:
        """The marks, each with its place in its words."""
        for mark in self.marks:
            yield mark._replace(words=f"{mark.words} {amount(mark.at, self.flow.by_time)}")

    def key(self) -> Iterator[Item]:
        """What the lanes hold."""
        yield from (
            Item(phase, phase) for phase in dict.fromkeys(lane.phase for lane in self.lanes)
        )
        if any(lane.open for lane in self.lanes):
            yield Item("never stopped", "never stopped")
        if self.stalls:
            yield Item("stall", "stall")

    def draw(self, board: Board, y: float) -> None:
        """Draw it with its upper edge at `y`."""
        state = self.flow.outcome.state.value
        name = fitted(self.flow.name, WIDTH - 60 - wide(state, BIG), BIG)
        board.text(14, y + 24, name, BIG, bold=True)
        board.text(WIDTH - 14, y + 24, state, BIG, "end")
        self._draw_stalls(board, y)
        for n, lane in enumerate(self.lanes):
            self._draw_lane(board, lane, y + self.top + n * LANE)
        if self.pinged:
            self._draw_pings(board, y + self.bottom - PINGS / 2)
        self._draw_marks(board, y + self.bottom + MARKS / 2)

    def _label(self, board: Board, y: float, words: str) -> None:
        board.text(LEFT - 14, y, fitted(words, LEFT - 22, BIG), BIG, "end")

    def _draw_stalls(self, board: Board, y: float) -> None:
        if not self.stalls:
            return
        line, free = y + TITLE + 12, LEFT - 8.0
        self._label(board, line + 8, "stalled")
        ends = [(self.scale.x(start), self.scale.x(start + s)) for start, s in self.stalls]
        for a, b in ends:
            board.box(a, line, max(b - a, 2), y + self.bottom - line, fill="soft")
        board.lines([[(a, line), (b, line)] for a, b in ends], edge="bad", width=2.5)
        posts = [[(x, line - 7), (x, line + 7)] for pair in ends for x in pair]
        board.lines(posts, edge="bad", width=2.5)
        for (a, b), (_, lasted) in zip(ends, self.stalls, strict=True):
            words = seconds(lasted)
            half = wide(words, BIG) / 2 + 4
            middle = min(max((a + b) / 2, LEFT + half), RIGHT + 36 - half)
            if middle - half >= free:
                tinted(board, middle, line + 6, words, "bad", "middle")
                free = middle + half + 4

    def _draw_lane(self, board: Board, lane: Lane, y: float) -> None:
        middle, top = y + LANE / 2, y + (LANE - BAR) / 2
        self._label(board, middle + 6, lane.label)
        edges = [(self.scale.x(run.first), self.scale.x(run.last)) for run in lane.runs]
        board.lines([[(edges[0][0], middle), (edges[-1][1], middle)]], edge="dim", width=1.5)
        drawn = list(joined((a, max(b, a + 4)) for a, b in edges))
        bars(board, lane.phase, [(a, top, b - a, BAR) for a, b in drawn])
        if lane.open:
            symbol(board, "never stopped", drawn[-1][1] + 4, middle)

    def _draw_pings(self, board: Board, y: float) -> None:
        self._label(board, y + 6, "pings")
        places = dict.fromkeys(round(self.scale.x(at) / 4) * 4 for at in self.flow.pings)
        for x in places:
            symbol(board, "ping", x, y)

    def _draw_marks(self, board: Board, y: float) -> None:
        """The marks in a line, moved apart where they would cover one another."""
        self._label(board, y + 6, "marks")
        edge = y - MARKS / 2
        for x, mark in zip(
            _apart([self.scale.x(m.at) for m in self.marks]), self.marks, strict=True
        ):
            true = self.scale.x(mark.at)
            board.lines([[(true, edge - 4), (true, edge + 3), (x, y - 8)]], edge="dim", width=1.5)
            symbol(board, mark.symbol, x, y)


def _apart(places: Sequence[float], room: float = 26, right: float = WIDTH - 14) -> list[float]:
    """The places in their order, at least `room` from one another, none past `right`."""
    found: list[float] = []
    for x in places:
        found.append(max(x, found[-1] + room) if found else x)
    limit = right
    for n in range(len(found) - 1, -1, -1):
        found[n] = min(found[n], limit)
        limit = found[n] - room
    return found


# --- In words -------------------------------------------------------------------------------------


def told(flow: Flow) -> str:
    """The figure in words."""
    outcome, by_time = flow.outcome, flow.by_time
    said = [f"{clipped(flow.name, 60)}: {outcome.state.value}, {counted(outcome.frames, 'frame')}"]
    if not by_time:
        said.append("The recording has no times, so this is over its bytes")
    lanes = lanes_of(flow)
    said += [_told_lane(lane, by_time) for lane in lanes] or ["No content came"]
    if by_time:
        said += [_told_stalls(flow)]
    if flow.pinged:
        said.append(counted(len(flow.pinged) + flow.more_pings, "ping"))
    for mark in sorted(marks_of(flow), key=lambda m: m.at):
        words = mark.words[0].upper() + mark.words[1:]
        said.append(f"{words} at {amount(mark.at, by_time)}")
    if flow.more:
        said.append(f"{counted(flow.more, 'later content event')} not drawn")
    return ". ".join(said) + "."


def _told_lane(lane: Lane, by_time: bool) -> str:
    events = counted(sum(run.events for run in lane.runs), "content event")
    first, last = amount(lane.runs[0].first, by_time), amount(lane.runs[-1].last, by_time)
    never = ", never stopped" if lane.open else ""
    return f"{visible(clipped(lane.label, 40))}: {events} from {first} to {last}{never}"


def _told_stalls(flow: Flow) -> str:
    found = flow.stalls
    if not found:
        return "No stall"
    listed = [f"{seconds(lasted)} from {seconds(at)} on" for at, lasted in found[:MAX_STALLS]]
    more = len(found) - MAX_STALLS
    listed += [f"{more} more"] if more > 0 else []
    return f"{counted(len(found), 'stall')}: {', '.join(listed)}"
