"""Claude Messages: every block, delta and error shape; and what each breach of the grammar is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlab.consumer.turn import Segment, Turn
from streamlab.wire.claude import MAX_OPEN, STOP_REASON, ClaudeReader
from streamlab.wire.events import (
    STOP_REASONS,
    Attached,
    InputDelta,
    KeepAlive,
    MessageCompleted,
    MessageStarted,
    ProviderError,
    SegmentStarted,
    SegmentStopped,
    SignatureDelta,
    StopReported,
    TextDelta,
    ThinkingDelta,
    Tokens,
    Unknown,
    UsageReported,
)
from tests.streams_for_tests import (
    CALL,
    INPUT,
    JSON,
    PING,
    STOP,
    TEXT,
    block,
    consume,
    delta,
    end,
    events,
    fragment,
    frame,
    lines,
    rules,
    start,
    stop,
    stream,
    text,
)


def turn_of(payloads: Any, **options: Any) -> Turn:
    return consume(stream(payloads), **options)[0].turn


def state_of(payloads: Any, **options: Any) -> str:
    return str(consume(stream(payloads), **options)[0].attempt.state)


def answer(*body: JSON, reason: str | None = "end_turn") -> list[JSON]:
    """The events of an answer around those of its blocks."""
    return [start(), *body, end(reason), STOP]


def segment_of(*body: JSON, reason: str = "end_turn") -> Segment:
    turn = turn_of(answer(*body, reason=reason))
    assert turn.complete, turn.facts.problems
    (segment,) = turn.segments
    return segment


# --- What a whole answer states ---------------------------------------------------------------


def test_each_event_states_one_fact() -> None:
    assert events(TEXT)[:-1] == [
        MessageStarted("msg_1", "model-1"),
        SegmentStarted("0", "text", 2, "text"),
        TextDelta("0", "Hi"),
        TextDelta("0", " there"),
        SegmentStopped("0", 5),
        StopReported("end_turn", "end_turn", 6),
        MessageCompleted(7),
    ]


def test_a_tool_calls_input_is_parsed_once_at_its_stop() -> None:
    turn = turn_of(CALL[:-3])
    (open_call,) = turn.open
    assert (open_call.text, open_call.input, open_call.status) == (INPUT, None, "streaming")
    call = turn_of(CALL).calls[0]
    assert (call.input, call.status) == (json.loads(INPUT), "ready")
    assert (call.start.name, call.start.call_id) == ("change_label", "call_0")


# --- Blocks and deltas ------------------------------------------------------------------------

CITED = {"type": "char_location", "cited_text": "a", "document_index": 0}
FOUND = [{"type": "web_search_result", "url": "https://example.com", "encrypted_content": "b3Bh"}]

#: Name -> the block's start, its deltas, what is expected of its segment.
BLOCKS: dict[str, tuple[JSON, list[JSON], JSON]] = {
    "text": (block(0), [text(0, "a"), text(0, "b")], {"kind": "text", "text": "ab"}),
    "text, already there": (block(0, text="a"), [text(0, "b")], {"kind": "text", "text": "ab"}),
    "text, empty": (block(0), [text(0, "")], {"kind": "text", "text": ""}),
    "text, cited": (
        block(0, citations=[]),
        [
            text(0, "a"),
            delta(0, "citations_delta", citation=CITED),
            delta(0, "citations_delta", citation=CITED),
        ],
        {"text": "a", "attached": {"citations": [CITED, CITED]}},
    ),
    "thinking": (
        block(0, "thinking"),
        [
            delta(0, "thinking_delta", thinking="so"),
            delta(0, "thinking_delta", thinking=" it is"),
            delta(0, "signature_delta", signature="c2ln"),
        ],
        {"kind": "thinking", "text": "so it is", "signature": "c2ln", "attached": {}},
    ),
    "thinking, signature in two deltas": (
        block(0, "thinking"),
        [
            delta(0, "signature_delta", signature="c2ln+/"),
            delta(0, "signature_delta", signature="bmVk=="),
        ],
        {"text": "", "signature": "c2ln+/bmVk=="},
    ),
    "thinking, whole in the start": (
        block(0, "thinking", thinking="so", signature="c2ln"),
        [],
        {"text": "so", "signature": "c2ln"},
    ),
    "thinking, with estimates": (
        block(0, "thinking"),
        [
            delta(0, "thinking_delta", thinking="", estimated_tokens=7),
            delta(0, "thinking_delta", thinking="a", estimated_tokens=9),
        ],
        {"text": "a", "attached": {"estimated_tokens": 9}},
    ),
    "redacted thinking": (
        block(0, "redacted_thinking", data="b3BhcXVl"),
        [],
        {"kind": "other", "text": "", "attached": {"data": "b3BhcXVl"}},
    ),
    "tool without a delta": (block(0, "tool_use"), [], {"kind": "tool_call", "input": {}}),
    "tool with empty deltas": (
        block(0, "tool_use"),
        [fragment(0, ""), fragment(0, "")],
        {"input": {}, "text": ""},
    ),
    "tool with its input in the start": (
        block(0, "tool_use", input={"a": "é"}),
        [],
        {"input": {"a": "é"}, "text": '{"a":"é"}'},
    ),
    "tool with its input in the start and an empty delta": (
        block(0, "tool_use", input={"a": 1}),
        [fragment(0, "")],
        {"input": {"a": 1}},
    ),
    "tool with its input in both places": (
        block(0, "tool_use", input={"a": 1}),
        [fragment(0, '{"a":'), fragment(0, "1}")],
        {"input": {"a": 1}, "text": '{"a":1}'},
    ),
    "tool with a caller": (
        block(0, "tool_use", caller={"type": "direct"}, toolset_name="t"),
        [fragment(0, "{}")],
        {"input": {}, "attached": {"caller": {"type": "direct"}, "toolset_name": "t"}},
    ),
    "server tool": (
        block(0, "server_tool_use", id="srvtoolu_1", name="web_search"),
        [fragment(0, '{"query": "tides"}')],
        {"kind": "tool_call", "server": True, "input": {"query": "tides"}, "name": "web_search"},
    ),
    "server tool's result": (
        block(0, "web_search_tool_result", tool_use_id="srvtoolu_1", content=FOUND),
        [],
        {"kind": "other", "attached": {"tool_use_id": "srvtoolu_1", "content": FOUND}},
    ),
    "server tool's empty result": (
        block(0, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[]),
        [],
        {"attached": {"tool_use_id": "srvtoolu_1", "content": []}},
    ),
    "container upload": (
        block(0, "container_upload", file_id="file_1"),
        [],
        {"kind": "other", "attached": {"file_id": "file_1"}},
    ),
    "beta: mcp tool": (
        block(0, "mcp_tool_use", id="mcptoolu_1", name="find", server_name="s", input={}),
        [fragment(0, '{"q": 1}')],
        {"kind": "tool_call", "server": True, "input": {"q": 1}, "attached": {"server_name": "s"}},
    ),
    "beta: mcp result": (
        block(0, "mcp_tool_result", tool_use_id="mcptoolu_1", content=[], is_error=False),
        [],
        {"attached": {"tool_use_id": "mcptoolu_1", "content": [], "is_error": False}},
    ),
    "beta: compaction": (
        block(0, "compaction", content=None, encrypted_content=None),
        [delta(0, "compaction_delta", content="short", encrypted_content="ZW5j")],
        {"kind": "other", "attached": {"content": "short", "encrypted_content": "ZW5j"}},
    ),
    "beta: fallback": (
        block(0, "fallback", **{"from": {"model": "a"}, "to": {"model": "b"}, "trigger": "t"}),
        [],
        {"attached": {"from": {"model": "a"}, "to": {"model": "b"}, "trigger": "t"}},
    ),
    "unknown block with unknown deltas": (
        block(0, "hologram", id="h1", light=None),
        [delta(0, "beam", light="blue"), delta(0, "text_delta", text="not text")],
        {"kind": "other", "type": "hologram", "text": "", "attached": {
            "id": "h1", "light": "blue", "text": "not text"}},
    ),
    "unknown delta of a known block": (
        block(0),
        [text(0, "a"), delta(0, "sparkle_delta", sparkle=1), text(0, "b")],
        {"text": "ab", "attached": {"sparkle": 1}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("begin, deltas, expected", BLOCKS.values(), ids=BLOCKS)
def test_block(begin: JSON, deltas: list[JSON], expected: JSON) -> None:
    segment = segment_of(begin, *deltas, stop(0))
    found: JSON = {name: getattr(segment, name) for name in ("kind", "text", "signature", "input")}
    found |= {name: getattr(segment.start, name) for name in ("server", "name", "type")}
    found |= {"attached": segment.attached}
    assert {name: found[name] for name in expected} == expected
    assert segment.status == "ready"


def test_an_unknown_event_or_delta_is_noted_and_grants_nothing() -> None:
    later = {"type": "message_completed", "index": 0}
    told = events([start(), later, block(0), delta(0, "sparkle_delta", sparkle=1)])
    assert Unknown("message_completed", 2) in told
    assert told[told.index(Unknown("sparkle_delta", 4)) + 1] == Attached("0", "sparkle", 1)
    assert rules(answer(later, block(0), stop(0))) == [("unknown", "note")]
    assert state_of([start(), later]) == "INCOMPLETE"


def test_blocks_are_kept_by_index_however_they_interleave_and_close() -> None:
    body = [
        block(0, "tool_use"),
        block(1, "tool_use"),
        fragment(0, '{"a"'),
        fragment(1, '{"b"'),
        fragment(0, ": 1}"),
        fragment(1, ": 2}"),
        stop(1),
        stop(0),
    ]
    turn = turn_of(answer(*body, reason="tool_use"))
    assert [call.input for call in turn.calls] == [{"a": 1}, {"b": 2}]
    assert turn.facts.problems == ()


def test_blocks_that_start_out_of_order_are_a_warning_and_no_error() -> None:
    body = [block(1, text="b"), stop(1), block(0, text="a"), stop(0)]
    assert rules(answer(*body)) == [("index-order", "warning")]
    assert state_of(answer(*body)) == "MESSAGE_COMPLETE"


def test_an_emoji_cut_between_two_deltas_is_whole_again() -> None:
    parts = (block(0), text(0, "a\ud83d"), text(0, "\udc0bb"), stop(0))
    assert segment_of(*parts).text == "a🐋b"
    halves = ('{"note": "\ud83d', '\udc0b"}')
    call = (block(0, "tool_use"), *(fragment(0, half) for half in halves), stop(0))
    assert segment_of(*call, reason="tool_use").input == {"note": "🐋"}
    escaped = ('{"note": "\\ud83d', '\\udc0b"}')
    call = (block(0, "tool_use"), *(fragment(0, half) for half in escaped), stop(0))
    assert segment_of(*call, reason="tool_use").input == {"note": "🐋"}


@pytest.mark.parametrize("half", ["\ud83d", "\\ud83d", "\udc0b"], ids=ascii)
def test_half_a_character_is_shown_but_never_proposed(half: str) -> None:
    call = (block(0, "tool_use"), fragment(0, f'{{"note": "{half}"}}'), stop(0))
    turn = turn_of(answer(*call, reason="tool_use"))
    assert turn.calls[0].status == "error"
    assert "half a character" in turn.calls[0].error
    assert state_of(answer(*call, reason="tool_use")) == "INVALID"
    assert segment_of(block(0), text(0, half), stop(0)).text == half


INPUTS: dict[str, tuple[str, str]] = {
    "cut inside": ('{"amount": 1', "Expecting ',' delimiter"),
    "trailing text": ('{"a": 1} yes', "Extra data"),
    "two values": ('{"a": 1}{"b": 2}', "Extra data"),
    "a list": ("[1]", "it is a list, not an object"),
    "a string": ('"a"', "it is a str, not an object"),
    "null": ("null", "it is a NoneType, not an object"),
    "NaN": ('{"a": NaN}', "NaN is not JSON"),
    "too large": ('{"a": 1e999}', "the number 1e999 is too large"),
    "too deep": ('{"a":' * 300 + "1" + "}" * 300, "nested more than 200 deep"),
}


@pytest.mark.parametrize("written, error", INPUTS.values(), ids=INPUTS)
def test_an_input_that_does_not_parse_is_kept_as_text_and_never_repaired(
    written: str, error: str
) -> None:
    call = turn_of(answer(block(0, "tool_use"), fragment(0, written), stop(0))).calls[0]
    assert (call.status, call.input, call.text) == ("error", None, written)
    assert error in call.error


# --- Stop reasons and usage -------------------------------------------------------------------


@pytest.mark.parametrize("raw, ours", [*STOP_REASON.items(), ("brand_new", "other")])
def test_every_stop_reason_has_a_word_in_the_one_vocabulary(raw: str, ours: str) -> None:
    facts = turn_of([start(), end(raw, stop_sequence="END"), STOP]).facts
    assert (facts.stop_reason, facts.raw_stop_reason, facts.stop_sequence) == (ours, raw, "END")
    assert ours in STOP_REASONS


def test_a_later_null_takes_nothing_back() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "no"}
    said = end("refusal", stop_sequence="END", stop_details=details)
    for later in (end(None, stop_sequence=None, stop_details=None), end("refusal"), end(None)):
        facts = turn_of([start(), said, later, STOP]).facts
        assert (facts.stop_reason, facts.stop_sequence) == ("refusal", "END")
        assert facts.stop_details == details
        assert facts.completed


@pytest.mark.parametrize("reason", [None, "", 5, ["end_turn"], {}], ids=repr)
def test_what_is_no_stop_reason_completes_nothing(reason: Any) -> None:
    payloads = [start(), end(reason), STOP]
    malformed = [] if not reason and reason != {} else [("malformed", "error")]
    assert rules(payloads) == [*malformed, ("stop-too-early", "error")]
    assert state_of(payloads) == "INVALID"


def _bad_utf8(index: int, delta: bytes) -> bytes:
    head = (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":'
        % index
    )
    return head + delta + b"}\n\n"


#: Name -> the frames of a call that may not become a proposal, and where the attempt ends.
UNFIT: dict[str, tuple[list[Any], str]] = {
    "bytes that are no UTF-8": (
        [
            block(0, "tool_use"),
            _bad_utf8(0, b'{"type":"input_json_delta","partial_json":"{\\"a\\":\\"\xff\\"}"}'),
            stop(0),
        ],
        "INVALID",
    ),
    "a fragment of unknown type": (
        [block(0, "tool_use"), delta(0, "input_delta", partial_json='{"a":1}'), stop(0)],
        "HELD",
    ),
    "two inputs": (
        [block(0, "tool_use", input={"a": 1}), fragment(0, '{"a":2}'), stop(0)],
        "INVALID",
    ),
    "two inputs that Python calls equal": (
        [block(0, "tool_use", input={"a": 1}), fragment(0, '{"a":true}'), stop(0)],
        "INVALID",
    ),
    "a key twice in the start": (
        [
            b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
            b'"content_block":{"type":"tool_use","id":"t","name":"n","input":{"a":1,"a":2}}}\n\n',
            stop(0),
        ],
        "INVALID",
    ),
    "an input that is a list": ([block(0, "tool_use", input=[]), stop(0)], "INVALID"),
    "an input that is false": ([block(0, "tool_use", input=False), stop(0)], "INVALID"),
    "no id": ([block(0, "tool_use", id=None), fragment(0, "{}"), stop(0)], "HELD"),
    "one id for two calls": (
        [block(0, "tool_use", id="t"), stop(0), block(1, "tool_use", id="t"), stop(1)],
        "HELD",
    ),
    "a name that is no text": ([block(0, "tool_use", name=["pay"]), stop(0)], "INVALID"),
    "a key twice": ([block(0, "tool_use"), fragment(0, '{"a":1,"a":2}'), stop(0)], "INVALID"),
    "an unknown block with an input": (
        [block(0, "tool_uqe"), fragment(0, '{"a":1}'), stop(0), block(1, "tool_use"), stop(1)],
        "HELD",
    ),
    "a delta without its data": (
        [block(0, "tool_use"), b"event: content_block_delta\n:ata: {}\n\n", stop(0)],
        "HELD",
    ),
}


@pytest.mark.parametrize("body, state", UNFIT.values(), ids=UNFIT)
def test_what_cannot_be_proved_is_never_proposed(body: list[Any], state: str) -> None:
    consumer, _ = consume(stream([start(), *body, end("tool_use"), STOP]))
    assert consumer.attempt.state == state
    assert consumer.proposals == ()
    assert [p for p in consumer.turn.facts.problems if p.severity != "note"]


def test_a_strangers_words_are_repeated_only_in_part() -> None:
    long = "r" * 100_000
    consumer, _ = consume(stream([start(), end(long), end("other"), end(long + "x"), STOP]))
    facts = consumer.turn.facts
    assert all(len(p.message) < 500 for p in facts.problems)
    assert len(str(facts.raw_stop_reason)) < 500 and len(consumer.attempt.why) <= 500


def test_usage_is_cumulative_and_a_null_overwrites_nothing() -> None:
    first = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": None}
    payloads = [
        start(usage=first),
        end(None, {"output_tokens": 3, "input_tokens": None}),
        end("end_turn", {"output_tokens": 7, "cache_read_input_tokens": 500}),
        STOP,
    ]
    usage = {"input_tokens": 10, "output_tokens": 7, "cache_read_input_tokens": 500}
    assert turn_of(payloads).facts.usage == usage
    assert UsageReported(first, Tokens(10, 1)) in events(payloads)


@pytest.mark.parametrize("usage", [None, {}, [], "7", 7], ids=repr)
def test_usage_that_says_nothing_is_no_event(usage: Any) -> None:
    payloads = [start(usage=usage), {**end("end_turn"), "usage": usage}, STOP]
    assert not any(isinstance(event, UsageReported) for event in events(payloads))
    assert turn_of(payloads).complete


# --- Breaches of the grammar ------------------------------------------------------------------

BODY = (block(0), text(0, "a"), stop(0))
PROXY = {"type": "content_block_start", "index": 0}

#: Name -> the events, the first problem's rule, and the state. All of these are errors.
BREACHES: dict[str, tuple[list[Any], str]] = {
    "no message_start": ([*BODY, end(), STOP], "before-start"),
    "message_delta first": ([end(), start(), STOP], "before-start"),
    "message_stop first": ([STOP], "stop-too-early"),
    "second message_start": ([start(), start(), *BODY, end(), STOP], "second-start"),
    "message_start without message": ([{"type": "message_start"}, STOP], "malformed"),
    "message is no object": ([{"type": "message_start", "message": []}, STOP], "malformed"),
    "start without index": (answer({**PROXY, "index": None, "content_block": {}}), "malformed"),
    "start without block": (answer(PROXY), "malformed"),
    "start of block -1": (answer(block(-1)), "malformed"),
    "start of block true": (answer(block(True)), "malformed"),
    "start of block '0'": (answer({**block(0), "index": "0"}), "malformed"),
    "start of block 0.0": (answer({**block(0), "index": 0.0}), "malformed"),
    "start of an open block": (answer(block(0), block(0), stop(0)), "index-reused"),
    "start of a stopped block": (answer(*BODY, block(0), stop(0)), "index-reused"),
    "delta before any start": (answer(text(0, "a")), "delta-without-start"),
    "delta of another block": (answer(block(0), text(1, "a"), stop(0)), "delta-without-start"),
    "delta after its stop": (answer(*BODY, text(0, "b")), "delta-after-stop"),
    "delta without index": (answer({"type": "content_block_delta", "delta": {}}), "malformed"),
    "delta without delta": (answer({"type": "content_block_delta", "index": 0}), "malformed"),
    "delta whose text is a list": (answer(block(0), delta(0, "text_delta", text=[])), "malformed"),
    "delta without its text, but more": (
        answer(block(0), delta(0, "text_delta", note="n"), stop(0)),
        "malformed",
    ),
    "text in a tool block": (answer(block(0, "tool_use"), text(0, "a"), stop(0)), "delta-kind"),
    "input in a text block": (answer(block(0), fragment(0, "{"), stop(0)), "delta-kind"),
    "thinking in a text block": (
        answer(block(0), delta(0, "thinking_delta", thinking="a"), stop(0)), "delta-kind"),
    "signature in a text block": (
        answer(block(0), delta(0, "signature_delta", signature="a"), stop(0)), "delta-kind"),
    "stop before its start": (answer(stop(0)), "stop-without-start"),
    "stop without index": (answer({"type": "content_block_stop"}), "stop-without-start"),
    "message_delta without delta": ([start(), {"type": "message_delta"}, STOP], "malformed"),
    "two stop reasons": ([start(), end("end_turn"), end("tool_use"), STOP], "stop-reason-changed"),
    "marker with a block open": ([start(), block(0), end(), STOP], "stop-too-early"),
    "marker without a stop reason": ([start(), *BODY, STOP], "stop-too-early"),
    "marker without message_delta": ([start(), STOP], "stop-too-early"),
    "delta after the end": ([*TEXT, text(0, "late")], "after-the-end"),
    "block after the end": ([*TEXT, block(1), stop(1)], "after-the-end"),
    "stop reason after the end": ([*TEXT, end("tool_use")], "after-the-end"),
    "a second answer": ([*TEXT, *CALL], "second-answer"),
    "data that is no JSON": ([start(), b'event: content_block_start\ndata: {"typ\n\n'], "not-json"),
    "data that is text": ([start(), b"event: content_block_start\ndata: hello\n\n"], "not-json"),
    "data that is a list": ([start(), b"event: message_delta\ndata: []\n\n"], "not-an-object"),
}  # fmt: skip


@pytest.mark.parametrize("payloads, rule", BREACHES.values(), ids=BREACHES)
def test_breach_of_the_grammar(payloads: list[Any], rule: str) -> None:
    consumer, _ = consume(stream(payloads))
    errors = [p for p in consumer.turn.facts.problems if p.severity == "error"]
    assert errors[0].rule == rule
    assert "(byte " in errors[0].message
    assert 0 < errors[0].at <= len(payloads)
    assert consumer.attempt.state == "INVALID"
    assert not consumer.turn.complete
    assert consumer.proposals == ()


def test_blocks_without_number_that_are_never_closed_are_not_all_kept() -> None:
    hoard = [block(n) for n in range(MAX_OPEN + 3)]
    consumer, _ = consume(stream([start(), *hoard, text(MAX_OPEN - 1, "a")]))
    assert len(consumer.turn.open) == MAX_OPEN
    assert consumer.turn.text == "a"
    assert consumer.attempt.state == "INVALID"
    assert rules([start(), *hoard])[:3] == [("too-many-open", "error")] * 3
    one_by_one = [event for n in range(MAX_OPEN + 3) for event in (block(n), stop(n))]
    assert state_of(answer(*one_by_one)) == "MESSAGE_COMPLETE"


@pytest.mark.parametrize("left_out", [{}, {"partial_json": None}], ids=["absent", "null"])
def test_a_delta_whose_writer_leaves_out_what_is_empty_adds_nothing(left_out: JSON) -> None:
    body = [
        {**block(0), "content_block": {"type": "text"}},
        delta(0, "text_delta"),
        text(0, "a"),
        stop(0),
        {**block(1), "content_block": {"type": "tool_use", "id": "t", "name": "f"}},
        delta(1, "input_json_delta", **left_out),
        delta(1, "input_json_delta", partial_json='{"n": 1}'),
        stop(1),
    ]
    consumer, _ = consume(stream([start(), *body, end("tool_use"), STOP]))
    assert consumer.attempt.state == "VALIDATED_PROPOSAL"
    assert consumer.turn.text == "a"
    assert consumer.turn.calls[0].input == {"n": 1}
    assert [(p.rule, p.severity) for p in consumer.turn.facts.problems] == [("empty-delta", "note")]


def test_blocks_that_a_message_starts_with_are_read_as_whole_blocks() -> None:
    result = {"type": "code_execution_tool_result", "tool_use_id": "s", "content": []}
    asked = {"type": "tool_use", "id": "t", "name": "f", "input": {"n": 1}}
    begun = start()
    begun["message"] |= {"content": [result, {"type": "text", "text": "a"}, asked, 5]}
    consumer, _ = consume(stream([begun, *BODY, end("tool_use"), STOP]))
    assert [s.kind for s in consumer.turn.segments] == ["other", "text", "tool_call", "text"]
    assert consumer.turn.calls[0].input == {"n": 1}
    assert [p.rule for p in consumer.turn.facts.problems] == ["content-in-start", "malformed"]


def test_a_reason_in_message_start_counts_where_no_message_delta_comes() -> None:
    asked = {"type": "tool_use", "id": "t", "name": "f", "input": {"n": 1}}
    begun = start()
    begun["message"] |= {"content": [asked], "stop_reason": "tool_use"}
    consumer, _ = consume(stream([begun, STOP]))
    assert (consumer.attempt.state, consumer.turn.complete) == ("VALIDATED_PROPOSAL", True)
    warned = ["content-in-start", "reason-in-start"]
    assert [p.rule for p in consumer.turn.facts.problems] == warned
    cut_off, _ = consume(stream([begun]))
    assert (cut_off.attempt.state, cut_off.proposals) == ("INCOMPLETE", ())
    later, _ = consume(stream([begun, *BODY, end("max_tokens"), STOP]))
    assert (later.attempt.state, later.turn.facts.stop_reason) == ("HELD", "max_tokens")
    unclosed, _ = consume(stream([begun, block(0), STOP]))
    assert (unclosed.attempt.state, unclosed.proposals) == ("INVALID", ())


def test_a_second_answer_is_one_problem_and_nothing_of_it_is_read() -> None:
    turn = turn_of([*TEXT, *CALL, b"event: error\ndata: late\n\n"])
    assert [p.rule for p in turn.facts.problems] == ["second-answer"]
    assert [s.text for s in turn.segments] == ["Hi there"]


def test_a_block_number_that_is_missing_holds_a_complete_answer() -> None:
    consumer, _ = consume(stream(answer(*BODY, block(2), stop(2))))
    assert consumer.attempt.state == "HELD"
    assert consumer.turn.complete
    assert "ambiguous" in [p.rule for p in consumer.turn.facts.problems]


def test_a_block_that_starts_after_the_stop_reason_holds_a_complete_answer() -> None:
    consumer, _ = consume(stream([start(), end("tool_use"), *CALL[1:-2], STOP]))
    assert consumer.attempt.state == "HELD"
    assert consumer.turn.complete
    assert consumer.proposals == ()


def test_a_block_number_used_again_is_a_block_of_its_own_and_a_breach() -> None:
    consumer, _ = consume(stream(answer(*BODY, *BODY)))
    assert [s.status for s in consumer.turn.segments] == ["ready", "ready"]
    assert len({s.id for s in consumer.turn.segments}) == 2
    assert consumer.attempt.state == "INVALID"


HI_THERE = (block(0), text(0, "Hi there"), stop(0))

#: Name -> the events, and the problems. None of these breaks the answer.
HABITS: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "none": (TEXT, []),
    "marker twice": ([*TEXT, STOP, STOP], [("end-twice", "warning")]),
    "[DONE] after it": ([*TEXT, b"data: [DONE]\n\n"], [("done-marker", "note")]),
    "unknown event after it": ([*TEXT, {"type": "later"}], [("unknown", "note")]),
    "ping after it": ([*TEXT, PING], []),
    "a block that stops twice": (answer(*HI_THERE, stop(0)), [("stop-after-stop", "warning")]),
    "a block that stops after the stop reason": (
        [start(), *HI_THERE[:-1], end(), HI_THERE[-1], STOP],
        [("after-stop-reason", "warning")],
    ),
    "no event names": ([frame(p, "") for p in TEXT], [("unnamed-event", "warning")]),
    "other event names": ([frame(p, "message") for p in TEXT], [("event-name", "warning")]),
    "types missing": (
        [frame({k: v for k, v in p.items() if k != "type"}, p["type"]) for p in TEXT],
        [("no-type", "warning")],
    ),
    "text before the stream's fields": ([b"hello\n", *TEXT], [("unframed", "warning")]),
    "a last block cut short": ([*TEXT, b"event: pi"], [("unfinished-block", "warning")]),
    "a last field cut short": ([*TEXT, b"eve"], []),
    "a last block without its blank line": (
        [*TEXT, b"event: ping\ndata: {}\n"],
        [("unfinished-block", "warning")],
    ),
}


@pytest.mark.parametrize("payloads, problems", HABITS.values(), ids=HABITS)
def test_habit_that_breaks_nothing(payloads: Any, problems: list[tuple[str, str]]) -> None:
    assert rules(payloads) == problems
    assert state_of(payloads) == "MESSAGE_COMPLETE"
    assert turn_of(payloads).text == "Hi there"


@pytest.mark.parametrize("cut", range(len(TEXT)), ids="after {} events".format)
def test_an_end_without_the_marker_is_not_complete_and_says_what_is_missing(cut: int) -> None:
    consumer, _ = consume(stream(TEXT[:cut]))
    assert consumer.attempt.state == "INCOMPLETE"
    (problem,) = consumer.turn.facts.problems
    said = problem.message
    assert (problem.severity, problem.rule) == ("warning", "incomplete" if cut else "empty")
    assert ("message_stop" in said) == (cut > 0)
    assert ("block 0" in said) == (1 < cut < 5)
    assert ("a stop reason" in said) == (0 < cut < 6)
    assert ("looks closed" in said) == (cut == 6)


def test_a_marker_cut_in_its_blank_line_is_not_seen_but_quoted() -> None:
    data = stream(TEXT)[:-1]
    problems = {p.rule: p.message for p in consume(data)[0].turn.facts.problems}
    assert "event 'message_stop'" in problems["unfinished-block"]
    assert "looks closed" in problems["incomplete"]
    assert consume(data)[0].attempt.state == "INCOMPLETE"


# --- Errors -----------------------------------------------------------------------------------

OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

#: Name -> the bytes of an error, and (type, message) as read.
ERRORS: dict[str, tuple[bytes, tuple[str, str]]] = {
    "named": (frame(OVERLOADED), ("overloaded_error", "Overloaded")),
    "unnamed": (frame(OVERLOADED, ""), ("overloaded_error", "Overloaded")),
    "under another name": (frame(OVERLOADED, "ping"), ("overloaded_error", "Overloaded")),
    "nested without a type": (
        frame({"error": {"message": "m"}}, ""),
        ("error", "m"),
    ),
    "flat, named": (
        frame({"type": "overloaded_error", "message": "m"}, "error"),
        ("overloaded_error", "m"),
    ),
    "flat, unnamed": (frame({"type": "api_error", "message": "m"}, ""), ("api_error", "m")),
    "a string": (frame({"error": "m"}, ""), ("error", "m")),
    "not JSON": (b"event: error\ndata: upstream gone\n\n", ("error", "upstream gone")),
    "JSON but no object": (b'event: error\ndata: "gone"\n\n', ("error", '"gone"')),
    "no data": (b"event: error\ndata\n\n", ("error", "no message")),
    "unframed": (json.dumps(OVERLOADED).encode() + b"\n\n", ("overloaded_error", "Overloaded")),
    "unframed, indented": (
        json.dumps(OVERLOADED, indent=2).encode() + b"\n\n",
        ("overloaded_error", "Overloaded"),
    ),
    "unframed, twice": (
        (json.dumps(OVERLOADED).encode() + b"\n") * 2 + b"\n",
        ("overloaded_error", "Overloaded"),
    ),
    "unframed, after a line of text": (
        b"upstream gone\n" + json.dumps(OVERLOADED).encode() + b"\n\n",
        ("overloaded_error", "Overloaded"),
    ),
}


@pytest.mark.parametrize("error, read", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize(
    "after", [1, 3, len(TEXT)], ids=["early", "in a block", "after the marker"]
)
def test_an_error_of_any_shape_makes_the_answer_invalid(
    error: bytes, read: tuple[str, str], after: int
) -> None:
    payloads = [*TEXT[:after], error, *TEXT[after:]]
    told = [event for event in events(payloads) if isinstance(event, ProviderError)]
    assert [(event.type, event.message) for event in told] == [read]
    consumer, _ = consume(stream(payloads))
    assert consumer.attempt.state == "INVALID"
    assert consumer.turn.facts.error == f"{read[0]}: {read[1]}"
    assert not consumer.turn.complete


@pytest.mark.parametrize("error", [error for error, _ in ERRORS.values()], ids=ERRORS)
def test_an_answer_that_an_error_comes_before_is_no_answer(error: bytes) -> None:
    consumer, _ = consume(error + stream(TEXT))
    assert consumer.attempt.state == "INVALID"
    assert not consumer.turn.complete


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("after", [1, 4, len(TEXT)])
def test_an_error_that_ends_the_stream_needs_no_line_end(after: int, indent: int | None) -> None:
    data = stream(TEXT[:after]) + json.dumps(OVERLOADED, indent=indent).encode()
    assert consume(data)[0].attempt.state == "INVALID"
    assert consume(data)[0].turn.facts.error == "overloaded_error: Overloaded"


def test_an_error_before_any_content_says_so_in_a_body_of_its_own() -> None:
    for body in (json.dumps(OVERLOADED), json.dumps(OVERLOADED, indent=2) + "\n"):
        consumer, _ = consume(body.encode())
        assert consumer.attempt.state == "INVALID"
        assert "overloaded_error: Overloaded" in consumer.attempt.why


def test_what_was_read_before_an_error_stays_for_display() -> None:
    assert turn_of([*TEXT[:4], OVERLOADED]).text == "Hi there"


# --- Keep-alives ------------------------------------------------------------------------------

EMPTY_PINGS = [b"event: ping\ndata\n\n", b"event: ping\ndata: \n\n", b"event: ping\ndata: {}\n\n"]
PINGS = [frame(PING), frame(PING, ""), *EMPTY_PINGS, b"data:\n\n", b"data:  \n\n"]


@pytest.mark.parametrize("ping", PINGS, ids=repr)
@pytest.mark.parametrize("after", range(len(CALL) + 1), ids="after {} events".format)
def test_a_keep_alive_may_come_anywhere_and_changes_nothing(ping: bytes, after: int) -> None:
    payloads = [*CALL[:after], ping, *CALL[after:]]
    assert KeepAlive() in events(payloads)
    consumer, _ = consume(stream(payloads))
    assert consumer.attempt.state == "VALIDATED_PROPOSAL"
    assert {p.severity for p in consumer.turn.facts.problems} <= {"warning"}
    assert consumer.turn.calls[0].input == json.loads(INPUT)


def test_any_number_of_keep_alives_may_come_before_the_answer() -> None:
    assert state_of([frame(PING)] * 1000 + list(TEXT)) == "MESSAGE_COMPLETE"


# --- One event a line -------------------------------------------------------------------------


def test_one_event_a_line_reads_the_same_without_a_word_about_names() -> None:
    for payloads in (TEXT, CALL):
        consumer, _ = consume(lines(payloads))
        assert consumer.reader.wire == "claude"
        assert consumer.turn.facts.problems == ()
        assert consumer.turn.segments[0].text == turn_of(payloads).segments[0].text
        assert consumer.turn.complete


def test_a_line_without_a_type_is_unknown_and_not_taken_for_a_delta() -> None:
    typeless = {k: v for k, v in text(0, "lost").items() if k != "type"}
    consumer, _ = consume(lines([*TEXT[:2], typeless, *TEXT[4:]]))
    assert consumer.turn.text == ""
    assert [p.rule for p in consumer.turn.facts.problems] == ["unknown"]


# --- Recognition ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event, payload, is_claude",
    [
        ("message_start", {"type": "message_start"}, True),
        ("", {"type": "message_start"}, True),
        ("message_start", {}, True),
        ("", {"type": "content_block_delta"}, True),
        ("error", OVERLOADED, True),
        ("error", {"type": "error", "message": "flat"}, False),
        ("error", {**OVERLOADED, "sequence_number": 2}, False),
        ("", OVERLOADED, False),
        ("ping", {"type": "ping"}, False),
        ("", {"type": "response.created"}, False),
        ("", {"object": "chat.completion.chunk"}, False),
        ("", {"type": ["message_start"]}, False),
        ("", {"type": None}, False),
        ("", {}, False),
    ],
    ids=repr,
)
def test_only_what_no_other_format_has_is_recognised(
    event: str, payload: JSON, is_claude: bool
) -> None:
    assert ClaudeReader.recognises(event, payload) == is_claude


def test_deltas_of_each_kind_keep_their_type() -> None:
    told = events(
        answer(
            block(0, "thinking"),
            delta(0, "thinking_delta", thinking="t"),
            delta(0, "signature_delta", signature="s"),
            stop(0),
            block(1, "tool_use"),
            fragment(1, "{}"),
            stop(1),
        )
    )
    for event in (ThinkingDelta("0", "t"), SignatureDelta("0", "s"), InputDelta("1", "{}")):
        assert event in told
