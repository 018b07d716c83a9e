"""Lesson 08 tells the truth: its naive readers, its questions, its streams and its exercise."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import nbformat
import pytest

from streamlab import check, faults, judge, synth
from streamlab.consumer.attempt import State
from streamlab.streams.forward_frames import FRAMING, HEADERS
from streamlab.streams.recording import Recording
from streamlab.study import dialects, exercise_08
from streamlab.study.questions import QUESTIONS
from tests.refresh_notebooks import NOTEBOOKS

LESSON: Any = nbformat.read(NOTEBOOKS / "08-four-dialects.ipynb", 4)  # type: ignore[no-untyped-call]
CELLS = {cell.id: cell for cell in LESSON.cells}

W7 = {"item": "W-7", "label": "Ready for review"}
W8 = {"item": "W-8", "label": "Blocked"}

each_wire = pytest.mark.parametrize("wire", dialects.WIRES)


def cell(id: str) -> str:
    return str(CELLS[id].source)


def printed(id: str) -> str:
    texts = (output.get("text", "") for output in CELLS[id].outputs)
    return "".join("".join(text) for text in texts)


def right_text(id: str) -> str:
    asked = QUESTIONS[id]
    return asked.options[asked.right].text


def defined(*ids: str, **given: Any) -> dict[str, Any]:
    """The names that some cells of the lesson define."""
    names: dict[str, Any] = dict(given)
    for id in ("imports", *ids):
        exec(cell(id), names)
    return names


def inputs(recording: Recording) -> list[Any]:
    return [proposal.input for proposal in judge(recording).proposals]


# --- One answer -----------------------------------------------------------------------------------


def test_one_fragment_stands_in_another_field_on_each_wire() -> None:
    shown = {wire: dialects.first(synth.story(wire), "I'll mark") for wire in dialects.WIRES}
    assert [text.startswith("event: ") for text in shown.values()] == [True, False, True, False]
    fields = ('"text":"I\'ll mark"', '"content":"I\'ll mark"', '"delta":"I\'ll mark"')
    for wire, field in zip(dialects.WIRES, (*fields, fields[0]), strict=True):
        assert field in shown[wire]
        assert shown[wire] in printed("first")


@each_wire
def test_the_story_means_the_same_whoever_tells_it(wire: str) -> None:
    here, claude = judge(synth.story(wire)), judge(synth.story())
    assert dialects.meaning(here.turn) == dialects.meaning(claude.turn)
    assert here.turn.facts.stop_reason == "tool_use"
    assert here.state is claude.state is State.VALIDATED_PROPOSAL
    assert inputs(synth.story(wire)) == [W7]
    assert right_text("08-equal").startswith("What each part is and says")


def test_the_ids_of_the_calls_are_not_equal() -> None:
    ids = {judge(synth.story(wire)).turn.calls[0].start.call_id for wire in dialects.WIRES}
    assert len(ids) > 1 and "" not in ids
    assert all(id in printed("run-equal") for id in ids)


def test_arguments_by_path_are_a_third_way_to_the_same_input() -> None:
    by_path = synth.story("gemini", style=synth.Style(arguments="path"))
    assert b'"jsonPath":"$.item"' in by_path.data and b'"args":' not in by_path.data
    assert dialects.meaning(judge(by_path).turn) == dialects.meaning(judge(synth.story()).turn)
    assert "[True, True, True, True, True]" in printed("run-equal")


def test_what_the_table_says_of_the_four_is_in_their_streams() -> None:
    """Markers at the end, and how often Responses says an input."""
    ends = {wire: faults.frames(synth.story(wire))[-1].data for wire in dialects.WIRES}
    assert b'"message_stop"' in ends["claude"]
    assert ends["openai-chat"] == b"[DONE]"
    assert b'"response.completed"' in ends["openai-responses"]
    assert b'"functionCall"' in ends["gemini"]
    frames = faults.frames(synth.story("openai-responses"))
    assert sum(b'\\"Ready for review\\"' in frame.data for frame in frames) == 3


# --- Whose fragment -------------------------------------------------------------------------------


def test_by_index_is_right_about_mixed_calls_and_loses_one_of_two_at_the_same_index() -> None:
    by_index = defined("naive-code")["by_index"]
    mixed = dialects.entries(dialects.side_by_side())
    assert [entry["index"] for entry in mixed] != sorted(entry["index"] for entry in mixed)
    assert [json.loads(text) for text in by_index(mixed)] == [W7, W8]
    assert [json.loads(text) for text in by_index(dialects.ONE_INDEX)] == [W8]
    assert right_text("08-index") == "The call for W-8 alone."


def test_ids_prove_two_calls_on_one_index_and_without_them_it_is_held() -> None:
    assert inputs(dialects.chat(dialects.ONE_INDEX)) == [W7, W8]
    unproved = judge(dialects.chat(dialects.NO_IDS))
    assert (unproved.state, unproved.proposals) == (State.HELD, ())
    assert unproved.complete


def test_the_chat_streams_of_the_lesson_are_whole() -> None:
    for entries in (dialects.ONE_INDEX, dialects.NO_IDS):
        outcome = judge(dialects.chat(entries))
        assert outcome.complete and outcome.wire == "openai-chat"
        assert all(found.severity != "error" for found in outcome.turn.facts.problems)


# --- Authority ------------------------------------------------------------------------------------


def test_two_versions_of_a_call_are_held_and_of_a_text_the_last_counts() -> None:
    story = synth.story("openai-responses")
    call = judge(dialects.contradicting(story, "Ready for review", "Blocked"))
    assert (call.state, call.proposals) == (State.HELD, ())
    assert call.turn.calls[0].input == {"item": "W-7", "label": "Blocked"}
    assert right_text("08-twice") == "None: the attempt is held, and `Blocked` is shown."
    text = judge(dialects.contradicting(story, "as ready for review", "as blocked"))
    assert text.state is State.VALIDATED_PROPOSAL
    assert text.turn.text == "I'll mark W-7 as blocked."
    assert [found.rule for found in text.turn.facts.problems] == ["restated"]


def test_only_what_is_said_again_is_changed() -> None:
    story = synth.story("openai-responses")
    changed = dialects.contradicting(story, "Ready for review", "Blocked")
    pairs = zip(faults.frames(story), faults.frames(changed), strict=True)
    differ = [old.event for old, new in pairs if old.data != new.data]
    assert differ == [
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]


# --- The end --------------------------------------------------------------------------------------


def test_whoever_takes_the_first_stop_for_the_end_is_right_once() -> None:
    names = defined("naive-end")
    read, answer = names["read_gemini"], dialects.two_sentences()
    assert read(answer) == "Ship W-7. But not before Friday."
    assert read(dialects.stop_in_each(answer)) == read(names["cut"]) == "Ship W-7."


ENDINGS = {
    "whole": (State.MESSAGE_COMPLETE, "Ship W-7. But not before Friday."),
    "cut": (State.INCOMPLETE, "Ship W-7."),
    "reset after the last chunk": (State.INCOMPLETE, "Ship W-7. But not before Friday."),
    "STOP in each chunk": (State.MESSAGE_COMPLETE, "Ship W-7. But not before Friday."),
    "STOP in each chunk, cut": (State.MESSAGE_COMPLETE, "Ship W-7."),
}


def test_a_gemini_answer_is_whole_by_its_reason_and_a_clean_end_and_by_nothing_else() -> None:
    streams = defined("naive-end", "run-end")["streams"]
    judged = {name: judge(recording) for name, recording in streams.items()}
    assert {name: (o.state, o.turn.text) for name, o in judged.items()} == ENDINGS
    assert right_text("08-end") == "There was no finish reason."


@each_wire
def test_the_same_cut_is_noticed_on_every_wire(wire: str) -> None:
    answer = dialects.two_sentences(wire)
    shown = (frame.number for frame in faults.frames(answer) if b"Ship W-7." in frame.data)
    cut = judge(faults.disconnect(answer, after=next(shown)))
    assert (cut.state, cut.turn.text) == (State.INCOMPLETE, "Ship W-7.")


@pytest.mark.parametrize("wire", ["claude", "openai-chat", "openai-responses"])
def test_where_there_is_a_marker_a_missing_one_is_always_noticed(wire: str) -> None:
    answer = dialects.two_sentences(wire)
    last = len(faults.frames(answer)) - 1
    assert judge(faults.disconnect(answer, after=last)).state is State.INCOMPLETE


# --- What can't be mapped, and logs as tests ------------------------------------------------------


def test_the_topics_that_are_shown_are_of_the_table() -> None:
    shown = {"signature", "call id"}
    expected = [
        f"{wire}, {gap.topic}:\n    {gap.text}\n"
        for wire, gaps in synth.NOT_MAPPED.items()
        for gap in gaps
        if gap.topic in shown
    ]
    assert printed("gaps-code") == "".join(expected)


@pytest.mark.parametrize("wire", dialects.WIRES[1:])
def test_a_recorded_log_folds_to_what_was_meant_and_a_lost_frame_shows(wire: str) -> None:
    expected = dialects.meaning(judge(synth.story()).turn)
    log = dialects.fixture(f"{wire}/story.sse")
    assert dialects.meaning(judge(log).turn) == expected
    lost = dialects.meaning(judge(faults.skip(log, 7)).turn)
    assert (lost == expected) is (wire == "openai-responses")  # which says it again


# --- Forwarding -----------------------------------------------------------------------------------


def test_a_browser_hears_the_same_events_whoever_answers_and_no_vendors_words() -> None:
    told = []
    for wire in dialects.WIRES:
        with dialects.forwarding(synth.story(wire)) as server:
            headers, events = dialects.heard(server)
        told.append(events)
        assert headers == [(name, value) for name, value, _ in (*HEADERS, *FRAMING)]
    assert told == [told[0]] * 4
    assert "\n".join(told[0]) in printed("forward-code")
    assert told[0][-1] == "TurnEnded PROPOSED"
    assert not any(word in " ".join(told[0]) for word in ("delta", "choices", "partial_json"))


def test_each_header_that_comes_is_shown_with_its_reason() -> None:
    for name, value, why in (*HEADERS, *FRAMING):
        assert f"{name}: {value}\n" in printed("headers")
        assert why in " ".join(printed("headers").split())


def test_a_forwarder_of_the_lesson_answers_again_and_again() -> None:
    with dialects.forwarding(synth.six_events()) as server:
        _, first = dialects.heard(server)
        _, second = dialects.heard(server)
    assert first == second and first[-1] == "TurnEnded ANSWERED"


# --- The exercise ---------------------------------------------------------------------------------

CASES = {case.name: case for case in exercise_08._cases()}


@pytest.mark.parametrize("name", CASES)
def test_the_exercise_agrees_with_streamlab(name: str) -> None:
    (entries,), expected = CASES[name].given, CASES[name].expected
    outcome = judge(dialects.chat(entries))
    calls = [(part.start.call_id, part.start.name, part.text) for part in outcome.turn.calls]
    assert calls == expected
    assert not any(found.rule == "ambiguous" for found in outcome.turn.facts.problems)


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_the_same_each_time_it_is_given(name: str) -> None:
    (entries,) = CASES[name].given
    before = json.dumps(entries)
    for wrong in exercise_08.WRONG:
        with contextlib.suppress(TypeError, KeyError):
            wrong.answer(entries)
    assert exercise_08.join(entries) == CASES[name].expected
    assert json.dumps(entries) == before


def test_the_naive_reader_of_the_lesson_is_no_solution(capsys: pytest.CaptureFixture[str]) -> None:
    by_index = defined("naive-code")["by_index"]
    capsys.readouterr()
    check("08-ex", by_index)
    assert "08-ex: right in 0 of 11 cases." in capsys.readouterr().out


def test_the_stub_of_the_lesson_is_not_answered_yet(capsys: pytest.CaptureFixture[str]) -> None:
    exec(cell("exercise-stub"), {"check": check})
    assert "not answered yet" in capsys.readouterr().out
