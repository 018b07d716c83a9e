"""The fifth dialect: a step is found by its index, and the last status says what it is worth."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.consumer.consumer import Consumer
from streamlab.wire.events import Tokens
from streamlab.wire.gemini_interactions import InteractionsReader

Payload = dict[str, Any]

CREATED: Payload = {
    "event_type": "interaction.created",
    "interaction": {"id": "int_1", "status": "in_progress", "model": "model-1"},
}


def start(index: int, type: str, **fields: Any) -> Payload:
    return {"event_type": "step.start", "index": index, "step": {"type": type, **fields}}


def delta(index: int, type: str, **fields: Any) -> Payload:
    return {"event_type": "step.delta", "index": index, "delta": {"type": type, **fields}}


def stop(index: int) -> Payload:
    return {"event_type": "step.stop", "index": index}


def completed(status: str = "completed", **fields: Any) -> Payload:
    about = {"id": "int_1", "status": status, **fields}
    return {"event_type": "interaction.completed", "interaction": about}


def stream(*payloads: Payload, done: bool = True) -> bytes:
    frames = [f"event: {p['event_type']}\ndata: {json.dumps(p)}\n\n" for p in payloads]
    return "".join([*frames, "event: done\ndata: [DONE]\n\n" if done else ""]).encode()


def consume(data: bytes, size: int = 0) -> Consumer:
    consumer = Consumer()
    for at in range(0, len(data), size or len(data)):
        consumer.feed(data[at : at + (size or len(data))])
    consumer.end()
    return consumer


THOUGHT = [
    start(0, "thought"),
    delta(0, "thought_summary", content={"type": "text", "text": "Look it up"}),
    delta(0, "thought_signature", signature="c2ln"),
    stop(0),
]
TEXT = [start(1, "model_output"), delta(1, "text", text="On it."), stop(1)]
CALL = [
    start(2, "function_call", id="call_1", name="pay", arguments={}),
    delta(2, "arguments_delta", arguments='{"amount"'),
    delta(2, "arguments_delta", arguments=": 12}"),
    stop(2),
]
USAGE = {"total_input_tokens": 9, "total_output_tokens": 5, "total_thought_tokens": 3}
STORY = stream(CREATED, *THOUGHT, *TEXT, *CALL, completed("requires_action", usage=USAGE))


def test_a_whole_story_is_a_proposal() -> None:
    consumer = consume(STORY)
    thought, text, call = consumer.turn.segments
    assert consumer.reader.wire == "gemini-interactions"
    assert (thought.kind, thought.text, thought.signature) == ("thinking", "Look it up", "c2ln")
    assert (text.kind, text.text) == ("text", "On it.")
    assert (call.start.name, call.start.call_id, call.input) == ("pay", "call_1", {"amount": 12})
    assert consumer.attempt.state == "VALIDATED_PROPOSAL"
    assert consumer.turn.facts.tokens == Tokens(9, 8, 3)
    assert consumer.turn.facts.problems == ()


@given(st.integers(1, 60))
def test_any_size_of_read_gives_the_same_turn(size: int) -> None:
    assert consume(STORY, size).turn == consume(STORY).turn


STATUS = {
    "completed": ("end_turn", "MESSAGE_COMPLETE"),
    "requires_action": ("tool_use", "HELD"),  # and there is no call
    "requires_continuation": ("pause_turn", "HELD"),
    "incomplete": ("max_tokens", "HELD"),
    "budget_exceeded": ("max_tokens", "HELD"),
    "cancelled": ("other", "HELD"),
    "a_later_one": ("other", "HELD"),
    "failed": (None, "INVALID"),
    "in_progress": (None, "INVALID"),
}


@pytest.mark.parametrize("status", STATUS)
def test_completed_does_not_mean_success_the_status_decides(status: str) -> None:
    text = [start(0, "model_output"), delta(0, "text", text="Hi"), stop(0)]
    consumer = consume(stream(CREATED, *text, completed(status)))
    assert (consumer.turn.facts.stop_reason, consumer.attempt.state.value) == STATUS[status]


def test_the_latest_status_counts_where_the_marker_has_none() -> None:
    update = {"event_type": "interaction.status_update", "status": "budget_exceeded"}
    marker = {"event_type": "interaction.completed", "interaction": {"id": "int_1"}}
    consumer = consume(stream(CREATED, *THOUGHT, update, marker))
    assert consumer.turn.facts.stop_reason == "max_tokens"


GIVEN = start(0, "function_call", id="c", name="pay", arguments={"amount": 1})
MORE = delta(0, "arguments_delta", arguments='{"amount": 2}')
EQUAL = delta(0, "arguments_delta", arguments='{"amount":1}')
NO_ID = start(0, "function_call", name="pay")
LATER = start(0, "function_call", id="c", name="pay")
TEXT_2 = [start(2, "model_output"), stop(2)]

#: what comes -> (state, the rule that says why)
ODD: dict[str, tuple[list[Payload], str, str]] = {
    "an input in the start": ([GIVEN, stop(0)], "VALIDATED_PROPOSAL", ""),
    "the same input again": ([GIVEN, EQUAL, stop(0)], "VALIDATED_PROPOSAL", ""),
    "two inputs": ([GIVEN, MORE, stop(0)], "HELD", "ambiguous"),
    "no id": ([NO_ID, stop(0)], "HELD", "ambiguous"),
    "an id twice": (
        [GIVEN, stop(0), start(1, "function_call", id="c", name="pay"), stop(1)],
        "HELD",
        "ambiguous",
    ),
    "a value not understood": ([LATER, delta(0, "patch", at=1), stop(0)], "HELD", "ambiguous"),
    "a step is missing": ([GIVEN, stop(0), *TEXT_2], "HELD", "ambiguous"),
    "no start": ([delta(0, "text", text="x")], "INVALID", "delta-without-start"),
    "a stop without a start": ([stop(0)], "INVALID", "stop-without-start"),
    "never stopped": ([GIVEN], "INVALID", "stop-too-early"),
    "a number twice": ([GIVEN, GIVEN, stop(0)], "INVALID", "index-reused"),
    "no number": ([start(-1, "model_output")], "INVALID", "malformed"),
    "created twice": ([CREATED], "INVALID", "second-start"),
    "an error": (
        [{"event_type": "error", "error": {"code": "unavailable", "message": "busy"}}],
        "INVALID",
        "provider-error",
    ),
    "a new event": (
        [GIVEN, stop(0), {"event_type": "step.pause"}],
        "VALIDATED_PROPOSAL",
        "unknown",
    ),
    "a new step": ([GIVEN, stop(0), start(1, "poem"), stop(1)], "VALIDATED_PROPOSAL", "unknown"),
    "the provider's own tool": (
        [start(0, "google_search_call", id="s", arguments={"queries": ["x"]}), stop(0)],
        "HELD",  # requires_action, and there is nothing for the client to do
        "tool-use-without-call",
    ),
}


@pytest.mark.parametrize(("body", "state", "rule"), ODD.values(), ids=ODD)
def test_what_is_odd_is_said_and_what_cannot_be_proved_is_never_proposed(
    body: list[Payload], state: str, rule: str
) -> None:
    consumer = consume(stream(CREATED, *body, completed("requires_action")))
    assert consumer.attempt.state == state
    assert rule in {"", *(p.rule for p in consumer.turn.facts.problems)}


@pytest.mark.parametrize("frame", [start(3, "model_output"), CREATED, {"event_type": "step.stop"}])
def test_what_comes_after_the_marker_belongs_to_no_answer(frame: Payload) -> None:
    consumer = consume(stream(CREATED, *THOUGHT, completed(), frame))
    assert consumer.attempt.state == "INVALID"
    assert len(consumer.turn.segments) == 1


def test_without_the_marker_nothing_is_complete_and_done_is_no_marker() -> None:
    consumer = consume(stream(CREATED, *THOUGHT))
    assert consumer.attempt.state == "INCOMPLETE"
    assert [p.rule for p in consumer.turn.facts.problems] == ["done-marker", "incomplete"]
    assert "the content looks closed" in consumer.turn.facts.problems[-1].message


def test_the_names_of_earlier_revisions_are_read_too() -> None:
    text = STORY.decode()
    for old, new in (("created", "start"), ("completed", "complete")):
        text = text.replace(f"interaction.{old}", f"interaction.{new}")
    text = text.replace("step.start", "content.start").replace("step.delta", "content.delta")
    assert consume(text.replace("step.stop", "content.stop").encode()).turn == consume(STORY).turn


def test_one_event_a_line_is_enough() -> None:
    payloads = [CREATED, *THOUGHT, *TEXT, *CALL, completed("requires_action", usage=USAGE)]
    lines = "\n".join(map(json.dumps, payloads)).encode()
    assert consume(lines).turn == consume(STORY).turn
    assert not InteractionsReader.recognises("message_start", {"type": "message_start"})
