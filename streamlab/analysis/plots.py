"""The figures that stand still: the attempt's states, the answer's segments, the attempt's table.

Each gives a `Drawing`: an SVG, and a caption that is computed from the same values and says the
same in words. A state has its name beside or in its band, a mark its word; a colour never stands
alone.
This file draws the states over the steps, one line a trace, so that many can be compared. The
figures that a report is made of (a stream over its seconds, its gaps, its clumps, many streams) are
files of their own, and reachable from here.

Read next: `figures/segment.py`, then `figures/machine.py`, which draws the table itself;
`figures/stream.py` for the figures of a report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from streamlab.analysis.figures.aligned import aligned
from streamlab.analysis.figures.clumps import clumps
from streamlab.analysis.figures.compare import compare
from streamlab.analysis.figures.drawing import WIDTH, Board, Drawing, fitted, levels, wide
from streamlab.analysis.figures.gaps import gap_distribution
from streamlab.analysis.figures.ladder import first_ladder
from streamlab.analysis.figures.machine import machine
from streamlab.analysis.figures.segment import segment_timeline
from streamlab.analysis.figures.steps_axis import (
    Axis,
    By,
    Mark,
    draw_marks,
    folded,
    marks,
    marks_height,
    span,
)
from streamlab.analysis.figures.stream import stream_timeline
from streamlab.analysis.plain import clipped, counted, visible
from streamlab.analysis.trace import Step, Trace
from streamlab.consumer.attempt import State
from streamlab.errors import UsageError
from streamlab.streams.recording import Recording
from streamlab.streams.script import Script

__all__ = [
    "Drawing",
    "Run",
    "aligned",
    "clumps",
    "compare",
    "first_ladder",
    "gap_distribution",
    "machine",
    "runs",
    "segment_timeline",
    "state_timeline",
    "stream_timeline",
]

Given = Trace | Script | Recording

#: Traces in one figure, at most: beyond that nobody compares.
MAX_TRACES = 12

BAR, GHOST, LINE, GAP, NAME, TITLE = 24, 16, 14, 14, 11, 11
LEFT, NAMES, LAST = 64, 250, 220  #: the columns beside the bars; names take what they need


class Run(NamedTuple):
    """The steps in a row that left the attempt in one state."""

    state: State
    steps: tuple[Step, ...]

    @property
    def words(self) -> str:
        """Which steps these are."""
        return span(self.steps[0].n, self.steps[-1].n)


def runs(steps: Sequence[Step]) -> list[Run]:
    """The states in turn; some steps stand between each and the next."""
    groups = groupby(steps, lambda step: step.attempt.state)
    return [Run(state, tuple(group)) for state, group in groups]


def state_timeline(*given: Given | Mapping[str, Given], by: By = "steps") -> Drawing:
    """Draw the attempt's states from left to right, one line a trace.

    Take one or several, or a mapping from names. `by="time"` has seconds where there are any.
    """
    named = _named(given)
    left = _beside(named) if len(named) > 1 else LEFT
    parts = [part for trace in named.values() for part in (trace.steps, trace.cut_off)]
    axis = Axis(list(filter(None, parts)), by, left, WIDTH - LAST)
    rows = [_Row(name, trace, axis) for name, trace in named.items()]
    high = sum(row.high for row in rows)
    board = Board(high + 34)
    y = 6.0
    for row in rows:
        row.draw(board, y, len(rows) > 1)
        y += row.high
    axis.draw(board, y)
    told = [row.told(len(rows) > 1) for row in rows]
    return board.drawing("The attempt's states over the steps", "\n".join(told))


def _beside(names: Iterable[str]) -> float:
    """How wide the column of names is."""
    return min(NAMES, max(wide(visible(clipped(name, 60)), TITLE) for name in names) + 20)


def _named(given: Sequence[Given | Mapping[str, Given]]) -> dict[str, Trace]:
    named: dict[str, Given] = {}
    for each in given:
        found = each if isinstance(each, Mapping) else {str(len(named) + 1): each}
        named.update({str(name): value for name, value in found.items()})
    if not 0 < len(named) <= MAX_TRACES:
        raise UsageError(f"state_timeline takes 1 to {MAX_TRACES} traces, not {len(named)}")
    return {name: folded(value) for name, value in named.items()}


class _Row:
    """One trace's line: marks, the bar, what would have been, and names that had no room."""

    def __init__(self, name: str, trace: Trace, axis: Axis) -> None:
        self.name, self.trace, self.axis = name, trace, axis
        self.runs, self.ghost = runs(trace.steps), runs(trace.cut_off)
        self.marks = marks(trace)
        edges = axis.edges(trace.steps)
        self.places = [sum(edges[mark.first - 1]) / 2 for mark in self.marks]
        self.over = marks_height(self.marks, self.places)
        self.bands = self._bands(self.runs)
        short = [(run, band) for run, band in zip(self.runs, self.bands, strict=True)]
        self.short = [
            (min((start + end) / 2, start + 8), run.state.value)
            for run, (start, end) in short[:-1]
            if wide(run.state, NAME) + 14 > end - start
        ]
        self.levels = levels(self.short, 10)
        self.high = self.over + BAR + GHOST * bool(self.ghost) + self._under() + GAP

    def _under(self) -> float:
        return LINE * (max(self.levels) + 1) + 2 if self.levels else 0

    def _bands(self, found: Sequence[Run]) -> list[tuple[float, float]]:
        """Where each run begins and ends."""
        edges = self.axis.edges([step for run in found for step in run.steps]) if found else []
        bands, at = [], 0
        for run in found:
            bands.append((edges[at][0], edges[at + len(run.steps) - 1][1]))
            at += len(run.steps)
        return bands

    def draw(self, board: Board, y: float, titled: bool) -> None:
        """Draw it with its upper edge at `y`."""
        bar = y + self.over
        middle = bar + BAR / 2 + 4
        if titled:
            board.text(8, middle, fitted(self.name, NAMES - 20, TITLE), TITLE, bold=True)
        for run, (start, end) in zip(self.runs, self.bands, strict=True):
            fill = "soft" if run.state is State.PREVIEW else "paper"
            board.box(start, bar, end - start, BAR, fill=fill, edge="ink")
            if run is not self.runs[-1] and wide(run.state, NAME) + 14 <= end - start:
                board.text((start + end) / 2, middle, run.state, NAME, "middle")
        end = self.bands[-1][1]
        board.text(end + 8, middle, self.runs[-1].state, NAME, bold=True)
        draw_marks(board, self.marks, self.places, bar)
        if self.ghost:
            self._draw_ghost(board, bar + BAR + 3)
        self._draw_short(board, bar + BAR, GHOST * bool(self.ghost))

    def _draw_ghost(self, board: Board, y: float) -> None:
        bands = self._bands(self.ghost)
        low = y + GHOST - 6
        corners = [[(a, y), (b, y), (b, low), (a, low), (a, y)] for a, b in bands]
        board.lines(corners, edge="dim", dash=True)
        words = f"would have been {self.ghost[-1].state}"
        board.text(bands[-1][1] + 8, y + 9, words, 10, colour="dim")

    def _draw_short(self, board: Board, y: float, ghost: float) -> None:
        for (x, word), level in zip(self.short, self.levels, strict=True):
            stand = y + ghost + LINE * (level + 1)
            board.lines([[(x, y), (x, stand)]], edge="dim", width=0.8)
            board.text(x + 3, stand, word, 10)

    def told(self, titled: bool) -> str:
        """The line in words."""
        first, *rest = self.runs
        parts = [f"{first.state} for {first.words}"]
        parts += [f"{run.state} {_at(run)}" for run in rest]
        said = [", then ".join(parts), *map(_told_mark, self.marks)]
        if self.ghost:
            end, lost = self.ghost[-1], sum(len(run.steps) for run in self.ghost)
            steps = counted(lost, "more step")
            said.append(f"Without the last change {steps} would have led to {end.state}")
        name = f"{clipped(self.name, 60)}: " if titled else ""
        return name + ". ".join(said) + "."


def _at(run: Run) -> str:
    return f"at {run.words}" if len(run.steps) == 1 else f"for {run.words}"


def _told_mark(mark: Mark) -> str:
    where = span(mark.first, mark.last)
    if mark.sign == "end":
        return f"The transport stopped at {where} ({mark.word})"
    if mark.sign == "gates":
        return f"The gates judged at {where}"
    beside = mark.word != "injected"
    return f"Beside the stream at {where}: {mark.word}" if beside else f"Injected at {where}"
