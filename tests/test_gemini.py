"""Gemini generateContent, claim by claim: parts become segments, and only a clean end completes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlab.analysis.judge import judge
from streamlab.consumer.consumer import Consumer
from streamlab.streams.recording import Recording
from streamlab.wire.dialect import Dialect
from streamlab.wire.events import (
    Attached,
    Event,
    InputDelta,
    KeepAlive,
    MessageStarted,
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
from streamlab.wire.gemini import MAX_CANDIDATES, GeminiReader
from streamlab.wire.gemini_args import MAX_STEPS, MAX_VALUES, Arguments, steps
from streamlab.wire.gemini_tables import FINISH
from streamlab.wire.payload import NotJSON
from streamlab.wire.sse import Frame, SSEDecoder
from tests.streams_for_tests import any_text, consume, cut, frame, framed, in_runs, saw

JSON = dict[str, Any]
Rules = list[tuple[str, str]]

# --- Chunks -------------------------------------------------------------------------------------


def chunk(*parts: Any, finish: Any = None, index: int | None = 0, **more: Any) -> JSON:
    """One chunk of one candidate; `more` belongs to the candidate."""
    candidate: JSON = {"content": {"role": "model", "parts": list(parts)}, **more}
    candidate |= {} if finish is None else {"finishReason": finish}
    candidate |= {} if index is None else {"index": index}
    return {"candidates": [candidate], "modelVersion": "m-1", "responseId": "r-1"}


def text(said: str, **more: Any) -> JSON:
    return {"text": said, **more}


def call(name: str | None = None, args: Any = None, sign: str = "", **more: Any) -> JSON:
    given = {**({"name": name} if name else {}), **({} if args is None else {"args": args}), **more}
    return {"functionCall": given, **({"thoughtSignature": sign} if sign else {})}


def piece(path: str, more: bool = False, **value: Any) -> JSON:
    return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}


def pieces(*given: JSON, ends: bool = False) -> JSON:
    return call(partialArgs=list(given), **({} if ends else {"willContinue": True}))


def sse(*chunks: Any) -> bytes:
    return b"".join(item if isinstance(item, bytes) else frame(item, "") for item in chunks)


def read(*chunks: Any, ending: str = "eof") -> Consumer:
    """What comes of a stream; the same however it is cut, and in the other two forms too."""
    data = sse(*chunks)
    consumer, _ = consume(data, ending=ending)
    for size in (1, 2, 3):
        assert saw(data, range(0, len(data), size), ending=ending) == saw(data, ending=ending)
    return consumer


def events(*chunks: Any) -> list[Event]:
    return [event for _, told in consume(sse(*chunks))[1] for event in told]


def rules(consumer: Consumer) -> Rules:
    return [(problem.rule, problem.severity) for problem in consumer.turn.facts.problems]


def told(consumer: Consumer) -> str:
    return "; ".join(problem.message for problem in consumer.turn.facts.problems)


def segments(consumer: Consumer) -> list[tuple[str, str, str]]:
    return [(s.kind, s.text, s.signature) for s in consumer.turn.segments]


HI = (chunk(text("Hi")), chunk(text(" there"), finish="STOP"))
PLACE = call("book", {"room": "Atlas"})

# --- An answer ----------------------------------------------------------------------------------


def test_every_event_of_an_answer_of_text() -> None:
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 2}
    assert events(HI[0], HI[1] | {"usageMetadata": usage})[:-2] == [
        MessageStarted("r-1", "m-1"),
        SegmentStarted("0", "text", 1, "text"),
        TextDelta("0", "Hi"),
        TextDelta("0", " there"),
        StopReported("end_turn", "STOP", 2),
        UsageReported(usage, Tokens(3, 2)),
        SegmentStopped("0", 2),
    ]
    consumer = read(*HI)
    assert (consumer.attempt.state, rules(consumer)) == ("MESSAGE_COMPLETE", [])


FORMS = {
    "stream": lambda chunks: sse(*chunks),
    "no space after the colon": lambda chunks: sse(*chunks).replace(b"data: ", b"data:"),
    "comments": lambda chunks: b": hello\n\n" + b": ping\n\n".join(sse(c) for c in chunks),
    "CRLF": lambda chunks: sse(*chunks).replace(b"\n", b"\r\n"),
    "array": lambda chunks: json.dumps(chunks).encode(),
    "array, indented": lambda chunks: json.dumps(chunks, indent=2).encode(),
    "lines": lambda chunks: b"".join(json.dumps(c).encode() + b"\n" for c in chunks),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_gives_the_same_answer(form: Any) -> None:
    for chunks in (HI, (chunk(PLACE, finish="STOP"),)):
        consumer, _ = consume(form(chunks))
        other = read(*chunks)
        assert consumer.turn.segments == other.turn.segments
        assert consumer.attempt.state == other.attempt.state


RECOGNISED = {
    "candidates": {"candidates": []},
    "feedback": {"promptFeedback": {}},
    "usage": {"usageMetadata": {}},
    "error": {"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}},
    "wrapped": {"response": {"candidates": []}, "traceId": "t-1"},
}
STRANGE = {
    "nothing": {},
    "no list": {"candidates": {}},
    "another error": {"error": {"type": "overloaded_error", "message": "busy"}},
    "a code in words": {"error": {"code": "busy", "status": "UNAVAILABLE"}},
    "usage of another": {"usage": {}},
    "a wrapper around something else": {"response": {"id": "r"}},
    "a wrapper around text": {"response": "a"},
}


@pytest.mark.parametrize("payload", RECOGNISED.values(), ids=RECOGNISED)
def test_a_chunk_is_recognised_by_its_fields(payload: JSON) -> None:
    assert consume(sse(payload))[0].reader.wire == "gemini"


@pytest.mark.parametrize("payload", STRANGE.values(), ids=STRANGE)
def test_what_could_be_anything_is_not_recognised(payload: JSON) -> None:
    assert not GeminiReader.recognises("", payload)


def test_chunks_that_an_api_for_code_assistants_wraps_are_read_as_themselves() -> None:
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 7}
    bare = [
        chunk(text("hm", thought=True)),
        chunk(text("a")),
        chunk(text("b")),
        {**chunk(call("f", {"n": 1}, "c2ln"), finish="STOP"), "usageMetadata": usage},
    ]
    wrapped = [{"response": each, "traceId": "t-1", "metadata": {}} for each in bare]
    assert read(*wrapped).turn.segments == read(*bare).turn.segments
    assert read(*wrapped).attempt.state == read(*bare).attempt.state == "VALIDATED_PROPOSAL"
    assert read(*wrapped).turn.facts.tokens == read(*bare).turn.facts.tokens
    failed = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota"}}
    assert read(*wrapped[:2], failed).attempt.state == "INVALID"


# --- Text, thinking, signatures -----------------------------------------------------------------

RUNS = {
    "text runs on": ([text("a"), text("b")], [("text", "ab", "")]),
    "thinking is apart": (
        [text("a", thought=True), text("b", thought=True), text("c")],
        [("thinking", "ab", ""), ("text", "c", "")],
    ),
    "thought false is text": ([text("a", thought=False), text("b")], [("text", "ab", "")]),
    "a signed part stands alone": (
        [text("a"), text("b", thoughtSignature="c2ln"), text("c")],
        [("text", "a", ""), ("text", "b", "c2ln"), ("text", "c", "")],
    ),
    "signed thinking": (
        [text("a", thought=True), text("b", thought=True, thoughtSignature="c2ln")],
        [("thinking", "a", ""), ("thinking", "b", "c2ln")],
    ),
    "a signed empty part is kept": (
        [text("a"), text("", thoughtSignature="+/=\n")],
        [("text", "a", ""), ("text", "", "+/=\n")],
    ),
    "an empty part is nothing": (
        [text("a"), text("", thought=True), text("b")],
        [("text", "ab", "")],
    ),
    "a signed call": ([call("f", {}, "c2ln")], [("tool_call", "{}", "c2ln")]),
    "a signed part of no kind": ([{"thoughtSignature": "c2ln"}], [("other", "", "c2ln")]),
    "more than text": (
        [text("a"), text("b", partMetadata={"n": 1}), text("c")],
        [("text", "a", ""), ("text", "b", ""), ("text", "c", "")],
    ),
    "a picture between": (
        [text("a"), {"inlineData": {"mimeType": "image/png", "data": "AA=="}}, text("b")],
        [("text", "a", ""), ("other", "", ""), ("text", "b", "")],
    ),
    "an empty signature": ([text("a", thoughtSignature="")], [("text", "a", "")]),
    "a null beside the text": ([text("a", thoughtSignature=None), text("b")], [("text", "ab", "")]),
}


@pytest.mark.parametrize(("parts", "expected"), RUNS.values(), ids=RUNS)
def test_parts_become_segments(parts: list[JSON], expected: list[tuple[str, str, str]]) -> None:
    apart = [chunk(part) for part in parts]
    assert segments(read(*apart, chunk(finish="STOP"))) == expected
    together = read(chunk(*parts, finish="STOP"))
    assert segments(together) == expected
    assert all(segment.status == "ready" for segment in together.turn.segments)


OTHERS = {
    "result": {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4"}},
    "tool response": {"toolResponse": {"id": "t1", "toolType": "FILE_SEARCH"}},
    "function response": {"functionResponse": {"name": "f", "response": {}}},
    "file": {"fileData": {"fileUri": "files/1"}},
    "picture that was thought": {"inlineData": {"data": "AA=="}, "thought": True},
}


@pytest.mark.parametrize("part", OTHERS.values(), ids=OTHERS)
def test_other_parts_are_kept_whole(part: JSON) -> None:
    consumer = read(chunk(part, finish="STOP"))
    (segment,) = consumer.turn.segments
    assert (segment.kind, segment.start.type) == ("other", next(iter(part)))
    assert segment.attached == part
    assert rules(consumer) == []


def test_a_part_that_is_not_known_is_kept_and_said() -> None:
    consumer = read(chunk({"hologram": {"size": 3}}, finish="STOP"))
    assert consumer.turn.segments[0].attached == {"hologram": {"size": 3}}
    assert rules(consumer) == [("unknown", "note")]
    assert Unknown("part hologram", 1) in events(chunk({"hologram": 3}))


SERVER = {
    "code": (
        {"executableCode": {"language": "PYTHON", "code": "1+1", "id": "x1"}},
        ("code_execution", "x1", {"language": "PYTHON", "code": "1+1"}),
    ),
    "code without an id": (
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        ("code_execution", "", {"language": "PYTHON", "code": "1"}),
    ),
    "tool": (
        {"toolCall": {"id": "t1", "toolType": "FILE_SEARCH", "args": {"q": "a"}}},
        ("FILE_SEARCH", "t1", {"q": "a"}),
    ),
    "tool without args": ({"toolCall": {"toolType": "MAPS"}}, ("MAPS", "", {})),
}


@pytest.mark.parametrize(("part", "expected"), SERVER.values(), ids=SERVER)
def test_what_the_provider_runs_is_no_call_for_the_client(part: JSON, expected: Any) -> None:
    consumer = read(chunk(part | {"thoughtSignature": "s"}), chunk(text("4"), finish="STOP"))
    segment = consumer.turn.segments[0]
    assert (segment.start.name, segment.start.call_id, segment.input) == expected
    assert segment.start.server and segment.signature == "s"
    assert consumer.turn.calls == ()
    assert (consumer.attempt.state, consumer.turn.facts.stop_reason) == (
        "MESSAGE_COMPLETE",
        "end_turn",
    )


METADATA = {
    "grounding": ({"groundingMetadata": {"webSearchQueries": ["a"]}}, "groundingMetadata"),
    "pages": ({"urlContextMetadata": {"urlMetadata": []}}, "urlContextMetadata"),
    "safety": ({"safetyRatings": [{"category": "C"}]}, "safetyRatings"),
    "logprobs": ({"avgLogprobs": -0.5}, "avgLogprobs"),
}


@pytest.mark.parametrize(("more", "name"), METADATA.values(), ids=METADATA)
def test_what_a_candidate_says_of_its_text_is_attached_to_it(more: JSON, name: str) -> None:
    for last in (
        chunk(finish="STOP", **more),
        chunk(text("", thoughtSignature="s"), finish="STOP", **more),
    ):
        consumer = read(chunk(text("Hi")), last)
        assert consumer.turn.segments[-1].attached == more
    alone = read(chunk(PLACE, finish="STOP", **more))
    kept = [s.attached for s in alone.turn.segments if s.kind == "other"]
    assert kept == ([more] if "Metadata" in name else [])


@pytest.mark.parametrize("name", ["citations", "citationSources"])
def test_citations_add_up(name: str) -> None:
    cited = [{"citationMetadata": {name: [{"uri": uri}]}} for uri in "ab"]
    consumer = read(chunk(text("x"), **cited[0]), chunk(text("y"), finish="STOP", **cited[1]))
    (segment,) = consumer.turn.segments
    assert segment.attached == {"citations": [{"uri": "a"}, {"uri": "b"}]}


# --- Calls --------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [{"room": "Atlas"}, {}, None], ids=["some", "empty", "absent"])
def test_a_whole_call_is_a_proposal(args: JSON | None) -> None:
    consumer = read(chunk(call("book", args), finish="STOP"))
    assert consumer.attempt.state == "VALIDATED_PROPOSAL"
    assert consumer.turn.facts.stop_reason == "tool_use"
    assert [(p.tool, p.input) for p in consumer.proposals] == [("book", args or {})]
    assert rules(consumer) == []


def test_calls_without_an_id_get_one_that_is_the_same_at_every_replay() -> None:
    calls = [call("tide", {"city": city}) for city in ("Oslo", "Rome", "Lima")]
    one = read(chunk(*calls, finish="STOP"))
    many = read(*map(chunk, calls), chunk(finish="STOP"))
    for consumer in (one, many):
        ids = [call.start.call_id for call in consumer.turn.calls]
        assert ids == ["made-up-r-1-1", "made-up-r-1-2", "made-up-r-1-3"]
        assert consumer.attempt.state == "VALIDATED_PROPOSAL"
    nameless = chunk(*calls, finish="STOP") | {"responseId": ""}
    assert read(nameless).turn.calls[0].start.call_id == "made-up-1"


def test_an_id_of_the_vendors_is_kept() -> None:
    assert read(chunk(call("f", {}, id="c9"), finish="STOP")).proposals[0].call_id == "c9"


TWICE = {
    "the same id and args": ([call("f", {"a": 1}, id="c"), call("f", {"a": 1}, id="c")], 1, "note"),
    "the same id, other args": (
        [call("f", {"a": 1}, id="c"), call("f", {"a": 2}, id="c")],
        2,
        "held",
    ),
    "the same id, another name": ([call("f", {}, id="c"), call("g", {}, id="c")], 2, "held"),
    "true is not 1": ([call("f", {"a": 1}, id="c"), call("f", {"a": True}, id="c")], 2, "held"),
    "no id, the same": ([call("f", {"a": 1}), call("f", {"a": 1})], 2, "held"),
    "no id, other args": ([call("f", {"a": 1}), call("f", {"a": 2})], 2, ""),
}


@pytest.mark.parametrize(("calls", "count", "what"), TWICE.values(), ids=TWICE)
def test_a_call_in_two_chunks_is_one_two_or_unclear(
    calls: list[JSON], count: int, what: str
) -> None:
    consumer = read(*map(chunk, calls), chunk(finish="STOP"))
    assert len(consumer.turn.calls) == count
    assert consumer.attempt.state == ("HELD" if what == "held" else "VALIDATED_PROPOSAL")
    expected = {"note": [("call-again", "note")], "held": [("ambiguous", "warning")], "": []}
    assert rules(consumer) == expected[what]


def test_two_equal_calls_in_one_chunk_are_two() -> None:
    consumer = read(chunk(call("roll"), call("roll"), finish="STOP"))
    assert len(consumer.proposals) == 2


MALFORMED = {
    "args in a list": chunk(call("f", [1])),
    "args in words": chunk(call("f", "{}")),
    "a name that is no text": chunk({"functionCall": {"name": 5}}),
    "an id that is no text": chunk(call("f", id=5)),
    "a call that is no object": chunk({"functionCall": "f"}),
    "a text that is no text": chunk(text(5)),
    "a signature that is no text": chunk(text("a", thoughtSignature=5)),
    "a result that is no object": chunk({"codeExecutionResult": "4"}),
    "two kinds in one part": chunk(text("a") | PLACE),
    "a part that is no object": chunk("a"),
    "parts that are no list": {"candidates": [{"content": {"parts": 5}}]},
    "content that is no object": {"candidates": [{"content": "a"}]},
    "candidates that are no list": {"candidates": {"a": 1}, "responseId": "r"},
    "a candidate that is no object": {"candidates": [5]},
    "a negative index": chunk(text("a"), index=-1),
    "an index in words": {"candidates": [{"index": "0"}]},
    "a finish reason in a list": chunk(text("a"), finish=["STOP"]),
    "a finish reason that is true": chunk(text("a"), finish=True),
    "a key twice in a call": b'data: {"candidates":[{"content":{"parts":[{"functionCall":'
    b'{"name":"f","args":{"a":1,"a":2}}}]}}]}\n\n',
    "a key twice beside a colon in disguise": b'data: {"candidates":[{"content":{"parts":'
    b'[{"functionCall":{"name":"f","args":{"a":1,"a":"\\u003a"}}}]}}]}\n\n',
    "a call hidden by a key twice": b'data: {"candidates":[{"content":{"parts":[{"functionCall":'
    b'{"name":"f"}}],"parts":[]}}]}\n\n',
}


@pytest.mark.parametrize("bad", MALFORMED.values(), ids=MALFORMED)
def test_what_breaks_the_grammar_makes_the_attempt_invalid(bad: Any) -> None:
    consumer = read(chunk(text("a")), bad, chunk(finish="STOP"))
    assert ("malformed", "error") in rules(consumer)
    assert consumer.attempt.state == "INVALID"


def test_an_empty_text_beside_a_call_is_only_empty() -> None:
    consumer = read(chunk(text("") | PLACE, finish="STOP"))
    assert [(c.start.name, c.input) for c in consumer.turn.calls] == [("book", {"room": "Atlas"})]


UNCLEAR = {
    "a field of the call that is not known": [chunk(call("f", argz={"a": 1}))],
    "answered in the stream": [chunk(call("f")), chunk({"functionResponse": {"name": "f"}})],
    "answered before it": [chunk({"functionResponse": {"name": "f"}}), chunk(call("f"))],
    "it goes on after its reason": [chunk(call("f"), finish="STOP"), chunk(text("So: 4"))],
    "content after the last reason": [chunk(text("a"), finish="STOP"), chunk(text("b")), {}],
    "an end of no call": [chunk(call())],
    "pieces of no call": [chunk(pieces(piece("$.a", stringValue="x")))],
}


@pytest.mark.parametrize("chunks", UNCLEAR.values(), ids=UNCLEAR)
def test_what_cannot_be_proved_is_held(chunks: list[JSON]) -> None:
    last = [] if chunks[-1] == {} else [chunk(finish="STOP")]
    consumer = read(*(c for c in chunks if c), *last)
    assert (consumer.attempt.state, consumer.turn.complete) == ("HELD", True)
    assert ("ambiguous", "warning") in rules(consumer)


# --- Arguments by path --------------------------------------------------------------------------

A: JSON = {"stringValue": "x"}
B: JSON = {"stringValue": "y"}

ASSEMBLED = {
    "none": ([], {}),
    "a string": ([piece("$.a", **A)], {"a": "x"}),
    "a string in pieces": (
        [piece("$.a", True, **A), piece("$.a", True, **B), piece("$.a", stringValue="")],
        {"a": "xy"},
    ),
    "an empty string": (
        [piece("$.a", True, stringValue=""), piece("$.a", stringValue="")],
        {"a": ""},
    ),
    "two strings at a time": (
        [piece("$.a", True, **A), piece("$.b", True, **A), piece("$.a", **B), piece("$.b", **B)],
        {"a": "xy", "b": "xy"},
    ),
    "numbers": ([piece("$.a", numberValue=0.5), piece("$.b", numberValue=3)], {"a": 0.5, "b": 3}),
    "true": (
        [piece("$.a", boolValue=True), piece("$.b", boolValue=False)],
        {"a": True, "b": False},
    ),
    "null": (
        [piece("$.a", nullValue="NULL_VALUE"), piece("$.b", nullValue=None)],
        {"a": None, "b": None},
    ),
    "nested": ([piece("$.a.b.c", **A), piece("$.a.b.d", **B)], {"a": {"b": {"c": "x", "d": "y"}}}),
    "a list": ([piece("$.a[0]", **A), piece("$.a[1]", **B)], {"a": ["x", "y"]}),
    "objects in a list": (
        [piece("$.a[0].b", **A), piece("$.a[0].c", **B), piece("$.a[1].b", **A)],
        {"a": [{"b": "x", "c": "y"}, {"b": "x"}]},
    ),
    "lists in a list": ([piece("$.a[0][0]", **A), piece("$.a[1][0]", **B)], {"a": [["x"], ["y"]]}),
    "names in quotes": (
        [piece("$['a b']", **A), piece('$["c.d"]', **B), piece("$['it\\'s']", **A)],
        {"a b": "x", "c.d": "y", "it's": "x"},
    ),
    "half a character each": (
        [piece("$.a", True, stringValue="\ud83d"), piece("$.a", stringValue="\ude00")],
        {"a": "\U0001f600"},
    ),
}


def streamed(given: Sequence[JSON], *end: JSON) -> list[JSON]:
    """A call whose pieces come one a chunk."""
    begin = chunk(call("f", willContinue=True, sign="s"))
    return [begin, *(chunk(pieces(each)) for each in given), *end]


@pytest.mark.parametrize(("given", "expected"), ASSEMBLED.values(), ids=ASSEMBLED)
def test_arguments_by_path_become_one_object(given: list[JSON], expected: JSON) -> None:
    for chunks in (
        streamed(given, chunk(call(), finish="STOP")),
        [*streamed(given), chunk(call()), chunk(text(""), finish="STOP")],
        [chunk(call("f", willContinue=True, sign="s"), pieces(*given, ends=True), finish="STOP")],
        [chunk(call("f", partialArgs=given, sign="s"), finish="STOP")],
    ):
        consumer = read(*chunks)
        (segment,) = consumer.turn.segments
        assert (segment.input, segment.signature, segment.status) == (expected, "s", "ready")
        assert consumer.attempt.state == "VALIDATED_PROPOSAL", told(consumer)
        assert rules(consumer) == []


CONFLICTS = {
    "a value twice": [piece("$.a", numberValue=1), piece("$.a", numberValue=1)],
    "two kinds of value": [piece("$.a", True, **A), piece("$.a", numberValue=1)],
    "a string after its end": [piece("$.a", **A), piece("$.a", **B)],
    "a string in a string": [piece("$.a", **A), piece("$.a.b", **A)],
    "a name in a list": [piece("$.a[0]", **A), piece("$.a.b", **A)],
    "an index in an object": [piece("$.a.b", **A), piece("$.a[0]", **A)],
    "a value over an object": [piece("$.a.b", **A), piece("$.a", numberValue=1)],
    "a hole in a list": [piece("$.a[1]", **A)],
    "a huge index": [piece("$.a[999999999]", **A)],
    "a huger index": [piece("$.a[" + "9" * 400 + "]", **A)],
    "a string that never ends": [piece("$.a", True, **A)],
    "an end without its beginning": [piece("$.a", stringValue="")],
    "the root": [piece("$", **A)],
    "no path": [{"stringValue": "x"}],
    "a path that is no text": [{"jsonPath": 5, "stringValue": "x"}],
    "not a path": [piece("a.b", **A)],
    "a wildcard": [piece("$.a[*]", **A)],
    "a bad escape": [piece("$['\\q']", **A)],
    "no value": [piece("$.a")],
    "two values": [piece("$.a", stringValue="x", numberValue=1)],
    "a number that is text": [piece("$.a", numberValue="1")],
    "a number that is true": [piece("$.a", numberValue=True)],
    "a number that continues": [piece("$.a", True, numberValue=1)],
    "a value of a new kind": [piece("$.a", stringValue="x", dateValue="y")],
    "too deep": [piece("$" + ".a" * (MAX_STEPS + 1), **A)],
    "no object": ["x"],
}


@pytest.mark.parametrize("given", CONFLICTS.values(), ids=CONFLICTS)
def test_pieces_that_do_not_fit_are_held_and_never_parse(given: list[Any]) -> None:
    consumer = read(*streamed(given, chunk(call(), finish="STOP")))
    (segment,) = consumer.turn.segments
    assert (consumer.attempt.state, segment.status, segment.input) == ("HELD", "error", None)
    assert ("ambiguous", "warning") in rules(consumer)


def test_a_piece_that_came_twice_in_a_row_is_held_but_kept() -> None:
    again = chunk(pieces(piece("$.a", True, **A)))
    end = chunk(pieces(piece("$.a", stringValue=""), ends=True), finish="STOP")
    consumer = read(chunk(call("f", willContinue=True)), again, again, end)
    assert (consumer.attempt.state, consumer.turn.calls[0].input) == ("HELD", {"a": "xx"})


OPEN = [chunk(call("f", willContinue=True)), chunk(pieces(piece("$.a", **A)))]
BROKEN_OFF = {
    "the answer ends": ([*OPEN, chunk(finish="STOP")], "HELD"),
    "another call begins": ([*OPEN, chunk(call("g"), finish="STOP")], "HELD"),
    "another by pieces": ([*OPEN, chunk(call("f", partialArgs=[]), finish="STOP")], "HELD"),
    "a token limit": ([*OPEN, chunk(finish="MAX_TOKENS")], "HELD"),
    "the stream ends": (OPEN, "INCOMPLETE"),
    "args at its end": ([*OPEN, chunk(call(args={"a": "x"}), finish="STOP")], "HELD"),
    "a piece of another": ([*OPEN, chunk(call(id="c2"), finish="STOP")], "HELD"),
    "a field not known": ([*OPEN, chunk(call(more=1), finish="STOP")], "HELD"),
}


@pytest.mark.parametrize(("chunks", "state"), BROKEN_OFF.values(), ids=BROKEN_OFF)
def test_a_call_that_is_not_known_to_be_whole_is_never_proposed(
    chunks: list[JSON], state: str
) -> None:
    consumer = read(*chunks)
    assert consumer.attempt.state == state
    assert consumer.proposals == ()


def test_a_token_limit_inside_a_call_is_no_ambiguity() -> None:
    consumer = read(*OPEN, chunk(finish="MAX_TOKENS"))
    assert rules(consumer) == [("tool-input", "warning")]
    assert "max_tokens" in consumer.attempt.why
    assert consumer.turn.segments[0].text == '{"a":"x"'


def test_a_call_in_pieces_goes_on_under_its_own_id_and_name() -> None:
    begin = chunk(call("f", id="c1", willContinue=True))
    more = call("f", id="c1", partialArgs=[piece("$.a", **A)], willContinue=True)
    consumer = read(begin, chunk(more), chunk(call(id="c1"), finish="STOP"))
    assert [(p.call_id, p.input) for p in consumer.proposals] == [("c1", {"a": "x"})]
    again = read(
        begin,
        chunk(more),
        chunk(call(id="c1")),
        chunk(more | {"functionCall": {**more["functionCall"], "willContinue": False}}),
        chunk(finish="STOP"),
    )
    assert again.attempt.state == "HELD"


def test_bytes_that_are_no_utf8_inside_a_piece_are_a_forgery() -> None:
    bad = sse(chunk(pieces(piece("$.a", **A)))).replace(b"x", b"\xff")
    consumer = read(chunk(call("f", willContinue=True)), bad, chunk(call(), finish="STOP"))
    assert ("invalid-utf8", "error") in rules(consumer)
    assert consumer.attempt.state == "INVALID"


def test_no_path_makes_room_for_more_than_it_brings() -> None:
    found = Arguments()
    for _ in range(3):
        with pytest.raises(NotJSON, match="element 0 has not come"):
            found.add(piece("$.a[999999999]", **A))
    assert found.text() == '{"a":[]}'
    with pytest.raises(NotJSON, match=f"more than {MAX_VALUES} values"):
        for n in range(MAX_VALUES + 1):
            found.add(piece(f"$.b[{n}]", numberValue=n))


def leaves(value: Any, path: str = "$") -> list[JSON]:
    """A value as the pieces that would bring it."""
    if isinstance(value, dict):
        found = [leaves(v, f"{path}[{json.dumps(k)}]") for k, v in value.items()]
        return [leaf for inner in found for leaf in inner]
    if isinstance(value, list):
        return [leaf for n, v in enumerate(value) for leaf in leaves(v, f"{path}[{n}]")]
    if isinstance(value, str):
        middle = len(value) // 2
        return [
            piece(path, True, stringValue=value[:middle]),
            piece(path, stringValue=value[middle:]),
        ]
    kind = "boolValue" if isinstance(value, bool) else "numberValue"
    return [piece(path, nullValue=None) if value is None else piece(path, **{kind: value})]


boxes = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3),
        st.dictionaries(st.text(max_size=3), inner, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), boxes, max_size=4))
def test_any_object_comes_back_from_its_pieces(value: JSON) -> None:
    found = Arguments()
    for leaf in leaves(value):
        found.add(leaf)
    found.whole()
    assert json.loads(found.text()) == value


def test_a_path_is_read_step_by_step() -> None:
    assert steps("$.a[0]['b c'][\"d\"].e") == ["a", 0, "b c", "d", "e"]


# --- Why it stopped -----------------------------------------------------------------------------

OF_REASON = {
    "end_turn": "MESSAGE_COMPLETE",
    "pause_turn": "INCOMPLETE",
    **dict.fromkeys(("max_tokens", "content_filter", "error", "other"), "HELD"),
}


@pytest.mark.parametrize(("raw", "reason"), [*FINISH.items(), ("BRAND_NEW", "other")])
def test_a_finish_reason_says_what_the_answer_is_worth(raw: str, reason: str) -> None:
    consumer = read(chunk(text("a")), chunk(finish=raw))
    facts = consumer.turn.facts
    assert (facts.stop_reason, facts.raw_stop_reason) == (reason, raw)
    assert consumer.attempt.state == OF_REASON[reason]
    assert consumer.turn.complete == (reason != "pause_turn")


@pytest.mark.parametrize("raw", ["SAFETY", "MALFORMED_FUNCTION_CALL", "MAX_TOKENS"])
def test_a_call_before_another_reason_is_held(raw: str) -> None:
    consumer = read(chunk(PLACE, finish=raw))
    assert (consumer.attempt.state, consumer.turn.facts.stop_reason) == ("HELD", FINISH[raw])


@pytest.mark.parametrize("content", [None, {}, {"role": "model"}, {"parts": None}], ids=str)
def test_content_may_be_absent(content: Any) -> None:
    item = {"content": content, "finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "why"}
    consumer = read({"candidates": [item]})
    assert (consumer.attempt.state, consumer.turn.segments) == ("HELD", ())
    assert consumer.turn.facts.stop_details == {"finishMessage": "why"}


NUMBERS = [(0, "other"), (1, "end_turn"), (2, "max_tokens"), (3, "content_filter"), (99, "other")]


@pytest.mark.parametrize(("number", "reason"), [*NUMBERS, (-1, "other"), (10**40, "other")])
def test_a_finish_reason_may_be_a_number(number: int, reason: str) -> None:
    consumer = read(chunk(text("a"), finish=number))
    assert consumer.turn.facts.stop_reason == reason
    assert rules(consumer) == [("numbered-finish-reason", "note")]


HABITS = {
    "on every chunk": (
        ["STOP", "STOP", "STOP"],
        "end_turn",
        ["after-finish-reason", "finish-reason-again"],
    ),
    "it changes": (
        ["STOP", "RECITATION"],
        "content_filter",
        ["after-finish-reason", "finish-reason-changed"],
    ),
    "none yet": ([None, "", "STOP"], "end_turn", []),
}


@pytest.mark.parametrize(("reasons", "expected", "said"), HABITS.values(), ids=HABITS)
def test_the_last_finish_reason_counts(reasons: list[Any], expected: str, said: list[str]) -> None:
    consumer = read(*(chunk(text("a"), finish=reason) for reason in reasons))
    assert (consumer.turn.facts.stop_reason, consumer.turn.text) == (expected, "a" * len(reasons))
    assert [rule for rule, _ in rules(consumer)] == said
    assert consumer.turn.complete


def test_a_call_after_its_finish_reason_is_still_tool_use() -> None:
    consumer = read(chunk(text("a"), finish="STOP"), chunk(PLACE))
    assert consumer.turn.facts.stop_reason == "tool_use"
    assert consumer.attempt.state == "HELD"
    assert ("stop-reason-label", "warning") not in rules(consumer)


BLOCKED = {"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []}}


@pytest.mark.parametrize(
    "chunks",
    [[BLOCKED], [chunk(text("a")), BLOCKED], [BLOCKED, chunk(text("a"), finish="STOP")]],
    ids=["alone", "after text", "before text"],
)
def test_a_blocked_prompt_is_a_whole_answer_that_is_held(chunks: list[JSON]) -> None:
    consumer = read(*chunks)
    facts = consumer.turn.facts
    assert (facts.stop_reason, facts.raw_stop_reason) == ("content_filter", "SAFETY")
    assert facts.stop_details == BLOCKED["promptFeedback"]
    assert (consumer.turn.complete, consumer.attempt.state) == (True, "HELD")


# --- The end ------------------------------------------------------------------------------------

UNFINISHED = {
    "no reason": ([chunk(text("a"))], "eof", "without a finish reason of candidate 0"),
    "paused": ([chunk(text("a"), finish="CONTINUATION")], "eof", "other than CONTINUATION"),
    "one of two": ([*HI, chunk(text("b"), index=1)], "eof", "a finish reason of candidate 1"),
    "usage alone": ([{"usageMetadata": {"promptTokenCount": 1}}], "eof", "without any candidate"),
    "cut": (HI, "cut", "without a clean end; the content looks closed"),
    "reset": (HI, "reset", "without a clean end"),
    "left over": ([*HI, b"data: {"], "eof", "without a clean end"),
}


@pytest.mark.parametrize(("chunks", "ending", "said"), UNFINISHED.values(), ids=UNFINISHED)
def test_what_has_not_ended_is_incomplete_and_says_what_is_missing(
    chunks: list[Any], ending: str, said: str
) -> None:
    consumer = read(*chunks, ending=ending)
    assert (consumer.turn.complete, consumer.attempt.state) == (False, "INCOMPLETE")
    assert said in told(consumer)


def test_candidate_0_is_judged_and_the_others_carry_their_number() -> None:
    def both(first: str, second: str, finish: str | None = None) -> JSON:
        one, two = chunk(text(first), finish=finish), chunk(text(second), PLACE, index=1)
        two["candidates"][0] |= {"finishReason": finish and "SAFETY"}
        return {"candidates": [*two["candidates"], *one["candidates"]], "responseId": "r-1"}

    consumer = read(both("a", "x"), both("b", "y", "STOP"))
    assert [(s.start.choice, s.id, s.kind) for s in consumer.turn.segments if s.kind == "text"] == [
        (1, "1.0", "text"),
        (0, "0", "text"),
        (1, "1.2", "text"),
    ]
    assert (consumer.turn.text, consumer.turn.facts.stop_reason) == ("ab", "end_turn")
    assert consumer.turn.calls == ()


def test_candidates_without_an_index_are_told_by_their_place() -> None:
    one, two = (
        chunk(text("a"), finish="STOP", index=None),
        chunk(text("b"), finish="STOP", index=None),
    )
    consumer = read({"candidates": [*one["candidates"], *two["candidates"]]})
    assert [(s.text, s.start.choice) for s in consumer.turn.segments] == [("a", 0), ("b", 1)]


def test_there_may_not_be_more_candidates_than_anybody_asks_for() -> None:
    many = [{"index": n, "finishReason": "STOP"} for n in range(MAX_CANDIDATES + 1)]
    assert rules(read({"candidates": many})) == [("too-many-candidates", "error")]


def test_a_second_answer_is_not_read() -> None:
    second = chunk(text("again"), finish="STOP") | {"responseId": "r-2"}
    consumer = read(*HI, second, second)
    assert consumer.turn.text == "Hi there"
    assert rules(consumer)[0] == ("second-answer", "error")


def test_a_response_id_that_changes_is_a_habit() -> None:
    ids = [part | {"responseId": f"r-{n}"} for n, part in enumerate((*HI, chunk(finish="STOP")))]
    consumer = read(*ids)
    assert ("response-id-changed", "note") in rules(consumer)
    assert (consumer.turn.facts.id, consumer.attempt.state) == ("r-0", "MESSAGE_COMPLETE")


def test_the_id_and_the_model_may_come_late() -> None:
    bare = {"candidates": HI[0]["candidates"]}
    assert read(bare, HI[1]).turn.facts.model == "m-1"


# --- Counts, errors, habits ---------------------------------------------------------------------

USAGES = {
    "output is with the thinking": (
        [{"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 5}],
        Tokens(9, 7, 5),
    ),
    "thinking alone": ([{"promptTokenCount": 9, "thoughtsTokenCount": 5}], Tokens(9, 5, 5)),
    "the prompt alone": ([{"promptTokenCount": 9}], Tokens(9, None, None)),
    "the last one wins": (
        [{"candidatesTokenCount": 2, "promptTokenCount": 1}, {"candidatesTokenCount": 4}],
        Tokens(1, 4, None),
    ),
    "what a tool used is apart": (
        [{"promptTokenCount": 9, "toolUsePromptTokenCount": 90}],
        Tokens(9, None, None),
    ),
    "no counts": ([{"promptTokenCount": "9", "candidatesTokenCount": -1}], Tokens()),
    "true is no count": ([{"promptTokenCount": True}], Tokens()),
    "no object": ([5], Tokens()),
}


@pytest.mark.parametrize(("usages", "expected"), USAGES.values(), ids=USAGES)
def test_counts_mean_the_same_as_on_every_wire(usages: list[Any], expected: Tokens) -> None:
    counted = [chunk(text("a")) | {"usageMetadata": usage} for usage in usages]
    facts = read(*counted, chunk(finish="STOP")).turn.facts
    assert facts.tokens == expected
    assert facts.usage == (
        {} if usages == [5] else {key: value for usage in usages for key, value in usage.items()}
    )


BUSY = {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}
ERRORS = {
    "data": sse(BUSY),
    "inside a chunk": sse(chunk(text("b")) | BUSY),
    "last of its keys": sse({"responseId": "r", **BUSY}),
    "in an array": b"data: " + json.dumps([BUSY]).encode() + b"\n\n",
    "behind a chunk in an array": b"data: " + json.dumps([{}, BUSY]).encode() + b"\n\n",
    "named": b"event: error\n" + sse(BUSY),
    "unframed": json.dumps(BUSY, indent=2).encode() + b"\n",
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("before", [[], [HI[0]], list(HI)], ids=["first", "inside", "after"])
def test_an_error_counts_in_any_shape(error: bytes, before: list[JSON]) -> None:
    consumer = read(*before, error)
    assert consumer.attempt.state == "INVALID"
    assert "busy" in told(consumer)


@pytest.mark.parametrize(
    "data",
    [json.dumps([BUSY]), json.dumps([HI[0], BUSY]), json.dumps(BUSY, indent=1), json.dumps(BUSY)],
    ids=["array", "array of both", "body", "line"],
)
def test_an_error_counts_in_any_form(data: str) -> None:
    consumer, _ = consume(data.encode())
    assert (consumer.attempt.state, consumer.reader.wire) == ("INVALID", "gemini")
    assert "503" in told(consumer)


@pytest.mark.parametrize("data", ["[1, 2]", "[]", "[oops", "5"])
def test_data_that_is_no_chunk_and_no_error_is_a_fault(data: str) -> None:
    consumer = read(HI[0], f"data: {data}\n\n".encode(), HI[1])
    assert consumer.attempt.state == "INVALID"


SAID = {
    "an event name": (b"event: message\n" + sse(chunk(text("b"))), ("event-name", "warning")),
    "the marker of another wire": (b"data: [DONE]\n\n", ("done-marker", "note")),
    "an empty part": (sse(chunk({})), ("empty-part", "note")),
    "a part of nulls": (sse(chunk({"text": None, "thought": None})), ("empty-part", "note")),
    "a chunk of something else": (sse({"later": 1}), ("unknown", "note")),
}


@pytest.mark.parametrize(("odd", "said"), SAID.values(), ids=SAID)
def test_a_benign_habit_is_said_and_harms_nothing(odd: bytes, said: tuple[str, str]) -> None:
    consumer = read(HI[0], odd, odd, HI[1])
    assert set(rules(consumer)) == {said}
    assert consumer.attempt.state == "MESSAGE_COMPLETE"


@pytest.mark.parametrize("alive", [{"type": "ping"}, {"type": "keepalive"}], ids=str)
def test_a_keep_alive_is_no_content(alive: JSON) -> None:
    assert KeepAlive() in events(HI[0], alive, HI[1])
    assert rules(read(HI[0], alive, HI[1])) == []


# --- Laws ---------------------------------------------------------------------------------------

part_kinds = st.one_of(
    st.builds(text, any_text),
    st.builds(text, any_text, thought=st.booleans()),
    st.builds(text, any_text, thoughtSignature=st.sampled_from(["c2ln", "", None, 5])),
    st.sampled_from(
        [PLACE, call("f"), call("f", id="c"), call(), call("g", willContinue=True), {}]
    ),
    st.builds(lambda p: pieces(*p), st.sampled_from([each for each, _ in ASSEMBLED.values()])),
    st.builds(lambda p: pieces(*p, ends=True), st.sampled_from(list(CONFLICTS.values()))),
    st.sampled_from([*OTHERS.values(), *(each for each, _ in SERVER.values()), {"later": 1}, 5]),
)
chunks = st.one_of(
    st.builds(
        chunk,
        part_kinds,
        finish=st.sampled_from([None, None, None, "STOP", "MAX_TOKENS", "CONTINUATION", 1]),
        index=st.sampled_from([0, 0, 0, 0, 1, None, -1]),
    ),
    st.builds(chunk, st.builds(text, any_text)),
    st.sampled_from([{"usageMetadata": {"promptTokenCount": 1}}, BLOCKED, BUSY, {}, [BUSY], 5]),
    st.builds(lambda one, n: one | {"responseId": n}, st.just(HI[0]), st.sampled_from(["", "r-2"])),
)
answers = st.lists(chunks, max_size=10)


@settings(max_examples=200)
@given(cut(framed(answers)))
def test_any_split_gives_the_same_events_turn_and_attempt(drawn: tuple[bytes, list[int]]) -> None:
    data, cuts = drawn
    whole = saw(data, wire="gemini")
    assert saw(data, cuts, wire="gemini") == whole
    assert saw(data, range(len(data)), wire="gemini") == whole


@settings(max_examples=200)
@given(answers, st.sampled_from(["eof", "cut"]))
def test_whatever_the_chunks_are_the_segments_keep_their_order(
    given: list[Any], ending: str
) -> None:
    consumer, reads = consume(json.dumps(given).encode(), wire="gemini", ending=ending)
    flat = [event for _, told in reads for event in told]
    started = [event.segment for event in flat if isinstance(event, SegmentStarted)]
    stopped = [event.segment for event in flat if isinstance(event, SegmentStopped)]
    assert len(set(started)) == len(started)
    assert len(set(stopped)) == len(stopped) and set(stopped) <= set(started)
    alive: set[str] = set()
    for event in flat:
        if isinstance(event, SegmentStarted):
            alive.add(event.segment)
        elif isinstance(event, SegmentStopped):
            alive.remove(event.segment)
        elif isinstance(event, TextDelta | ThinkingDelta | InputDelta | SignatureDelta | Attached):
            assert event.segment in alive
    assert not (consumer.reader.completed and alive)
    assert bool(consumer.proposals) == (consumer.attempt.state == "VALIDATED_PROPOSAL")


def both_ways(frames: list[Frame]) -> int:
    """Read by the reader's own choice, and by the general way alone; return how often it chose."""
    fast, general = GeminiReader(), GeminiReader()
    slow, calls, taken = fast.payload, [0], 0

    def counting(payload: JSON, frame: Frame) -> tuple[Event, ...]:
        calls[0] += 1
        return slow(payload, frame)

    fast.payload = counting  # type: ignore[method-assign]
    stated = []
    for each in frames:
        before = calls[0]
        events = fast.read(each)
        stated.append(events)
        if not each.data.lstrip().startswith(b"["):  # an error in an array is not the base's
            assert events == Dialect.read(general, each)
            taken += calls[0] == before and any(isinstance(e, TextDelta) for e in events)
    runs = GeminiReader()
    assert in_runs(runs, frames) == stated
    ended = fast.unfinished(), fast.end()
    assert ended == (general.unfinished(), general.end()) == (runs.unfinished(), runs.end())
    return taken


@settings(max_examples=300)
@given(framed(answers))
def test_the_fast_way_reads_what_the_general_way_reads(data: bytes) -> None:
    both_ways(SSEDecoder().feed(data))
    both_ways([msgspec.structs.replace(frame, event="") for frame in SSEDecoder().feed(data)])


def test_the_fast_way_is_taken_by_the_chunks_of_an_ordinary_answer() -> None:
    usage = {"promptTokenCount": 1, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1}]}
    plain = [chunk(text("a")) | {"usageMetadata": usage} for _ in range(5)]
    assert both_ways(SSEDecoder().feed(sse(*plain, chunk(text("b"), finish="STOP")))) == 4


ODD = '{"candidates":[{"content":{"parts":[%s],"role":"model"},"index":0}],"responseId":"r-1"%s}'
ODDS = [
    ODD % ('{"text":"a"}', ""),
    ODD % ('{"text":"a","text":"b"}', ""),
    ODD % ('{"text":"\\ud83d"}', ""),
    ODD % ('{"text":null}', ""),
    ODD % ('{"text":"a","thought":null}', ""),
    ODD % ('{"text":"a","thought":1}', ""),
    ODD % ('{"text":"a"},{"text":"b"}', ""),
    ODD % ("", ""),
    ODD % ('{"text":""}', ""),
    ODD % ('{"text":"a"}', ',"responseId":"r-2"'),
    ODD % ('{"text":"a"}', ',"responseId":null'),
    ODD % ('{"text":"a"}', ',"modelVersion":"m-2"'),
    ODD % ('{"text":"a"}', ',"error":{"code":1}'),
    ODD % ('{"text":"a"}', ',"error":null'),
    ODD % ('{"text":"a"}', ',"usageMetadata":null'),
    ODD % ('{"text":"a"}', ',"usageMetadata":{"promptTokenCount":1e400}'),
    ODD % ('{"text":"a"}', ',"usageMetadata":{"promptTokenCount":%s}' % ("9" * 40)),
    ODD % ('{"text":"a"}', ',"usageMetadata":{"a":%s}' % ("[" * 198 + "]" * 198)),
    ODD % ('{"text":"a"}', ',"usageMetadata":{"a":%s}' % ("[" * 300 + "]" * 300)),
    (ODD % ('{"text":"a"}', "")).replace('"index":0', '"index":0.0'),
    (ODD % ('{"text":"a"}', "")).replace('"index":0', '"index":-0'),
    (ODD % ('{"text":"a"}', "")).replace('"index":0', '"index":1'),
    (ODD % ('{"text":"a"}', "")).replace('"index":0', '"index":0,"finishReason":"STOP"'),
    (ODD % ('{"text":"a"}', "")).replace('"index":0', '"index":0,"safetyRatings":[{"a":"b"}]'),
    (ODD % ('{"text":"a"}', "")).replace('"index":0', '"index":0,"safetyRatings":null'),
    (ODD % ('{"text":"a"}', "")).replace('"model"', '"user"'),
    (ODD % ('{"text":"a"}', "")).replace('"model"', "null"),
    (ODD % ('{"text":"a"}', "")) + " x",
    " " + (ODD % ('{"text":"a"}', "")) + " ",
]


@pytest.mark.parametrize("odd", ODDS)
def test_the_fast_way_reads_every_odd_chunk_as_the_general_way_does(odd: str) -> None:
    ordinary = [chunk(text("a")), chunk(text("b", thought=True)), chunk(PLACE), *HI]
    plain = [Frame(n, "", json.dumps(p).encode(), n, n + 1) for n, p in enumerate(ordinary)]
    strange = Frame(9, "", odd.encode(), 9, 10)
    for place in range(len(plain) + 1):
        both_ways([*plain[:place], strange, strange, *plain[place:]])


@pytest.mark.parametrize("junk", [b"\xff", b"\xed\xa0\xbd"], ids=repr)
def test_bytes_that_are_no_utf8_are_a_blemish_in_text(junk: bytes) -> None:
    consumer = read(HI[0], sse(chunk(text("x"))).replace(b'"x"', b'"%s"' % junk), HI[1])
    assert rules(consumer) == [("invalid-utf8", "warning")]


#: What the pieces "x", "y" and an end may come to: a middle one that is lost or moved leaves no
#: trace.
POSSIBLE = {"{}", '{"a": "xy"}', '{"a": "x"}', '{"a": "y"}', '{"a": "yx"}'}


def test_a_doubled_chunk_is_held_and_a_lost_or_moved_one_too_unless_it_leaves_no_trace() -> None:
    given = [piece("$.a", True, **A), piece("$.a", True, **B), piece("$.a", stringValue="")]
    whole = streamed(given, chunk(call()), chunk(finish="STOP"))
    places = range(len(whole))
    lost = [[*whole[:n], *whole[n + 1 :]] for n in places]
    moved = [[*whole[:a], whole[b], whole[a], *whole[b + 1 :]] for a, b in pairwise(places)]
    for chunks in (*lost, *moved):
        outcome = judge(Recording.from_bytes(sse(*chunks)))
        assert {json.dumps(each.input) for each in outcome.proposals} <= POSSIBLE
        assert len(outcome.proposals) <= 1
    for n in places[:-1]:
        doubled = judge(Recording.from_bytes(sse(*whole[: n + 1], *whole[n:])))
        assert doubled.state == "HELD", n
