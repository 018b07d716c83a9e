"""Two streams: their timelines above each other on one axis, and their timings.

Where one of them has no times, both are drawn over their bytes; a timing that is not known has a
dash, and no difference.

Read next: `tables.py`, for more than two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from streamlab.analysis.figures.drawing import WIDTH, Board, Drawing, fitted
from streamlab.analysis.figures.flow import Flow, flow_of
from streamlab.analysis.figures.phase_look import BIG, Item, Key
from streamlab.analysis.figures.scale import HEIGHT, Scale
from streamlab.analysis.figures.stream import LEFT, RIGHT, Strip
from streamlab.analysis.given import Given
from streamlab.analysis.plain import clipped, counted, seconds

__all__ = ["compare"]

LINE = 30

#: The right edges of the columns of the table.
EDGES = (440.0, 664.0, WIDTH - 14.0)

NONE = "–"  # noqa: RUF001 (an en dash is meant)


class Row(NamedTuple):
    """One line of the table."""

    words: str
    a: str
    b: str
    difference: str


def _metric(name: str, part: str = "") -> Callable[[Flow], Any]:
    def value(flow: Flow) -> Any:
        found = getattr(flow.outcome.metrics, name) if flow.timed else None
        return getattr(found, part) if part and found is not None else found

    return value


def _longest(flow: Flow) -> Any:
    return max(flow.metrics.stalls.lasted_s, default=None) if flow.timed else None


def _rate(value: float) -> str:
    return f"{value:.1f} tok/s"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


#: What is compared: its words, its value, and how one is written.
COMPARED: tuple[tuple[str, Callable[[Flow], Any], Callable[[float], str]], ...] = (
    ("first content", _metric("ttfc_s"), seconds),
    ("first text", _metric("ttft_s"), seconds),
    ("last content", _metric("e2e_s"), seconds),
    ("gap, median", _metric("icl_s", "median"), seconds),
    ("gap, p99", _metric("icl_s", "p99"), seconds),
    ("stalls", _metric("stalls", "count"), _whole),
    ("longest stall", _longest, seconds),
    ("output tokens", lambda flow: flow.outcome.turn.facts.tokens.output, _whole),
    ("output rate", _metric("output_tokens_per_s"), _rate),
    ("frames", lambda flow: flow.outcome.frames, _whole),
)


def compare(a: Given, b: Given) -> Drawing:
    """Draw two streams on one axis, and what differs between them."""
    flows = [flow_of(a, unnamed=""), flow_of(b, unnamed="")]
    for letter, flow in zip("AB", flows, strict=True):
        flow.name = f"{letter} {flow.name}".strip()
    if not all(flow.timed for flow in flows):
        for flow in flows:
            flow.by_bytes = True
    scale = Scale(max(flow.end for flow in flows), LEFT, RIGHT, flows[0].by_time)
    strips = [Strip(flow, scale) for flow in flows]
    rows, same = [*rows_of(*flows)], _same(*flows)
    items = [item for strip in strips for item in (*strip.key(), *_marks(strip))]
    key = Key(dict.fromkeys(items))
    axis = sum(strip.height for strip in strips)
    table = axis + HEIGHT + key.height + 14
    board = Board(table + LINE * (len(rows) + 2) + 10)
    y = 0.0
    for strip in strips:
        strip.draw(board, y)
        y += strip.height
    scale.draw(board, axis)
    key.draw(board, axis + HEIGHT)
    _table(board, rows, same, table)
    return board.drawing("Two streams compared", _told(flows, rows, same))


def _marks(strip: Strip) -> list[Item]:
    names = {"broken": "not complete"}
    return [Item(mark.symbol, names.get(mark.symbol, mark.symbol)) for mark in strip.marks]


def rows_of(a: Flow, b: Flow) -> list[Row]:
    """The table: the two states, then every timing that one of them has."""
    states = (a.outcome.state.value, b.outcome.state.value)
    rows = [Row("state", *states, "same" if states[0] == states[1] else "")]
    for words, value, write in COMPARED:
        first, second = value(a), value(b)
        if first is None and second is None:
            continue
        one, other = (NONE if found is None else write(found) for found in (first, second))
        rows.append(Row(words, one, other, _difference(first, second, write)))
    return rows


def _difference(a: Any, b: Any, write: Callable[[float], str]) -> str:
    if a is None or b is None:
        return NONE
    change = b - a
    shown = write(abs(change))
    if shown == write(0.0):
        return "same"
    return f"{'+' if change > 0 else '−'}{shown}"  # noqa: RUF001 (a minus sign is meant)


def _table(board: Board, rows: Sequence[Row], same: str, y: float) -> None:
    head = y + 20
    for x, words in zip(EDGES, ("A", "B", "B - A"), strict=True):
        board.text(x, head, words, BIG, "end", bold=True)
    board.lines([[(14, head + 8), (WIDTH - 14, head + 8)]], edge="dim", width=1.5)
    for n, row in enumerate(rows, 1):
        at = head + n * LINE
        board.text(14, at, row.words, BIG)
        for x, cell in zip(EDGES, (row.a, row.b, row.difference), strict=True):
            board.text(x, at, fitted(cell, 210, BIG), BIG, "end")
    board.text(14, head + LINE * (len(rows) + 1), same, BIG)


def _same(a: Flow, b: Flow) -> str:
    """Whether the two say the same, as far as that can be seen."""
    one, other = a.outcome.turn.text, b.outcome.turn.text
    if one == other:
        return "The visible text is the same." if one else "Neither has visible text."
    at = next(
        (n for n, (x, y) in enumerate(zip(one, other, strict=False)) if x != y),
        min(len(one), len(other)),
    )
    return f"The visible text differs from character {at + 1:,} on."


def _told(flows: Sequence[Flow], rows: Sequence[Row], same: str) -> str:
    named = [
        f"{clipped(flow.name, 60)} ({counted(flow.outcome.frames, 'frame')})" for flow in flows
    ]
    lines = [f"{' and '.join(named)}."]
    if not flows[0].by_time:
        lines.append("One of them has no times, so this is over their bytes.")
    for row in rows:
        change = f" ({row.difference})" if row.difference not in ("", NONE) else ""
        lines.append(f"{row.words}: {row.a} and {row.b}{change}.")
    return "\n".join([*lines, same])
