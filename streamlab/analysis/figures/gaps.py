"""How the gaps between content events are spread: the share of gaps that are no longer than a time.

One line a stream on an axis by powers of ten, with the median, p90 and p99 of `metrics.py` on it.
Gaps need times: a recording without any is left out, and said to be.

Read next: `ladder.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import NamedTuple

from streamlab.analysis.figures.drawing import WIDTH, Board, Drawing, fitted, wide
from streamlab.analysis.figures.flow import Flow, flows_of, timed
from streamlab.analysis.figures.phase_look import BIG, symbol, tinted
from streamlab.analysis.figures.scale import HEIGHT, LogScale
from streamlab.analysis.given import Many
from streamlab.analysis.meter import DIGITS
from streamlab.analysis.metrics import STALL_S, Spread
from streamlab.analysis.plain import clipped, counted, seconds
from streamlab.errors import UsageError

__all__ = ["gap_distribution", "gaps_of"]

WHAT = "gap_distribution"

#: Streams in one figure: beyond that no two lines can be told apart.
MAX_STREAMS = 6

#: The least gap that is told from a smaller one: events of one read have none at all.
LEAST_S = 0.001

LEFT, RIGHT, TOP, HIGH, LINE = 90, WIDTH - 44, 36, 270, 30

#: The lines: a colour and a dash each, so that they differ in black and white.
STYLES: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("accent", ()),
    ("tool", (9, 4)),
    ("thinking", (2, 3)),
    ("good", (12, 3, 2, 3)),
    ("ink", (5, 2)),
    ("bad", (1, 5)),
)

#: The percentiles that are marked, each by a mark of its own, and the edges of their columns.
PARTS = (("median", 0.5, 560.0), ("p90", 0.9, 668.0), ("p99", 0.99, 776.0))
COUNT_AT, MAX_AT = 452.0, WIDTH - 14.0


class Curve(NamedTuple):
    """One stream's gaps."""

    letter: str
    name: str
    gaps: list[float]  #: in order, of those events that are kept
    spread: Spread  #: of all of them


def gap_distribution(*given: Many) -> Drawing:
    """Draw how the gaps of one stream, or of up to six, are spread."""
    flows, left_out = timed(flows_of(given, MAX_STREAMS, WHAT), WHAT)
    curves = [curve for n, flow in enumerate(flows) for curve in _curves(flow, "ABCDEF"[n])]
    if not curves:
        raise UsageError(f"{WHAT} needs gaps, and no stream here has two content events")
    most = max(curve.spread.max for curve in curves)
    scale = LogScale(LEAST_S, most, LEFT, RIGHT)
    table = TOP + HIGH + HEIGHT + 22
    board = Board(table + LINE * (len(curves) + 1))
    _frame(board, scale)
    for n, curve in enumerate(curves):
        _draw(board, curve, scale, n)
    _table(board, curves, table)
    lost = len(flows) - len(curves)
    notes = [left_out, f"{counted(lost, 'stream')} without a gap left out." if lost else ""]
    return board.drawing("How the gaps between content events are spread", _told(curves, notes))


def gaps_of(flow: Flow) -> list[float]:
    """The gaps between successive content events, in seconds, as the meter counts them."""
    return [round(b - a, DIGITS) for a, b in pairwise(flow.t)]


def _curves(flow: Flow, letter: str) -> list[Curve]:
    spread = flow.metrics.icl_s
    found = sorted(gaps_of(flow))
    return [Curve(letter, flow.name, found, spread)] if spread and found else []


def _y(share: float) -> float:
    return TOP + HIGH * (1 - share)


def _frame(board: Board, scale: LogScale) -> None:
    for percent in (0, 25, 50, 75, 100):
        y = _y(percent / 100)
        board.lines([[(LEFT, y), (RIGHT, y)]], edge="dim", width=0.5)
        board.text(LEFT - 14, y + 6, f"{percent} %", BIG, "end")
    board.text(14, 20, "share of the gaps that are no longer", BIG)
    scale.draw(board, TOP, TOP + HIGH, "gap between two content events")
    x = scale.x(STALL_S)
    if x < RIGHT - 1:
        board.lines([[(x, TOP), (x, TOP + HIGH)]], edge="bad", width=1.5, dash=True)
        words = "stall"
        fits = x + wide(words, BIG) + 8 < RIGHT
        tinted(board, x + (6 if fits else -6), _y(0.08), words, "bad", "start" if fits else "end")


def _draw(board: Board, curve: Curve, scale: LogScale, n: int) -> None:
    colour, dash = STYLES[n]
    board.lines([_steps(curve.gaps, scale)], edge=colour, width=3, dash=dash)
    at = 0.2 + 0.13 * n  # each letter on a height of its own
    gap = curve.gaps[min(int(at * len(curve.gaps)), len(curve.gaps) - 1)]
    tinted(board, scale.x(gap) + 10, _y(at) + 6, curve.letter, colour)
    for part, share, _ in PARTS:
        symbol(board, part, scale.x(getattr(curve.spread, part)), _y(share))


def _steps(gaps: list[float], scale: LogScale) -> list[tuple[float, float]]:
    """The line, with two corners a pixel: from the share that lies on the left edge to all."""
    points = [(scale.left, _y(0))]
    places = [scale.x(gap) for gap in gaps]
    for x in sorted({round(place * 2) / 2 for place in places}):
        share = bisect_right(places, x + 0.25) / len(places)
        points += [(x, points[-1][1]), (x, _y(share))]
    return [*points, (scale.right, _y(1))]


def _table(board: Board, curves: list[Curve], y: float) -> None:
    head = y + 20
    board.text(COUNT_AT, head, "gaps", BIG, "end")
    board.text(MAX_AT, head, "longest", BIG, "end")
    for part, _, x in PARTS:
        board.text(x, head, part, BIG, "end")
        symbol(board, part, x - wide(part, BIG) - 12, head - 6)
    for n, curve in enumerate(curves):
        row = head + LINE * (n + 1)
        colour, dash = STYLES[n]
        board.lines([[(14, row - 6), (58, row - 6)]], edge=colour, width=3, dash=dash)
        board.text(66, row, fitted(f"{curve.letter} {curve.name}", 310, BIG), BIG)
        board.text(COUNT_AT, row, f"{_count(curve):,}", BIG, "end")
        for part, _, x in PARTS:
            board.text(x, row, seconds(getattr(curve.spread, part)), BIG, "end")
        board.text(MAX_AT, row, seconds(curve.spread.max), BIG, "end")


def _count(curve: Curve) -> int:
    return len(curve.gaps)


def _told(curves: list[Curve], notes: list[str]) -> str:
    lines = []
    for curve in curves:
        spread = curve.spread
        parts = [f"{part} {seconds(getattr(spread, part))}" for part, _, _ in PARTS]
        parts.append(f"longest {seconds(spread.max)}")
        name = clipped(curve.name, 60)
        lines.append(f"{curve.letter} {name}: {counted(_count(curve), 'gap')}, {', '.join(parts)}.")
    return "\n".join([*lines, *filter(None, notes)])
