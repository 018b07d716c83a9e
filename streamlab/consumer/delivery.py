"""Delivery: what is handed over twice counts once, and what comes too late counts not at all.

Between the reader of a stream and the code that acts on it there is often a queue, a callback, a
worker on another machine. They deliver *at least once*: after a doubt they deliver again. So facts
travel in an envelope with an identity of our own, the attempt and the delivery, and identity alone
says what is a repetition. Content never does: two equal fragments are two fragments ("ha", "ha").
Whoever fills the envelopes is trusted: an inbox can't see the wire, so only a reader that has seen
the whole sequence may say that it was whole.

Read next: `commit.py`, where the same identity keeps an effect from happening twice.
"""

from __future__ import annotations

from collections.abc import Container
from enum import StrEnum

import msgspec

from streamlab.consumer.attempt import Attempt, observe
from streamlab.consumer.turn import EMPTY, Turn, reduce
from streamlab.wire.events import Event

__all__ = ["Envelope", "Inbox", "Receipt", "receive"]


class Envelope(msgspec.Struct, frozen=True):
    """Some facts of one stream, and whose they are."""

    attempt: str  #: the id of the attempt that they belong to
    delivery: str  #: our name for this hand-over; a second delivery of it has the same one
    events: tuple[Event, ...] = ()


class Receipt(StrEnum):
    """What is done with an envelope."""

    NEW = "new"  #: it counts
    REPEATED = "repeated"  #: this delivery was handled before
    LATE = "late"  #: its attempt is over
    FOREIGN = "foreign"  #: it belongs to another attempt


def receive(envelope: Envelope, attempt: Attempt, handled: Container[str]) -> Receipt:
    """What is to be done with an envelope, by its identity alone."""
    if envelope.attempt != attempt.id:
        return Receipt.FOREIGN
    if envelope.delivery in handled:
        return Receipt.REPEATED
    return Receipt.LATE if attempt.terminal else Receipt.NEW


class Inbox:
    """One attempt's envelopes, in whatever order and however often they come.

    >>> inbox = Inbox()
    >>> inbox.handle(Envelope("attempt-1", "a")), inbox.handle(Envelope("attempt-1", "a"))
    (<Receipt.NEW: 'new'>, <Receipt.REPEATED: 'repeated'>)
    """

    def __init__(self, attempt: Attempt | None = None) -> None:
        self.attempt = attempt or Attempt()
        self.turn: Turn = EMPTY
        self.log: list[tuple[Envelope, Receipt]] = []  #: everything that came, and what it counted
        self._handled: set[str] = set()

    def handle(self, envelope: Envelope) -> Receipt:
        """Take an envelope. Each is written down; only a new one changes anything."""
        receipt = receive(envelope, self.attempt, self._handled)
        self.log.append((envelope, receipt))
        if receipt is Receipt.NEW:
            self._handled.add(envelope.delivery)
            for event in envelope.events:
                self.turn = reduce(self.turn, event)
                self.attempt = observe(self.attempt, event)
        return receipt
