"""The consumer's loop: always a turn and an attempt, and nothing late changes what was judged."""

from __future__ import annotations

from typing import Any

import pytest

from streamlab.consumer.attempt import State
from streamlab.consumer.consumer import Consumer
from streamlab.consumer.gates import CHAT, Proposal
from streamlab.consumer.turn import EMPTY
from streamlab.errors import UsageError
from streamlab.wire.events import BoundExceeded, StreamEnded
from streamlab.wire.reader import Bounds
from tests.streams_for_tests import CALL, PING, STOP, TEXT, consume, frame, stream


def test_at_every_moment_there_is_a_turn_and_an_attempt() -> None:
    consumer = Consumer()
    assert (consumer.turn, consumer.attempt.state) == (EMPTY, State.PREVIEW)
    texts = []
    for payload in TEXT:
        consumer.feed(frame(payload))
        texts.append(consumer.turn.text)
    assert texts == ["", "", "Hi", "Hi there", "Hi there", "Hi there", "Hi there"]
    assert consumer.attempt.state is State.MESSAGE_COMPLETE
    assert consumer.verdicts == ()  # nobody has asked the gates: more could come
    assert consumer.end().state is State.MESSAGE_COMPLETE
    assert consumer.verdicts


@pytest.mark.parametrize("ending", ["eof", "cut", "reset", "timeout"])
def test_a_whole_answer_is_whole_however_the_transport_stops(ending: str) -> None:
    assert consume(stream(CALL), ending=ending)[0].attempt.state is State.VALIDATED_PROPOSAL
    assert consume(stream(TEXT), ending=ending)[0].attempt.state is State.MESSAGE_COMPLETE


@pytest.mark.parametrize("ending", ["eof", "cut", "reset", "timeout"])
@pytest.mark.parametrize("after", range(len(CALL)), ids="after {} events".format)
def test_no_end_before_the_marker_is_complete(ending: str, after: int) -> None:
    consumer, _ = consume(stream(CALL[:after]), ending=ending)
    assert consumer.attempt.state is State.INCOMPLETE
    assert consumer.proposals == ()


@pytest.mark.parametrize("after", range(len(CALL) + 1), ids="after {} events".format)
def test_our_own_stop_is_a_cancellation_and_never_a_proposal(after: int) -> None:
    ended, _ = consume(stream(CALL[:after]), ending="cancelled")
    told = Consumer()
    told.feed(stream(CALL[:after]))
    told.cancel()
    told.end("cancelled")
    for consumer in (ended, told):
        assert consumer.attempt.state is State.ABORTED
        assert consumer.proposals == ()
        assert consumer.attempt.said == "Cancelled before commit"


def test_a_proposal_may_still_be_cancelled_and_is_then_none() -> None:
    consumer, _ = consume(stream(CALL))
    assert consumer.proposals
    consumer.cancel()
    assert consumer.attempt.state is State.ABORTED
    assert consumer.proposals == ()


def test_a_second_cancellation_and_a_late_one_change_nothing() -> None:
    consumer = Consumer()
    first = consumer.cancel()
    assert consumer.cancel() is first
    held, _ = consume(stream(CALL), policy=CHAT)
    assert held.attempt.state is State.HELD
    assert held.cancel() is held.attempt
    assert held.attempt.state is State.HELD


@pytest.mark.parametrize("payloads", [TEXT, CALL, CALL[:4]], ids=["text", "call", "cut"])
def test_what_comes_after_the_end_changes_nothing(payloads: Any) -> None:
    consumer, _ = consume(stream(payloads))
    before = (consumer.turn, consumer.attempt, consumer.verdicts, consumer.proposals)
    assert consumer.feed(stream(CALL) + frame(STOP), 9.0) == []
    assert consumer.end("reset") is consumer.attempt
    assert (consumer.turn, consumer.attempt, consumer.verdicts, consumer.proposals) == before
    assert consumer.ending == "eof"


def test_an_error_that_comes_after_the_marker_and_before_the_end_still_counts() -> None:
    consumer = Consumer()
    consumer.feed(stream(CALL))
    assert consumer.attempt.state is State.MESSAGE_COMPLETE
    consumer.feed(frame({"type": "error", "error": {"type": "api_error", "message": "m"}}))
    assert consumer.end().state is State.INVALID
    assert consumer.proposals == ()


def test_content_is_shown_after_a_fault_but_the_attempt_stays_invalid() -> None:
    consumer, _ = consume(stream([TEXT[0], *TEXT]))
    assert consumer.attempt.state is State.INVALID
    assert consumer.turn.text == "Hi there"


def test_the_proposal_is_the_clients_call_with_its_parsed_input() -> None:
    (proposal,) = consume(stream(CALL))[0].proposals
    assert proposal == Proposal("call_0", "change_label", {"item": "W-7", "label": "Ready"})


def test_a_stream_without_end_is_given_up_by_the_recordings_own_clock() -> None:
    consumer = Consumer(bounds=Bounds(seconds=60))
    consumer.feed(stream(CALL[:3]), 59.0)
    assert not consumer.finished
    reads = consumer.feed(frame(PING), 61.0)
    assert [told for _, told in reads] == [(BoundExceeded("seconds", 60, 61.0, 3),)]
    assert consumer.finished
    assert consumer.attempt.state is State.INCOMPLETE
    assert consumer.feed(stream(CALL[3:]), 62.0) == []
    assert consumer.end().state is State.INCOMPLETE


def test_the_time_of_the_end_counts_as_well() -> None:
    for t, state in ((60.0, State.VALIDATED_PROPOSAL), (61.0, State.INCOMPLETE)):
        consumer = Consumer(bounds=Bounds(seconds=60))
        consumer.feed(stream(CALL[:-1]), 1.0)
        if state is State.VALIDATED_PROPOSAL:
            consumer.feed(stream(CALL[-1:]), t)
        assert consumer.end("eof", t).state is state
    assert [p.rule for p in consumer.turn.facts.problems] == ["bound"]


def test_what_the_end_left_to_report_is_kept() -> None:
    consumer, _ = consume(stream(TEXT[:3]))
    told = [event for _, events in consumer.last_words for event in events]
    assert told[-1] == StreamEnded("eof", 3)
    assert len(told) == 2


def test_an_unknown_wire_or_ending_is_the_callers_mistake_and_changes_nothing() -> None:
    with pytest.raises(UsageError):
        Consumer("smoke")
    consumer = Consumer()
    with pytest.raises(UsageError):
        consumer.end("over")
    assert consumer.end("eof").state is State.INCOMPLETE
