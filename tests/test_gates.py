"""The gates: each looks at one thing, in order, says what it saw, and cannot be gone around."""

from __future__ import annotations

import itertools
import json
import socket
import urllib.request
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.consumer.attempt import Attempt, Input, State, advance, observe
from streamlab.consumer.gates import (
    CALL_GATES,
    CHAT,
    EFFECT,
    GATES,
    Policy,
    Proposal,
    Verdict,
    judge_turn,
    schema_error,
    settle,
)
from streamlab.consumer.turn import EMPTY, Turn, fold, reduce
from streamlab.errors import UsageError
from streamlab.wire.events import (
    Ambiguous,
    Attached,
    BoundExceeded,
    Event,
    InputDelta,
    KeepAlive,
    MessageCompleted,
    MessageStarted,
    Problem,
    ProviderError,
    SegmentStarted,
    SegmentStopped,
    SignatureDelta,
    StopReported,
    StreamEnded,
    TextDelta,
    ThinkingDelta,
    Unknown,
    UsageReported,
)
from tests.streams_for_tests import (
    CALL,
    INPUT,
    STOP,
    TEXT,
    block,
    consume,
    end,
    fragment,
    start,
    stop,
    stream,
)

SCHEMA = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "label": {"type": "string", "maxLength": 9}},
    "required": ["item", "label"],
    "additionalProperties": False,
}


def policy(**changes: Any) -> Policy:
    return Policy(**{"accept": EFFECT.accept, "tools": {"change_label": SCHEMA}, **changes})


def judged(payloads: Any, given: Policy) -> tuple[State, tuple[Verdict, ...]]:
    consumer, _ = consume(stream(payloads), policy=given)
    return consumer.attempt.state, consumer.verdicts


def call(written: str, reason: str = "tool_use", **fields: Any) -> list[Any]:
    body = [block(0, "tool_use", **fields), fragment(0, written), stop(0)]
    return [start(), *body, end(reason), STOP]


# --- Order ------------------------------------------------------------------------------------


def test_a_proposal_has_passed_every_gate_in_order_and_has_no_effect_yet() -> None:
    given = policy(rule=lambda call: "", authorise=lambda call: "")
    consumer, _ = consume(stream(CALL), policy=given)
    assert consumer.attempt.state is State.VALIDATED_PROPOSAL
    assert [verdict.gate for verdict in consumer.verdicts] == list(GATES)
    assert all(verdict.passed and verdict.saw for verdict in consumer.verdicts)
    assert consumer.attempt.why == "every gate passed; nothing has been done yet"
    assert consumer.proposals == (Proposal("call_0", "change_label", json.loads(INPUT)),)


def test_a_gate_with_nothing_to_check_against_claims_nothing() -> None:
    consumer, _ = consume(stream(CALL), policy=EFFECT)
    unchecked = [verdict.gate for verdict in consumer.verdicts if verdict.passed is None]
    assert unchecked == ["tool", "schema", "business_rule", "authorisation"]
    assert "not checked: tool, schema, business rule, authorisation" in consumer.attempt.why
    assert consumer.attempt.state is State.VALIDATED_PROPOSAL


def test_the_gates_stand_in_the_order_of_the_design() -> None:
    order = "completion stop_reason tool parse schema business_rule authorisation"
    assert list(GATES) == order.split()
    assert list(GATES)[2:] == [gate for gate in GATES if gate in CALL_GATES]


def test_a_text_answer_meets_only_the_gates_that_need_no_call_and_proposes_nothing() -> None:
    for accepting in (EFFECT, CHAT, policy()):
        consumer, _ = consume(stream(TEXT), policy=accepting)
        assert consumer.attempt.state is State.MESSAGE_COMPLETE
        assert [verdict.gate for verdict in consumer.verdicts] == ["completion", "stop_reason"]
        assert consumer.proposals == ()


#: Name -> the events, the policy, the gate that does not pass, where that leads, what it saw.
STOPPED_AT: dict[str, tuple[Any, Policy, str, str, str]] = {
    "no answer asked to act": (CALL, CHAT, "stop_reason", "HELD", "accepted here: end_turn"),
    "token limit": (call(INPUT, "max_tokens"), policy(), "stop_reason", "HELD", "max_tokens"),
    "refusal": (call(INPUT, "refusal"), policy(), "stop_reason", "HELD", "refusal"),
    "pause": (call(INPUT, "pause_turn"), policy(), "stop_reason", "HELD", "pause_turn"),
    "the vendor's own word": (
        [start(), end("model_context_window_exceeded"), STOP], policy(), "stop_reason", "HELD",
        "context_window (the vendor says 'model_context_window_exceeded')"),
    "unknown reason": (
        [start(), end("brand_new"), STOP], policy(), "stop_reason", "HELD", "'brand_new'"),
    "tool_use without a call": (
        [*TEXT[:-2], end("tool_use"), STOP], policy(), "stop_reason", "HELD", "no call to run"),
    "tool not permitted": (
        call(INPUT, name="pay"), policy(), "tool", "HELD",
        "'pay' is not permitted; permitted: change_label"),
    "no tool permitted": (CALL, policy(tools={}), "tool", "HELD", "not permitted"),
    "call without a name": (call(INPUT, name=""), policy(tools=None), "parse", "INVALID", "name"),
    "input cut": (call(INPUT[:-1]), policy(), "parse", "INVALID", "the input of change_label"),
    "input no object": (call("[]"), policy(), "parse", "INVALID", "not an object"),
    "no input where some is needed": (
        call(""), policy(), "schema", "INVALID", "no input was received"),
    "wrong type": (
        call('{"item": 7, "label": "a"}'), policy(), "schema", "INVALID",
        "at $.item: 7 is not of type 'string'"),
    "too long": (
        call('{"item": "W-7", "label": "0123456789"}'), policy(), "schema", "INVALID", "$.label"),
    "one too many": (
        call('{"item": "W-7", "label": "a", "x": 1}'), policy(), "schema", "INVALID", "'x'"),
    "rule": (
        CALL, policy(rule=lambda call: f"{call.input['item']} is closed"), "business_rule",
        "INVALID", "W-7 is closed"),
    "authorisation": (
        CALL, policy(authorise=lambda call: f"not {call.tool}"), "authorisation", "HELD",
        "not change_label"),
}  # fmt: skip


@pytest.mark.parametrize("payloads, given, gate, state, saw", STOPPED_AT.values(), ids=STOPPED_AT)
def test_the_first_gate_that_does_not_pass_decides_and_says_what_it_saw(
    payloads: Any, given: Policy, gate: str, state: str, saw: str
) -> None:
    consumer, _ = consume(stream(payloads), policy=given)
    last = consumer.verdicts[-1]
    assert (last.gate, last.passed, consumer.attempt.state) == (gate, False, state)
    assert saw in last.saw
    assert all(verdict.passed is not False for verdict in consumer.verdicts[:-1])
    assert last.outcome is (Input.GATES_HELD if state == "HELD" else Input.GATES_FAILED)
    assert consumer.attempt.why == f"{gate.replace('_', ' ')}: {last.saw}"
    assert consumer.proposals == ()


def test_what_broke_a_complete_answer_afterwards_fails_the_first_gate() -> None:
    state, verdicts = judged([*CALL, fragment(0, "late")], policy())
    assert (state, [v.gate for v in verdicts]) == (State.INVALID, ["completion"])
    assert "after message_stop" in verdicts[0].saw


def test_an_answer_that_is_not_complete_is_not_asked_and_would_fail() -> None:
    consumer, _ = consume(stream(CALL[:-1]), policy=policy())
    assert consumer.verdicts == ()
    (verdict,) = judge_turn(consumer.turn, policy())
    assert (verdict.gate, verdict.passed) == ("completion", False)
    assert judge_turn(EMPTY)[0].saw == "the final marker never came"


# --- Several calls ----------------------------------------------------------------------------


def calls(*written: str) -> list[Any]:
    body = [[block(n, "tool_use"), fragment(n, w), stop(n)] for n, w in enumerate(written)]
    return [start(), *itertools.chain(*body), end("tool_use"), STOP]


def test_all_calls_of_an_answer_stand_or_fall_together() -> None:
    good, bad = INPUT, '{"item": "W-7"}'
    assert judged(calls(good, good), policy())[0] is State.VALIDATED_PROPOSAL
    for written in ((good, bad), (bad, good), (good, "{")):
        state, _ = judged(calls(*written), policy())
        assert state is State.INVALID
    asked = []

    def second_is_refused(call: Proposal) -> str:
        asked.append(call.call_id)
        return "not twice" if len(asked) > 1 else ""

    assert judged(calls(good, good), policy(rule=second_is_refused))[0] is State.INVALID
    assert asked == ["call_0", "call_1"]


def test_a_tool_that_the_provider_runs_is_never_proposed() -> None:
    server = [block(0, "server_tool_use", name="web_search"), fragment(0, "{"), stop(0)]
    consumer, _ = consume(stream([start(), *server, end(), STOP]), policy=policy())
    assert consumer.attempt.state is State.MESSAGE_COMPLETE
    both = [start(), *server, block(1, "tool_use"), fragment(1, INPUT), stop(1), end("tool_use")]
    consumer, _ = consume(stream([*both, STOP]), policy=policy())
    assert [proposal.call_id for proposal in consumer.proposals] == ["call_1"]


# --- Every condition, one at a time and together ----------------------------------------------

#: Condition -> what takes it away: (a change of the events, or None; a change of the policy).
KNOCKED_OUT: dict[str, tuple[Callable[[list[Any]], list[Any]] | None, dict[str, Any]]] = {
    "the marker": (lambda p: [x for x in p if x is not STOP], {}),
    "the block's stop": (lambda p: [x for x in p if x != stop(0)], {}),
    "the stop reason": (lambda p: [x for x in p if x != end("tool_use")], {}),
    "nothing broken": (lambda p: [*p, {"type": "error", "error": {"message": "m"}}], {}),
    "grammar": (lambda p: [*p[:1], *p], {}),
    "accepted": (None, {"accept": frozenset({"end_turn"})}),
    "permitted": (None, {"tools": {"another": True}}),
    "parsed": (lambda p: [x for x in p if x != fragment(0, INPUT[11:])], {}),
    "valid": (None, {"tools": {"change_label": {"required": ["amount"]}}}),
    "allowed by the rule": (None, {"rule": lambda call: "no"}),
    "authorised": (None, {"authorise": lambda call: "no"}),
}
SOME = [
    names
    for size in range(1, len(KNOCKED_OUT) + 1)
    for names in itertools.combinations(KNOCKED_OUT, size)
    if size <= 2 or size == len(KNOCKED_OUT)
]


def without(names: tuple[str, ...]) -> tuple[list[Any], Policy]:
    payloads, changes = list(CALL), dict[str, Any]()
    for name in names:
        edit, change = KNOCKED_OUT[name]
        payloads = edit(payloads) if edit else payloads
        changes |= change
    return payloads, policy(**changes)


def test_with_every_condition_it_is_a_proposal() -> None:
    assert judged(*without(()))[0] is State.VALIDATED_PROPOSAL


@pytest.mark.parametrize("names", SOME, ids=" and ".join)
def test_without_any_one_condition_it_is_none(names: tuple[str, ...]) -> None:
    payloads, given = without(names)
    consumer, _ = consume(stream(payloads), policy=given)
    assert consumer.attempt.state in (State.HELD, State.INVALID, State.INCOMPLETE)
    assert consumer.proposals == ()


# --- Every sequence of events -----------------------------------------------------------------

one_event = st.one_of(
    st.builds(SegmentStarted, st.sampled_from("01"), st.sampled_from(["text", "tool_call"]),
              st.just(1), st.just("t"), st.sampled_from(["change_label", "pay", ""]),
              st.just("c"), st.booleans()),
    st.builds(InputDelta, st.sampled_from("01"), st.sampled_from([INPUT, "{", "{}", '"a"'])),
    st.builds(SegmentStopped, st.sampled_from("01"), st.just(2)),
    st.builds(StopReported, st.sampled_from(["tool_use", "end_turn", "max_tokens", "other"]),
              st.just("raw"), st.just(3)),
    st.sampled_from([
        MessageStarted("m", "x"), MessageCompleted(4), TextDelta("0", "a"), ThinkingDelta("1", "b"),
        SignatureDelta("0", "s"), Attached("0", "n", 1), UsageReported({"o": 1}), KeepAlive(),
        Unknown("message_completed", 5), Problem("r", "warning", "m", 5),
        Problem("r", "error", "m", 5), ProviderError("t", "m", 5), Ambiguous("m", 5),
        BoundExceeded("bytes", 1, 2, 5), StreamEnded("eof", 6), StreamEnded("cancelled", 6),
    ]),
)  # fmt: skip
likely = st.lists(one_event, max_size=4).flatmap(
    lambda odd: st.permutations(
        [
            SegmentStarted("0", "tool_call", 1, "tool_use", "change_label", "c"),
            InputDelta("0", INPUT),
            SegmentStopped("0", 2),
            StopReported("tool_use", "tool_use", 3),
            MessageCompleted(4),
            *odd,
        ]
    )
)


def _fold(events: list[Event], given: Policy) -> tuple[Attempt, Turn]:
    turn, attempt = EMPTY, Attempt()
    for event in events:
        turn, attempt = reduce(turn, event), observe(attempt, event)
    if attempt.state is State.MESSAGE_COMPLETE:
        attempt = settle(attempt, turn, judge_turn(turn, given))
    return attempt, turn


@given(st.one_of(st.lists(one_event, max_size=12), likely), st.booleans(), st.booleans())
def test_no_sequence_of_events_is_a_proposal_without_every_condition(
    events: list[Event], allowed: bool, authorised: bool
) -> None:
    given = policy(
        rule=lambda call: "" if allowed else "no", authorise=lambda call: "" if authorised else "no"
    )
    attempt, turn = _fold(events, given)
    if attempt.state is not State.VALIDATED_PROPOSAL:
        return
    assert any(isinstance(event, MessageCompleted) for event in events)
    assert not any(isinstance(event, ProviderError) for event in events)
    assert not any(isinstance(e, Problem) and e.severity == "error" for e in events)
    reasons = {event.reason for event in events if isinstance(event, StopReported)}
    assert reasons & {"tool_use", "end_turn"}
    calls = [s for s in turn.segments if s.kind == "tool_call" and not s.start.server]
    assert calls
    for call in calls:
        assert json.loads(call.text) == json.loads(INPUT) == call.input
        assert call.start.name == "change_label"
    assert allowed
    assert authorised


def test_the_likely_sequences_do_reach_a_proposal() -> None:
    events: list[Event] = [
        SegmentStarted("0", "tool_call", 1, "tool_use", "change_label", "c"),
        InputDelta("0", INPUT),
        SegmentStopped("0", 2),
        StopReported("tool_use", "tool_use", 3),
        MessageCompleted(4),
    ]
    assert _fold(events, policy())[0].state is State.VALIDATED_PROPOSAL


def test_a_call_that_never_stopped_is_no_proposal_even_where_any_call_is_permitted() -> None:
    written = [SegmentStarted("0", "tool_call", 1, "t", "pay", "c"), InputDelta("0", "{}")]
    ended = [StopReported("tool_use", "tool_use", 3), MessageCompleted(4)]
    last = judge_turn(fold([*written, *ended]), EFFECT)[-1]
    assert (last.gate, last.outcome) == ("completion", Input.GATES_FAILED)
    assert "a block never stopped" in last.saw
    stopped = judge_turn(fold([*written, SegmentStopped("0", 2), *ended]), EFFECT)
    assert [verdict.outcome for verdict in stopped] == [None] * len(GATES)


def test_settling_moves_only_a_complete_attempt() -> None:
    turn = fold([StopReported("end_turn", "end_turn", 3), MessageCompleted(4)])
    verdicts = judge_turn(turn)
    for state in State:
        attempt = Attempt(state)
        assert settle(attempt, turn, verdicts) is attempt
        assert advance(attempt, Input.GATES_PASSED) is attempt or state is State.MESSAGE_COMPLETE


# --- The schema -------------------------------------------------------------------------------

DRAFT_4 = "http://json-schema.org/draft-04/schema#"

#: Keyword -> the schema, a value that fits, a value that does not.
KEYWORDS: dict[str, tuple[Any, Any, Any]] = {
    "type": ({"type": "integer"}, 7, "7"),
    "type, a list": ({"type": ["string", "null"]}, None, 7),
    "enum": ({"enum": ["a", "b"]}, "a", "c"),
    "const": ({"const": 7}, 7, 8),
    "pattern": ({"pattern": "^W-[0-9]+$"}, "W-7", "W-"),
    "minLength": ({"minLength": 2}, "ab", "a"),
    "maxLength, in characters": ({"maxLength": 1}, "🐋", "ab"),
    "minimum": ({"minimum": 1}, 1, 0),
    "exclusiveMaximum": ({"exclusiveMaximum": 1}, 0.5, 1),
    "multipleOf": ({"multipleOf": 5}, 10, 11),
    "multipleOf, of a huge number": ({"multipleOf": 0.5}, 1, 10**400),
    "required": ({"required": ["a"]}, {"a": None}, {}),
    "additionalProperties": ({"additionalProperties": False}, {}, {"a": 1}),
    "properties": ({"properties": {"a": {"type": "string"}}}, {"a": "x"}, {"a": 1}),
    "patternProperties": ({"patternProperties": {"^n": {"type": "number"}}}, {"n": 1}, {"n": "1"}),
    "propertyNames": ({"propertyNames": {"maxLength": 1}}, {"a": 1}, {"ab": 1}),
    "minProperties": ({"minProperties": 1}, {"a": 1}, {}),
    "dependentRequired": ({"dependentRequired": {"a": ["b"]}}, {"b": 1}, {"a": 1}),
    "items": ({"items": {"type": "string"}}, ["a"], [1]),
    "prefixItems": ({"prefixItems": [True], "items": False}, [1], [1, 2]),
    "uniqueItems": ({"uniqueItems": True}, [1, 2], [1, 1]),
    "contains": ({"contains": {"const": 1}}, [0, 1], [0]),
    "anyOf": ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, 1),
    "oneOf": ({"oneOf": [{"minimum": 1}, {"maximum": 3}]}, 5, 2),
    "allOf": ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, 2, 5),
    "not": ({"not": {"type": "null"}}, 1, None),
    "if, then, else": (
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"maxProperties": 0}},
        {"a": 1, "b": 1},
        {"a": 1},
    ),
    "unevaluatedProperties": (
        {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
        {"a": 1},
        {"b": 1},
    ),
    "a local reference": (
        {"$defs": {"id": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/id"}}},
        {"a": "x"},
        {"a": 1},
    ),
    "a reference to itself": (
        {"additionalProperties": {"$ref": "#"}, "type": "object"},
        {"a": {"b": {}}},
        {"a": {"b": 1}},
    ),
    "an older draft": (
        {"$schema": DRAFT_4, "minimum": 1, "exclusiveMinimum": True},
        2,
        1,
    ),
    "true": (True, 1, None),
    "false": (False, None, 1),
}  # fmt: skip


@pytest.mark.parametrize("schema, fits, fails", KEYWORDS.values(), ids=KEYWORDS)
def test_every_keyword_of_a_schema_counts(schema: Any, fits: Any, fails: Any) -> None:
    Policy(frozenset(), tools={"t": schema})
    if schema is not False:
        assert schema_error(schema, fits) == ""
    if schema is not True:
        assert schema_error(schema, fails)


@pytest.mark.parametrize(
    "schema",
    [5, "object", None, [], {"type": "objekt"}, {"pattern": "["}, {"required": "a"},
     {"properties": []}, {"$schema": 5}, {"$schema": "https://example.com/draft"}],
    ids=repr,
)  # fmt: skip
def test_what_is_no_schema_is_refused_when_the_policy_is_made(schema: Any) -> None:
    with pytest.raises(UsageError, match="the schema of tool 'pay'"):
        Policy(frozenset({"tool_use"}), tools={"pay": schema})


@pytest.mark.parametrize("ref", ["https://example.com/a.json", "#/$defs/none", "a.json"])
def test_a_reference_that_leads_away_is_refused_without_the_network(
    ref: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    went: list[Any] = []

    def no_network(*address: Any, **_: Any) -> None:
        went.append(address)
        raise OSError("no network here")

    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    monkeypatch.setattr(socket.socket, "connect", no_network)
    with (
        warnings.catch_warnings(action="ignore"),  # the library warns before it fetches
        pytest.raises(UsageError, match="refers to something that it does not hold"),
    ):
        judged(CALL, policy(tools={"change_label": {"$ref": ref}}))
    assert went == []


def test_a_schema_that_turns_in_a_circle_fails_and_does_not_hang() -> None:
    assert "cannot be checked" in schema_error({"$ref": "#"}, {})


def test_a_message_about_a_huge_input_is_short() -> None:
    rows = [{"a": "x" * 1000}] * 1000
    assert len(schema_error({"required": ["b"], "maxItems": 1}, rows)) < 400
    assert len(schema_error({"type": "string"}, rows)) < 400


def test_without_schemas_a_call_that_parses_is_a_proposal() -> None:
    state, verdicts = judged(CALL, EFFECT)
    assert state is State.VALIDATED_PROPOSAL
    assert [v.saw for v in verdicts if v.gate == "schema"] == ["no schema is given"]
