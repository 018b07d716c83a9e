"""What the explorer finds, drawn: all that can be reached, and a way that goes wrong.

In the graph, states are one where the row says the same and the effect has happened, or is on
record, or neither; below each other stand the states of the row, on the right those in which the
effect has happened. In the timeline of a violation time goes down, and whoever acts has a lane.

Read next: `explorer.py`, where the data comes from; `figures/drawing.py`, for the paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from streamlab.analysis.figures.drawing import Board, Drawing, wide
from streamlab.analysis.figures.machine_layout import Edge, in_order, least_crossing
from streamlab.consumer.attempt import TABLE, TERMINAL, State
from streamlab.study.explorer import DEPTH, NAMES, Reached, Violation, reach
from streamlab.study.ledger_rules import Moment
from streamlab.study.search import times

__all__ = ["Arrow", "Graph", "Node", "draw", "graph", "timeline"]

#: What is written at an arrow, for the actions of every process alike.
WORDS = {
    "complete": "final marker",
    "error": "error event",
    "end": "transport ends",
    "pass": "gates pass",
    "hold": "gates hold",
    "fail": "gates fail",
    "cancel": "cancel",
    "commit": "commit",
    "arrive": "request arrives",
    "settle": "outcome written",
    "recover": "recovery begins",
    "recovered": "recovery ends",
}


class Node(NamedTuple):
    """States that are one in the picture."""

    row: State
    done: bool  #: the effect has happened
    record: bool

    @property
    def effect(self) -> str:
        """What became of the effect."""
        if not self.done:
            return "not done"
        return "done, on record" if self.record else "done, no record"


class Arrow(NamedTuple):
    """A way from one to another, by any of some actions."""

    start: Node
    end: Node
    words: tuple[str, ...]


class Graph(NamedTuple):
    """All that can be reached, merged."""

    nodes: dict[Node, int]  #: of how many states each is made
    arrows: list[Arrow]
    depth: int


def merged(moment: Moment) -> Node:
    """The node of a moment."""
    return Node(moment.row, moment.effects > 0, moment.record)


def graph(depth: int = DEPTH, found: Reached | None = None) -> Graph:
    """Merge what can be reached with every guard on."""
    found = found or reach(depth)
    nodes = [merged(moment) for moment in found.moments]
    ways: dict[tuple[Node, Node], dict[str, None]] = {}
    for start, leaving in zip(nodes, found.ways, strict=False):
        for action, after in leaving:
            if nodes[after] != start:
                name = NAMES[action].partition(" ")[0]
                ways.setdefault((start, nodes[after]), {})[WORDS.get(name, name)] = None
    arrows = [Arrow(start, end, tuple(words)) for (start, end), words in ways.items()]
    return Graph(dict(Counter(nodes)), arrows, depth)


# --- The graph on paper ---------------------------------------------------------------------------

SIZE, SMALL, LINE = 12, 11, 15
SPINE, RIGHT, BOX, HIGH = 500, 712, 156, 54  #: the two columns, a box's width and height
NEAR, RAIL = 362, 103  #: the upright lines to the ends without an effect, from right to left
ROOM = 130  #: for the words beside an arrow


def draw(given: Graph | None = None) -> Drawing:
    """Draw the graph."""
    return _Plan(given or graph()).drawing()


class _Plan:
    """Goes down the rows once and draws each arrow where both its ends are known."""

    def __init__(self, given: Graph) -> None:
        self.graph = given
        self.upper = [state for state in in_order(TABLE) if self._of(state)]
        self.rails = self._rails()
        self.tops: dict[State, float] = {}
        self.leaves: dict[Arrow, float] = {}
        y = 14.0
        for n, state in enumerate(self.upper):
            self.tops[state] = y
            y += self._height(state) + self._gap(n)
        self.bottom = y
        self.board = Board(y + HIGH + 16)

    def drawing(self) -> Drawing:
        for arrow in sorted(self.graph.arrows, key=lambda arrow: self.leaves.get(arrow, 0)):
            self._arrow(arrow)
        for x, y in self._joints():
            self.board.dot(x, y, "dim")
        for node, many in self.graph.nodes.items():
            self._node(node, many)
        return self.board.drawing("All that can be reached", _told(self.graph))

    def _of(self, state: State) -> list[Node]:
        return [node for node in self.graph.nodes if node.row is state]

    def _rails(self) -> dict[State, float]:
        ends = [node.row for node in self.graph.nodes if node.row in TERMINAL and not node.done]
        every = [Edge(a.start.row, a.end.row, a.words) for a in self.graph.arrows if not a.end.done]
        order = least_crossing(ends, self.upper, every)
        return {state: NEAR - n * RAIL for n, state in enumerate(order)}

    def _sideways(self, state: State) -> list[Arrow]:
        """What leaves to the left, the nearest upright line lowest."""
        found = [
            arrow
            for arrow in self.graph.arrows
            if arrow.start.row is state and arrow.end.row in self.rails and not arrow.end.done
        ]
        return sorted(found, key=lambda arrow: self.rails[arrow.end.row])

    def _height(self, state: State) -> float:
        y = self.tops[state]
        for arrow in self._sideways(state):
            y += len(_lines(arrow.words)) * LINE + 6
            self.leaves[arrow] = y
        return max(HIGH, y - self.tops[state] + 8)

    def _gap(self, n: int) -> float:
        """Room for the words of what leads from one row down."""
        last = n + 1 == len(self.upper)
        down = [
            arrow
            for arrow in self.graph.arrows
            if arrow.start.row is self.upper[n] and arrow not in self.leaves
            if last or self._down(arrow)
        ]
        return 26 + LINE * max((len(_lines(arrow.words)) for arrow in down), default=1)

    def _down(self, arrow: Arrow) -> bool:
        row = self.upper.index(arrow.start.row)
        following = self.upper[row + 1] if row + 1 < len(self.upper) else None
        return arrow.end.row is following and arrow.end.done is arrow.start.done

    def _place(self, node: Node) -> tuple[float, float, float]:
        """Where a node's box begins, and how high it is."""
        if node.row not in TERMINAL:
            return RIGHT if node.done else SPINE, self.tops[node.row], self._height(node.row)
        x = RIGHT if node.done else self.rails[node.row] - _width(node) / 2
        return x, self.bottom, HIGH

    def _node(self, node: Node, many: int) -> None:
        x, y, high = self._place(node)
        width, final = _width(node), node.row in TERMINAL
        board, name = self.board, f"state-{node.row}-{node.effect.replace(', ', '-')}"
        board.box(x, y, width, high, fill="paper", edge="ink", width=1.2, id=name.replace(" ", "-"))
        if final:
            board.box(x + 3, y + 3, width - 6, high - 6, edge="ink", width=1.2)
        middle, line = x + width / 2, y + high / 2 - 10
        board.text(middle, line, node.row, SIZE, "middle", bold=node.done)
        board.text(middle, line + 15, node.effect, SMALL - 1, "middle")
        board.text(middle, line + 29, f"{many:,} states", SMALL - 1, "middle", "dim")

    def _arrow(self, arrow: Arrow) -> None:
        x, y, high = self._place(arrow.start)
        to_x, to_y, _ = self._place(arrow.end)
        middle, lines = x + BOX / 2, _lines(arrow.words)
        if arrow in self.leaves:
            self._left(arrow, x)
        elif arrow.start.row is arrow.end.row:
            self._words(x + BOX + 28, y + high / 2 - 9 - LINE * len(_lines(arrow.words, 60)),
                        _lines(arrow.words, 60), "middle")  # fmt: skip
            self.board.arrow([(x + BOX, y + high / 2), (to_x, y + high / 2)], edge="dim")
        elif self._down(arrow) or arrow.start.row is self.upper[-1]:
            self._words(middle - 10, y + high + 4, lines, "end")
            self.board.arrow([(middle, y + high), (middle, to_y)], edge="dim")
        else:  # past the rows between, on the outer side
            rail, out = x + BOX + 18, y + high - 12
            way = [
                (x + BOX, out),
                (rail, out),
                (rail, to_y + HIGH / 2),
                (to_x + BOX, to_y + HIGH / 2),
            ]
            self._words(rail - 5, y + high + 4, _lines(arrow.words, 80), "end")
            self.board.arrow(way, edge="dim")

    def _left(self, arrow: Arrow, x: float) -> None:
        rail, y = self.rails[arrow.end.row], self.leaves[arrow]
        lines = _lines(arrow.words)
        self._words(x - 8, y - 4 - LINE * len(lines), lines, "end")
        self.board.lines([[(x - 8, y), (rail + 8, y)]], edge="paper", width=7)
        self.board.arrow([(x, y), (rail, y), (rail, self.bottom)], edge="dim")

    def _joints(self) -> Iterator[tuple[float, float]]:
        """Where an arrow comes to an upright line that another one goes already."""
        seen: set[State] = set()
        for arrow, y in sorted(self.leaves.items(), key=lambda item: item[1]):
            if arrow.end.row in seen:
                yield self.rails[arrow.end.row], y
            seen.add(arrow.end.row)

    def _words(self, x: float, y: float, lines: Sequence[str], anchor: str) -> None:
        for n, line in enumerate(lines, 1):
            self.board.text(x, y + n * LINE, line, SMALL, anchor)


def _width(node: Node) -> float:
    if node.done or node.row not in TERMINAL:
        return BOX
    return max(wide(node.row, SIZE), wide("999 states", SMALL)) + 16


def _lines(words: Iterable[str], room: float = ROOM) -> list[str]:
    """Words in as many lines as they need."""
    lines = [""]
    for word in ", ".join(words).split(" "):
        if lines[-1] and wide(f"{lines[-1]} {word}", SMALL) > room:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _told(given: Graph) -> str:
    """The graph in words."""
    leaving: dict[Node, list[Arrow]] = {}
    for arrow in given.arrows:
        leaving.setdefault(arrow.start, []).append(arrow)
    said = [
        f"{start.row} ({start.effect}) leads "
        + "; ".join(f"to {a.end.row} ({a.end.effect}) by {' or '.join(a.words)}" for a in arrows)
        + "."
        for start, arrows in leaving.items()
    ]
    ends = [f"{node.row} ({node.effect})" for node in given.nodes if node not in leaving]
    many = f"{sum(given.nodes.values()):,} states are {len(given.nodes)} here"
    return "\n".join([f"{many}.", *said, f"Nothing leads out of {', '.join(ends)}."])


# --- A violation on lanes -------------------------------------------------------------------------

WORDS_AT, LANES, STATE, ROW, HEAD = 46, 304, 752, 26, 46


def timeline(violation: Violation) -> Drawing:
    """Draw a way that goes wrong: a row for each step, a lane for whoever acts."""
    lanes = list(dict.fromkeys(violation.who))
    places = {who: LANES + (n + 0.5) * _lane(lanes) for n, who in enumerate(lanes)}
    bottom = HEAD + ROW * len(violation.steps)
    board = Board(bottom + 12)
    for who, x in places.items():
        for n, line in enumerate(_lines([who], _lane(lanes) - 4)):
            board.text(x, 16 + n * LINE, line, SMALL, "middle", bold=True)
        board.lines([[(x, HEAD - 8), (x, bottom)]], edge="soft")
    board.text(STATE, 16, "the row says", SMALL, bold=True)
    points = [(places[who], HEAD + ROW * (n + 0.5)) for n, who in enumerate(violation.who)]
    board.lines([points], edge="accent", width=2)
    for n, point in enumerate(points):
        _step(board, violation, n, point)
    title = f"Without: {violation.guard}"
    return board.drawing(title, repr(violation))


def _lane(lanes: Sequence[str]) -> float:
    return (STATE - LANES - 10) / len(lanes)


def _step(board: Board, violation: Violation, n: int, at: tuple[float, float]) -> None:
    step, (x, y) = violation.steps[n], at
    wrong = n + 1 == violation.wrong
    colour = "bad" if wrong else "ink"
    board.text(WORDS_AT - 8, y + 4, f"{'✕ ' if wrong else ''}{n + 1}", SMALL, "end", colour, wrong)
    board.text(WORDS_AT, y + 4, step.says, SMALL, colour=colour, bold=wrong)
    board.dot(x, y, "bad" if wrong else "accent")
    before = _effects(violation, n - 1)
    if _effects(violation, n) > before:
        board.text(x + 8, y - 4, times(before + 1), SMALL)
    if n == 0 or step.after is not step.before or wrong:
        board.text(STATE, y + 4, step.after, SMALL, colour=colour, bold=wrong)


def _effects(violation: Violation, n: int) -> int:
    return getattr(violation.steps[n], "effects", 0) if n >= 0 else 0
