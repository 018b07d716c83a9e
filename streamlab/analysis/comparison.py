"""Two recordings side by side: where they part in meaning, and how their numbers differ.

Two answers never have the same bytes: ids differ, pieces are cut elsewhere, pings come when they
like. What they *mean* is compared: the parts in their order, what each says whatever the pieces,
the stop reason, the marker, the end. So one answer in two dialects has no difference.

Read next: `laying_out.py`, whose table `MEANS` says what counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from streamlab.analysis.inspection import Inspection
from streamlab.analysis.laying_out import Meaning, shown

__all__ = ["Difference", "compare", "first_difference"]

#: What may come in pieces.
PIECES = ("text", "thinking", "input")

#: What belongs to a part; the others belong to the answer.
OF_A_PART = (*PIECES, "begins", "name", "restated", "stops")


class Difference(NamedTuple):
    """Where two recordings part: the row in each, and what stands there."""

    rows: tuple[int, int]
    says: tuple[str, str]


class _Run(NamedTuple):
    """One meaning: of a text all its pieces, with the row of each and where in the text it ends."""

    what: str
    segment: int
    text: str
    ends: tuple[tuple[int, int], ...]  # (characters up to here, row)

    def row(self, at: int) -> int:
        """The row that says the character at `at`; the last one where it says fewer."""
        return next((row for end, row in self.ends if end > at), self.ends[-1][1])


def runs(meaning: Sequence[Meaning]) -> Iterator[_Run]:
    """Join the pieces that follow one another."""
    pieces: list[Meaning] = []
    for each in meaning:
        if pieces and (each[1:3] != pieces[0][1:3] or each.what not in PIECES):
            yield _run(pieces)
            pieces = []
        pieces.append(each)
    if pieces:
        yield _run(pieces)


def _run(pieces: list[Meaning]) -> _Run:
    ends, total = [], 0
    for piece in pieces:
        total += len(piece.text)
        ends.append((total, piece.row))
    text = "".join(piece.text for piece in pieces)
    return _Run(pieces[0].what, pieces[0].segment, text, tuple(ends))


def first_difference(a: Inspection, b: Inspection) -> Difference | None:
    """Where two recordings first differ by meaning; None where they mean the same."""
    ends = (a.rows - 1, b.rows - 1)
    one, two = list(runs(a.meaning)), list(runs(b.meaning))
    for left, right in zip(one, two, strict=False):
        if (places := _part(left, right)) is not None:
            rows = left.row(places[0]), right.row(places[1])
            return Difference(rows, (_says(left, places[0]), _says(right, places[1])))
    if len(one) == len(two):
        return None
    (row, says), (beside, said) = _next(one, len(two), ends[0]), _next(two, len(one), ends[1])
    return Difference((row, beside), (says, said))


def _next(found: list[_Run], at: int, end: int) -> tuple[int, str]:
    """What comes where the other recording has said everything."""
    return (found[at].row(0), _says(found[at], 0)) if len(found) > at else (end, "nothing more")


def _part(a: _Run, b: _Run) -> tuple[int, int] | None:
    """The character in each from which on they differ; None where they do not."""
    if a[:3] == b[:3]:
        return None
    if a[:2] != b[:2] or a.what not in PIECES:
        return 0, 0
    one, two = _places(a), _places(b)
    pairs = enumerate(zip(one, two, strict=False))
    alike = next((n for n, (x, y) in pairs if a.text[x] != b.text[y]), min(len(one), len(two)))
    if alike == len(one) == len(two):
        return None
    at, beside = (places[alike] if alike < len(places) else None for places in (one, two))
    return len(a.text) if at is None else at, len(b.text) if beside is None else beside


def _places(run: _Run) -> Sequence[int]:
    """Which characters count: all, but of a tool's input not the spaces between JSON's tokens."""
    if run.what != "input":
        return range(len(run.text))
    places, quoted, escaped = [], False, False
    for place, char in enumerate(run.text):
        if quoted or not char.isspace():
            places.append(place)
        if char == '"' and not escaped:
            quoted = not quoted
        escaped = char == "\\" and not escaped
    return places


def _says(run: _Run, at: int) -> str:
    """What a run says from a character on."""
    part = f" of part {run.segment + 1}" if run.what in OF_A_PART and run.segment >= 0 else ""
    if run.what in PIECES:
        before, rest = run.text[max(0, at - 30) : at], run.text[at:]
        if not rest:
            return f"{run.what}{part} ends after {shown(before, 40)!r}"
        lead = f" after {before!r}" if before else ""
        return f"{run.what}{part}: {shown(rest, 60)!r}{lead}"
    return f"{run.what}{part}{f': {shown(run.text, 60)}' if run.text else ''}"


def compare(a: Inspection, b: Inspection) -> dict[str, Any]:
    """What a view is given: `first` (rows and words, or None), and `measures`, a row a number.

    A row is (name, unit, of `a`, of `b`, `b` - `a`); what one of them lacks is None.
    """
    difference = first_difference(a, b)
    of_b = {name: value for name, _, value in b.measures}
    of_a = {name for name, *_ in a.measures}
    rows = [[name, unit, value, of_b.get(name)] for name, unit, value in a.measures]
    rows += [[name, unit, None, value] for name, unit, value in b.measures if name not in of_a]
    known = [row for row in rows if row[2] is not None or row[3] is not None]
    return {
        "first": None if difference is None else {"rows": difference.rows, "says": difference.says},
        "measures": [[*row, _minus(row[3], row[2])] for row in known],
        "facts": [
            [name, a.facts[name], b.facts[name]]
            for name in ("wire", "model", "state", "stop_reason", "ending")
        ],
    }


def _minus(b: float | None, a: float | None) -> float | None:
    return None if a is None or b is None else round(b - a, 9)
