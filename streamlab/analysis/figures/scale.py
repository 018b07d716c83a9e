"""The axes of the figures of a report: seconds, bytes, or seconds by powers of ten.

Read next: `stream.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, floor, inf, log10

from streamlab.analysis.figures.drawing import Board, wide
from streamlab.analysis.figures.phase_look import BIG
from streamlab.analysis.lanes import ticks

__all__ = ["HEIGHT", "LogScale", "Scale", "joined"]

#: Pixels under an axis: its numbers, and what they are.
HEIGHT = 60


class Scale:
    """A line from 0 to `extent`, between two edges of a drawing."""

    def __init__(self, extent: float, left: float, right: float, by_time: bool = True) -> None:
        self.extent = max(extent, 1e-3 if by_time else 1.0)
        self.left, self.right, self.by_time = left, right, by_time

    def x(self, value: float) -> float:
        """The place of a value."""
        share = min(max(value / self.extent, 0.0), 1.0)
        return self.left + share * (self.right - self.left)

    def draw(self, board: Board, y: float, words: str = "", start: float = 0.0) -> None:
        """The line, round numbers (counted from `start`) and what they are."""
        board.lines([[(self.left, y), (self.right, y)]], edge="dim", width=1.5)
        free = 0.0
        for value, label in ticks(self.extent, 6, self.by_time):
            x, half = self.x(value), wide(label, BIG) / 2
            board.lines([[(x, y), (x, y + 6)]], edge="dim", width=1.5)
            if x - half >= free and x + half <= board.size[0]:
                board.text(x, y + 26, label, BIG, "middle")
                free = x + half + 14
        unit = "seconds since the request" if self.by_time else "bytes of the stream (no times)"
        board.text((self.left + self.right) / 2, y + 50, words or unit, BIG, "middle")


class LogScale:
    """Seconds by powers of ten, from the one at or under `least` to the one at or over `most`."""

    def __init__(self, least: float, most: float, left: float, right: float) -> None:
        self.low = floor(log10(least) + 1e-9)
        self.high = max(ceil(log10(max(most, least)) - 1e-9), self.low + 1)
        self.left, self.right = left, right

    def x(self, value: float) -> float:
        """The place of a value; what is less than the least lies on the left edge."""
        at = log10(value) if value > 0 else self.low
        share = (at - self.low) / (self.high - self.low)
        return self.left + min(max(share, 0.0), 1.0) * (self.right - self.left)

    def draw(self, board: Board, top: float, y: float, words: str) -> None:
        """The line at `y`, every power with an upright from `top`, and what they are."""
        board.lines([[(self.left, y), (self.right, y)]], edge="dim", width=1.5)
        free = 0.0
        for power in range(self.low, self.high + 1):
            x, label = self.x(10.0**power), _power(power, power == self.low)
            half = wide(label, BIG) / 2
            board.lines([[(x, top), (x, y + 6)]], edge="dim", width=0.5)
            if x - half >= free and x + half <= board.size[0]:
                board.text(x, y + 26, label, BIG, "middle")
                free = x + half + 14
        board.text((self.left + self.right) / 2, y + 50, words, BIG, "middle")


def joined(edges: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Stretches that touch on paper, as one; they come by their left edges."""
    start = stop = -inf
    for a, b in edges:
        if a > stop + 1:
            if stop > -inf:
                yield start, stop
            start = a
        stop = max(stop, b)
    if stop > -inf:
        yield start, stop


def _power(power: int, least: bool) -> str:
    """A power of ten of seconds; the least one holds all that is smaller."""
    value = f"{10.0 ** (power + 3):g} ms" if power < 0 else f"{10.0**power:g} s"
    return f"≤{value}" if least else value
