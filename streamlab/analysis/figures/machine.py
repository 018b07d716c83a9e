"""The attempt's machine, drawn from its table: another row gives another picture.

A terminal state has a double border, a line that joins another one a spot, and a line that only
crosses one goes over it on a bridge. A path through the machine is drawn heavier.

Read next: `consumer/attempt.py`, whose table this is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from streamlab.analysis.figures.drawing import Board, Drawing
from streamlab.analysis.figures.machine_layout import (
    NAME,
    WORD,
    Edge,
    Layout,
    Place,
    Point,
    Table,
    edges,
    in_order,
    layout,
)
from streamlab.analysis.trace import Trace
from streamlab.consumer.attempt import TABLE, State
from streamlab.errors import UsageError

__all__ = ["machine"]

TITLE = "The attempt's states, and what leads from one to another"


def machine(
    highlight: Iterable[State] | Trace | None = None, table: Table | None = None
) -> Drawing:
    """Draw the machine; the states of a path, or of a trace, are drawn heavier."""
    rows = TABLE if table is None else table
    path = _path(highlight, rows)
    plan, taken = layout(rows), set(pairwise(path))
    board = Board(plan.height)
    heavier = [edge for edge in plan.ways if (edge.start, edge.end) in taken]
    lighter = [edge for edge in plan.ways if edge not in heavier]
    for edge in [*sorted(lighter, key=lambda edge: plan.ways[edge][0][1]), *heavier]:
        _draw_edge(board, edge, plan.ways[edge], edge in heavier)
    for x, y in _joints(plan):
        board.dot(x, y, "dim")
    for x, y, words in plan.words:
        board.text(x, y, words, WORD)
    for state, place in plan.places.items():
        _draw_state(board, state, place, state in path)
    begin = plan.places[next(iter(rows))]
    middle = begin.y + begin.high / 2
    board.arrow([(begin.x - 24, middle), (begin.x, middle)], edge="dim")
    return board.drawing(TITLE, _told(rows, path))


def _path(highlight: Iterable[State] | Trace | None, table: Table) -> list[State]:
    """The states of a path, each once where it stays for some steps."""
    if isinstance(highlight, Trace):
        first = highlight.steps[0].attempt_before.state
        highlight = [first, *(step.attempt.state for step in highlight.steps)]
    path: list[State] = []
    for state in highlight or ():
        if state not in table:
            raise UsageError(f"{state!r} is none of the states: {', '.join(table)}")
        if not path or path[-1] != state:
            path.append(State(state))
    return path


def _draw_edge(board: Board, edge: Edge, way: Sequence[Point], heavy: bool) -> None:
    (x, y), (to_x, to_y) = way[:2]
    if y == to_y and len(way) == 3:  # a bridge over the upright lines that it crosses
        board.lines([[(x + 8, y), (to_x - 8, y)]], edge="paper", width=7)
    style = {"edge": "accent", "width": 3.5} if heavy else {"edge": "dim"}
    board.arrow(way, id=f"edge-{edge.start}-{edge.end}", **style)


def _joints(plan: Layout) -> Iterator[Point]:
    """Where a way comes to a line that another one goes already."""
    corners: dict[State, list[Point]] = {}
    for edge, way in plan.ways.items():
        if plan.places[edge.end].final:
            corners.setdefault(edge.end, []).append(way[1])
    for points in corners.values():
        first = min(y for _, y in points)
        yield from ((x, y) for x, y in points if y > first)


def _draw_state(board: Board, state: State, place: Place, heavy: bool) -> None:
    x, y, width, high, final = place
    edge, line = ("accent", 3.0) if heavy else ("ink", 1.2)
    board.box(x, y, width, high, fill="paper", edge=edge, width=line, id=f"state-{state}")
    if final:
        board.box(x + 4, y + 4, width - 8, high - 8, edge=edge, width=1.2)
    board.text(x + width / 2, y + high / 2 + 4, state, NAME, "middle", bold=heavy)


# --- In words -------------------------------------------------------------------------------------


def _told(table: Table, path: Sequence[State]) -> str:
    every = edges(table)
    said = [_told_state(state, every) for state in in_order(table)]
    ends = [state for state in table if not table[state]]
    said.append(f"Nothing leads out of {', '.join(ends)}.")
    if path:
        said.append(f"Drawn heavier: {' → '.join(path)}.")
    return "\n".join(said)


def _told_state(state: State, every: Sequence[Edge]) -> str:
    leaving = [edge for edge in every if edge.start is state]
    ways = [f"to {e.end} by {' or '.join(e.words)}" for e in leaving if e.end is not state]
    stays = [f"and stays by {' or '.join(e.words)}" for e in leaving if e.end is state]
    return f"{state} leads {'; '.join(ways + stays)}."
