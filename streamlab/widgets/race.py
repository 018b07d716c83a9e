"""The race: two lanes, cancel and commit, dragged against each other; what the row says then.

Between the lanes only the order matters, and there are not many orders. Python plays each of them
once on the real ledger (`study/orders.py`) and sends what came of it; dragging happens in the
browser. The view (`race.js`) sets three traits, so code can go on from what was dragged: `.order`.

Read next: `../study/orders.py`, where the outcomes come from.
"""

from __future__ import annotations

import html as markup
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from streamlab.consumer.attempt import SAID
from streamlab.study.orders import AGAIN, GAPS, READY, TROUBLES, WIDTH, Order, every, play
from streamlab.widgets.messages import hear

__all__ = ["Race"]

HERE = Path(__file__).parent

TIE = (
    "At the same moment? For one row there is no such thing: it takes one transaction, then the "
    "next."
)


class Race(anywidget.AnyWidget):
    """Two lanes and one row. The arguments of `play` say how it stands at first."""

    _esm = HERE / "race.js"
    _css = HERE / "race.css"

    race = traitlets.Dict(help="every order, and what came of it").tag(sync=True)
    cancel = traitlets.Int(0, help="the place in GAPS").tag(sync=True)
    trouble = traitlets.Int(0, help="the place in TROUBLES").tag(sync=True)
    again = traitlets.Int(0, help="the place in AGAIN").tag(sync=True)

    def __init__(
        self, cancel: str = GAPS[0], trouble: str = TROUBLES[0], again: str = AGAIN[0]
    ) -> None:
        self._first = play(cancel, trouble, again)  #: what stands still shows this one
        super().__init__(
            race=data(),
            cancel=GAPS.index(cancel),
            trouble=TROUBLES.index(trouble),
            again=AGAIN.index(again),
        )
        hear(self, *PLACES)

    @property
    def order(self) -> Order:
        """The order that is in view."""
        return play(GAPS[self.cancel], TROUBLES[self.trouble], AGAIN[self.again])

    @traitlets.validate("cancel", "trouble", "again")
    def _is_a_place(self, proposal: dict[str, Any]) -> int:
        name, place = proposal["trait"].name, int(proposal["value"])
        if not 0 <= place < len(PLACES[name]):
            raise traitlets.TraitError(f"{name} has no place {place}")
        return place

    def __repr__(self) -> str:
        blocks = (f"{title(each)}\n{each!r}" for each in both(self._first))
        return "\n\n".join(
            ["Race: cancel against commit, on one row", *blocks, textwrap.fill(TIE, WIDTH)]
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        bundle["text/plain"] = repr(self)
        tables = "".join(_table(each) for each in both(self._first))
        bundle["text/html"] = f"<div>{tables}<p>{TIE}</p></div>"
        return bundle, metadata


PLACES: dict[str, tuple[str, ...]] = {"cancel": GAPS, "trouble": TROUBLES, "again": AGAIN}


def both(order: Order) -> tuple[Order, Order]:
    """An order, and the other way round."""
    other = GAPS[0] if order.cancel != GAPS[0] else GAPS[1]
    return order, play(other, order.trouble, order.again)


def title(order: Order) -> str:
    """Which order it is, in words."""
    wrong = "" if order.trouble == TROUBLES[0] else f"; {order.trouble}"
    again = "" if order.again == AGAIN[0] else f"; the commit again {order.again}"
    return f"The cancellation comes {order.cancel}{wrong}{again}:"


def _table(order: Order) -> str:
    heads = "".join(f"<th>{each}</th>" for each in ("what happens", "the row", "is told"))
    rows = "".join(
        f"<tr><td>{markup.escape(each.says)}</td><td>{each.row}</td><td>{each.told or ''}</td></tr>"
        for each in order.moments
    )
    return (
        f"<p><b>{title(order)}</b></p><table><tr>{heads}</tr>{rows}</table><p>{order.ending()}</p>"
    )


@cache
def data() -> dict[str, Any]:
    """All that the view shows; a sentence is sent once, and known by its number."""
    said: dict[str, int] = {}
    orders = [_order(each, said) for each in every()]
    return {
        "gaps": GAPS,
        "troubles": TROUBLES,
        "again": AGAIN,
        "start": READY.state,
        "tie": TIE,
        "words": dict(SAID),
        "orders": orders,
        "said": list(said),
    }


def _order(order: Order, said: dict[str, int]) -> dict[str, Any]:
    def number(text: str) -> int:
        return said.setdefault(text, len(said))

    def moments() -> Iterator[list[int]]:
        for each in order.moments:
            told = -1 if each.told is None else number(each.told)
            yield [number(each.who), number(each.says), number(each.row), each.effects, told]

    return {
        "moments": list(moments()),
        "verdict": number(order.verdict()),
        "winner": number(order.winner),
        "recorded": number(order.recorded.state),
        "words": number(order.recorded.said),
        "effects": order.effects,
        "submissions": order.submissions,
    }
