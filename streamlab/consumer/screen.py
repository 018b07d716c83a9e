"""What a screen shows of a turn: one bubble with its texts and tool cards, however many streams.

`show(screen, event)` is a pure fold over what crosses the bus. A bubble is found by the *turn*.
Found by the stream (`by_stream`), five rounds make five bubbles, and four of them wait for an end
that never comes. What a failed round had shown is taken back: it is marked as discarded, and gone
when the next try begins.

Read next: `bus.py`, which carries the events to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import msgspec

from streamlab.consumer.turn import items_of
from streamlab.consumer.turn_events import (
    BusEvent,
    RoundEnded,
    RoundStarted,
    SegmentGrew,
    SegmentNamed,
    SegmentOpened,
    SegmentRestated,
    SegmentStopped,
    Status,
    ToolProposed,
    ToolResolved,
    ToolRunning,
    TurnEnded,
    TurnState,
    printable,
)
from streamlab.wire.events import Kind
from streamlab.wire.payload import joined

__all__ = [
    "Bubble",
    "BubbleOf",
    "CaughtUp",
    "Part",
    "Screen",
    "by_stream",
    "by_turn",
    "fold_screen",
    "show",
]


class Part(msgspec.Struct, frozen=True, eq=False):
    """One text, or one tool card with its chip."""

    attempt: str
    segment: str
    kind: Kind
    tool: str = ""
    server: bool = False  #: the provider runs the tool itself, so its card has no chip of ours
    status: Status = Status.STREAMING
    content: Any = None  #: a chain of fragments, as in `turn.py`
    result: str = ""  #: of a tool; or why its input does not parse

    @property
    def text(self) -> str:
        """Everything so far; of a tool the JSON text of its input."""
        return joined(items_of(self.content))

    def _facts(self) -> tuple[str, ...]:
        place = (self.attempt, self.segment, self.kind, self.tool)
        return (*place, self.status, self.text, self.result)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self._facts() == other._facts()

    def __ne__(self, other: object) -> bool:  # msgspec would compare identities
        return not self == other

    def __hash__(self) -> int:
        return hash((self.attempt, self.segment, self.status))

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 60 else f"{self.text[:60]}…"
        return f"Part({self.tool or self.kind}, {self.status}, {text!r})"


class Bubble(msgspec.Struct, frozen=True):
    """What one answer looks like: its parts in order, and a word on how it ended."""

    id: str
    parts: tuple[Part, ...] = ()
    rounds: int = 0
    state: TurnState | None = None  #: None while it is under way
    said: str = ""


class Screen(msgspec.Struct, frozen=True):
    """Everything that is shown."""

    bubbles: tuple[Bubble, ...] = ()

    def __str__(self) -> str:
        return "\n".join(line for bubble in self.bubbles for line in _lines(bubble))


class CaughtUp(msgspec.Struct, frozen=True):
    """For a reader that was far behind: all that it has missed, as it looks now."""

    screen: Screen


#: Which bubble an event belongs to.
BubbleOf = Callable[[BusEvent], str]


def by_turn(event: BusEvent) -> str:
    """One bubble a turn, however many streams it takes."""
    return event.turn


def by_stream(event: BusEvent) -> str:
    """One bubble a stream: the mistake."""
    return event.attempt


def show(screen: Screen, event: BusEvent | CaughtUp, bubble_of: BubbleOf = by_turn) -> Screen:
    """The screen after one event; the same object where it changes nothing."""
    if isinstance(event, CaughtUp):
        return event.screen
    id, bubbles = bubble_of(event), screen.bubbles
    place = next((n for n in reversed(range(len(bubbles))) if bubbles[n].id == id), None)
    old = Bubble(id) if place is None else bubbles[place]
    if place is None and not isinstance(event, (RoundStarted, TurnEnded)):
        return screen  # it belongs to nothing that ever began
    new = CHANGES[type(event)](old, event)
    if new is old:
        return screen
    before, after = (bubbles, ()) if place is None else (bubbles[:place], bubbles[place + 1 :])
    return Screen((*before, new, *after))


def fold_screen(
    events: Iterable[BusEvent | CaughtUp],
    screen: Screen | None = None,
    bubble_of: BubbleOf = by_turn,
) -> Screen:
    """The screen after many events."""
    return reduce(lambda shown, event: show(shown, event, bubble_of), events, screen or Screen())


def _begin(bubble: Bubble, event: RoundStarted) -> Bubble:
    """What an earlier try left behind goes when the next one begins."""
    parts = tuple(part for part in bubble.parts if part.status is not Status.DISCARDED)
    return Bubble(bubble.id, parts, bubble.rounds + 1)


def _open(bubble: Bubble, event: SegmentOpened) -> Bubble:
    part = Part(event.attempt, event.segment, event.kind, event.tool, event.server)
    return msgspec.structs.replace(bubble, parts=(*bubble.parts, part))


def _finish(bubble: Bubble, event: TurnEnded) -> Bubble:
    return msgspec.structs.replace(bubble, state=event.state, said=event.said)


def _take_back(bubble: Bubble, event: RoundEnded) -> Bubble:
    if event.kept:
        return bubble
    parts = [
        msgspec.structs.replace(part, status=Status.DISCARDED)
        if part.attempt == event.attempt
        else part
        for part in bubble.parts
    ]
    return msgspec.structs.replace(bubble, parts=tuple(parts))


def _part(
    *allowed: Status, change: Callable[[Part, Any], dict[str, Any]]
) -> Callable[[Bubble, Any], Bubble]:
    """A change of the part that an event names, if its chip is one of those allowed."""

    def apply(bubble: Bubble, event: Any) -> Bubble:
        parts = bubble.parts
        for place in reversed(range(len(parts))):
            part = parts[place]
            if (part.segment, part.attempt) == (event.segment, event.attempt):
                if part.status not in allowed:
                    return bubble
                new = msgspec.structs.replace(part, **change(part, event))
                kept = (*parts[:place], new, *parts[place + 1 :])
                return msgspec.structs.replace(bubble, parts=kept)
        return bubble

    return apply


def _stopped(part: Part, event: SegmentStopped) -> dict[str, Any]:
    status = Status.FAILED if event.error else Status.READY
    return {"status": status, "result": event.error}


#: Event type -> what it changes in its bubble. A chip goes only the ways that are written here.
CHANGES: dict[type, Callable[[Bubble, Any], Bubble]] = {
    RoundStarted: _begin,
    SegmentOpened: _open,
    SegmentGrew: _part(Status.STREAMING, change=lambda p, e: {"content": (p.content, e.text)}),
    SegmentNamed: _part(Status.STREAMING, change=lambda p, e: {"tool": e.tool}),
    SegmentRestated: _part(Status.STREAMING, change=lambda p, e: {"content": (None, e.text)}),
    SegmentStopped: _part(Status.STREAMING, change=_stopped),
    ToolRunning: _part(Status.READY, change=lambda p, e: {"status": Status.RUNNING}),
    ToolProposed: _part(Status.READY, change=lambda p, e: {"status": Status.PROPOSED}),
    ToolResolved: _part(
        *(Status.READY, Status.RUNNING, Status.PROPOSED),
        change=lambda p, e: {"status": e.status, "result": e.text},
    ),
    RoundEnded: _take_back,
    TurnEnded: _finish,
}


def _lines(bubble: Bubble) -> Iterable[str]:
    """A bubble as plain text, for a print."""
    yield f"┌ {printable(bubble.id)}"
    for part in bubble.parts:
        chip = f" [{part.status}]" if part.kind == "tool_call" and not part.server else ""
        taken = " (discarded)" if part.status is Status.DISCARDED and not chip else ""
        result = f" → {part.result}" if part.result else ""
        line = f"{part.tool + ' ' if part.tool else ''}{part.text}{chip}{taken}{result}"
        yield f"│ {printable(line)}"
    yield f"└ {printable(bubble.said) or 'under way …'}"
