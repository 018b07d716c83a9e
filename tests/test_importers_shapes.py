"""The shapes that tools write around a stream: each is read rightly, and none is taken for another.

A shape is what a version, an option or a container adds. The captures are written by hand here, in
the words of the tools; the streams in them are `loopback.HELLO`.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from streamlab.analysis.judge import judge
from streamlab.consumer.attempt import State
from streamlab.errors import WireError
from streamlab.streams.importers import Opened, loose, streams_from
from streamlab.streams.recording import Recording, RecordingFile
from tests import captures
from tests.captures import SENT, URL, answered, har_entry, interaction
from tests.loopback import HELLO, START, STOP, sse, text

TEXT = HELLO.decode()
LINES = [line for line in TEXT.split("\n") if line]
EVENTS = [line.removeprefix("data: ") for line in LINES if line.startswith("data: ")]
ENTRY = har_entry(answered(HELLO))
INTERACTION = interaction(answered(HELLO), {"string": TEXT})


def opened(data: bytes | str) -> list[Opened]:
    """The streams of a file, as values."""
    file = io.BytesIO(data if isinstance(data, bytes) else data.encode())
    found = []
    for recording, about in streams_from(file, "capture", keep=True):
        if isinstance(recording, RecordingFile):
            recording = Recording(tuple(recording), recording.ending)
        found.append(Opened(recording, about))
    return found


def is_hello(recording: Recording | RecordingFile) -> bool:
    """Whether a recording is judged like the stream that all the captures hold."""
    outcome, known = judge(recording), judge(Recording.from_bytes(HELLO))
    return (outcome.state, outcome.turn.segments) == (known.state, known.turn.segments)


# --- HAR and cassettes


def har(log: dict[str, Any], **before: Any) -> str:
    return json.dumps({**before, "log": {"version": "1.2", "entries": [ENTRY], **log}})


def in_base64(body: bytes, encode: Callable[[bytes], bytes]) -> str:
    said = {"size": len(HELLO), "encoding": "base64", "text": encode(body).decode().rstrip("=")}
    return har({"entries": [har_entry(answered(HELLO), said)]})


def headers_as(kind: str) -> str:
    pairs = [["content-type", "text/event-stream"]]
    shapes = {"object": dict(pairs), "pairs": pairs}  # type: ignore[arg-type]
    return har({"entries": [{**ENTRY, "response": {**ENTRY["response"], "headers": shapes[kind]}}]})


GO = {
    "version": 2,
    "interactions": [
        {
            "id": 0,
            "request": {"method": "POST", "url": URL, "headers": {}},
            "response": {"headers": {}, "body": TEXT, "status": "200 OK", "code": 200},
        }
    ],
}

FORMS = [
    pytest.param(har({}, **{"$schema": "x"}), id="HAR, another key first"),
    pytest.param(har({}, _meta={"a": 1}, n=[1]), id="HAR, an object and a list first"),
    pytest.param("\ufeff" + har({"comment": "exported @ 1"}), id="HAR with a BOM"),
    pytest.param(in_base64(HELLO, base64.urlsafe_b64encode), id="HAR, base64 for URLs, unpadded"),
    pytest.param(in_base64(gzip.compress(HELLO), base64.b64encode), id="HAR, gzip, size decoded"),
    pytest.param(headers_as("object"), id="HAR, headers as an object"),
    pytest.param(headers_as("pairs"), id="HAR, headers as pairs"),
    pytest.param(har({}).encode("utf-16"), id="HAR in UTF-16"),
    pytest.param(yaml.dump(GO), id="go-vcr"),
    pytest.param(json.dumps({"note": "x", "interactions": [INTERACTION]}), id="vcr, JSON, a key"),
    pytest.param(yaml.dump({"a": 1, "interactions": [INTERACTION]}), id="vcr, YAML, a key first"),
    pytest.param("# mine\n---\n" + yaml.dump({"interactions": [INTERACTION]}), id="vcr, a comment"),
]


@pytest.mark.parametrize("data", FORMS)
def test_a_capture_is_read_in_any_of_its_shapes(data: bytes | str) -> None:
    ((recording, about),) = opened(data)
    assert isinstance(recording, Recording)
    assert (recording.data, recording.ending, about.status) == (HELLO, "eof", 200)


def test_headers_may_be_an_object_or_pairs_or_names_and_values() -> None:
    known = (("a", "1"), ("a", "2"))
    for shape in (
        {"A": ["1", "2"]},
        [["A", "1"], ["a", "2"]],
        [{"name": "a", "value": "1"}, {"name": "A", "value": "2"}],
    ):
        assert loose.header_pairs(shape) == known


def test_json_of_more_values_than_fit_is_refused_before_it_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loose, "MAX_NESTED", 10)
    with pytest.raises(WireError, match="a HAR of more values than are read"):
        opened(har({}))


# --- Text in UTF-16, as PowerShell redirects it


@pytest.mark.parametrize("coded", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("data", [TEXT, "\n".join(EVENTS)], ids=["event stream", "JSON lines"])
def test_text_in_utf_16_is_read(coded: str, data: str) -> None:
    ((recording, _),) = opened(("\ufeff" + data).replace("\n", "\r\n").encode(coded))
    assert is_hello(recording)


def test_a_file_that_is_compressed_again_and_again_is_one_clear_line() -> None:
    data = HELLO
    for _ in range(4):
        data = gzip.compress(data)
    with pytest.raises(WireError, match="capture: it is compressed more than 3 times"):
        opened(data)


# --- curl

SAID = """\
* Connected to x (1.2.3.4) port 443
* [HTTP/2] [1] OPENED stream for https://x/v1/messages
> POST /v1/messages HTTP/2
> Host: x
>\x20
< HTTP/2 200\x20
< content-type: text/event-stream
<\x20
"""
LAST = "* Connection #0 to host x left intact\n"
HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
ASKED = 'POST /v1/messages HTTP/1.1\nHost: x\n\n{"stream": true}\n\n\n'


def with_ids(said: str, timed: bool) -> str:
    """What `--trace-ids` adds, and `-vv` with the times."""
    clock = "12:00:00.000001 " if timed else ""
    return "".join(f"{clock}[0-x] {line}\n" for line in said.splitlines())


CURL = [
    pytest.param(with_ids(SAID, True) + TEXT + with_ids(LAST, True), id="-vv"),
    pytest.param(with_ids(SAID, False) + TEXT + with_ids(LAST, False), id="-v --trace-ids"),
    pytest.param(
        with_ids(SAID, True) + TEXT[:50] + with_ids(LAST, True) + TEXT[50:], id="-vv amid a line"
    ),
    pytest.param(SAID + TEXT[:50] + LAST + TEXT[50:], id="-v, its words amid a line"),
    pytest.param(
        f"{SAID}{{ [9 bytes data]\n{TEXT[:50]}{{ [99 bytes data]\n{TEXT[50:]}{LAST}",
        id="-v, the mark of data amid a line",
    ),
    pytest.param("HTTP/1.1 200 Connection established\r\n\r\n" + HEAD + TEXT, id="-i by a proxy"),
    pytest.param("HTTP/2 103 \r\nlink: </a>\r\n\r\n" + HEAD + TEXT, id="-i with early hints"),
    pytest.param("HTTP/1.1 307 x\r\n\r\nmoved" + HEAD + TEXT, id="-i, redirected, no line end"),
    pytest.param(HEAD.replace("\r\n", "\n") + TEXT, id="HTTPie"),
    pytest.param(ASKED + HEAD.replace("\r\n", "\n") + TEXT, id="HTTPie -v"),
]


@pytest.mark.parametrize("data", CURL)
def test_an_output_of_curl_is_read_with_any_of_its_options(data: str) -> None:
    ((recording, about),) = opened(data)
    assert about.form == "curl" and about.status == 200
    assert is_hello(recording)


def test_two_answers_are_two_also_where_the_first_has_no_line_end() -> None:
    error = '{"type": "error", "error": {"type": "rate_limit_error", "message": "no"}}'
    first, second = opened(
        f"HTTP/1.1 429 x\r\ncontent-type: application/json\r\n\r\n{error}" + HEAD + TEXT
    )
    assert (first.about.status, second.about.status) == (429, 200)
    assert isinstance(first.recording, Recording) and first.recording.data == error.encode()
    assert is_hello(second.recording)


@pytest.mark.parametrize("form", ["curl --trace", "curl --trace-ascii"])
@pytest.mark.parametrize("timed", [True, False], ids=["times", "no times"])
def test_a_dump_with_ids_is_read_like_one_without(form: str, timed: bool) -> None:
    dump = captures.MAKERS[form](answered(HELLO)).decode()
    data = re.sub(
        r"^(\d\d:\d\d:\d\d\.\d{6} )", r"\1[0-0] " if timed else "[0-0] ", dump, flags=re.M
    )
    ((recording, _),) = opened(data)
    assert is_hello(recording) and recording.timed == timed


# --- Logs


def clock(number: int) -> str:
    return f"2026-11-30T12:00:{number / 10:06.3f}"


#: What an application or a container puts around a line of a stream.
TEXT_LOGS: dict[str, Callable[[int, str], str]] = {
    "logging": lambda n, s: f"{clock(n)[:19].replace('T', ' ')},123 - app - DEBUG - {s}",
    "logging without a time": lambda n, s: f"DEBUG:app:{s}",
    "loguru": lambda n, s: f"{clock(n).replace('T', ' ')} | DEBUG    | app:stream:12 - {s}",
    "structlog": lambda n, s: f"{clock(n)}Z [debug    ] {s:<30} [app.llm] request_id=abc n={n}",
    "structlog with a key": lambda n, s: f"{clock(n)}Z [debug    ] sse line      line={s!r}",
    "colours": lambda n, s: f"\x1b[2m{clock(n)}Z\x1b[0m [\x1b[32mdebug\x1b[0m] {s}",
    "logfmt": lambda n, s: f"ts={clock(n)}Z level=debug msg={json.dumps(s)} n=1",
    "slog": lambda n, s: f'time="{clock(n)}Z" level=debug msg={json.dumps(s)}',
    "zap": lambda n, s: f"{clock(n)}Z\tDEBUG\tapp/x.go:1\t{s}",
    "Go": lambda n, s: f"2026/11/30 12:00:{n:02d} {s}",
    "glog": lambda n, s: f"I1130 12:00:{n:02d}.123456 1 x.go:1] {s}",
    "log4j": lambda n, s: f"12:00:{n:02d}.123 [main] DEBUG okhttp - {s}",
    "kubelet": lambda n, s: f"{clock(n)}123456Z stdout F {s}",
    "kubectl": lambda n, s: f"[pod/web-0/app] {clock(n)}123456Z {s}",
    "compose": lambda n, s: f"web-1  | {s}",
    "compose with times": lambda n, s: f"web-1  | {clock(n)}123456Z {s}",
    "journald": lambda n, s: f"Nov 30 12:00:{n:02d} host app[123]: {s}",
    "ts": lambda n, s: f"{SENT + n:.6f} {s}",
    "CloudWatch": lambda n, s: f"{clock(n)}000+00:00 app/web/abc123 {s}",
    "bytes in Python's words": lambda n, s: f"{clock(n)}Z DEBUG got {(s + chr(10)).encode()!r}",
    "JSON in a container's line": (
        lambda n, s: f"{clock(n)}Z stdout F " + json.dumps({"ts": SENT + n, "msg": s})
    ),
}

#: The same as JSON.
JSON_LOGS: dict[str, Callable[[int, str], Any]] = {
    "pino": lambda n, s: {"level": 20, "time": (SENT + n) * 1000, "pid": 1, "msg": s},
    "bunyan": lambda n, s: {"name": "app", "msg": s, "time": clock(n) + "Z", "v": 0},
    "zap": lambda n, s: {"level": "debug", "ts": SENT + n, "caller": "x", "msg": s},
    "Docker": lambda n, s: {"log": s + "\n", "stream": "stdout", "time": clock(n) + "123Z"},
    "Fluent Bit": lambda n, s: {"log": s, "stream": "stdout", "time": clock(n) + "123Z"},
    "Docker of JSON": (
        lambda n, s: {"log": json.dumps({"ts": SENT + n, "msg": s}) + "\n", "time": clock(n) + "Z"}
    ),
    "journald": lambda n, s: {"__REALTIME_TIMESTAMP": f"{SENT + n:.0f}000000", "MESSAGE": s},
    "Google": lambda n, s: {"insertId": "x", "textPayload": s, "timestamp": clock(n) + "Z"},
    "loguru": lambda n, s: {"text": f"{clock(n)} | DEBUG | a:b:1 - {s}\n", "record": {}, "time": 0},
    "chunk": lambda n, s: {"timestamp": clock(n) + "Z", "chunk": s + "\n"},
}


@pytest.mark.parametrize("named", TEXT_LOGS)
def test_a_line_of_a_log_is_read_whatever_stands_around_the_streams(named: str) -> None:
    around = TEXT_LOGS[named]
    ((recording, about),) = opened("\n".join(around(n, line) for n, line in enumerate(LINES)))
    assert about.form == "log" and is_hello(recording)
    assert recording.timed == (named not in ("compose", "logging without a time"))


@pytest.mark.parametrize("named", JSON_LOGS)
def test_a_log_in_json_is_read_in_the_words_of_each_library(named: str) -> None:
    around = JSON_LOGS[named]
    lines = "\n".join(json.dumps(around(n, line)) for n, line in enumerate(LINES))
    ((recording, about),) = opened(lines)
    assert about.form == "log" and is_hello(recording) and recording.timed


def wrapped(n: int, line: str) -> dict[str, Any]:
    return {"timestamp": clock(n) + "Z", "message": line}


EXPORTS = {
    "CloudWatch": {"events": [wrapped(n, line) for n, line in enumerate(LINES)]},
    "Datadog": {"data": [{"id": n, "attributes": wrapped(n, s)} for n, s in enumerate(LINES)]},
    "Google": [{"textPayload": s, "timestamp": clock(n) + "Z"} for n, s in enumerate(LINES)],
}


@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "indented"])
@pytest.mark.parametrize("named", EXPORTS)
def test_the_export_of_a_log_service_is_a_log(named: str, indent: int | None) -> None:
    ((recording, about),) = opened(json.dumps(EXPORTS[named], indent=indent))
    assert about.form == "log" and is_hello(recording) and recording.timed


@pytest.mark.parametrize("before", ["server listens on 3000", "Starting…", ""])
def test_what_an_application_says_before_and_between_is_no_matter(before: str) -> None:
    said = [{"time": SENT * 1000, "msg": before}, {"time": SENT * 1000, "data": {"user": 1}}]
    lines = [{"time": (SENT + n) * 1000, "msg": line} for n, line in enumerate(LINES)]
    ((in_json, _),) = opened("\n".join(json.dumps(line) for line in [*said, *lines, *said]))
    ((in_text, _),) = opened(f"{before}\n" + "\n".join(f"{clock(0)}Z {line}" for line in LINES))
    assert is_hello(in_json) and is_hello(in_text)


def test_an_object_is_an_event_only_where_events_stood_before() -> None:
    events = [{"time": SENT, "event": json.loads(event)} for event in EVENTS]
    events.insert(2, {"time": SENT, "data": {"user": 1}})
    ((recording, _),) = opened("\n".join(json.dumps(event) for event in events))
    assert is_hello(recording)


def pieces(line: str, size: int) -> list[str]:
    return [line[at : at + size] for at in range(0, len(line), size)]


def test_a_line_that_a_container_cut_is_one_line_again() -> None:
    long = [*LINES[:2], f'data: {{"type": "ping", "pad": "{"x" * 40_000}"}}', *LINES[2:]]
    kubelet, docker = "", ""
    for line in long:
        *parts, last = pieces(line, 1000)
        kubelet += "".join(f"{clock(0)}Z stdout P {part}\n" for part in parts)
        kubelet += f"{clock(0)}Z stdout F {last}\n"
        *parts, last = pieces(line, 16_384)
        for part in [*parts, last + "\n"]:
            docker += (
                json.dumps({"log": part, "time": clock(0) + "Z"}, separators=(",", ":")) + "\n"
            )
    for data in (kubelet, docker):
        ((recording, _),) = opened(data)
        assert isinstance(recording, Recording)
        assert recording.data.split() == "\n".join(long).encode().split()
        assert judge(recording).state is State.MESSAGE_COMPLETE


@pytest.mark.parametrize("size", [7, 37, 500])
def test_reads_that_were_cut_anywhere_are_put_together(size: int) -> None:
    reads = [{"ts": SENT + n, "chunk": part} for n, part in enumerate(pieces(TEXT, size))]
    ((recording, _),) = opened("\n".join(json.dumps(read) for read in reads))
    assert isinstance(recording, Recording)
    assert recording.data == HELLO and len(recording.chunks) == len(reads)


def test_whole_frames_among_other_messages_are_a_stream_without_those() -> None:
    frames = [frame + "\n\n" for frame in TEXT.split("\n\n") if frame]
    said = [each for frame in frames for each in (frame, "done:\n\nall")]
    ((recording, _),) = opened("\n".join(json.dumps({"ts": SENT, "msg": each}) for each in said))
    assert isinstance(recording, Recording) and recording.data == HELLO


def test_the_events_of_an_agents_own_stream_are_a_stream() -> None:
    lines = [{"type": "stream_event", "event": json.loads(event)} for event in EVENTS]
    ((recording, _),) = opened("\n".join(json.dumps(line) for line in lines))
    assert is_hello(recording)


@pytest.mark.parametrize(
    "line",
    ["INFO:httpx:HTTP Request: POST https://x/v1 HTTP/1.1", f"{clock(0)} - openai - DEBUG - asked"],
)
def test_a_stream_after_lines_of_a_log_is_the_stream(line: str) -> None:
    ((recording, about),) = opened(f"{line}\n{TEXT}")
    assert about.form == "" and is_hello(recording)


def test_each_answer_that_a_client_tells_of_is_a_stream() -> None:
    lines = [
        f"{clock(0)}Z INFO httpx HTTP Request: POST https://x/v1",
        *(f"DEBUG: {s}" for s in LINES),
    ]
    assert [is_hello(each.recording) for each in opened("\n".join(lines * 2))] == [True, True]


# --- What is a plain stream, whatever it says

INNER = [json.dumps({"log": {"version": "1.2", "entries": [ENTRY]}}), "\n\nHTTP/1.1 200 OK\r\n\r\n"]
INNER += ["* a\n> GET / HTTP/1.1\n< HTTP/1.1 200 OK\n", f"{clock(0)} DEBUG data: {{}}\n"]
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}

PLAIN = [
    pytest.param(START + text(0, *INNER) + sse(END) + STOP, id="captures in its text"),
    pytest.param(b": * hello\n: > POST / HTTP/1.1\n\n" + HELLO, id="curl's words in comments"),
    pytest.param(b"interactions:\n\n" + HELLO, id="a cassette's key as a field"),
    pytest.param(b"version: 1\n" + HELLO, id="another key of it"),
    *(
        pytest.param(
            "\n".join(json.dumps({key: value, **json.loads(event)}) for event in EVENTS).encode(),
            id=f"JSON lines with {key}",
        )
        for key, value in {
            "timestamp": SENT,
            "log": {"version": "1.2", "entries": []},
            "entries": [{"timestamp": SENT}],
            "interactions": [],
            "events": [{"timestamp": SENT, "message": "data: {}"}],
        }.items()
    ),
    pytest.param(
        json.dumps([{"timestamp": SENT, **json.loads(event)} for event in EVENTS]).encode(),
        id="an array with times",
    ),
]


@pytest.mark.parametrize("data", PLAIN)
def test_a_plain_stream_is_never_taken_for_a_capture(data: bytes) -> None:
    ((recording, about),) = opened(data)
    assert about.form == ""
    assert isinstance(recording, Recording) and recording.data == data
    assert judge(recording).state is State.MESSAGE_COMPLETE


def test_a_table_with_long_numbers_is_no_log_of_an_sdk() -> None:
    line = f"https://github.com/x/openai\tcommit\t{'0123456789' * 4}a1234567890b\n"
    ((_, about),) = opened("name\tcommit\n" + line * 3)
    assert about.form == ""
