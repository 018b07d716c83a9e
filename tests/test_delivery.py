"""Delivery: what is handed over twice counts once; what comes too late changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.consumer.attempt import Attempt, Input, State, advance
from streamlab.consumer.delivery import Envelope, Inbox, Receipt, receive
from streamlab.consumer.turn import fold
from streamlab.wire.events import (
    Event,
    MessageCompleted,
    MessageStarted,
    ProviderError,
    SegmentStarted,
    SegmentStopped,
    TextDelta,
)

EVENTS: tuple[Event, ...] = (
    MessageStarted("msg_1", "a-model"),
    SegmentStarted("0", "text", 2),
    TextDelta("0", "ha"),
    TextDelta("0", "ha"),
    SegmentStopped("0", 5),
    MessageCompleted(6),
)
ENVELOPES = [Envelope("attempt-1", f"delivery-{n}", (event,)) for n, event in enumerate(EVENTS)]
DONE = MessageCompleted(9)


def over(*envelopes: Envelope) -> Inbox:
    inbox = Inbox()
    for envelope in envelopes:
        inbox.handle(envelope)
    return inbox


def test_equal_content_under_two_identities_counts_twice() -> None:
    inbox = over(*ENVELOPES)
    assert inbox.turn.text == "haha"
    assert {receipt for _, receipt in inbox.log} == {Receipt.NEW}


def test_one_identity_counts_once_whatever_it_carries() -> None:
    again = Envelope("attempt-1", "delivery-2", (TextDelta("0", "something else"),))
    inbox = over(*ENVELOPES[:3], ENVELOPES[2], again)
    assert inbox.turn.text == "ha"
    assert [receipt for _, receipt in inbox.log[3:]] == [Receipt.REPEATED] * 2


@given(st.lists(st.integers(0, len(EVENTS) - 1), max_size=20), st.randoms())
def test_any_repetition_of_what_came_gives_the_turn_of_each_once(again: list[int], random) -> None:  # type: ignore[no-untyped-def]
    """At least once, in order, with repetitions of what has come anywhere behind it."""
    deliveries = list(range(len(EVENTS)))
    for number in again:
        behind = deliveries.index(number) + 1
        deliveries.insert(random.randrange(behind, len(deliveries) + 1), number)
    inbox = over(*(ENVELOPES[number] for number in deliveries))
    assert inbox.turn == fold(EVENTS)
    assert inbox.attempt.state is State.MESSAGE_COMPLETE
    assert len(inbox.log) == len(deliveries)


@pytest.mark.parametrize(
    "end",
    [Input.ERROR, Input.VIOLATION, Input.AMBIGUITY, Input.ENDED, Input.BOUND, Input.CANCEL],
    ids=str,
)
def test_a_late_completion_is_on_record_and_revives_nothing(end: Input) -> None:
    inbox = over(*ENVELOPES[:3])
    inbox.attempt = advance(inbox.attempt, end)
    before = inbox.attempt, inbox.turn
    late = Envelope("attempt-1", "late", (DONE,))
    assert inbox.handle(late) is Receipt.LATE
    assert (inbox.attempt, inbox.turn) == before
    assert inbox.log[-1] == (late, Receipt.LATE)


def test_an_error_then_a_completion_in_one_envelope_stays_invalid() -> None:
    failed = (ProviderError("overloaded_error", "Overloaded", 4), DONE)
    assert over(Envelope("attempt-1", "a", failed)).attempt.state is State.INVALID


def test_what_belongs_to_another_attempt_changes_nothing_and_uses_up_no_identity() -> None:
    inbox = over(Envelope("attempt-0", "delivery-0", (DONE,)), ENVELOPES[0])
    assert [receipt for _, receipt in inbox.log] == [Receipt.FOREIGN, Receipt.NEW]
    assert inbox.attempt.state is State.PREVIEW
    assert inbox.turn.facts.id == "msg_1"


@pytest.mark.parametrize(
    ("envelope", "handled", "expected"),
    [
        pytest.param(Envelope("a", "1"), {"2"}, Receipt.NEW, id="new"),
        pytest.param(Envelope("a", "1"), {"1"}, Receipt.REPEATED, id="handled before"),
        pytest.param(Envelope("b", "1"), {"1"}, Receipt.FOREIGN, id="another attempt's"),
    ],
)
def test_identity_alone_decides(envelope: Envelope, handled: set[str], expected: Receipt) -> None:
    assert receive(envelope, Attempt(id="a"), handled) is expected


def test_a_repetition_to_a_finished_attempt_is_a_repetition_first() -> None:
    over_already = Attempt(State.COMMITTED, id="a")
    assert receive(Envelope("a", "1"), over_already, {"1"}) is Receipt.REPEATED
    assert receive(Envelope("a", "2"), over_already, {"1"}) is Receipt.LATE
