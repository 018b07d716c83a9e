"""The fault server at the level of the socket: what it promises, and how it breaks its word."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time

import pytest

from streamlab.errors import UsageError
from streamlab.streams import connection, server
from streamlab.streams.answer import Answer
from streamlab.streams.server import FaultServer
from tests.loopback import (
    BODY,
    HELLO,
    Client,
    ask,
    frames,
    pausing,
    recording,
    request,
    unchunked,
)

FRAMES = frames(HELLO)
WHOLE = recording(*FRAMES)

#: So long a pause never passes in a test: what ends in spite of it did not wait for it.
FOR_EVER = 3600.0


@pytest.mark.parametrize("framing", ["chunked", "close", "length"])
@pytest.mark.parametrize("ending", ["eof", "cut", "reset"])
def test_every_ending_in_every_framing_is_what_the_wire_shows(framing, ending):
    with FaultServer(WHOLE, framing=framing, ending=ending) as local:
        head, body, stopped = ask(local.url, request())
        (served,) = local.wait(1)
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    data, complete = body, True
    if framing == "chunked":
        data, complete = unchunked(body)
    elif framing == "length":
        complete = int(headers["content-length"]) == len(body)
    assert data == HELLO
    assert stopped == ("reset" if ending == "reset" else "eof")
    # Where only the connection's end ends the body, a cut is not to be told from an end.
    assert complete == (ending == "eof" or framing == "close")
    assert served.ended == {"eof": "sent all"}.get(ending, ending)
    assert (served.chunks, served.bytes) == (len(FRAMES), len(HELLO))


def test_a_timeout_keeps_the_connection_open_and_says_nothing_more():
    with FaultServer(recording(FRAMES[0], ending="timeout")) as local:
        with Client(local.url, request()) as client:
            client.read_until(FRAMES[0] + b"\r\n")
            client.socket.settimeout(0.05)
            with pytest.raises(TimeoutError):
                client.socket.recv(1)
            assert local.log == ()
        (served,) = local.wait(1)
    assert str(served).endswith(f"client gone after chunk 1 ({len(FRAMES[0])} bytes)")


def test_the_answer_looks_like_the_apis():
    with FaultServer(WHOLE) as local:
        head, _, _ = ask(local.url, request())
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"content-type: text/event-stream; charset=utf-8" in head
    assert b"request-id: req_streamlab_0001" in head


def test_each_chunk_is_one_http_chunk():
    with FaultServer(recording(b"a", b"", b"bc")) as local:
        _, body, _ = ask(local.url, request())
    assert body == b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"


def test_an_error_before_the_stream_is_json_with_its_status():
    with FaultServer(529) as local:
        head, body, stopped = ask(local.url, request())
    assert head.startswith(b"HTTP/1.1 529")
    assert json.loads(body)["error"]["type"] == "overloaded_error"
    assert stopped == "eof"


def test_leaving_is_noticed_before_the_next_chunk():
    with FaultServer(pausing(*FRAMES), speed=1.0) as local:
        with Client(local.url, request()) as client:
            client.read_until(FRAMES[-2])
        (served,) = local.wait(1)
    assert (served.ended, served.chunks) == ("client gone", len(FRAMES) - 1)


def test_leaving_ends_a_pause_at_once():
    with FaultServer(WHOLE, every=FOR_EVER) as local:
        with Client(local.url, request()) as client:
            client.read_until(FRAMES[0])
        (served,) = local.wait(1)
    assert (served.ended, served.chunks) == ("client gone", 1)


def test_a_client_that_tears_the_connection_down_has_left_too():
    with FaultServer(WHOLE, every=FOR_EVER) as local:
        with Client(local.url, request()) as client:
            client.read_until(FRAMES[0])
            linger = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        (served,) = local.wait(1)
    assert (served.ended, served.chunks) == ("client gone", 1)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"every": FOR_EVER}, id="in a pause"),
        pytest.param({"ending": "timeout"}, id="in a stall"),
    ],
)
def test_stopping_hangs_up_at_once_and_leaves_no_thread(how):
    before = threading.active_count()
    with FaultServer(WHOLE, **how) as local, Client(local.url, request()) as client:
        client.read_until(FRAMES[0])
        local.stop()
        _, stopped = client.read_all()
        assert stopped == "eof"
    assert [served.ended for served in local.log] == ["server stopped"]
    assert threading.active_count() == before


def test_stopping_hangs_up_on_a_client_that_does_not_read():
    huge = recording(b": " + b"x" * 64_000_000)
    with FaultServer(huge) as local, Client(local.url, request()) as client:
        client.read_until(b"\r\n\r\n")
        local.stop()
    assert [(served.ended, served.chunks) for served in local.log] == [("server stopped", 0)]


def test_several_clients_are_served_at_once():
    with FaultServer(WHOLE, every=0.0, ending="timeout") as local:
        clients = [Client(local.url, request()) for _ in range(8)]
        for client in clients:  # none of them is over when the next one is served
            client.read_until(FRAMES[-1])
            assert local.log == ()
        for client in clients:
            client.socket.close()
        log = local.wait(8)
    assert sorted(served.asked.number for served in log) == list(range(1, 9))


def test_a_model_chooses_its_recording():
    other = recording(b"data: other\n\n")
    with FaultServer({"hello": WHOLE, "other": other}, framing="close") as local:
        body = json.dumps({"model": "streamlab/other", "stream": True}).encode()
        assert ask(local.url, request(body))[1] == other.data
        assert ask(local.url, request())[0].startswith(b"HTTP/1.1 404")
    assert [served.asked.model for served in local.log] == ["streamlab/other", "claude-test"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400, id="TLS"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 403, id="HTTP/2"),
        pytest.param(b"\r\n\r\n\r\nhello\r\n\r\n", 400, id="no request"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", 400, id="no host"),
        pytest.param(b"GET / HTTP/1.0\r\n\r\n", 403, id="no host in HTTP/1.0"),
        pytest.param(request(line=b"GET / HTTP/1.1", host=b"evil.example"), 403, id="rebinding"),
        pytest.param(request(host=b"evil.example:80"), 403, id="rebinding to the stream"),
        pytest.param(request(b"{"), 400, id="half a body"),
        pytest.param(request(b"[" * 200_000), 400, id="deep body"),
        pytest.param(request(b'{"stream": false}'), 400, id="no stream"),
        pytest.param(request(b'{"stream": 1, "model": 2}'), 400, id="wrong types"),
        pytest.param(request(line=b"DELETE / HTTP/1.1"), 404, id="method"),
        pytest.param(request(more=b"X: " + b"x" * 200_000 + b"\r\n"), 431, id="head too large"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n"
            + b"x" * 9_000_000,
            413,
            id="body too large",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
            400,
            id="bad chunk",
        ),
    ],
)
def test_a_bad_request_gets_a_status_and_the_server_lives_on(sent, status):
    with FaultServer(WHOLE) as local:
        head, body, stopped = ask(local.url, sent)
        assert head.startswith(b"HTTP/1.1 %d " % status)
        assert json.loads(body)["type"] == "error"
        assert stopped == "eof"
        assert ask(local.url, request())[0].startswith(b"HTTP/1.1 200")
    assert [served.status for served in local.log] == [status, 200]


def test_a_request_that_never_ends_gets_a_status_in_the_end(monkeypatch):
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.05)
    with FaultServer(WHOLE) as local:
        head, _, _ = ask(local.url, request()[:-1])
    assert head.startswith(b"HTTP/1.1 408")


def test_a_connection_that_asks_nothing_leaves_no_trace():
    with FaultServer(WHOLE) as local:
        with Client(local.url):
            pass
        ask(local.url, request())
        log = local.wait(1)
    assert [served.asked.path for served in log] == ["/v1/messages"]


def test_one_connection_too_many_is_refused(monkeypatch):
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 2)
    with FaultServer(WHOLE, ending="timeout") as local:
        with Client(local.url, request()) as one, Client(local.url, request()) as two:
            for client in (one, two):
                client.read_until(FRAMES[-1])
            assert ask(local.url, request())[0].startswith(b"HTTP/1.1 503")
        local.wait(3)
        with Client(local.url, request()) as three:
            assert three.read_until(b"\r\n").startswith(b"HTTP/1.1 200")


def test_a_client_that_waits_for_leave_to_send_its_body_gets_it():
    head, _, body = request(more=b"Expect: 100-continue\r\n").partition(b"\r\n\r\n")
    with FaultServer(WHOLE) as local, Client(local.url, head + b"\r\n\r\n") as client:
        client.read_until(b"HTTP/1.1 100 Continue\r\n\r\n")
        client.socket.sendall(body)
        assert b"HTTP/1.1 200 OK" in client.read_all()[0]


def test_http_1_0_gets_no_chunks_because_it_knows_none():
    with FaultServer(WHOLE) as local:
        head, body, _ = ask(local.url, request(line=b"POST /v1/messages HTTP/1.0"))
    assert b"transfer-encoding" not in head
    assert body == HELLO


def test_no_key_is_kept():
    more = b"X-Api-Key: sk-secret\r\nAuthorization: Bearer sk-secret\r\nUser-Agent: me\r\n"
    line = b"POST /v1/messages?key=sk-secret HTTP/1.1"
    with FaultServer(WHOLE) as local:
        ask(local.url, request(line=line, more=more))
    (served,) = local.log
    assert "sk-secret" not in repr(served)
    assert dict(served.asked.headers) == {
        "host": "localhost",
        "content-length": str(len(BODY)),
        "x-api-key": "(hidden)",
        "authorization": "(hidden)",
        "user-agent": "me",
    }
    assert served.asked.path == "/v1/messages"


def test_the_log_says_when_by_a_clock_that_starts_with_the_server():
    with FaultServer([WHOLE, 529]) as local:
        ask(local.url, request())
        ask(local.url, request())
    first, second = local.log
    assert 0 <= first.asked.t <= first.end_t <= second.asked.t <= second.end_t
    assert [str(served) for served in local.log] == [
        f"#1 POST /v1/messages: 200, sent all after chunk {len(FRAMES)} ({len(HELLO):,} bytes)",
        f"#2 POST /v1/messages: 529, sent all after chunk 1 ({second.bytes} bytes)",
    ]


@pytest.mark.parametrize("host", ["0.0.0.0", "", "localhost", "::", "192.168.0.1"])
def test_it_binds_to_loopback_only(host):
    with pytest.raises(UsageError, match="loopback"):
        FaultServer(WHOLE, host=host)


def test_it_speaks_ipv6_where_there_is_one():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 loopback here")
    with FaultServer(WHOLE, host="::1") as local:
        assert local.url.startswith("http://[::1]:")
        assert ask(local.url, request(host=b"[::1]:80"))[0].startswith(b"HTTP/1.1 200")


def test_a_port_that_is_taken_is_one_clear_line():
    with FaultServer(WHOLE) as local:
        port = int(local.url.rpartition(":")[2])
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1, port {port}"):
            FaultServer(WHOLE, port=port).start()


def test_a_server_has_an_address_only_while_it_runs_and_can_run_again():
    local = FaultServer(WHOLE)
    for _ in range(2):
        with pytest.raises(UsageError, match="before it is started"):
            _ = local.url
        with local:
            assert ask(local.url, request())[0].startswith(b"HTTP/1.1 200")
            with pytest.raises(UsageError, match="running already"):
                local.start()
    local.stop()
    assert [served.asked.number for served in local.log] == [1, 2]


def test_serving_for_ever_shows_each_request_and_ends_with_ctrl_c():
    local = FaultServer(WHOLE).start()
    shown = []

    def show(served):
        shown.append(served.asked.number)
        if len(shown) == 2:
            raise KeyboardInterrupt
        threading.Thread(target=ask, args=(local.url, request())).start()

    threading.Thread(target=ask, args=(local.url, request())).start()
    local.serve_forever(show)
    assert shown == [1, 2]
    assert repr(local) == "<FaultServer not started>"


def test_ctrl_c_loses_no_requests_line():
    local = FaultServer(WHOLE).start()
    for _ in range(3):
        ask(local.url, request())
    local.wait(3)
    shown = []

    def show(served):
        shown.append(served.asked.number)
        if len(shown) == 1:
            raise KeyboardInterrupt

    local.serve_forever(show)
    assert shown == [1, 2, 3]


def test_starting_and_stopping_under_fire_leaves_nothing_behind():
    def knock(url):
        while not done.is_set():
            try:
                ask(url, request())
            except (OSError, ValueError):
                time.sleep(0.001)

    for _ in range(20):
        done = threading.Event()
        with FaultServer(WHOLE) as local:
            threads = [threading.Thread(target=knock, args=(local.url,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            local.wait(3)
        done.set()
        for thread in threads:
            thread.join()


def test_an_answer_of_its_own_stands_beside_recordings():
    slow = Answer(WHOLE, ending="cut", framing="length")
    with FaultServer([WHOLE, slow]) as local:
        assert unchunked(ask(local.url, request())[1]) == (HELLO, True)
        assert ask(local.url, request())[1] == HELLO
    assert [served.ended for served in local.log] == ["sent all", "cut"]


# ---- an answer that is none


class Unshowable(Exception):
    def __repr__(self) -> str:
        raise ValueError("not even this")


def raising(error):
    def choose(asked):
        raise error

    return choose


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(lambda asked: Answer("x"), id="no recording"),
        pytest.param(recording("a str"), id="a chunk that is no bytes"),
        pytest.param(raising(Unshowable()), id="an exception without a repr"),
        pytest.param(raising(SystemExit(3)), id="sys.exit"),
        pytest.param(raising(KeyboardInterrupt()), id="KeyboardInterrupt"),
    ],
)
def test_a_bad_answer_is_a_500_and_the_server_lives_on(answers):
    with FaultServer(answers) as local:
        for number in (1, 2):
            head, body, _ = ask(local.url, request())
            assert head.startswith(b"HTTP/1.1 500 ")
            assert json.loads(body)["error"]["type"] == "api_error"
            assert local.wait(number)[-1].status == 500


def test_an_answer_that_turns_bad_midway_is_logged_as_the_servers_error():
    with FaultServer([recording(FRAMES[0], "a str"), WHOLE]) as local:
        _, body, _ = ask(local.url, request())
        assert unchunked(body) == (FRAMES[0], False)
        assert ask(local.url, request())[0].startswith(b"HTTP/1.1 200 ")
        first, second = local.wait(2)
    assert (first.ended, first.chunks, second.ended) == ("server error", 1, "sent all")


def test_a_server_whose_loop_has_died_closes_its_listener_and_can_be_stopped(monkeypatch):
    async def die(listener):
        """End at once, and leave everything to whoever called."""

    local = FaultServer(WHOLE)
    monkeypatch.setattr(local, "_listen", die)
    local.start()
    address = local._address
    local._thread.join()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    local.stop()


def test_a_fault_of_the_server_itself_costs_one_connection(monkeypatch):
    async def fail(reader, writer):
        raise ZeroDivisionError

    with FaultServer(WHOLE) as local:
        with monkeypatch.context() as patched:
            patched.setattr(server, "hear", fail)
            ask(local.url, request())
            assert local.wait(1)[0].ended == "server error"
        assert ask(local.url, request())[0].startswith(b"HTTP/1.1 200 ")


# --- The history in a request ---------------------------------------------------------------------


def asking(*messages: object, **more: object) -> bytes:
    return json.dumps({"model": "m", "stream": True, "messages": messages, **more}).encode()


ASKED = {"role": "user", "content": "Hello"}
HALF_CALL = {"type": "tool_use", "id": "t1", "name": "pay", "input": '{"amount": 1'}
#: What a server that checks histories refuses, and what it says.
REFUSED = {
    "half a tool call": (
        asking(ASKED, {"role": "assistant", "content": [HALF_CALL]}, ASKED),
        "turn 1, message 2 (assistant): block 1: half a tool call: it has no id, no name, or an "
        "input that is no object",
    ),
    "unsigned thinking": (
        asking(ASKED, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}),
        "turn 1, message 2 (assistant): block 1: thinking without a signature: "
        "it was cut off, or changed",
    ),
    "blank text": (
        asking({"role": "user", "content": " "}),
        "turn 1, message 1 (user): block 1: the text is blank",
    ),
    "no messages": (asking(), "messages: there is none"),
    "messages that are none": (
        b'{"stream": true, "messages": "hello"}',
        "messages: this must be a list of objects",
    ),
    "a body without any": (b'{"stream": true}', "messages: this must be a list of objects"),
}


@pytest.mark.parametrize(("body", "says"), REFUSED.values(), ids=REFUSED)
def test_a_history_that_the_api_would_refuse_is_refused_before_any_answer(body, says):
    with FaultServer(WHOLE, check_history=True) as local:
        head, answer, _ = ask(local.url, request(body))
        (served,) = local.wait(1)
    assert head.startswith(b"HTTP/1.1 400 ")
    expected = {"type": "invalid_request_error", "message": says}
    assert json.loads(answer) == {"type": "error", "error": expected}
    assert served.status == 400


@pytest.mark.parametrize("body", [body for body, _ in REFUSED.values()], ids=REFUSED)
def test_histories_are_looked_at_only_where_that_is_asked_for(body):
    with FaultServer(WHOLE) as local:
        head, _, _ = ask(local.url, request(body))
    assert head.startswith(b"HTTP/1.1 200 ")


def test_a_refused_history_uses_no_answer_up_and_a_good_one_gets_it():
    with FaultServer([recording(b"first"), recording(b"second")], check_history=True) as local:
        assert ask(local.url, request(asking()))[0].startswith(b"HTTP/1.1 400 ")
        _, body, _ = ask(local.url, request(asking(ASKED)))
    assert unchunked(body) == (b"first", True)


#: Who is refused for something else, and with what.
ELSE_REFUSED = {
    "a foreign host": (request(asking(), host=b"evil.example"), b"403"),
    "another path": (request(asking(), line=b"POST /v1/other HTTP/1.1"), b"404"),
    "no stream": (request(asking(ASKED, stream=False)), b"400"),
    "half a body": (request(asking(ASKED)[:-1]), b"400"),
    "a page": (request(b"", line=b"GET / HTTP/1.1"), b"200"),
}


@pytest.mark.parametrize(("sent", "status"), ELSE_REFUSED.values(), ids=ELSE_REFUSED)
def test_the_history_is_looked_at_last_so_that_who_may_not_ask_costs_nothing(
    sent, status, monkeypatch
):
    looked = []
    monkeypatch.setattr(server, "history_refused", looked.append)
    with FaultServer(WHOLE, check_history=True) as local:
        assert ask(local.url, sent)[0].startswith(b"HTTP/1.1 " + status)
        assert looked == []
        assert ask(local.url, request(asking(ASKED)))[0].startswith(b"HTTP/1.1 200 ")
    assert looked == [asking(ASKED)]


@pytest.mark.parametrize("size", [1000, 1_000_000, 4_000_000])
def test_a_history_of_any_real_size_is_answered(size):
    long = [{**ASKED, "content": "x" * (size // 4)}] * 4
    with FaultServer(WHOLE, check_history=True) as local:
        assert ask(local.url, request(asking(*long)))[0].startswith(b"HTTP/1.1 200 ")


def test_a_large_history_makes_nobody_wait_but_the_next_large_one(monkeypatch):
    looked, came, go_on = [], threading.Event(), threading.Event()

    def slow(body):
        if len(body) > 1000:
            looked.append(body)
            came.set()
            assert go_on.wait(10)

    monkeypatch.setattr(server, "history_refused", slow)
    large = request(asking({**ASKED, "content": "x" * 100_000}))
    with (
        FaultServer(WHOLE, check_history=True) as local,
        Client(local.url, large) as one,
        Client(local.url, large) as two,
    ):
        assert came.wait(10)
        for number in range(1, 4):
            assert ask(local.url, request(asking(ASKED)))[0].startswith(b"HTTP/1.1 200 ")
            assert len(local.wait(number)) == number
        assert len(looked) == 1
        go_on.set()
        for client in (one, two):
            assert client.read_until(b"\r\n").startswith(b"HTTP/1.1 200 ")
    assert len(looked) == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(asking({**ASKED, "content": "x" * 4_194_304}), b"413", id="too large a one"),
        pytest.param(asking({**ASKED, "content": " " * 4_000_000}), b"400", id="a large one"),
        pytest.param(b'{"stream": true, "messages": ' + b"[" * 5000, b"400", id="a deep one"),
        pytest.param(b'{"stream": true, "messages": [{"a": "\\ud800"}]}', b"400", id="no UTF-16"),
        pytest.param(
            asking(ASKED, {"role": "assistant", "content": [{**HALF_CALL, "id": "x" * 9000}]}),
            b"400",
            id="a long id",
        ),
    ],
)
def test_a_hostile_history_is_refused_in_few_words(body, status):
    with FaultServer(WHOLE, check_history=True) as local:
        head, answer, _ = ask(local.url, request(body))
        served = local.wait(1)[0]
    assert head.startswith(b"HTTP/1.1 " + status)
    assert len(answer) < 500
    assert served.ended == "sent all"


def test_nothing_of_a_history_is_kept():
    with FaultServer(WHOLE, check_history=True) as local:
        ask(local.url, request(asking({"role": "user", "content": "my secret"})))
        ask(local.url, request(asking({"role": "assistant", "content": [{"my secret": 1}]})))
        log = local.wait(2)
    assert "my secret" not in repr(log)
