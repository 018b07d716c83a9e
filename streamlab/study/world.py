"""A small world around one consumer: what can happen to it, and what is really so.

The world keeps two things apart. The *truth*: what really came, what really happened to the effect,
what was cancelled. And the *consumer*: its state, what it takes for complete, what it has counted.
So whether the consumer is right can be asked without asking the consumer.

`step(world, action)` is pure. The consumer's part of it is the real one: `TABLE` and `INPUT_OF`,
the gates, `receive`, what a person is told; the effects behave as `RecordingAdapter` does, and a
test compares every step with `commit` and `reconcile` themselves. `Rules` hold what a guard
changes when it is off.

Read next: `guards.py`, which searches this world for what goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from streamlab.consumer.attempt import INPUT_OF, SAID, TABLE, TERMINAL, Attempt, Input, State
from streamlab.consumer.delivery import Envelope, Receipt, receive
from streamlab.consumer.gates import EFFECT, Policy, Proposal, judge_turn
from streamlab.consumer.turn import Turn, fold
from streamlab.consumer.workitem import ITEMS
from streamlab.wire.events import (
    Ambiguous,
    BoundExceeded,
    Event,
    InputDelta,
    MessageCompleted,
    Problem,
    ProviderError,
    SegmentStarted,
    SegmentStopped,
    StopReported,
    StreamEnded,
    TextDelta,
)

__all__ = ["ACTIONS", "RULES", "START", "Action", "Rules", "World", "possible", "step"]

Table = Mapping[State, Mapping[Input, State]]
Receiver = Callable[[Envelope, Attempt, tuple[Envelope, ...]], Receipt]


class World(msgspec.Struct, frozen=True):
    """One moment: first the truth, then what the consumer believes."""

    came: tuple[str, ...] = ()  #: text that came while the attempt was open: each delivery once
    call: str = ""  #: the tool call that came: "open"; whole: "good", or "bad" (it breaks a rule)
    reason: str = ""  #: the stop reason that came
    marker: bool = False  #: the final marker came, after a whole sequence
    ended: bool = False  #: the transport has stopped
    wrong: str = ""  #: the first thing that came after which nothing may be done
    may: bool = True  #: the actor is authorised, as things stand now
    submissions: int = 0  #: how often the effect was asked for
    record: bool = False  #: the effect has happened, and is on record
    delayed: bool = False  #: a submission is still on its way
    closed: bool = False  #: the ledger refuses whatever still comes
    final: State | None = None  #: the first terminal state that the attempt was in

    state: State = State.PREVIEW
    completed: bool = False  #: something was taken for the final marker
    noted: bool = False  #: an error or a violation was noticed
    kept: tuple[str, ...] = ()  #: the deliveries of text that were counted
    told: bool = False  #: a person has been told that the change is made


START = World()

#: Two deliveries of equal text: what one may not take for a repetition.
ENVELOPES = {
    name: Envelope("attempt-1", name, (TextDelta("0", "ha"),)) for name in ("first", "second")
}
NAMES = tuple(ENVELOPES)

#: A call's input as it came. W-7 is labelled Draft already, so the last one breaks the rule.
CALLS = {
    "open": '{"item": "W-7", "label": "Rea',
    "good": '{"item": "W-7", "label": "Ready"}',
    "bad": '{"item": "W-7", "label": "Draft"}',
}

WHOLE = ("good", "bad")

CALL, STOP = SegmentStarted("1", "tool_call", 2, name="change_label"), SegmentStopped("1", 4)
MARKER = MessageCompleted(6)
ERROR = ProviderError("overloaded_error", "Overloaded", 6)

#: What each action of the stream states, as the reader would.
EVENTS: dict[str, Event] = {
    "text": TextDelta("0", "ha"),
    "call": InputDelta("1", CALLS["open"]),
    "stop": STOP,
    "reason": StopReported("tool_use", "tool_use", 5),
    "marker": MARKER,
    "error": ERROR,
    "violation": Problem("order", "error", "a delta after its block stopped", 6),
    "ambiguous": Ambiguous("two calls share this index", 6),
    "bound": BoundExceeded("bytes", 1000, 1001, 6),
    "end": StreamEnded("eof", 7),
}


def _means(event: Event) -> Input:
    tell = INPUT_OF.get(type(event))
    return (tell and tell(event)[0]) or Input.CONTENT


def by_identity(envelope: Envelope, attempt: Attempt, earlier: tuple[Envelope, ...]) -> Receipt:
    """The real rule: a delivery is known by its name."""
    return receive(envelope, attempt, {each.delivery for each in earlier})


class Rules(msgspec.Struct, frozen=True):
    """What the consumer goes by. Each guard is a part of this; `RULES` has all of them on."""

    table: Table
    means: Mapping[str, Input]  #: what the consumer takes each action of the stream for
    said: Mapping[State, str]
    accept: frozenset[str] = EFFECT.accept
    receive: Receiver = by_identity
    asks_again: bool = True  #: authorisation is asked for again at the commit
    submits_again: bool = False  #: where the outcome is unknown
    closes: bool = True  #: what is given up as not happened is closed in the ledger
    waits: bool = True  #: the gates are asked when the transport has stopped, not before
    holds_all: bool = False  #: the gates hold whatever comes


RULES = Rules(TABLE, {name: _means(event) for name, event in EVENTS.items()}, SAID)


class Action(msgspec.Struct, frozen=True):
    """One thing that can happen."""

    name: str
    says: str
    possible: Callable[[World], bool]
    happens: Callable[[World, Rules], World]


def possible(world: World) -> list[str]:
    """The names of what can happen now, in the order of `ACTIONS`."""
    now = [action.name for action in USUAL if action.possible(world)]
    return now if world.final is None else now + LATE


def step(world: World, action: str, rules: Rules = RULES) -> World:
    """The world after one action; the same object where it can't happen or changes nothing."""
    does = ACTIONS[action]
    if not does.possible(world):
        return world
    after = does.happens(world, rules)
    if after.final is None and after.state in TERMINAL:
        after = _but(after, final=after.state)
    if not after.told and rules.said[after.state] == SAID[State.COMMITTED]:
        after = _but(after, told=True)
    return world if after == world else after


# --- The consumer's side --------------------------------------------------------------------------

_but = msgspec.structs.replace


def _given(world: World, given: Input, rules: Rules, **truth: Any) -> World:
    """The world after the machine was given an input: the table decides."""
    return _but(world, state=rules.table[world.state].get(given, world.state), **truth)


def _stream(name: str, **truth: Any) -> Callable[[World, Rules], World]:
    """Something that the stream states: what it is, and what the consumer takes it for."""

    def happens(world: World, rules: Rules) -> World:
        given = rules.means[name]
        if world.final:  # late: the table is asked, and nothing else listens
            return _given(world, given, rules, **truth)
        return _given(
            world,
            given,
            rules,
            completed=world.completed or given is Input.COMPLETED,
            noted=world.noted or given in (Input.ERROR, Input.VIOLATION),
            **truth,
        )

    return happens


def _breaks(name: str) -> Callable[[World, Rules], World]:
    """Something of the stream after which nothing may be done."""
    happens = _stream(name)
    return lambda world, rules: happens(_wrong(world, name), rules)


def _wrong(world: World, name: str) -> World:
    return world if world.final or world.wrong else _but(world, wrong=name)


def _deliver(world: World, rules: Rules, name: str) -> World:
    earlier = tuple(ENVELOPES[each] for each in world.kept)
    receipt = rules.receive(ENVELOPES[name], Attempt(world.state), earlier)
    if receipt is not Receipt.NEW:
        return world
    return _stream("text", kept=(*world.kept, name))(world, rules)


def _text(world: World, rules: Rules) -> World:
    name = NAMES[len(world.came)]
    heard = _deliver(world, rules, name)
    return heard if world.final else _but(heard, came=(*world.came, name))  # after the end: late


def _gates(world: World, rules: Rules) -> World:
    if rules.waits and not world.ended:
        return world
    if rules.holds_all:
        return _given(world, Input.GATES_HELD, rules)
    turn = _turn(world.came != (), world.call, world.reason, world.noted)
    if world.completed:
        turn = fold([MARKER], turn)
    return _given(world, _outcome(turn, rules.accept, world.may), rules)


@cache
def _turn(text: bool, call: str, reason: str, noted: bool) -> Turn:
    """What the consumer has assembled; the content of a stream is read rightly."""
    events: list[Event] = []
    if text:
        start = SegmentStarted("0", "text", 1)
        events += [start, TextDelta("0", "ha"), SegmentStopped("0", 2)]
    if call:
        events += [CALL, InputDelta("1", CALLS[call])]
    if call in WHOLE:
        events.append(STOP)
    if reason:
        events.append(StopReported(reason, reason, 5))
    return fold([*events, ERROR] if noted else events)


def _rule(call: Proposal) -> str:
    """The business rule: a change changes something."""
    item = ITEMS[call.input["item"]]
    return f"{item.id} is labelled that already" if item.label == call.input["label"] else ""


def _outcome(turn: Turn, accept: frozenset[str], may: bool) -> Input:
    """What the real gates make of a turn."""
    last = judge_turn(turn, Policy(accept, None, _rule, lambda _: "" if may else "no longer"))[-1]
    return last.outcome or (Input.GATES_PASSED if turn.calls else Input.NOTHING_PROPOSED)


def _submits(given: Input, **truth: bool) -> Callable[[World, Rules], World]:
    """The effect is asked for: what comes back, and whether it has happened."""

    def happens(world: World, rules: Rules) -> World:
        if rules.asks_again and not world.may:
            return _given(world, Input.EFFECT_REFUSED, rules)
        return _given(world, given, rules, submissions=world.submissions + 1, **truth)

    return happens


def _reconcile(world: World, rules: Rules) -> World:
    if rules.submits_again:
        again = world.submissions + 1
        return _given(world, Input.EFFECT_RECORDED, rules, submissions=again, record=True)
    if world.record:
        return _given(world, Input.EFFECT_RECORDED, rules)
    return _given(world, Input.EFFECT_REFUSED, rules, closed=rules.closes)


def _cancel(world: World, rules: Rules) -> World:
    begun = world.submissions or world.state in (State.COMMITTING, State.RECONCILING)
    return _given(world if begun else _wrong(world, "cancel"), Input.CANCEL, rules)


# --- What can happen, and when --------------------------------------------------------------------


def _live(world: World) -> bool:
    return not world.ended


def _writing(world: World) -> bool:
    return _live(world) and not world.reason


def _closing(world: World) -> bool:
    """Whether a stop reason can come: there is content, and no block is open."""
    return _writing(world) and (world.call in WHOLE or (world.came != () and not world.call))


def _submitting(world: World) -> bool:
    return world.state is State.COMMITTING and not world.submissions


def _open(world: World) -> bool:
    return _writing(world) and world.call == "open"


def _accepted(world: World, rules: Rules) -> World:
    return _stream("reason", reason="tool_use" if world.call else "end_turn")(world, rules)


#: A search tries them in this order, so among the shortest sequences it finds the one in which
#: things come as they usually do.
USUAL = (
    Action(
        "text",
        'a text fragment arrives: "ha"',
        lambda w: not w.ended and not w.reason and len(w.came) < len(NAMES),
        _text,
    ),
    Action(
        "call",
        "a fragment of a tool call arrives",
        lambda w: _writing(w) and not w.call,
        _stream("call", call="open"),
    ),
    Action("error", "the provider sends an error event", _live, _breaks("error")),
    Action("violation", "the stream breaks its grammar", _live, _breaks("violation")),
    Action(
        "ambiguous",
        "a fragment arrives; nobody knows whose",
        _live,
        _breaks("ambiguous"),
    ),
    Action("bound", "the stream runs over a bound", _live, _breaks("bound")),
    Action("bad stop", "its block stops; it breaks a rule", _open, _stream("stop", call="bad")),
    Action("stop", "its block stops; the call is whole", _open, _stream("stop", call="good")),
    Action("reason", "an accepted stop reason arrives", _closing, _accepted),
    Action(
        "truncated",
        "a stop reason arrives: max_tokens",
        _closing,
        _stream("reason", reason="max_tokens"),
    ),
    Action(
        "marker",
        "the final marker arrives",
        lambda w: _live(w) and w.reason != "" and not w.marker,
        _stream("marker", marker=True),
    ),
    Action("end", "the transport ends cleanly", _live, _stream("end", ended=True)),
    Action(
        "gates",
        "the gates are asked",
        lambda w: w.state is State.MESSAGE_COMPLETE,
        _gates,
    ),
    Action("cancel", "a person cancels", lambda w: True, _cancel),
    Action(
        "revoke",
        "the actor loses the right to do it",
        lambda w: w.may and not w.final and not w.submissions,
        lambda w, _: _but(w, may=False),
    ),
    Action(
        "commit",
        "the commit is asked for",
        lambda w: w.call != "",
        lambda w, rules: _given(w, Input.COMMIT, rules),
    ),
    Action(
        "effect",
        "the effect is submitted and answered",
        _submitting,
        _submits(Input.EFFECT_RECORDED, record=True),
    ),
    Action(
        "answer lost",
        "the effect happens; its answer is lost",
        _submitting,
        _submits(Input.EFFECT_UNKNOWN, record=True),
    ),
    Action(
        "request slow",
        "the effect is submitted; no answer arrives",
        _submitting,
        _submits(Input.EFFECT_UNKNOWN, delayed=True),
    ),
    Action(
        "reconcile",
        "the unknown outcome is reconciled",
        lambda w: w.state is State.RECONCILING,
        _reconcile,
    ),
    Action(
        "request arrives",
        "the submission arrives at last",
        lambda w: w.delayed,
        lambda w, _: _but(w, delayed=False, record=w.record or not w.closed),
    ),
    Action(
        "redelivery",
        "the last text fragment is delivered again",
        lambda w: w.came != (),
        lambda w, rules: _deliver(w, rules, w.came[-1]),
    ),
)


def _late(given: Input) -> Action:
    return Action(
        f"late: {given}",
        f"a callback says, too late: {given}",
        lambda w: w.final is not None,
        lambda w, rules: _given(w, given, rules),
    )


CALLBACKS = tuple(map(_late, Input))
LATE = [action.name for action in CALLBACKS]

ACTIONS: dict[str, Action] = {action.name: action for action in (*USUAL, *CALLBACKS)}
