"""What the readers of all wire formats share: a frame's payload, and how a problem is said.

    frame -> JSON payload, or the error that it states in whatever shape -> the format's grammar

A dialect is one file with one class that derives from this one and is listed in
`reader.DIALECTS`. It says what each payload states (`payload`), what a clean end completes (`end`)
and what is missing (`unfinished`). What breaks the grammar is a `Problem` of severity error; what
is only odd is said once a stream. Reading always goes on: what a person sees may be partial.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, TypeGuard

from .events import Ambiguous, Event, Identified, InputDelta, KeepAlive, Problem, Severity
from .payload import NotJSON, error_in, is_utf8, parse
from .runs import Run
from .sse import Blocks, Frame

__all__ = ["MAX_SAID", "Dialect", "count", "gap_in", "id_twice", "is_index", "word"]

#: Characters of a stranger's words that a message repeats.
MAX_SAID = 300

#: How many numbers a vendor may give to the parts of one answer.
MAX_INDEX = 1_000_000


class Dialect:
    """The reader of one answer in one wire format: `read` its frames in order, then `end` it."""

    wire: ClassVar[str]  #: the format's name
    marker: ClassVar[str] = ""  #: the final marker's name; "" where the format has none
    #: What it means that a frame has no event name, where the format names them all.
    unnamed: ClassVar[tuple[Severity, str]] = ("note", "frames without an event name")

    def __init__(self, named: bool = True) -> None:
        self.named = named  #: whether frames can have an event name (JSON files can't hold any)
        self.completed = False  #: whether the final marker came, after a whole sequence
        self._second = False  # a second answer began: it is not this one's
        self._call_ids: set[str] = set()  # ids of tool calls
        self._said: set[str] = set()  # habits are reported once a stream, faults every time

    @classmethod
    def recognises(cls, event: str, payload: dict[str, Any]) -> bool:
        """Whether an event name and its payload can only be this wire format's."""
        raise NotImplementedError

    @classmethod
    def whole(cls, payload: dict[str, Any]) -> bool:
        """Whether a payload can only be a whole answer, as the vendor gives it without streaming.

        Never, where a whole answer looks like one chunk of a stream.
        """
        return False

    def read(self, frame: Frame) -> tuple[Event, ...]:
        """The events that one frame states."""
        if self._second:
            return ()
        try:
            payload = parse(frame.data)
        except NotJSON as why:
            return self._not_json(frame, why)
        error = error_in(payload, frame)
        if error:
            return (error,)
        if not isinstance(payload, dict):
            return (self._fault("not-an-object", "the data is JSON but not an object", frame),)
        events = self.payload(payload, frame)
        return (*self._broken_text(events, frame), *events)

    def runs(self, blocks: Blocks, first: int) -> list[Run]:
        """What usual blocks state, from the `first` one up to the first that `read` must look at.

        Such a block appends a piece to an open part, and counts tokens at most. Formats that have
        no such way give none.
        """
        return []

    def payload(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        """The events that a payload states: the format's grammar."""
        raise NotImplementedError

    def done(self, frame: Frame) -> tuple[Event, ...]:
        """What `[DONE]` in the place of a payload states."""
        return self._habit("done-marker", "note", "[DONE] means nothing on this wire", frame)

    def end(self) -> tuple[Event, ...]:
        """What a clean end, with nothing left over, completes; by itself it proves nothing."""
        return ()

    def unfinished(self) -> str:
        """What is missing for the answer to be complete, in words; "" when nothing is."""
        raise NotImplementedError

    def _not_json(self, frame: Frame, why: NotJSON) -> tuple[Event, ...]:
        text = frame.text.strip()
        if text == "[DONE]":
            return self.done(frame)
        if frame.event == "ping" or (not text and frame.event != "error"):
            return (KeepAlive(),)
        error = error_in(None, frame)
        if error:
            return (error,)
        return (self._fault("not-json", f"the data is not JSON: {why}", frame),)

    def _broken_text(self, events: tuple[Event, ...], frame: Frame) -> tuple[Event, ...]:
        """Bytes that are no UTF-8 were replaced: in text a blemish, in a tool's call a forgery."""
        if frame.data.isascii() or is_utf8(frame.data):
            return ()
        text = "bytes that are not UTF-8, shown as \ufffd"
        if any(map(_is_of_a_call, events)):
            return (self._fault("invalid-utf8", f"{text}, inside a tool call", frame),)
        return self._habit("invalid-utf8", "warning", text, frame)

    def _name_habits(self, frame: Frame, payload: dict[str, Any]) -> tuple[Event, ...]:
        """Where a frame's event name and its payload's type differ, the type counts."""
        name = payload.get("type")
        if not self.named or frame.event == name:
            return ()
        if not frame.event:
            return self._habit("unnamed-event", *self.unnamed, frame)
        if "type" not in payload:
            text = f"a payload without a type under {frame.event[:80]!r}; the event's name counts"
            return self._habit("no-type", "warning", text, frame)
        text = (
            f"event name {frame.event[:80]!r} over a payload of type {name!r:.80}; the type counts"
        )
        return self._habit("event-name", "warning", text, frame)

    def _named_once(self, call_id: str | None, frame: Frame) -> tuple[Event, ...]:
        """What keeps a tool call from being known by its id: it has none, or another has it."""
        if not call_id:
            return (Ambiguous("a tool call without an id: no result could name it", frame.number),)
        if call_id in self._call_ids:
            return (Ambiguous(id_twice(call_id), frame.number),)
        self._call_ids.add(call_id)
        return ()

    def _fault(self, rule: str, message: str, frame: Frame) -> Problem:
        said = f"{message[:MAX_SAID]} (byte {frame.start})"
        return Problem(rule, "error", said, frame.number)

    def _habit(
        self, rule: str, severity: Severity, message: str, frame: Frame
    ) -> tuple[Problem, ...]:
        if rule in self._said:
            return ()
        self._said.add(rule)
        return (Problem(rule, severity, message[:MAX_SAID], frame.number),)


def _is_of_a_call(event: Event) -> bool:
    return isinstance(event, InputDelta | Identified) or getattr(event, "kind", "") == "tool_call"


def id_twice(call_id: str) -> str:
    """That two calls have one id, in words."""
    return f"two tool calls with the id {call_id[:80]!r}"


def gap_in(used: Collection[int], parts: str, one: str) -> str:
    """That a number of the parts is missing, in words; "" where they are 0, 1, 2, …"""
    if len(used) == 1 + max(used, default=-1):
        return ""
    return f"{parts} {sorted(used)[:20]}: a number is missing, so {one} may be lost"


def is_index(value: Any) -> TypeGuard[int]:
    """Whether a value can be the number of a part: 0, 1, 2, …"""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_INDEX


def word(value: Any) -> str:
    """The value where it is text, else ""."""
    return value if isinstance(value, str) else ""


def count(usage: Any, *path: str) -> int | None:
    """A token count in a vendor's usage, by the names that lead to it; None where it is none."""
    for name in path:
        usage = usage.get(name) if isinstance(usage, dict) else None
    is_count = isinstance(usage, int) and not isinstance(usage, bool) and 0 <= usage < 2**63
    return usage if is_count else None
