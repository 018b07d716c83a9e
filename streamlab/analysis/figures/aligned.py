"""Many streams, one thin line each, aligned at their requests or at their first content.

The phases differ in height as well as in colour, so they can be told apart on a line of three
pixels: thinking is half as high as text, and a tool call is two rails. A thin line is waiting: for
the first content, or through a stall. A recording without times is left out, and said to be.

Read next: `compare.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from streamlab.analysis.figures.drawing import WIDTH, Board, Drawing, wide
from streamlab.analysis.figures.flow import PHASES, Flow, flows_of, timed
from streamlab.analysis.figures.phase_look import BIG, CALLED, COLOUR, Line, outline
from streamlab.analysis.figures.scale import HEIGHT, Scale, joined
from streamlab.analysis.given import Many
from streamlab.analysis.plain import counted, seconds
from streamlab.errors import UsageError

__all__ = ["At", "aligned"]

WHAT = "aligned"

At = Literal["request", "first content"]

MAX_STREAMS = 500

LEFT, RIGHT, TOP, KEY = 60, WIDTH - 44, 40, 40

#: Pixels of one line: as many as there is room for, within these.
LEAST, MOST, ROOM = 3.0, 22.0, 600.0

#: Where the middle of a line is, in its height: what is left below it parts it from the next one.
MIDDLE = 0.4

#: Phase -> the stretches of a line's height that it fills, from 0 to 1.
RAILS: dict[str, tuple[tuple[float, float], ...]] = {
    "text": ((0.0, 1.0),),
    "thinking": ((0.25, 0.75),),
    "tool": ((0.0, 0.3), (0.7, 1.0)),
    "other": ((0.4, 0.6),),
}


def aligned(*given: Many, at: At = "request") -> Drawing:
    """Draw up to 500 streams, those whose first content (or whose end) came soonest on top.

    `at="first content"` begins each line at its first content, and leaves out those without any.
    """
    if at not in ("request", "first content"):
        raise UsageError(f"at={at!r}: the streams are aligned at 'request' or at 'first content'")
    flows, left_out = timed(flows_of(given, MAX_STREAMS, WHAT), WHAT)
    notes = [left_out]
    if at == "first content":
        silent = sum(not len(flow.t) for flow in flows)
        flows = [flow for flow in flows if len(flow.t)]
        notes.append(f"{counted(silent, 'stream')} without content left out." if silent else "")
        if not flows:
            raise UsageError(f"{WHAT}: no stream here has content to align at")
    flows.sort(key=lambda flow: (_start(flow, at), flow.end - _zero(flow, at)))
    scale = Scale(max(flow.end - _zero(flow, at) for flow in flows), LEFT, RIGHT)
    high = min(MOST, max(LEAST, ROOM / len(flows)))
    bottom = TOP + high * len(flows) + 10
    board = Board(bottom + HEIGHT + KEY)
    _draw(board, flows, at, scale, high)
    scale.draw(board, bottom, f"seconds since the {at}")
    _key(board, bottom + HEIGHT, flows, at)
    return board.drawing(f"{counted(len(flows), 'stream')}, aligned", _told(flows, at, notes))


def _zero(flow: Flow, at: At) -> float:
    return flow.t[0] if at == "first content" else 0.0


def _start(flow: Flow, at: At) -> float:
    """What the lines are sorted by: the first content, or the end where all begin with it."""
    if at == "first content":
        return flow.end - flow.t[0]
    return flow.t[0] if len(flow.t) else flow.end


def _draw(board: Board, flows: Sequence[Flow], at: At, scale: Scale, high: float) -> None:
    words = f"{counted(len(flows), 'stream')}, one line each"
    board.text(14, 24, words, BIG, bold=True)
    bad = sum(not flow.outcome.complete for flow in flows)
    board.text(WIDTH - 14, 24, f"{bad} not complete", BIG, "end", "bad" if bad else "ink")
    waits, rails = [], dict[str, list[Line]]()
    for n, flow in enumerate(flows):
        y, zero = TOP + n * high, _zero(flow, at)
        waits += [
            [(scale.x(start), y + high * MIDDLE), (scale.x(end), y + high * MIDDLE)]
            for start, end in _waits(flow, zero)
        ]
        for phase, box in _outlines(flow, zero, scale, y, high):
            rails.setdefault(phase, []).append(box)
    board.lines(waits, edge="dim", width=min(1.5, max(0.7, high / 12)))
    for phase, outlines in rails.items():
        board.lines(outlines, fill=COLOUR[phase])
    _draw_ends(board, flows, at, scale, high)


def _waits(flow: Flow, zero: float) -> Iterator[tuple[float, float]]:
    """From when to when nothing came: before the first content, and in each stall."""
    first = flow.t[0] if len(flow.t) else flow.end
    found = [(0.0, first - zero), *((at - zero, at - zero + lasted) for at, lasted in flow.stalls)]
    return ((max(start, 0.0), end) for start, end in found if end > max(start, 0.0))


def _outlines(
    flow: Flow, zero: float, scale: Scale, y: float, high: float
) -> Iterator[tuple[str, Line]]:
    room, edges = high * 2 * MIDDLE, dict[str, list[tuple[float, float]]]()
    for run in flow.runs():
        a = scale.x(run.first - zero)
        edges.setdefault(run.phase, []).append((a, max(scale.x(run.last - zero), a + 1.5)))
    for phase, found in edges.items():
        for a, b in joined(found):
            for low, top in RAILS[phase]:
                yield phase, outline((a, y + low * room, b - a, (top - low) * room))


def _draw_ends(board: Board, flows: Sequence[Flow], at: At, scale: Scale, high: float) -> None:
    """A cross where a stream ended that is not complete, and a notch beside its line."""
    arms, notches = [], []
    r = min(max(high * 0.45, 3.5), 8)
    for n, flow in enumerate(flows):
        if flow.outcome.complete:
            continue
        x, y = scale.x(flow.end - _zero(flow, at)) + r, TOP + (n + MIDDLE) * high
        arms += [[(x - r, y - r), (x + r, y + r)], [(x - r, y + r), (x + r, y - r)]]
        notches.append([(LEFT - 22, y), (LEFT - 6, y)])
    board.lines(arms, edge="bad", width=2.5 if high > 6 else 1.8)
    board.lines(notches, edge="bad", width=max(2.0, min(high * 0.6, 6)))


def _key(board: Board, y: float, flows: Sequence[Flow], at: At) -> None:
    seen = {run.phase for flow in flows for run in flow.runs()}
    x, middle = 14.0, y + 18
    for phase in PHASES:
        if phase in seen:
            for low, top in RAILS[phase]:
                board.box(x, middle - 10 + low * 20, 30, (top - low) * 20, fill=COLOUR[phase])
            board.text(x + 38, middle + 6, CALLED[phase], BIG)
            x += 62 + wide(CALLED[phase], BIG)
    if any(wait for flow in flows for wait in _waits(flow, _zero(flow, at))):
        board.lines([[(x, middle), (x + 30, middle)]], edge="dim", width=1.5)
        board.text(x + 38, middle + 6, "waiting", BIG)
        x += 62 + wide("waiting", BIG)
    if any(not flow.outcome.complete for flow in flows):
        arms = (
            [(x + 4, middle - 8), (x + 20, middle + 8)],
            [(x + 4, middle + 8), (x + 20, middle - 8)],
        )
        board.lines(arms, edge="bad", width=3)
        board.text(x + 30, middle + 6, "not complete", BIG)


def _told(flows: Sequence[Flow], at: At, notes: Sequence[str]) -> str:
    bad = sum(not flow.outcome.complete for flow in flows)
    stalled = sum(bool(flow.stalls) for flow in flows)
    said = [f"{counted(len(flows), 'stream')}, aligned at the {at}", f"{bad} not complete"]
    said.append(f"{stalled} with a stall")
    firsts = sorted(flow.t[0] for flow in flows if len(flow.t))
    ends = sorted(flow.end - _zero(flow, at) for flow in flows)
    if firsts:
        said.append(f"First content after {_spread(firsts)}")
    said.append(f"The end is {_spread(ends)} after the {at}")
    counts = {phase: sum(_has(flow, phase) for flow in flows) for phase in PHASES}
    has = [f"{CALLED[phase]}: {count}" for phase, count in counts.items() if count]
    said += [f"Streams with {', '.join(has)}"] if has else []
    return ". ".join(said) + "." + "".join(f" {note}" for note in notes if note)


def _has(flow: Flow, phase: str) -> bool:
    return any(run.phase == phase for run in flow.runs())


def _spread(values: Sequence[float]) -> str:
    middle = values[(len(values) - 1) // 2]
    return f"{seconds(values[0])} to {seconds(values[-1])} (median {seconds(middle)})"
