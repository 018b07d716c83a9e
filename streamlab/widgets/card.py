"""The report card to walk through: pick a fault and a client, see what was sent and what came.

The whole card is sent once; moving happens in the browser. The view (`card.js`) sets two traits, so
code can go on from what was picked: `.cell`.

Read next: `../study/report_card.py`, the cells; `../study/card_sent.py`, the frames.
"""

from __future__ import annotations

import html as markup
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from streamlab.analysis.figures.card import KINDS
from streamlab.analysis.plain import visible
from streamlab.study.card_cell import Cell
from streamlab.study.card_faults import CARD_FAULTS
from streamlab.study.card_sent import Frames, Row, frames_of
from streamlab.study.clients import WAYS
from streamlab.study.report_card import Card
from streamlab.widgets.messages import hear

__all__ = ["CardView"]

HERE = Path(__file__).parent

#: What a mark means, for the view and for what stands still.
MARKS = {" ": "sent", "~": "changed", "+": "put in", "-": "never sent"}


class CardView(anywidget.AnyWidget):
    """A card, and one cell of it in full. Raises `UsageError` for a cell that is not on the card"""

    _esm = HERE / "card.js"
    _css = HERE / "card.css"

    card = traitlets.Dict(help="every cell, and what was sent for it").tag(sync=True)
    fault = traitlets.Int(0, help="the place in the card's faults").tag(sync=True)
    client = traitlets.Int(0, help="the place in the card's clients").tag(sync=True)

    def __init__(
        self, card: Card, fault: str = "end-inside", client: str = "anthropic helper"
    ) -> None:
        self._card = card
        self._first = card.at(fault, client)  #: what stands still shows this one
        super().__init__(
            card=data(card), fault=card.faults.index(fault), client=card.clients.index(client)
        )
        hear(self, "fault", "client")

    @property
    def cell(self) -> Cell:
        """The cell that is in view."""
        return self._card.at(self._card.faults[self.fault], self._card.clients[self.client])

    @traitlets.validate("fault", "client")
    def _is_a_place(self, proposal: dict[str, Any]) -> int:
        name, place = proposal["trait"].name, int(proposal["value"])
        known = self._card.faults if name == "fault" else self._card.clients
        if not 0 <= place < len(known):
            raise traitlets.TraitError(f"{name} has no place {place}")
        return place

    def __repr__(self) -> str:
        each, sent = self._first, frames_of(self._first.fault, self._first.wire)
        lines = [f"CardView: {each.fault}, {each.client}", CARD_FAULTS[each.fault].says]
        if sent is not None:
            lines += ["", "sent:", *(f"  {_line(row)}" for row in sent.rows), f"  then {sent.end}"]
            lines += ["", f"streamlab: {sent.state}, {sent.why}"]
        handed = [f"  {visible(line)}" for line in each.handed]
        return "\n".join([*lines, "", f"the program was handed ({told(each)}):", *handed])

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        bundle["text/plain"] = repr(self)
        bundle["text/html"] = f"<pre>{markup.escape(repr(self))}</pre>"
        return bundle, metadata


def told(each: Cell) -> str:
    """A cell's verdict as a sign and words."""
    return f"{KINDS[each.kind].sign} {KINDS[each.kind].says}"


def _line(row: Row) -> str:
    """A frame in one line, as the text of the view has it."""
    text = visible(f"{row.before}{row.middle}{row.after}".strip("\n") or row.gone.strip("\n"))
    short = text if len(text) <= 78 else f"{text[:32]} … {text[-43:]}"  # a call is at the end
    return f"{MARKS[row.mark]:10}  {short}"


def data(card: Card) -> dict[str, Any]:
    """All that the view shows; a text is sent once, and known by its number."""
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts))

    wires = list(dict.fromkeys(WAYS[client].wire for client in card.clients))
    sent = [[_sent(frames_of(fault, wire), number) for wire in wires] for fault in card.faults]
    cells = [
        [_cell(card.at(fault, client), number) for client in card.clients] for fault in card.faults
    ]
    return {
        "faults": [[fault, CARD_FAULTS[fault].says] for fault in card.faults],
        "clients": [_client(client, wires) for client in card.clients],
        "wires": wires,
        "kinds": {name: [kind.sign, kind.says] for name, kind in KINDS.items()},
        "marks": MARKS,
        "sent": sent,
        "cells": cells,
        "stamp": card.stamp(),
        "texts": list(texts),
    }


def _client(client: str, wires: list[str]) -> list[Any]:
    way = WAYS[client]
    return [client, f"{way.sdk}: {way.how}", wires.index(way.wire)]


def _cell(each: Cell, number: Any) -> list[Any]:
    handed = [number(visible(line)) for line in each.handed]
    return [each.kind, number(each.word), handed]


def _sent(frames: Frames | None, number: Any) -> list[Any] | None:
    if frames is None:
        return None
    rows = [[row.mark, *(number(_shown(text)) for text in row[1:])] for row in frames.rows]
    return [rows, number(frames.end), frames.state, number(visible(frames.why))]


def _shown(text: str) -> str:
    """A piece of a frame: its lines stay lines, and what nobody sees is a sign of itself."""
    return "\n".join(map(visible, text.split("\n")))
