"""The parts of a Gemini answer, and the segments that are made of them.

No part has an id or a stop. Text runs on until its kind changes; a part that carries more than its
text (a signature) stands alone, since only that very part may carry it back. A call comes whole,
or as pieces by path (`gemini_args.py`) between a part that names it and one that says no more will
come. `gemini.py` is the grammar around this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .dialect import Dialect, id_twice, word
from .events import (
    Ambiguous,
    Attached,
    Event,
    InputDelta,
    Kind,
    SegmentStarted,
    SegmentStopped,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    Unknown,
)
from .gemini_args import Arguments
from .gemini_tables import FINISH, FLAGS, PARTS, SERVER, Call, Candidate
from .payload import NotJSON, compact, is_utf8
from .sse import Frame

__all__ = ["APPEND", "PartReader"]

#: Kind of text -> the event that appends to it.
APPEND: dict[str, Callable[[str, str], Event]] = {"text": TextDelta, "thinking": ThinkingDelta}


#: What a call may hold.
CALL_FIELDS = {"id", "name", "args", "partialArgs", "willContinue"}


class PartReader(Dialect):
    """What the parts of each candidate state."""

    def __init__(self, named: bool = True) -> None:
        super().__init__(named)
        self._id = ""  # of the answer
        self._ids: dict[tuple[int, str], str] = {}  # (candidate, call id) -> the call
        self._without_id: dict[tuple[int, str], int] = {}  # (candidate, call) -> its frame
        self._names: set[str] = set()  # of the calls that a client would run
        self._answered: set[str] = set()  # names of calls that were answered in the stream

    # ------------------------------------------------------------------ a part

    def _part(self, candidate: Candidate, part: Any, frame: Frame) -> Iterator[Event]:
        if not isinstance(part, dict):
            yield self._fault("malformed", "a part that is no object", frame)
            return
        kinds = [name for name, value in part.items() if name in PARTS and value is not None]
        if len(kinds) > 1 and part.get("text") == "":
            kinds.remove("text")
        if len(kinds) > 1:
            text = f"one part with {' and '.join(kinds)}; it may have only one of them"
            yield self._fault("malformed", text, frame)
        kind = kinds[0] if kinds else ""
        value = part.get(kind)
        if not isinstance(value, str if kind == "text" else dict | None):
            yield self._fault("malformed", f"a {kind} that is a {type(value).__name__}", frame)
        elif kind == "text":
            yield from self._text(candidate, part, frame)
        elif kind == "functionCall":
            yield from self._function(candidate, part, frame)
        elif kind in SERVER:
            yield from self._server(candidate, kind, part, frame)
        else:
            yield from self._other(candidate, kind, part, frame)

    def _text(self, candidate: Candidate, part: dict[str, Any], frame: Frame) -> Iterator[Event]:
        kind: Kind = "thinking" if part.get("thought") is True else "text"
        more = [name for name in part if name not in ("text", "thought") and part[name] is not None]
        if not (part["text"] or more):
            return
        if more or candidate.run != kind:
            type = "text" if kind == "text" else "thought"
            yield from self._begin(candidate, kind, type, frame)
        if part["text"]:
            yield APPEND[kind](candidate.open, part["text"])
        yield from self._with(candidate.open, part, ("text", "thought"), frame)
        candidate.run = "" if more else kind

    def _other(
        self, candidate: Candidate, kind: str, part: dict[str, Any], frame: Frame
    ) -> Iterator[Event]:
        """A result, a medium, or what is not known here: kept whole, and returned as it came."""
        if not any(value is not None for value in part.values()):
            yield from self._habit("empty-part", "note", "a part with nothing in it", frame)
            return
        if not kind:
            kind = next((name for name in part if name not in FLAGS), "thoughtSignature")
            yield Unknown(f"part {kind[:100]}", frame.number)
        if kind == "functionResponse":
            name = word(part[kind].get("name"))
            self._answered.add(name)
            yield from self._who_ran(name, frame)
        yield from self._begin(candidate, "other", kind[:100], frame)
        yield from self._with(candidate.open, part, (), frame)

    def _who_ran(self, name: str, frame: Frame) -> Iterator[Event]:
        """A call that the stream itself answers has been run already, by somebody."""
        if name in self._names and name in self._answered:
            text = f"{name[:80]!r} was called and answered in one stream: who ran it?"
            yield Ambiguous(text, frame.number)

    def _server(
        self, candidate: Candidate, kind: str, part: dict[str, Any], frame: Frame
    ) -> Iterator[Event]:
        """A call of a tool that the provider itself runs."""
        call = part[kind]
        name = SERVER[kind] or word(call.get("toolType")) or kind
        given = {key: value for key, value in call.items() if key != "id"}
        if kind == "toolCall":
            given = call.get("args") or {}
        call_id = word(call.get("id"))
        yield from self._begin(candidate, "tool_call", kind, frame, name, call_id, server=True)
        yield from self._ended(candidate, candidate.open, compact(given), part, kind, frame)

    def _begin(
        self,
        candidate: Candidate,
        kind: Kind,
        type: str,
        frame: Frame,
        name: str = "",
        call_id: str = "",
        server: bool = False,
    ) -> Iterator[Event]:
        """A new segment; the one before it has no more to come."""
        if candidate.open:
            yield SegmentStopped(candidate.open, frame.number)
        number, choice = candidate.parts, candidate.number
        candidate.open = f"{choice}.{number}" if choice else str(number)
        candidate.parts, candidate.run = number + 1, ""
        yield SegmentStarted(
            candidate.open, kind, frame.number, type, name, call_id, server, choice
        )

    def _with(
        self, segment: str, part: dict[str, Any], but: tuple[str, ...], frame: Frame
    ) -> Iterator[Event]:
        """What else a part carries: its signature, byte for byte, and any other field."""
        for name, value in part.items():
            if name == "thoughtSignature" and isinstance(value, str):
                if value:
                    yield SignatureDelta(segment, value)
            elif name == "thoughtSignature" and value is not None:
                yield self._fault("malformed", "a thought signature that is no text", frame)
            elif name not in but and value is not None:
                yield Attached(segment, name, value)

    def _ended(
        self,
        candidate: Candidate,
        segment: str,
        text: str,
        part: dict[str, Any],
        kind: str,
        frame: Frame,
    ) -> Iterator[Event]:
        """A call's whole input, what came with it, and its stop."""
        yield InputDelta(segment, text)
        yield from self._with(segment, part, (kind,), frame)
        yield SegmentStopped(segment, frame.number)
        if candidate.open == segment:
            candidate.open = ""

    # ------------------------------------------------------------------ a call

    def _function(
        self, candidate: Candidate, part: dict[str, Any], frame: Frame
    ) -> Iterator[Event]:
        """A call: whole, or the beginning of one, or more of the one that has begun."""
        given, open_call = part["functionCall"], candidate.call
        name, call_id, args = given.get("name"), given.get("id"), given.get("args")
        if not isinstance(name, str | None) or not isinstance(call_id, str | None):
            yield self._fault("malformed", "a call's name and id must be text", frame)
            return
        if not isinstance(args, dict | None):
            text = f"a call's args are a {type(args).__name__}, not an object"
            yield self._fault("malformed", text, frame)
            return
        if strange := given.keys() - CALL_FIELDS:  # it may be what the call is about
            text = f"a call with {min(strange)[:80]!r}, not understood"
            yield Ambiguous(text, frame.number)
        more = bool(call_id) and open_call is not None and open_call.call_id == call_id
        if not name or more:
            yield from self._go_on(candidate, part, frame)
            return
        if open_call is not None:
            yield from self._abandon(candidate, open_call, f"{name[:80]!r} begins", frame.number)
        if given.get("willContinue") is True or given.get("partialArgs"):
            yield from self._start_call(candidate, part, frame)
            return
        text = compact(args or {})
        own = self._known(candidate, name, call_id or "", text, frame)
        if own is None:  # said again
            text = f"the call {(call_id or '')[:80]!r} came again; it is kept once"
            yield from self._habit("call-again", "note", text, frame)
            return
        yield from own
        yield from self._begin_call(candidate, name, call_id or "", frame)
        yield from self._ended(candidate, candidate.open, text, part, "functionCall", frame)

    def _known(
        self, candidate: Candidate, name: str, call_id: str, text: str, frame: Frame
    ) -> tuple[Event, ...] | None:
        """Remember a call; None where it is the same as one before, else what is unclear in it."""
        call = f"{name}({text})"
        if not call_id:  # in one chunk two equal calls are two; in two they may be one, said again
            first = self._without_id.setdefault((candidate.number, call), frame.number)
            again = f"the same call of {name[:80]!r} came twice, without an id: one or two?"
            return (Ambiguous(again, frame.number),) if first != frame.number else ()
        before = self._ids.setdefault((candidate.number, call_id), call)
        if before is call:
            return ()
        if before == call:
            return None
        return (Ambiguous(id_twice(call_id), frame.number),)

    def _begin_call(
        self, candidate: Candidate, name: str, call_id: str, frame: Frame
    ) -> Iterator[Event]:
        self._names.add(name)
        yield from self._who_ran(name, frame)
        made = call_id or self._made_up(candidate)
        yield from self._begin(candidate, "tool_call", "functionCall", frame, name, made)
        candidate.calls += 1

    def _made_up(self, candidate: Candidate) -> str:
        """An id of ours, the same at every replay: the wire need not give one."""
        answer = f"{self._id[:80]}-" if self._id else ""
        choice = f"{candidate.number}." if candidate.number else ""
        return f"made-up-{answer}{choice}{candidate.calls + 1}"

    def _start_call(
        self, candidate: Candidate, part: dict[str, Any], frame: Frame
    ) -> Iterator[Event]:
        """The beginning of a call whose arguments come by path."""
        given = part["functionCall"]
        name, call_id = given["name"], given.get("id") or ""
        yield from self._begin_call(candidate, name, call_id, frame)
        segment, candidate.open = candidate.open, ""
        candidate.call = Call(segment, name, call_id, Arguments())
        yield from self._pieces(candidate, candidate.call, part, frame)

    def _go_on(self, candidate: Candidate, part: dict[str, Any], frame: Frame) -> Iterator[Event]:
        """A part without a name: more of the call that is open, or its end."""
        given, call = part["functionCall"], candidate.call
        if call is None:
            text = "a part of a call that never began: its beginning may be lost"
            yield Ambiguous(text, frame.number)
            return
        if given.get("id") not in (None, "", call.call_id):
            text = f"a part of call {given['id'][:80]!r} inside call {call.call_id[:80]!r}"
            yield Ambiguous(text, frame.number)
            return
        yield from self._pieces(candidate, call, part, frame)

    def _pieces(
        self, candidate: Candidate, call: Call, part: dict[str, Any], frame: Frame
    ) -> Iterator[Event]:
        given = part["functionCall"]
        if not is_utf8(frame.data):  # no event of this frame need show it
            yield self._fault("invalid-utf8", "bytes that are not UTF-8, inside a call", frame)
        pieces = given.get("partialArgs")
        ends = given.get("willContinue") is not True
        try:
            if given.get("args"):
                raise NotJSON("its arguments come whole and in pieces")
            for piece in pieces if isinstance(pieces, list) else [pieces] if pieces else []:
                call.arguments.add(piece)
            if ends:
                call.arguments.whole()
        except NotJSON as why:
            call.unclear = True
            yield Ambiguous(f"the arguments of {call.name[:80]!r}: {why}", frame.number)
        if not ends:
            yield from self._with(call.segment, part, ("functionCall",), frame)
            return
        candidate.call = None
        text = call.arguments.text()
        if call.arguments.twice:
            said = f"the arguments of {call.name[:80]!r}: the same piece came twice in a row"
            yield Ambiguous(said, frame.number)
        if not call.unclear:
            own = self._known(candidate, call.name, call.call_id, text, frame)
            again = f"the call {call.call_id[:80]!r} came again, in pieces"
            yield from own if own is not None else (Ambiguous(again, frame.number),)
        text = text[:-1] if call.unclear else text  # what is not known to be whole must not parse
        yield from self._ended(candidate, call.segment, text, part, "functionCall", frame)

    def _abandon(self, candidate: Candidate, call: Call, why: str, at: int) -> Iterator[Event]:
        """A call that never ended: what came of it must not parse."""
        candidate.call = None
        if FINISH.get(candidate.finish) != "max_tokens":
            text = f"{why}, but the call of {call.name[:80]!r} never ended"
            yield Ambiguous(text, at)
        yield InputDelta(call.segment, call.arguments.text()[:-1])
        yield SegmentStopped(call.segment, at)
