"""An EventSource's reconnect: nothing lost or doubled from a log, two answers glued from a POST."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab import faults, judge
from streamlab.consumer.attempt import State
from streamlab.errors import UsageError, WireError
from streamlab.streams.server import FaultServer
from streamlab.study import reconnect
from streamlab.study.histories import advice, advice_anew
from streamlab.study.questions import question
from streamlab.study.reconnect import EventLog, Listened, listen

NEWS = ("opened", "labelled", "reviewed", "closed", "archived")
BROKEN = faults.disconnect(advice(), after=5)
POST = {
    "model": "any",
    "max_tokens": 500,
    "stream": True,
    "messages": [{"role": "user", "content": "May W-7 be deleted?"}],
}


def texts(listened: Listened) -> list[str]:
    return [frame.text for frame in listened.frames]


def no_wait(seconds: float) -> None:
    """Wait for nothing."""


# --- A log that can resume ------------------------------------------------------------------------


def test_a_log_is_resumed_with_nothing_lost_or_doubled() -> None:
    with EventLog(NEWS, cuts=[3]) as log:
        listened = listen(log.url)
    assert texts(listened) == [*NEWS]
    assert [frame.id for frame in listened.frames] == ["1", "2", "3", "4", "5"]
    assert [*map(str, listened.connections)] == [
        "GET /events: 200, 3 events, cut",
        "GET /events, Last-Event-ID: 3: 200, 2 events, eof",
        "GET /events, Last-Event-ID: 5: 204, 0 events, closed",
    ]


@given(st.lists(st.integers(0, 6), max_size=4), st.integers(0, 6))
def test_wherever_a_log_breaks_every_event_comes_once_and_in_order(
    cuts: list[int], count: int
) -> None:
    entries = [f"event {n}" for n in range(count)]
    with EventLog(entries, cuts) as log:
        listened = listen(log.url, most=len(cuts) + 2, wait=no_wait)
    assert texts(listened) == entries
    assert listened.connections[-1].ended == "closed"


def test_the_time_that_the_stream_names_is_waited_and_no_other() -> None:
    waited: list[float] = []
    with EventLog(NEWS, cuts=[1, 1], retry=250) as log:
        listen(log.url, wait=waited.append)
    assert waited == [0.25, 0.25, 0.25]
    waited.clear()
    with FaultServer(BROKEN) as server:  # it names no time
        listen(f"{server.url}/v1/messages", post=POST, most=2, wait=waited.append)
    assert waited == [reconnect.RETRY / 1000]


def test_a_log_is_one_line_an_entry_and_nothing_but_its_own_path() -> None:
    with pytest.raises(UsageError, match="one line"):
        EventLog(["a\nb"])
    with EventLog(NEWS) as log:
        assert repr(log) == "<EventLog of 5 events>"
        (refused,) = listen(log.url + "/more").connections
    assert (refused.status, refused.ended) == (404, "closed")


# --- The rules, on hand-made streams --------------------------------------------------------------


@contextmanager
def serving(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Answer each connection in turn with some bytes, then hang up; keep the requests' heads."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    head = b""
                    while b"\r\n\r\n" not in head:
                        head += connection.recv(4096)
                    asked.append(head)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/", asked
        thread.join(10)
        assert not thread.is_alive(), "fewer connections came than answers are there"


def ok(body: bytes, type: bytes = b"text/event-stream") -> bytes:
    return b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: %b\r\n\r\n%b" % (type, body)


#: What the first connection brings, and the header that the second one sends.
IDS = {
    "an event's id": (b"id: 1\ndata: a\n\n", b"1"),
    "the id of a block that was cut does not count": (b"id: 1\ndata: a\n\nid: 2\ndata: b\n", b"1"),
    "an id on its own counts once its block is over": (b"id: 7\n\n", b"7"),
    "also when the next block is cut": (b"id: 7\n\nid: 8\ndata: c", b"7"),
    "an id outlives blocks without one": (b"id: 1\ndata: a\n\ndata: b\n\n", b"1"),
    "an empty id takes it back": (b"id: 1\ndata: a\n\nid\ndata: b\n\n", None),
    "an id with a null counts for nothing": (b"id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n", b"1"),
    "lines that end in CRLF": (b"id: 3\r\ndata: a\r\n\r\nid: 4\r\n", b"3"),
    "lines that end in CR": (b"id: 3\rdata: a\r\rid: 4\r", b"3"),
    "no id": (b"data: a\n\n", None),
}


def header(head: bytes, name: bytes) -> bytes | None:
    lines = (line.partition(b": ") for line in head.split(b"\r\n")[1:])
    return next((value for key, _, value in lines if key.lower() == name), None)


@pytest.mark.parametrize(("body", "sent"), IDS.values(), ids=IDS)
def test_the_id_that_is_sent_is_the_last_one_whose_block_was_over(
    body: bytes, sent: bytes | None
) -> None:
    with serving(ok(body), ok(b"")) as (url, asked):
        listen(url, most=2, wait=no_wait)
    assert header(asked[0], b"last-event-id") is None
    assert header(asked[1], b"last-event-id") == sent


def test_the_id_outlives_connections_that_bring_none() -> None:
    with serving(ok(b"id: 9\ndata: a\n\n"), ok(b"data: b\n\n"), ok(b"")) as (url, asked):
        listened = listen(url, most=3, wait=no_wait)
    assert [header(head, b"last-event-id") for head in asked] == [None, b"9", b"9"]
    assert [frame.id for frame in listened.frames] == ["9", "9"]


@given(st.binary(max_size=40).map(lambda tail: b"id: 5\r\ndata: x\r\n\r\n" + tail), st.data())
def test_any_split_of_the_bytes_gives_the_same_events_and_the_same_id(
    body: bytes, data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=6).map(sorted))
    pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert read(pieces) == read([body]) == read([body[n : n + 1] for n in range(len(body))])


class Answer:
    """An HTTP answer that comes in given pieces."""

    status = 200

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = [piece for piece in pieces if piece]

    def getheader(self, name: str) -> str:
        return "Text/Event-Stream; charset=utf-8"

    def read1(self, size: int) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


def read(pieces: list[bytes]) -> tuple[list[bytes], str]:
    source, frames = reconnect._Source(), []
    assert source._read(Answer(pieces), frames, "/") == "eof"  # type: ignore[arg-type]
    return [frame.data for frame in frames], source.last_event_id


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", id="204"),
        pytest.param(b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", id="an error"),
        pytest.param(ok(b"data: a\n\n", b"text/html"), id="another content type"),
    ],
)
def test_what_is_no_event_stream_is_not_asked_again(answer: bytes) -> None:
    with serving(answer) as (url, _):
        listened = listen(url)
    assert [each.ended for each in listened.connections] == ["closed"]
    assert listened.frames == ()


def test_a_network_error_is_tried_again() -> None:
    with serving(b"", b"garbage\r\n\r\n", ok(b"data: a\n\n")) as (url, _):
        listened = listen(url, most=3, wait=no_wait)
    assert [each.status for each in listened.connections] == [0, 0, 200]
    assert texts(listened) == ["a"]


def test_a_time_beyond_reason_is_not_waited() -> None:
    waited: list[float] = []
    with serving(ok(b"retry: 999999999999\ndata: a\n\n"), ok(b"")) as (url, _):
        listen(url, most=2, wait=waited.append)
    assert waited == [reconnect.MAX_RETRY / 1000]


def test_a_stream_without_an_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconnect, "MAX_BYTES", 10)
    stream = ok(b"data: aaaaaaaaaaaaaaa\n\n")
    with serving(stream) as (url, _), pytest.raises(WireError, match=r"^/: .* more than 10 bytes"):
        listen(url)


@pytest.mark.parametrize("url", ["https://localhost/", "http://example.com/", "ftp://127.0.0.1/"])
def test_only_this_machine_is_listened_to(url: str) -> None:
    with pytest.raises(UsageError, match="only this machine"):
        listen(url)


# --- A POST stream that cannot --------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["eof", "cut", "reset"])
def test_the_same_reconnect_glues_two_answers_of_a_post_together(ending: str) -> None:
    with FaultServer([faults.disconnect(advice(), 5, ending), advice_anew()]) as server:
        listened = listen(f"{server.url}/v1/messages", post=POST, most=2)
        first, second = server.wait(2)
    outcome = judge(listened.recording)
    assert outcome.turn.text.startswith("Yes, W-7 can be deleted.Not yet")
    assert outcome.state is State.INVALID
    assert "second message_start" in outcome.attempt.why
    assert (first.asked.method, second.asked.method) == ("POST", "POST")
    assert [each.last_event_id for each in listened.connections] == ["", ""]
    asked = question("04-reconnect")
    assert asked.options[asked.right].text == "The first part of one answer, then all of another."


def test_after_a_whole_answer_it_asks_and_pays_again() -> None:
    with FaultServer(advice()) as server:
        listened = listen(f"{server.url}/v1/messages", post=POST, most=3)
        assert len(server.wait(3)) == 3
    assert judge(listened.recording).state is State.INVALID
    alone = Listened(listened.connections[:1])
    assert judge(alone.recording).state is State.MESSAGE_COMPLETE
    assert alone.recording.data == advice().data


def test_an_id_would_not_help_because_the_server_knows_none() -> None:
    with FaultServer(advice()) as server:
        listened = listen(f"{server.url}/v1/messages", post=POST, most=1)
    assert all(frame.id == "" for frame in listened.frames)


def test_events_keep_their_name_and_all_their_lines_when_they_are_written_again() -> None:
    with serving(ok(b"event: two\ndata: a\ndata: b\n\ndata\n\n")) as (url, _):
        listened = listen(url, most=1)
    assert listened.recording.data == b"event: two\ndata: a\ndata: b\n\ndata: \n\n"


def test_what_is_posted_is_json(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(b"HTTP/1.1 204 No Content\r\n\r\n") as (url, asked):
        listen(url, post={"stream": True})
    assert asked[0].startswith(b"POST / HTTP/1.1\r\n")
    assert header(asked[0], b"content-length") == b"%d" % len(json.dumps({"stream": True}))
