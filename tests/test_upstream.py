"""The upstream: a request over a real socket, its chunks as they come, and how they stopped."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any

import pytest

from streamlab.consumer.toolloop import TurnState
from streamlab.errors import UsageError, WireError
from streamlab.streams import faults, rounds, synth
from streamlab.streams.answer import Answer, http_error
from streamlab.streams.recording import Chunk, Recording
from streamlab.streams.server import Asked, FaultServer
from streamlab.streams.upstream import Replay, Upstream
from tests.tools_for_tests import ASKED, play

HELLO = synth.greeting()


async def all_of(stream: AsyncIterator[Chunk]) -> bytes:
    return b"".join([chunk.data async for chunk in stream])


def asked(ask: Upstream | Replay) -> bytes:
    """The bytes of one whole answer."""
    return asyncio.run(all_of(ask(ASKED.request())))


def serving(*answers: Any, **options: Any) -> FaultServer:
    return FaultServer(list(answers), **options)


@pytest.mark.parametrize("framing", ["chunked", "close", "length"])
def test_an_answer_comes_byte_for_byte_in_every_framing(framing: str) -> None:
    with serving(HELLO, framing=framing) as server:
        assert asked(Upstream(server.url)) == HELLO.data


def test_chunks_come_as_they_are_sent_with_the_time_since_the_request() -> None:
    async def main(url: str) -> list[Chunk]:
        return [chunk async for chunk in Upstream(url)(ASKED.request())]

    with serving(HELLO, every=0.02) as server:
        chunks = asyncio.run(main(server.url))
    assert len(chunks) > 3 and b"".join(chunk.data for chunk in chunks) == HELLO.data
    times = [chunk.t for chunk in chunks if chunk.t is not None]
    assert times == sorted(times) and times[-1] > 0.1


ENDINGS: dict[str, tuple[str, str, type[Exception]]] = {
    "cut in chunks": ("cut", "chunked", ConnectionAbortedError),
    "cut before the length": ("cut", "length", ConnectionAbortedError),
    "reset": ("reset", "chunked", ConnectionResetError),
    "silence": ("timeout", "chunked", TimeoutError),
}


@pytest.mark.parametrize(("ending", "framing", "error"), ENDINGS.values(), ids=ENDINGS)
def test_how_the_connection_stopped_is_said_as_sockets_say_it(
    ending: str, framing: str, error: type[Exception]
) -> None:
    cut = faults.disconnect(HELLO, 5, ending)
    patience = 0.3 if ending == "timeout" else 10
    with serving(cut, framing=framing) as server, pytest.raises(error):
        asked(Upstream(server.url, idle_seconds=patience))


def test_a_cut_is_not_seen_where_only_the_end_of_the_connection_ends_the_body() -> None:
    cut = faults.disconnect(HELLO, 5, "cut")
    with serving(cut, framing="close") as server:
        assert asked(Upstream(server.url)) == cut.data


REFUSED: dict[str, tuple[Any, str]] = {
    "overloaded": (529, "HTTP 529, overloaded_error: "),
    "in the API's shape": (http_error(400, "no such thing"), "invalid_request_error: no such"),
    "in Google's shape": (
        Answer(Recording.from_bytes(b'{"error": {"code": 429, "status": "BUSY"}}'), status=429),
        "HTTP 429, BUSY: ",
    ),
    "a stream all the same": (Answer(HELLO, status=500), r"HTTP 500$"),
    "a redirection": (Answer(HELLO, status=302), r"HTTP 302$"),
    "a web page": (Answer(Recording.from_bytes(b"<html>"), status=502), r"HTTP 502$"),
    "a list": (Answer(Recording.from_bytes(b'["error"]'), status=502), r"HTTP 502$"),
    "another shape": (Answer(Recording.from_bytes(b'{"error": "x"}'), status=502), r"HTTP 502$"),
}


@pytest.mark.parametrize(("answer", "says"), REFUSED.values(), ids=REFUSED)
def test_an_http_error_is_no_stream(answer: Any, says: str) -> None:
    with serving(answer) as server, pytest.raises(WireError, match=says):
        asked(Upstream(server.url))


def test_the_request_holds_the_messages_and_what_else_was_given() -> None:
    with raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as (url, heard):
        ask = Upstream(url, "a-model", max_tokens=5, headers={"x-api-key": "k"}, system="Be brief.")
        assert asked(ask) == b""
    head, _, body = heard().partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/messages HTTP/1.1\r\n") and b"x-api-key: k" in head
    assert json.loads(body) == {
        "model": "a-model",
        "max_tokens": 5,
        "stream": True,
        "system": "Be brief.",
        "messages": ASKED.request(),
    }


@pytest.mark.parametrize("base", ["", "/", "/v1", "/v1/", "/proxy/v1beta"])
def test_the_version_may_stand_in_the_address_or_not(base: str) -> None:
    with raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as (url, heard):
        asked(Upstream(url + base, wire="openai-chat"))
    prefix = "/proxy" if "proxy" in base else ""
    assert heard().startswith(f"POST {prefix}/v1/chat/completions HTTP/1.1\r\n".encode())


@contextmanager
def raw_server(answer: bytes) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Answers one connection with bytes, whatever it asks, and hangs up."""
    heard = bytearray()

    def serve() -> None:
        talk, _ = listener.accept()
        with talk:
            while b'"stream":true' not in heard:
                heard.extend(talk.recv(65536))
            talk.sendall(answer)
            talk.shutdown(socket.SHUT_WR)
            while talk.recv(65536):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", lambda: bytes(heard)
        thread.join(5)


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH\r\n\r\n", b"\0" * 100 + b"\r\n\r\n"])
def test_what_is_no_http_is_the_wires_fault(answer: bytes) -> None:
    with raw_server(answer) as (url, _), pytest.raises(WireError, match="not HTTP"):
        asked(Upstream(url))


def test_a_connection_that_ends_before_any_answer_was_cut() -> None:
    with raw_server(b"") as (url, _), pytest.raises(ConnectionAbortedError):
        asked(Upstream(url))


# --- A server that would hold a turn without end --------------------------------------------------


@contextmanager
def endless(head: bytes, again: bytes, every: float = 0.0) -> Iterator[str]:
    """Answers one connection with a head, and then with the same again and again, until it ends."""

    def serve() -> None:
        talk, _ = listener.accept()
        with talk, suppress(OSError):
            talk.recv(65536)
            talk.sendall(head)
            while not over.wait(every):
                talk.sendall(again)

    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            thread.join(5)


ERROR = b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n"
HELD_OPEN: dict[str, tuple[tuple[bytes, bytes, float], type[Exception], str]] = {
    "an error without end": (
        (ERROR, b"400\r\n" + b"x" * 1024 + b"\r\n", 0),
        WireError,
        "HTTP 500$",
    ),
    "an error that drips": ((ERROR, b"1\r\nx\r\n", 0.1), WireError, "HTTP 500$"),
    "an error that stays silent": ((ERROR, b"", 0.1), WireError, "HTTP 500$"),
    "provisional answers": (
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0),
        WireError,
        "more than 16 provisional answers",
    ),
    "a few of them, late": ((b"", b"HTTP/1.1 103 X\r\n\r\n", 0.1), TimeoutError, "^$"),
    "a header that drips": ((b"HTTP/1.1 200 OK\r\nX: ", b"a", 0.1), TimeoutError, "^$"),
    "a status line that drips": ((b"HTTP/1.1 200 ", b"O", 0.1), TimeoutError, "^$"),
}


@pytest.mark.parametrize(("sent", "error", "says"), HELD_OPEN.values(), ids=HELD_OPEN)
def test_no_server_holds_a_request_open_without_a_stream(
    sent: tuple[bytes, bytes, float], error: type[Exception], says: str
) -> None:
    async def main(url: str) -> bytes:
        async with asyncio.timeout(8):
            return await all_of(Upstream(url, idle_seconds=0.5)(ASKED.request()))

    with endless(*sent) as url, pytest.raises(error, match=says):
        began = time.monotonic()
        asyncio.run(main(url))
    assert time.monotonic() - began < 5, "else it was our own limit that ended it"


def test_of_an_error_no_more_is_read_than_is_of_use() -> None:
    began = time.monotonic()
    with endless(*HELD_OPEN["an error without end"][0]) as url, pytest.raises(WireError):
        asked(Upstream(url, idle_seconds=8))
    assert time.monotonic() - began < 5, "else it was the time limit that ended it"


def test_a_stream_may_last_longer_than_the_limit_as_long_as_it_goes_on() -> None:
    with serving(HELLO, every=0.05) as server:
        assert asked(Upstream(server.url, idle_seconds=0.3)) == HELLO.data


def test_some_provisional_answers_change_nothing() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\n" * 16
    with raw_server(early + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi") as (url, _):
        assert asked(Upstream(url)) == b"hi"


def test_an_http_error_that_breaks_off_is_an_http_error() -> None:
    broken = b"HTTP/1.1 503 X\r\nContent-Length: 99\r\n\r\n{"
    with raw_server(broken) as (url, _), pytest.raises(WireError, match=r"HTTP 503$"):
        asked(Upstream(url))


def test_what_an_http_error_says_moves_no_cursor() -> None:
    says = {"type": "\x1b[2J", "message": "a\n\u202eb"}
    body = json.dumps({"error": says}).encode()
    answer = Answer(Recording.from_bytes(body), status=400)
    with serving(answer) as server, pytest.raises(WireError) as caught:
        asked(Upstream(server.url))
    assert str(caught.value) == r"HTTP 400, \x1b[2J: a\n\u202eb"


BAD_URLS = ["", "127.0.0.1:80", "ftp://host", "http://", "http://host:x", "http://key@host"]


@pytest.mark.parametrize("url", BAD_URLS)
def test_a_url_that_is_none_is_the_callers_fault(url: str) -> None:
    with pytest.raises(UsageError, match="no URL"):
        Upstream(url)


def test_a_key_is_quoted_nowhere() -> None:
    ask = Upstream("http://127.0.0.1:9", headers={"x-api-key": "secret"})
    assert repr(ask) == "Upstream(http://127.0.0.1:9)"
    for key in ("secret\n", "secret\u20ac"):
        with serving(HELLO) as server, pytest.raises(UsageError) as caught:
            asked(Upstream(server.url, headers={"x-api-key": key}))
        assert "secret" not in str(caught.value)


def test_nobody_there_is_an_interruption_and_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    ended, _ = play(Upstream(f"http://127.0.0.1:{port}"))
    assert ended.state is TurnState.INCOMPLETE
    assert ended.why.startswith("no answer came: ConnectionRefusedError")


def test_an_http_error_makes_a_turn_invalid_and_says_why() -> None:
    with serving(529) as server:
        ended, _ = play(Upstream(server.url))
    assert ended.state is TurnState.INVALID and "HTTP 529, overloaded_error" in ended.why


# --- Hanging up -----------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 5], ids=["before the first byte", "in the middle"])
def test_who_cancels_hangs_up_at_once_and_the_server_knows(after: int) -> None:
    heard = threading.Event()

    def choose(asked: Asked) -> Recording:
        heard.set()
        return faults.disconnect(HELLO, after, "timeout")

    async def main(server: FaultServer) -> str:
        come = asyncio.Event()

        async def reading() -> None:
            async for _ in Upstream(server.url)(ASKED.request()):
                come.set()

        task = asyncio.create_task(reading())
        await (come.wait() if after else asyncio.to_thread(heard.wait, 5))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (served,) = await asyncio.to_thread(server.wait, 1)
        return served.ended

    with FaultServer(choose) as server:
        assert asyncio.run(main(server)) == "client gone"


def test_who_stops_reading_hangs_up_too() -> None:
    async def main(server: FaultServer) -> str:
        async with aclosing(Upstream(server.url)(ASKED.request())) as stream:  # type: ignore[type-var]
            async for _ in stream:
                break
        (served,) = await asyncio.to_thread(server.wait, 1)
        return served.ended

    with serving(faults.disconnect(HELLO, 5, "timeout")) as server:
        assert asyncio.run(main(server)) == "client gone"


# --- Recordings in memory -------------------------------------------------------------------------


def test_a_replay_gives_its_recordings_in_turn_and_keeps_the_requests() -> None:
    ask = Replay(*rounds.lookup_then_answer())
    ended, _ = play(ask)
    assert ended.state is TurnState.ANSWERED
    assert [len(messages) for messages in ask.requests] == [1, 3]


HOW_SAID = {
    "eof": "ended cleanly",
    "cut": "was cut",
    "reset": "was reset",
    "timeout": "too long",
    "cancelled": "was cut",  # what it would have read on is unknown
}


@pytest.mark.parametrize("ending", HOW_SAID)
def test_a_replay_stops_as_its_recording_stopped(ending: str) -> None:
    cancelled = ending == "cancelled"
    cut = faults.cancel(HELLO, 5) if cancelled else faults.disconnect(HELLO, 5, ending)
    ended, _ = play(Replay(cut))
    assert ended.state is TurnState.INCOMPLETE
    assert [round.turn.text for round in ended.rounds] == ["Hello! What"]
    assert HOW_SAID[ending] in ended.why


def test_a_replay_that_has_no_recording_left_says_so() -> None:
    with pytest.raises(UsageError, match="no recording for request 1"):
        asked(Replay())


# --- The recordings of turns ----------------------------------------------------------------------

TURNS = {
    "lookup_then_answer": (rounds.lookup_then_answer(), TurnState.ANSWERED, 2),
    "two_at_once": (rounds.two_at_once(), TurnState.ANSWERED, 2),
    "one_after_another": (rounds.one_after_another(), TurnState.ANSWERED, 5),
    "for_ever": (rounds.for_ever(), TurnState.REPEATING, 3),
    "lookup_then_proposal": (rounds.lookup_then_proposal(), TurnState.PROPOSED, 2),
}


@pytest.mark.parametrize(("turn", "state", "streams"), TURNS.values(), ids=TURNS)
def test_each_turn_of_several_answers_ends_as_it_says(
    turn: tuple[Recording, ...], state: TurnState, streams: int
) -> None:
    ended, _ = play(Replay(*turn))
    assert (ended.state, len(ended.rounds)) == (state, streams)
