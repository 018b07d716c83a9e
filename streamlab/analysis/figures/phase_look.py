"""How thinking, text and tool input look in the figures of a report, and the key that says so.

Each phase has a texture as well as a colour, and each mark a shape of its own, so a figure says the
same in black and white. Words are `BIG`: half as wide, as in a column of print, they are still
legible.

Read next: `scale.py`, the axes under them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import cos, pi, sin
from typing import NamedTuple

from streamlab.analysis.figures.drawing import WIDTH, Board, fitted, wide

__all__ = [
    "BIG",
    "CALLED",
    "COLOUR",
    "Item",
    "Key",
    "Line",
    "bars",
    "hatch",
    "outline",
    "symbol",
    "tinted",
]

#: Size of every word in these figures.
BIG = 18

#: Phase -> its colour.
COLOUR = {"thinking": "thinking", "text": "accent", "tool": "tool", "other": "dim"}

#: What a phase is called in a key.
CALLED = {"thinking": "thinking", "text": "text", "tool": "tool call", "other": "other"}

Box = tuple[float, float, float, float]
Line = Sequence[tuple[float, float]]


def bars(board: Board, phase: str, boxes: Iterable[Box]) -> None:
    """Bars of one phase, each as (x, y, width, height), in its colour and its texture."""
    found, colour = list(boxes), COLOUR[phase]
    outlines = [outline(box) for box in found]
    if phase == "text":
        board.lines(outlines, fill=colour)
        return
    board.lines(outlines, fill="paper")
    if phase == "thinking":
        board.lines([line for box in found for line in hatch(box)], edge=colour, width=1.5)
    elif phase == "tool":
        board.lines([line for box in found for line in stripes(box)], edge=colour, width=3)
    board.lines(outlines, edge=colour, width=2)


def outline(box: Box) -> Line:
    """A box as a closed line."""
    x, y, wide, high = box
    return [(x, y), (x + wide, y), (x + wide, y + high), (x, y + high), (x, y)]


def hatch(box: Box, step: float = 8) -> Iterator[Line]:
    """Slanting lines that fill a box."""
    x, y, wide, high = box
    at = step - high
    while at < wide:
        start, stop = max(0.0, -at), min(high, wide - at)
        if stop > start:
            yield [(x + at + start, y + high - start), (x + at + stop, y + high - stop)]
        at += step


def stripes(box: Box, step: float = 7) -> Iterator[Line]:
    """Upright lines that fill a box."""
    x, y, wide, high = box
    for n in range(1, int(wide / step) + 1):
        if n * step < wide - 1:
            yield [(x + n * step, y), (x + n * step, y + high)]


# --- Marks ----------------------------------------------------------------------------------------


def _triangle(board: Board, x: float, y: float) -> None:
    board.lines([[(x, y - 9), (x + 9, y + 7), (x - 9, y + 7), (x, y - 9)]], fill="ink")


def _diamond(board: Board, x: float, y: float) -> None:
    points = [(x, y - 10), (x + 10, y), (x, y + 10), (x - 10, y), (x, y - 10)]
    board.lines([points], fill="paper", edge="ink", width=2.5)


def _square(board: Board, x: float, y: float) -> None:
    board.box(x - 8, y - 8, 16, 16, fill="good")


def _cross(board: Board, x: float, y: float) -> None:
    arms = [[(x - 8, y - 8), (x + 8, y + 8)], [(x - 8, y + 8), (x + 8, y - 8)]]
    board.lines(arms, edge="bad", width=4)


def _bang(board: Board, x: float, y: float) -> None:
    board.lines([[(x, y - 10), (x, y + 3)], [(x, y + 6), (x, y + 10)]], edge="bad", width=5)


def _ring(board: Board, x: float, y: float) -> None:
    board.lines([_round(x, y, 6)], fill="paper", edge="dim", width=2)


def _tick(board: Board, x: float, y: float) -> None:
    """It points up at the line that it stands under: what comes soon after it does not hide it."""
    board.lines([[(x, y + 5), (x + 6, y + 15), (x - 6, y + 15), (x, y + 5)]], fill="dim")


def _cap(board: Board, x: float, y: float) -> None:
    board.box(x - 3, y - 13, 6, 26, fill="good")


def _torn(board: Board, x: float, y: float) -> None:
    points = [(x + 5 * (n % 2), y - 12 + 4 * n) for n in range(7)]
    board.lines([points], edge="bad", width=3)


def _bracket(board: Board, x: float, y: float) -> None:
    lines = [[(x - 12, y), (x + 12, y)], *([(x + dx, y - 7), (x + dx, y + 7)] for dx in (-12, 12))]
    board.lines(lines, edge="bad", width=2.5)


def _round(x: float, y: float, r: float) -> Line:
    turn = 2 * pi / 20
    rim = [(x + r * cos(n * turn), y + r * sin(n * turn)) for n in range(20)]
    return [*rim, rim[0]]


def _phase_dot(phase: str, r: float = 9) -> Callable[[Board, float, float], None]:
    """A mark for the first content of a phase: round, slanted or square, in its own colour."""

    def draw(board: Board, x: float, y: float) -> None:
        if phase == "text":
            board.lines([_round(x, y, r)], fill=COLOUR[phase])
        elif phase == "thinking":
            points = [(x, y - r), (x + r, y), (x, y + r), (x - r, y), (x, y - r)]
            board.lines([points], fill="paper", edge=COLOUR[phase], width=3)
        else:
            board.box(x - r + 2, y - r + 2, 2 * r - 4, 2 * r - 4, fill="paper")
            board.box(x - r + 2, y - r + 2, 2 * r - 4, 2 * r - 4, edge=COLOUR[phase], width=3)

    return draw


def _point(corners: int) -> Callable[[Board, float, float], None]:
    """A mark on a line: round, or with so many corners."""

    def draw(board: Board, x: float, y: float) -> None:
        rim = _round(x, y, 7) if not corners else _corners(x, y, 8, corners)
        board.lines([rim], fill="paper", edge="ink", width=2.5)

    return draw


def _corners(x: float, y: float, r: float, count: int) -> Line:
    turn = 2 * pi / count
    rim = [(x + r * sin(n * turn), y - r * cos(n * turn)) for n in range(count)]
    return [*rim, rim[0]]


#: Name -> what draws the mark around a point.
SYMBOLS: dict[str, Callable[[Board, float, float], None]] = {
    "first content": _triangle,
    "stop reason": _diamond,
    "complete": _square,
    "broken": _cross,
    "error": _bang,
    "ping": _ring,
    "first byte": _tick,
    "whole": _cap,
    "never stopped": _torn,
    "stall": _bracket,
    "median": _point(0),
    "p90": _point(4),
    "p99": _point(3),
    **{f"first {phase}": _phase_dot(phase) for phase in ("thinking", "text", "tool")},
}


def symbol(board: Board, name: str, x: float, y: float) -> None:
    """A mark around a point, by its name."""
    SYMBOLS[name](board, x, y)


def tinted(
    board: Board, x: float, y: float, words: str, colour: str, anchor: str = "start"
) -> None:
    """Words on paper of their own, so that a line behind them leaves them legible."""
    room = wide(words, BIG)
    left = x - room * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
    board.box(left - 3, y - 16, room + 6, 21, fill="paper")
    board.text(x, y, words, BIG, anchor, colour)


#: Marks that stand under their point, and how far; a key has them in the middle.
LOW = {"first byte": 10}


# --- The key --------------------------------------------------------------------------------------


class Item(NamedTuple):
    """One entry of a key: a phase's texture or a mark, and its words."""

    look: str  #: a phase, or the name of a mark
    words: str


class Key:
    """What the textures and marks of a figure mean, in as many lines as that takes."""

    LINE, SWATCH = 30, 36

    def __init__(self, items: Iterable[Item], left: float = 14) -> None:
        self.rows: list[list[tuple[float, Item]]] = [[]]
        x = left
        for item in items:
            words = fitted(CALLED.get(item.words, item.words), WIDTH - left - 60, BIG)
            room = self.SWATCH + wide(words, BIG)
            if x > left and x + room > WIDTH - 8:
                self.rows.append([])
                x = left
            self.rows[-1].append((x, Item(item.look, words)))
            x += room + 22
        self.height = self.LINE * len(self.rows) if self.rows[0] else 0

    def draw(self, board: Board, y: float) -> None:
        """Draw it with its upper edge at `y`."""
        for n, row in enumerate(self.rows):
            middle = y + n * self.LINE + self.LINE / 2
            for x, item in row:
                if item.look in COLOUR:
                    bars(board, item.look, [(x, middle - 9, 28, 18)])
                else:
                    symbol(board, item.look, x + 14, middle - LOW.get(item.look, 0))
                board.text(x + self.SWATCH, middle + 6, item.words, BIG)
