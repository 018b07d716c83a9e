"""The questions tell the truth, and the checks let no known mistake pass.

What the options of lesson 00 say about the SDK, the real one is asked here. Where a newer one does
better, the message says so: then the lesson's story, not only its outputs, is to be written anew.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import anthropic
import pytest

from streamlab import faults, judge, synth, trace
from streamlab.consumer.attempt import State
from streamlab.errors import UsageError
from streamlab.streams.recording import Recording
from streamlab.study import lesson_00, lesson_01
from streamlab.study.questions import EXERCISES, QUESTIONS, check, exercise, question
from streamlab.study.sdk import ask_sdk
from streamlab.study.tasks import UNANSWERED, Exercise, Question, Wrong

WHOLE = synth.pay_invoice()
BROKEN = faults.disconnect(WHOLE, after=11)

each_question = pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS)
each_exercise = pytest.mark.parametrize("asked", EXERCISES.values(), ids=EXERCISES)


def lesson_is_out_of_date(what: str) -> str:
    return (
        f"anthropic {anthropic.__version__} behaves differently from 2.14: {what}. If that is an "
        "improvement, be glad, and write lesson 00 and its questions anew."
    )


def right_text(id: str) -> str:
    asked = question(id)
    return asked.options[asked.right].text


# --- Lesson 00: what the SDK does -----------------------------------------------------------------


def test_the_sdk_returns_a_call_that_was_cut_inside_a_number() -> None:
    heard = ask_sdk(BROKEN)
    given = heard.message and heard.message.content[1].input
    assert (heard.error, given) == ("", {"invoice": "INV-17", "amount": 1}), lesson_is_out_of_date(
        f"get_final_message() gave {given}, its loop raised {heard.error or 'nothing'}"
    )
    assert right_text("00-sdk") == 'It returns the call, with `"amount": 1`.'
    whole = ask_sdk(WHOLE).message.content[1].input
    assert whole["amount"] == 100000


def test_streamlab_does_not_take_the_same_bytes_for_an_answer() -> None:
    outcome = judge(BROKEN)
    assert outcome.state is State.INCOMPLETE
    assert outcome.proposals == ()
    assert outcome.turn.calls[0].input is None


def test_only_the_clean_end_is_silent() -> None:
    errors = {ending: ask_sdk(BROKEN, ending=ending).error for ending in ("eof", "cut", "reset")}
    silent = [ending for ending, error in errors.items() if not error]
    assert silent == ["eof"], lesson_is_out_of_date(f"by ending it raises {errors}")
    assert right_text("00-endings") == "For `cut` and `reset`."


def test_a_cut_that_http_cannot_see_is_a_clean_end() -> None:
    heard = ask_sdk(BROKEN, ending="cut", framing="close")
    assert heard.error == "", lesson_is_out_of_date(f"an unframed cut raises {heard.error}")


def test_the_sdk_asks_again_only_before_an_answer_begins() -> None:
    assert anthropic.DEFAULT_MAX_RETRIES == 2, lesson_is_out_of_date("it retries another number")
    from streamlab.streams.server import FaultServer

    with FaultServer(BROKEN) as server, anthropic.DefaultHttpxClient(trust_env=False) as direct:
        client = anthropic.Anthropic(base_url=server.url, api_key="none", http_client=direct)
        messages: Any = [{"role": "user", "content": "Pay INV-17."}]
        with client.messages.stream(model="any", max_tokens=9, messages=messages) as stream:
            stream.get_final_message()
        assert len(server.wait(1)) == 1


def test_half_a_json_text_can_lack_fields_or_mean_something_else() -> None:
    snapshots = [event.snapshot for event in ask_sdk(WHOLE).events if event.type == "input_json"]
    amounts = [snapshot.get("amount") for snapshot in snapshots]
    assert amounts == [None, None, None, 1, 100000, 100000], lesson_is_out_of_date(
        f"the snapshots have the amounts {amounts}"
    )
    passing = [each for each in snapshots if {"invoice", "amount"} <= each.keys()]
    assert len(passing) == 3
    assert right_text("00-schema") == "Three."


def test_a_loop_that_ended_proves_nothing() -> None:
    whole, broken = ask_sdk(WHOLE), ask_sdk(BROKEN)
    assert (whole.error, broken.error) == ("", ""), lesson_is_out_of_date(broken.error)
    assert "message_stop" in whole.names
    assert "message_stop" not in broken.names


# --- Lesson 01: what the events are for -----------------------------------------------------------


def names(recording: Recording) -> list[str]:
    return [frame.event for frame in faults.frames(recording)]


def test_the_smallest_answer_has_each_event_once_and_in_order() -> None:
    assert names(synth.six_events()) == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert judge(synth.six_events()).turn.complete
    assert judge(faults.reorder(synth.six_events(), frame=5)).state is State.INVALID


def test_a_stream_shows_something_before_it_is_an_answer() -> None:
    steps = trace(synth.greeting()).steps
    shown = next(step for step in steps if step.turn.text)
    done = next(step for step in steps if step.turn.complete)
    assert shown.t is not None and done.t is not None
    assert shown.t < done.t
    assert shown.attempt.state is State.PREVIEW
    assert done.turn.text == "Hello! What would you like to know?"


def test_text_in_pieces_loses_the_call_and_hides_the_cut() -> None:
    def answer_text(recording: Recording) -> str:
        deltas = [event.get("delta", {}) for event in lesson_01.payloads(recording)]
        return "".join(delta.get("text", "") for delta in deltas)

    assert answer_text(synth.change_label()) == "I'll mark W-7 as ready for review."
    assert right_text("01-text") == "The sentence, and nothing about the tool."
    assert judge(synth.change_label()).turn.calls
    cut = faults.disconnect(synth.greeting(), after=6)
    assert answer_text(cut) == "Hello! What would you"
    assert judge(cut).state is State.INCOMPLETE


def test_message_start_opens_the_message_and_nothing_more() -> None:
    turn = judge(faults.disconnect(synth.greeting(), after=1)).turn
    assert turn.facts.id and turn.facts.model
    assert (turn.segments, turn.facts.stop_reason) == ((), None)
    assert turn.facts.usage["output_tokens"] == 1
    assert judge(faults.error(synth.greeting(), after=1)).state is State.INVALID


def test_a_delta_goes_to_the_block_that_its_index_names() -> None:
    mixed = faults.interleave(synth.change_label(), seed=1)
    assert names(mixed) != names(synth.change_label())
    turn = judge(mixed).turn
    assert turn.text == "I'll mark W-7 as ready for review."
    assert turn.calls[0].input == {"item": "W-7", "label": "Ready for review"}


def test_a_stopped_block_may_be_parsed_and_only_a_whole_message_may_be_judged() -> None:
    label = synth.change_label()
    assert names(label)[17] == "content_block_stop"  # frame 18, as the question says
    states = {last: judge(faults.disconnect(label, after=last)) for last in (17, 18, 19, 20)}
    assert [states[last].turn.calls[0].status for last in states] == [
        "streaming",
        "ready",
        "ready",
        "ready",
    ]
    assert [len(states[last].proposals) for last in states] == [0, 0, 0, 1]
    assert states[18].state is states[19].state is State.INCOMPLETE
    assert right_text("01-block-stop") == "No: the block is over, the message is not."


def test_the_last_token_count_is_the_total() -> None:
    label = lesson_01.payloads(synth.change_label())
    start, end = label[0]["message"]["usage"], label[18]["usage"]
    assert (start["output_tokens"], end["output_tokens"]) == (1, 20)
    deltas = [event for event in label if event["type"] == "content_block_delta"]
    assert len(deltas) == 12
    assert deltas[4] is label[9]
    assert deltas[4]["delta"]["partial_json"] == ""  # frame 10
    assert judge(synth.change_label()).turn.facts.usage["output_tokens"] == 20
    assert right_text("01-usage") == "20."


def test_a_ping_changes_nothing_wherever_it_comes() -> None:
    turn = judge(synth.greeting()).turn
    for after in range(12):
        flooded = judge(faults.ping_flood(synth.greeting(), after, count=3)).turn
        assert (flooded.text, flooded.facts) == (turn.text, turn.facts)


# --- The questions --------------------------------------------------------------------------------


@each_question
def test_a_question_has_one_right_option_and_a_reason_for_each(asked: Question) -> None:
    assert 3 <= len(asked.options) <= 5
    assert sum(option.right for option in asked.options) == 1
    assert len({option.text for option in asked.options}) == len(asked.options)
    assert len({option.says for option in asked.options}) == len(asked.options)
    for option in asked.options:
        assert 40 <= len(option.says) <= 300, option.says
        assert option.says.endswith((".", "?"))
        assert option.text.count("`") % 2 == option.says.count("`") % 2 == 0
        assert "*" not in option.text + option.says, "only backticks mean something"


@each_question
def test_the_right_option_is_not_given_away_by_its_length(asked: Question) -> None:
    sizes = [len(option.text) for option in asked.options]
    assert sizes[asked.right] <= 2 * sorted(sizes)[-2]


def test_the_right_option_has_no_favourite_place() -> None:
    places = Counter(asked.right for asked in QUESTIONS.values())
    assert len(places) >= 3
    assert max(places.values()) <= len(QUESTIONS) / 2


def test_an_unknown_id_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no question '99-x'; there are 00-sdk, "):
        question("99-x")
    with pytest.raises(UsageError, match="no exercise '99-ex'; there are 00-ex, 01-ex"):
        exercise("99-ex")


# --- The exercises --------------------------------------------------------------------------------

WRONG = [(asked, wrong) for asked in EXERCISES.values() for wrong in asked.wrong]


@each_exercise
def test_the_solution_passes(asked: Exercise, capsys: pytest.CaptureFixture[str]) -> None:
    check(asked.id, asked.solution)
    assert capsys.readouterr().out == f"{asked.id}: right in all {len(asked.cases())} cases.\n"


@pytest.mark.parametrize(
    ("asked", "wrong"), WRONG, ids=[f"{asked.id}-{wrong.says}" for asked, wrong in WRONG]
)
def test_a_known_wrong_answer_is_caught_by_its_case(
    asked: Exercise, wrong: Wrong, capsys: pytest.CaptureFixture[str]
) -> None:
    case = next(case for case in asked.cases() if case.name == wrong.caught_by)
    check(asked.id, wrong.answer)
    said = capsys.readouterr().out
    assert f"case      {case.name}\n" in said
    assert f"expected  {case.expected!r}\n" in said
    try:
        came = wrong.answer(*case.given)
    except Exception as why:  # some known mistakes raise, on some bytes
        assert f"came      {type(why).__name__}: {why}\n" in said
        assert f"Your function raised {type(why).__name__} on this case" in " ".join(said.split())
        return
    if came is None:
        assert "came      None\n" in said
        assert "why       It returned None: is there a return on every way?\n" in said
    else:
        shown = not case.expected if isinstance(case.expected, bool) else came
        assert f"came      {shown!r}\n" in said
        assert case.if_wrong in " ".join(said.split())


@each_exercise
def test_a_stub_prints_one_fixed_line(asked: Exercise, capsys: pytest.CaptureFixture[str]) -> None:
    check(asked.id, lambda *given: UNANSWERED)
    said = capsys.readouterr().out
    assert said == f"{asked.id}: not answered yet. Replace the dots, then run this cell again.\n"


@each_exercise
def test_whatever_a_learners_function_raises_is_told_as_its_result(
    asked: Exercise, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*given: Any) -> bool:
        return {}["stop"]

    check(asked.id, broken)
    said = capsys.readouterr().out
    assert "came      KeyError: 'stop'\n" in said
    assert "why       Your function raised KeyError on this case: it gave no answer.\n" in said
    assert not any(case.if_wrong in " ".join(said.split()) for case in asked.cases())


@each_exercise
def test_a_function_of_other_arguments_is_told(
    asked: Exercise, capsys: pytest.CaptureFixture[str]
) -> None:
    check(asked.id, lambda: True)
    assert "came      TypeError: " in capsys.readouterr().out


def says(text: Any) -> Any:
    raise ValueError(text)


def of_a_kind(**methods: Any) -> Any:
    """An object of a learner's own class, with these methods."""
    return type("Mine", (), {"__hash__": object.__hash__, **methods})()


class Mute(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        return says("no words")


def raised_mutely(*given: Any) -> Any:
    raise Mute


def raised_at_length(*given: Any) -> Any:
    raise ValueError("x" * 10_000)


NO_REPR = of_a_kind(__repr__=lambda self: says("no picture"))
#: What a learner's function does, and what is said of it.
HOSTILE = {
    "no repr": (lambda *given: NO_REPR, "came      a Mine, which cannot be printed"),
    "a repr that is no text": (lambda *given: of_a_kind(__repr__=lambda self: 1), "a Mine, which"),
    "no truth": (
        lambda *given: of_a_kind(
            __repr__=lambda self: "array",
            __bool__=lambda self: says("ambiguous"),
            __eq__=lambda self, other: self,
        ),
        "cannot be compared with what is expected. ValueError: ambiguous",
    ),
    "no equality": (
        lambda *given: of_a_kind(
            __eq__=lambda *two: says("never"), __bool__=lambda _: says("never")
        ),
        "cannot be compared with what is expected. ValueError: never",
    ),
    "an exception without words": (
        raised_mutely,
        "came      Mute: a Mute, which cannot be printed",
    ),
    "an exception of many words": (raised_at_length, f"came      ValueError: {'x' * 200}…\n"),
    "a long text": (lambda *given: "y" * 10_000, f"came      '{'y' * 199}…"),
    "several lines": (
        lambda *given: of_a_kind(__repr__=lambda self: "a\nb\x0bc"),
        "came      a b c",
    ),
    "half a character": (lambda *given: of_a_kind(__repr__=lambda self: "\ud800"), r"\ud800"),
}


@each_exercise
@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_a_learners_object_does_when_it_is_looked_at_is_told_in_short(
    asked: Exercise, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, wanted = HOSTILE[name]
    check(asked.id, answer)
    said = capsys.readouterr().out
    said.encode()
    assert wanted in said or wanted in " ".join(said.split())
    assert max(map(len, said.splitlines())) < 300


def test_an_array_in_place_of_yes_or_no_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    numpy = pytest.importorskip("numpy")
    for asked in EXERCISES.values():
        check(asked.id, lambda *given: numpy.array([True, False]))
        assert "came      array([ True, False])" in capsys.readouterr().out


def test_any_truth_will_do_for_yes_or_no_but_nothing_is_no_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    solution = EXERCISES["01-ex"].solution
    check("01-ex", lambda types, reasons: [1] if solution(types, reasons) else [])
    assert "right in all" in capsys.readouterr().out
    check("01-ex", lambda types, reasons: True if solution(types, reasons) else None)
    assert "came      None\n" in capsys.readouterr().out
    check("01-ex", lambda types, reasons: [])
    assert "came      [], which counts as False\n" in capsys.readouterr().out
    check("01-ex", lambda types, reasons: ... if "ping" in types else solution(types, reasons))
    assert "why       It returned the dots: " in capsys.readouterr().out


def test_a_call_in_place_of_the_function_is_refused() -> None:
    with pytest.raises(UsageError, match="takes the function itself"):
        check("01-ex", True)  # type: ignore[arg-type]


@each_exercise
def test_a_wrong_answer_is_known_for_every_case(asked: Exercise) -> None:
    """A case that no known mistake needs is a case too many, but for those that must be True."""
    cases = {case.name: case.expected for case in asked.cases()}
    caught = {wrong.caught_by for wrong in asked.wrong}
    assert caught <= cases.keys()
    assert len(cases.keys() - caught) <= 2


def test_the_cases_of_lesson_00_agree_with_streamlab() -> None:
    for name, broken, expected, _ in lesson_00._CASES:
        assert (judge(broken(WHOLE)).state is State.VALIDATED_PROPOSAL) is expected, name


def test_the_cases_of_lesson_01_agree_with_streamlab() -> None:
    for name, stream, expected, _ in lesson_01._CASES:
        assert judge(stream()).turn.complete is expected, name
