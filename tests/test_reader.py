"""Forms and wire formats are found by content, and what is no stream is said to be none."""

from __future__ import annotations

import json

import pytest

from streamlab.consumer.consumer import Consumer
from streamlab.errors import UsageError
from streamlab.study.card_streams import GOOD
from streamlab.wire.events import (
    BoundExceeded,
    KeepAlive,
    MessageCompleted,
    Problem,
    ProviderError,
    StreamEnded,
)
from streamlab.wire.forms import decoder_of
from streamlab.wire.jsonl import JSONLinesDecoder
from streamlab.wire.reader import SNIFFED_BYTES, SNIFFED_FRAMES, STRIDE, WIRES, Bounds, Reader
from tests.streams_for_tests import (
    CALL,
    PING,
    STOP,
    TEXT,
    consume,
    frame,
    lines,
    saw,
    stream,
)

BOM = b"\xef\xbb\xbf"


def problems(data: bytes) -> list[tuple[str, str]]:
    return [(p.rule, p.severity) for p in consume(data)[0].turn.facts.problems]


# --- Forms ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, form",
    [
        (stream(TEXT), "stream"),
        (BOM + stream(TEXT), "stream"),
        (b"\r\n\r\n" + stream(TEXT), "stream"),
        (b": hello\n\n" + stream(TEXT), "stream"),
        (b"id: {1}\n" + stream(TEXT), "stream"),
        (lines(TEXT), "lines"),
        (BOM + lines(TEXT), "lines"),
        (BOM + b" \n\n" + lines(TEXT), "lines"),
        (b"\n \t\r\n" + lines(TEXT), "lines"),
        (lines(TEXT).replace(b"\n", b"\r\n"), "lines"),
        (lines(TEXT).replace(b"\n", b"\n\n"), "lines"),
        (lines(TEXT)[:-1], "lines"),
        (b" " * (SNIFFED_BYTES - 1) + lines(TEXT), "lines"),
        (b"\n" * (SNIFFED_BYTES * 2) + stream(TEXT), "stream"),
    ],
    ids=[
        *("stream", "mark", "blank", "comment", "brace", "lines", "mark, lines", "mark, blank"),
        *("blank, lines", "CRLF", "gaps", "no end", "white", "very white"),
    ],
)
def test_the_form_is_told_by_the_first_byte_wherever_the_reads_end(data: bytes, form: str) -> None:
    consumer, _ = consume(data)
    assert consumer.turn.complete
    assert consumer.turn.facts.problems == ()
    assert consumer.reader.frames == len(TEXT)
    for cuts in ([1], [2], [1, 2, 3], range(0, len(data), 1000), range(min(len(data), 3000))):
        assert saw(data, cuts) == saw(data)
    assert (decoder_of(data[:SNIFFED_BYTES]) is JSONLinesDecoder) == (form == "lines")


def test_white_space_without_end_is_taken_for_an_event_stream_wherever_the_reads_end() -> None:
    data = b" " * (SNIFFED_BYTES + 1) + lines(TEXT)
    assert saw(data) == saw(data, range(0, len(data), 700)) == saw(data, [SNIFFED_BYTES])
    assert consume(data)[0].attempt.state == "INVALID"


# --- What is no stream ------------------------------------------------------------------------

NOT_A_STREAM = [
    (b"<!DOCTYPE html>\n<html><body>502 Bad Gateway</body></html>\n", "a web page"),
    (b"\n\n  <html>", "a web page"),
    (b"Internal Server Error", "begins with 'Internal Server Error'"),
    (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "begins with"),
    (b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "begins with"),
    (b"x" * 100_000, "(65536 bytes)"),
    (b"\x89PNG\n" + b"".join(b"%c\x00\xff\n" % n for n in range(11, 256)), "begins with"),
    (b"<html>\n:root { color: red }\n<p>Bad Gateway</p>\nid\n</html>\n", "a web page"),
]


@pytest.mark.parametrize("data, said", NOT_A_STREAM, ids=[str(d[:12]) for d, _ in NOT_A_STREAM])
def test_what_is_no_event_stream_is_invalid_and_quoted(data: bytes, said: str) -> None:
    consumer, _ = consume(data)
    assert problems(data) == [("not-a-stream", "error")]
    assert consumer.attempt.state == "INVALID"
    assert said in consumer.attempt.why
    assert len(consumer.attempt.why) < 300
    assert saw(data) == saw(data, range(0, min(len(data), 200)))


@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n", b": keep-alive\n\n" * 3, b"retry: 5\n\n", b"id: 1\n\nevent: e\n\n", BOM],
    ids=repr,
)
def test_a_stream_without_an_event_is_incomplete_and_says_so(data: bytes) -> None:
    assert problems(data)[-1] == ("empty", "warning")
    assert consume(data)[0].attempt.state == "INCOMPLETE"


@pytest.mark.parametrize(
    "data",
    [frame(PING), frame(PING) * (SNIFFED_FRAMES * 2), b"data:\n\n", lines([PING, PING])],
    ids=["one", "many", "empty data", "lines"],
)
def test_a_stream_of_keep_alives_is_incomplete_and_of_no_known_format(data: bytes) -> None:
    consumer, reads = consume(data)
    assert consumer.attempt.state == "INCOMPLETE"
    assert consumer.reader.wire is None
    assert problems(data) == [("incomplete", "warning")]
    assert [f.number for f, _ in reads if f] == list(range(1, consumer.reader.frames + 1))
    assert all(told == (KeepAlive(),) for f, told in reads if f)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b'{"foo": 1}',
        b'{"foo": 1}\n{"foo": 2}\n',
        b'{\n "foo": 1\n}\n',
        b"[{}]",
        b"[]",
        b"null",
        b"<html>502</html>",
    ],
    ids=["{}", "object", "lines", "over lines", "array", "empty array", "null", "page"],
)
def test_what_is_no_stream_is_invalid_also_where_the_wire_is_given(data: bytes, wire: str) -> None:
    for given in (wire, None):
        consumer = Consumer(wire=given)
        consumer.feed(data)
        consumer.end()
        assert consumer.attempt.state == "INVALID"


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("real", GOOD)
def test_a_stream_in_another_wire_than_the_given_one_is_invalid_and_says_which(
    wire: str, real: str
) -> None:
    for data in (GOOD[real].data, GOOD[real].through("text")):
        consumer = Consumer(wire=wire)
        consumer.feed(data)
        consumer.end("reset")
        said = f"; it looks like {real}" in consumer.attempt.why
        assert said == (wire != real)
        assert (consumer.attempt.state == "INVALID") == said


@pytest.mark.parametrize("wire", WIRES)
def test_an_event_stream_that_begins_with_a_new_event_may_still_be_of_its_wire(wire: str) -> None:
    consumer = Consumer(wire=wire)
    consumer.feed(b'data: {"foo": 1}\n\n')
    consumer.end()
    assert consumer.attempt.state == "INCOMPLETE"


def test_a_stream_in_no_known_format_is_invalid_and_its_first_frame_quoted() -> None:
    data = b'data: {"choices": "unheard of"}\n\n' * 3
    assert problems(data) == [("unknown-wire", "error")]
    assert "unheard of" in consume(data)[0].attempt.why
    many = data * SNIFFED_FRAMES
    assert problems(many) == [("unknown-wire", "error")]
    assert saw(many) == saw(many, range(0, len(many), 10))


MESSAGE = {"role": "assistant", "content": "Hi"}
COMPLETION = {"id": "c-1", "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}]}
PART = {"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}

#: Wire format -> a whole answer in it, as it comes without streaming.
WHOLE = {
    "claude": {"id": "m-1", "type": "message", "content": [{"type": "text", "text": "Hi"}]},
    "openai-chat": COMPLETION,
    "openai-responses": {"id": "r-1", "object": "response", "error": None, "output": []},
}


@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "many lines"])
@pytest.mark.parametrize("wire", WHOLE)
def test_a_whole_answer_instead_of_a_stream_is_said_to_be_one(
    wire: str, indent: int | None
) -> None:
    for end in ("", "\n"):
        data = (json.dumps(WHOLE[wire], indent=indent) + end).encode()
        consumer, _ = consume(data)
        assert problems(data)[0] == ("not-a-stream", "error")
        assert f"a whole answer ({wire})" in consumer.attempt.why
        assert (consumer.attempt.state, consumer.turn.complete) == ("INVALID", False)
        assert saw(data) == saw(data, range(0, len(data), 3))


def test_a_whole_answer_that_looks_like_a_chunk_is_one_where_it_is_no_line() -> None:
    answer = {"candidates": [PART]}
    assert problems(json.dumps(answer).encode()) == []
    assert problems(json.dumps(answer, indent=2).encode()) == [("not-a-stream", "error")]
    assert problems(json.dumps([answer], indent=2).encode()) == []


def test_a_whole_answer_in_an_event_stream_or_among_others_is_an_event() -> None:
    assert problems(frame(COMPLETION, "") + b"data: [DONE]\n\n") == []
    many = lines([{**COMPLETION, "choices": []}, COMPLETION])
    assert ("not-a-stream", "error") not in problems(many)
    unread = frame(WHOLE["claude"], "")
    assert problems(unread) == [("not-a-stream", "error")]


@pytest.mark.parametrize("data", [b'data: [{"error": "m"}]\n\n', b'[{"error": "m"}]'], ids=repr)
def test_an_error_inside_an_array_is_an_error_in_no_known_format_too(data: bytes) -> None:
    assert problems(data)[0] == ("provider-error", "error")


def test_frames_held_until_the_format_is_known_keep_their_order_and_place() -> None:
    data = b"data: one\n\n" + frame(PING) + stream(TEXT)
    consumer, reads = consume(data)
    assert [f.number for f, _ in reads if f] == list(range(1, len(TEXT) + 3))
    assert consumer.reader.wire == "claude"
    assert [p.rule for p in consumer.turn.facts.problems] == ["not-json"]


def test_too_many_frames_that_tell_nothing_end_the_search() -> None:
    data = b'data: {"a": 1}\n\n' * SNIFFED_FRAMES + stream(TEXT)
    assert consume(data)[0].reader.wire is None
    assert consume(data)[0].attempt.state == "INVALID"
    assert consume(data, wire="claude")[0].turn.text == "Hi there"


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"error": {"type": "api_error", "message": "m"}}),
        json.dumps({"type": "error", "error": {"type": "api_error", "message": "m"}}, indent=2),
        json.dumps({"type": "error", "error": {"type": "api_error", "message": "m"}}) + "\n",
    ],
    ids=["a line", "indented", "a whole line"],
)
def test_a_json_error_instead_of_a_stream_is_that_error(body: str) -> None:
    consumer, reads = consume(body.encode())
    assert consumer.attempt.state == "INVALID"
    assert ProviderError("api_error", "m", 1) in reads[0][1]
    assert saw(body.encode()) == saw(body.encode(), range(len(body)))


@pytest.mark.parametrize("body", [b"{}", b"[]", b"[\n{}\n]\n", b'{"a": 1}\nnot json\n'], ids=repr)
def test_json_that_is_no_error_and_no_stream_is_invalid(body: bytes) -> None:
    assert consume(body)[0].attempt.state == "INVALID"
    assert saw(body) == saw(body, range(len(body)))


def test_a_file_that_is_cut_inside_its_first_line_is_incomplete_and_says_so() -> None:
    assert ("unfinished-block", "warning") in problems(b'{"type": "message_st')
    assert consume(b'{"type": "message_st')[0].attempt.state == "INCOMPLETE"


STRAY = b'datb: {"type":"content_block_delta"}\n\n'


def test_a_line_that_may_be_an_event_without_its_name_holds_a_whole_answer() -> None:
    whole = stream(TEXT)
    at = whole.index(b"event: content_block_stop")
    consumer, _ = consume(whole[:at] + STRAY + whole[at:])
    assert consumer.turn.complete
    assert consumer.attempt.state == "HELD"
    assert ("ambiguous", "warning") in problems(whole[:at] + STRAY + whole[at:])
    assert consume(whole[:at] + b"nonsense: 1\n\n" + whole[at:])[0].attempt.state != "HELD"


def test_an_error_between_the_frames_counts_in_an_array_too() -> None:
    whole = stream(TEXT)
    at = whole.index(b"event: content_block_stop")
    error = b'[{"error": {"code": 503, "message": "busy"}}]\n\n'
    assert consume(whole[:at] + error + whole[at:])[0].attempt.state == "INVALID"


# --- One event a line -------------------------------------------------------------------------


def test_a_line_knows_the_bytes_that_it_came_from() -> None:
    decoder = JSONLinesDecoder()
    frames = [*decoder.feed(b' {"a":1}\r\n\n{"b"'), *decoder.feed(b":2}\n3"), *decoder.end()]
    assert [(f.number, f.data, f.start, f.end) for f in frames] == [
        (1, b'{"a":1}', 0, 10),
        (2, b'{"b":2}', 11, 19),
        (3, b"3", 19, 20),
    ]


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_a_line_over_the_bound_ends_the_decoding(size: int) -> None:
    for long, over in ((20, False), (21, True)):
        decoder = JSONLinesDecoder(max_frame=20)
        data = b"{}\n" + b'"' + b"a" * (long - 2) + b'"\n{}\n'
        frames = [f for at in range(0, len(data), size) for f in decoder.feed(data[at : at + size])]
        frames += decoder.end()
        assert (decoder.overrun is not None) == over
        assert [f.data for f in frames] == [b"{}"] + ([] if over else [data[3:-4], b"{}"])


# --- Bounds -----------------------------------------------------------------------------------

ENDLESS = stream(CALL[:3]) + frame(PING) * 400


@pytest.mark.parametrize(
    "bounds, exceeded",
    [
        (Bounds(bytes=1000), ("bytes", 1000, 1001)),
        (Bounds(frames=5), ("frames", 5, 6)),
        (Bounds(frame_bytes=100), ("frame_bytes", 100, 101)),
        (Bounds(frames=0), ("frames", 0, 1)),
        (Bounds(bytes=0), ("bytes", 0, 1)),
    ],
    ids=["bytes", "frames", "frame", "no frame", "no byte"],
)
def test_a_bound_that_is_passed_ends_the_attempt_at_the_same_place_however_the_bytes_come(
    bounds: Bounds, exceeded: tuple[str, int, int]
) -> None:
    consumer, reads = consume(ENDLESS, bounds=bounds)
    bound = BoundExceeded(*exceeded, at=consumer.reader.frames)
    assert [told for f, told in reads if f is None] == [
        (bound,),
        (StreamEnded("cancelled", bound.at),),
    ]
    assert consumer.attempt.state == "INCOMPLETE"
    assert exceeded[0] in consumer.attempt.why
    assert consumer.finished
    assert consumer.reader.bytes <= bounds.bytes
    for cuts in (range(len(ENDLESS)), [999, 1000, 1001], [1000], range(0, len(ENDLESS), 97)):
        assert saw(ENDLESS, cuts, bounds=bounds) == saw(ENDLESS, bounds=bounds)


def test_exactly_the_bound_is_within_it() -> None:
    data = stream(TEXT)
    longest = max(len(frame(payload)) for payload in TEXT)
    consumer, _ = consume(data, bounds=Bounds(longest, len(data), len(TEXT)))
    assert consumer.attempt.state == "MESSAGE_COMPLETE"


def test_a_bound_passed_after_the_marker_holds_a_whole_answer_whose_end_nobody_saw() -> None:
    data = stream(CALL)
    consumer, _ = consume(data + frame(PING) * 9, bounds=Bounds(frames=len(CALL)))
    assert consumer.attempt.state == "HELD"
    assert consumer.turn.complete
    assert consumer.ending == "cancelled"
    assert [p.rule for p in consumer.turn.facts.problems] == ["bound"]


def test_time_is_the_recordings_own_and_one_bound_is_enough() -> None:
    reader = Reader(bounds=Bounds(seconds=10))
    assert reader.over_time(10.0) == []
    assert reader.over_time(10.5) == [(None, (BoundExceeded("seconds", 10, 10.5, 0),))]
    assert reader.over_time(11) == []
    assert reader.feed(stream(TEXT)) == []
    assert reader.end("timeout") == [(None, (StreamEnded("cancelled", 0),))]


def test_a_read_of_any_size_is_decoded_in_strides() -> None:
    data = stream([*TEXT[:3], *TEXT[3:]]) + b": " + b"x" * (2 * STRIDE) + b"\n\n" + frame(STOP)
    assert saw(data) == saw(data, [10, STRIDE, STRIDE + 1])
    hostile = b"data\n\n" * (STRIDE // 3)
    reader = Reader("claude", Bounds(frames=10))
    reads = reader.feed(hostile)
    assert len(reads) == 11
    assert reader.bytes == STRIDE


# --- The contract -----------------------------------------------------------------------------


def test_a_wire_format_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match="'smoke' is none of claude"):
        Reader("smoke")


def test_an_ending_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match="'over' is none of eof, cut, reset"):
        Reader().end("over")


def test_completed_is_the_format_readers_word() -> None:
    reader = Reader()
    assert not reader.completed
    reads = reader.feed(stream(TEXT))
    assert reader.completed
    assert reads[-1][1] == (MessageCompleted(len(TEXT)),)


def test_what_came_before_fields_is_told_with_its_place() -> None:
    data = b"HTTP/1.1 200 OK\r\n" + stream(TEXT)
    told = [e for _, told in consume(data)[1] for e in told if isinstance(e, Problem)]
    assert [(p.rule, "'HTTP/1.1 200 OK'" in p.message) for p in told] == [("unframed", True)]
