"""The ladder of firsts: request, first byte, first thinking, first text, first tool call, end.

One line a stream, on one axis, the one whose first content came soonest on top. A recording without
times is left out, and said to be.

Read next: `clumps.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

from streamlab.analysis.figures.drawing import WIDTH, Board, Drawing, fitted
from streamlab.analysis.figures.flow import Flow, flows_of, timed
from streamlab.analysis.figures.phase_look import BIG, Item, Key, symbol
from streamlab.analysis.figures.scale import HEIGHT, Scale
from streamlab.analysis.given import Many
from streamlab.analysis.plain import clipped, counted, seconds

__all__ = ["first_ladder", "rungs"]

WHAT = "first_ladder"

#: Streams that can be named in one figure; `aligned` takes hundreds.
MAX_STREAMS = 30

NAMES, RIGHT, TOP, ROW, LAST = 240, WIDTH - 110, 36, 34, 90


class Rung(NamedTuple):
    """One first of a stream."""

    mark: str  #: its name, which is also that of its mark
    at: float  #: seconds since the request


def first_ladder(*given: Many) -> Drawing:
    """Draw when the firsts of each stream came."""
    flows, left_out = timed(flows_of(given, MAX_STREAMS, f"{WHAT} (see also aligned)"), WHAT)
    flows.sort(key=lambda flow: (flow.metrics.ttfc_s is None, flow.metrics.ttfc_s or flow.end))
    ladders = [(flow, list(rungs(flow))) for flow in flows]
    scale = Scale(max(flow.end for flow in flows), NAMES, RIGHT)
    marks = {rung.mark for _, ladder in ladders for rung in ladder}
    key = Key(Item(mark, WORDS.get(mark, mark)) for mark in ORDER if mark in marks)
    bottom = TOP + ROW * len(flows) + 6
    board = Board(bottom + HEIGHT + key.height + 8)
    board.text(WIDTH - 14, 22, "first content", BIG, "end")
    for n, (flow, ladder) in enumerate(ladders):
        _draw(board, flow, ladder, scale, TOP + n * ROW + ROW / 2)
    scale.draw(board, bottom)
    key.draw(board, bottom + HEIGHT)
    return board.drawing("When the firsts of each stream came", _told(ladders, left_out))


#: The marks, in the order of the key.
ORDER = (
    "first byte",
    "first thinking",
    "first text",
    "first tool",
    "whole",
    "broken",
)

WORDS = {"whole": "complete", "broken": "not complete", "first tool": "first tool call"}


def rungs(flow: Flow) -> Iterator[Rung]:
    """The firsts of one stream, in the order of the key, and its end."""
    metrics, completed = flow.metrics, flow.mark("marker")
    firsts = {
        "first byte": flow.first_byte,
        "first thinking": metrics.time_to_first_thinking_s,
        "first text": metrics.ttft_s,
        "first tool": metrics.time_to_first_tool_s,
        "whole": (completed or flow.end) if flow.outcome.complete else None,
        "broken": None if flow.outcome.complete else flow.end,
    }
    for mark in ORDER:
        at = firsts[mark]
        if at is not None:
            yield Rung(mark, at)


def _draw(board: Board, flow: Flow, ladder: Sequence[Rung], scale: Scale, y: float) -> None:
    name = flow.name.replace(".stream.jsonl", "")  # of many names, what differs is in front of it
    board.text(NAMES - 14, y + 6, fitted(name, NAMES - 24, BIG), BIG, "end")
    first = flow.metrics.ttfc_s
    start, end = scale.x(0), scale.x(flow.end)
    begun = end if first is None else scale.x(first)
    board.lines([[(start, y), (begun, y)]], edge="dim", width=2, dash=(2, 4))
    board.lines([[(begun, y), (end, y)]], edge="dim", width=3)
    for rung in reversed(ladder):  # what came first on top
        symbol(board, rung.mark, scale.x(rung.at), y)
    board.text(WIDTH - 14, y + 6, "none" if first is None else seconds(first), BIG, "end")


def _told(ladders: Sequence[tuple[Flow, list[Rung]]], left_out: str) -> str:
    lines = []
    for flow, ladder in ladders:
        parts = [f"{WORDS.get(r.mark, r.mark)} {seconds(r.at)}" for r in ladder]
        lines.append(f"{clipped(flow.name, 60)}: {', '.join(parts)}.")
    known = sorted(flow.metrics.ttfc_s or inf for flow, _ in ladders)
    if len(ladders) > 1 and known[0] < inf:
        slowest = max(value for value in known if value < inf)
        spread = f"First content after {seconds(known[0])} to {seconds(slowest)}"
        lines.insert(0, f"{counted(len(ladders), 'stream')}. {spread}.")
    return "\n".join([*lines, left_out] if left_out else lines)
