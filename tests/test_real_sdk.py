"""What the real Anthropic SDK makes of broken streams, over real sockets, beside our own verdict.

The tables are facts about anthropic 2.14, each of them found by running it. A newer SDK may do
better: then a row fails and says so, and the row and lesson 00 are to be written anew. The second
column is streamlab's verdict on the very bytes and the very ending that this client saw.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import NamedTuple

import anthropic
import pytest

from streamlab.analysis.judge import judge
from streamlab.streams.live import record
from streamlab.streams.recording import Recording
from streamlab.streams.server import FaultServer
from tests.loopback import (
    HELLO,
    MODEL,
    START,
    STOP,
    frames,
    pausing,
    recording,
    sse,
    stopped,
    text,
    tool,
)

ASK = {"model": MODEL, "max_tokens": 64, "messages": [{"role": "user", "content": "Pay INV-17."}]}

#: The intended input was {"path": "/production", "amount": 100000}.
PAY = ("", '{"path": "/production", ', '"amount": 1')
HALF_NUMBER = START + text(0, "I will ", "pay it.") + tool(1, "pay_invoice", *PAY, closed=False)
HALF_STRING = START + tool(0, "change_label", '{"item": "A-17", ', '"label": "In rev', closed=False)
ERROR = sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
NUMBER = '["I will pay it.", {"path": "/production", "amount": 1}]'


class Saw(NamedTuple):
    """What a program gets from the SDK: a message, or an exception; and what was on the wire."""

    outcome: str  #: "stop reason: contents" of the message, or the exception's full name
    error: Exception | None
    snapshot: str  #: what `get_final_message()` gives after the exception
    wire: Recording
    requests: tuple[str, ...]  #: how each one ended for the server


def said(message) -> str:
    contents = [getattr(block, "input", getattr(block, "text", None)) for block in message.content]
    return f"{message.stop_reason}: {json.dumps(contents)}"


def full_name(error: BaseException) -> str:
    kind = type(error)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else (f"{kind.__module__}.{kind.__qualname__}")
    )


def ask_sync(url: str, recorder, timeout: float, retries: int) -> tuple:
    http = anthropic.DefaultHttpxClient(trust_env=False, timeout=timeout)
    with (
        http,
        anthropic.Anthropic(
            base_url=url, api_key="none", http_client=http, max_retries=retries
        ) as client,
    ):
        recorder.attach(client)
        stream = None
        try:
            with client.messages.stream(**ASK) as stream:
                return said(stream.get_final_message()), None, ""
        except Exception as error:
            if stream is None:
                return full_name(error), error, ""
            try:
                return full_name(error), error, said(stream.get_final_message())
            except Exception as again:
                return full_name(error), error, full_name(again)


async def ask_async(url: str, recorder, timeout: float, retries: int) -> tuple:
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False, timeout=timeout)
    async with (
        http,
        anthropic.AsyncAnthropic(
            base_url=url, api_key="none", http_client=http, max_retries=retries
        ) as client,
    ):
        recorder.attach(client)
        stream = None
        try:
            async with client.messages.stream(**ASK) as stream:
                return said(await stream.get_final_message()), None, ""
        except Exception as error:
            if stream is None:
                return full_name(error), error, ""
            try:
                return full_name(error), error, said(await stream.get_final_message())
            except Exception as again:
                return full_name(error), error, full_name(again)


def run_async(*args) -> tuple:
    return asyncio.run(ask_async(*args))


@pytest.fixture(params=[ask_sync, run_async], ids=["sync", "async"])
def client(request) -> Callable[..., tuple]:
    return request.param


def see(client, answers, *, timeout: float = 30.0, retries: int = 0, **how) -> Saw:
    """Ask the server through the SDK, and record what its client got."""
    at_once = (("retry-after-ms", "1"),)
    with FaultServer(answers, headers=at_once, **how) as server, record() as recorder:
        outcome = client(server.url, recorder, timeout, retries)
    wire = recorder.recordings[-1] if recorder.recordings else Recording()
    return Saw(*outcome, wire, tuple(served.ended for served in server.log))


def check(what: str, found: str, expected: str) -> None:
    assert found == expected, (
        f"the SDK now gives {found!r} for {what} (it was {expected!r}, anthropic 2.14; this is"
        f" {anthropic.__version__}): update lesson 00 and this table"
    )


# ---- a clean close: the connection ends as it should, the answer does not


class Clean(NamedTuple):
    data: bytes
    sdk: str  #: what the SDK gives, without complaint
    ours: str  #: what streamlab says of the same bytes


CLEAN = {
    "whole": Clean(HELLO, 'end_turn: ["Hello"]', "MESSAGE_COMPLETE"),
    "inside a number": Clean(HALF_NUMBER, f"None: {NUMBER}", "INCOMPLETE"),
    "inside a string": Clean(HALF_STRING, 'None: [{"item": "A-17"}]', "INCOMPLETE"),
    "before any input": Clean(
        START + tool(0, "pay_invoice", closed=False), "None: [{}]", "INCOMPLETE"
    ),
    "inside a text": Clean(START + text(0, "Hel", "lo")[:-60], 'None: ["Hello"]', "INCOMPLETE"),
    "after the stop reason": Clean(
        START + text(0, "Hello") + stopped("end_turn"), 'end_turn: ["Hello"]', "INCOMPLETE"
    ),
    "after the stop reason, whole call": Clean(
        START + tool(0, "pay_invoice", '{"amount": 1}') + stopped("tool_use"),
        'tool_use: [{"amount": 1}]',
        "INCOMPLETE",
    ),
    "inside the last frame": Clean(HELLO[:-2], 'end_turn: ["Hello"]', "INCOMPLETE"),
    "token limit inside a number": Clean(
        START + tool(0, "pay_invoice", '{"amount": 1') + stopped("max_tokens") + STOP,
        'max_tokens: [{"amount": 1}]',
        "HELD",
    ),
    "nothing but the start": Clean(START, "None: []", "INCOMPLETE"),
    "no body": Clean(b"", "AssertionError", "INCOMPLETE"),
    "a web page": Clean(b"<html>Bad gateway</html>", "AssertionError", "INVALID"),
    "an error without its event": Clean(
        b'{"type":"error","error":{"type":"api_error","message":"Oops"}}',
        "AssertionError",
        "INVALID",
    ),
}


@pytest.mark.parametrize("framing", ["chunked", "close", "length"])
@pytest.mark.parametrize("name", CLEAN)
def test_what_the_sdk_gives_back_after_a_clean_close(client, name, framing):
    row = CLEAN[name]
    saw = see(client, recording(row.data), framing=framing)
    check(f"a clean close, {name}", saw.outcome, row.sdk)
    assert saw.requests == ("sent all",)
    assert (saw.wire.data, saw.wire.ending) == (row.data, "eof")
    assert judge(saw.wire).state == row.ours


# ---- a connection that breaks


class Broken(NamedTuple):
    ending: str
    framing: str
    sdk: str
    ours: str
    seen: str  #: the ending that a client can see


CUT, RESET, LATE = "httpx2.RemoteProtocolError", "httpx2.ReadError", "httpx2.ReadTimeout"

BROKEN = [
    Broken("cut", "chunked", CUT, "INCOMPLETE", "cut"),
    Broken("cut", "length", CUT, "INCOMPLETE", "cut"),
    # Where the body ends with the connection, a cut is a clean close: nobody can see it.
    Broken("cut", "close", f"None: {NUMBER}", "INCOMPLETE", "eof"),
    Broken("reset", "chunked", RESET, "INCOMPLETE", "reset"),
    Broken("reset", "length", RESET, "INCOMPLETE", "reset"),
    Broken("reset", "close", RESET, "INCOMPLETE", "reset"),
    Broken("timeout", "chunked", LATE, "INCOMPLETE", "timeout"),
    Broken("timeout", "length", LATE, "INCOMPLETE", "timeout"),
    Broken("timeout", "close", LATE, "INCOMPLETE", "timeout"),
]


@pytest.mark.parametrize("row", BROKEN, ids=lambda row: f"{row.ending}-{row.framing}")
def test_what_the_sdk_does_when_the_connection_breaks(client, row):
    timeout = 0.5 if row.ending == "timeout" else 30.0
    saw = see(
        client,
        recording(HALF_NUMBER),
        timeout=timeout,
        retries=2,
        ending=row.ending,
        framing=row.framing,
    )
    check(f"{row.ending} ({row.framing})", saw.outcome, row.sdk)
    check(f"a retry after {row.ending}", str(len(saw.requests)), "1")
    assert (saw.wire.data, saw.wire.ending) == (HALF_NUMBER, row.seen)
    assert judge(saw.wire).state == row.ours


@pytest.mark.parametrize("ending", ["cut", "reset"])
def test_after_an_exception_the_sdk_still_hands_out_the_half_message(client, ending):
    saw = see(client, recording(HALF_NUMBER), ending=ending)
    check("get_final_message() after the exception", saw.snapshot, f"None: {NUMBER}")


def test_a_cut_after_the_last_event_raises_although_the_answer_is_whole(client):
    saw = see(client, recording(HELLO), ending="cut")
    check("a cut after message_stop", saw.outcome, CUT)
    assert judge(saw.wire).state == "MESSAGE_COMPLETE"


def test_headers_that_never_come_are_a_timeout_of_the_sdks_own(client, monkeypatch):
    monkeypatch.setattr("streamlab.streams.connection.head", lambda *_: b"")
    saw = see(client, recording(), ending="timeout", timeout=0.3, retries=1)
    check("headers that never come", saw.outcome, "anthropic.APITimeoutError")
    check("tries for headers that never come", str(len(saw.requests)), "2")


# ---- errors that the provider reports


def test_an_error_event_after_http_200_is_a_plain_status_error_with_status_200(client):
    saw = see(client, recording(HALF_NUMBER), error="overloaded_error", retries=2)
    check("an overloaded_error event", saw.outcome, "anthropic.APIStatusError")
    check("its status", str(saw.error.status_code), "200")
    check("its type", str(saw.error.type), "overloaded_error")
    check("a retry after it", str(len(saw.requests)), "1")
    check("the half message after it", saw.snapshot, f"None: {NUMBER}")
    assert judge(saw.wire).state == "INVALID"


def test_what_follows_an_error_event_is_never_read(client):
    saw = see(client, recording(START + ERROR + text(0, "on") + stopped("end_turn") + STOP))
    check("events after an error", saw.outcome, "anthropic.APIStatusError")
    check("the half message after it", saw.snapshot, "None: []")
    assert judge(saw.wire).state == "INVALID"


def test_an_error_before_the_stream_is_retried_without_a_word(client):
    saw = see(client, [529, 500, recording(HELLO)], retries=2)
    check("529, 500, then a stream", saw.outcome, 'end_turn: ["Hello"]')
    assert saw.requests == ("sent all",) * 3
    assert saw.wire.data == HELLO


@pytest.mark.parametrize(
    ("status", "name", "tries"),
    [
        (400, "anthropic.BadRequestError", 1),
        (401, "anthropic.AuthenticationError", 1),
        (404, "anthropic.NotFoundError", 1),
        (429, "anthropic.RateLimitError", 2),
        (500, "anthropic.InternalServerError", 2),
        (529, "anthropic.OverloadedError", 2),
    ],
)
def test_an_http_error_has_a_class_of_its_own(client, status, name, tries):
    saw = see(client, status, retries=1)
    check(f"HTTP {status}", saw.outcome, name)
    check(f"tries at HTTP {status}", str(len(saw.requests)), str(tries))
    assert saw.wire == Recording(), "an HTTP error has no stream to record"


# ---- a client that leaves


def leave_sync(url: str) -> str:
    http = anthropic.DefaultHttpxClient(trust_env=False)
    client = anthropic.Anthropic(base_url=url, api_key="none", http_client=http)
    with http, client.messages.stream(**ASK) as stream:
        for piece in stream.text_stream:
            return piece
    raise AssertionError("no text came")


async def leave_async(url: str) -> str:
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
    client = anthropic.AsyncAnthropic(base_url=url, api_key="none", http_client=http)
    async with http, client.messages.stream(**ASK) as stream:
        async for piece in stream.text_stream:
            return piece
    raise AssertionError("no text came")


@pytest.mark.parametrize(
    "leave", [leave_sync, lambda url: asyncio.run(leave_async(url))], ids=["sync", "async"]
)
def test_leaving_the_block_closes_the_connection_before_the_next_chunk(leave):
    with FaultServer(pausing(*frames(HELLO)[:4]), speed=1.0) as server:
        assert leave(server.url) == "Hel"
        (served,) = server.wait(1)
    assert (served.ended, served.chunks) == ("client gone", 3)
