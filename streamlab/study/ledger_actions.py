"""What can happen to an attempt between several processes, one indivisible step at a time.

An `Action` is a transaction, a request that arrives, a crash, or what the stream, a person or a
screen does. What a process is about to do is its phase, and a crash is the loss of it: nothing is
divided that a transaction holds together, everything else is.

The model is held to the real thing: a test leads it and real `Ledger`s on one file through every
transition that there is, and compares them after every step.

Read next: `ledger_guards.py`, for what must hold; `explorer.py`, which tries every order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from streamlab.consumer.attempt import TERMINAL, Attempt, Input, State
from streamlab.consumer.delivery import Envelope, Receipt, receive
from streamlab.study.ledger_rules import DONE, RULES, UNCERTAIN, Moment, Rules

__all__ = ["ACTIONS", "PARTS", "Action", "step"]

PARTS = ("fragment", "rest")
WORKERS = ("a", "b")
COPIES = 2  #: deliveries of one request, at most

ENVELOPES = {name: Envelope("attempt-1", name) for name in PARTS}

Happens = Callable[[Moment, Rules], Moment | None]


class Action(msgspec.Struct, frozen=True):
    """One thing that can happen. `happens` gives the moment after it: the same object where it
    changes nothing, None where it can't happen."""

    name: str
    who: str
    says: str
    happens: Happens


def step(moment: Moment, action: str, rules: Rules = RULES) -> Moment:
    """The moment after one action; the same one where it can't happen."""
    after = ACTIONS[action].happens(moment, rules)
    return moment if after is None or after == moment else after


# --- The row --------------------------------------------------------------------------------------

_but = msgspec.structs.replace


def _write(m: Moment, row: State, rules: Rules, **truth: Any) -> Moment:
    """The row is written, whatever it was; whoever is at the screen reads it."""
    if m.final is None and row in TERMINAL:
        truth["final"] = row
    if m.connected and not m.told and rules.said[row] == DONE:
        truth["told"] = True
    return _but(m, row=row, **truth)


def _given(m: Moment, given: Input, rules: Rules, **truth: Any) -> Moment:
    """One input, in one transaction: the table decides."""
    to = rules.table[m.row].get(given, m.row)
    if to is not m.row:
        return _write(m, to, rules, **truth)
    return _but(m, **truth) if truth else m


# --- The stream -----------------------------------------------------------------------------------


@cache
def _receipt(name: str, row: State, handled: tuple[str, ...]) -> Receipt:
    return receive(ENVELOPES[name], Attempt(row), handled)


def _handle(m: Moment, name: str, rules: Rules, came: int) -> Moment:
    receipt = _receipt(name, m.row, m.handled if rules.by_identity else ())
    if receipt is Receipt.REPEATED:
        return m
    handled = m.handled if name in m.handled else (*m.handled, name)
    return _but(m, came=came, handled=handled, counted=m.counted + (receipt is Receipt.NEW))


def _deliver(part: int) -> Happens:
    def happens(m: Moment, rules: Rules) -> Moment | None:
        return None if m.ended or m.came != part else _handle(m, PARTS[part], rules, part + 1)

    return happens


def _redeliver(m: Moment, rules: Rules) -> Moment | None:
    return _handle(m, PARTS[m.came - 1], rules, m.came) if m.came else None


def _complete(m: Moment, rules: Rules) -> Moment | None:
    if m.ended or m.marker or m.came < len(PARTS):
        return None
    return _given(m, Input.COMPLETED, rules, marker=True)


def _end(m: Moment, rules: Rules) -> Moment | None:
    return None if m.ended else _given(m, Input.ENDED, rules, ended=True)


def _error(m: Moment, rules: Rules) -> Moment | None:
    return None if m.ended or m.marker else _given(m, Input.ERROR, rules)


def _late(m: Moment, rules: Rules) -> Moment | None:
    return _given(m, Input.COMPLETED, rules) if m.final is not None else None


def _gates(given: Input) -> Happens:
    def happens(m: Moment, rules: Rules) -> Moment | None:
        if m.row is not State.MESSAGE_COMPLETE or not (m.ended and m.marker):
            return None
        return _given(m, given, rules, passed=given is Input.GATES_PASSED)

    return happens


# --- The people -----------------------------------------------------------------------------------


def _cancel(m: Moment, rules: Rules) -> Moment | None:
    if not rules.same_row:
        return _but(m, cancel_won=True)
    to = rules.table[m.row].get(Input.CANCEL)
    if m.cancels or to is None:
        return None if m.cancels else m
    return _write(m, to, rules, cancel_won=True) if rules.compares else _but(m, cancels="read")


def _cancel_writes(m: Moment, rules: Rules) -> Moment | None:
    return _write(m, State.ABORTED, rules, cancel_won=True, cancels="") if m.cancels else None


def _revoke(m: Moment, rules: Rules) -> Moment | None:
    return _but(m, may=False) if m.may else None


def _disconnect(m: Moment, rules: Rules) -> Moment | None:
    if not m.connected:
        return None
    gone = _but(m, connected=False)
    if rules.leaves_quietly:
        return gone
    after = _given(gone, Input.CANCEL, rules)
    return _but(after, meddled=after.row is not m.row)


def _reconnect(m: Moment, rules: Rules) -> Moment | None:
    if m.connected:
        return None
    told = m.told or rules.said[m.row] == DONE
    if rules.returns_quietly or m.row not in UNCERTAIN:
        return _but(m, connected=True, told=told)
    again = {"submissions": m.submissions + 1, "effects": m.effects + 1}  # under a key of its own
    return _but(m, connected=True, told=told, **again)


# --- A committer, one step of it at a time --------------------------------------------------------


def _commit(me: str) -> Happens:
    def happens(m: Moment, rules: Rules) -> Moment | None:
        if getattr(m, me):
            return None
        if Input.COMMIT not in rules.table[m.row]:
            joins = not rules.winner_only and m.row is State.COMMITTING
            return _but(m, **{me: "begun"}) if joins else m
        return _begin(m, me, rules) if rules.compares else _but(m, **{me: "read"})

    return happens


def _begin(m: Moment, me: str, rules: Rules) -> Moment:
    """The transaction that begins the commit."""
    if rules.asks_inside and not m.may:
        return _write(m, rules.table[State.COMMITTING][Input.EFFECT_REFUSED], rules)
    now: dict[str, Any] = {me: "begun", "commit_won": True, "allowed": m.may}
    if rules.closes_early:
        now["closed"] = True
    return _write(m, State.COMMITTING, rules, **now) if rules.begins else _but(m, **now)


def _writes(me: str) -> Happens:
    """The second half of a begin that does not compare."""

    def happens(m: Moment, rules: Rules) -> Moment | None:
        return _begin(m, me, rules) if getattr(m, me) == "read" else None

    return happens


def _submit(me: str) -> Happens:
    way = f"{me}_way"

    def happens(m: Moment, rules: Rules) -> Moment | None:
        if getattr(m, me) != "begun":
            return None
        now: dict[str, Any] = {me: "waits", way: getattr(m, way) + COPIES}
        return _but(m, submissions=m.submissions + 1, **now)

    return happens


def _arrives(me: str) -> Happens:
    """The request of a committer arrives, for the first time or again, and is answered."""
    way = f"{me}_way"

    def happens(m: Moment, rules: Rules) -> Moment | None:
        copies = getattr(m, way)
        if not copies:
            return None
        known = m.effects > 0 and rules.keyed
        does = not known and not m.closed
        now: dict[str, Any] = {way: copies - 1}
        if does:
            now["effects"] = m.effects + 1
        if getattr(m, me) == "waits":
            now[me] = "recorded" if does or known else "refused"
        return _but(m, **now)

    return happens


def _refused(me: str) -> Happens:
    """The request arrives, and the application refuses what it asks for."""
    way = f"{me}_way"

    def happens(m: Moment, rules: Rules) -> Moment | None:
        copies = getattr(m, way)
        if not copies or m.effects or m.closed:
            return None
        now: dict[str, Any] = {way: copies - 1, "closed": rules.remembers}
        if getattr(m, me) == "waits":
            now[me] = "refused"
        return _but(m, **now)

    return happens


def _lost(me: str) -> Happens:
    def happens(m: Moment, rules: Rules) -> Moment | None:
        phase = getattr(m, me)
        return _but(m, **{me: "unknown"}) if phase in ("waits", "recorded", "refused") else None

    return happens


def _settle(me: str) -> Happens:
    """The transaction that writes the outcome down, with its record."""

    def happens(m: Moment, rules: Rules) -> Moment | None:
        phase = getattr(m, me)
        if phase == "owes":
            return _but(m, record=True, **{me: ""})
        given = rules.unknown if phase == "unknown" else OUTCOMES.get(phase)
        if given is None:
            return None
        table, row = rules.table, m.row
        if not rules.begins:  # nothing was written before the effect
            row = table[row].get(Input.COMMIT, row)
        return _outcome(m, me, table[row].get(given, m.row), rules)

    return happens


OUTCOMES = {
    "recorded": Input.EFFECT_RECORDED,
    "found": Input.EFFECT_RECORDED,
    "refused": Input.EFFECT_REFUSED,
    "none": Input.EFFECT_REFUSED,
}


def _outcome(m: Moment, me: str, to: State, rules: Rules) -> Moment:
    if to is m.row:
        return _but(m, **{me: ""})
    if to is not State.COMMITTED:
        return _write(m, to, rules, **{me: ""})
    if rules.at_once:
        return _write(m, to, rules, record=True, **{me: ""})
    return _write(m, to, rules, **{me: "owes"})


def _crash(me: str) -> Happens:
    """A process dies and is started again: its memory is gone, its requests are on their way."""

    def happens(m: Moment, rules: Rules) -> Moment | None:
        lost = () if not rules.on_file else m.handled
        if not getattr(m, me) and lost == m.handled:
            return None
        return _but(m, handled=lost, **{me: ""})

    return happens


# --- The recovery ---------------------------------------------------------------------------------


def _recover(me: str) -> Happens:
    def happens(m: Moment, rules: Rules) -> Moment | None:
        if getattr(m, me) or m.row not in UNCERTAIN:
            return None
        if not rules.finds_begun and m.row is State.COMMITTING:
            return _but(m, left=not (m.a or m.b))
        return _given(m, Input.EFFECT_UNKNOWN, rules, **{me: "asks"})

    return happens


def _answered(me: str) -> Happens:
    """The application says whether there is a record, and closes the key where there is none."""

    def happens(m: Moment, rules: Rules) -> Moment | None:
        if getattr(m, me) != "asks":
            return None
        if rules.submits_again:
            does = not (m.closed or (m.effects and rules.keyed))
            now: dict[str, Any] = {"effects": m.effects + does, me: "found"}
            return _but(m, submissions=m.submissions + 1, **now)
        if m.effects:
            return _but(m, **{me: "found"})
        return _but(m, closed=rules.closes or m.closed, **{me: "none"})

    return happens


def _recovered(me: str) -> Happens:
    settle = _settle(me)

    def happens(m: Moment, rules: Rules) -> Moment | None:
        after = settle(m, rules)
        return _but(after, left=True) if after is not None and after.row in UNCERTAIN else after

    return happens


# --- What can happen ------------------------------------------------------------------------------


def _of(me: str) -> list[Action]:
    """What a committer does, and what happens to it."""
    name, who = me.upper(), f"process {me.upper()}"
    desk = "the application"
    return [
        Action(f"commit {name}", who, f"{name} begins the commit", _commit(me)),
        Action(f"write {name}", who, f"{name} writes what it decided: COMMITTING", _writes(me)),
        Action(f"submit {name}", who, f"{name} submits the effect", _submit(me)),
        Action(f"arrive {name}", desk, f"the request of {name} arrives", _arrives(me)),
        Action(f"refuse {name}", desk, f"the request of {name} is refused", _refused(me)),
        Action(f"lose {name}", who, f"no answer comes to {name}", _lost(me)),
        Action(f"settle {name}", who, f"{name} writes the outcome down", _settle(me)),
        Action(f"crash {name}", who, f"the process of {name} dies", _crash(me)),
    ]


def _asking(me: str) -> list[Action]:
    """What a recovery does."""
    name, who = me.upper(), f"recovery {me.upper()}"
    return [
        Action(f"recover {name}", who, f"{name} finds the attempt unsettled", _recover(me)),
        Action(f"answer {name}", "the application", f"{name} calls the application", _answered(me)),
        Action(f"recovered {name}", who, f"{name} writes the outcome down", _recovered(me)),
        Action(f"crash {name}", who, f"the process of {name} dies", _crash(me)),
    ]


EVERY = (
    Action("fragment", "the stream", "a fragment is delivered", _deliver(0)),
    Action("rest", "the stream", "the rest of the content is delivered", _deliver(1)),
    Action("complete", "the stream", "the final marker arrives", _complete),
    Action("error", "the stream", "the provider sends an error event", _error),
    Action("end", "the stream", "the transport ends cleanly", _end),
    Action("pass", "the gates", "the gates pass the answer", _gates(Input.GATES_PASSED)),
    Action("hold", "the gates", "the gates hold the answer", _gates(Input.GATES_HELD)),
    Action("fail", "the gates", "the gates find the answer invalid", _gates(Input.GATES_FAILED)),
    *_of("a"),
    *_of("b"),
    Action("cancel", "a person", "a person cancels", _cancel),
    Action("cancel writes", "a person", "the cancellation is written: ABORTED", _cancel_writes),
    *_asking("r"),
    *_asking("s"),
    Action("revoke", "a person", "the actor loses the right to do it", _revoke),
    Action("disconnect", "the screen", "the screen goes away", _disconnect),
    Action("reconnect", "the screen", "the screen comes back", _reconnect),
    Action("redeliver", "the stream", "the last delivery comes again", _redeliver),
    Action("late", "the stream", "too late, a callback says: complete", _late),
)

#: A search tries them in this order, so among the shortest ways it finds the usual one.
ACTIONS: dict[str, Action] = {action.name: action for action in EVERY}
