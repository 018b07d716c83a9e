"""Answers for turns that take several streams: a call, its result, another call, and the text.

Each function gives the recordings in the order in which a server, or `upstream.Replay`, answers one
turn's requests. `TOOLS` has the schemas of what the model was offered; reading an item has no
consequences, and changing its label has.

Read next: `upstream.py`, which plays them to a tool loop.
"""

from __future__ import annotations

from typing import Any

from streamlab.consumer.gates import EFFECT, Policy
from streamlab.consumer.workitem import CHANGE_LABEL
from streamlab.streams.parts import Part, Style, Text, ToolCall
from streamlab.streams.recording import Recording
from streamlab.streams.synth import answer

__all__ = [
    "READING",
    "READ_ITEM",
    "TOOLS",
    "for_ever",
    "lookup_then_answer",
    "lookup_then_proposal",
    "one_after_another",
    "two_at_once",
]

#: The JSON Schema of the tool that only looks.
READ_ITEM = {
    "type": "object",
    "properties": {"item": {"type": "string", "pattern": "^W-[0-9]+$"}},
    "required": ["item"],
    "additionalProperties": False,
}

TOOLS = {"read_item": READ_ITEM, "change_label": CHANGE_LABEL}

#: Permits both tools; which of them may run at once is for the tool loop to know.
READING = Policy(EFFECT.accept, TOOLS)

#: Short frames, and no pings: every chunk of these means something.
PLAIN = Style(fragment=(12, 12), first_empty=False, pings=0)

Turn = tuple[Recording, ...]


def lookup_then_answer() -> Turn:
    """Two rounds: one call, then the text."""
    return (
        _round(1, Text("Let me look."), _read("W-7")),
        _round(2, Text("W-7 is a draft.")),
    )


def two_at_once() -> Turn:
    """Two rounds: two calls side by side, then the text."""
    return (
        _round(1, Text("I'll look at both."), _read("W-7"), _read("W-8")),
        _round(2, Text("W-7 is a draft, and W-8 is open.")),
    )


def one_after_another(calls: int = 4) -> Turn:
    """A call a round, each for another item, then the text: five rounds, if nothing else is said.

    Drawn by the stream, they are five bubbles.
    """
    looks = [
        _round(number, Text(f"Item {number}."), _read(f"W-{number}"))
        for number in range(1, calls + 1)
    ]
    return (*looks, _round(calls + 1, Text("That was all.")))


def for_ever(rounds: int = 20) -> Turn:
    """The same call in every round, each with an id of its own, and never an answer."""
    return tuple(_round(number, _read("W-7")) for number in range(1, rounds + 1))


def lookup_then_proposal() -> Turn:
    """Three rounds: a call that only looks, one that has consequences, then the text."""
    change = ToolCall("change_label", {"item": "W-7", "label": "Ready for review"})
    return (
        _round(1, Text("Let me look."), _read("W-7")),
        _round(2, Text("It can be reviewed."), change),
        _round(3, Text("W-7 is ready for review.")),
    )


def _read(item: str) -> ToolCall:
    return ToolCall("read_item", {"item": item})


def _round(number: int, *parts: Part, **options: Any) -> Recording:
    """One answer; its number makes the ids in it its own."""
    return answer(parts, seed=number, style=PLAIN, note=f"round {number}", **options)
