"""Every form of file gives the same stream; a wrong file is one clear line; nothing grows or leaks.

The captures are made by hand (`captures.py`); the tools' own are in `test_importers_real.py`.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.analysis.judge import Outcome, judge
from streamlab.consumer.attempt import State
from streamlab.errors import UsageError, WireError
from streamlab.streams.importers import (
    Opened,
    formats,
    inflate,
    opening,
    source,
    streams_from,
    streams_in,
    yaml_values,
)
from streamlab.streams.importers.loose import moment
from streamlab.streams.last_words import ending_said
from streamlab.streams.random_answers import random_answer
from streamlab.streams.recording import Chunk, Recording, RecordingFile, write
from streamlab.streams.synth import story
from tests import captures
from tests.captures import MAKERS, SENT, Answer, answered, har_entry, har_of, tnetstring
from tests.loopback import HELLO, frames

WIRES = ("claude", "openai-chat", "openai-responses", "gemini")

#: What does not keep the bytes: a log has some lines alone, this dump ASCII alone.
LOSSY = {"curl --trace-ascii", "text log", "JSON log", "event log"}

PLAIN = HELLO

Write = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """Write bytes to a file, whose name says nothing."""

    def make(data: bytes) -> Path:
        path = tmp_path / "capture"
        path.write_bytes(data)
        return path

    return make


def opened(path: Path, keep: bool = True) -> Opened:
    """The one stream of a file."""
    (found,) = streams_in(path, keep=keep)
    return found


def same(one: Outcome, other: Outcome) -> bool:
    """Whether two recordings were judged alike in all that is not about time."""
    return (one.wire, one.state, one.complete, one.turn, one.frames) == (
        (other.wire, other.state, other.complete, other.turn, other.frames)
    )


# --- One stream, in every form


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("form", MAKERS)
def test_every_form_of_a_stream_is_judged_like_the_stream(
    form: str, wire: str, written: Write
) -> None:
    recording = story(wire=wire)
    found = opened(written(MAKERS[form](answered(recording))))
    outcome = judge(found.recording)
    assert same(outcome, judge(recording))
    assert outcome.ending == "eof"
    assert found.about.form in {known.name for known in formats.FORMS}


@pytest.mark.parametrize("form", sorted(set(MAKERS) - LOSSY))
@pytest.mark.parametrize("seed", range(8))
def test_what_keeps_the_bytes_keeps_all_of_them(form: str, seed: int, written: Write) -> None:
    _, recording = random_answer(seed)
    found = opened(written(MAKERS[form](answered(recording))))
    assert isinstance(found.recording, Recording)
    assert found.recording.data == recording.data


@pytest.mark.parametrize("packed", ["gzip", "zstd", "gzip in zstd"])
@pytest.mark.parametrize("form", MAKERS)
def test_a_compressed_capture_is_recognised_by_its_bytes(
    form: str, packed: str, written: Write
) -> None:
    data = MAKERS[form](answered(story()))
    for name in reversed(packed.split(" in ")):
        data = captures.ENCODINGS[name](data)
    assert same(judge(opened(written(data)).recording), judge(story()))


@pytest.mark.parametrize("packed", ["plain", "gzip", "zstd"])
@pytest.mark.parametrize("suffix", [".sse", ".jsonl", ".stream.jsonl"])
def test_a_plain_stream_comes_piece_by_piece_also_compressed(
    suffix: str, packed: str, tmp_path: Path
) -> None:
    path = tmp_path / f"x{suffix}"
    write(story(wire="gemini"), path)
    if packed != "plain":
        path.write_bytes(captures.ENCODINGS[packed](path.read_bytes()))
    for found in streams_in(path):
        assert isinstance(found.recording, RecordingFile)
        assert found.about == opening.About()
        outcome = judge(found.recording)
    assert same(outcome, judge(story(wire="gemini")))
    assert outcome.ending == "eof" and not outcome.truncated


@pytest.mark.parametrize("encoding", captures.ENCODINGS)
@pytest.mark.parametrize(
    "form", ["har, base64", "mitmproxy", "vcr, YAML", "betamax", "curl -i", "curl --trace"]
)
def test_a_body_is_decompressed_whatever_the_server_chose(
    form: str, encoding: str, written: Write
) -> None:
    encode = captures.ENCODINGS[encoding]
    named = (("content-encoding", encoding.split(",")[0]),)
    answer = answered(PLAIN, headers=named, encode=encode)
    if form == "curl --trace":  # its chunks are what the server sent
        answer = Answer((Chunk(0.5, encode(PLAIN)),), headers=named)
    assert same(judge(opened(written(MAKERS[form](answer))).recording), judge(recorded(PLAIN)))


def recorded(data: bytes, ending: str = "eof") -> Recording:
    return Recording.from_bytes(data, ending=ending)


@pytest.mark.parametrize("encoding", captures.ENCODINGS)
def test_a_compressed_body_that_stops_short_was_cut_and_gives_what_came(
    encoding: str, written: Write
) -> None:
    whole = captures.ENCODINGS[encoding](story().data)
    named = (("content-encoding", encoding.split(",")[0]),)
    answer = answered(story().data, headers=named, encode=lambda _: whole[:-20])
    recording = opened(written(captures.mitmproxy(answer))).recording
    assert isinstance(recording, Recording)
    assert recording.ending == "cut"
    assert story().data.startswith(recording.data)


def test_a_body_that_looks_decoded_stays_whatever_its_headers_say(written: Write) -> None:
    named = (("content-encoding", "br"), ("transfer-encoding", "chunked"))
    found = opened(written(captures.har(answered(PLAIN, headers=named))))
    assert found.recording == Recording((Chunk(None, PLAIN),), note=found.recording.note)  # type: ignore[union-attr]


# --- Times


TIMED = tuple(Chunk(0.5 + n / 8, block) for n, block in enumerate(frames(HELLO)))


@pytest.mark.parametrize("form", ["curl --trace", "curl --trace-ascii"])
def test_a_dump_of_curl_gives_each_read_its_time(form: str, written: Write) -> None:
    recording = opened(written(MAKERS[form](Answer(TIMED)))).recording
    assert isinstance(recording, Recording)
    assert recording.chunks == TIMED
    assert recording.end_t == TIMED[-1].t


@pytest.mark.parametrize("form", ["text log", "JSON log", "event log"])
def test_a_log_gives_each_line_its_time(form: str, written: Write) -> None:
    recording = opened(written(MAKERS[form](Answer(TIMED)))).recording
    assert isinstance(recording, Recording)
    times = sorted({chunk.t for chunk in recording.chunks if chunk.t is not None})
    assert times == pytest.approx([chunk.t for chunk in TIMED])


def test_a_log_that_says_no_request_counts_from_its_first_line_and_says_so(
    written: Write,
) -> None:
    lines = captures.json_log(Answer(TIMED)).split(b"\n", 1)[1]
    recording = opened(written(lines)).recording
    assert isinstance(recording, Recording)
    assert recording.chunks[0].t == 0
    assert recording.chunks[-1].t == pytest.approx(6 / 8)
    assert "the log says no request" in recording.note


def test_a_time_of_day_goes_on_after_midnight(written: Write) -> None:
    lines = ["23:59:59.5 DEBUG Sending HTTP Request", "23:59:59.9 DEBUG event: message_start"]
    lines += ["00:00:01.0 DEBUG data: " + json.dumps({"type": "message_start", "message": {}})]
    recording = opened(written("\n".join(lines).encode())).recording
    assert isinstance(recording, Recording)
    assert [chunk.t for chunk in recording.chunks] == pytest.approx([0.4, 1.5])


#: What knows only the first and the last byte's moment, and what these are.
@pytest.mark.parametrize(
    "form, first, end",
    [
        ("har", 0.5, 1.5),
        ("mitmproxy", 0.5, 1.5),
        ("curl -v", 0.5, 1.5),
        ("curl -i", None, None),
        ("vcr, YAML", None, None),
    ],
)
def test_what_knows_only_two_moments_gives_them_beside_a_recording_without_times(
    form: str, first: float | None, end: float | None, written: Write
) -> None:
    found = opened(written(MAKERS[form](Answer(TIMED))))
    assert isinstance(found.recording, Recording)
    assert not found.recording.timed
    assert judge(found.recording).metrics is None
    assert (found.about.first_byte_s, found.about.end_s) == (first, end)
    assert ("first byte after 0.500 s" in found.recording.note) == (first is not None)


@pytest.mark.parametrize(
    "form", ["har", "mitmproxy", "vcr of Ruby", "betamax", "JSON log", "text log"]
)
def test_what_knows_the_date_of_the_request_says_it_in_utc(form: str, written: Write) -> None:
    assert opened(written(MAKERS[form](Answer(TIMED)))).about.at == "2026-11-30T12:00:00+00:00"


#: A date, and what it is in seconds since 1970.
@pytest.mark.parametrize(
    "said, seconds",
    [
        ("2026-11-30T12:00:00Z", SENT),
        ("2026-11-30 14:00:00,250+02:00", SENT + 0.25),
        (SENT, SENT),
        (SENT * 1e3, SENT),
        (SENT * 1e6, SENT),
        (int(SENT * 1e9), SENT),
        (str(SENT), SENT),
        ("soon", None),
        (1.5, None),
        (float("nan"), None),
        (None, None),
        (True, None),
    ],
)
def test_a_date_is_read_in_the_units_that_logs_use(said: Any, seconds: float | None) -> None:
    assert moment(said) == (None if seconds is None else pytest.approx(seconds))


# --- A browser's events


def events(dates: list[float]) -> list[dict[str, Any]]:
    """The messages of HELLO as Chrome's panel has them."""
    found = []
    for date, block in zip(dates, frames(HELLO), strict=True):
        name, data = block.decode().strip().split("\ndata: ")
        found.append({"time": date, "eventName": name[7:], "eventId": "", "data": data})
    return found


DATES = [SENT + 0.5 + n / 8 for n in range(7)]


@pytest.mark.parametrize("with_body", [True, False], ids=["with the body", "without"])
def test_the_events_of_a_browser_have_their_own_times(with_body: bool, written: Write) -> None:
    answer = Answer(TIMED)
    content = None if with_body else {"size": 0}
    entry = har_entry(answer, content, _eventSourceMessages=events(DATES))
    recording = opened(written(har_of(entry))).recording
    assert isinstance(recording, Recording)
    assert same(judge(recording), judge(recorded(HELLO)))
    assert [chunk.t for chunk in recording.chunks] == pytest.approx([chunk.t for chunk in TIMED])
    assert recording.end_t == pytest.approx(1.5)


def test_events_by_another_clock_begin_at_the_first_byte(written: Write) -> None:
    dates = [date - SENT + 7777 for date in DATES]
    entry = har_entry(Answer(TIMED), _eventSourceMessages=events(dates))
    recording = opened(written(har_of(entry))).recording
    assert isinstance(recording, Recording)
    assert [chunk.t for chunk in recording.chunks] == pytest.approx([chunk.t for chunk in TIMED])


# --- How it ended


#: What a tool says, and the ending.
@pytest.mark.parametrize(
    "form, failure, ending",
    [
        ("har", "net::ERR_INCOMPLETE_CHUNKED_ENCODING", "cut"),
        ("har", "net::ERR_CONNECTION_RESET", "reset"),
        ("har", "net::ERR_TIMED_OUT", "timeout"),
        ("har", "net::ERR_ABORTED", "cancelled"),
        ("har", "NS_BINDING_ABORTED", "cancelled"),
        ("har", "NS_ERROR_NET_RESET", "reset"),
        ("mitmproxy", "peer closed connection without sending complete message body", "cut"),
        ("mitmproxy", "[Errno 104] Connection reset by peer", "reset"),
        ("mitmproxy", "Client disconnected.", "cancelled"),
        ("mitmproxy", "Connection killed.", "cancelled"),
        ("curl -i", "(18) transfer closed with outstanding read data remaining", "cut"),
        ("curl -i", "(56) Recv failure: Connection reset by peer", "reset"),
        ("curl -i", "(56) Recv failure: Operation timed out", "timeout"),
        ("curl -i", "(28) Operation timed out after 3000 milliseconds", "timeout"),
        ("curl -i", "(92) HTTP/2 stream 1 was not closed cleanly: CANCEL (err 8)", "reset"),
        ("curl with its meter", "(18) transfer closed", "cut"),
        ("curl -v", "transfer closed with 8 bytes remaining to read", "cut"),
        ("curl -v", "Recv failure: Connection reset by peer", "reset"),
        ("curl --trace", "Recv failure: Connection reset by peer", "reset"),
        ("curl --trace", "Operation timed out after 3000 milliseconds", "timeout"),
    ],
)
@pytest.mark.parametrize("after", [len(HELLO), 300, 20], ids=["whole", "in a frame", "at once"])
def test_the_ending_is_what_the_tool_said(
    form: str, failure: str, ending: str, after: int, written: Write
) -> None:
    answer = answered(HELLO[:after], failure=failure)
    recording = opened(written(MAKERS[form](answer))).recording
    assert isinstance(recording, Recording)
    assert recording.ending == ending
    assert recording.data == HELLO[:after]


@pytest.mark.parametrize("said", ["", "anything else"])
def test_words_that_nobody_knows_mean_a_cut(said: str) -> None:
    assert ending_said(said) == "cut"


@pytest.mark.parametrize("after", [len(HELLO), 300], ids=["whole", "in a frame"])
def test_curls_error_after_a_plain_stream_is_its_ending_and_none_of_its_bytes(
    after: int, written: Write
) -> None:
    path = written(HELLO[:after] + b"curl: (18) transfer closed\n")
    for found in streams_in(path):
        assert isinstance(found.recording, RecordingFile)
        assert b"".join(chunk.data for chunk in found.recording) == HELLO[:after]
        assert found.recording.ending == "cut"


def test_a_length_that_was_promised_and_did_not_come_means_a_cut(written: Write) -> None:
    named = (("content-length", str(len(HELLO))),)
    answer = answered(HELLO[:300], headers=named)
    recording = opened(written(captures.curl_i(answer))).recording
    assert isinstance(recording, Recording)
    assert recording.ending == "cut"


def test_a_har_that_keeps_only_the_first_bytes_means_a_cut_and_says_so(written: Write) -> None:
    entry = har_entry(answered(HELLO), {"size": len(HELLO), "text": HELLO[:300].decode()})
    recording = opened(written(har_of(entry))).recording
    assert isinstance(recording, Recording)
    assert recording.ending == "cut"
    assert f"keeps 300 of {len(HELLO)} bytes" in recording.note


def test_chunks_without_their_end_marker_mean_a_cut(written: Write) -> None:
    dump = captures.curl_trace(Answer(TIMED, failure="-"))  # no reason that is known
    recording = opened(written(dump)).recording
    assert isinstance(recording, Recording)
    assert (recording.ending, recording.data) == ("cut", HELLO)


def test_a_dump_that_stops_in_a_line_gives_what_is_there(written: Write) -> None:
    dump = captures.curl_trace(Answer(TIMED))
    recording = opened(written(dump[: len(dump) * 3 // 4])).recording
    assert isinstance(recording, Recording)
    assert recording.ending == "cut"
    assert HELLO.startswith(recording.data) and len(recording.data) > 500


# --- Which exchanges are streams


PAGE = "https://example.com/page"


def entry(data: bytes, kind: str, url: str = captures.URL, status: int = 200) -> dict[str, Any]:
    return har_entry(answered(data, kind=kind, url=url, status=status))


WHOLE = json.dumps({"type": "message", "role": "assistant", "content": []}).encode()
ERROR = json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "x"}})
ARRAY = b'[{"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}]'


@pytest.mark.parametrize(
    "item, is_one",
    [
        (entry(HELLO, "text/event-stream"), True),
        (entry(b"", "text/event-stream"), True),
        (entry(b"data: 1\n\n", "text/event-stream", PAGE), True),
        (entry(HELLO, "text/plain", PAGE), True),
        (entry(b'{"a": 1}\n', "application/x-ndjson", PAGE), True),
        (entry(ARRAY, "application/json", PAGE), True),
        (entry(ERROR.encode(), "application/json", status=529), True),
        (entry(b"<html>busy</html>", "text/html", status=502), True),
        (entry(b"<html>log in</html>", "text/html"), True),
        (entry(ERROR.encode(), "application/json", PAGE, 529), False),
        (entry(b"<html></html>", "text/html", PAGE), False),
        (entry(WHOLE, "application/json"), False),
        (entry(b'{"a": 1}', "application/json"), False),
        (entry(HELLO, "text/event-stream", status=307), False),
        (entry(b"\x89PNG\r\n\x1a\n", "image/png", PAGE), False),
    ],
    ids=[
        "an event stream",
        "an empty one",
        "one that nobody knows",
        "one of a known format",
        "JSON lines",
        "a JSON array of events",
        "an error of a model's path",
        "a page of a gateway",
        "a page instead of a stream",
        "an error of another path",
        "a page",
        "a whole answer",
        "another JSON",
        "a redirect",
        "a picture",
    ],
)
def test_an_exchange_is_a_stream_by_its_type_its_content_or_its_path(
    item: dict[str, Any], is_one: bool, written: Write
) -> None:
    path = written(har_of(item))
    if is_one:
        assert opened(path).about.where == "entry 1"
    else:
        with pytest.raises(WireError, match="a HAR with 1 exchange, and none of them is a stream"):
            opened(path)


def test_the_streams_of_a_capture_come_in_their_order_and_say_where_they_were(
    written: Write,
) -> None:
    path = written(
        har_of(
            entry(b"<html></html>", "text/html", PAGE),
            entry(HELLO, "text/event-stream"),
            entry(ERROR.encode(), "application/json", status=529),
        )
    )
    found = list(streams_in(path))
    assert [each.about.where for each in found] == ["entry 2", "entry 3"]
    assert [each.about.status for each in found] == [200, 529]
    assert found[0].about.request == f"POST {captures.URL}"


def test_two_flows_one_after_another_are_two_streams(written: Write) -> None:
    path = written(captures.mitmproxy(answered(HELLO)) * 2)
    assert [found.about.where for found in streams_in(path)] == ["flow 1", "flow 2"]


def test_a_redirect_and_a_continue_before_the_answer_are_none(written: Write) -> None:
    before = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 302 Found\r\nlocation: /x\r\n\r\n"
    path = written(before + captures.curl_i(answered(HELLO)))
    (found,) = streams_in(path)
    assert isinstance(found.recording, Recording)
    assert found.recording.data == HELLO


def test_a_log_with_two_requests_has_two_streams(written: Write) -> None:
    path = written(captures.text_log(Answer(TIMED)) * 2)
    assert len(list(streams_in(path))) == 2


def test_lines_of_two_streams_in_a_log_are_told_apart_by_their_id(written: Write) -> None:
    lines = captures.event_log(Answer(TIMED)).splitlines()
    mixed = [
        json.dumps({"request_id": name, **json.loads(line)}) for line in lines for name in "ab"
    ]
    found = list(streams_in(written("\n".join(mixed).encode())))
    assert [judge(each.recording).turn.text for each in found] == ["Hello", "Hello"]


def test_the_name_of_an_event_may_be_in_its_wrapper_alone(written: Write) -> None:
    lines = []
    for block in frames(HELLO):
        name, data = block.decode().strip().split("\ndata: ")
        payload = {key: each for key, each in json.loads(data).items() if key != "type"}
        lines.append(json.dumps({"ts": 1.0, "event": name[7:], "data": payload}))
    outcome = judge(opened(written("\n".join(lines).encode() + b"\n")).recording)
    assert outcome.turn.text == "Hello" and outcome.complete


@pytest.mark.parametrize("wire", WIRES)
def test_plain_json_lines_are_no_log(wire: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    data = b"".join(
        line[6:] + b"\n"
        for line in story(wire=wire).data.split(b"\n")
        if line.startswith(b"data: {")
    )
    path.write_bytes(data)
    for found in streams_in(path):
        assert isinstance(found.recording, RecordingFile)


# --- What is not there


def test_an_aborted_fetch_has_no_body_and_the_error_says_what_the_browser_did(
    written: Write,
) -> None:
    item = har_entry(answered(b"", failure="net::ERR_CONNECTION_RESET"), {"size": -1})
    with pytest.raises(WireError, match="entry 1: net::ERR_CONNECTION_RESET, and a browser keeps"):
        opened(written(har_of(item)))


@pytest.mark.parametrize(
    "content, said",
    [
        ({"size": 900}, "its body is not in the HAR; export it with content"),
        ({"size": 900, "text": ""}, "its body is not in the HAR; export it with content"),
        ({"_file": "../../etc/passwd"}, "its body is in another file"),
        ({"text": "!", "encoding": "base64"}, "is said to be base64, and is not"),
    ],
)
def test_a_har_without_the_body_says_what_to_do(
    content: dict[str, Any], said: str, written: Write
) -> None:
    with pytest.raises(WireError, match=said):
        opened(written(har_of(har_entry(answered(HELLO), content))))


def test_a_flow_whose_body_was_not_kept_says_what_to_do(written: Write) -> None:
    flow = captures.flow(answered(HELLO), content=None)
    with pytest.raises(WireError, match=r"flow 1: .*store_streamed_bodies=true"):
        opened(written(tnetstring(flow)))


def test_what_has_no_body_is_told_of_beside_the_streams_that_have(written: Write) -> None:
    lost = captures.flow(answered(HELLO, failure="reset"), content=None)
    found = opened(written(tnetstring(lost) + captures.mitmproxy(answered(HELLO))))
    assert found.about.where == "flow 2"
    (said,) = found.about.missing
    assert said.startswith("flow 1: reset; and mitmproxy keeps no body")


def test_a_body_that_cannot_be_decoded_costs_no_other_stream(written: Write) -> None:
    broken = answered(
        HELLO, headers=(("content-encoding", "gzip"),), encode=lambda _: b"\x1f\x8b\x08\xff\xff"
    )
    path = written(captures.mitmproxy(broken) + captures.mitmproxy(answered(HELLO)))
    found = opened(path)
    assert found.about.where == "flow 2"
    assert "flow 1: its body is unreadable" in found.about.missing[0]


#: What SDKs write at DEBUG, in their own form.
SDK_LOG = """\
[2026-11-30 12:00:00 - openai._base_client:606 - DEBUG] Building HTTP request: method=POST
[2026-11-30 12:00:00 - httpx:1025 - INFO] HTTP Request: POST https://api.example.com/ "HTTP/1.1 200"
"""


@pytest.mark.parametrize(
    "data, said",
    [
        (SDK_LOG.encode(), "SDKs log no body at DEBUG"),
        (b"DEBUG:httpcore.http11:send_request_body.complete\n", "SDKs log no body"),
        (b'{"log": {"version": ', "a HAR that is not JSON"),
        (b'{"log": {"version": "1.2"}}', "a HAR with 0 exchanges"),
        (b'{"interactions": [', "a cassette that is not JSON"),
        (b"interactions:\n- {a\n", "capture:3: not YAML"),
        (b"interactions:\n- &a [*a]\n", "a cassette with 1 exchange"),
        (b"interactions: []\n", "a cassette with 0 exchanges"),
        (captures.mitmproxy(answered(HELLO))[:-40], r"the file stops inside a flow \(byte 0\)"),
        (b"30:4:type;4:http;xx:0:~0:~}" + b" " * 9, "not a mitmproxy flow: no type"),
        (b"9:4:type;~}", "not a mitmproxy flow"),
        (
            b"12:00:00.000000 <= Recv data, 5 bytes (0x5)\n0000: 61 \n== Info: x\n",
            "capture:1: a block of 5 bytes shows 1 of them",
        ),
        (b"== Info: nothing\n", "a trace of curl with 0 exchanges"),
        (b"\x1f\x8b\x08\xff\xff\xff\xff\xff", "the gzip data is broken"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 20, "the zstd data is broken"),
        (
            gzip.compress(captures.har(answered(HELLO)))[:-60],
            "the gzip data stops before its end, so .*a HAR that is not JSON",
        ),
        (gzip.compress(HELLO) + b"garbage", "the gzip data is broken: incorrect header check"),
    ],
)
def test_a_wrong_file_is_one_clear_line_that_names_it(
    data: bytes, said: str, written: Write
) -> None:
    path = written(data)
    with pytest.raises(WireError, match=said) as caught:
        for found in streams_in(path):
            judge(found.recording)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"<!DOCTYPE html>\n<html><head></head></html>\n",
        b"* one\n* two\n",
        b"2026-11-30 12:00:00 INFO started\n",
    ],
    ids=["a web page", "a list", "a log of something else"],
)
def test_text_that_only_looks_like_a_capture_is_judged_as_it_is(
    data: bytes, written: Write
) -> None:
    streams = streams_in(written(data))
    found = next(streams)
    outcome = judge(found.recording)
    assert next(streams, None) is None
    assert (found.about.form, outcome.state, outcome.bytes) == ("", State.INVALID, len(data))


def test_a_file_that_is_not_there_or_a_folder_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(WireError, match="No such file"):
        list(streams_in(tmp_path / "no"))
    with pytest.raises(WireError, match=r"directory|denied"):
        list(streams_in(tmp_path))


def test_a_stream_in_a_gzip_that_stops_short_is_given_and_counts_as_cut(written: Write) -> None:
    data = story().data
    path = written(gzip.compress(data)[:-30])
    for found in streams_in(path):
        outcome = judge(found.recording)
    assert outcome.ending == "cut"
    assert outcome.truncated == f"{path}: the gzip data stops before its end"
    assert 0 < outcome.bytes < len(data)


def test_members_of_a_gzip_and_frames_of_a_zstd_are_one_after_another(written: Write) -> None:
    for encode in (captures.ENCODINGS["gzip"], captures.ENCODINGS["zstd"]):
        for found in streams_in(written(encode(HELLO[:300]) + encode(HELLO[300:]))):
            assert judge(found.recording).complete


# --- Bounds


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_is_stopped_by_a_bound_with_one_line(
    encoding: str, written: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_INFLATED", 3_000_000)
    lines = b'{"log": {"version": "1.2", "x": "' + b" " * 4_000_000
    with pytest.raises(WireError, match=r"more than 3,000,000 bytes come out of [\d,]+ of"):
        opened(written(captures.ENCODINGS[encoding](lines)))


def test_bombs_in_bodies_share_one_bound(written: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MAX_BODY", 3_000_000)
    bomb = answered(HELLO, encode=lambda _: gzip.compress(b" " * 2_000_000))
    path = written(captures.mitmproxy(bomb) * 2)
    found = opened(path)
    assert found.about.where == "flow 1"
    assert "flow 2: its body is unreadable: more than" in found.about.missing[0]


@pytest.mark.parametrize("encoding", captures.ENCODINGS)
def test_no_piece_is_large_however_much_is_in_it(encoding: str) -> None:
    data = captures.ENCODINGS[encoding](b"\0" * 50_000_000)
    decoder = inflate.decoder_for(encoding.split(",")[0])
    sizes = [len(piece) for piece in decoder.feed(data)]
    assert sum(sizes) == 50_000_000
    assert max(sizes) <= (40_000_000 if encoding == "zstd" else inflate.PIECE)
    assert decoder.whole


def test_aliases_of_yaml_are_the_same_value_and_never_many(written: Write) -> None:
    levels = [f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    bomb = "interactions:\n- &a0 [x]\n" + "\n".join(levels)
    with pytest.raises(WireError, match="a cassette with 30 exchanges"):
        opened(written(bomb.encode()))


def test_a_merge_of_yaml_merges_nothing(written: Write) -> None:
    levels = [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 30)]
    text = "interactions:\n- {}\na0: &a0 {k: v}\n" + "\n".join(levels)
    (document,) = yaml_values.values(text.encode(), "x")
    assert len(document["a29"]) == 1


def test_a_tag_of_yaml_builds_no_object() -> None:
    text = b"interactions: !!python/object/apply:os.system ['echo bad']\n"
    (document,) = yaml_values.values(text, "x")
    assert document == {"interactions": ["echo bad"]}


@pytest.mark.parametrize(
    "data",
    [
        b"interactions:\n- " + b"[" * 100_000,
        b'{"log": {"version": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b'{"interactions": [' + b'{"a":' * 100_000,
        b"999999:" + b"999:a;" * 10,
        b"".join(b"%d:" % n for n in range(300_000, 0, -7)) + b"~",
    ],
    ids=["YAML", "HAR", "a cassette in JSON", "lengths that lie", "nested lengths"],
)
def test_depth_is_bounded(data: bytes, written: Write) -> None:
    with pytest.raises(WireError):
        for found in streams_in(written(data)):
            assert isinstance(found.recording, RecordingFile)
            judge(found.recording)
            raise WireError("a plain stream")


def test_a_capture_is_bounded_in_bytes_and_in_exchanges(
    written: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(captures.mitmproxy(answered(HELLO)) * 3)
    monkeypatch.setattr(opening, "MAX_EXCHANGES", 2)
    with pytest.raises(WireError, match="more than 2 exchanges"):
        opened(path)
    monkeypatch.setattr(opening, "MAX_CAPTURE", 2000)
    with pytest.raises(WireError, match="more than 2,000 bytes, which is too much for a capture"):
        opened(path)


# --- Any bytes at all


def judged(data: bytes) -> None:
    """Read all that is in some bytes; only the two errors may come out."""
    try:
        for found in streams_from(io.BytesIO(data), "x"):
            judge(found.recording)
    except (WireError, UsageError) as why:
        assert "\n" not in str(why)


HEADS = [
    b"",
    b'{"log": {"version": "1.2", "entries": [',
    b'{"interactions": [',
    b"interactions:\n",
    b"3:3:abc;",
    b"HTTP/1.1 200 OK\r\n",
    b"12:00:00.000000 <= Recv data, 5 bytes (0x5)\n",
    captures.METER,
    b"2026-11-30 12:00:00 DEBUG data: {",
    b"\x1f\x8b\x08",
    b"\x28\xb5\x2f\xfd",
]


@given(st.sampled_from(HEADS), st.binary(max_size=400))
def test_any_bytes_raise_only_our_errors(head: bytes, tail: bytes) -> None:
    judged(head + tail)


WHOLE_FILES = [make(Answer(TIMED)) for make in MAKERS.values()]


@given(st.sampled_from(WHOLE_FILES), st.data())
def test_any_capture_with_some_bytes_changed_raises_only_our_errors(
    data: bytes, draw: st.DataObject
) -> None:
    changed = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 6))):
        at = draw.draw(st.integers(0, len(changed) - 1))
        size = draw.draw(st.integers(0, 40))
        changed[at : at + size] = draw.draw(st.binary(max_size=40))
        if not changed:
            break
    judged(bytes(changed))


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@st.composite
def changed_json(draw: st.DrawFn, value: Any) -> Any:
    """A JSON value with one of its parts replaced by any other."""
    if isinstance(value, dict) and value and draw(st.integers(0, 4)):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: draw(changed_json(value[key]))}
    if isinstance(value, list) and value and draw(st.integers(0, 4)):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], draw(changed_json(value[at])), *value[at + 1 :]]
    return draw(JSON)


HAR = json.loads(har_of(har_entry(Answer(TIMED), _eventSourceMessages=events(DATES))))
CASSETTE = json.loads(captures.betamax(Answer(TIMED)))


@given(changed_json(HAR) | changed_json(CASSETTE))
def test_any_field_of_another_type_raises_only_our_errors(value: Any) -> None:
    judged(json.dumps(value).encode())


@given(changed_json(captures.flow(Answer(TIMED))))
def test_any_field_of_a_flow_of_another_type_raises_only_our_errors(value: Any) -> None:
    judged(tnetstring(value))


@given(st.binary(max_size=2000), st.sampled_from(sorted(captures.ENCODINGS)), st.data())
def test_what_is_compressed_comes_out_however_it_is_cut(
    data: bytes, encoding: str, draw: st.DataObject
) -> None:
    packed = captures.ENCODINGS[encoding](data)
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(packed)), max_size=5)))
    parts = [packed[a:b] for a, b in zip([0, *cuts], [*cuts, len(packed)], strict=True)]
    decoder = inflate.decoder_for(encoding.split(",")[0])
    assert b"".join(piece for part in parts for piece in decoder.feed(part)) == data
    assert decoder.whole


# --- Secrets


SECRETS = ("alice@example.com", "sk-ant-api03-" + "Zq7" * 30, "AIza" + "Sy9" * 11 + "Qk")

LEAKY = frames(HELLO.replace(b"Hel", f"Hel {' '.join(SECRETS)} ".encode()))


@pytest.mark.parametrize("form", sorted(MAKERS))
def test_a_capture_is_masked_on_the_way_in_and_says_what_of(form: str, written: Write) -> None:
    url = f"{captures.URL}?key={SECRETS[2]}"
    chunks = tuple(Chunk(0.5 + n / 8, block) for n, block in enumerate(LEAKY))
    path = written(MAKERS[form](Answer(chunks, url=url)))
    found = opened(path, keep=False)
    assert isinstance(found.recording, Recording)
    shown = repr(found) + found.recording.data.decode()
    assert not [secret for secret in (*SECRETS, "planted") if secret in shown]
    assert {"e-mail address"} <= {kind for kind, _ in found.about.masked}
    kept = opened(path, keep=True)
    assert isinstance(kept.recording, Recording)
    assert SECRETS[0] in kept.recording.data.decode()
    assert kept.about.masked == ()


def test_a_plain_stream_is_given_as_it_is(written: Write) -> None:
    for found in streams_in(written(b"".join(LEAKY)), keep=False):
        assert isinstance(found.recording, RecordingFile)
        assert b"".join(chunk.data for chunk in found.recording) == b"".join(LEAKY)


def test_of_the_headers_only_what_a_doctor_asks_for_is_kept(written: Write) -> None:
    named = (("via", "1.1 nginx"), ("set-cookie", "planted"), ("x-request-id", "planted"))
    found = opened(written(captures.har(answered(HELLO, headers=named))))
    assert isinstance(found.recording, Recording)
    assert found.recording.note.startswith("HTTP 200, text/event-stream, via 1.1 nginx")
    assert "planted" not in repr(found)


# --- Others read from an open file


def test_a_member_of_an_archive_is_read_like_a_file() -> None:
    data = io.BytesIO(captures.har(answered(HELLO)))
    (found,) = streams_from(data, "a.zip/b")
    assert judge(found.recording).complete
    assert data.closed
