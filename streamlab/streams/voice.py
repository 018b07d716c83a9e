"""What a fault must know of a wire format: its words for an error, an early end, a second start.

A `Voice` is a table, one for each wire format; the faults themselves (`provider_faults.py`) and
their places (`places.py`) know no vendor. Its functions are pure. They get the payloads that came
before the place of the fault, and give the payloads that the vendor would send there.

Read next: `claude_voice.py`, the shortest; `voices.py`, which finds the voice of a recording.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from streamlab.wire.sse import Frame

__all__ = [
    "DONE",
    "Early",
    "Payload",
    "Said",
    "Voice",
    "first",
    "no_numbers",
    "payload_of",
    "words_of",
]

Payload = dict[str, Any]
Said = Sequence[Payload]  #: what has come, in order

#: Why an answer ends early, named by the fault that makes it so.
Early = Literal["token_limit", "refuse", "pause"]

#: Stands for `[DONE]`, the end marker that is no JSON; told from a payload by identity.
DONE: Payload = {"[DONE]": True}


class Voice(msgspec.Struct, frozen=True):
    """The words of one wire format, as far as a fault speaks or looks for them."""

    wire: str

    # What comes, by its name in this format.
    start: str  #: begins an answer
    reason: str  #: says why it stopped; content comes before it
    end: str  #: proves it whole
    numbered: str  #: what has a number that can be raised: "block"
    stopping: str  #: what says by itself that it has stopped: "block"

    # How it is known.
    begins: Callable[[Payload], bool]
    closes: Callable[[Payload], bool]  #: no content comes from here on
    gives_reason: Callable[[Payload], bool]
    ended: Callable[[Said, bool], int | None]  #: at which payload; False: the form has no [DONE]
    numbers: Callable[[Payload], tuple[int, ...]]  #: of the parts that it names
    starts: Callable[[Payload], tuple[int, ...]]  #: of the parts that begin with it
    stops: Callable[[Payload], tuple[int, ...]]  #: of what stops with it

    # What the vendor would write.
    frame: Callable[[Payload, str], bytes]  #: as a block of an event stream, with these line ends
    error: Callable[[str, Said], Payload]  #: of this type
    early: Callable[[Early, Said], Sequence[Payload]]  #: closes what is open, and the answer
    unknown: Callable[[str, Said], Payload]
    again: Callable[[Said], Payload]  #: the start of a second answer
    more: Callable[[int, Said], Payload]  #: content for what has stopped

    # How bytes are changed.
    unsaid: Callable[[bytes], bytes]  #: a frame without its reason
    raised: Callable[[bytes, Payload, int], bytes]  #: a frame; its numbers from this one on, plus 1

    keep_alive: Payload | None = None  #: None: there is none; a proxy sends comments
    end_alone: str = ""  #: what proves it whole in a form that cannot hold `end`
    cannot: Mapping[str, str] = {}  #: a fault that cannot be on this wire -> why, in a sentence


def payload_of(frame: Frame) -> Payload:
    """The JSON object in a frame, or `DONE`; an empty one where it holds neither."""
    if frame.data.strip() == b"[DONE]":
        return DONE
    try:
        value = json.loads(frame.data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def first(said: Said, known: Callable[[Payload], bool]) -> int | None:
    """The place of the first payload that is known so, counted from 0."""
    return next((at for at, payload in enumerate(said) if known(payload)), None)


def no_numbers(payload: Payload) -> tuple[int, ...]:
    """Where a format numbers nothing."""
    return ()


def words_of(type: str) -> str:
    """What an error of a type says: "overloaded_error" says "Overloaded"."""
    return type.removesuffix("_error").replace("_", " ").capitalize()
