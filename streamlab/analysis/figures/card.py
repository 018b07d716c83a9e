"""A heat map of verdicts: rows by columns, in each square a sign, a word, and what was seen.

It knows nothing of faults or of clients. A square's kind decides its sign, its frame and its fill;
the sign and the word say the same without the colour. The caption is counted from the squares.

Read next: `drawing.py`, the paper; `study/report_card.py`, whose table this draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from streamlab.analysis.figures.drawing import WIDTH, Board, Drawing, fitted, wide
from streamlab.analysis.plain import visible
from streamlab.errors import UsageError

__all__ = ["KINDS", "Column", "Kind", "Square", "heat_map"]


class Kind(NamedTuple):
    """How a verdict looks."""

    sign: str
    fill: str
    edge: str
    ink: str
    says: str  #: for the legend


KINDS = {
    "right": Kind("=", "paper", "dim", "ink", "as it was sent"),
    "raised": Kind("!", "soft", "accent", "accent", "an exception"),
    "silent": Kind("~", "paper", "bad", "bad", "no exception, and not what was sent"),
    "danger": Kind("X", "bad", "bad", "paper", "no exception, and a wrong call to act on"),
    "n/a": Kind("-", "soft", "", "dim", "no such thing there"),
}


class Square(NamedTuple):
    """One verdict."""

    kind: str
    word: str
    saw: str = ""


class Column(NamedTuple):
    """What stands over a column."""

    name: str
    below: str = ""


#: Pixels: of a row, of the column of names at most, and the sizes of the words.
ROW, NAMES, SIZE, SMALL, HEAD = 30, 170, 10, 8, 44


def heat_map(
    title: str,
    columns: Sequence[Column],
    rows: Sequence[str],
    squares: Mapping[tuple[str, str], Square],
    note: str = "",
) -> Drawing:
    """Draw `squares`, by the names of row and column. Raises `UsageError` where there is none."""
    if not (columns and rows):
        raise UsageError("a heat map needs at least one row and one column")
    left = min(NAMES, max(wide(visible(row), SIZE) for row in rows) + 14)
    room = (WIDTH - left - 8) / max(len(columns), 3)
    board = Board(HEAD + ROW * len(rows) + 20 + 15 * len(KINDS))
    for n, column in enumerate(columns):
        x = left + n * room
        board.text(x + 3, 18, fitted(column.name, room - 6, SIZE), SIZE, bold=True)
        board.text(x + 3, 34, fitted(column.below, room - 6, SMALL), SMALL, colour="dim")
    for n, row in enumerate(rows):
        y = HEAD + n * ROW
        board.text(6, y + ROW / 2 + 3, fitted(row, left - 10, SIZE), SIZE)
        for m, column in enumerate(columns):
            square = squares.get((row, column.name), Square("n/a", "n/a"))
            _draw(board, square, left + m * room, y, room)
    _legend(board, HEAD + ROW * len(rows) + 20)
    return board.drawing(title, _caption(columns, rows, squares, note))


def _draw(board: Board, square: Square, x: float, y: float, room: float) -> None:
    kind = KINDS[square.kind]
    board.box(x + 1, y + 1, room - 2, ROW - 2, fill=kind.fill, edge=kind.edge)
    words = fitted(f"{kind.sign} {square.word}", room - 8, SIZE)
    board.text(x + 4, y + 13, words, SIZE, colour=kind.ink)
    board.text(x + 4, y + 24, fitted(square.saw, room - 8, SMALL), SMALL, colour=kind.ink)


def _legend(board: Board, y: float) -> None:
    for n, (name, kind) in enumerate(KINDS.items()):
        board.box(8, y + 15 * n, 12, 12, fill=kind.fill, edge=kind.edge)
        board.text(11, y + 15 * n + 10, kind.sign, SIZE, colour=kind.ink)
        board.text(26, y + 15 * n + 10, f"{name}: {kind.says}", SIZE)


def _caption(
    columns: Sequence[Column],
    rows: Sequence[str],
    squares: Mapping[tuple[str, str], Square],
    note: str,
) -> str:
    """Each column in words: how often which verdict, and in which rows it was a danger."""
    lines = []
    for column in columns:
        found = {row: squares.get((row, column.name), Square("n/a", "n/a")) for row in rows}
        kinds = [square.kind for square in found.values()]
        counts = ", ".join(f"{name} {kinds.count(name)}" for name in KINDS if name in kinds)
        wrong = [row for row, square in found.items() if square.kind == "danger"]
        below = f" ({column.below})" if column.below else ""
        lines.append(f"{column.name}{below}: {counts}{_listed(wrong)}.")
    return "\n".join([*lines, note] if note else lines)


def _listed(wrong: Sequence[str]) -> str:
    return f"; a wrong call to act on in {', '.join(wrong)}" if wrong else ""
