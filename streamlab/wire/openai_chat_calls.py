"""Whose fragment is this? The tool calls of a Chat Completions stream, found by index and id.

The format has no event for a call's start or end. A call is known by its number in the choice
(`index`) and by its `id`, which come with the first fragment. Compatible servers leave either one
out, use one again, or say a call twice. What proves whose a fragment is:

    entry has       it belongs to
    index           the call at that index; a new id with a name starts another one there
    id, no index    the call with that id, or a new one
    neither         the only open call; a name starts a new one

Everything else is `Ambiguous`: nothing is guessed, and the attempt is HELD. Calls stay open until
the choice has its finish reason, since their fragments may interleave; then each input is looked
at once: it may be one JSON value, or the same one twice (a restated call), or several.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from .dialect import Dialect, id_twice, is_index
from .events import (
    Ambiguous,
    Attached,
    Event,
    Identified,
    InputDelta,
    Problem,
    Restated,
    SegmentStarted,
    SegmentStopped,
)
from .openai_chat_parts import Said, said
from .payload import NotJSON, key_twice, parse, same_json
from .sse import Frame

__all__ = ["LEGACY", "MAX_CALLS", "CallsReader", "Choice"]

#: Calls of one choice; an answer has a few, a stranger's stream could have any number.
MAX_CALLS = 256

#: The index that the legacy `function_call` counts as: a choice has one, and it has no id.
LEGACY = -1

_value_at = json.JSONDecoder().raw_decode


class Call(msgspec.Struct, eq=False):
    """A tool call that has begun."""

    segment: str
    name: str
    id: str
    said: Said  #: its first entry
    pieces: list[str] = []  # of its input; msgspec gives each call its own list
    size: int = 0  # characters of a free-text input
    hot: bool = False  # whether a plain fragment of JSON can only be appended
    stopped: bool = False
    doubted: bool = False  # it was said that something about it can't be proved
    named_again: bool = False  # by an entry without an id, after its input began


#: What came of a sound, by field, in pieces.
Sound = dict[str, list[str]]


class Choice(msgspec.Struct, eq=False):
    """One of the answers to the request, as far as it has come."""

    number: int
    started: int = 0  # how many segments
    open: dict[str, Call | Sound | None] = {}  # segments, in the order in which they started
    lane: str = ""  # of the open text or thinking: "text", "refusal", "thinking"; "" for none
    flow: str = ""  # its segment
    calls: list[Call] = []
    at: dict[int, Call] = {}  # index -> the latest call there
    by_id: dict[str, Call] = {}
    reason: str | None = None  # its finish reason, once it has one
    late: bool = False  # a call began after the reason, and no reason came again
    refused: bool = False
    texts: list[str] = []  # what was read as text
    fed: bool = False  # a delta has brought content, so a whole message restates it
    audio: str = ""  # the segment of its sound
    hosted: dict[int, str] = {}  # tools that the provider ran: index -> arguments

    def next_segment(self) -> str:
        """The id of the segment that starts now: "0", "1", …; in choice 2 "2.0", "2.1", …"""
        self.started += 1
        own = str(self.started - 1)
        return f"{self.number}.{own}" if self.number else own


class CallsReader(Dialect):
    """The part of the reader that keeps tool calls apart."""

    def _tool_calls(self, choice: Choice, entries: Any, frame: Frame) -> Iterator[Event]:
        """What `tool_calls` of a delta states."""
        if not isinstance(entries, list):
            yield self._fault("malformed", "tool_calls must be a list", frame)
            return
        for entry in entries:
            told = said(entry) if isinstance(entry, dict) else "a tool call must be an object"
            if isinstance(told, Said) and not (told.index is None or is_index(told.index)):
                told = f"a tool call's index is {told.index!r:.40}; allowed: 0, 1, 2, …"
            if isinstance(told, str):
                yield self._fault("malformed", told, frame)
            else:
                yield from self._entry(choice, told, frame)

    def _function_call(self, choice: Choice, body: Any, frame: Frame) -> Iterator[Event]:
        """What the legacy `function_call` of a delta states: the one call of its choice."""
        told = said({"type": "function_call", "function": body})
        if isinstance(told, str):
            yield self._fault("malformed", told, frame)
            return
        yield from self._entry(choice, msgspec.structs.replace(told, index=LEGACY), frame)

    def _entry(self, choice: Choice, told: Said, frame: Frame) -> Iterator[Event]:
        if told.lost:
            text = f"a tool call's part that is not understood: {', '.join(told.lost)[:80]}"
            yield self._doubt(choice, text, frame)
        if not (told.id or told.name or told.given):
            return
        if isinstance(told.given, dict) and (twice := key_twice(frame.data)):
            yield self._fault("malformed", f"in a tool call's input {twice}", frame)
            return
        found = self._whose(choice, told, frame)
        if isinstance(found, Call):
            yield from self._identify(choice, found, told, frame)
            yield from self._add(choice, found, told, frame)
        elif found is not None:
            yield found
        elif len(choice.calls) >= MAX_CALLS:
            text = f"more than {MAX_CALLS} tool calls; the next one is not read"
            yield self._fault("too-many-calls", text, frame)
        else:
            yield from self._begin(choice, told, frame)

    # ------------------------------------------------------------------ whose it is

    def _whose(self, choice: Choice, told: Said, frame: Frame) -> Call | Event | None:
        """The call that an entry belongs to; None for a new one; or why that can't be proved."""
        if told.index is not None:
            return self._at_index(choice, told)
        if told.id:
            return choice.by_id.get(told.id)
        still = [call for call in choice.calls if not call.stopped]
        if told.name:
            only = still[0] if len(still) == 1 else None
            goes_on = only is not None and only.name == told.name and _unfinished(only)
            return only if goes_on else None
        if len(still) == 1:
            return still[0]
        if len(choice.calls) < 2:
            return choice.calls[0] if choice.calls else None
        text = f"a fragment of an input with neither index nor id, and {len(still)} calls are open"
        return self._doubt(choice, text, frame)

    def _at_index(self, choice: Choice, told: Said) -> Call | None:
        assert told.index is not None
        call = choice.at.get(told.index)
        if call is None:
            lone = choice.calls[0] if len(choice.calls) == 1 else None
            if lone is None or lone.said.index is not None or told.index == LEGACY:
                return None
            if choice.by_id.get(told.id) is not lone and (told.id or told.name):
                return None
            choice.at[told.index] = lone  # it began without a number
            return lone
        if not told.id or told.id == call.id:
            return call
        if (earlier := choice.by_id.get(told.id)) is not None and earlier.said.index == told.index:
            return earlier
        return call if not call.id or not told.name else None

    def _begin(self, choice: Choice, told: Said, frame: Frame) -> Iterator[Event]:
        yield from self._leave(choice, frame)
        call = Call(choice.next_segment(), told.name, told.id, told)
        if told.index is not None:
            if told.index in choice.at:
                text = f"a new id on index {told.index}, which has a call: read as another call"
                yield from self._habit("index-reused", "warning", text, frame)
            choice.at[told.index] = call
        if told.id and told.id in choice.by_id:
            yield self._doubt(choice, id_twice(told.id), frame)
        elif told.id:
            choice.by_id[told.id] = call
        if choice.reason is not None:
            choice.late = True
            text = "a tool call begins after the finish reason"
            yield from self._habit("after-finish", "warning", text, frame)
        call.hot = told.form == "json"
        choice.calls.append(call)
        choice.open[call.segment] = call
        yield SegmentStarted(
            *(call.segment, "tool_call", frame.number, told.type, told.name, told.id),
            choice=choice.number,
            form=told.form,
        )
        yield from self._add(choice, call, told, frame)

    # ------------------------------------------------------------------ what it adds

    def _identify(self, choice: Choice, call: Call, told: Said, frame: Frame) -> Iterator[Event]:
        """A name or an id that comes again, late, in pieces, or that contradicts."""
        if told.form != call.said.form:
            text = f"a tool call of type {call.said.type!r:.40} goes on as {told.type!r:.40}"
            yield self._fault("call-type", text, frame)
        if told.id and told.id != call.id:
            if call.id or told.id in choice.by_id:
                text = f"a call with the id {call.id[:80]!r} goes on with the id {told.id[:80]!r}"
                yield from self._doubt_call(choice, call, text, frame)
            else:
                call.id = told.id
                choice.by_id[told.id] = call
                yield Identified(call.segment, call_id=told.id)
        if told.name and not told.id and call.pieces:
            call.named_again = True
        if not told.name or told.name == call.name:
            return
        if not call.name:
            call.name = told.name
        elif call.id and not call.pieces and not told.name.startswith(call.name):
            call.name += told.name
            text = f"the name of a tool comes in pieces; joined: {call.name[:80]!r}"
            yield from self._habit("name-in-pieces", "warning", text, frame)
        else:
            text = f"one tool call is named {call.name[:80]!r}, then {told.name[:80]!r}"
            yield from self._doubt_call(choice, call, text, frame)
            return
        yield Identified(call.segment, name=call.name)

    def _add(self, choice: Choice, call: Call, told: Said, frame: Frame) -> Iterator[Event]:
        for field, value in told.more.items():
            yield Attached(call.segment, field, value)
        piece = told.given or ""
        if isinstance(piece, dict):
            piece = json.dumps(piece, ensure_ascii=False, separators=(",", ":"))
        if not piece:
            return
        if call.stopped:
            if not call.doubted and _restates(call, piece):
                text = "a tool call is said again after the finish reason; kept once"
                yield from self._habit("call-restated", "warning", text, frame)
                call.pieces = [piece]  # equal; what comes next is compared with the latest
                return
            text = f"the call {call.id[:80]!r} goes on after the finish reason"
            yield from self._doubt_call(choice, call, text, frame)
            return
        if call.said.form == "text" and told.id and _restates(call, piece):
            text = "a custom tool's whole input comes again: the same call restated, or its rest"
            yield from self._doubt_call(choice, call, text, frame)
        call.pieces.append(piece)
        call.size += len(piece)
        yield InputDelta(call.segment, piece)

    # ------------------------------------------------------------------ its end

    def _leave(self, choice: Choice, frame: Frame) -> Iterator[Event]:
        """Stop the open text or thinking of a choice: something else begins."""
        if choice.flow:
            del choice.open[choice.flow]
            yield SegmentStopped(choice.flow, frame.number)
            choice.lane = choice.flow = ""

    def _stop_open(self, choice: Choice, frame: Frame) -> Iterator[Event]:
        """Stop what is open in a choice, in the order in which it started."""
        opened = list(choice.open.items())
        choice.open.clear()
        choice.lane = choice.flow = ""
        for segment, call in opened:
            if isinstance(call, Call):
                yield from self._at_stop(choice, call, frame)
            for field, pieces in call.items() if isinstance(call, dict) else ():
                yield Attached(segment, field, "".join(pieces))
            yield SegmentStopped(segment, frame.number)
        if opened and len(choice.calls) > 1 and not all(call.id for call in choice.calls):
            text = f"{len(choice.calls)} tool calls, and not each has an id to tell it by"
            yield from self._doubt_call(choice, choice.calls[0], text, frame)

    def _at_stop(self, choice: Choice, call: Call, frame: Frame) -> Iterator[Event]:
        call.stopped, call.hot = True, False
        if not call.name:
            text = f"a tool call without a name (index {call.said.index}): its start is missing"
            yield self._fault("call-without-name", text, frame)
        if not call.id and call.said.index != LEGACY:
            text = "a tool call without an id: its result can't name it"
            yield from self._habit("call-without-id", "warning", text, frame)
        values = _values("".join(call.pieces)) if call.said.form == "json" else []
        if len(values) < 2:
            return
        if call.id and not call.named_again and _all_the_same(values):
            text = "a tool call's whole input came more than once; kept once"
            yield from self._habit("call-restated", "warning", text, frame)
            call.pieces = [values[0]]
            yield Restated(call.segment, values[0])
        else:
            text = f"{len(values)} whole inputs on one tool call ({call.name[:80]!r})"
            yield from self._doubt_call(choice, call, text, frame)

    # ------------------------------------------------------------------ what can't be proved

    def _doubt(self, choice: Choice, text: str, frame: Frame) -> Event:
        if choice.number:  # it is not judged
            return Problem("ambiguous", "warning", text, frame.number)
        return Ambiguous(text, frame.number)

    def _doubt_call(self, choice: Choice, call: Call, text: str, frame: Frame) -> Iterator[Event]:
        if not call.doubted:  # one reason is enough to hold it
            call.doubted = True
            yield self._doubt(choice, text, frame)


def _unfinished(call: Call) -> bool:
    """Whether an input has begun and surely needs more; by its last piece, so that this is cheap"""
    return bool(call.pieces) and not call.pieces[-1].rstrip().endswith("}")


def _restates(call: Call, piece: str) -> bool:
    """Whether a piece is the whole input that a call has already."""
    if call.said.form == "text":
        return len(piece) == call.size and piece == "".join(call.pieces)
    return same_json("".join(call.pieces), piece)


def _values(text: str) -> list[str]:
    """The JSON objects that a text is, one after the other; [] where it is anything else."""
    values: list[str] = []
    at = 0
    text = text.strip()
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            value, end = _value_at(text, at)
        except (ValueError, RecursionError):
            return []
        if not isinstance(value, dict):
            return []
        values.append(text[at:end])
        at = end
    return values


def _all_the_same(values: list[str]) -> bool:
    found: set[str] = set()
    for value in values:
        try:
            found.add(json.dumps(parse(value), sort_keys=True))
        except NotJSON:
            return False
        if len(found) > 1:
            return False
    return True
