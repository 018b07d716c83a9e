"""What crosses the bus between the stream's side and the screen's side: typed, small, frozen.

Each event has the id of its turn and of its attempt: a turn of several streams has several
attempts, and is still one turn. Here are also the ends that a turn can have, with what a person is
told, and the chips of a tool's card.

Read next: `screen.py`, which folds these into what is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from streamlab.consumer.attempt import State
from streamlab.consumer.consumer import Consumer
from streamlab.wire import events as wire
from streamlab.wire.reader import Read

__all__ = [
    "TOLD",
    "BusEvent",
    "RoundEnded",
    "RoundStarted",
    "SegmentGrew",
    "SegmentNamed",
    "SegmentOpened",
    "SegmentRestated",
    "SegmentStopped",
    "Status",
    "ToolProposed",
    "ToolResolved",
    "ToolRunning",
    "TurnEnded",
    "TurnState",
    "printable",
    "told",
]


class TurnState(StrEnum):
    """How a turn of several streams can end."""

    ANSWERED = "ANSWERED"  #: the model has said all, and asks for no tool
    PROPOSED = "PROPOSED"  #: it asks for a tool that may not run by itself
    HELD = "HELD"  #: its last stream is whole, but not acceptable here
    INCOMPLETE = "INCOMPLETE"  #: its last stream was interrupted
    INVALID = "INVALID"  #: its last stream broke the rules, or reported an error
    CAPPED = "CAPPED"  #: it took as many rounds as it may, and the model wanted more
    REPEATING = "REPEATING"  #: the model asked for the very same thing too often
    CANCELLED = "CANCELLED"  #: somebody cancelled it


#: What a person is told at the end of a turn.
TOLD: dict[TurnState, str] = {
    TurnState.ANSWERED: "The answer is complete",
    TurnState.PROPOSED: "Proposal ready for review",
    TurnState.HELD: "Held: the last round is whole, but not acceptable here",
    TurnState.INCOMPLETE: "Interrupted: the last round never became complete",
    TurnState.INVALID: "Invalid: nothing of the last round may be used",
    TurnState.CAPPED: "Stopped: too many rounds for one turn, and still no answer",
    TurnState.REPEATING: "Stopped: the model asks for the same thing again and again",
    TurnState.CANCELLED: "Cancelled: nothing more was started, and what had run is on record",
}


class Status(StrEnum):
    """The chip on a tool's card; a text is only ever the first, the second or the last."""

    STREAMING = "streaming"
    READY = "ready"  #: its input is whole; nothing has been decided
    RUNNING = "running"
    DONE = "done"
    FAILED = "error"
    CANCELLED = "cancelled"  #: while it ran: it may have done something
    NOT_RUN = "not run"
    PROPOSED = "proposed"  #: waits for a commit
    DISCARDED = "discarded"  #: its round counts for nothing


# --- The events -----------------------------------------------------------------------------------


class RoundStarted(msgspec.Struct, frozen=True, tag=True):
    """One more request of this turn is about to be sent; its stream is an attempt of its own."""

    turn: str
    attempt: str
    number: int  #: 1 for the turn's first stream


class SegmentOpened(msgspec.Struct, frozen=True, tag=True):
    """A part of the answer begins."""

    turn: str
    attempt: str
    segment: str
    kind: wire.Kind
    tool: str = ""
    server: bool = False  #: the provider runs the tool itself: nothing is decided here


class SegmentNamed(msgspec.Struct, frozen=True, tag=True):
    """A tool call's name came after its start."""

    turn: str
    attempt: str
    segment: str
    tool: str


class SegmentGrew(msgspec.Struct, frozen=True, tag=True):
    """A part has more text: that of one delta, or of many for a reader that was slow."""

    turn: str
    attempt: str
    segment: str
    text: str


class SegmentRestated(msgspec.Struct, frozen=True, tag=True):
    """The whole text of a part, by an authority; it takes the place of what had come."""

    turn: str
    attempt: str
    segment: str
    text: str


class SegmentStopped(msgspec.Struct, frozen=True, tag=True):
    """A part is whole."""

    turn: str
    attempt: str
    segment: str
    error: str = ""  #: why a tool's input does not parse


class ToolRunning(msgspec.Struct, frozen=True, tag=True):
    """A tool is about to be awaited."""

    turn: str
    attempt: str
    segment: str


class ToolResolved(msgspec.Struct, frozen=True, tag=True):
    """What came of a call: it ran, it failed, it was cancelled, or it was never run."""

    turn: str
    attempt: str
    segment: str
    status: Status
    text: str  #: the result, or why there is none


class ToolProposed(msgspec.Struct, frozen=True, tag=True):
    """A call waits for a review and a commit."""

    turn: str
    attempt: str
    segment: str


class RoundEnded(msgspec.Struct, frozen=True, tag=True):
    """A stream is judged, and its tools have resolved."""

    turn: str
    attempt: str
    state: State
    why: str
    kept: bool  #: whether it belongs to the turn; what does not is to be taken back


class TurnEnded(msgspec.Struct, frozen=True, tag=True):
    """The last event of a turn."""

    turn: str
    attempt: str  #: the last one
    state: TurnState
    said: str  #: what a person is told
    why: str = ""


BusEvent = (
    RoundStarted
    | SegmentOpened
    | SegmentNamed
    | SegmentGrew
    | SegmentRestated
    | SegmentStopped
    | ToolRunning
    | ToolResolved
    | ToolProposed
    | RoundEnded
    | TurnEnded
)


# --- From a stream to the bus ---------------------------------------------------------------------


def told(turn: str, consumer: Consumer, reads: list[Read]) -> list[BusEvent]:
    """What a read has changed on a screen."""
    found = [(TELL.get(type(event)), event) for _, events in reads for event in events]
    said = [tell(turn, consumer, event) for tell, event in found if tell is not None]
    return [event for event in said if event is not None]


def _open(turn: str, consumer: Consumer, event: wire.SegmentStarted) -> BusEvent:
    attempt = consumer.attempt.id
    return SegmentOpened(turn, attempt, event.segment, event.kind, event.name, event.server)


def _name(turn: str, consumer: Consumer, event: wire.Identified) -> BusEvent | None:
    if not event.name:
        return None  # an id alone changes nothing that is seen
    return SegmentNamed(turn, consumer.attempt.id, event.segment, event.name)


def _restate(turn: str, consumer: Consumer, event: wire.Restated) -> BusEvent:
    return SegmentRestated(turn, consumer.attempt.id, event.segment, event.text)


def _grow(turn: str, consumer: Consumer, event: Any) -> BusEvent:
    return SegmentGrew(turn, consumer.attempt.id, event.segment, event.text)


def _stop(turn: str, consumer: Consumer, event: wire.SegmentStopped) -> BusEvent:
    segment = consumer.turn.find(event.segment)
    error = segment.error if segment else ""
    return SegmentStopped(turn, consumer.attempt.id, event.segment, error)


#: Event of a stream -> what the bus says of it.
TELL: dict[type, Callable[[str, Consumer, Any], BusEvent | None]] = {
    wire.SegmentStarted: _open,
    wire.Identified: _name,
    wire.Restated: _restate,
    wire.TextDelta: _grow,
    wire.ThinkingDelta: _grow,
    wire.InputDelta: _grow,
    wire.SegmentStopped: _stop,
}


def printable(text: str, but: str = "") -> str:
    """A stranger's text in one line, in which nothing moves a cursor; `but` these may stay."""
    return "".join(c if c.isprintable() or c in but else ascii(c)[1:-1] for c in text)
