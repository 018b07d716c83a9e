"""The acceptance sequences R1 to R8: each told once by the trace, and once by the consumer's parts.

Whoever changes a rule of the consumer reads here first. What is expected is written out by hand,
not taken from `scenarios`, and every effect is counted by an adapter that records its submissions.
"""

from __future__ import annotations

import json

from streamlab import judge, scenarios, synth, trace
from streamlab.analysis.judge import Outcome
from streamlab.consumer.attempt import Attempt, State
from streamlab.consumer.commit import RecordingAdapter, commit, reconcile
from streamlab.consumer.consumer import Consumer
from streamlab.consumer.delivery import Inbox, Receipt
from streamlab.consumer.gates import proposals
from streamlab.consumer.workitem import policy_for
from streamlab.streams import faults
from streamlab.streams.script import Script
from streamlab.study.acceptance import envelopes

WANTED = {"item": "W-7", "label": "Ready for review"}


def fed(script: Script, first: int, last: int, consumer: Consumer | None = None) -> Consumer:
    """A consumer that was given the frames `first` to `last`, and no end."""
    consumer = consumer or Consumer(script.recording.wire, script.policy)
    found, data = faults.frames(script.recording), script.recording.data
    start = found[first - 2].end if first > 1 else 0
    consumer.feed(data[start : found[last - 1].end])
    return consumer


def judged(script: Script) -> Outcome:
    return judge(script.recording, script.policy)


def submitted_by_a_commit(attempt: Attempt, ready: Outcome | Consumer) -> list[str]:
    """What reaches the adapter if somebody commits now, even a call that is no proposal yet."""
    effects = RecordingAdapter()
    commit(attempt, ready.proposals or proposals(ready.turn), effects)
    return effects.submissions


def submitted_along(script: Script) -> int:
    """How often the trace submits an effect."""
    return sum(step.kind == "effect" for step in trace(script).steps)


def test_r1_fragments_that_look_whole_in_an_open_block_are_a_preview() -> None:
    script = scenarios.open_block_looks_whole()
    consumer = fed(script, 1, 17)
    (call,) = consumer.turn.calls
    assert json.loads(call.text) == WANTED  # it looks whole
    assert (call.status, call.input) == ("streaming", None)  # and is not even parsed
    assert consumer.attempt.state is State.PREVIEW
    assert consumer.proposals == ()
    assert submitted_by_a_commit(consumer.attempt, consumer) == []
    assert trace(script).steps[16].attempt.state is State.PREVIEW


def test_r2_a_whole_valid_authorised_answer_is_a_proposal_and_has_no_effect_by_itself() -> None:
    script = scenarios.whole_proposal()
    outcome = judged(script)
    assert outcome.state is trace(script).attempt.state is State.VALIDATED_PROPOSAL
    assert [proposal.input for proposal in outcome.proposals] == [WANTED]
    assert submitted_along(script) == 0
    assert submitted_by_a_commit(outcome.attempt, outcome) == ["attempt-1"]  # and it can be done
    committed = trace(script.commit())
    assert committed.attempt.state is State.COMMITTED
    assert submitted_along(script.commit()) == 1


def test_r3_a_drop_after_the_block_stopped_leaves_nothing_to_act_on() -> None:
    script = scenarios.dropped_after_block_stop()
    outcome = judged(script)
    assert [call.input for call in outcome.turn.calls] == [WANTED]  # parsed, and no more
    assert outcome.state is trace(script).attempt.state is State.INCOMPLETE
    assert outcome.proposals == ()
    assert submitted_by_a_commit(outcome.attempt, outcome) == []
    assert submitted_along(script.commit()) == 0


def test_r4_an_answer_cut_short_by_its_token_limit_is_held_with_every_marker_there() -> None:
    script = scenarios.max_tokens_inside_tool_json()
    outcome = judged(script)
    assert faults.frames(script.recording)[-1].event == "message_stop"
    assert outcome.complete
    assert outcome.turn.facts.stop_reason == "max_tokens"
    assert outcome.state is trace(script).attempt.state is State.HELD
    assert outcome.verdicts[-1].gate == "stop_reason"
    assert outcome.proposals == ()
    assert submitted_by_a_commit(outcome.attempt, outcome) == []
    assert submitted_along(script.commit()) == 0


def test_r4_the_limit_holds_it_even_where_the_json_happens_to_be_whole() -> None:
    whole = Script(synth.change_label(), policy=policy_for("ada")).token_limit(after=17)
    outcome = judged(whole)
    assert [call.input for call in outcome.turn.calls] == [WANTED]
    assert outcome.state is State.HELD
    assert submitted_by_a_commit(outcome.attempt, outcome) == []


def test_r5_a_completion_that_comes_after_an_error_revives_nothing() -> None:
    script = scenarios.error_then_late_completion()
    steps = trace(script).steps
    assert (steps[-1].kind, steps[-1].receipt) == ("late", Receipt.LATE)
    assert steps[-1].attempt is steps[-2].attempt
    assert steps[-1].attempt.state is State.INVALID
    outcome = judged(script)
    assert outcome.state is State.INVALID
    assert submitted_by_a_commit(outcome.attempt, outcome) == []
    assert submitted_along(script.commit()) == 0


def test_r5_nor_does_the_rest_of_the_answer_on_the_wire() -> None:
    broken = scenarios.error_then_late_completion()
    whole = scenarios.whole_proposal()
    consumer = fed(broken, 1, broken.frames)
    failed = consumer.attempt
    assert failed.state is State.INVALID
    fed(whole, 15, 20, consumer)
    assert consumer.end() is failed
    assert consumer.proposals == ()


def test_r6_a_cancellation_before_the_commit_wins_over_all_that_arrives_later() -> None:
    script = scenarios.cancelled_then_more_arrives()
    consumer = fed(script, 1, 14)
    aborted = consumer.cancel()
    assert aborted.state is State.ABORTED
    fed(script, 15, 20, consumer)
    assert consumer.end() is aborted
    assert consumer.turn.complete  # all of it came
    assert consumer.proposals == ()  # and proposes nothing
    assert submitted_by_a_commit(aborted, consumer) == []
    assert trace(script).attempt.state is State.ABORTED
    assert [step.kind for step in trace(script).steps][-2:] == ["late", "commit"]
    assert submitted_along(script) == 0


def test_r6_a_cancellation_after_the_commit_comes_too_late() -> None:
    script = scenarios.whole_proposal().commit().cancel()
    assert trace(script).attempt.state is State.COMMITTED
    assert submitted_along(script) == 1


def test_r7_an_envelope_counts_once_and_equal_text_counts_each_time() -> None:
    script = scenarios.delivered_twice()
    sent = list(envelopes(script.recording))
    once, twice = Inbox(), Inbox()
    for envelope in sent:
        once.handle(envelope)
    receipts = [twice.handle(envelope) for envelope in sent for _ in range(2)]
    assert set(receipts[1::2]) == {Receipt.REPEATED}
    assert twice.turn == once.turn
    assert twice.attempt == once.attempt
    assert twice.turn.text == "haha!"
    texts = [frame.text for frame in faults.frames(script.recording)]
    assert texts[2] == texts[3]  # the two "ha" are equal, byte for byte


def test_r7_the_second_delivery_makes_no_second_transition() -> None:
    script = scenarios.delivered_twice()
    again = [step for step in trace(script).steps if step.kind == "redeliver"]
    assert len(again) == 2
    assert all(step.receipt is Receipt.REPEATED for step in again)
    assert all(step.attempt is step.attempt_before for step in again)
    assert all(step.turn is step.turn_before for step in again)
    assert trace(script).attempt.state is State.VALIDATED_PROPOSAL
    assert trace(script).turn.text == "haha!"
    assert submitted_along(script.commit().commit()) == 1


def test_r8_a_lost_answer_is_asked_for_and_never_submitted_again() -> None:
    outcome, effects = judged(scenarios.whole_proposal()), RecordingAdapter()
    effects.lose_next()
    doubt = commit(outcome.attempt, outcome.proposals, effects)
    assert doubt.state is State.RECONCILING  # the effect has happened, and nobody here knows
    assert effects.records.keys() == {"attempt-1"}
    assert commit(doubt, outcome.proposals, effects) is doubt  # a doubt is no permission
    done = reconcile(doubt, effects)
    assert done.state is State.COMMITTED
    assert reconcile(done, effects) is commit(done, outcome.proposals, effects) is done
    assert effects.submissions == ["attempt-1"]
    assert [each.input for each in effects.records["attempt-1"].proposals] == [WANTED]


def test_r8_the_trace_tells_the_same() -> None:
    script = scenarios.answer_of_the_commit_lost()
    states = [step.attempt.state for step in trace(script).steps][-4:]
    assert states == [
        State.VALIDATED_PROPOSAL,
        State.COMMITTING,
        State.RECONCILING,
        State.COMMITTED,
    ]
    assert submitted_along(script) == submitted_along(script.commit()) == 1
