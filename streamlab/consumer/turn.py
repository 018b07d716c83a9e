"""The turn: what has been assembled so far, as a value.

`reduce(turn, event)` is pure: it returns a new turn, or the *same object* where nothing changed,
so a change is seen by identity and every earlier turn stays what it was. Parts are found by the
segment id that their start fixed. Text is appended, never compared with what is there. A tool's
input is parsed once, when its segment stops, and never repaired: what does not parse stays text.

Growing text is kept as a chain of fragments, each pointing at the one before it: appending costs
the same at the first fragment as at the millionth, and the older turn still ends where it ended.

Display and history are two things. A turn may always be shown; `consumer/gates.py` and the
conversation decide what it is worth. It must not know bytes, frames or vendors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Literal

import msgspec

from streamlab.wire.events import (
    Ambiguous,
    Attached,
    BoundExceeded,
    Event,
    Identified,
    InputDelta,
    Kind,
    MessageCompleted,
    MessageStarted,
    Problem,
    ProviderError,
    Restated,
    SegmentStarted,
    SegmentStopped,
    SignatureDelta,
    StopReported,
    TextDelta,
    ThinkingDelta,
    Tokens,
    Unknown,
    UsageReported,
)
from streamlab.wire.payload import NotJSON, joined, parse_input

__all__ = ["EMPTY", "Segment", "Turn", "fold", "items_of", "reduce"]

#: A chain of fragments: (everything before, the last one); None is the empty chain.
Chain = tuple[Any, Any] | None

#: Problems a turn keeps; of a stream that is nothing but faults the first ones tell enough.
MAX_PROBLEMS = 100

#: Counts of usage that a turn keeps; a vendor has a dozen.
MAX_USAGE = 100

#: Labels that a client-side call overrules: the model stopped for the tool, whatever they say.
OVERRULED = ("end_turn", "stop_sequence")


def items_of(chain: Chain) -> list[Any]:
    """A chain from its first item to its last."""
    items: list[Any] = []
    while chain is not None:
        chain, item = chain
        items.append(item)
    items.reverse()
    return items


class Segment(msgspec.Struct, frozen=True, eq=False):
    """One text, thinking or tool-call part; its id is fixed before any content."""

    id: str
    kind: Kind
    position: int  #: 0 for the first segment that started
    start: SegmentStarted
    content: Chain = None
    status: Literal["streaming", "ready", "error"] = "streaming"
    more: Chain = None  #: (name, value) of what was attached; of a signature (None, text)
    input: Any = None  #: of a tool call: parsed at its end (or a text, where that is its form)
    error: str = ""  #: why the input does not parse

    @property
    def text(self) -> str:
        """Everything appended so far; for a tool call the JSON text as it streamed."""
        return joined(items_of(self.content))

    @property
    def signature(self) -> str:
        """Thinking's proof, byte for byte."""
        return "".join(value for name, value in items_of(self.more) if name is None)

    @property
    def attached(self) -> dict[str, Any]:
        """What else came with the segment: a text's citations in a list, of others the latest."""
        found: dict[str, Any] = {}
        citations: list[Any] = []
        for name, value in items_of(self.more):
            if name == "citation" and self.kind == "text":
                citations.append(value)
            elif name is not None:
                found[name] = value
        if citations:  # those of the start are the event's own list: it stays as it is
            first = found.get("citations")
            found["citations"] = [*(first if isinstance(first, list) else ()), *citations]
        return found

    def _facts(self) -> tuple[Any, ...]:
        return (self.start, self.status, self.text, items_of(self.more), self.input, self.error)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Segment) and self._facts() == other._facts()

    def __ne__(self, other: object) -> bool:  # msgspec would compare identities
        return not self == other

    def __hash__(self) -> int:
        return hash((self.id, self.status))

    def __repr__(self) -> str:
        text = self.text
        shown = text if len(text) <= 60 else f"{text[:60]}… ({len(text)} characters)"
        return f"Segment({self.id}, {self.kind}, {self.status}, {shown!r})"


class Facts(msgspec.Struct, frozen=True):
    """What is known of the answer as a whole."""

    id: str = ""
    model: str = ""
    stop_reason: str | None = None
    raw_stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: Any = None
    usage: dict[str, Any] = {}  #: as the vendor words it
    tokens: Tokens = Tokens()
    completed: bool = False
    error: str = ""  #: the provider's own, as "type: message"
    problems: tuple[Problem, ...] = ()
    more_problems: int = 0  #: how many there were beyond `MAX_PROBLEMS`
    broken: bool = False  #: whether a problem of severity error was among them


class Turn(msgspec.Struct, frozen=True, eq=False):
    """One answer, as far as it has come: its open segments, its closed ones, its facts.

    Only the open ones are looked at again, so a long answer costs no more an event than a short
    one.
    """

    open: tuple[Segment, ...] = ()
    closed: Chain = None
    facts: Facts = Facts()
    started: int = 0  #: how many segments have started

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All segments, in the order in which they started."""
        return tuple(sorted([*items_of(self.closed), *self.open], key=lambda s: s.position))

    def find(self, segment_id: str) -> Segment | None:
        """The segment with an id, looked for among the open ones, then from the last closed on."""
        found, chain = _find(self, segment_id), self.closed
        while found is None and chain is not None:
            chain, closed = chain
            found = closed if closed.id == segment_id else None
        return found

    @property
    def complete(self) -> bool:
        """Whether the whole sequence came, its marker last, and nothing broke it."""
        facts = self.facts
        whole = facts.completed and facts.stop_reason is not None and not self.open
        return whole and not facts.broken and not facts.error

    @property
    def text(self) -> str:
        """All visible text of the first choice, joined."""
        return "".join(s.text for s in self.segments if s.kind == "text" and not s.start.choice)

    @property
    def calls(self) -> tuple[Segment, ...]:
        """The first choice's tool calls that the client would run, not the provider itself."""
        calls = (s for s in self.segments if s.kind == "tool_call" and not s.start.server)
        return tuple(call for call in calls if not call.start.choice)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Turn)
            and self.segments == other.segments
            and self.facts == other.facts
        )

    def __ne__(self, other: object) -> bool:  # msgspec would compare identities
        return not self == other

    def __hash__(self) -> int:
        return hash(self.segments)

    def __repr__(self) -> str:
        return f"Turn({list(self.segments)!r}, stop_reason={self.facts.stop_reason!r})"


EMPTY = Turn()


def reduce(turn: Turn, event: Event) -> Turn:
    """The turn after one event; the same object where the event changes nothing in it."""
    change = CHANGES.get(type(event))
    return turn if change is None else change(turn, event)


def fold(events: Iterable[Event], turn: Turn = EMPTY) -> Turn:
    """The turn after many events."""
    for event in events:
        turn = reduce(turn, event)
    return turn


def _append(turn: Turn, event: TextDelta | ThinkingDelta | InputDelta) -> Turn:
    text, opened = event.text, turn.open
    if not text:
        return turn
    old = opened[0] if len(opened) == 1 else _find(turn, event.segment)
    if old is None or old.id != event.segment:
        return turn
    grown: Chain = (old.content, text)
    new = Segment(old.id, old.kind, old.position, old.start, grown, old.status, old.more)
    still = (new,) if len(opened) == 1 else _swapped(opened, old, new)
    return Turn(still, turn.closed, turn.facts, turn.started)


def _find(turn: Turn, segment_id: str) -> Segment | None:
    for segment in turn.open:
        if segment.id == segment_id:
            return segment
    return None


def _swapped(opened: tuple[Segment, ...], old: Segment, new: Segment) -> tuple[Segment, ...]:
    return tuple([new if segment is old else segment for segment in opened])


def _start(turn: Turn, event: SegmentStarted) -> Turn:
    if turn.facts.completed:  # no part of an answer begins after its end
        return turn
    segment = Segment(event.segment, event.kind, turn.started, event)
    return Turn((*turn.open, segment), turn.closed, turn.facts, turn.started + 1)


def _identify(turn: Turn, event: Identified) -> Turn:
    old = _find(turn, event.segment)
    if old is None:
        return turn
    known = {"name": event.name, "call_id": event.call_id}
    start = msgspec.structs.replace(old.start, **{key: word for key, word in known.items() if word})
    if start == old.start:
        return turn
    new = msgspec.structs.replace(old, start=start)
    return Turn(_swapped(turn.open, old, new), turn.closed, turn.facts, turn.started)


def _restate(turn: Turn, event: Restated) -> Turn:
    old = _find(turn, event.segment)
    if old is None or old.text == event.text:
        return turn
    new = msgspec.structs.replace(old, content=(None, event.text))
    return Turn(_swapped(turn.open, old, new), turn.closed, turn.facts, turn.started)


def _stop(turn: Turn, event: SegmentStopped) -> Turn:
    segment = _find(turn, event.segment)
    if segment is None:
        return turn
    rest = tuple(s for s in turn.open if s is not segment)
    facts = turn.facts
    segment = _finished(segment)
    if segment.error:
        text = f"the input of {segment.start.name or 'a tool'} does not parse: {segment.error}"
        facts = _with_problem(facts, Problem("tool-input", "warning", text, event.at))
    return Turn(rest, (turn.closed, segment), facts, turn.started)


def _finished(segment: Segment) -> Segment:
    """The segment at its end: a tool's input is parsed now, once."""
    if segment.kind != "tool_call":
        return msgspec.structs.replace(segment, status="ready")
    text = segment.text
    if segment.start.form == "text":
        return msgspec.structs.replace(segment, status="ready", input=text)
    try:
        value = parse_input(text) if text.strip() else {}
    except NotJSON as why:
        return msgspec.structs.replace(segment, status="error", error=str(why))
    if not isinstance(value, dict):
        what = f"it is a {type(value).__name__}, not an object"
        return msgspec.structs.replace(segment, status="error", error=what)
    return msgspec.structs.replace(segment, status="ready", input=value)


def _attach(turn: Turn, event: Attached | SignatureDelta) -> Turn:
    old = _find(turn, event.segment)
    if old is None:
        return turn
    item = (None, event.text) if isinstance(event, SignatureDelta) else (event.name, event.value)
    new = msgspec.structs.replace(old, more=(old.more, item))
    return Turn(_swapped(turn.open, old, new), turn.closed, turn.facts, turn.started)


def _know(turn: Turn, **facts: Any) -> Turn:
    """The turn with some facts known; the same object where they were known already."""
    new = msgspec.structs.replace(turn.facts, **facts)
    return turn if new == turn.facts else _know_facts(turn, new)


def _message(turn: Turn, event: MessageStarted) -> Turn:
    return _know(turn, id=event.id, model=event.model)


def _stop_reason(turn: Turn, event: StopReported) -> Turn:
    if turn.facts.completed:
        return turn
    return _know(
        turn,
        stop_reason=event.reason,
        raw_stop_reason=event.raw,
        stop_sequence=event.sequence or turn.facts.stop_sequence,  # a later null takes nothing back
        stop_details=event.details or turn.facts.stop_details,
    )


def _usage(turn: Turn, event: UsageReported) -> Turn:
    facts, given, new = turn.facts, event.usage, event.tokens
    if None in given.values():
        given = {key: value for key, value in given.items() if value is not None}
    usage = {**facts.usage, **given}
    if len(usage) > MAX_USAGE:
        usage = dict(islice(usage.items(), MAX_USAGE))
    old = facts.tokens
    tokens = Tokens(
        old.input if new.input is None else new.input,
        old.output if new.output is None else new.output,
        old.thinking if new.thinking is None else new.thinking,
    )
    if usage == facts.usage and tokens == old:
        return turn
    return _know_facts(turn, msgspec.structs.replace(facts, usage=usage, tokens=tokens))


def _complete(turn: Turn, event: MessageCompleted) -> Turn:
    label = turn.facts.stop_reason
    if label in OVERRULED and turn.calls:
        text = f"the stop reason says {turn.facts.raw_stop_reason!r}, but there is a tool call"
        turn = _problem(turn, Problem("stop-reason-label", "warning", text, event.at))
        turn = _know(turn, stop_reason="tool_use")
    elif label == "tool_use" and not turn.calls:
        text = "the stop reason says tool_use, but there is no call for the client to run"
        turn = _problem(turn, Problem("tool-use-without-call", "warning", text, event.at))
    return _know(turn, completed=True)


def _problem(turn: Turn, event: Problem) -> Turn:
    return _know_facts(turn, _with_problem(turn.facts, event))


def _provider_error(turn: Turn, event: ProviderError) -> Turn:
    text = f"the provider reports {event.type}: {event.message}"
    facts = _with_problem(turn.facts, Problem("provider-error", "error", text, event.at))
    said = facts.error or f"{event.type}: {event.message}"
    return _know_facts(turn, msgspec.structs.replace(facts, error=said))


def _unknown(turn: Turn, event: Unknown) -> Turn:
    text = f"{event.type!r} is not known here; kept, and granted nothing"
    return _problem(turn, Problem("unknown", "note", text, event.at))


def _ambiguous(turn: Turn, event: Ambiguous) -> Turn:
    return _problem(turn, Problem("ambiguous", "warning", event.message, event.at))


def _bound(turn: Turn, event: BoundExceeded) -> Turn:
    bound = f"{event.limit:,.10g} {event.bound}"
    text = f"the stream ran over the bound of {bound} (found {event.found:,.10g})"
    return _problem(turn, Problem("bound", "warning", text, event.at))


def _know_facts(turn: Turn, facts: Facts) -> Turn:
    return Turn(turn.open, turn.closed, facts, turn.started)


def _with_problem(facts: Facts, problem: Problem) -> Facts:
    broken = facts.broken or problem.severity == "error"
    if len(facts.problems) >= MAX_PROBLEMS:
        return msgspec.structs.replace(facts, more_problems=facts.more_problems + 1, broken=broken)
    return msgspec.structs.replace(facts, problems=(*facts.problems, problem), broken=broken)


#: Event type -> what it changes. An event that is not here changes nothing in a turn.
CHANGES: dict[type, Callable[[Turn, Any], Turn]] = {
    TextDelta: _append,
    ThinkingDelta: _append,
    InputDelta: _append,
    SegmentStarted: _start,
    Identified: _identify,
    Restated: _restate,
    SegmentStopped: _stop,
    SignatureDelta: _attach,
    Attached: _attach,
    MessageStarted: _message,
    StopReported: _stop_reason,
    UsageReported: _usage,
    MessageCompleted: _complete,
    ProviderError: _provider_error,
    Problem: _problem,
    Unknown: _unknown,
    Ambiguous: _ambiguous,
    BoundExceeded: _bound,
}
