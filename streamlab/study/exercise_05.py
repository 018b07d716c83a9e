"""Lesson 05's exercise: from the inputs that came to the state that an attempt must be in.

The known mistakes are mostly the table with a few pairs changed, because that is how people get it
wrong: one rule that they did not think of.

Read next: `questions.py`, which checks an answer; `../consumer/attempt.py`, the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamlab.consumer.attempt import TABLE, TERMINAL, Input, State
from streamlab.study.tasks import Case, Exercise, Wrong

__all__ = ["EXERCISES"]

Inputs = Sequence[str]

READY = ("content", "completed", "ended", "gates passed")

#: (name, the inputs, where they lead, why)
_CASES: tuple[tuple[str, Inputs, State, str], ...] = (
    (
        "nothing has happened",
        (),
        State.PREVIEW,
        "An attempt begins in PREVIEW, before anything has arrived.",
    ),
    (
        "a whole proposal",
        READY,
        State.VALIDATED_PROPOSAL,
        "Each input is in its row of the table. The gates passed, and nobody has committed.",
    ),
    (
        "the connection ends, then the marker comes",
        ("content", "ended", "completed", "gates passed"),
        State.INCOMPLETE,
        "INCOMPLETE has an empty row: what comes late is refused, and the state stays.",
    ),
    (
        "the gates are asked too early",
        ("content", "gates passed", "commit"),
        State.PREVIEW,
        "PREVIEW has no such input in its row. A pair that is not in the table is refused, which "
        "is no failure of the attempt: it goes on where it was.",
    ),
    (
        "cancelled while the commit is under way",
        (*READY, "commit", "cancel", "effect recorded"),
        State.COMMITTED,
        "From COMMITTING on a cancellation comes too late: it is refused, and the outcome of the "
        "effect decides.",
    ),
    (
        "cancelled, then everything arrives and somebody commits",
        ("content", "cancel", *READY, "commit", "effect recorded"),
        State.ABORTED,
        "The cancellation was accepted first, and nothing leaves ABORTED.",
    ),
    (
        "no answer came, so somebody commits again",
        (*READY, "commit", "effect unknown", "commit"),
        State.RECONCILING,
        "A doubt is no permission to submit again. RECONCILING is left by asking for the record.",
    ),
    (
        "no answer came, and there is no record",
        (*READY, "commit", "effect unknown", "effect refused"),
        State.ABORTED,
        "Asked and answered: it did not happen, and now that is known.",
    ),
    (
        "no longer authorised when it is committed",
        (*READY, "commit", "effect refused"),
        State.ABORTED,
        "A commit is a beginning, not an effect. This one was refused.",
    ),
    (
        "committed twice",
        (*READY, "commit", "effect recorded", "commit"),
        State.COMMITTED,
        "The first commit led to COMMITTED; the second is refused and changes nothing.",
    ),
    (
        "a whole text answer",
        ("content", "completed", "ended", "nothing proposed"),
        State.MESSAGE_COMPLETE,
        "It is complete, and there is nothing in it to act on, so it stays where it is.",
    ),
)


def _cases() -> tuple[Case, ...]:
    return tuple(
        Case(name, (list(inputs),), str(state), if_wrong)
        for name, inputs, state, if_wrong in _CASES
    )


def state(inputs: Inputs) -> str:
    """The solution: the table decides, and what is not in it changes nothing."""
    now = State.PREVIEW
    for given in inputs:
        now = TABLE[now].get(Input(given), now)
    return str(now)


# --- Known mistakes -------------------------------------------------------------------------------

Pairs = dict[tuple[State, Input], State]

#: Where an input leads when nobody asks what came before it.
LEADS = {given: then for row in TABLE.values() for given, then in row.items()}


def _table_with(wrong: Pairs) -> Callable[[Inputs], str]:
    """An answer that takes some pairs otherwise than the table."""

    def answer(inputs: Inputs) -> str:
        now = State.PREVIEW
        for given in map(Input, inputs):
            now = wrong.get((now, given)) or TABLE[now].get(given, now)
        return str(now)

    return answer


def _if_any(given: Input, then: State) -> Callable[[Inputs], str]:
    """An answer that one input decides wherever it stands."""
    return lambda inputs: str(then) if given in inputs else state(inputs)


def _stops_at_a_refusal(inputs: Inputs) -> str:
    now = State.PREVIEW
    for given in map(Input, inputs):
        if given not in TABLE[now]:
            break
        now = TABLE[now][given]
    return str(now)


REFUSED = [(now, given) for now in State for given in Input if given not in TABLE[now]]

LATE, EARLY = "the connection ends, then the marker comes", "the gates are asked too early"
UNDER_WAY = "cancelled while the commit is under way"
AGAIN = "no answer came, so somebody commits again"

#: (the mistake, the pairs that it takes otherwise, the case that must catch it)
_MISTAKES: tuple[tuple[str, Pairs, str], ...] = (
    (
        "what ended can go on",
        {(now, Input.COMPLETED): State.MESSAGE_COMPLETE for now in TERMINAL},
        LATE,
    ),
    ("what is not in the table is INVALID", dict.fromkeys(REFUSED, State.INVALID), LATE),
    (
        "the gates can be asked at any time",
        {(State.PREVIEW, Input.GATES_PASSED): State.VALIDATED_PROPOSAL},
        EARLY,
    ),
    (
        "a commit can still be cancelled",
        {(State.COMMITTING, Input.CANCEL): State.ABORTED},
        UNDER_WAY,
    ),
    (
        "no answer, so try again",
        {(State.RECONCILING, Input.COMMIT): State.COMMITTING},
        AGAIN,
    ),
    (
        "no answer means that it failed",
        {(State.COMMITTING, Input.EFFECT_UNKNOWN): State.ABORTED},
        AGAIN,
    ),
    (
        "committed as soon as somebody commits",
        {(State.VALIDATED_PROPOSAL, Input.COMMIT): State.COMMITTED},
        AGAIN,
    ),
    (
        "a doubt is for ever",
        {(State.RECONCILING, Input.EFFECT_REFUSED): State.RECONCILING},
        "no answer came, and there is no record",
    ),
    (
        "a commit that begins will succeed",
        {(State.COMMITTING, Input.EFFECT_REFUSED): State.COMMITTED},
        "no longer authorised when it is committed",
    ),
    (
        "a commit after the commit begins anew",
        {(State.COMMITTED, Input.COMMIT): State.COMMITTING},
        "committed twice",
    ),
    (
        "nothing to do is not acceptable",
        {(State.MESSAGE_COMPLETE, Input.NOTHING_PROPOSED): State.HELD},
        "a whole text answer",
    ),
)

EXERCISES = (
    Exercise(
        "05-ex",
        _cases,
        state,
        (
            Wrong("it returns nothing", lambda inputs: None, "nothing has happened"),
            Wrong("always a preview", lambda inputs: "PREVIEW", "a whole proposal"),
            Wrong(
                "never a proposal: everything is held",
                _if_any(Input.GATES_PASSED, State.HELD),
                "a whole proposal",
            ),
            Wrong(
                "the last input decides",
                lambda inputs: str(LEADS[Input(inputs[-1])]) if inputs else "PREVIEW",
                LATE,
            ),
            Wrong("stops at the first refusal", _stops_at_a_refusal, UNDER_WAY),
            Wrong("a cancellation always wins", _if_any(Input.CANCEL, State.ABORTED), UNDER_WAY),
            Wrong(
                "an effect on record always wins",
                _if_any(Input.EFFECT_RECORDED, State.COMMITTED),
                "cancelled, then everything arrives and somebody commits",
            ),
            *(Wrong(says, _table_with(pairs), case) for says, pairs, case in _MISTAKES),
        ),
    ),
)
