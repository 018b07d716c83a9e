"""What must hold of an attempt's row and its effect, and the guards that it stands on.

A `Promise` is told from one moment: `speaks` says whether there is anything to keep there, `broken`
why it is not kept. A `Guard` is one rule of the ledger, of the application at the other end or of
a screen, and `off` gives the rules without it. Which promise a guard protects is written down
nowhere: `explorer.py` finds out.

Read next: `explorer.py`; `ledger_rules.py`, for the moments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from streamlab.consumer.attempt import SAID, TERMINAL, Input, State
from streamlab.errors import UsageError
from streamlab.study.ledger_rules import RULES, UNCERTAIN, Moment, Rules
from streamlab.study.search import times

__all__ = [
    "GUARDS",
    "PROMISES",
    "REACHED",
    "Guard",
    "Promise",
    "broken",
    "named",
    "promised",
    "rules_without",
]


class Promise(msgspec.Struct, frozen=True):
    """What must hold in every moment."""

    name: str
    says: str
    speaks: Callable[[Moment], bool]  #: whether the moment puts it to the test
    broken: Callable[[Moment], str]  #: why it is not kept; "" where it is


def _acted(m: Moment) -> bool:
    return m.effects > 0


def _final(m: Moment) -> bool:
    return m.final is not None


def _ungated(m: Moment) -> str:
    if not m.effects or m.passed:
        return ""
    return f"the effect has happened, and {'no gate has' if m.marker else 'no marker had'} passed"


def _ended(m: Moment) -> str:
    """Why an attempt that ended without an effect is no such thing."""
    if not m.effects or m.final in (None, State.COMMITTED):
        return ""
    return f"the attempt ended as {m.final}, and the effect has happened"


def _unrecorded(m: Moment) -> str:
    if m.row is not State.COMMITTED or (m.record and m.effects):
        return ""
    return "there is no record" if m.effects else "nothing has happened"


PROMISES = (
    Promise(
        "gated",
        "no effect happens before the answer is complete and every gate has passed it",
        _acted,
        _ungated,
    ),
    Promise(
        "authorised",
        "no effect happens unless the actor was authorised when its commit began",
        _acted,
        lambda m: "the actor had lost the right" * (m.effects > 0 and not m.allowed),
    ),
    Promise(
        "one effect",
        "an attempt has one effect at most",
        _acted,
        lambda m: f"it has happened {times(m.effects)}" * (m.effects > 1),
    ),
    Promise(
        "one submission",
        "an effect is submitted once at most, whatever is in doubt",
        lambda m: m.submissions > 0,
        lambda m: f"it was submitted {times(m.submissions)}" * (m.submissions > 1),
    ),
    Promise(
        "over is over",
        "nothing revives or changes an attempt that is over",
        _final,
        lambda m: f"{m.final} was final; now it is {m.row}" * (m.final not in (None, m.row)),
    ),
    Promise(
        "one winner",
        "a cancellation and a commit are never both answered as the winner",
        lambda m: m.cancel_won or m.commit_won,
        lambda m: "both were" * (m.cancel_won and m.commit_won),
    ),
    Promise(
        "ended without",
        "what ended without an effect never gets one",
        lambda m: m.final not in (None, State.COMMITTED),
        _ended,
    ),
    Promise(
        "settled",
        "after a recovery no outcome is uncertain",
        lambda m: m.row in UNCERTAIN,
        lambda m: f"the row still says {m.row}" * m.left,
    ),
    Promise(
        "on record",
        "COMMITTED is written only with a record of what has happened",
        lambda m: m.row is State.COMMITTED,
        _unrecorded,
    ),
    Promise(
        "told",
        "a person is told that the change is made only when it is on record",
        lambda m: m.told,
        lambda m: "a person was told so, and there is no record" * (m.told and not m.record),
    ),
    Promise(
        "counted once",
        "what is delivered again counts once",
        lambda m: m.counted > 0,
        lambda m: f"of {m.came} delivered, {m.counted} were counted" * (m.counted > m.came),
    ),
    Promise(
        "screens",
        "a screen that comes or goes changes no attempt",
        lambda m: not m.connected,
        lambda m: f"the attempt is {m.row} because a screen went" * m.meddled,
    ),
)

#: The one that no single moment can break: that the good end can be reached at all.
REACHED = Promise(
    "reachable",
    "a good proposal can be committed",
    lambda m: m.row is State.COMMITTED,
    lambda m: "",
)


def broken(moment: Moment, promises: Sequence[Promise] = PROMISES) -> tuple[Promise, str] | None:
    """The first promise that is not kept in a moment, and why."""
    for promise in promises:
        if why := promise.broken(moment):
            return promise, why
    return None


# --- What can be switched off ---------------------------------------------------------------------


class Guard(msgspec.Struct, frozen=True):
    """One rule; `off` is what is different without it."""

    name: str
    says: str
    off: Mapping[str, Any]  #: fields of `Rules`


def _table(more: Mapping[State, Mapping[Input, State]]) -> dict[str, Any]:
    """Off: the table has these edges too."""
    table = {state: {**row, **more.get(state, {})} for state, row in RULES.table.items()}
    return {"table": table}


GUARDS: dict[str, Guard] = {
    each.name: each
    for each in (
        Guard(
            "a preview is never committed",
            "The table has no commit for what is still being assembled.",
            _table({State.PREVIEW: {Input.COMMIT: State.COMMITTING}}),
        ),
        Guard(
            "the gates come before the commit",
            "A whole answer is not yet an acceptable one.",
            _table({State.MESSAGE_COMPLETE: {Input.COMMIT: State.COMMITTING}}),
        ),
        Guard(
            "a terminal row stays as it is",
            "Its row of the table is empty: a callback that comes late finds no way out.",
            _table({state: {Input.COMPLETED: State.MESSAGE_COMPLETE} for state in TERMINAL}),
        ),
        Guard(
            "the row is compared and set",
            "It is written only if it is still what was read: of two at once, one wins.",
            {"compares": False},
        ),
        Guard(
            "cancel and commit meet in one row",
            "A cancellation that is noted elsewhere stops nobody.",
            {"same_row": False},
        ),
        Guard(
            "authorisation is asked inside the commit",
            "Between the review and the commit the right may have gone.",
            {"asks_inside": False},
        ),
        Guard(
            "COMMITTING is written before the effect is asked for",
            "Else a crash leaves an effect of which the ledger knows nothing.",
            {"begins": False},
        ),
        Guard(
            "only who began the commit submits",
            "A second commit reads the outcome of the first one.",
            {"winner_only": False},
        ),
        Guard(
            "a request carries a key",
            "A network may deliver a request twice; under one key it is done once.",
            {"keyed": False},
        ),
        Guard(
            "a refusal holds for its key",
            "What the application refused once, it does not do when the request comes again.",
            {"remembers": False},
        ),
        Guard(
            "the outcome and its record are one transaction",
            "Between two transactions a process can die.",
            {"at_once": False},
        ),
        Guard(
            "no answer is not success",
            "COMMITTED stands on the effect's record, not on hope.",
            {"unknown": Input.EFFECT_RECORDED},
        ),
        Guard(
            "no answer is not a refusal",
            "Where no answer came, the effect may have happened.",
            {"unknown": Input.EFFECT_REFUSED},
        ),
        Guard(
            "an interrupted commit is an unknown outcome",
            "A row that says COMMITTING after a crash is one to ask about.",
            {"finds_begun": False},
        ),
        Guard(
            "an unknown outcome is asked for, not submitted again",
            "The application knows, under the attempt's key.",
            {"submits_again": True},
        ),
        Guard(
            "a key is closed when it is given up",
            "A request may still be on its way; a closed key refuses it.",
            {"closes": False},
        ),
        Guard(
            "a key is open until it is given up",
            "A ledger that closes every key is safe, and of no use.",
            {"closes_early": True},
        ),
        Guard(
            "a delivery is known by its identity",
            "A queue may deliver again; the same delivery counts once.",
            {"by_identity": False},
        ),
        Guard(
            "handled deliveries are on file",
            "A process that starts again has forgotten what it held in memory.",
            {"on_file": False},
        ),
        Guard(
            "a person is told what is on record",
            "What a person reads follows the record, not the wish.",
            {"said": {**SAID, State.COMMITTING: SAID[State.COMMITTED]}},
        ),
        Guard(
            "a screen that goes away cancels nothing",
            "A browser that is closed says nothing about what its user wants.",
            {"leaves_quietly": False},
        ),
        Guard(
            "a screen that comes back asks, and starts nothing",
            "Who starts again because no answer came may pay twice.",
            {"returns_quietly": False},
        ),
    )
}


def named(name: str) -> Guard:
    """The guard of a name."""
    if name not in GUARDS:
        raise UsageError(f"no guard {name!r}; there are: {'; '.join(GUARDS)}")
    return GUARDS[name]


def promised(name: str) -> tuple[Promise, ...]:
    """The promise of a name; with "", all but the one that no single moment can break."""
    found = tuple(each for each in PROMISES if name in ("", each.name))
    if not found:
        names = ", ".join(each.name for each in PROMISES)
        raise UsageError(f"no promise {name!r}; there are: {names}")
    return found


def rules_without(name: str) -> Rules:
    """The rules with one guard off; with "" all are on."""
    return msgspec.structs.replace(RULES, **named(name).off) if name else RULES
