"""The attempt is a table: every pair in it or refused, and no way around gates or commit."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from streamlab.consumer.attempt import (
    HOW_ENDED,
    INPUT_OF,
    SAID,
    TABLE,
    TERMINAL,
    Attempt,
    Input,
    State,
    advance,
    observe,
)
from streamlab.wire.events import (
    ENDINGS,
    Ambiguous,
    BoundExceeded,
    KeepAlive,
    MessageCompleted,
    Problem,
    ProviderError,
    StopReported,
    StreamEnded,
    TextDelta,
    Unknown,
)

PAIRS = [(state, given) for state in State for given in Input]


@pytest.mark.parametrize("state, given", PAIRS, ids=lambda member: member.name)
def test_every_pair_is_in_the_table_or_refused_with_the_state_unchanged(
    state: State, given: Input
) -> None:
    before = Attempt(state, "as it was", "attempt-7")
    after = advance(before, given, "because")
    to = TABLE[state].get(given, state)
    if to is state:
        assert after is before
    else:
        assert after == Attempt(to, "because", "attempt-7", given)
        assert before == Attempt(state, "as it was", "attempt-7")


def test_every_state_has_a_row_and_a_word_for_people() -> None:
    assert set(TABLE) == set(SAID) == set(State)
    assert all(SAID.values())
    assert not any(said.lower().startswith("done") for said in SAID.values())
    assert Attempt().said == "Preview only"
    assert SAID[State.VALIDATED_PROPOSAL] == "Proposal ready for review"
    assert SAID[State.ABORTED] == "Cancelled before commit"
    assert SAID[State.RECONCILING] == "Outcome being reconciled"


def test_the_terminal_states_are_the_empty_rows() -> None:
    ends = {State.COMMITTED, State.HELD, State.INCOMPLETE, State.ABORTED, State.INVALID}
    assert ends == TERMINAL
    assert all(Attempt(state).terminal == (state in ends) for state in State)


def test_every_state_is_reached_and_every_input_means_something() -> None:
    reached, new = {State.PREVIEW}, {State.PREVIEW}
    while new:
        new = {to for state in new for to in TABLE[state].values()} - reached
        reached |= new
    assert reached == set(State)
    assert {given for row in TABLE.values() for given in row} == set(Input)


def test_an_input_without_a_reason_is_its_own() -> None:
    assert advance(Attempt(), Input.CANCEL).why == "cancel"


# --- Every sequence of inputs -----------------------------------------------------------------

#: What must have been accepted, in this order, before an effect is on record.
ROAD = (Input.COMPLETED, Input.GATES_PASSED, Input.COMMIT, Input.EFFECT_RECORDED)

#: How far down the road each state must be.
NEEDS = {
    State.MESSAGE_COMPLETE: 1,
    State.VALIDATED_PROPOSAL: 2,
    State.COMMITTING: 3,
    State.RECONCILING: 3,
    State.COMMITTED: 4,
}

LENGTH = 6

#: An attempt, how far it went down the road, and whether it was ever final.
Place = tuple[State, int, State | None]


def _next(place: Place, given: Input) -> Place:
    state, road, final = place
    after = advance(Attempt(state), given).state
    accepted = given in TABLE[state]
    if accepted and road < len(ROAD) and given is ROAD[road]:
        road += 1
    return after, road, final or (after if after in TERMINAL else None)


def _check(place: Place) -> None:
    state, road, final = place
    assert road >= NEEDS.get(state, 0), f"{state} without {ROAD[road]}"
    assert final is None or state is final, f"{final} was left for {state}"


def test_no_sequence_of_inputs_goes_around_the_marker_the_gates_or_the_commit() -> None:
    """All sequences up to length six: those that lead to one place go on alike, so they are counted
    together, and the count proves that none was left out."""
    here: Counter[Place] = Counter({(State.PREVIEW, 0, None): 1})
    for length in range(LENGTH + 1):
        for place in here:
            _check(place)
        assert here.total() == len(Input) ** length
        following: Counter[Place] = Counter()
        for place, many in here.items():
            for given in Input:
                following[_next(place, given)] += many
        here = following


def test_the_same_holds_for_sequences_of_any_length() -> None:
    seen, new = set[Place](), {(State.PREVIEW, 0, None)}
    while new:
        for place in new:
            _check(place)
        seen |= new
        new = {_next(place, given) for place in new for given in Input} - seen
    assert {state for state, _, _ in seen} == set(State)


def test_the_check_itself_finds_a_way_around() -> None:
    for state, road in ((State.VALIDATED_PROPOSAL, 1), (State.COMMITTED, 3)):
        with pytest.raises(AssertionError, match="without"):
            _check((state, road, None))
    with pytest.raises(AssertionError, match="was left for"):
        _check((State.PREVIEW, 0, State.HELD))


# --- Events as inputs -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event, state, why",
    [
        (MessageCompleted(9), "MESSAGE_COMPLETE", "marker"),
        (ProviderError("busy", "wait", 9), "INVALID", "busy: wait"),
        (Problem("r", "error", "broken here", 9), "INVALID", "broken here"),
        (Ambiguous("whose is it?", 9), "HELD", "whose is it?"),
        (BoundExceeded("bytes", 1, 2, 9), "INCOMPLETE", "bytes"),
        (StreamEnded("eof", 9), "INCOMPLETE", "ended cleanly"),
        (StreamEnded("cut", 9), "INCOMPLETE", "cut"),
        (StreamEnded("reset", 9), "INCOMPLETE", "reset"),
        (StreamEnded("timeout", 9), "INCOMPLETE", "too long"),
        (StreamEnded("cancelled", 9), "ABORTED", "we cancelled"),
        (Problem("r", "warning", "odd", 9), "PREVIEW", "nothing has arrived"),
        (Problem("r", "note", "odd", 9), "PREVIEW", "nothing has arrived"),
        (TextDelta("0", "a"), "PREVIEW", "nothing has arrived"),
        (StopReported("tool_use", "tool_use", 9), "PREVIEW", "nothing has arrived"),
        (Unknown("commit", 9), "PREVIEW", "nothing has arrived"),
        (KeepAlive(), "PREVIEW", "nothing has arrived"),
    ],
    ids=lambda value: repr(value)[:30] if not isinstance(value, str) else "",
)
def test_an_event_is_the_input_that_it_means(event: Any, state: str, why: str) -> None:
    after = observe(Attempt(), event)
    assert after.state == state
    assert why in after.why


@pytest.mark.parametrize("state", sorted(TERMINAL))
@pytest.mark.parametrize("type", sorted(INPUT_OF, key=lambda type: type.__name__))
def test_no_event_revives_a_terminal_attempt(state: State, type: type) -> None:
    given = {
        MessageCompleted: MessageCompleted(9),
        ProviderError: ProviderError("busy", "wait", 9),
        Problem: Problem("r", "error", "broken", 9),
        Ambiguous: Ambiguous("whose?", 9),
        BoundExceeded: BoundExceeded("bytes", 1, 2, 9),
        StreamEnded: StreamEnded("cancelled", 9),
    }
    attempt = Attempt(state, "final")
    assert observe(attempt, given[type]) is attempt


def test_every_ending_has_its_words() -> None:
    assert {*HOW_ENDED, "cancelled"} == set(ENDINGS)
