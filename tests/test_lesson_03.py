"""Lesson 03 tells the truth: what its text and its questions say is so is tried here."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest

from streamlab import Consumer, Reader, faults, fold, judge, reduce, synth, trace
from streamlab.consumer.attempt import State
from streamlab.consumer.history import content
from streamlab.consumer.turn import Segment, Turn
from streamlab.streams.recording import Recording
from streamlab.study import assembling
from streamlab.study.assembling import assemble, fragment, fragments, side_by_side
from streamlab.study.lesson_01 import payloads
from streamlab.study.prefixes import lenient, prefixes
from streamlab.study.questions import question
from streamlab.wire import events as e
from tests.refresh_notebooks import notebooks

INVOICE = synth.pay_invoice()
PIECES = fragments(INVOICE, index=1)


def right_text(id: str) -> str:
    asked = question(id)
    return asked.options[asked.right].text


def append_to_last(events: list[dict[str, Any]]) -> list[str]:
    """The lesson's own wrong way."""
    blocks: list[str] = []
    for event in events:
        if event["type"] == "content_block_start":
            blocks.append("")
        elif event["type"] == "content_block_delta":
            blocks[-1] += fragment(event)
    return blocks


def read(recording: Recording) -> list[e.Event]:
    reader = Reader()
    reads = reader.feed(recording.data) + reader.end(recording.ending)
    return [event for _, events in reads for event in events]


# --- Whose fragment -------------------------------------------------------------------------------


def test_the_last_block_gets_what_the_index_gives_to_another() -> None:
    mixed = payloads(side_by_side())
    assert len(mixed) == 10
    wrong, right = ["Ship W-7", "Hold W-8 and W-9"], ["Ship W-7 and W-9", "Hold W-8"]
    assert append_to_last(mixed) == wrong
    assert right_text("03-order") == f"`{wrong}`"
    assert [segment.text for segment in judge(side_by_side()).turn.segments] == right
    assert list(assemble(mixed).values()) == right


@pytest.mark.parametrize("seed", range(8))
def test_two_parallel_calls_keep_their_own_inputs_however_they_come(seed: int) -> None:
    outcome = judge(faults.interleave(synth.parallel_tools(), seed=seed))
    assert [(p.call_id[-1], p.input["item"], p.input["label"]) for p in outcome.proposals] == [
        ("1", "W-7", "Ready for review"),
        ("2", "W-8", "Blocked"),
    ]


def test_a_segment_has_its_id_before_it_has_content() -> None:
    for step in trace(faults.interleave(synth.parallel_tools(), seed=2)).steps:
        if any(isinstance(event, e.SegmentStarted) for event in step.events):
            (event,) = step.events
            segment = step.turn.find(event.segment)
            assert segment is not None and (segment.id, segment.text) == (event.segment, "")


@pytest.mark.parametrize("case", assembling.CASES, ids=lambda case: case[0])
def test_the_cases_agree_with_streamlab(case: tuple[str, Any, assembling.Blocks, str]) -> None:
    _, stream, expected, _ = case
    stopped = [s for s in judge(stream()).turn.segments if s.status != "streaming"]
    assert {int(s.id): s.input if s.kind == "tool_call" else s.text for s in stopped} == expected


# --- What a fragment would have meant -------------------------------------------------------------


def test_to_act_as_soon_as_it_looks_valid_is_to_pay_one() -> None:
    readings = [lenient("".join(PIECES[:n])) or {} for n in range(1, len(PIECES) + 1)]
    paid = [reading["amount"] for reading in readings if {"invoice", "amount"} <= reading.keys()]
    assert paid[0] == 1
    table = prefixes("".join(PIECES), ("invoice", "amount"))
    assert len(table.rows) == 58
    assert len(table.meanings) - 1 == 6
    assert right_text("03-meanings") == "Six."


def test_an_input_is_there_from_its_stop_on_and_its_json_is_never_in_the_text() -> None:
    for step in trace(INVOICE).steps:
        assert "{" not in step.turn.text
        for call in step.turn.calls:
            assert (call.input is None) is (call.status == "streaming")
    assert judge(INVOICE).turn.text == "I'll pay INV-17."
    assert judge(INVOICE).turn.calls[0].input["amount"] == 100000


def test_no_input_is_an_empty_one_and_half_an_input_is_none() -> None:
    empty = judge(synth.answer([synth.ToolCall("list_items")])).turn.calls[0]
    assert (empty.status, empty.input) == ("ready", {})
    cut = judge(faults.token_limit(INVOICE, after=11)).turn.calls[0]
    assert (cut.status, cut.input) == ("error", None)
    assert cut.text == '{"invoice": "INV-17", "amount": 1'


# --- Thinking -------------------------------------------------------------------------------------


def test_thinking_goes_back_byte_for_byte_and_tidying_changes_it() -> None:
    stream = synth.thinking_then_tool()
    *thoughts, signature = fragments(stream, index=0)
    assert len(thoughts) == 4
    block = content(judge(stream).turn)[0]
    assert block == {
        "type": "thinking",
        "thinking": "".join(thoughts),
        "signature": signature,
    }
    kept = judge(stream).turn.segments[0]
    assert (kept.text, kept.signature) == (block["thinking"], signature)
    stripped = "".join(map(str.strip, thoughts))
    assert len(block["thinking"]) - len(stripped) == 3  # spaces, as the answer says
    assert stripped != block["thinking"] != " ".join(thoughts)
    assert right_text("03-thinking") == "The signature is no longer that of this text."


# --- What fits nowhere ----------------------------------------------------------------------------


def test_only_what_keeps_the_grammar_may_become_a_proposal() -> None:
    label = synth.change_label()
    streams = {
        "new event": faults.unknown(label, after=12),
        "gap": faults.index_gap(label, index=1),
        "late delta": faults.delta_after_stop(label, index=1),
    }
    outcomes = {name: judge(stream) for name, stream in streams.items()}
    assert [outcome.state for outcome in outcomes.values()] == [
        State.VALIDATED_PROPOSAL,
        State.HELD,
        State.INVALID,
    ]
    for outcome in outcomes.values():  # in each of them a whole call came
        assert outcome.turn.calls[0].input == {"item": "W-7", "label": "Ready for review"}
    assert [len(outcome.proposals) for outcome in outcomes.values()] == [1, 0, 0]
    assert right_text("03-held") == "From the first only."


def test_an_unknown_event_completes_nothing_however_final_it_sounds() -> None:
    ended = faults.disconnect(synth.change_label(), after=19)
    outcome = judge(faults.unknown(ended, after=19, type="message_finished"))
    assert outcome.state is State.INCOMPLETE
    assert outcome.proposals == ()
    assert "'message_finished' is not known here" in outcome.turn.facts.problems[0].message


def test_an_unknown_delta_of_a_tools_block_is_held() -> None:
    strange = (
        b"event: content_block_delta\n"
        b'data: {"type":"content_block_delta","index":1,"delta":{"type":"new_delta","x":"y"}}\n\n'
    )
    outcome = judge(faults.insert(synth.change_label(), 12, strange))
    assert outcome.state is State.HELD
    assert outcome.proposals == ()


# --- The loop -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "recording",
    [
        faults.interleave(synth.parallel_tools(), seed=2),
        faults.disconnect(INVOICE, after=11),
        faults.index_gap(INVOICE, index=1),
        faults.delta_after_stop(INVOICE, index=1),
    ],
    ids=["whole", "cut", "gap", "late delta"],
)
def test_the_loop_of_the_lesson_gets_as_far_as_the_consumers_own(recording: Recording) -> None:
    path = next(path for path in notebooks() if path.name.startswith("03"))
    cells = {cell.id: cell.source for cell in nbformat.read(path, as_version=4).cells}
    names: dict[str, Any] = {"mixed": recording}
    exec(cells["imports"], names)
    exec(cells["loop-code"], names)
    consumer = Consumer()
    for chunk in recording.chunks:
        consumer.feed(chunk.data)
    consumer.end(recording.ending)
    assert names["turn"] == consumer.turn
    before_the_gates = [step for step in trace(recording).steps if step.kind != "gates"]
    assert names["attempt"] == before_the_gates[-1].attempt


def test_reducing_gives_the_same_object_where_nothing_changed_and_replay_equals_fold() -> None:
    events = read(faults.ping_flood(side_by_side(), after=1, count=1))
    turn = fold([])
    kept = []
    for event in events:
        before, turn = turn, reduce(turn, event)
        if turn is before:
            kept.append(type(event))
        else:
            assert turn != before
    assert kept == [e.KeepAlive, e.StreamEnded]
    assert turn == fold(events)
    assert isinstance(turn, Turn)
    assert all(isinstance(segment, Segment) for segment in turn.segments)
