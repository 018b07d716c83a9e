"""The same few scenarios on the other three wire formats: one table, three columns.

`scenarios.chat_cut_in_arguments()`, `scenarios.responses_cut_in_arguments()` and
`scenarios.gemini_cut_in_arguments()` break the same payment at its amount, so they can be laid
side by side; `scenarios.cut_inside_tool_json()` is Claude's.

Read next: `openai_chat_voice.py`, for how each format says that an answer ends early.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from streamlab.consumer.attempt import State
from streamlab.consumer.workitem import policy_for
from streamlab.streams import faults, synth
from streamlab.streams.parts import Style
from streamlab.streams.scenario import enter
from streamlab.streams.script import Script

__all__ = ["WIRES", "Wire", "enter_all"]

LABEL, PAY, HELLO = "Is W-7 ready for review?", "Pay INV-17.", "Hello!"


class Wire(msgspec.Struct, frozen=True):
    """A wire format, and the frames of its streams that the scenarios are about."""

    wire: str
    title: str  #: as a sentence begins
    text: int  #: the frame in the middle of the greeting
    amount: int  #: the frame of the payment that brings its amount, or the first digit of it
    marker: int  #: the last frame of the greeting before its end marker
    missing: str  #: what has not come by then
    style: Style = Style()


#: Prefix of a scenario's name -> its wire format. Gemini sends a call whole, unless it is asked to
#: send the input by path: only so can a stream be cut inside of it, between two frames.
WIRES = {
    "chat": Wire("openai-chat", "Chat Completions", 4, 7, 8, "[DONE]"),
    "responses": Wire("openai-responses", "Responses", 7, 13, 12, "response.completed"),
    "gemini": Wire(
        "gemini", "Gemini", 3, 5, 4, "the finish reason", Style(arguments="path", fragment=(4, 9))
    ),
}


def _hello(on: Wire) -> Script:
    return Script(synth.greeting(wire=on.wire), prompt=HELLO)


def _label(on: Wire) -> Script:
    recording = synth.change_label(wire=on.wire)
    return Script(recording, policy=policy_for("ada"), prompt=LABEL)


def _pay(on: Wire) -> Script:
    return Script(synth.pay_invoice(wire=on.wire, style=on.style), prompt=PAY)


#: What comes after the prefix: where it ends, what it says, how it is made.
SCRIPTS: dict[str, tuple[State, str, Callable[[Wire], Script]]] = {
    "whole_text": (
        State.MESSAGE_COMPLETE,
        "a whole answer of text, and there is nothing to act on.",
        _hello,
    ),
    "whole_call": (
        State.VALIDATED_PROPOSAL,
        "a whole call, and every gate passes.",
        _label,
    ),
    "cut_in_arguments": (
        State.INCOMPLETE,
        "the stream ends cleanly inside the input of a payment.",
        lambda on: _pay(on).disconnect(after=on.amount),
    ),
    "no_end_marker": (
        State.INCOMPLETE,
        "a clean end, and {missing} has not come.",
        lambda on: _hello(on).disconnect(after=on.marker),
    ),
    "error_after_200": (
        State.INVALID,
        "the provider fails in the middle of a sentence.",
        lambda on: _hello(on).error(after=on.text),
    ),
    "token_limit_in_arguments": (
        State.HELD,
        "the tokens run out inside the input, and every marker comes.",
        lambda on: _pay(on).token_limit(after=on.amount),
    ),
    "refusal": (
        State.HELD,
        "a classifier stops the answer in the middle of a sentence.",
        lambda on: _hello(on).inject(faults.refuse, after=on.text),
    ),
}


def enter_all() -> None:
    """Put all of them into `SCENARIOS`, wire by wire."""
    for prefix, on in WIRES.items():
        for name, (state, says, make) in SCRIPTS.items():
            sentence = f"{on.title}: {says.format(missing=on.missing)}"
            enter(f"{prefix}_{name}", sentence, _made(make, on), state)


def _made(make: Callable[[Wire], Script], on: Wire) -> Callable[[], Script]:
    return lambda: make(on)
