"""On every wire format an attempt ends only where the catalogue says, in every form of file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlab.analysis.judge import judge
from streamlab.consumer.attempt import State
from streamlab.errors import UsageError
from streamlab.streams import faults, synth
from streamlab.streams.catalogue import FAULTS, SAME, Fault
from streamlab.streams.edit import frames
from streamlab.streams.parts import Style
from streamlab.streams.recording import Recording
from streamlab.streams.voices import VOICES

WIRES = tuple(synth.WRITERS)  #: the wires that whole answers can be written on
NEW = [wire for wire in WIRES if wire != "claude"]
each_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
each_new_wire = pytest.mark.parametrize("wire", NEW)


@cache
def answers(wire: str) -> tuple[Recording, ...]:
    """Whole answers of many kinds."""
    lessons = (
        synth.six_events(wire=wire),
        synth.greeting(wire=wire),
        synth.parallel_tools(wire=wire),
        synth.thinking_then_tool(wire=wire),
        synth.pay_invoice(wire=wire, style=Style(arguments="path", newline="\r\n")),
    )
    return (*lessons, *(synth.random_answer(seed, wire)[1] for seed in range(8)))


@cache
def alone(wire: str) -> tuple[Recording, ...]:
    """The same answers as files of payloads that stand alone: a line each, or an array."""
    found = []
    for source in answers(wire)[:5]:
        payloads = [frame.data for frame in frames(source) if frame.data != b"[DONE]"]
        found.append(Recording.from_bytes(b"\n".join(payloads) + b"\n", wire=wire))
        found.append(Recording.from_bytes(b"[" + b",\r\n".join(payloads) + b"]", wire=wire))
    return tuple(found)


#: What each whole answer ends as.
ended = cache(lambda source: judge(source).state)


def outcome(fault: Fault, source: Recording, broken: Recording) -> str:
    """Where an attempt ends, in the catalogue's words."""
    state, allowed = judge(broken).state, fault.outcomes_on(source.wire or "claude")
    return SAME if state is ended(source) and SAME in allowed else state.value


def beside(fault: Fault, source: Recording, after: int) -> Recording:
    """The recording with the fault just after a frame."""
    return fault.function(source, **fault.here(source, after))


def all_over(fault: Fault, source: Recording, most: int = 12) -> Iterator[Recording]:
    """The recording with the fault at places that seeds choose, and beside frames all over."""
    count = len(frames(source))
    most = 2 if fault.name == "never_end" else most  # each has hundreds of pings
    seeds, places = range(most // 4 + 1), range(0, count + 1, 1 + count // most)
    attempts = [*(partial(fault.apply, source, seed) for seed in seeds)]
    attempts += [partial(beside, fault, source, after) for after in places]
    for attempt in attempts:
        try:
            yield attempt()
        except UsageError as why:
            assert re.fullmatch(r"[\w\[][^\n]{15,200}[^.\n]", str(why))


# --- Outcomes -------------------------------------------------------------------------------------


@each_fault
@each_new_wire
def test_on_every_wire_an_attempt_ends_only_where_the_catalogue_says(
    wire: str, fault: Fault
) -> None:
    for source in answers(wire):
        for broken in all_over(fault, source):
            assert outcome(fault, source, broken) in fault.outcomes_on(wire)


@each_fault
@pytest.mark.parametrize("wire", WIRES)
def test_so_it_does_where_the_payloads_stand_alone(wire: str, fault: Fault) -> None:
    for source in alone(wire):
        for broken in all_over(fault, source, most=5):
            assert outcome(fault, source, broken) in fault.outcomes_on(wire)


@pytest.mark.parametrize("wire", NEW)
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), fault=st.sampled_from(list(FAULTS.values())), data=st.data())
def test_any_fault_of_any_answer_too(
    wire: str, seed: int, fault: Fault, data: st.DataObject
) -> None:
    source = synth.random_answer(seed, wire)[1]
    after = data.draw(st.integers(0, len(frames(source))))
    try:
        broken = fault.function(source, **fault.here(source, after))
    except UsageError:
        return
    assert outcome(fault, source, broken) in fault.outcomes_on(wire)


@each_new_wire
def test_every_outcome_that_a_wire_declares_of_its_own_happens(wire: str) -> None:
    for fault in (fault for fault in FAULTS.values() if wire in fault.on):
        missing = set(fault.outcomes_on(wire))
        for source in (*answers(wire), *alone(wire)):
            for broken in all_over(fault, source) if missing else ():
                missing.discard(outcome(fault, source, broken))
        assert missing == set(), f"{fault.name} never ended so"


@each_fault
@each_new_wire
def test_a_fault_is_pure_on_every_wire(wire: str, fault: Fault) -> None:
    source = answers(wire)[2]
    before = [tuple(chunk) for chunk in source.chunks]
    found = list(all_over(fault, source, most=4))
    assert found == list(all_over(fault, source, most=4))
    assert [tuple(chunk) for chunk in source.chunks] == before
    assert all(broken.wire == wire for broken in found)


@each_fault
@pytest.mark.parametrize("wire", WIRES)
def test_a_fault_that_its_wire_can_have_has_a_place_in_some_answer(wire: str, fault: Fault) -> None:
    found = any(True for source in answers(wire)[2:5] for _ in all_over(fault, source, most=4))
    assert found == (fault.function.__name__ not in VOICES[wire].cannot)
    assert found == bool(fault.outcomes_on(wire))


@each_fault
def test_what_a_wire_declares_of_its_own_differs_and_is_a_state(fault: Fault) -> None:
    for wire, outcomes in fault.on.items():
        assert set(outcomes) != set(fault.outcomes)
        assert set(outcomes) <= {SAME, *State}
        assert wire in VOICES and fault.function.__name__ not in VOICES[wire].cannot


#: What nobody sends, and a stranger's file may hold, as one event stream a row.
STRANGE = {
    "no objects": ["1", "[]", "null", '"x"', "{}"],
    "wrong kinds": [
        '{"choices": 1, "candidates": "x", "type": [], "output_index": "0", "event_type": {}}',
        '{"choices": [1, {"index": "0", "delta": 5, "finish_reason": []}], "candidates": [{}]}',
        '{"choices": [{"delta": {"tool_calls": [7, {"index": true, "id": 5}]}}]}',
        '{"type": "response.output_item.added", "output_index": 0, "item": {"content": 3}}',
        '{"type": "response.content_part.added", "output_index": 0, "content_index": {}}',
        '{"type": "response.output_text.delta", "output_index": 0, "delta": 9}',
        '{"type": "response.completed", "response": 1}',
    ],
    "the end first": [
        "[DONE]",
        '{"choices": [{"index": 0, "finish_reason": "stop", "delta": {}}]}',
        '{"type": "response.completed", "response": {}}',
        '{"type": "response.created", "response": {}}',
        '{"candidates": [{"finishReason": "STOP"}]}',
    ],
}


@pytest.mark.parametrize("rows", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("wire", VOICES)
def test_on_what_nobody_sends_a_fault_works_or_says_why_not(wire: str, rows: list[str]) -> None:
    data = "".join(f"data: {row}\n\n" for row in rows).encode()
    for source in (Recording.from_bytes(data, wire=wire), Recording(wire=wire)):
        for fault in FAULTS.values():
            for broken in all_over(fault, source, most=8):
                assert judge(broken).state in State


# --- What the other wires teach -------------------------------------------------------------------


def test_on_gemini_a_lost_frame_can_lose_a_whole_call_unseen() -> None:
    source = synth.thinking_then_tool(wire="gemini", style=Style(finish="own"))
    call = next(f.number for f in frames(source) if b"functionCall" in f.data)
    outcome = judge(faults.skip(source, call))
    assert (outcome.state, outcome.turn.calls) == (State.MESSAGE_COMPLETE, ())


@pytest.mark.parametrize(("wire", "state"), [("openai-chat", "SAME"), ("gemini", "INCOMPLETE")])
def test_a_reset_after_the_last_frame_is_fine_only_where_there_is_a_marker(
    wire: str, state: str
) -> None:
    fault, source = FAULTS["reset_at_end"], synth.change_label(wire=wire)
    assert outcome(fault, source, fault.apply(source)) == state


def test_on_chat_and_gemini_nothing_tells_that_an_answer_begins_again() -> None:
    for wire in ("openai-chat", "gemini"):
        source = synth.greeting(wire=wire)
        again = judge(faults.reconnect(source, 3))
        assert again.state is State.MESSAGE_COMPLETE
        assert again.turn.text.count("Hello") == 2


def test_an_array_cannot_begin_again_inside_itself() -> None:
    source = synth.greeting(wire="gemini", style=Style(form="array"))
    with pytest.raises(UsageError, match="an array cannot begin again inside itself"):
        faults.reconnect(source, 2)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_what_ends_an_array_early_closes_it(after: int) -> None:
    source = synth.greeting(wire="gemini", style=Style(form="array"))
    failed = faults.error(source, after)
    assert failed.data.startswith(b"[") and failed.data.rstrip().endswith(b"]")
    assert len(frames(failed)) == after + 1
    assert judge(failed).state is State.INVALID


def test_json_has_no_place_for_a_comment() -> None:
    for source in alone("openai-chat"):
        with pytest.raises(UsageError, match="no ping, and JSON holds no comment"):
            faults.ping_flood(source, 1)


def test_pings_stay_the_elements_of_an_array() -> None:
    source = alone("claude")[3]
    assert len(frames(faults.ping_flood(source, 3, count=9))) == len(frames(source)) + 9
    for after in (0, 3):
        endless = faults.never_end(source, after, every=600)
        assert len(frames(endless)) == after + 12
