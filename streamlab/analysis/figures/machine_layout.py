"""Where the attempt's states and the ways between them lie, computed from any table.

States that something leaves stand one below the other, in the order in which an attempt can come
to them. Terminal states stand below, side by side, and each hangs on an upright line that every way
into it joins. Each way leaves its state on a line of its own, its inputs written over it, left of
every upright line; so no word can lie on another one, on a box or under a line. Which lines cross
is decided by the order of the terminal states, and the best order is searched for.

Read next: `machine.py`, which draws it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import NamedTuple

from streamlab.analysis.figures.drawing import WIDTH, wide
from streamlab.consumer.attempt import Input, State

__all__ = [
    "NAME",
    "WORD",
    "Edge",
    "Layout",
    "Place",
    "Point",
    "Table",
    "edges",
    "in_order",
    "layout",
]

Table = Mapping[State, Mapping[Input, State]]
Point = tuple[float, float]

#: Size of a state's name and of an input's, and the height of one line of inputs.
NAME, WORD, LINE = 12, 11, 15

LEFT, BOX, HIGH = 34, 164, 36  #: where the states that something leaves begin, how wide and high
WORDS = 214  #: room for an edge's inputs
UNDER = 5  #: from the words to their line
RAIL = 14  #: between the upright lines that lead to a state that something leaves
FOOT = 40  #: from the last state to the terminal ones

#: Terminal states whose every order is tried; of more the table's own order is taken.
MAX_TRIED = 7


class Edge(NamedTuple):
    """A way from one state to another, by any of some inputs."""

    start: State
    end: State
    words: tuple[str, ...]


class Place(NamedTuple):
    """A state's box."""

    x: float
    y: float
    wide: float
    high: float
    final: bool


class Layout(NamedTuple):
    """Where everything is, in pixels."""

    places: dict[State, Place]
    ways: dict[Edge, list[Point]]  #: the corners that an edge turns at, from its start to its end
    words: list[tuple[float, float, str]]  #: where each line of inputs begins, and what it says
    height: float


def edges(table: Table) -> list[Edge]:
    """The table as edges, all inputs that join the same two states in one."""
    found: dict[tuple[State, State], list[str]] = {}
    for start, row in table.items():
        for given, end in row.items():
            found.setdefault((start, end), []).append(given.value)
    return [Edge(start, end, tuple(words)) for (start, end), words in found.items()]


def layout(table: Table) -> Layout:
    """Compute every place."""
    return _Planner(table).layout()


def in_order(table: Table) -> list[State]:
    """The states that something leaves, none before one that leads to it, circles aside."""
    found: list[State] = []
    done: list[State] = []
    seen: set[State] = set()

    def visit(state: State) -> None:
        if state in seen or not table.get(state):
            return
        seen.add(state)
        for following in reversed(list(table[state].values())):
            visit(following)
        done.append(state)

    for state in table:  # the first one leads to all the others, unless a table is odd
        visit(state)
        found += reversed(done)
        done.clear()
    return found


def least_crossing(
    lower: list[State], upper: Sequence[State], every: Sequence[Edge]
) -> list[State]:
    """The order of the terminal states in which the fewest lines cross.

    A way crosses the upright line of each state further left that an earlier row leads to.
    """
    rows = {state: [upper.index(e.start) for e in every if e.end is state] for state in lower}

    def crossings(order: Iterable[State]) -> int:
        placed = tuple(order)
        return sum(
            min(rows[left], default=row) < row
            for n, state in enumerate(placed)
            for row in rows[state]
            for left in placed[:n]
        )

    return list(min(permutations(lower), key=crossings)) if len(lower) <= MAX_TRIED else lower


class _Planner:
    """Goes down the states once, then leads every edge to where it ends."""

    def __init__(self, table: Table) -> None:
        self.every, self.upper = edges(table), in_order(table)
        lower = [state for state in table if not table[state]]
        self.lower = least_crossing(lower, self.upper, self.every)
        self.places: dict[State, Place] = {}
        self.ways: dict[Edge, list[Point]] = {}
        self.words: list[tuple[float, float, str]] = []
        self.leaves: dict[Edge, float] = {}  #: the height at which an edge leaves its state
        self.enters: dict[Edge, float] = {}  #: and enters one that something leaves
        neighbours = set(zip(self.upper, self.upper[1:], strict=False))
        self.down = {e.start: e for e in self.every if (e.start, e.end) in neighbours}
        self.columns: dict[State, float] = {}  #: the middle of a terminal state
        self.rails = self._rails()

    def _rails(self) -> dict[Edge, float]:
        """The upright line of each edge: those to the upper states first, then one a terminal."""
        rails: dict[Edge, float] = {}
        x = LEFT + BOX + WORDS + 10.0
        for edge in self.every:
            up = edge.end in self.upper and edge.start is not edge.end
            if up and edge not in self.down.values():
                rails[edge] = x
                x += RAIL
        gap = (WIDTH - 8 - x - sum(map(_box, self.lower))) / max(1, len(self.lower))
        for state in self.lower:
            x += gap + _box(state)
            self.columns[state] = x - _box(state) / 2
            rails.update({e: self.columns[state] for e in self.every if e.end is state})
        return rails

    def layout(self) -> Layout:
        y = 16.0
        for state in self.upper:
            y = self._place(state, y)
            y = self._place_down(self.down.get(state), y)
        top = y + FOOT
        for edge, x in self.rails.items():
            out = [(LEFT + BOX, self.leaves[edge]), (x, self.leaves[edge])]
            back = self.enters.get(edge)
            self.ways[edge] = [*out, *([(x, top)] if back is None else self._into(x, back))]
        for state, x in self.columns.items():
            width = _box(state)
            self.places[state] = Place(x - width / 2, top, width, HIGH + 4, True)
        return Layout(self.places, self.ways, self.words, top + HIGH + 20)

    def _into(self, x: float, y: float) -> list[Point]:
        return [(x, y), (LEFT + BOX, y)]

    def _place(self, state: State, top: float) -> float:
        """Place a state's box and the lines to its right; gives the box's lower edge."""
        right, y = LEFT + BOX, top
        for edge in self.every:
            if edge.start is state is edge.end:
                y = self._write(edge.words, right + 36, y + 3)
                out, back = y - 9, y + 3
                loop: list[Point] = [
                    (right, out),
                    (right + 26, out),
                    (right + 26, back),
                    (right, back),
                ]
                self.ways[edge] = loop
                y += 6
        for edge in self.rails:
            if edge.end is state:
                y += LINE
                self.enters[edge] = y
        leaving = [edge for edge in self.rails if edge.start is state]
        for edge in sorted(leaving, key=lambda edge: -self.rails[edge]):  # the nearest lowest
            y = self._write(edge.words, right + 12, y) + UNDER
            self.leaves[edge] = y
        high = max(HIGH, y - top + 10)
        self.places[state] = Place(LEFT, top, BOX, high, False)
        return top + high

    def _place_down(self, edge: Edge | None, y: float) -> float:
        """Lead an edge to the next state below; gives that state's upper edge."""
        if edge is None:
            return y + LINE
        x = LEFT + BOX / 2
        end = self._write(edge.words, x + 10, y + 4) + 14
        self.ways[edge] = [(x, y), (x, end)]
        return end

    def _write(self, words: Sequence[str], x: float, y: float) -> float:
        """Write inputs in as many lines as they need; gives where the last one stands."""
        lines = [""]
        for n, word in enumerate(words):
            word += "," if n + 1 < len(words) else ""
            if lines[-1] and wide(f"{lines[-1]} {word}", WORD) > WORDS - 40:
                lines.append("")
            lines[-1] = f"{lines[-1]} {word}".strip()
        for line in lines:
            y += LINE
            self.words.append((x, y, line))
        return y


def _box(state: State) -> float:
    """The width of a terminal state's box."""
    return wide(state, NAME) + 22
