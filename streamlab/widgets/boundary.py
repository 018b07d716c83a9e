"""The byte-boundary explorer: a stream, a cut that moves through it, two readers side by side.

The whole table (every reader, every place, every way of delivery) is computed once, here, and sent
once; the browser only moves through it. So the view can say nothing that `study/boundaries.py`
does not: the counts it shows are those of `failing`.

Read next: `study/boundaries.py`.
"""

from __future__ import annotations

import html as markup
import inspect
import textwrap
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from streamlab.errors import UsageError
from streamlab.study.boundaries import (
    DELIVERIES,
    STREAM,
    Outcome,
    deliver,
    expected,
    outcomes,
    shown,
    sse_decoder,
    units,
    where,
)
from streamlab.study.naive_readers import NAIVE, Reader, decode_each_read

__all__ = ["BoundaryExplorer"]

HERE = Path(__file__).parent

#: Bytes of the longest stream: more cannot be looked at byte by byte.
MOST = 400


class BoundaryExplorer(anywidget.AnyWidget):
    """A stream to cut at any byte, with a naive reader beside ours.

    A function of your own, from reads to the data of the events, may stand in the first place, and
    is what it opens on: `BoundaryExplorer(mine)`.
    """

    _esm = HERE / "boundary.js"
    _css = HERE / "boundary.css"

    table = traitlets.Dict(help="the stream, the readers, and every outcome").tag(sync=True)
    reader = traitlets.Int(0, help="which of the naive readers is in view, from 0").tag(sync=True)
    delivery = traitlets.Int(0, help="how the reads come, from 0").tag(sync=True)
    cut = traitlets.Int(0, help="bytes before the cut; 0: nothing is cut").tag(sync=True)

    def __init__(self, *mine: Reader, stream: bytes = STREAM) -> None:
        if not 1 <= len(stream) <= MOST:
            raise UsageError(f"a stream of {len(stream)} bytes; this view takes 1 to {MOST}")
        self._readers = (*mine, *NAIVE)
        self._stream = stream
        opened = 0 if mine else NAIVE.index(decode_each_read)
        super().__init__(table=_table(self._readers, stream), reader=opened)

    def goto(self, cut: int) -> None:
        """Cut the stream after so many bytes; 0 cuts nothing."""
        if not 0 <= cut < len(self._stream):
            raise UsageError(f"cut={cut}: this stream can be cut after 0 to its last byte")
        self.cut = cut

    @traitlets.validate("reader", "delivery", "cut")
    def _within(self, proposal: dict[str, Any]) -> int:
        counts = {"reader": len(self._readers), "delivery": len(DELIVERIES)}
        last = counts.get(proposal["trait"].name, len(self._stream)) - 1
        return int(min(max(proposal["value"], 0), last))

    # --- Standing still -------------------------------------------------------------------------

    def __repr__(self) -> str:
        rows = _rows(self.table)
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (
            "  ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)) for row in rows
        )
        return "\n".join([_headline(self.table), *(f"  {line}".rstrip() for line in lines)])

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        data["text/plain"] = repr(self)
        data["text/html"] = _html(self.table)
        return data, metadata


# --- The table ------------------------------------------------------------------------------------


def _table(readers: Sequence[Reader], stream: bytes) -> dict[str, Any]:
    """Everything that the view can show, as JSON."""
    return {
        "size": len(stream),
        "units": [[unit.at, unit.sign, unit.data.hex(" ")] for unit in units(stream)],
        "where": [where(stream, cut) for cut in range(len(stream))],
        "deliveries": [
            {"name": name, "ends": list(accumulate(map(len, deliver(stream, 0, name))))}
            for name in DELIVERIES
        ],
        "expected": [shown(event) for event in expected(stream).events],
        "readers": [_reader(each, stream) for each in readers],
        "ours": _reader(sse_decoder, stream),
    }


def _reader(reader: Reader, stream: bytes) -> dict[str, Any]:
    """A reader, its code, and its outcomes by delivery and by place."""
    return {
        "name": getattr(reader, "__name__", "a reader")[:60],
        "says": (inspect.getdoc(reader) or "").partition("\n")[0][:120],
        "code": _code(reader),
        "outcomes": [_outcomes(reader, stream, delivery) for delivery in DELIVERIES],
    }


def _outcomes(reader: Reader, stream: bytes, delivery: str) -> dict[str, Any]:
    """The different outcomes, which of them each place has, and which of them are wrong."""
    right, found = expected(stream), outcomes(reader, stream, delivery)
    different = list(dict.fromkeys(found))
    number = {came: n for n, came in enumerate(different)}
    return {
        "at": [number[came] for came in found],
        "different": [_shown(came, right) for came in different],
    }


def _shown(came: Outcome, right: Outcome) -> dict[str, Any]:
    return {
        "events": [shown(event[:MOST]) for event in came.events[:MOST]],
        "error": shown(came.error[:200]),
        "right": came == right,
    }


def _code(reader: Reader) -> str:
    """The source of a reader; nothing where there is none, as for a function made in a prompt."""
    try:
        return textwrap.dedent(inspect.getsource(reader)).rstrip()[:2000]
    except (OSError, TypeError):
        return ""


# --- What stands still ----------------------------------------------------------------------------


def _headline(table: dict[str, Any]) -> str:
    size = table["size"]
    many = f"{size} byte{'s' * (size != 1)}, {size - 1} place{'s' * (size != 2)} to cut"
    return f"BoundaryExplorer: {many}, and at how many of them a reader fails"


def _verdict(reader: dict[str, Any], delivery: int, size: int) -> str:
    """How often a reader is wrong, in a word or two."""
    found = reader["outcomes"][delivery]
    right = [found["different"][number]["right"] for number in found["at"]]
    if len(right) < size:
        return "right" if right[0] else "wrong"
    wrong = right[1:].count(False)
    return f"{wrong} of {size - 1}" if right[0] else f"{wrong} of {size - 1}, uncut too"


def _rows(table: dict[str, Any]) -> list[list[str]]:
    """Reader by delivery; ours comes last."""
    names = [each["name"] for each in table["deliveries"]]
    rows = [
        [each["name"], *(_verdict(each, n, table["size"]) for n in range(len(names)))]
        for each in (*table["readers"], table["ours"])
    ]
    return [["reader", *names], *rows]


def _html(table: dict[str, Any]) -> str:
    """The counts as a table, and the stream with its signs, for a page without a kernel."""
    head, *rows = _rows(table)
    lines = ["".join(f"<th>{markup.escape(cell)}</th>" for cell in head)]
    lines += ["".join(f"<td>{markup.escape(cell)}</td>" for cell in row) for row in rows]
    signs = "".join(f"⟨{sign}⟩" if len(sign) > 1 else sign for _, sign, _ in table["units"])
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f"<div><p><b>{markup.escape(_headline(table))}</b></p>"
        f"<p><code>{markup.escape(signs)}</code></p><table>{body}</table></div>"
    )
