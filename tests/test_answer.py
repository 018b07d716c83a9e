"""Which answer a request gets, and its bytes: values in, values out, no socket."""

from __future__ import annotations

import json

import pytest

from streamlab.errors import UsageError
from streamlab.streams.answer import Answer, Asked, chooser, decide, framed, head, http_error, plan
from streamlab.streams.recording import Chunk, Recording
from tests.loopback import HELLO, frames, recording

TIMED = Recording(
    (Chunk(0.4, b"a"), Chunk(None, b"b"), Chunk(1.0, b""), Chunk(2.0, b"c")), "reset", end_t=4.0
)
HOST = (("host", "localhost:8123"),)
WANT = Asked(1, "POST", "/v1/messages", HOST, "streamlab/one", True)


def times(answer: Answer) -> list[float | None]:
    sent = plan(answer)
    return [*(chunk.t for chunk in sent.chunks), sent.end_t]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        pytest.param({}, [0, 0, 0, 0], id="at once"),
        pytest.param({"speed": 1.0}, [0.4, 0.4, 2.0, 4.0], id="as recorded"),
        pytest.param({"speed": 4.0}, [0.1, 0.1, 0.5, 1.0], id="four times faster"),
    ],
)
def test_a_pace_is_a_time_for_each_chunk_and_for_the_end(how, expected):
    assert times(Answer(TIMED, **how)) == expected


def test_a_fixed_pace_counts_frames_whatever_the_chunks_were():
    broken = recording(HELLO[:200], HELLO[200:] + b"data: half")
    sent = plan(Answer(broken, every=0.5))
    assert [chunk.data for chunk in sent.chunks] == [*frames(HELLO), b"data: half"]
    assert [chunk.t for chunk in sent.chunks] == [0.5 * n for n in range(len(sent.chunks))]


def test_an_empty_chunk_is_not_sent_because_it_would_be_the_end_marker():
    assert framed("chunked", b"") == b"0\r\n\r\n"
    assert [chunk.data for chunk in plan(Answer(TIMED)).chunks] == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("recorded", "named", "served"),
    [
        pytest.param("reset", None, "reset", id="the recording's own"),
        pytest.param("reset", "eof", "eof", id="another one named"),
        pytest.param("cancelled", None, "cut", id="what was left unread is unknown"),
    ],
)
def test_the_ending_is_the_recordings_own_or_the_one_named(recorded, named, served):
    assert plan(Answer(recording(b"a", ending=recorded), ending=named)).ending == served


def test_an_error_after_http_200_is_one_more_frame_at_the_recordings_end():
    sent = plan(Answer(TIMED, speed=2.0, error="overloaded_error"))
    assert sent.chunks[-1].t == 2.0
    name, data = sent.chunks[-1].data.decode().rstrip("\n").split("\ndata: ")
    assert name == "event: error"
    assert json.loads(data)["error"] == {"type": "overloaded_error", "message": "Overloaded"}


@pytest.mark.parametrize(
    ("ending", "length"), [("eof", 3), ("cut", 4), ("reset", 4), ("timeout", 4)]
)
def test_a_length_promises_more_than_comes_where_the_body_is_to_break(ending, length):
    answer = Answer(recording(b"abc"), framing="length", ending=ending)
    assert f"content-length: {length}\r\n" in head(answer, plan(answer), 1).decode()


def test_the_head_is_that_of_an_event_stream_and_may_be_changed():
    answer = Answer(recording(b"abc"), headers=(("retry-after-ms", "1"), ("Cache-Control", "x")))
    lines = head(answer, plan(answer), 12).decode().split("\r\n")
    assert lines == [
        "HTTP/1.1 200 OK",
        "content-type: text/event-stream; charset=utf-8",
        "cache-control: x",
        "request-id: req_streamlab_0012",
        "connection: close",
        "transfer-encoding: chunked",
        "retry-after-ms: 1",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (418, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_an_http_error_has_the_shape_of_the_api(status, kind):
    answer = http_error(status)
    assert answer.status == status
    assert json.loads(answer.recording.data)["error"]["type"] == kind
    assert head(answer, plan(answer), 1).startswith(b"HTTP/1.1 %d " % status)


ONE, TWO = recording(b"one"), recording(b"two")


def served(choose, *models: str) -> list[bytes | int]:
    answers = [choose(Asked(n, model=model)) for n, model in enumerate(models, 1)]
    return [a.recording.data if a.status == 200 else a.status for a in answers]


def test_several_answers_are_served_in_turn_over_and_over():
    choose = chooser([529, ONE, Answer(TWO)], Answer())
    assert served(choose, "", "", "", "") == [529, b"one", b"two", 529]


def test_a_dict_of_answers_is_chosen_from_by_the_model():
    choose = chooser({"one": ONE, "two": TWO}, Answer())
    assert served(choose, "streamlab/two", "one", "three") == [b"two", b"one", 404]
    assert b"one, two" in choose(Asked(1, model="three")).recording.data


def test_a_function_chooses_and_its_error_reaches_the_client():
    assert served(chooser(lambda asked: ONE if asked.number == 1 else 500, Answer()), "", "") == [
        b"one",
        500,
    ]
    answer = decide(WANT, chooser(lambda asked: {}["key"], Answer()))
    assert answer.status == 500
    assert b"KeyError('key')" in answer.recording.data


def test_how_to_answer_holds_for_recordings_but_not_for_an_answer_or_an_error():
    choose = chooser([ONE, Answer(TWO), 500], Answer(framing="close", ending="reset"))
    found = [choose(Asked(n)) for n in (1, 2, 3)]
    assert [answer.framing for answer in found] == ["close", "chunked", "length"]
    assert [answer.ending for answer in found] == ["reset", None, None]


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        pytest.param(WANT, 200, id="a stream"),
        pytest.param(Asked(1, "GET", "/", HOST), 200, id="what this is"),
        pytest.param(Asked(1, "POST", "/v1/messages", HOST, "m", False), 400, id="no stream"),
        pytest.param(Asked(1, "GET", "/v1/messages", HOST), 404, id="method"),
        pytest.param(Asked(1, "POST", "/v1/complete", HOST), 404, id="path"),
        pytest.param(Asked(1, "GET", "/"), 403, id="no host"),
        pytest.param(Asked(1, "GET", "/", (("host", "evil.example"),)), 403, id="rebinding"),
        pytest.param(Asked(1, "GET", "/", (("host", "localhost.evil.example:80"),)), 403, id="dot"),
        pytest.param(Asked(1, "GET", "/", (("host", "127.0.0.1.nip.io"),)), 403, id="nip"),
        pytest.param(Asked(1, "GET", "/", (("host", "[::1]"),)), 200, id="IPv6 alone"),
        pytest.param(Asked(1, "GET", "/", (("host", "[::1]:80"),)), 200, id="IPv6 and port"),
        pytest.param(Asked(1, "GET", "/", (("host", "LOCALHOST"),)), 200, id="capitals"),
    ],
)
def test_a_request_is_answered_only_to_our_own_names_and_paths(asked, status):
    assert decide(asked, chooser(ONE, Answer())).status == status


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Answer(ONE, ending="boom"), id="ending"),
        pytest.param(lambda: Answer(ONE, framing="pigeon"), id="framing"),
        pytest.param(lambda: Answer(ONE, speed=0.0), id="speed 0"),
        pytest.param(lambda: Answer(ONE, every=-1.0), id="every below 0"),
        pytest.param(lambda: Answer(ONE, every=1.0, speed=1.0), id="two paces"),
        pytest.param(lambda: Answer(ONE, status=100), id="status"),
        pytest.param(lambda: Answer(ONE, headers=(("a", "b\r\nc: d"),)), id="header injection"),
        pytest.param(lambda: http_error(200), id="no error"),
        pytest.param(lambda: chooser([], Answer()), id="nothing to answer"),
        pytest.param(lambda: chooser(["text"], Answer()), id="not an answer"),
    ],
)
def test_what_is_no_answer_is_refused_when_it_is_made(make):
    with pytest.raises(UsageError):
        make()
