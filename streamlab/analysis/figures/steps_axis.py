"""Steps from left to right: where each lies, the axis under them, and the marks over them.

What the two timelines share. A step is a cell as wide as every other one; or, by time, it begins
where it happened and reaches to the next.

Read next: `plots.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from streamlab.analysis.figures.drawing import Board, levels
from streamlab.analysis.lanes import HOW_ENDED, ticks
from streamlab.analysis.trace import Step, Trace
from streamlab.analysis.trace import trace as fold
from streamlab.errors import UsageError
from streamlab.streams.recording import Recording
from streamlab.streams.script import Script
from streamlab.wire.events import Event, MessageCompleted

__all__ = [
    "Axis",
    "By",
    "Mark",
    "draw_marks",
    "folded",
    "marks",
    "marks_height",
    "span",
]

By = Literal["steps", "time"]

#: Pixels of one line of marks' words.
MARK_LINE = 14

#: Size of their words, and pixels from the line to the nearest.
WORDS, SIGN = 10, 10

#: What a mark is drawn as: injected, the final marker, the transport's end, the gates, what the
#: program does with a proposal.
Sign = Literal["injected", "marker", "end", "gates", "act"]

#: Kinds of steps that are the program's own doing, and no fault.
ACTS = ("commit", "effect", "reconcile")

#: Marks of things injected that are drawn one by one.
MAX_MARKS = 12

COLOUR: dict[Sign, str] = {
    "injected": "bad",
    "marker": "dim",
    "end": "ink",
    "gates": "accent",
    "act": "ink",
}


class Mark(NamedTuple):
    """Something that happened at a step, or at a few in a row."""

    first: int
    last: int
    sign: Sign
    word: str


def folded(given: Trace | Script | Recording) -> Trace:
    """The trace itself, or the one that a script or a recording gives."""
    return given if isinstance(given, Trace) else fold(given)


def span(first: int, last: int) -> str:
    """Steps in words."""
    return f"step {first}" if first == last else f"steps {first} to {last}"


def marks(trace: Trace, marker: bool = False) -> list[Mark]:
    """What is marked over a trace, in order."""
    found = []
    for word, group in groupby(trace.steps, _word):
        steps = list(group)
        if word:
            sign: Sign = "act" if word in ACTS else "injected"
            found.append(Mark(steps[0].n, steps[-1].n, sign, word))
    if len(found) > MAX_MARKS:
        rest = found[MAX_MARKS - 1 :]
        found[MAX_MARKS - 1 :] = [
            Mark(rest[0].first, rest[-1].last, "injected", f"{len(rest)} more")
        ]
    found += [Mark(s.n, s.n, "gates", "gates") for s in trace.steps if s.kind == "gates"]
    ends = [step for step in trace.steps if step.kind == "end"]
    found += [Mark(step.n, step.n, "end", HOW_ENDED.get(step.name, step.name)) for step in ends]
    if marker:
        whole = (s for s in trace.steps if _from_stream(s) and any(map(_completes, s.events)))
        found += [Mark(step.n, step.n, "marker", "final marker") for step in whole]
    return sorted(found)


def _from_stream(step: Step) -> bool:
    """Whether the stream itself said what this step's events are; a late callback is none of it."""
    return step.kind in ("frame", "end")


def _completes(event: Event) -> bool:
    return isinstance(event, MessageCompleted)


def draw_marks(board: Board, found: Sequence[Mark], places: Sequence[float], y: float) -> None:
    """Signs that touch the line at `y`, and their words above them."""
    named = list(zip(places, (mark.word for mark in found), strict=True))
    for (x, word), level, mark in zip(named, levels(named, WORDS), found, strict=True):
        top = y - SIGN - level * MARK_LINE
        board.lines([[(x, top - 8), (x, y - SIGN)]], edge="dim", width=0.8)
        board.text(x + 3, top, word, WORDS, colour=COLOUR[mark.sign])
        _sign(board, mark.sign, x, y)


def marks_height(found: Sequence[Mark], places: Sequence[float]) -> float:
    """How much room they need over the line."""
    named = list(zip(places, (mark.word for mark in found), strict=True))
    return SIGN + (max(levels(named, WORDS)) + 1) * MARK_LINE if found else 4


def _sign(board: Board, sign: Sign, x: float, y: float) -> None:
    up, colour = y - SIGN, COLOUR[sign]
    if sign == "injected":
        board.lines([[(x - 5, up), (x + 5, up), (x, y), (x - 5, up)]], fill=colour)
    elif sign == "act":
        board.box(x - 4, up + 1, 8, 8, fill="paper", edge=colour, width=1.5)
    elif sign == "gates":
        middle = (y + up) / 2
        points = [(x, up), (x + 5, middle), (x, y), (x - 5, middle), (x, up)]
        board.lines([points], fill="paper", edge=colour, width=1.5)
    else:
        width = 3 if sign == "end" else 1.5
        board.lines([[(x, up), (x, y)]], edge=colour, width=width, dash=sign == "marker")


def _word(step: Step) -> str:
    if not step.injected:
        return ""
    return "injected" if step.kind == "frame" else step.kind


class Axis:
    """Where some sequences of steps lie between two edges of a drawing."""

    def __init__(self, parts: Sequence[Sequence[Step]], by: By, left: float, right: float) -> None:
        self.by, self.left, self.right = by, left, right
        self.most = max(step.n for steps in parts for step in steps)
        self.extent = float(self.most)
        if by == "time":
            times = [t for steps in parts for t in _clock(steps)]
            known = [t for t in times if t is not None]
            if len(known) < len(times):
                raise UsageError('by="time": a recording has no times here; by="steps" needs none')
            self.extent = max(known) or 1.0
        elif by != "steps":
            raise UsageError(f"by={by!r}: the axis is by 'steps' or by 'time'")

    def edges(self, steps: Sequence[Step]) -> list[tuple[float, float]]:
        """Where each step begins and ends, in pixels."""
        if self.by == "steps":
            return [(self.x(step.n - 1), self.x(step.n)) for step in steps]
        starts = [self.x(t or 0.0) for t in _clock(steps)]
        return list(pairwise([*starts, starts[-1] + 12]))

    def x(self, value: float) -> float:
        """The place of a number of steps, or of seconds."""
        room = self.right - self.left - (self.by == "time") * 12
        return self.left + value / self.extent * room

    def draw(self, board: Board, y: float) -> None:
        """A line with numbers under it."""
        board.lines([[(self.left, y), (self.right, y)]], edge="dim")
        for x, label in self._numbers():
            board.lines([[(x, y), (x, y + 4)]], edge="dim")
            board.text(x, y + 16, label, 10, "middle", "dim")
        name = "seconds" if self.by == "time" else "step"
        board.text(self.left - 16, y + 16, name, 10, "end", "dim")

    def _numbers(self) -> Iterator[tuple[float, str]]:
        if self.by == "time":
            yield from ((self.x(value), label) for value, label in ticks(self.extent, 8, True))
            return
        every = next(n for n in _round_numbers() if self.most / n <= 24)
        for n in range(1, self.most + 1):
            if n % every == 0 or n == 1 != every - 1:
                yield self.x(n - 0.5), str(n)


def _clock(steps: Iterable[Step]) -> list[float | None]:
    """The time of each step; one without a time happens when the one before it does."""
    times: list[float | None] = []
    for step in steps:
        times.append(step.t if step.t is not None or not times else times[-1])
    return times


def _round_numbers() -> Iterator[int]:
    size = 1
    while True:
        yield from (size, 2 * size, 5 * size)
        size *= 10
