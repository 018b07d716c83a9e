"""OpenAI Chat Completions: whose fragment it is, what completes, and the habits of many servers."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlab.consumer.consumer import Consumer
from streamlab.consumer.turn import Segment, Turn
from streamlab.wire.events import (
    STOP_REASONS,
    Event,
    InputDelta,
    KeepAlive,
    MessageCompleted,
    MessageStarted,
    ProviderError,
    SegmentStarted,
    SegmentStopped,
    StopReported,
    TextDelta,
    ThinkingDelta,
    Tokens,
    UsageReported,
)
from streamlab.wire.openai_chat import MAX_CHOICES, ChatReader
from streamlab.wire.openai_chat_calls import MAX_CALLS
from streamlab.wire.openai_chat_parts import STOP_REASON
from streamlab.wire.sse import Frame, SSEDecoder
from tests.streams_for_tests import JSON, consume, cut, frame, in_runs, lines, saw

DONE = b"data: [DONE]\n\n"
PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def chunk(
    delta: Any = None, reason: Any = None, index: Any = 0, choice: JSON | None = None, **fields: Any
) -> JSON:
    """One chunk with one choice; `choice` and `fields` add to it or replace what is in it."""
    one = {"index": index, "delta": {} if delta is None else delta, "finish_reason": reason}
    start = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "model-1"}
    return {**start, "choices": [{**one, **(choice or {})}], **fields}


def text(content: str, **fields: Any) -> JSON:
    return chunk({"content": content}, **fields)


def entry(
    index: int | None = 0, id: str | None = None, name: str | None = None, given: Any = None
) -> JSON:
    """One entry of `tool_calls`; what is None is left out."""
    function = {"name": name, "arguments": given}
    return {
        **({} if index is None else {"index": index}),
        **({} if id is None else {"id": id, "type": "function"}),
        "function": {key: value for key, value in function.items() if value is not None},
    }


def calls(*entries: JSON, **fields: Any) -> JSON:
    return chunk({"tool_calls": list(entries)}, **fields)


ROLE = chunk({"role": "assistant", "content": ""})
STOP, TOOLS = chunk(reason="stop"), chunk(reason="tool_calls")
USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
TEXT: list[Any] = [ROLE, text("Hi"), text(" there"), STOP, DONE]
INPUT = '{"label": "done"}'
CALL: list[Any] = [
    ROLE,
    calls(entry(0, "call_1", "change_label", "")),
    calls(entry(0, given='{"label"')),
    calls(entry(0, given=': "done"}')),
    TOOLS,
    DONE,
]


def stream(payloads: Any) -> bytes:
    return b"".join(p if isinstance(p, bytes) else frame(p, event="") for p in payloads)


def read(payloads: Any, **options: Any) -> Consumer:
    return consume(stream(payloads), wire="openai-chat", **options)[0]


def told(payloads: Any) -> list[Event]:
    reads = consume(stream(payloads), wire="openai-chat")[1]
    return [event for _, events in reads for event in events]


def answer(*body: JSON, reason: str = "stop") -> list[Any]:
    return [ROLE, *body, chunk(reason=reason), DONE]


def turn_of(*body: JSON, reason: str = "stop") -> Turn:
    turn = read(answer(*body, reason=reason)).turn
    assert turn.complete, turn.facts.problems
    return turn


def rules(consumer: Consumer) -> list[tuple[str, str]]:
    return [(p.rule, p.severity) for p in consumer.turn.facts.problems]


def shown(turn: Turn) -> list[tuple[str, str]]:
    return [(s.kind, s.text) for s in turn.segments]


def called(turn: Turn) -> list[tuple[str, str, Any]]:
    return [(c.start.name, c.start.call_id, c.input) for c in turn.calls]


# --- What a whole answer states ---------------------------------------------------------------


def test_each_chunk_of_a_text_answer_states_what_it_adds() -> None:
    assert told(TEXT)[:-1] == [
        MessageStarted("chat-1", "model-1"),
        SegmentStarted("0", "text", 2, "text"),
        TextDelta("0", "Hi"),
        TextDelta("0", " there"),
        SegmentStopped("0", 4),
        StopReported("end_turn", "stop", 4),
        MessageCompleted(5),
    ]


def test_a_tool_calls_input_is_parsed_at_the_finish_reason() -> None:
    (streaming,) = read(CALL[:-2]).turn.segments
    assert (streaming.status, streaming.input, streaming.text) == ("streaming", None, INPUT)
    consumer = read(CALL)
    assert called(consumer.turn) == [("change_label", "call_1", {"label": "done"})]
    assert consumer.attempt.state == "VALIDATED_PROPOSAL"
    assert rules(consumer) == []


def test_the_wire_is_recognised_from_its_first_chunk() -> None:
    filters = {"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": []}
    no_object = {k: v for k, v in TEXT[1].items() if k != "object"}
    for first in (ROLE, filters, no_object, chunk(object="")):
        assert consume(stream([first, *TEXT]))[0].reader.wire == "openai-chat"
    for other in ({"candidates": []}, {"type": "message_start"}, {"choices": [{"text": "a"}]}):
        assert not ChatReader.recognises("", other)


def test_text_runs_until_a_call_or_thinking_begins_and_calls_stay_open() -> None:
    said = told(
        answer(
            text("a"),
            chunk({"reasoning_content": "b"}),
            text("c"),
            calls(entry(0, "x", "f", "{")),
            text("d"),
            calls(entry(0, given="}")),
            reason="tool_calls",
        )
    )
    order = [(type(e).__name__[7:], e.segment) for e in said if "Segment" in type(e).__name__]
    assert order == [
        *(("Started", "0"), ("Stopped", "0"), ("Started", "1"), ("Stopped", "1")),
        *(("Started", "2"), ("Stopped", "2"), ("Started", "3"), ("Started", "4")),
        *(("Stopped", "3"), ("Stopped", "4")),
    ]


# --- What a delta can hold --------------------------------------------------------------------

LIST = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, "a"]
DETAIL = {"type": "reasoning.text", "text": "hm", "signature": "c2ln", "index": 0}
SECRET = {"type": "reasoning.encrypted", "data": "b3Bh", "id": "r1"}
NOTE = {"type": "url_citation", "url": "https://example.com"}

#: Name -> a delta, and the (kind, text) of the segments it leaves.
DELTAS: dict[str, tuple[JSON, list[tuple[str, str]]]] = {
    "text": ({"content": "a"}, [("text", "a")]),
    "refusal": ({"refusal": "no"}, [("text", "no")]),
    "reasoning_content": ({"reasoning_content": "hm"}, [("thinking", "hm")]),
    "reasoning": ({"reasoning": "hm"}, [("thinking", "hm")]),
    "thinking": ({"thinking": "hm"}, [("thinking", "hm")]),
    "two names, one text": ({"reasoning": "hm", "reasoning_content": "hm"}, [("thinking", "hm")]),
    "details": ({"reasoning_details": [DETAIL]}, [("thinking", "hm")]),
    "details again": ({"reasoning": "hm", "reasoning_details": [DETAIL]}, [("thinking", "hm")]),
    "a summary": ({"reasoning_details": [{"summary": "hm"}]}, [("thinking", "hm")]),
    "encrypted": ({"reasoning": None, "reasoning_details": [SECRET]}, [("other", "")]),
    "parts": ({"content": LIST}, [("thinking", "hm"), ("text", "a")]),
    "text parts": ({"content": [{"type": "text", "text": "a"}]}, [("text", "a")]),
    "parts of the newer format": (
        {"content": [{"type": "reasoning", "text": "hm"}, {"type": "output_text", "text": "a"}]},
        [("thinking", "hm"), ("text", "a")],
    ),
    "a part without a type": ({"content": [{"text": "a", "index": 0}]}, [("text", "a")]),
    "one part, no list": ({"content": {"type": "text", "text": "a"}}, [("text", "a")]),
    "a refusal among parts": (
        {"content": [{"type": "refusal", "refusal": "no"}]},
        [("text", "no")],
    ),
    "empty parts": (
        {"content": [{"type": "text", "text": ""}, {"type": "thinking"}]},
        [("other", "")],
    ),
    "other parts": ({"content": [{"type": "document", "url": "x"}]}, [("other", "")]),
    "thinking first": ({"content": "a", "reasoning": "hm"}, [("thinking", "hm"), ("text", "a")]),
    "images": ({"content": "", "images": [{"url": "x"}]}, [("other", "")]),
    "nothing": ({"content": None, "refusal": None, "tool_calls": None, "role": None}, []),
    "empty": ({"content": "", "reasoning": "", "refusal": "", "tool_calls": []}, []),
}


@pytest.mark.parametrize("delta, segments", DELTAS.values(), ids=DELTAS)
def test_a_delta_becomes_segments(delta: JSON, segments: list[tuple[str, str]]) -> None:
    assert shown(turn_of(chunk(delta))) == segments


def only(delta: JSON) -> Segment:
    (segment,) = turn_of(chunk(delta)).segments
    return segment


def test_thinking_says_whether_the_vendor_wants_it_back() -> None:
    returned = {name: only(DELTAS[name][0]).start.returned for name in ("reasoning", "details")}
    assert returned == {"reasoning": False, "details": True}
    assert not only({"reasoning_content": "hm"}).start.returned


def test_the_proofs_of_thinking_survive() -> None:
    assert only({"reasoning_details": [DETAIL]}).signature == "c2ln"
    encrypted = only({"reasoning_details": [SECRET]})
    assert (encrypted.start.type, encrypted.attached) == (
        "reasoning.encrypted",
        {"data": "b3Bh", "id": "r1"},
    )


def test_thinking_in_a_summary_of_a_content_is_signed_by_its_pieces() -> None:
    def part(text: str, signature: str) -> JSON:
        piece = {"type": "summary_text", "text": text, "signature": signature}
        return chunk({"content": [{"type": "reasoning", "summary": [piece]}]})

    thinking, answer = turn_of(part("h", ""), part("m", ""), part("", "c2ln"), text("a")).segments
    assert (thinking.kind, thinking.text, thinking.signature) == ("thinking", "hm", "c2ln")
    assert thinking.start.returned
    assert answer.text == "a"
    signed = turn_of(
        chunk({"content": [{"type": "thinking", "thinking": "hm", "signature": "c2"}]})
    )
    assert signed.segments[0].signature == "c2"


def test_citations_are_attached_to_the_text_that_is_open() -> None:
    turn = turn_of(text("a"), chunk({"annotations": [NOTE, NOTE]}))
    assert turn.segments[0].attached == {"citations": [NOTE, NOTE]}
    part = {"type": "reference", "reference_ids": [1]}
    turn = turn_of(text("a"), chunk({"content": [part]}))
    assert turn.segments[0].attached == {"citations": [part]}
    assert only({"annotations": [NOTE]}).attached == {"annotation": NOTE}


def test_sound_is_one_segment_with_its_transcript_whole() -> None:
    late = chunk({"audio": {"expires_at": 9}})
    body = [
        chunk({"audio": {"id": "a1", "transcript": "He"}}),
        chunk({"audio": {"data": "AAAA", "transcript": "llo"}}),
        chunk({"audio": {"data": "BBBB"}}),
    ]
    turn = read([ROLE, *body, STOP, late, DONE]).turn
    (sound,) = turn.segments
    assert (sound.kind, sound.start.type) == ("other", "audio")
    assert sound.attached == {"id": "a1", "transcript": "Hello", "data": "AAAABBBB"}
    assert turn.complete


def test_a_tool_that_the_provider_ran_is_a_call_of_the_server() -> None:
    asked = {"index": 0, "type": "search", "arguments": '{"q": "a"}'}
    found = {**asked, "output": "b"}
    turn = turn_of(
        chunk({"executed_tools": [asked]}), chunk({"executed_tools": [found]}), text("c")
    )
    call, result, _ = turn.segments
    assert (call.start.server, call.start.name, call.input) == (True, "search", {"q": "a"})
    assert (result.start.type, result.attached["output"]) == ("executed_tool_result", "b")
    assert turn.calls == ()


def test_a_message_stands_in_for_a_delta() -> None:
    for bare in ({"delta": None}, {"delta": ...}):
        parts = [chunk(choice={**bare, "message": {"content": part}}) for part in ("Hi", "Hi")]
        for part in parts:
            if part["choices"][0]["delta"] is ...:
                del part["choices"][0]["delta"]
        assert turn_of(*parts).text == "HiHi"
    both = chunk({"content": "a"}, choice={"message": {"content": "a"}})
    assert turn_of(both).text == "a"


def whole(**message: Any) -> JSON:
    return chunk(choice={"delta": None, "message": message})


def test_a_whole_message_after_deltas_restates_them() -> None:
    same = read(answer(text("a"), text("b"), whole(content="ab")))
    assert (same.turn.text, rules(same)) == ("ab", [])
    other = read(answer(text("a"), text("b"), whole(content="abc")))
    assert (other.turn.text, rules(other)) == ("abc", [("text-restated", "warning")])
    again = read(
        [*CALL[:-2], whole(tool_calls=[entry(0, "call_1", "change_label", INPUT)]), *CALL[-2:]]
    )
    assert called(again.turn) == called(read(CALL).turn)


def test_a_delta_that_is_missing_or_null_adds_nothing() -> None:
    bare = chunk(choice={"delta": None})
    del bare["choices"][0]["delta"]
    assert turn_of(chunk(choice={"delta": None}), bare, text("a")).text == "a"


# --- Tool calls: whose fragment is it? --------------------------------------------------------

A, B = entry(0, "a", "f", '{"n": 1}'), entry(1, "b", "f", '{"n": 2}')
TWO = [("f", "a", {"n": 1}), ("f", "b", {"n": 2})]
WARNED = "index-reused", "name-in-pieces", "call-restated", "call-without-id"


def without(entry: JSON, *names: str) -> JSON:
    return {key: value for key, value in entry.items() if key not in names}


#: Name -> chunks' entries, the (name, id, input) of the calls, the rules of the problems.
PROVED: dict[str, tuple[list[list[JSON]], list[Any], list[str]]] = {
    "parallel": ([[A, B]], TWO, []),
    "one after the other": ([[A], [B]], TWO, []),
    "interleaved": (
        [
            [entry(0, "a", "f", '{"n"'), entry(1, "b", "f", '{"n":')],
            [entry(1, given=" 2")],
            [entry(0, given=": 1}")],
            [entry(1, given="}")],
        ],
        TWO,
        [],
    ),
    "equal but for the id": (
        [[A, {**A, "index": 1, "id": "b"}]],
        [TWO[0], ("f", "b", {"n": 1})],
        [],
    ),
    "id and name in each": (
        [[entry(0, "a", "f", '{"n":')], [entry(0, "a", "f", " 1}")]],
        TWO[:1],
        [],
    ),
    "empty id and name later": (
        [[entry(0, "a", "f", '{"n":')], [entry(0, "", "", " 1}")]],
        TWO[:1],
        [],
    ),
    "null id and name later": (
        [
            [entry(0, "a", "f", '{"n":')],
            [{"index": 0, "id": None, "function": {"name": None, "arguments": " 1}"}}],
        ],
        TWO[:1],
        [],
    ),
    "id late": ([[entry(0, None, "f", '{"n":')], [entry(0, "a", None, " 1}")]], TWO[:1], []),
    "name late": ([[entry(0, "a", None, '{"n":')], [entry(0, None, "f", " 1}")]], TWO[:1], []),
    "name in pieces": (
        [[entry(0, "a", "ge", "")], [entry(0, None, "t", "")], [entry(0, given="{}")]],
        [("get", "a", {})],
        ["name-in-pieces"],
    ),
    "no input": ([[entry(0, "a", "f")]], [("f", "a", {})], []),
    "empty input": ([[entry(0, "a", "f", "")]], [("f", "a", {})], []),
    "null input": ([[{**A, "function": {"name": "f", "arguments": None}}]], [("f", "a", {})], []),
    "input as an object": ([[entry(0, "a", "f", {"n": 1})]], TWO[:1], []),
    "input as an empty object, then text": (
        [[entry(0, "a", "f", {})], [entry(0, given='{"n": 1}')]],
        TWO[:1],
        [],
    ),
    "without the layer": (
        [[{"index": 0, "id": "a", "name": "f", "arguments": '{"n": 1}'}]],
        TWO[:1],
        [],
    ),
    "new id on a used index": ([[A], [{**B, "index": 0}]], TWO, ["index-reused"]),
    "two ids in turn on an index": (
        [
            [entry(0, "a", "f", '{"n":')],
            [entry(0, "b", "f", '{"n":')],
            [entry(0, "a", given=" 1}")],
            [entry(0, "b", given=" 2}")],
        ],
        TWO,
        ["index-reused"],
    ),
    "no index, by id": (
        [[without(A, "index"), without(B, "index")]],
        TWO,
        [],
    ),
    "no index, fragments by id": (
        [
            [entry(None, "a", "f", '{"n":'), entry(None, "b", "f", '{"n":')],
            [entry(None, "b", given=" 2}")],
            [entry(None, "a", given=" 1}")],
        ],
        TWO,
        [],
    ),
    "no index in the rest": (
        [[entry(0, "a", "f", '{"n":')], [entry(None, given=" 1}")]],
        TWO[:1],
        [],
    ),
    "index in the rest": ([[entry(None, "a", "f", '{"n":')], [entry(0, given=" 1}")]], TWO[:1], []),
    "neither, one call": (
        [[entry(None, None, "f", '{"n":')], [entry(None, None, "f", " 1}")]],
        [("f", "", {"n": 1})],
        ["call-without-id"],
    ),
    "no id, one call": ([[entry(0, None, "f", "{}")]], [("f", "", {})], ["call-without-id"]),
    "restated": ([[A], [A]], TWO[:1], ["call-restated"]),
    "restated after fragments": (
        [
            [entry(0, "a", "f", "")],
            [entry(0, given='{"n"')],
            [entry(0, given=": 1}")],
            [entry(0, "a", "f", '{"n":1}')],
        ],
        TWO[:1],
        ["call-restated"],
    ),
    "an entry that says nothing": ([[A, B], [{}]], TWO, []),
}


@pytest.mark.parametrize("entries, expected, found", PROVED.values(), ids=PROVED)
def test_whose_a_fragment_is_can_be_proved(
    entries: list[list[JSON]], expected: list[Any], found: list[str]
) -> None:
    consumer = read(answer(*(calls(*each) for each in entries), reason="tool_calls"))
    assert called(consumer.turn) == expected
    assert rules(consumer) == [(rule, "warning") for rule in found]
    assert consumer.attempt.state == "VALIDATED_PROPOSAL"


#: Name -> chunks' entries of which it can't be proved what they mean.
UNPROVED: dict[str, list[list[JSON]]] = {
    "neither index nor id, two open": [
        [entry(None, "a", "f", ""), entry(None, "b", "f", "")],
        [entry(None, given="{}")],
    ],
    "several values on an index, no ids": [
        [entry(0, None, "f", '{"n": 1}')],
        [entry(0, None, "f", '{"n": 2}')],
    ],
    "equal values on an index, no ids": [
        [entry(0, None, "f", "{}")],
        [entry(0, None, "f", "{}")],
    ],
    "named again without the id": [[A], [entry(0, None, "f", '{"n": 1}')]],
    "restated with another input": [[A], [entry(0, "a", "f", '{"n": 2}')]],
    "restated with another name": [[A], [entry(0, "a", "g", "")]],
    "a longer name": [[entry(0, "a", "get", "")], [entry(0, None, "get_it", "{}")]],
    "a name in pieces, no id": [[entry(0, None, "ge", "")], [entry(0, None, "t", "{}")]],
    "a new id without a name": [[entry(0, "a", "f", "{")], [entry(0, "b", None, "}")]],
    "one id on two indexes": [[A], [{**A, "index": 1}]],
    "an id late that another has": [[A, entry(1, None, "f", "{")], [entry(1, "a", None, "}")]],
    "two calls, one without an id": [[A, entry(1, None, "g", "{}")]],
    "two calls, both without": [[entry(None, None, "f", "{}"), entry(None, None, "f", "{}")]],
    "an index is missing": [[A, {**B, "index": 2}]],
    "a field that is not known": [
        [{"index": 0, "id": "a", "function": {"name": "f", "argumentz": "{}"}}]
    ],
    "a layer that is not known": [[A], [{"index": 0, "functiom": {"arguments": " "}}]],
    "custom input that comes again": [
        [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": "x"}}],
        [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": "x"}}],
    ],
}


@pytest.mark.parametrize("entries", UNPROVED.values(), ids=UNPROVED)
def test_what_cannot_be_proved_is_held(entries: list[list[JSON]]) -> None:
    consumer = read(answer(*(calls(*each) for each in entries), reason="tool_calls"))
    assert consumer.attempt.state == "HELD"
    assert ("ambiguous", "warning") in rules(consumer)
    assert consumer.proposals == ()


def test_a_call_under_an_unknown_name_is_held() -> None:
    hidden = {"tool_callz": [A]}
    for extra in (chunk(hidden), chunk(choice={"deltb": {"tool_calls": [A]}}), chunk(more=[A])):
        assert read([*CALL[:-2], extra, *CALL[-2:]]).attempt.state == "HELD"


def test_other_choices_are_told_apart_and_not_judged() -> None:
    second = [
        calls(entry(0, None, "g", '{"n": 1}'), index=1),
        calls(entry(0, None, "g", '{"n": 2}'), index=1),
        chunk(reason="tool_calls", index=1, choice={"usage": USAGE}),
    ]
    consumer = read([*CALL[:3], *second, *CALL[3:]])
    assert consumer.attempt.state == "VALIDATED_PROPOSAL"
    assert called(consumer.turn) == called(read(CALL).turn)
    assert [(s.id, s.start.choice) for s in consumer.turn.segments] == [("0", 0), ("1.0", 1)]
    assert ("ambiguous", "warning") in rules(consumer)
    assert consumer.turn.facts.tokens == Tokens()


def test_the_legacy_function_call_is_one_call_without_an_id() -> None:
    body = [
        chunk({"function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"n":'}}),
        chunk({"function_call": {"name": "f", "arguments": " 1}"}}),
    ]
    consumer = read(answer(*body, reason="function_call"))
    assert called(consumer.turn) == [("f", "", {"n": 1})]
    assert (consumer.attempt.state, rules(consumer)) == ("VALIDATED_PROPOSAL", [])


def test_a_custom_tools_input_is_its_text() -> None:
    first = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    consumer = read(
        answer(calls(first), calls({"index": 0, "custom": {"input": " -l"}}), reason="tool_calls")
    )
    assert called(consumer.turn) == [("sh", "a", "ls -l")]
    assert consumer.turn.segments[0].start.form == "text"
    assert consumer.attempt.state == "VALIDATED_PROPOSAL"


def test_what_a_vendor_adds_to_a_call_is_attached() -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    turn = turn_of(calls({**A, "extra_content": extra}), reason="tool_calls")
    assert turn.segments[0].attached == {"extra_content": extra}


def test_an_input_cut_at_the_token_limit_is_held_and_does_not_parse() -> None:
    consumer = read(answer(calls(entry(0, "a", "f", '{"n": 1')), reason="length"))
    assert (consumer.attempt.state, consumer.turn.facts.stop_reason) == ("HELD", "max_tokens")
    assert consumer.turn.segments[0].status == "error"


# --- Usage ------------------------------------------------------------------------------------

DETAILED = {**USAGE, "completion_tokens_details": {"reasoning_tokens": 4}}

#: Name -> chunks, and the tokens that they give.
COUNTED: dict[str, tuple[list[JSON], Tokens]] = {
    "none": ([text("a")], Tokens()),
    "null": ([text("a", usage=None)], Tokens()),
    "at the end": ([chunk(choices=[], usage=USAGE)], Tokens(5, 7)),
    "running, the last counts": (
        [text("a", usage={**USAGE, "completion_tokens": 1}), text("b", usage=USAGE)],
        Tokens(5, 7),
    ),
    "a later null": ([text("a", usage=USAGE), text("b", usage=None)], Tokens(5, 7)),
    "in a choice": ([chunk(choice={"usage": USAGE})], Tokens(5, 7)),
    "in x_groq": ([chunk(x_groq={"id": "r", "usage": USAGE})], Tokens(5, 7)),
    "in the newer format's words": (
        [chunk(choices=[], usage={"input_tokens": 5, "output_tokens": 7})],
        Tokens(5, 7),
    ),
    "reasoning inside": ([chunk(choices=[], usage=DETAILED)], Tokens(5, 7, 4)),
    "reasoning apart, as the total shows": (
        [chunk(choices=[], usage={**DETAILED, "total_tokens": 16})],
        Tokens(5, 7, 4),
    ),
    "no numbers": (
        [chunk(choices=[], usage={"prompt_tokens": "5", "completion_tokens": True})],
        Tokens(),
    ),
}


@pytest.mark.parametrize("body, expected", COUNTED.values(), ids=COUNTED)
def test_usage_counts_wherever_it_stands(body: list[JSON], expected: Tokens) -> None:
    assert turn_of(*body).facts.tokens == expected
    assert read([ROLE, STOP, *body, DONE]).turn.facts.tokens == expected


# --- Why it stopped ---------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [*sorted(STOP_REASON.keys() - {"error"}), "of its own"])
def test_a_finish_reason_has_our_word(raw: str) -> None:
    facts = read(answer(text("a"), reason=raw)).turn.facts
    assert (facts.stop_reason, facts.raw_stop_reason) == (STOP_REASON.get(raw, "other"), raw)
    assert facts.stop_reason in STOP_REASONS


def test_a_refusal_that_ends_with_stop_is_a_refusal() -> None:
    consumer = read(answer(chunk({"refusal": "I "}), chunk({"refusal": "won't"})))
    assert (consumer.turn.facts.stop_reason, consumer.turn.text) == ("refusal", "I won't")
    assert consumer.attempt.state == "HELD"


def test_a_stop_with_a_call_is_a_call() -> None:
    consumer = read(answer(calls(A)))
    assert (consumer.turn.facts.stop_reason, consumer.attempt.state) == (
        "tool_use",
        "VALIDATED_PROPOSAL",
    )
    assert ("stop-reason-label", "warning") in rules(consumer)


def test_an_empty_reason_is_no_reason() -> None:
    consumer = read([chunk({"content": "a"}, ""), chunk({"content": "b"}, ""), STOP, DONE])
    assert (consumer.turn.text, len(consumer.turn.segments)) == ("ab", 1)
    assert not read([chunk({"content": "a"}, ""), DONE]).turn.complete


# --- The end ----------------------------------------------------------------------------------

#: Name -> payloads, state, rules of severity and name.
ENDS: dict[str, tuple[list[Any], str, list[tuple[str, str]]]] = {
    "whole": (TEXT, "MESSAGE_COMPLETE", []),
    "no [DONE]": (TEXT[:-1], "INCOMPLETE", [("incomplete", "warning")]),
    "no reason": (
        [*TEXT[:-2], DONE],
        "INCOMPLETE",
        [("done-too-early", "warning"), ("incomplete", "warning")],
    ),
    "no choice": (
        [chunk(choices=[], usage=USAGE), DONE],
        "INCOMPLETE",
        [("done-too-early", "warning"), ("incomplete", "warning")],
    ),
    "only choice 1": (
        [text("a", index=1), chunk(reason="stop", index=1), DONE],
        "INCOMPLETE",
        [("done-too-early", "warning"), ("incomplete", "warning")],
    ),
    "choice 1 without a reason": (
        [*TEXT[:-1], text("a", index=1), DONE],
        "INCOMPLETE",
        [("done-too-early", "warning"), ("incomplete", "warning")],
    ),
    "[DONE] twice": ([*TEXT, DONE, DONE], "MESSAGE_COMPLETE", [("done-twice", "warning")]),
    "usage after [DONE]": (
        [*TEXT, chunk(choices=[], usage=USAGE)],
        "MESSAGE_COMPLETE",
        [("after-done", "warning")],
    ),
    "text after [DONE]": ([*TEXT, text("late")], "INVALID", [("after-the-end", "error")]),
    "a second answer": ([*TEXT, *CALL], "INVALID", [("second-answer", "error")]),
    "a second answer, no [DONE]": (
        [*TEXT[:-1], chunk({"role": "assistant"}, id="chat-2"), text("late", id="chat-2"), DONE],
        "INVALID",
        [("second-answer", "error"), ("incomplete", "warning")],
    ),
    "the reason again": ([*TEXT[:-1], STOP, DONE], "MESSAGE_COMPLETE", [("finish-again", "note")]),
    "a reason that says less": (
        [*TEXT[:-1], chunk(reason="length"), DONE],
        "HELD",
        [("ambiguous", "warning")],
    ),
    "a reason that says more": (
        [*TEXT[:-2], chunk(reason="length"), STOP, DONE],
        "HELD",
        [("ambiguous", "warning")],
    ),
    "an error after the reason": (
        [*TEXT[:-1], chunk(reason="error"), DONE],
        "INVALID",
        [("finish-changed", "warning"), ("provider-error", "error")],
    ),
    "stop after tool_calls": (
        [*CALL[:-1], TOOLS, STOP, DONE],
        "VALIDATED_PROPOSAL",
        [("finish-again", "note"), ("finish-changed", "warning"), ("stop-reason-label", "warning")],
    ),
    "text after the reason": (
        [*TEXT[:-1], text("late"), DONE],
        "MESSAGE_COMPLETE",
        [("after-finish", "warning")],
    ),
    "a call after the reason": (
        [TOOLS, calls(A), DONE],
        "HELD",
        [("after-finish", "warning"), ("ambiguous", "warning")],
    ),
    "a call after the reason, which comes again": (
        [calls(A, reason="tool_calls"), calls(B, reason="tool_calls"), DONE],
        "VALIDATED_PROPOSAL",
        [("after-finish", "warning"), ("finish-again", "note")],
    ),
    "a call that goes on after the reason": (
        [*CALL[:-1], calls(entry(0, given=" ")), DONE],
        "HELD",
        [("ambiguous", "warning")],
    ),
    "a call restated after the reason": (
        [*CALL[:-1], calls(entry(0, "call_1", "change_label", INPUT)), DONE],
        "VALIDATED_PROPOSAL",
        [("call-restated", "warning")],
    ),
    "usage and moderation after the reason": (
        [*TEXT[:-1], chunk(choices=[], usage=USAGE), chunk(choices=[], moderation={"a": 1}), DONE],
        "MESSAGE_COMPLETE",
        [],
    ),
    "filter results after the reason": (
        [
            *TEXT[:-1],
            {
                "id": "",
                "object": "",
                "choices": [{"index": 0, "finish_reason": None, "content_filter_results": {}}],
            },
            DONE,
        ],
        "MESSAGE_COMPLETE",
        [],
    ),
    "keep-alives": ([PING, TEXT[0], PING, b"data:\n\n", *TEXT[1:]], "MESSAGE_COMPLETE", []),
    "changing ids": (
        [TEXT[0], text("a", id="chat-2"), text("b", id="chat-3"), STOP, DONE],
        "MESSAGE_COMPLETE",
        [("id-changed", "note")],
    ),
    "an event of another kind": (
        [{"hello": 1}, *TEXT],
        "MESSAGE_COMPLETE",
        [("unknown", "note")],
    ),
    "a field of another kind": (
        [ROLE, chunk({"mood": "good"}), chunk({"mood": "bad"}), STOP, DONE],
        "MESSAGE_COMPLETE",
        [("unknown", "note")],
    ),
    "thinking that differs": (
        [chunk({"reasoning": "a", "reasoning_content": "b"}), STOP, DONE],
        "MESSAGE_COMPLETE",
        [("two-reasonings", "warning")],
    ),
}


@pytest.mark.parametrize("payloads, state, found", ENDS.values(), ids=ENDS)
def test_an_end_is_judged_by_the_letter(
    payloads: list[Any], state: str, found: list[tuple[str, str]]
) -> None:
    consumer = read(payloads)
    assert (consumer.attempt.state, rules(consumer)) == (state, found)
    assert "late" not in "".join(s.text for s in consumer.turn.segments) or "after-finish" in dict(
        found
    )


def test_where_only_the_marker_is_missing_the_content_looks_closed() -> None:
    (problem,) = read(TEXT[:-1]).turn.facts.problems
    assert "without [DONE]; the content looks closed" in problem.message
    (problem,) = read(TEXT[:-2]).turn.facts.problems
    assert "a finish_reason of choice 0, [DONE]" in problem.message


def test_in_json_lines_the_reasons_and_a_clean_end_suffice() -> None:
    data = lines(CALL[:-1])
    assert consume(data)[0].attempt.state == "VALIDATED_PROPOSAL"
    assert consume(data, ending="cut")[0].attempt.state == "INCOMPLETE"
    assert consume(lines(CALL[:-2]))[0].attempt.state == "INCOMPLETE"
    assert consume(lines(CALL[:-1]) + b"[DONE]\n")[0].attempt.state == "VALIDATED_PROPOSAL"
    first, _ = consume(lines([*TEXT[:-1], *({**p, "id": "chat-2"} for p in CALL[:-1])]))
    assert (first.turn.text, first.turn.calls) == ("Hi there", ())
    assert ("second-answer", "error") in rules(first)


def test_a_message_is_known_by_its_first_id() -> None:
    turn = read([chunk(id="", model="", choices=[]), *TEXT]).turn
    assert (turn.facts.id, turn.facts.model) == ("chat-1", "model-1")


# --- Errors and breaches ----------------------------------------------------------------------

ERROR = {"message": "queue is full", "type": "rate_limit_error", "code": 429}

#: Name -> what says that the provider failed.
ERRORS: dict[str, Any] = {
    "object": {"error": ERROR},
    "text": {"error": "queue is full"},
    "named and flat": b'event: error\ndata: {"message": "queue is full", "code": 429}\n\n',
    "named and nested": frame({"error": ERROR}, event="error"),
    "in a chunk": text("late", error=ERROR),
    "in a choice": chunk(choice={"error": ERROR}),
    "a reason": chunk(reason="error"),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_an_error_of_any_shape_is_an_error(error: Any) -> None:
    consumer = read([ROLE, text("Hi"), error, STOP, DONE])
    assert (consumer.attempt.state, consumer.turn.text) == ("INVALID", "Hi")
    assert ("provider-error", "error") in rules(consumer)


def test_the_counts_beside_an_error_are_kept() -> None:
    assert told([ROLE, text("", error=ERROR, usage=USAGE)])[1:3] == [
        ProviderError("rate_limit_error", "queue is full", 2),
        UsageReported(USAGE, Tokens(5, 7)),
    ]


#: Name -> a chunk that breaks the format, and the rule.
BREACHES: dict[str, tuple[Any, str]] = {
    "choices": (chunk(choices={"a": 1}), "malformed"),
    "a choice": (chunk(choices=[5]), "malformed"),
    "a choice's index": (chunk(index="0"), "malformed"),
    "a delta": (chunk("text"), "malformed"),
    "content": (chunk({"content": 5}), "malformed"),
    "a part": (chunk({"content": [5]}), "malformed"),
    "a part without a type or a text": (chunk({"content": [{"index": 0}]}), "malformed"),
    "a part whose type is a number": (chunk({"content": [{"type": 5, "text": "a"}]}), "malformed"),
    "a refusal": (chunk({"refusal": ["no"]}), "malformed"),
    "audio": (chunk({"audio": "AAAA"}), "malformed"),
    "an executed tool": (chunk({"executed_tools": [5]}), "malformed"),
    "a reason": (chunk(reason=5), "malformed"),
    "tool_calls": (chunk({"tool_calls": {"a": 1}}), "malformed"),
    "a call": (calls(5), "malformed"),  # type: ignore[arg-type]
    "a call's index": (calls({**A, "index": -1}), "malformed"),
    "a call's index, text": (calls({**A, "index": "0"}), "malformed"),
    "a call's id": (calls({**A, "id": 5}), "malformed"),
    "a call's name": (calls({**A, "function": {"name": 5}}), "malformed"),
    "a call's function": (calls({**A, "function": "f"}), "malformed"),
    "a call's input": (calls(entry(0, "a", "f", [1])), "malformed"),
    "a function_call": (chunk({"function_call": "f"}), "malformed"),
    "an input with a key twice": (
        frame(calls(entry(0, "a", "f", {"n": 1})), event="").replace(
            b'{"n": 1}', b'{"n": 1, "n": 2}'
        ),
        "malformed",
    ),
    "a call without a name": (calls(entry(0, "a", None, "{}")), "call-without-name"),
    "a call of two types": (
        calls(A, {"index": 0, "custom": {"input": "x"}}),
        "call-type",
    ),
    "too many calls": (
        calls(*({**A, "index": n, "id": f"a{n}"} for n in range(MAX_CALLS + 1))),
        "too-many-calls",
    ),
    "too many choices": (
        chunk(choices=[{"index": n, "delta": {}} for n in range(MAX_CHOICES + 1)]),
        "too-many-choices",
    ),
}


@pytest.mark.parametrize("broken, rule", BREACHES.values(), ids=BREACHES)
def test_a_breach_of_the_format_is_an_error(broken: Any, rule: str) -> None:
    consumer = read([ROLE, broken, STOP, DONE])
    assert (rule, "error") in rules(consumer)
    assert consumer.attempt.state == "INVALID"
    assert all("(byte " in p.message for p in consumer.turn.facts.problems if p.rule == rule)


# --- Laws -------------------------------------------------------------------------------------

words = st.sampled_from(["", "a", "é", "\ud83d", "{", "}", '{"n": 1}', '{"n":', " 1}"])
maybe = st.none() | words
indexes = st.sampled_from([None, 0, 0, 1, 2, -1, "0", 0.0])
entries = st.builds(
    entry,
    indexes,
    st.sampled_from([None, "", "x", "y"]),
    st.sampled_from([None, "", "f", "g"]),
    maybe,
)
deltas = st.one_of(
    st.fixed_dictionaries({"content": maybe}),
    st.fixed_dictionaries({"tool_calls": st.lists(entries, max_size=2)}),
    st.fixed_dictionaries(
        {},
        optional={
            "content": maybe,
            "reasoning": maybe,
            "reasoning_content": maybe,
            "refusal": maybe,
            "role": st.just("assistant"),
            "tool_calls": st.none() | st.lists(entries, max_size=2),
            "function_call": st.none() | st.builds(lambda e: e["function"], entries),
            "mood": words,
        },
    ),
)
chunks = st.builds(
    chunk,
    deltas,
    st.sampled_from([None, None, None, None, "", "stop", "tool_calls", 5]),
    st.sampled_from([0, 0, 0, 1, None]),
    st.sampled_from([None, None, {"logprobs": None}, {"delta": None, "message": {"content": "a"}}]),
    id=st.sampled_from(["chat-1", "chat-1", "chat-1", "", "chat-2"]),
    usage=st.sampled_from([None, None, USAGE]),
)
soups = st.lists(st.one_of(chunks, chunks, st.just(DONE), st.just(PING)), max_size=12).map(
    lambda body: stream([ROLE, *body])
)


@settings(max_examples=300)
@given(cut(soups), st.sampled_from(["eof", "cut"]))
def test_any_split_of_the_bytes_gives_the_same(drawn: tuple[bytes, list[int]], ending: str) -> None:
    data, cuts = drawn
    whole = saw(data, ending=ending)
    note(whole[6].state)
    assert saw(data, cuts, ending=ending) == whole
    for size in (1, 2, 3):
        assert saw(data, range(0, len(data), size), ending=ending) == whole


def both_ways(frames: list[Frame], named: bool = True) -> int:
    """Read by the reader's own choice, and by the general way alone; return how often it chose."""
    fast, general = ChatReader(named), ChatReader(named)
    taken, slow, counted = 0, fast.payload, [0]
    stated: list[tuple[Event, ...]] = []

    def counting(payload: JSON, frame: Frame) -> tuple[Event, ...]:
        counted[0] += 1
        return slow(payload, frame)

    fast.payload = counting  # type: ignore[method-assign]
    for one in frames:
        before = counted[0]
        events = fast.read(one)
        stated.append(general._general(one))
        assert events == stated[-1]
        common = (TextDelta, ThinkingDelta, InputDelta)
        taken += counted[0] == before and bool(events) and isinstance(events[0], common)
    runs = ChatReader(named)
    assert in_runs(runs, frames) == stated
    assert (runs.unfinished(), runs.completed) == (general.unfinished(), general.completed)
    assert fast.unfinished() == general.unfinished()
    assert (fast.completed, fast.started) == (general.completed, general.started)
    return taken


@settings(max_examples=500)
@given(soups)
def test_the_fast_way_reads_what_the_general_way_reads(data: bytes) -> None:
    frames = SSEDecoder().feed(data)
    note("fast" if both_ways(frames) else "general")
    both_ways([msgspec.structs.replace(frame, event="") for frame in frames], named=False)


PLAIN = json.dumps(text("a"))
PIECE = json.dumps(calls(entry(0, given="a")))


@pytest.mark.parametrize(
    "odd",
    [
        PLAIN,
        PIECE,
        PLAIN.replace('"index": 0', '"index": 0.0'),
        PLAIN.replace('"index": 0', '"index": -0'),
        PLAIN.replace('"index": 0', '"index": false'),
        PLAIN.replace('"index": 0', '"index": 1, "index": 0'),
        PIECE.replace('{"index": 0, "function"', '{"index": -1, "function"'),
        PIECE.replace('{"index": 0, "function"', '{"index": 0.0, "function"'),
        PIECE.replace('"arguments": "a"', '"arguments": "a", "arguments": "b"'),
        PIECE.replace('"arguments": "a"', '"arguments": null'),
        PIECE.replace('"arguments": "a"', '"arguments": "\\ud83d"'),
        PLAIN.replace('"content": "a"', '"content": "\\ud83d"'),
        PLAIN.replace('"content": "a"', '"content": "a", "content": null'),
        PLAIN.replace('"content": "a"', '"content": "a", "reasoning": "b"'),
        PLAIN.replace('"content": "a"', '"content": "a", "reasoning": ""'),
        PLAIN.replace('"content": "a"', '"reasoning": "b", "reasoning_content": "b"'),
        PLAIN.replace('"content": "a"', '"content": "a", "audio": {"id": "x"}'),
        PLAIN.replace('"created": 1', '"created": 1e400'),
        PLAIN.replace('"created": 1', '"created": ' + "9" * 4400),
        PLAIN.replace('"created": 1', '"created": NaN'),
        PLAIN.replace('"created": 1', '"error": "x"'),
        PLAIN.replace('"created": 1', '"type": "some_error"'),
        PLAIN.replace('"created": 1', '"deep": ' + "[" * 300 + "]" * 300),
        PLAIN.replace("chat-1", ""),
        PLAIN.replace("chat-1", "chat-2"),
        PLAIN.replace('"id": "chat-1"', '"id": null'),
        PLAIN.replace("model-1", "\\ud83d"),
        PLAIN + " x",
        " " + PLAIN + " ",
    ],
)
def test_the_fast_way_reads_every_odd_chunk_as_the_general_way_does(odd: str) -> None:
    bodies = [TEXT, CALL, [ROLE, chunk({"function_call": {"name": "f", "arguments": ""}}), STOP]]
    bodies += [[ROLE, chunk({"reasoning": "a"}), STOP], [whole(content="a"), STOP, DONE]]
    for body in bodies:
        frames = SSEDecoder().feed(stream(body))
        strange = Frame(9, "", odd.encode(), 9, 10)
        for place in range(len(frames) + 1):
            both_ways([*frames[:place], strange, strange, *frames[place:]])


MIDDLE = [chunk({"role": "assistant", "content": "a"}), chunk({"content": "b"})]
LAST = [chunk({"content": "c"}), chunk({}, "stop")]


@pytest.mark.parametrize(
    "again, state",
    [
        ([{**chunk({"role": "assistant", "content": ""}), "id": "chat-2"}], "HELD"),
        ([{**chunk({"role": "assistant", "content": "a"}), "id": "chat-2"}], "HELD"),
        ([chunk({"role": "assistant", "content": ""})], "MESSAGE_COMPLETE"),
        ([{**chunk({"content": "x"}), "id": "chat-2"}], "MESSAGE_COMPLETE"),
        ([], "MESSAGE_COMPLETE"),
    ],
    ids=["a new message", "with text", "a role alone", "an id alone", "nothing"],
)
def test_where_a_message_begins_inside_another_nobody_knows_whose_the_rest_is(
    again: list[JSON], state: str
) -> None:
    later = [{**each, "id": again[-1]["id"]} for each in LAST] if again else LAST
    said = b"".join(frame(each, "") for each in [*MIDDLE, *again, *later])
    assert consume(said + DONE)[0].attempt.state == state


def test_ids_that_change_in_every_chunk_are_a_habit_even_with_a_role_in_each() -> None:
    texts = [{"role": "assistant", "content": each} for each in "abc"]
    many = [{**chunk(delta), "id": f"chat-{n}"} for n, delta in enumerate(texts)]
    said = b"".join(frame(each, "") for each in [*many, *LAST])
    assert consume(said + DONE)[0].attempt.state == "MESSAGE_COMPLETE"


def test_after_an_early_end_marker_nothing_is_a_usual_delta() -> None:
    said = [frame(chunk({"content": "a"}), "") for _ in range(3)]
    both_ways(SSEDecoder().feed(b"".join([*said, DONE, *said])))


def test_the_fast_way_is_taken_by_the_deltas_of_an_ordinary_answer() -> None:
    def taken(payloads: list[Any]) -> int:
        return both_ways(SSEDecoder().feed(stream(payloads)))

    assert (taken(TEXT), taken(CALL)) == (1, 2)
    assert taken([ROLE, *(chunk({"reasoning_content": "a"}) for _ in range(3)), STOP]) == 2


def test_bytes_that_are_no_utf8_are_a_blemish_in_text_and_a_forgery_in_a_call() -> None:
    def torn(payloads: list[Any], word: bytes) -> str:
        return str(consume(stream(payloads).replace(word, b"\xff"))[0].attempt.state)

    assert torn(TEXT, b" there") == "MESSAGE_COMPLETE"
    assert torn(CALL, b"done") == "INVALID"


@settings(max_examples=300)
@given(st.data())
def test_losing_what_is_not_a_fragment_never_makes_another_proposal(data: st.DataObject) -> None:
    """Fragments carry no number, so one lost inside a string can't be seen; all else can."""
    body = [
        *CALL[:2],
        calls(entry(1, "call_2", "say", "")),
        calls(entry(0, given=INPUT), entry(1, given="{}")),
        TOOLS,
        chunk(choices=[], usage=USAGE),
        DONE,
    ]
    order = data.draw(st.lists(st.sampled_from(range(len(body))), max_size=9))
    consumer = read([body[place] for place in order])
    intact = called(read(body).turn)
    proposed = [(p.tool, p.call_id, p.input) for p in consumer.proposals]
    allowed = [*intact, ("change_label", "call_1", {}), ("say", "call_2", {})]
    assert all(one in allowed for one in proposed)
    if 3 in order and proposed:
        assert {one[0]: one for one in proposed}["change_label"] == intact[0]


def test_keep_alives_are_no_content() -> None:
    assert told([PING])[0] == KeepAlive()
