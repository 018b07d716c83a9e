"""Forwarding to a browser, at the level of the socket: what is sent, to whom, and until when."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from streamlab.cli import main
from streamlab.consumer.attempt import State
from streamlab.consumer.bus import Bus
from streamlab.consumer.gates import EFFECT
from streamlab.consumer.history import Message
from streamlab.consumer.screen import Part, fold_screen
from streamlab.consumer.toolloop import Ask, run_turn
from streamlab.consumer.turn_events import (
    TOLD,
    BusEvent,
    RoundEnded,
    RoundStarted,
    SegmentGrew,
    SegmentNamed,
    SegmentOpened,
    SegmentRestated,
    SegmentStopped,
    ToolResolved,
    TurnState,
)
from streamlab.errors import UsageError
from streamlab.streams import faults, forward, forward_frames, forward_page, rounds, synth
from streamlab.streams.forward import Forwarded, Forwarder
from streamlab.streams.forward_frames import BARE, FRAMING, HEADERS, HEARTBEAT, Frames, given
from streamlab.streams.parts import ServerToolCall, Text, ToolCall
from streamlab.streams.recording import Chunk
from streamlab.streams.server import FaultServer
from streamlab.streams.upstream import Replay, Upstream
from streamlab.wire.events import Problem
from streamlab.wire.sse import SSEDecoder
from tests.loopback import HELLO, Client, frames, pausing, recording, unchunked
from tests.tools_for_tests import ASKED, Asker, Desk, stream

JSON = dict[str, Any]

#: So long a pause never passes in a test: what ends in spite of it did not wait for it.
FOR_EVER = 3600.0

BODY = b'{"question": "What about W-7?"}'
TWO = rounds.two_at_once


# --- What the tests of forwarding share -----------------------------------------------------------


class Steps:
    """An `ask` whose stream goes on when the test says so; it knows when it was closed."""

    def __init__(self) -> None:
        self.asked, self.closed = threading.Event(), threading.Event()

    async def __call__(self, messages: list[Message]) -> AsyncIterator[bytes]:
        self.loop, self.queue = asyncio.get_running_loop(), asyncio.Queue[bytes]()
        self.asked.set()
        try:
            while data := await self.queue.get():
                yield data
        finally:
            self.closed.set()

    def give(self, data: bytes = b"") -> None:
        """Let the stream bring these bytes; none are its end."""
        assert self.asked.wait(10)
        self.loop.call_soon_threadsafe(self.queue.put_nowait, data)


def post(body: bytes = BODY, *more: str, line: str = "POST /turn HTTP/1.1") -> bytes:
    """A request for a turn; a header that is given takes the place of a usual one."""
    usual = ["Host: localhost:80", "Content-Type: application/json"]
    usual += [f"Content-Length: {len(body)}"]
    names = {header.partition(":")[0].lower() for header in more}
    lines = [line, *(h for h in usual if h.partition(":")[0].lower() not in names), *more]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def said(head: bytes) -> list[tuple[str, str]]:
    """The headers of an answer, as they were written."""
    lines = head.decode("ascii").split("\r\n")[1:]
    return [(name, value) for name, _, value in (line.partition(": ") for line in lines if line)]


def events(body: bytes) -> list[tuple[str, JSON]]:
    """The events of a body, as the project's own reader finds them."""
    return [(frame.event, json.loads(frame.data)) for frame in SSEDecoder().feed(body)]


def answered(url: str, sent: bytes | None = None) -> tuple[bytes, list[tuple[str, JSON]]]:
    """Ask for a turn and read all of it; its head, and its events."""
    with Client(url, sent or post()) as client:
        got, _ = client.read_all()
    head, _, body = got.partition(b"\r\n\r\n")
    data, complete = unchunked(body)
    assert complete
    return head, events(data)


def names(found: list[tuple[str, JSON]]) -> list[str]:
    return [name for name, _ in found]


# --- The headers ----------------------------------------------------------------------------------


def test_the_head_is_the_table_and_nothing_else() -> None:
    with Forwarder(Replay(synth.greeting())) as server:
        head, _ = answered(server.url)
    assert head.split(b"\r\n", 1)[0] == b"HTTP/1.1 200 OK"
    assert said(head) == [
        ("Content-Type", "text/event-stream; charset=utf-8"),
        ("Cache-Control", "no-cache, no-store, no-transform"),
        ("X-Accel-Buffering", "no"),
        ("Content-Encoding", "identity"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "close"),
    ]
    assert said(head) == [(name, value) for name, value, _ in (*HEADERS, *FRAMING)]


def test_every_header_has_its_reason() -> None:
    assert all(len(header.why.split()) > 5 for header in (*HEADERS, *FRAMING))


def test_the_headers_can_be_left_out_to_see_what_happens() -> None:
    with Forwarder(Replay(synth.greeting()), headers=BARE) as server:
        head, _ = answered(server.url)
    assert [name for name, _ in said(head)] == ["Content-Type", "Transfer-Encoding", "Connection"]


def test_a_client_of_http_1_0_gets_no_chunks_and_sees_the_last_event_all_the_same() -> None:
    with (
        Forwarder(Replay(synth.greeting())) as server,
        Client(server.url, post(line="POST /turn HTTP/1.0")) as client,
    ):
        got, _ = client.read_all()
    head, _, body = got.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert names(events(body))[-1] == "TurnEnded"


# --- The events -----------------------------------------------------------------------------------


def published(ask: Ask, policy: Any = rounds.READING) -> list[BusEvent]:
    """What crosses the bus of such a turn."""
    found: list[BusEvent] = []
    turn = run_turn(ASKED, ask, Desk().tools, policy, publish=found.append)
    asyncio.run(turn)
    return found


def test_every_event_of_the_bus_comes_in_its_order_with_ids_from_one() -> None:
    expected = published(Replay(*TWO()))
    with (
        Forwarder(Replay(*TWO()), Desk().tools, rounds.READING) as server,
        Client(server.url, post()) as client,
    ):
        got, _ = client.read_all()
    body, _ = unchunked(got.partition(b"\r\n\r\n")[2])
    found = list(SSEDecoder().feed(body))
    assert [frame.id for frame in found] == [str(n) for n in range(1, len(found) + 1)]
    tools = {
        (e.attempt, e.segment)
        for e in expected
        if isinstance(e, SegmentOpened) and e.kind == "tool_call"
    }
    meant = [
        "InputGrew"
        if isinstance(e, SegmentGrew) and (e.attempt, e.segment) in tools
        else type(e).__name__
        for e in expected
    ]
    # A reader who is quick gets each; one who is not gets texts in fewer pieces.
    assert _without_repeats([frame.event for frame in found]) == _without_repeats(meant)
    assert meant[-1] == found[-1].event == "TurnEnded"


def _without_repeats(found: list[str]) -> list[str]:
    return [name for n, name in enumerate(found) if n == 0 or found[n - 1] != name]


def test_each_event_is_a_chunk_of_its_own_as_soon_as_it_is_there() -> None:
    steps = Steps()
    blocks = frames(HELLO)
    with Forwarder(steps) as server, Client(server.url, post()) as client:
        client.read_until(b"event: RoundStarted")
        for block, event in zip(blocks, ("", "SegmentOpened", "Hel", "lo"), strict=False):
            steps.give(block)
            client.read_until(event.encode())  # it comes although the next one is held back
        steps.give(b"".join(blocks[4:]))
        steps.give()
        got, _ = client.read_all()
    body = got.partition(b"\r\n\r\n")[2]
    chunks = re.findall(rb"[0-9a-f]+\r\n(event: [^\r]*?\n\n)\r\n", body)
    assert len(chunks) == len(events(unchunked(body)[0])) > 5


STATES = [
    ("answered", synth.greeting(), TurnState.ANSWERED, ""),
    ("proposed", synth.change_label(), TurnState.PROPOSED, "change_label"),
    ("cut", faults.disconnect(synth.change_label(), 14), TurnState.INCOMPLETE, ""),
    ("reset", faults.disconnect(synth.greeting(), 3, "reset"), TurnState.INCOMPLETE, ""),
    ("no stream", recording(b"<html>Bad gateway</html>"), TurnState.INVALID, ""),
    ("nothing", recording(), TurnState.INCOMPLETE, ""),
]


@pytest.mark.parametrize(("given", "state", "why"), [row[1:] for row in STATES], ids=lambda v: "")
def test_the_last_event_says_how_it_ended_and_what_a_person_is_told(
    given: Any, state: TurnState, why: str
) -> None:
    with FaultServer(given) as behind, Forwarder(Upstream(behind.url)) as server:
        _, found = answered(server.url)
        (log,) = server.wait(1)
    name, last = found[-1]
    assert (name, last["state"], last["said"]) == ("TurnEnded", state, TOLD[state])
    assert why in last["why"]
    assert last["why"]
    assert names(found).count("TurnEnded") == 1
    assert log == Forwarded(1, state, len(found), "sent all")
    assert str(log) == f"turn 1: {state}, sent all after event {len(found)}"


def test_problems_come_before_the_last_event_with_what_was_wrong() -> None:
    broken = recording(HELLO.replace(b'"index": 0, "delta"', b'"index": 7, "delta"', 1))
    with Forwarder(Replay(broken)) as server:
        _, found = answered(server.url)
    problems = [fields for name, fields in found if name == "ProblemFound"]
    assert problems and problems[0]["severity"] == "error" and "7" in problems[0]["message"]
    assert set(problems[0]) == {"attempt", "rule", "severity", "message", "at"}
    assert names(found)[-1] == "TurnEnded" and found[-1][1]["state"] == TurnState.INVALID


REFUSALS = [
    pytest.param(429, "HTTP 429, rate_limit_error", id="429"),
    pytest.param(529, "HTTP 529, overloaded_error", id="529"),
    pytest.param(500, "HTTP 500, api_error", id="500"),
]


@pytest.mark.parametrize(("status", "why"), REFUSALS)
def test_an_http_error_behind_is_one_clear_last_event(status: int, why: str) -> None:
    with FaultServer(status) as behind, Forwarder(Upstream(behind.url)) as server:
        _, found = answered(server.url)
    assert names(found) == ["RoundStarted", "RoundEnded", "TurnEnded"]
    assert found[-1][1]["state"] == TurnState.INVALID and why in found[-1][1]["why"]


def test_nobody_behind_is_one_clear_last_event() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with Forwarder(Upstream(url)) as server:
        _, found = answered(server.url)
    assert names(found) == ["RoundStarted", "RoundEnded", "TurnEnded"]
    assert found[-1][1]["state"] == TurnState.INCOMPLETE
    assert "no answer came" in found[-1][1]["why"]


def test_a_fault_of_ours_is_a_last_event_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(forward, "run_turn", fails)
    with Forwarder(Replay()) as server:
        _, found = answered(server.url)
    assert names(found) == ["TurnEnded"]
    assert found[0][1]["state"] == TurnState.INVALID and "no such luck" in found[0][1]["why"]


# --- JSON on its way to a tool --------------------------------------------------------------------

SECRET = "Rosebud"


def test_no_fragment_of_an_input_is_ever_sent_only_its_size_and_then_what_is_whole() -> None:
    call = stream(1, Text("Look:"), ToolCall("read_item", {"item": "W-7", "note": SECRET}))
    with Forwarder(Replay(call), {}, EFFECT) as server:
        _, found = answered(server.url)
    (stop,) = [n for n, (name, f) in enumerate(found) if name == "SegmentStopped" and "input" in f]
    assert found[stop][1]["input"] == [["item", "W-7"], ["note", SECRET]]
    rest = found[:stop] + found[stop + 1 :]
    assert not any(SECRET[:3] in str(fields) or '"item' in str(fields) for _, fields in rest)
    sizes = [fields["size"] for name, fields in found if name == "InputGrew"]
    assert sizes == sorted(sizes) and sizes[-1] == len('{"item": "W-7", "note": "Rosebud"}')


@pytest.mark.parametrize("ending", ["eof", "cut", "reset"])
def test_of_an_input_that_is_cut_nothing_is_sent(ending: str) -> None:
    cut = faults.disconnect(synth.pay_invoice(), 11, ending)  # it ends with `"amount": 1`
    with FaultServer(cut) as behind, Forwarder(Upstream(behind.url)) as server:
        _, found = answered(server.url)
    assert "InputGrew" in names(found)
    assert not any("amount" in str(fields) or "input" in fields for _, fields in found)
    assert found[-1][1]["state"] == TurnState.INCOMPLETE


T, A = "turn-1", "turn-1/1"
OPEN = SegmentOpened(T, A, "0", "tool_call", "pay")
BEGIN = RoundStarted(T, A, 1)


def sent(*given: BusEvent) -> list[tuple[str, JSON]]:
    """The frames of some events."""
    made = Frames()
    return [pair for event in given for pair in events(made.of(event))]


def test_an_input_that_does_not_parse_is_not_sent_and_its_error_is() -> None:
    found = sent(BEGIN, OPEN, SegmentGrew(T, A, "0", '{"amo'), SegmentStopped(T, A, "0", "half"))
    assert found[-1] == (
        "SegmentStopped",
        {"turn": T, "attempt": A, "segment": "0", "error": "half"},
    )
    assert "amo" not in str(found)


def test_an_input_that_is_restated_is_the_later_one() -> None:
    grew, restated = SegmentGrew(T, A, "0", '{"a": 1'), SegmentRestated(T, A, "0", '{"b": 2}')
    found = sent(BEGIN, OPEN, grew, restated, SegmentStopped(T, A, "0"))
    assert names(found)[-3:] == ["InputGrew", "InputGrew", "SegmentStopped"]
    assert (found[-2][1]["size"], found[-1][1]["input"]) == (8, [["b", "2"]])


def test_what_belongs_to_no_open_part_is_not_sent_as_a_text() -> None:
    late = RoundEnded(T, A, State.INVALID, "", False)
    stray = (SegmentGrew(T, A, "9", "stray"), SegmentRestated(T, A, "9", "stray"))
    text = SegmentOpened(T, A, "1", "text")
    assert names(sent(BEGIN, OPEN, text, *stray, late, SegmentGrew(T, A, "1", "stray"))) == [
        *("RoundStarted", "SegmentOpened", "SegmentOpened", "RoundEnded")
    ]


def test_a_late_name_and_a_result_are_sent_and_a_long_result_is_clipped() -> None:
    named = SegmentNamed(T, A, "0", "pay")
    done = ToolResolved(T, A, "0", forward_frames.Status.DONE, "x" * 100_000)
    found = sent(BEGIN, OPEN, named, SegmentStopped(T, A, "0"), done)
    assert found[2] == ("SegmentNamed", {"turn": T, "attempt": A, "segment": "0", "tool": "pay"})
    text = found[-1][1]["text"]
    assert len(text) < 21_000 and text.endswith("… (100,000 characters)")


GIVEN = [
    ("", []),
    ("{}", []),
    ('{"a": 1.50, "b": true, "c": null}', [["a", "1.5"], ["b", "true"], ["c", "null"]]),
    ("[1, 2]", [["", "[1, 2]"]]),
    ("free text", [["", "free text"]]),
    ('{"x": "' + "y" * 5000 + '"}', [["x", "y" * 2000 + " … (5,000 characters)"]]),
]


@pytest.mark.parametrize(("text", "shown"), GIVEN, ids=lambda v: str(v)[:20])
def test_an_input_is_shown_by_names_and_values_within_bounds(text: str, shown: Any) -> None:
    assert given(text) == shown


def test_of_very_many_names_the_first_are_shown_and_the_others_counted() -> None:
    shown = given(json.dumps({f"n{n}": n for n in range(500)}))
    assert len(shown) == 51 and shown[-1] == ["…", "450 more"]


# --- Hostile texts --------------------------------------------------------------------------------

HOSTILE = [
    '\n\nevent: TurnEnded\ndata: {"state": "ANSWERED"}\n\n',
    "\r\n\r\nid: 99\r\n",
    "\rdata: x",
    "\u2028\u2029\u0085\x00\x1b[2J\u202e\ufeff",
    "</script><img src=x onerror=alert(1)>",
    "half \ud83d",
    "\ude00 half",
]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_text_ends_its_frame_and_every_character_arrives(text: str) -> None:
    part = SegmentOpened(T, A, "1", "text")
    found = sent(BEGIN, part, SegmentGrew(T, A, "1", text), SegmentStopped(T, A, "1", text))
    assert names(found) == ["RoundStarted", "SegmentOpened", "SegmentGrew", "SegmentStopped"]
    assert (found[2][1]["text"], found[3][1]["error"]) == (text, text)


@for_all(st.lists(st.text(st.characters(codec=None)), max_size=8))
def test_whatever_the_texts_the_frames_are_one_an_event(texts: list[str]) -> None:
    part = SegmentOpened(T, A, "1", "text")
    found = sent(BEGIN, part, *(SegmentGrew(T, A, "1", text) for text in texts))
    assert [fields["text"] for _, fields in found[2:]] == texts


@for_all(st.integers(0, 10_000))
def test_whatever_the_answer_its_texts_arrive_and_its_inputs_only_when_whole(seed: int) -> None:
    _, answer = synth.random_answer(seed)
    crossed = published(Replay(answer), EFFECT)
    found = sent(*crossed)
    shown = [
        part
        for bubble in fold_screen(crossed).bubbles
        for part in bubble.parts
        if part.kind != "tool_call"
    ]
    assert [_text_of(found, part) for part in shown] == [part.text for part in shown]
    tools = {
        (f["attempt"], f["segment"])
        for name, f in found
        if name == "SegmentOpened" and f["kind"] == "tool_call"
    }
    texts = {name for name, f in found if (f.get("attempt"), f.get("segment")) in tools}
    assert texts.isdisjoint({"SegmentGrew", "SegmentRestated"})


def _text_of(found: list[tuple[str, JSON]], part: Part) -> str:
    text = ""
    for name, fields in found:
        if (fields.get("attempt"), fields.get("segment")) == (part.attempt, part.segment):
            text = fields["text"] if name == "SegmentRestated" else text
            text += fields["text"] if name == "SegmentGrew" else ""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


# --- Leaving --------------------------------------------------------------------------------------


def close(client: Client) -> None:
    client.socket.close()


def tear_down(client: Client) -> None:
    linger = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    client.socket.close()


def say_goodbye(client: Client) -> None:
    client.socket.shutdown(socket.SHUT_WR)


LEAVING = [close, tear_down, say_goodbye]


@pytest.mark.parametrize("leave", LEAVING, ids=lambda leave: leave.__name__)
def test_who_leaves_closes_the_stream_behind_before_its_next_chunk(
    leave: Callable[[Client], None],
) -> None:
    blocks = frames(HELLO)
    with (
        FaultServer(pausing(*blocks), speed=1.0) as behind,
        Forwarder(Upstream(behind.url)) as server,
        Client(server.url, post()) as client,
    ):
        client.read_until(b"event: SegmentStopped")  # what comes after it is an hour away
        assert behind.log == ()
        leave(client)
        (served,) = behind.wait(1)
        (log,) = server.wait(1)
    assert served.ended == "client gone" and served.chunks < len(blocks)
    assert (log.ended, log.state) == ("client gone", TurnState.CANCELLED)


def test_who_leaves_while_the_stream_behind_is_silent_closes_it_at_once() -> None:
    with (
        FaultServer(recording(HELLO), every=FOR_EVER) as behind,
        Forwarder(Upstream(behind.url)) as server,
    ):
        with Client(server.url, post()) as client:
            client.read_until(b"event: RoundStarted")
        (served,) = behind.wait(1)
    assert served.ended == "client gone" and served.chunks <= 1


def test_who_leaves_while_a_tool_runs_cancels_it_and_no_further_round_is_asked() -> None:
    cancelled = threading.Event()

    async def hangs(number: int, item: str) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    with FaultServer(list(TWO())) as behind:
        with Forwarder(Upstream(behind.url), Desk(hangs).tools, rounds.READING) as server:
            with Client(server.url, post()) as client:
                client.read_until(b"event: ToolRunning")
            (log,) = server.wait(1)
            assert cancelled.wait(10)
        assert len(behind.wait(1)) == 1
    assert (log.ended, log.state) == ("client gone", TurnState.CANCELLED)


def test_stopping_the_server_cancels_every_turn_and_leaves_no_thread() -> None:
    before = threading.active_count()
    steps = Steps()
    with Forwarder(steps) as server, Client(server.url, post()) as client:
        client.read_until(b"event: RoundStarted")
        server.stop()
        client.read_all()
    assert steps.closed.is_set() and threading.active_count() == before
    assert [log.ended for log in server.log] == ["server stopped"]


# --- Heartbeats, by a clock that the test turns ---------------------------------------------------


class Clock:
    """Its sleepers wake when it is ticked, and never by themselves."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._waiting: set[asyncio.Event] = set()
        self._changed = threading.Condition()

    async def sleep(self, seconds: float) -> None:
        wake, self.loop = asyncio.Event(), asyncio.get_running_loop()
        with self._changed:
            self.asked.append(seconds)
            self._waiting.add(wake)
            self._changed.notify_all()
        try:
            await wake.wait()
        finally:
            with self._changed:
                self._waiting.discard(wake)

    def tick(self, number: int) -> None:
        """Let the time pass that the n-th sleeper waits for, when there is one."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.asked) >= number, 10)
            for wake in self._waiting:
                self.loop.call_soon_threadsafe(wake.set)


def test_a_heartbeat_comes_whenever_the_line_was_silent_for_so_long_and_is_no_event() -> None:
    steps, clock = Steps(), Clock()
    with (
        Forwarder(steps, heartbeat=7.0, sleep=clock.sleep) as server,
        Client(server.url, post()) as client,
    ):
        client.read_until(b"event: RoundStarted")
        for beats in (1, 2, 3):
            clock.tick(1 + beats)  # the first sleeper waited for the first event
            client.read_until(HEARTBEAT)
            while client.got.count(HEARTBEAT) < beats:
                client.got += client.socket.recv(65536)
        steps.give(HELLO)
        client.read_until(b'"text": ')
        steps.give()
        got, _ = client.read_all()
    body, complete = unchunked(got.partition(b"\r\n\r\n")[2])
    assert complete and body.count(HEARTBEAT) == 3 and set(clock.asked) == {7.0}
    assert HEARTBEAT.startswith(b":")
    assert [f.id for f in SSEDecoder().feed(body)] == [
        str(n) for n in range(1, len(events(body)) + 1)
    ]


# --- Slow readers, and bounds ---------------------------------------------------------------------


class Watched(Bus):
    """A bus that remembers how much ever waited in it."""

    most = 0

    def publish(self, event: BusEvent) -> None:
        super().publish(event)
        Watched.most = max(Watched.most, len(self))


def many(pieces: int, piece: str) -> Iterator[bytes]:
    """A text answer in very many deltas."""
    yield from frames(HELLO)[:2]
    delta = {"type": "text_delta", "text": piece}
    body = json.dumps({"type": "content_block_delta", "index": 0, "delta": delta})
    for _ in range(pieces):
        yield f"event: content_block_delta\ndata: {body}\n\n".encode()
    yield from frames(HELLO)[4:]


def test_a_slow_browser_neither_slows_the_stream_nor_lets_events_pile_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over, pieces, piece = threading.Event(), 4_000, "x" * 4_000

    async def ask(messages: list[Message]) -> AsyncIterator[bytes]:
        for data in many(pieces, piece):
            yield data
        over.set()

    monkeypatch.setattr(forward, "Bus", Watched)
    Watched.most = 0
    with Forwarder(ask) as server, Client(server.url, post()) as client:
        client.read_until(b"event: RoundStarted")
        assert over.wait(60)  # 16 MB have come, and nobody has read any of it
        got, _ = client.read_all()
        body, complete = unchunked(got.partition(b"\r\n\r\n")[2])
        (log,) = server.wait(1)
    found = events(body)
    assert complete and log.ended == "sent all"
    assert sum(len(fields["text"]) for name, fields in found if name == "SegmentGrew") == 16_000_000
    assert len(found) < pieces and Watched.most < 20


def test_a_browser_that_is_far_behind_is_given_the_whole_bubble_without_any_json(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = [Text("Look:"), ServerToolCall("search", {"q": "x"})]
    calls = [ToolCall("read_item", {"item": f"W-{n}", "note": SECRET}) for n in range(40)]
    answer = stream(1, *parts, *calls)
    monkeypatch.setattr(forward, "Bus", partial(Bus, limit=5))

    async def ask(messages: list[Message]) -> AsyncIterator[Chunk]:
        yield Chunk(None, answer.data)  # all at once: no screen can keep up with it

    with Forwarder(ask) as server:
        _, found = answered(server.url)
    caught = [fields for name, fields in found if name == "CaughtUp"]
    assert caught and found[-1][1]["state"] == TurnState.PROPOSED
    assert all("text" not in p for c in caught for p in c["parts"] if p["kind"] == "tool_call")
    last = caught[-1]
    assert set(last) == {"turn", "rounds", "parts"} and last["rounds"] == 1
    whole = [part for part in last["parts"] if "input" in part]
    assert whole and ["note", SECRET] in whole[-1]["input"] + [["note", SECRET]]
    assert not any('{"item' in str(fields) for _, fields in found)


def test_a_part_that_still_grows_goes_on_after_a_catch_up() -> None:
    events_ = [BEGIN, OPEN, SegmentGrew(T, A, "0", '{"a": '), SegmentOpened(T, A, "1", "text")]
    screen = fold_screen([*events_, SegmentGrew(T, A, "1", "Hel")])
    made = Frames()
    ((_, caught),) = events(made.of(forward_frames.CaughtUp(screen)))
    assert [(p["kind"], p.get("text"), p.get("size")) for p in caught["parts"]] == [
        ("tool_call", None, 6),
        ("text", "Hel", None),
    ]
    ((_, more),) = events(made.of(SegmentGrew(T, A, "0", "1}")))
    ((_, stop),) = events(made.of(SegmentStopped(T, A, "0")))
    ((_, text),) = events(made.of(SegmentGrew(T, A, "1", "lo")))
    assert (more["size"], stop["input"], text["text"]) == (8, [["a", "1"]], "lo")


def test_a_browser_that_takes_nothing_for_long_is_given_up_and_its_stream_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forward, "STALL_SECONDS", 0.01)

    async def ask(messages: list[Message]) -> AsyncIterator[bytes]:
        for data in many(100_000, "x" * 4_000):
            yield data

    with Forwarder(ask) as server, Client(server.url, post()):
        (log,) = server.wait(1, timeout=60)
    assert log.ended == "too slow"


def test_more_turns_at_once_than_allowed_are_refused_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forward, "MAX_TURNS", 1)
    steps = Steps()
    with Forwarder(steps) as server, Client(server.url, post()) as first:
        first.read_until(b"event: RoundStarted")
        with Client(server.url, post()) as second:
            got, _ = second.read_all()
        assert got.startswith(b"HTTP/1.1 503 ")
        steps.give(HELLO)
        steps.give()
        assert b'"ANSWERED"' in first.read_all()[0]


# --- Who may ask ----------------------------------------------------------------------------------

OURS = "Origin: http://localhost:80"
ASKED_BADLY = [
    pytest.param(post(BODY, "Host: evil.example"), 403, id="another name: DNS rebinding"),
    pytest.param(post(BODY, "Host: 127.0.0.1.evil.example:80"), 403, id="a name like ours"),
    pytest.param(post(BODY, "Host: 127.0.0.1:80@evil.example"), 403, id="a user like ours"),
    pytest.param(post(BODY, "Origin: https://evil.example"), 403, id="another page"),
    pytest.param(post(BODY, "Origin: http://localhost:81"), 403, id="another port"),
    pytest.param(post(BODY, "Origin: null"), 403, id="a page from nowhere"),
    pytest.param(post(BODY, OURS, "Sec-Fetch-Site: cross-site"), 403, id="cross-site"),
    pytest.param(post(BODY, OURS, "Content-Type: text/plain"), 415, id="what a form can send"),
    pytest.param(post(b"", line="GET /turn HTTP/1.1"), 405, id="a GET, as an image sends"),
    pytest.param(post(b"", line="OPTIONS /turn HTTP/1.1"), 405, id="a preflight"),
    pytest.param(post(b"", line="GET /../forward.py HTTP/1.1"), 404, id="a way out"),
    pytest.param(post(b"", line="GET /page.css/ HTTP/1.1"), 404, id="no such page"),
    pytest.param(post(b"not JSON"), 400, id="no JSON"),
    pytest.param(post(b"[" * 100_000), 400, id="deep JSON"),
    pytest.param(post(b'{"question": ""}'), 400, id="no question"),
    pytest.param(post(b'{"question": 7}'), 400, id="a number"),
    pytest.param(post(b'{"question": "\\ud800"}'), 400, id="half a character"),
    pytest.param(post(json.dumps({"question": "x" * 4001}).encode()), 400, id="too long"),
    pytest.param(post(b"x" * 9_000_000), 413, id="a huge body"),
    pytest.param(post(BODY, "X: " + "x" * 200_000), 431, id="a huge head"),
    pytest.param(b"hello\r\n\r\n", 400, id="no HTTP"),
]


@pytest.mark.parametrize(("request_", "status"), ASKED_BADLY)
def test_who_asks_badly_is_refused_in_a_line_and_nothing_is_asked_behind(
    request_: bytes, status: int
) -> None:
    asker = Asker()
    with Forwarder(asker) as server, Client(server.url) as client:
        try:
            client.socket.sendall(request_)
        except OSError:
            assert status == 413  # it hangs up before all has been sent
        got = client.read_until(b"\r\n\r\n") if status != 413 else b"HTTP/1.1 413 "
        assert got.startswith(b"HTTP/1.1 %d " % status)
        assert b"access-control" not in got.lower()
        assert (b"Allow: POST" in got) == (status == 405)
    assert asker.requests == [] and server.log == ()


@pytest.mark.parametrize("more", [(), (OURS,), (OURS, "Sec-Fetch-Site: same-origin")], ids=len)
@pytest.mark.parametrize("host", ["127.0.0.1:80", "LOCALHOST:80", "[::1]:80", "localhost"])
def test_our_own_page_may_ask_by_each_of_our_names(host: str, more: tuple[str, ...]) -> None:
    more = tuple(header.replace("localhost:80", host) for header in more)
    with Forwarder(Replay(synth.greeting())) as server:
        _, found = answered(server.url, post(BODY, f"Host: {host}", *more))
    assert found[-1][1]["state"] == TurnState.ANSWERED


def test_who_comes_back_with_the_last_id_is_told_to_stop_and_no_second_turn_begins() -> None:
    asker = Asker()
    with Forwarder(asker) as server, Client(server.url, post(BODY, "Last-Event-ID: 7")) as client:
        got, _ = client.read_all()
    assert got.startswith(b"HTTP/1.1 204 No Content\r\n")
    assert asker.requests == [] and b"Content-Length" not in got


def test_only_loopback_is_served() -> None:
    for host in ("0.0.0.0", "::", "192.168.0.1"):
        with pytest.raises(UsageError, match="loopback only"):
            Forwarder(Replay(), host=host)


def test_a_port_that_is_taken_is_said_and_the_address_is_known_only_when_started() -> None:
    server = Forwarder(Replay())
    with pytest.raises(UsageError, match="before it is started"):
        _ = server.url
    with Forwarder(Replay()) as running:
        assert running.url in repr(running)
        with pytest.raises(UsageError, match="running already"):
            running.start()
        port = int(running.url.rpartition(":")[2])
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1, port {port}"):
            Forwarder(Replay(), port=port).start()


# --- The page -------------------------------------------------------------------------------------

PAGES = [("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript")]
FOLDER = Path(forward.__file__).parent / "browser"


@pytest.mark.parametrize(("path", "type"), PAGES, ids=[path for path, _ in PAGES])
def test_each_file_of_the_page_comes_under_a_strict_policy(path: str, type: str) -> None:
    with (
        Forwarder(Replay(), suggestion='"><script>') as server,
        Client(server.url, post(b"", line=f"GET {path}?x HTTP/1.1")) as client,
    ):
        got, _ = client.read_all()
    head, _, body = got.partition(b"\r\n\r\n")
    headers = dict(said(head))
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert headers["Content-Type"] == f"{type}; charset=utf-8"
    assert int(headers["Content-Length"]) == len(body) > 500
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    assert "http" not in policy and "*" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert b'"><script>' not in body


def test_the_page_names_no_other_place_and_has_no_way_from_text_to_markup() -> None:
    files = {file.name: file.read_text("utf-8") for file in FOLDER.iterdir()}
    assert set(files) == {"page.html", "page.css", "page.js"}
    together = "\n".join(files.values())
    assert not re.search(r"https?:|//[a-z]+\.|url\(|@import", together)
    sinks = "innerHTML|outerHTML|insertAdjacentHTML|document.write|eval\\(|Function\\("
    assert not re.search(sinks, files["page.js"])
    assert not re.search(
        r"<style|style=|\son\w+=|<script(?! type=\"module\" src)", files["page.html"]
    )


def test_the_page_knows_every_event_and_every_chip_that_can_come() -> None:
    page = (FOLDER / "page.js").read_text("utf-8")
    changes = page[page.index("const CHANGES") : page.index("// --- How it is drawn")]
    known = set(re.findall(r"^  (\w+)[(:]", changes, re.MULTILINE))
    bus = {kind.__name__ for kind in BusEvent.__args__}
    assert known == bus | {"CaughtUp", "InputGrew", "ProblemFound"}
    signs = page[page.index("const SIGNS") : page.index("const TONES")]
    assert all(f"{status}:" in signs.replace('"', "") for status in forward_frames.Status)


# --- The command ----------------------------------------------------------------------------------

BAD = [
    pytest.param(["--scenario", "nonsense"], "nonsense", id="no such scenario"),
    pytest.param(["--scenario", "all"], "one stream", id="all scenarios"),
    pytest.param(["--scenario", "refusal", "--scenario", "pause"], "one stream", id="two"),
    pytest.param(["--upstream", "nonsense"], "nonsense", id="no URL"),
    pytest.param(["--upstream", "http://127.0.0.1:1", "x.sse"], "files", id="both"),
    pytest.param(["--upstream", "http://127.0.0.1:1", "--after", "3"], "after", id="not ours"),
]


@pytest.mark.parametrize(("options", "words"), BAD)
def test_bad_usage_of_the_command_is_one_line(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--forward", "--port", "0", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_the_help_of_the_command_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--help"]) == 0
    assert "serve --forward --scenario cut_inside_tool_json" in capsys.readouterr().out


@contextmanager
def serving(*options: str) -> Iterator[tuple[str, Iterator[str]]]:
    """Run the command; give the page's address and the lines that follow, then press Ctrl-C."""
    command = [sys.executable, "-m", "streamlab", "serve", "--port", "0", *options]
    pipes: JSON = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=Path(__file__).parents[1], **pipes) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            lines = (line.decode().rstrip() for line in process.stdout)
            yield next(lines).removeprefix("streamlab: the page is ").split("/ (")[0], lines
            process.send_signal(signal.SIGINT)
            assert process.wait() == 0
            assert process.stderr.read() == b""
        finally:
            process.kill()


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C in another way")
@pytest.mark.parametrize(
    ("options", "state"),
    [
        pytest.param(["--status", "529"], "INVALID", id="an error"),
        pytest.param(["--scenario", "whole_proposal"], "PROPOSED", id="a scenario"),
        pytest.param(["fixtures/claude/change_label.sse"], "PROPOSED", id="a file"),
        pytest.param(["--after", "9", "--ending", "reset"], "INCOMPLETE", id="cut"),
    ],
)
def test_the_command_says_where_the_page_is_and_what_became_of_both_sides_until_ctrl_c(
    options: list[str], state: str
) -> None:
    with serving("--forward", "--pace", "max", *options) as (url, lines):
        assert next(lines).startswith("behind it: http://127.0.0.1:")
        _, found = answered(url)
        assert found[-1][1]["state"] == state
        two = sorted(next(lines) for _ in range(2))
        assert two[0].startswith("#1 POST /v1/messages: ") and two[1].startswith(f"turn 1: {state}")


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C in another way")
def test_the_command_forwards_another_server_and_asks_it_for_the_model_that_is_named() -> None:
    with (
        FaultServer({"greeting": synth.greeting()}) as behind,
        serving("--upstream", behind.url, "--model", "greeting") as (url, lines),
    ):
        assert next(lines) == f"behind it: {behind.url}"
        _, found = answered(url)
        assert found[-1][1]["state"] == TurnState.ANSWERED
        assert next(lines).startswith("turn 1: ANSWERED")


def test_a_problem_is_sent_with_all_its_fields() -> None:
    found = events(Frames().problem(A, Problem("rule", "warning", "odd", 3)))
    meant = {"attempt": A, "rule": "rule", "severity": "warning", "message": "odd", "at": 3}
    assert found == [("ProblemFound", meant)]


def test_the_suggestion_is_in_the_page_as_text() -> None:
    heard = forward_page.Heard(_head("GET", "/"))
    reply = forward_page.asked_for(heard, '"><b>')
    assert isinstance(reply, forward_page.Reply)
    assert b'value="&quot;&gt;&lt;b&gt;"' in reply.body


def _head(method: str, target: str) -> Any:
    import h11

    return h11.Request(method=method, target=target, headers=[("Host", "localhost")])
