"""The commit: one effect at most, never without a proposal, and a doubt is asked, not repeated."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.analysis.judge import judge
from streamlab.consumer.attempt import SAID, TERMINAL, Attempt, Input, State, advance
from streamlab.consumer.commit import (
    Record,
    RecordingAdapter,
    Refusal,
    begin,
    commit,
    perform,
    reconcile,
)
from streamlab.consumer.gates import Proposal
from streamlab.streams import synth

PROPOSALS = (Proposal("call-1", "change_label", {"item": "W-7", "label": "Ready"}),)
READY = Attempt(State.VALIDATED_PROPOSAL, "every gate passed", "attempt-7")


class Silent:
    """Effects that never answer."""

    def submit(self, key: str, proposals: tuple[Proposal, ...]) -> Record:
        raise TimeoutError("no answer in time")

    def find(self, key: str) -> Record | None:
        raise TimeoutError("no answer in time")

    close = find


def test_a_proposal_that_was_judged_can_be_committed() -> None:
    outcome, effects = judge(synth.change_label()), RecordingAdapter()
    done = commit(outcome.attempt, outcome.proposals, effects)
    assert done.state is State.COMMITTED
    assert effects.records[done.id].proposals == outcome.proposals


@pytest.mark.parametrize("state", [s for s in State if s is not State.VALIDATED_PROPOSAL], ids=str)
def test_nothing_else_can_be_committed(state: State) -> None:
    attempt, effects = Attempt(state), RecordingAdapter()
    assert begin(attempt) is attempt
    if state is not State.COMMITTING:
        assert commit(attempt, PROPOSALS, effects) is attempt
        assert effects.submissions == []


def test_a_second_commit_changes_nothing_and_submits_nothing() -> None:
    effects = RecordingAdapter()
    done = commit(READY, PROPOSALS, effects)
    assert commit(done, PROPOSALS, effects) is done
    assert effects.submissions == ["attempt-7"]


def test_two_commits_of_one_proposal_give_the_first_record() -> None:
    effects = RecordingAdapter()
    first = effects.submit("attempt-7", PROPOSALS)
    assert effects.submit("attempt-7", PROPOSALS) is first
    assert effects.records == {"attempt-7": first}


def test_another_effect_under_a_key_that_was_used_is_refused() -> None:
    """Two attempts of one name would else both be told that their change is made."""
    effects = RecordingAdapter()
    other = (Proposal("call-2", "change_label", {"item": "W-8", "label": "Ready"}),)
    assert commit(READY, PROPOSALS, effects).state is State.COMMITTED
    assert commit(READY, other, effects).state is State.ABORTED
    assert effects.records["attempt-7"].proposals == PROPOSALS


def test_nothing_to_do_is_no_commit() -> None:
    effects = RecordingAdapter()
    assert commit(READY, (), effects).state is State.ABORTED
    assert effects.submissions == []


class Odd(RecordingAdapter):
    """Effects whose answer is not what was agreed."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def submit(self, key: str, proposals: Any) -> Any:
        super().submit(key, proposals)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [None, Record("attempt-8", PROPOSALS), Record("attempt-7", ()), ValueError("what?")],
    ids=["nothing", "another key", "another effect", "an exception of its own"],
)
def test_an_answer_that_nobody_understands_is_a_doubt(answer: Any) -> None:
    effects = Odd(answer)
    doubt = commit(READY, PROPOSALS, effects)
    assert doubt.state is State.RECONCILING
    assert reconcile(doubt, effects).state is State.COMMITTED


def test_authorisation_is_asked_again_and_a_refusal_submits_nothing() -> None:
    effects = RecordingAdapter()
    done = commit(READY, PROPOSALS, effects, lambda proposal: "W-7 belongs to bo by now")
    assert done.state is State.ABORTED
    assert done.why == "no longer authorised: W-7 belongs to bo by now"
    assert effects.submissions == []


def test_an_answer_that_got_lost_is_a_doubt_and_no_failure() -> None:
    effects = RecordingAdapter()
    effects.lose_next()
    doubt = commit(READY, PROPOSALS, effects)
    assert doubt.state is State.RECONCILING
    assert doubt.said == "Outcome being reconciled"
    assert effects.records.keys() == {"attempt-7"}
    assert commit(doubt, PROPOSALS, effects) is doubt, "a doubt is no permission to submit again"
    assert reconcile(doubt, effects).state is State.COMMITTED
    assert effects.submissions == ["attempt-7"]


def test_no_record_means_that_it_did_not_happen() -> None:
    doubt = commit(READY, PROPOSALS, Silent())
    assert reconcile(doubt, RecordingAdapter()).state is State.ABORTED


def test_a_doubt_stays_one_while_nobody_answers() -> None:
    doubt = commit(READY, PROPOSALS, Silent())
    assert doubt.state is State.RECONCILING
    assert reconcile(doubt, Silent()) is doubt


def test_what_is_still_on_its_way_when_it_is_given_up_never_happens() -> None:
    effects = RecordingAdapter()
    assert reconcile(Attempt(State.RECONCILING, id="attempt-7"), effects).state is State.ABORTED
    late = commit(READY, PROPOSALS, effects)
    assert late.state is State.ABORTED
    assert late.why == "it was refused: attempt-7 is closed: it was given up before this came"
    assert effects.records == {} and effects.find("attempt-7") is None


class Answers(RecordingAdapter):
    """Effects that give this answer to whoever asks for a record."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def close(self, key: str) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


OTHER = (Proposal("call-2", "change_label", {"item": "W-8", "label": "Ready"}),)

NO_ANSWER = {
    "the record of another key": Record("attempt-8", PROPOSALS),
    "another key's, of another effect": Record("attempt-8", OTHER),
    "a refusal, which is no record": Refusal("not today"),
    "a number": 5,
    "nothing in words": "",
    "False": False,
    "an exception of its own": ValueError("what?"),
    "no answer": TimeoutError("no answer in time"),
}


@pytest.mark.parametrize("proposals", [PROPOSALS, None], ids=["ours", "not given"])
@pytest.mark.parametrize("name", NO_ANSWER)
def test_what_is_no_answer_about_our_key_settles_nothing(name: str, proposals: Any) -> None:
    doubt = Attempt(State.RECONCILING, "no answer came", "attempt-7")
    assert reconcile(doubt, Answers(NO_ANSWER[name]), proposals) is doubt


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (Record("attempt-7", PROPOSALS), State.COMMITTED),
        (Record("attempt-7", OTHER), State.ABORTED),
        (None, State.ABORTED),
    ],
    ids=["our record", "our key, with another effect", "none"],
)
def test_what_is_an_answer_about_our_key_settles_the_doubt(answer: Any, state: State) -> None:
    doubt = Attempt(State.RECONCILING, "no answer came", "attempt-7")
    assert reconcile(doubt, Answers(answer), PROPOSALS).state is state


@pytest.mark.parametrize("state", [s for s in State if s is not State.RECONCILING], ids=str)
def test_only_a_doubt_is_reconciled(state: State) -> None:
    attempt = Attempt(state)
    assert reconcile(attempt, RecordingAdapter()) is attempt


def test_cancel_before_the_commit_wins_and_after_it_has_begun_comes_too_late() -> None:
    effects = RecordingAdapter()
    cancelled = advance(READY, Input.CANCEL)
    assert commit(cancelled, PROPOSALS, effects).state is State.ABORTED
    assert effects.submissions == []
    begun = advance(begin(READY), Input.CANCEL)
    assert perform(begun, PROPOSALS, effects).state is State.COMMITTED
    assert effects.submissions == ["attempt-7"]


ACTIONS = ("commit", "lost commit", "cancel", "reconcile", "late completion", "refused commit")


@given(st.lists(st.sampled_from(ACTIONS), max_size=12))
def test_whatever_happens_in_whatever_order_there_is_one_effect_at_most(actions: list[str]) -> None:
    attempt, effects = READY, RecordingAdapter()
    for action in actions:
        before = attempt
        if action.endswith("commit"):
            if action == "lost commit" and attempt.state is State.VALIDATED_PROPOSAL:
                effects.lose_next()
            refusal = (lambda p: "no") if action == "refused commit" else None
            attempt = commit(attempt, PROPOSALS, effects, refusal)
        elif action == "reconcile":
            attempt = reconcile(attempt, effects)
        else:
            attempt = advance(attempt, Input.CANCEL if action == "cancel" else Input.COMPLETED)
        assert attempt is before or before.state not in TERMINAL
        assert (attempt.state is State.COMMITTED) <= ("attempt-7" in effects.records)
    assert len(effects.submissions) <= 1
    if attempt.state is State.ABORTED:
        assert not effects.records


def test_nobody_is_told_that_it_is_done_before_it_is_on_record() -> None:
    assert [state for state, said in SAID.items() if "made and on record" in said] == [
        State.COMMITTED
    ]
    assert not any(said.lower().startswith("done") for said in SAID.values())


def test_who_did_not_cancel_is_not_told_that_it_was_cancelled() -> None:
    refused = commit(READY, PROPOSALS, RecordingAdapter(), lambda proposal: "not any more")
    unknown = reconcile(commit(READY, PROPOSALS, Silent()), RecordingAdapter())
    assert {refused.said, unknown.said} == {"Stopped: no change was made"}
    assert advance(READY, Input.CANCEL).said == "Cancelled before commit"
