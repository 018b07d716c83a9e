"""The attempt: one try at getting a proposal out of one stream and, gates passed, into an effect.

The whole machine is the one table below, and only the table decides what is legal.

Rules of this file:
1. A pair of state and input that is not in the table is refused: the state stays as it was.
2. A terminal state has an empty row. Nothing that arrives late revives an attempt.
3. No row leads to VALIDATED_PROPOSAL but MESSAGE_COMPLETE's, and only by GATES_PASSED; none leads
   to COMMITTED but by the outcome of the effect.
4. The table knows inputs, not bytes and not vendors. `INPUT_OF` says which event is which input.

Block stop is *parseable*; message complete is *eligible*; gates and commit are *executable*.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from streamlab.wire.events import (
    Ambiguous,
    BoundExceeded,
    Event,
    MessageCompleted,
    Problem,
    ProviderError,
    StreamEnded,
)

__all__ = [
    "INPUT_OF",
    "SAID",
    "TABLE",
    "TERMINAL",
    "Attempt",
    "Input",
    "State",
    "advance",
    "observe",
]


class State(StrEnum):
    """Where an attempt can be."""

    #: content is still being assembled
    PREVIEW = "PREVIEW"
    #: the whole, valid sequence came, its marker last
    MESSAGE_COMPLETE = "MESSAGE_COMPLETE"
    #: every gate has passed; still no effect
    VALIDATED_PROPOSAL = "VALIDATED_PROPOSAL"
    #: the separate, trusted transition has begun
    COMMITTING = "COMMITTING"
    #: the ledger holds the effect's record
    COMMITTED = "COMMITTED"
    #: the effect's outcome is unknown: ask the ledger, never submit again
    RECONCILING = "RECONCILING"
    #: whole, but not acceptable here; or it cannot be proved what it says
    HELD = "HELD"
    #: the transport ended, stalled or ran over a bound before completion
    INCOMPLETE = "INCOMPLETE"
    #: a cancellation was accepted before commit
    ABORTED = "ABORTED"
    #: an error, a broken protocol, or a proposal that fails parse, schema or business rule
    INVALID = "INVALID"


class Input(StrEnum):
    """What can happen to an attempt."""

    CONTENT = "content"  #: anything that the answer is made of
    COMPLETED = "completed"  #: the final marker, after a whole sequence
    ERROR = "error"  #: the provider says that it failed
    VIOLATION = "violation"  #: the wire broke its own grammar
    AMBIGUITY = "ambiguity"  #: it cannot be proved whose fragment this is
    ENDED = "ended"  #: the transport stopped
    BOUND = "bound"  #: a bound on bytes, events or seconds was passed
    CANCEL = "cancel"
    GATES_PASSED = "gates passed"
    GATES_HELD = "gates held"
    GATES_FAILED = "gates failed"
    NOTHING_PROPOSED = "nothing proposed"  #: a whole text answer: there is nothing to act on
    COMMIT = "commit"
    EFFECT_RECORDED = "effect recorded"
    EFFECT_REFUSED = "effect refused"  #: it did not happen, and that is known
    EFFECT_UNKNOWN = "effect unknown"


TABLE: dict[State, dict[Input, State]] = {
    State.PREVIEW: {
        Input.CONTENT: State.PREVIEW,
        Input.COMPLETED: State.MESSAGE_COMPLETE,
        Input.ERROR: State.INVALID,
        Input.VIOLATION: State.INVALID,
        Input.AMBIGUITY: State.HELD,
        Input.ENDED: State.INCOMPLETE,
        Input.BOUND: State.INCOMPLETE,
        Input.CANCEL: State.ABORTED,
    },
    State.MESSAGE_COMPLETE: {
        Input.ENDED: State.MESSAGE_COMPLETE,
        Input.AMBIGUITY: State.HELD,
        Input.BOUND: State.HELD,  # it was whole, but we stopped reading before it ended
        Input.NOTHING_PROPOSED: State.MESSAGE_COMPLETE,
        Input.GATES_PASSED: State.VALIDATED_PROPOSAL,
        Input.GATES_HELD: State.HELD,
        Input.GATES_FAILED: State.INVALID,
        Input.CANCEL: State.ABORTED,
    },
    State.VALIDATED_PROPOSAL: {
        Input.COMMIT: State.COMMITTING,
        Input.CANCEL: State.ABORTED,
    },
    State.COMMITTING: {
        Input.EFFECT_RECORDED: State.COMMITTED,
        Input.EFFECT_REFUSED: State.ABORTED,
        Input.EFFECT_UNKNOWN: State.RECONCILING,
    },
    State.RECONCILING: {
        Input.EFFECT_RECORDED: State.COMMITTED,
        Input.EFFECT_REFUSED: State.ABORTED,
    },
    State.COMMITTED: {},
    State.HELD: {},
    State.INCOMPLETE: {},
    State.ABORTED: {},
    State.INVALID: {},
}

#: Characters of a reason; some of its words may be a stranger's.
MAX_WHY = 500

TERMINAL = frozenset(state for state, row in TABLE.items() if not row)

#: What a person is told. Never "Done" because text stopped arriving.
SAID: dict[State, str] = {
    State.PREVIEW: "Preview only",
    State.MESSAGE_COMPLETE: "The answer is complete; nothing has been proposed yet",
    State.VALIDATED_PROPOSAL: "Proposal ready for review",
    State.COMMITTING: "The change is being made",
    State.COMMITTED: "The change is made and on record",
    State.RECONCILING: "Outcome being reconciled",
    State.HELD: "Held: not acceptable here, or not clear enough",
    State.INCOMPLETE: "Interrupted: the answer never became complete",
    State.ABORTED: "Cancelled before commit",
    State.INVALID: "Invalid: nothing of this answer may be acted on",
}


#: What a person is told where the same state came about in another way: nobody cancelled.
SAID_AFTER: dict[tuple[State, Input | None], str] = {
    (State.ABORTED, Input.EFFECT_REFUSED): "Stopped: no change was made"
}


class Attempt(msgspec.Struct, frozen=True):
    """Where one attempt is, and why."""

    state: State = State.PREVIEW
    why: str = "nothing has arrived yet"
    id: str = "attempt-1"
    by: Input | None = None  #: the input that led here; None at the start

    @property
    def said(self) -> str:
        """What a person is told about it."""
        return SAID_AFTER.get((self.state, self.by), SAID[self.state])

    @property
    def terminal(self) -> bool:
        """Whether nothing can change it any more."""
        return self.state in TERMINAL


def advance(attempt: Attempt, given: Input, why: str = "") -> Attempt:
    """The attempt after one input; the same object where it is refused or changes nothing."""
    state = TABLE[attempt.state].get(given)
    if state is None or state is attempt.state:
        return attempt
    return Attempt(state, why[:MAX_WHY] or given.value, attempt.id, given)


def observe(attempt: Attempt, event: Event) -> Attempt:
    """The attempt after one event of its stream."""
    tell = INPUT_OF.get(type(event))
    if tell is None:  # content (or what grants nothing): it never moves an attempt
        return attempt
    given, why = tell(event)
    return attempt if given is None else advance(attempt, given, why)


def _problem(event: Problem) -> tuple[Input | None, str]:
    return (Input.VIOLATION if event.severity == "error" else None, event.message)


def _ended(event: StreamEnded) -> tuple[Input | None, str]:
    if event.ending == "cancelled":
        return Input.CANCEL, "we cancelled it before anything was committed"
    return Input.ENDED, f"{HOW_ENDED[event.ending]} before the answer was complete"


HOW_ENDED = {
    "eof": "the stream ended cleanly",
    "cut": "the connection was cut inside the HTTP body",
    "reset": "the connection was reset",
    "timeout": "nothing came for too long",
}

#: Event -> what input it is, and why. An event that is not here is content (`Input.CONTENT`, which
#: the table lets no state leave by), a ping, or unknown: it grants nothing.
INPUT_OF: dict[type, Callable[[Any], tuple[Input | None, str]]] = {
    MessageCompleted: lambda e: (Input.COMPLETED, "the whole sequence came, its final marker last"),
    ProviderError: lambda e: (Input.ERROR, f"the provider reports {e.type}: {e.message}"),
    Problem: _problem,
    Ambiguous: lambda e: (Input.AMBIGUITY, e.message),
    BoundExceeded: lambda e: (Input.BOUND, f"the stream ran over the bound on {e.bound}"),
    StreamEnded: _ended,
}
