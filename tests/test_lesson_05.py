"""Lesson 05 tells the truth: its program, its questions, its gates, and its exercise."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab import (
    Inbox,
    RecordingAdapter,
    check,
    commit,
    faults,
    judge,
    policy_for,
    synth,
    trace,
)
from streamlab.analysis.trace import Step
from streamlab.consumer.attempt import SAID, TABLE, Input, State, advance
from streamlab.consumer.commit import Record, Refusal, begin, perform, reconcile
from streamlab.consumer.delivery import Receipt
from streamlab.consumer.gates import GATES, Proposal, schema_error
from streamlab.consumer.workitem import CHANGE_LABEL, WorkItem
from streamlab.errors import UsageError
from streamlab.streams.parts import ToolCall
from streamlab.streams.recording import Recording
from streamlab.streams.scenarios import SCENARIOS
from streamlab.streams.script import Script
from streamlab.study import acceptance, exercise_05, lesson_05
from streamlab.study.acceptance import (
    EIGHT,
    act_when,
    envelopes,
    for_each_gate,
    is_json,
    play,
    play_script,
)
from streamlab.study.tasks import Question, Wrong
from tests.streams_for_tests import frame

QUESTION_OF = {asked.id: asked for asked in lesson_05.QUESTIONS}

each_scenario = pytest.mark.parametrize("name", SCENARIOS)
each_of_the_eight = pytest.mark.parametrize("name", EIGHT)


# --- The program that is led through ------------------------------------------------------------


def test_the_eight_are_the_acceptance_sequences_in_order() -> None:
    assert [SCENARIOS[name].requirement for name in EIGHT] == [f"R{n}" for n in range(1, 9)]


@each_scenario
def test_the_program_and_the_trace_go_two_ways_to_one_answer(name: str) -> None:
    scenario, played = SCENARIOS[name], play(name)
    steps = trace(scenario.script).steps
    step = steps[-1] if scenario.after is None else steps[scenario.after - 1]
    assert played.attempt.state is step.attempt.state is scenario.state
    if scenario.after is None:
        assert len(played.submissions) == sum(step.kind == "effect" for step in steps)


@each_scenario
def test_every_state_of_the_program_is_an_edge_of_the_table(name: str) -> None:
    states = play(name).states
    for before, after in pairwise(states):
        assert after in TABLE[before].values()


@each_scenario
def test_somebody_does_try_to_commit_and_only_a_proposal_lets_them(name: str) -> None:
    played = play(name)
    more = played.submitted_then - len(played.submissions)
    assert more == (played.attempt.state is State.VALIDATED_PROPOSAL)
    assert (played.then is played.attempt) == (more == 0)


#: What the lesson prints: the state, the submissions, and those after one commit more.
EXPECTED = {
    "open_block_looks_whole": ("PREVIEW", 0, 0),
    "whole_proposal": ("VALIDATED_PROPOSAL", 0, 1),
    "dropped_after_block_stop": ("INCOMPLETE", 0, 0),
    "max_tokens_inside_tool_json": ("HELD", 0, 0),
    "error_then_late_completion": ("INVALID", 0, 0),
    "cancelled_then_more_arrives": ("ABORTED", 0, 0),
    "delivered_twice": ("VALIDATED_PROPOSAL", 0, 1),
    "answer_of_the_commit_lost": ("COMMITTED", 1, 1),
}


@each_of_the_eight
def test_what_is_printed_of_each_of_the_eight(name: str) -> None:
    played = play(name)
    state, effects, then = EXPECTED[name]
    assert (played.attempt.state, len(played.submissions), played.submitted_then) == (
        state,
        effects,
        then,
    )
    first, *_, last = repr(played).splitlines()
    assert first == f"{name}: {state}"
    still = "still " * (effects == then)
    told = f"{effects}; after one more commit: {still}{then} in all"
    assert last.split(maxsplit=1) == ["effects", told]
    assert SAID[played.attempt.state] in repr(played)


def test_a_program_repeats_nothing_that_was_delivered_before() -> None:
    assert play("delivered_twice").repeated == 2
    assert play("whole_proposal").repeated == 0
    older = play("late_callback_of_an_older_attempt")
    assert older.repeated == 0
    assert older.attempt.state is State.VALIDATED_PROPOSAL


def test_the_way_of_the_lost_answer_goes_through_the_doubt() -> None:
    assert play("answer_of_the_commit_lost").states[-4:] == (
        State.VALIDATED_PROPOSAL,
        State.COMMITTING,
        State.RECONCILING,
        State.COMMITTED,
    )


def test_a_scenario_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(UsageError, match=r"scenario 'whole'.*whole_proposal"):
        play("whole")


@pytest.mark.parametrize("chunking", ["frame", "several", "anywhere", "byte", "whole"])
def test_the_envelopes_are_the_same_however_the_bytes_come(chunking: str) -> None:
    style = synth.Style(chunking=chunking)
    found = list(envelopes(synth.change_label(style=style)))
    assert found == list(envelopes(synth.change_label()))
    assert [each.delivery for each in found[-2:]] == ["frame 20", "end"]


def test_a_bound_is_an_envelope_too() -> None:
    endless = SCENARIOS["never_ending"].script.recording
    assert [each.delivery for each in envelopes(endless)][-2:] == ["bound", "end"]


# --- The rules that are right on a good day -----------------------------------------------------


def parses(step: Step) -> bool:
    return any(is_json(call.text) for call in step.turn.calls)


def block_stopped(step: Step) -> bool:
    return any(call.status == "ready" for call in step.turn.calls)


def loop_ended(step: Step) -> bool:
    return step.kind == "end" and bool(step.turn.calls)


def marker_came(step: Step) -> bool:
    return step.turn.complete


def test_each_rule_acts_on_the_good_stream_and_on_one_where_nothing_may_happen() -> None:
    whole = synth.change_label()
    acts = [act_when(rule, whole) for rule in (parses, block_stopped, loop_ended, marker_came)]
    assert acts == [f"acts at step {n}" for n in (17, 18, 21, 20)]
    dropped = faults.disconnect(whole, after=18)
    assert judge(dropped).proposals == ()
    acts = [act_when(rule, dropped) for rule in (parses, block_stopped, loop_ended)]
    assert acts == ["acts at step 17", "acts at step 18", "acts at step 19"]
    assert act_when(marker_came, dropped) == "never acts"
    refused = faults.refuse(whole, after=17)
    assert judge(refused).state is State.HELD
    assert act_when(marker_came, refused) == "acts at step 20"


@pytest.mark.parametrize(
    ("text", "whole"),
    [("", False), ("{}", True), ('{"a": 1', False), ("[1]", False), ("1", False), ("{}{", False)],
)
def test_only_one_whole_object_looks_whole(text: str, whole: bool) -> None:
    assert is_json(text) is whole


# --- The questions ------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "name"), list(enumerate(EIGHT, start=1)))
def test_a_question_is_about_its_sequence_and_the_right_option_is_what_happens(
    number: int, name: str
) -> None:
    asked, played = QUESTION_OF[f"05-r{number}"], play(name)
    assert asked.text.startswith(f"`{name}`: ")
    states = [re.match(r"`([A-Z_]+)`", option.text) for option in asked.options]
    assert all(found and found[1] in State.__members__ for found in states)
    right = asked.options[asked.right].text
    assert right.startswith(f"`{played.attempt.state}`")


#: What an option says beside its state, the same for all options of a question.
FORMS = {
    "05-r7": r"`[A-Z_]+`, with the text `(?:ha)+!`\.",
    "05-r8": r"`[A-Z_]+`, after (?:one submission|two submissions)\.",
}


@pytest.mark.parametrize("asked", lesson_05.QUESTIONS, ids=lambda asked: asked.id)
def test_no_option_is_given_away_by_its_form(asked: Question) -> None:
    form = FORMS.get(asked.id, r"`[A-Z_]+`\.")
    assert all(re.fullmatch(form, option.text) for option in asked.options)


def test_what_the_questions_say_beside_the_state() -> None:
    right = {id: asked.options[asked.right].text for id, asked in QUESTION_OF.items()}
    assert right["05-r7"].endswith("with the text `haha!`.")
    assert trace(SCENARIOS["delivered_twice"].script).turn.text == "haha!"
    assert right["05-r8"].endswith("after one submission.")
    assert play("answer_of_the_commit_lost").submissions == ("attempt-1",)
    assert len(QUESTION_OF) == 8


def test_the_questions_and_the_prose_tell_of_the_streams_as_they_are() -> None:
    def events(name: str) -> list[str]:
        return [frame.event for frame in faults.frames(SCENARIOS[name].script.recording)]

    whole = SCENARIOS["open_block_looks_whole"]
    step = trace(whole.script).steps[16]
    assert whole.after == 17
    (call,) = step.turn.calls
    assert call.status == "streaming"
    assert call.text == '{"item": "W-7", "label": "Ready for review"}'
    assert schema_error(CHANGE_LABEL, json.loads(call.text)) == ""
    assert events("dropped_after_block_stop")[17:] == ["content_block_stop"]
    assert events("error_then_late_completion")[14:] == ["error"]
    limited = trace(SCENARIOS["max_tokens_inside_tool_json"].script).turn
    assert [call.status for call in limited.calls] == ["error"]  # closed, and it does not parse
    assert limited.complete
    lost = trace(SCENARIOS["answer_of_the_commit_lost"].script).steps
    assert (lost[21].kind, lost[23].kind, len(lost)) == ("gates", "effect", 25)
    assert trace(SCENARIOS["whole_proposal"].script).steps[20].kind == "end"
    assert (len(State), len(GATES)) == (10, 7)


@each_scenario
def test_a_scenarios_trace_ends_at_the_moment_that_it_is_about(name: str) -> None:
    scenario, cut = SCENARIOS[name], acceptance.traced(name)
    whole = trace(scenario.script).steps
    assert cut.attempt.state is scenario.state
    assert cut.steps == whole[: len(cut.steps)]
    assert (len(cut.steps) == len(whole)) == (scenario.after is None)


# --- The gates ----------------------------------------------------------------------------------


@pytest.mark.parametrize("gate", GATES)
def test_an_answer_for_each_gate_passes_all_before_it(gate: str) -> None:
    outcome = judge(for_each_gate()[gate], policy_for("ada"))
    *before, last = outcome.verdicts
    assert [verdict.gate for verdict in before] == list(GATES)[: len(before)]
    assert all(verdict.passed for verdict in before)
    assert (last.gate, last.passed) == (gate, False)
    assert outcome.state in (State.HELD, State.INVALID)
    assert outcome.proposals == ()


def test_there_is_an_answer_for_every_gate_in_their_order() -> None:
    assert list(for_each_gate()) == list(GATES)
    good = judge(synth.change_label(), policy_for("ada"))
    assert [verdict.gate for verdict in good.verdicts] == list(GATES)
    assert all(verdict.passed for verdict in good.verdicts)


def test_who_may_is_asked_again_when_it_is_committed() -> None:
    outcome, effects = judge(synth.change_label(), policy_for("ada")), RecordingAdapter()
    assert outcome.state is State.VALIDATED_PROPOSAL
    now = policy_for("ada", {"W-7": WorkItem("W-7", "Draft", "bo")})
    done = commit(outcome.attempt, outcome.proposals, effects, now.authorise)
    assert done.state is State.ABORTED
    assert done.why == "no longer authorised: W-7 belongs to bo, not to ada"
    assert effects.submissions == []


# --- What a person is told ----------------------------------------------------------------------


def test_each_state_has_words_of_its_own_and_only_a_record_makes_it_done() -> None:
    assert SAID.keys() == set(State)
    assert len(set(SAID.values())) == len(SAID)
    done = re.compile(r"\b(?:done|success|on record|is made)\b", re.IGNORECASE)
    told = {state for state, words in SAID.items() if done.search(words)}
    assert told - {State.INVALID} == {State.COMMITTED}  # "nothing of this answer may be acted on"


@each_of_the_eight
def test_no_text_that_stopped_is_called_done(name: str) -> None:
    steps = trace(SCENARIOS[name].script).steps
    for step in steps:
        made = step.attempt.said == SAID[State.COMMITTED]
        assert made == (step.attempt.state is State.COMMITTED)


# --- Identity -----------------------------------------------------------------------------------


def laughing() -> Recording:
    return SCENARIOS["delivered_twice"].script.recording


@given(st.lists(st.integers(0, 20), max_size=30))
def test_repeating_any_envelopes_in_any_order_changes_nothing(again: list[int]) -> None:
    sent = list(envelopes(laughing()))
    inbox = Inbox()
    for envelope in sent:
        inbox.handle(envelope)
    turn, attempt = inbox.turn, inbox.attempt
    for place in again:
        assert inbox.handle(sent[place % len(sent)]) is Receipt.REPEATED
    assert inbox.turn is turn
    assert inbox.attempt is attempt


# --- Which event is which input -----------------------------------------------------------------

WHOLE = SCENARIOS["whole_proposal"].script


def strange_delta(index: int) -> bytes:
    """A frame with a delta of a kind that is not known here."""
    strange = {"type": "strange_delta", "strange": "x"}
    return frame({"type": "content_block_delta", "index": index, "delta": strange})


def calling(*calls: ToolCall) -> Script:
    """An answer that makes some calls, which ada asked for."""
    return Script(synth.answer(calls, "tool_use"), policy=policy_for("ada"))


GOOD = {"item": "W-7", "label": "Ready for review"}
TWINS = [ToolCall("change_label", GOOD, id="same")] * 2

#: The lesson's table, and the lines under it: what comes -> the input that decided, and the state.
INPUTS: dict[str, tuple[Script, Input | None, State]] = {
    "an unknown event": (WHOLE.unknown(after=13), Input.GATES_PASSED, State.VALIDATED_PROPOSAL),
    "an unknown delta of text": (
        WHOLE.insert(4, strange_delta(0)),
        Input.GATES_PASSED,
        State.VALIDATED_PROPOSAL,
    ),
    "an error": (WHOLE.error(after=14), Input.ERROR, State.INVALID),
    "a delta after its stop": (
        WHOLE.inject(faults.delta_after_stop, index=0),
        Input.VIOLATION,
        State.INVALID,
    ),
    "a second start": (
        WHOLE.inject(faults.second_start, after=13),
        Input.VIOLATION,
        State.INVALID,
    ),
    "an unknown delta of a tool": (
        WHOLE.insert(14, strange_delta(1)),
        Input.AMBIGUITY,
        State.HELD,
    ),
    "a gap": (WHOLE.inject(faults.index_gap, index=1), Input.AMBIGUITY, State.HELD),
    "one id twice": (calling(*TWINS), Input.AMBIGUITY, State.HELD),
    "the end": (WHOLE.disconnect(after=19), Input.ENDED, State.INCOMPLETE),
    "a bound": (WHOLE.inject(faults.never_end, after=13), Input.BOUND, State.INCOMPLETE),
    "a cancellation": (WHOLE.cancel(after=13), Input.CANCEL, State.ABORTED),
    "no call": (SCENARIOS["text_answer"].script, Input.COMPLETED, State.MESSAGE_COMPLETE),
    "a bound after the marker": (
        WHOLE.inject(faults.never_end, after=20),
        Input.BOUND,
        State.HELD,
    ),
    "an error after the marker": (WHOLE.error(after=20), Input.GATES_FAILED, State.INVALID),
    "a delta after the marker": (
        WHOLE.insert(20, strange_delta(1)),
        Input.GATES_FAILED,
        State.INVALID,
    ),
    "the marker twice": (
        WHOLE.inject(faults.duplicate, frame=20),
        Input.GATES_PASSED,
        State.VALIDATED_PROPOSAL,
    ),
}


@pytest.mark.parametrize(("script", "given", "state"), INPUTS.values(), ids=INPUTS)
def test_what_comes_is_the_input_that_the_lesson_says(
    script: Script, given: Input | None, state: State
) -> None:
    attempt = trace(script).attempt
    assert (attempt.by, attempt.state) == (given, state)


@pytest.mark.parametrize(
    ("frames", "early", "missing"),
    [(20, 18, "there is no stop reason"), (14, 14, "a block never stopped")],
    ids=["then the rest comes", "then it drops"],
)
def test_who_says_completed_too_early_fails_the_first_gate(
    frames: int, early: int, missing: str
) -> None:
    played = play_script(WHOLE.disconnect(after=frames), completed_after=early)
    assert played.states[-2:] == (State.MESSAGE_COMPLETE, State.INVALID)
    assert played.attempt.why == f"completion: {missing}"
    assert played.submitted_then == 0


# --- The exercise -------------------------------------------------------------------------------


class NeverArrives(RecordingAdapter):
    """Effects that no submission reaches in time."""

    def submit(self, key: str, proposals: tuple[Proposal, ...]) -> Record | Refusal:
        raise TimeoutError("nothing answers")


def without_a_record() -> State:
    outcome, effects = judge(WHOLE.recording, WHOLE.policy), NeverArrives()
    doubt = commit(outcome.attempt, outcome.proposals, effects)
    assert doubt.state is State.RECONCILING
    after = reconcile(doubt, effects)
    assert after.said == "Stopped: no change was made"
    late = RecordingAdapter.submit(effects, doubt.id, outcome.proposals)
    assert isinstance(late, Refusal)
    return after.state


def stopped_while_committing() -> State:
    outcome, effects = judge(WHOLE.recording, WHOLE.policy), RecordingAdapter()
    begun = advance(begin(outcome.attempt), Input.CANCEL)
    return perform(begun, outcome.proposals, effects).state


def last(script: Script) -> State:
    return trace(script).attempt.state


TWO = (ToolCall("change_label", GOOD), ToolCall("delete_item", {"item": "W-7"}))

#: What the words of each sequence mean, done with the consumer's own parts.
RUNS: dict[str, Callable[[], State]] = {
    "a": lambda: play_script(WHOLE.disconnect(after=14), completed_after=14).attempt.state,
    "b": lambda: last(WHOLE.error(after=20)),
    "c": lambda: last(WHOLE.inject(faults.duplicate, frame=20)),
    "d": lambda: last(WHOLE.insert(14, strange_delta(1))),
    "e": lambda: last(calling(*TWO)),
    "f": without_a_record,
    "g": stopped_while_committing,
    "h": lambda: last(WHOLE.commit(lost=True).commit()),
    "i": lambda: last(SCENARIOS["text_answer"].script),
    "j": lambda: last(WHOLE.disconnect(after=20, ending="reset")),
    "k": lambda: last(WHOLE.inject(faults.never_end, after=18)),
    "l": lambda: play_script(WHOLE, after=18).then.state,
}


@pytest.mark.parametrize("letter", exercise_05.SEQUENCES)
def test_the_solution_of_the_exercise_is_what_the_consumer_does(letter: str) -> None:
    assert exercise_05.solution(letter) == RUNS[letter]()


def test_all_states_are_asked_for_but_one_that_is_a_moment() -> None:
    asked = {each.state for each in exercise_05.SEQUENCES.values()}
    assert asked == set(State) - {State.COMMITTING}


def test_the_sequences_are_told_and_each_reason_only_after_a_right_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def half(case: str) -> str:
        return exercise_05.solution(case) if case < "d" else {}[case]

    exercise_05.tell(half)
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 72
    flat = " ".join(said.split())
    for letter, each in exercise_05.SEQUENCES.items():
        assert f"{letter} {each.says}" in flat
        assert (each.why in flat) is (letter < "d")


def test_the_learner_may_look_into_the_table_with_plain_words() -> None:
    now = "PREVIEW"
    for given_ in ["content", "completed", "a word of nobody's", "gates passed"]:
        now = TABLE[now].get(given_, now)  # type: ignore[index, call-overload]
    assert now == "VALIDATED_PROPOSAL"


def test_a_script_of_ones_own_can_be_played_too() -> None:
    assert play_script(WHOLE.commit().commit()).submissions == ("attempt-1",)
    assert play_script(WHOLE.cancel(after=3)).attempt.state is State.ABORTED
    assert acceptance.play_script(WHOLE.commit(lost=True)).attempt.state is State.RECONCILING


@pytest.mark.parametrize("wrong", exercise_05.EXERCISES[0].wrong, ids=lambda wrong: wrong.says)
def test_a_known_mistake_is_told_its_case_what_was_expected_and_why(
    wrong: Wrong, capsys: pytest.CaptureFixture[str]
) -> None:
    case = next(each for each in exercise_05._cases() if each.name == wrong.caught_by)
    check("05-ex", wrong.answer)
    said = capsys.readouterr().out
    assert f"case      {case.name}\n" in said
    assert f"expected  {case.expected!r}\n" in said
    came = wrong.answer(*case.given)
    assert f"came      {came!r}\n" in said
    assert came is None or case.if_wrong in " ".join(said.split())


def test_an_answer_may_be_the_name_or_the_state_itself(capsys: pytest.CaptureFixture[str]) -> None:
    check("05-ex", lambda case: State(exercise_05.solution(case)))
    assert "right in all" in capsys.readouterr().out
