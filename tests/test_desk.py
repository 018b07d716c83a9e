"""The desk: an effect happens once under its key or not at all, and the desk can be asked which."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from streamlab.consumer.attempt import Attempt, State
from streamlab.consumer.commit import Record, Refusal, commit, reconcile
from streamlab.consumer.gates import Proposal
from streamlab.errors import UsageError
from streamlab.streams.desk import FAULTS, Asked, Desk, DeskClient

READY = Attempt(State.VALIDATED_PROPOSAL, "every gate passed", "attempt-7")


def change(label: str = "Ready", item: str = "W-7") -> tuple[Proposal, ...]:
    return (Proposal("call-1", "change_label", {"item": item, "label": label}),)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One process for the tests that leave it alive; each uses keys of its own."""
    with Desk(tmp_path_factory.mktemp("desk") / "desk.db") as running:
        yield running


def changed(desk: Desk, item: str = "W-7") -> int:
    return desk.items()[item].times


def gone(desk: Desk) -> bool:
    """Whether its process has ended, given a moment."""
    until = time.monotonic() + 10
    while desk.running and time.monotonic() < until:
        time.sleep(0.005)
    return not desk.running


# --- One key, one effect --------------------------------------------------------------------------


def test_an_effect_changes_the_item_and_gives_a_record(shared: Desk) -> None:
    before = changed(shared)
    assert shared.client().submit("once", change("Ready")) == Record("once", change("Ready"))
    item = shared.items()["W-7"]
    assert (item.label, item.owner, item.times) == ("Ready", "ada", before + 1)


def test_a_key_that_is_submitted_again_gives_the_first_record_and_changes_nothing(
    shared: Desk,
) -> None:
    client, before = shared.client(), changed(shared)
    first, second = (client.submit("twice", change()) for _ in range(2))
    assert first == second == client.find("twice") == Record("twice", change())
    assert changed(shared) == before + 1


def test_two_keys_are_two_effects_and_are_seen_as_two(shared: Desk) -> None:
    client, before = shared.client(), changed(shared)
    client.submit("payment-1", change("Paid"))
    client.submit("payment-2", change("Paid"))
    assert changed(shared) == before + 2


@pytest.mark.parametrize("other", [change("Other"), change(item="W-8"), change() * 2], ids=str)
def test_other_proposals_under_a_used_key_are_refused(
    shared: Desk, other: tuple[Proposal, ...]
) -> None:
    client = shared.client()
    client.submit("used", change())
    before = shared.items()
    assert client.submit("used", other) == Refusal("used was used for another effect")
    assert shared.items() == before


def test_a_closed_key_is_refused_for_ever_even_after_a_restart(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        client = desk.client()
        assert client.close("given-up") is None
        assert client.submit("given-up", change()) == Refusal("given-up is closed")
        desk.restart()
        assert client.submit("given-up", change()) == Refusal("given-up is closed")
        assert client.find("given-up") is client.close("given-up") is None
        assert changed(desk) == 0


def test_closing_a_key_that_was_used_gives_its_record_and_takes_nothing_back(shared: Desk) -> None:
    client = shared.client()
    record = client.submit("kept", change())
    assert client.close("kept") == client.find("kept") == record
    assert client.submit("kept", change()) == record


def test_all_changes_of_a_key_happen_or_none(shared: Desk) -> None:
    client, before = shared.client(), shared.items()
    both = (*change("A", "W-7"), *change("B", "W-99"))
    assert client.submit("half", both) == Refusal("there is no such work item")
    assert shared.items() == before
    client.submit("whole", (*change("A", "W-7"), *change("B", "W-8")))
    assert [shared.items()[id].label for id in ("W-7", "W-8")] == ["A", "B"]


BAD = {
    "nothing": (),
    "another tool": (Proposal("c", "delete_item", {"item": "W-7"}),),
    "no label": (Proposal("c", "change_label", {"item": "W-7"}),),
    "a label of another type": (Proposal("c", "change_label", {"item": "W-7", "label": 7}),),
    "an empty label": change(""),
    "a long label": change("x" * 41),
    "one more field": (
        Proposal("c", "change_label", {"item": "W-7", "label": "x", "owner": "me"}),
    ),
    "an unknown item": change(item="W-99"),
    "SQL": change(item="W-7' OR '1'='1"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_the_desk_cannot_do_is_refused_and_its_key_closed(shared: Desk, name: str) -> None:
    client, before = shared.client(), shared.items()
    assert isinstance(client.submit(f"bad {name}", BAD[name]), Refusal)
    assert client.submit(f"bad {name}", change()) == Refusal(f"bad {name} is closed")
    assert shared.items() == before


KEYS = [
    "a/b",
    "..",
    "a b",
    "ключ",
    "%2F",
    "?x=1#y",
    "'; DROP TABLE effects",
    "a\r\nHost: b",
    "k" * 200,
]


@pytest.mark.parametrize("key", KEYS, ids=ascii)
def test_a_key_may_be_any_text(shared: Desk, key: str) -> None:
    client = shared.client()
    assert client.submit(key, change()) == Record(key, change()) == client.find(key)


def test_many_callers_of_one_key_make_one_effect(shared: Desk) -> None:
    before, answers = changed(shared), []
    start = threading.Barrier(8)

    def call() -> None:
        start.wait()
        answers.append(shared.client().submit("crowd", change()))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [Record("crowd", change())] * 8
    assert changed(shared) == before + 1


# --- What it can be told to do wrong --------------------------------------------------------------

#: Fault -> whether the effect has happened, and whether the process has ended.
WRONG = {
    "fail_before": (False, False),
    "fail_after": (True, False),
    "mute_after": (True, False),
    "die_before": (False, True),
    "die_after": (True, True),
}


def test_every_fault_is_in_the_table() -> None:
    assert set(FAULTS) == {*WRONG, "slow"}


@pytest.mark.parametrize("fault", WRONG)
def test_no_answer_is_an_error_whether_it_was_done_or_not_and_can_be_asked_for(
    tmp_path: Path, fault: str
) -> None:
    done, dies = WRONG[fault]
    with Desk(tmp_path / "desk.db") as desk:
        client = desk.client()
        desk.misbehave(fault)
        unknown = commit(READY, change(), client)
        assert unknown.state is State.RECONCILING
        if dies:
            assert gone(desk)
            assert reconcile(unknown, client) is unknown  # nobody there to ask
            desk.restart()
        settled = reconcile(unknown, client)
        assert settled.state is (State.COMMITTED if done else State.ABORTED)
        assert changed(desk) == int(done)
        assert [asked.what for asked in desk.asked()] == ["submit", "close"]


def test_a_fault_is_met_once(shared: Desk) -> None:
    client = shared.client()
    shared.misbehave("fail_before")
    with pytest.raises(OSError, match="HTTP 500"):
        client.submit("unlucky", change())
    assert client.submit("lucky", change()) == Record("lucky", change())


def test_what_is_still_under_way_when_its_key_is_closed_is_never_done(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        desk.misbehave("slow", 0.4)
        unknown = commit(READY, change(), desk.client(timeout=0.05))
        assert unknown.state is State.RECONCILING
        assert reconcile(unknown, desk.client()).state is State.ABORTED
        time.sleep(0.6)  # now it has woken up
        assert changed(desk) == 0


def test_a_slow_desk_does_it_all_the_same(shared: Desk) -> None:
    shared.misbehave("slow", 0.05)
    started = time.monotonic()
    assert shared.client().submit("slowly", change()) == Record("slowly", change())
    assert time.monotonic() - started >= 0.05


def test_a_fault_that_there_is_not_is_a_usage_error(shared: Desk) -> None:
    with pytest.raises(UsageError, match=r"no fault 'explode': slow, fail_before"):
        shared.misbehave("explode")


# --- What is no answer of a desk ------------------------------------------------------------------


def liar(answer: bytes) -> tuple[str, threading.Thread]:
    """A server that says the same to one client, whatever it is asked."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listening, listening.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}", thread


def http_answer(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status.encode(), size, body)


LIES = {
    "not HTTP": b"hello\r\n\r\n",
    "nothing": b"",
    "half a body": http_answer(b'{"record": nu', length=100),
    "not JSON": http_answer(b"<html>"),
    "another shape": http_answer(b'{"record": 7}'),
    "neither yes nor no": http_answer(b"{}"),
    "a refusal without words": http_answer(b"{}", "410 Gone"),
    "a redirect": http_answer(b"", "302 Found"),
    "not allowed": http_answer(b'{"refused": "a proxy says no"}', "403 Forbidden"),
}


@pytest.mark.parametrize("name", LIES)
def test_what_is_no_answer_of_a_desk_is_a_doubt_and_never_a_refusal(name: str) -> None:
    url, thread = liar(LIES[name])
    with pytest.raises(OSError):
        DeskClient(url, timeout=5).submit("key", change())
    thread.join()


DRIPS = {
    "a header": b"HTTP/1.1 200 OK\r\nX: ",
    "provisional answers": b"",
    "a body": b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n",
    "a body without a length": b"HTTP/1.1 200 OK\r\n\r\n",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
}
AGAIN = {"provisional answers": b"HTTP/1.1 100 Continue\r\n\r\n", "chunks": b"1\r\nx\r\n"}


@pytest.mark.parametrize("name", DRIPS)
def test_an_answer_that_drips_is_waited_for_no_longer_than_one_that_does_not_come(
    name: str,
) -> None:
    def serve() -> None:
        with listening, listening.accept()[0] as connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(DRIPS[name])
            for _ in range(60):
                connection.sendall(AGAIN.get(name, b" "))
                time.sleep(0.05)

    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve)
    thread.start()
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        DeskClient(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=0.4).find("key")
    assert 0.3 < time.monotonic() - began < 2
    thread.join()


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:80", "https://127.0.0.1:1", "http://example.com", "http://localhost/x"]
)
def test_only_this_machine_has_desks(url: str) -> None:
    with pytest.raises(UsageError, match="no address of a desk"):
        DeskClient(url)


# --- The server -----------------------------------------------------------------------------------


def raw(desk: Desk, sent: bytes) -> bytes:
    """What comes back for some bytes; the request's end is marked by closing our side."""
    parts = urlsplit(desk.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def request(desk: Desk, line: str, body: bytes = b"", **headers: str) -> int:
    """The status of one request; an empty header is left out."""
    given = {"Host": urlsplit(desk.url).netloc, "Content_Length": str(len(body)), **headers}
    head = "".join(
        f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items() if value
    )
    answer = raw(desk, f"{line} HTTP/1.1\r\n{head}\r\n".encode() + body)
    return int(answer.split()[1])


BODY = json.dumps(
    [{"call_id": "c", "tool": "change_label", "input": {"item": "W-8", "label": "x"}}]
)

REQUESTS = {
    "another host": ("PUT /effects/h1", {"Host": "example.com"}, 403),
    "no host": ("PUT /effects/h2", {"Host": ""}, 403),
    "another port": ("PUT /effects/h3", {"Host": "127.0.0.1:1"}, 403),
    "a page of a browser": ("PUT /effects/h4", {"Origin": "http://example.com"}, 403),
    "a page of nobody": ("PUT /effects/h5", {"Origin": "null"}, 403),
    "chunked": ("PUT /effects/h6", {"Transfer_Encoding": "chunked"}, 411),
    "a negative length": ("PUT /effects/h7", {"Content_Length": "-1"}, 411),
    "two lengths": ("PUT /effects/h0", {"Content-Length": "1"}, 411),
    "too long": ("PUT /effects/h8", {"Content_Length": "1000001"}, 413),
    "far too long": ("PUT /effects/h9", {"Content_Length": "0" * 9 + "9" * 9}, 413),
    "a long key": ("PUT /effects/" + "k" * 201, {}, 400),
    "no key": ("PUT /effects/", {}, 404),
    "two keys": ("PUT /effects/a/b", {}, 404),
    "a key that is no text": ("PUT /effects/%ff", {}, 400),
    "another path": ("PUT /", {}, 404),
    "no path": ("PUT *", {}, 404),
    "another method": ("POST /effects/h10", {}, 501),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_is_not_for_the_desk_is_refused_and_does_nothing(
    shared: Desk, name: str
) -> None:
    line, headers, status = REQUESTS[name]
    before = shared.items(), shared.asked()
    assert request(shared, line, BODY.encode(), **headers) == status
    assert (shared.items(), shared.asked()) == before


BODIES = {
    "empty": b"",
    "not JSON": b"<html>",
    "another shape": b'{"item": "W-8"}',
    "half a character": b'[{"call_id":"\\ud800","tool":"t","input":{}}]',
    "nested too deep": b"[" * 100_000,
    "not UTF-8": b"[\xff]",
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_none_is_refused_and_the_desk_lives(shared: Desk, name: str) -> None:
    before = shared.items()
    assert request(shared, "PUT /effects/body", BODIES[name]) == 400
    assert shared.items() == before
    assert shared.client().find("body") is None


def test_a_body_that_stops_in_the_middle_does_nothing(shared: Desk) -> None:
    before = shared.items(), shared.asked()
    host = urlsplit(shared.url).netloc
    head = f"PUT /effects/cut HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(BODY) + 1}\r\n\r\n"
    assert raw(shared, (head + BODY).encode()) == b""
    assert (shared.items(), shared.asked()) == before


def test_the_request_that_is_refused_elsewhere_is_a_good_one(shared: Desk) -> None:
    assert request(shared, "PUT /effects/good", BODY.encode()) == 201


def test_the_log_says_what_was_asked_under_which_key_and_holds_no_payload(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        client = desk.client()
        client.submit("a", change("a secret label"))
        client.find("a")
        client.close("b")
        log = desk.asked()
    assert log == [Asked("submit", "a"), Asked("find", "a"), Asked("close", "b")]
    assert "secret" not in repr(log) + repr(client) + repr(desk)


def test_the_process_says_its_address_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "streamlab.streams.desk", str(tmp_path / "desk.db"), "--owned"]
    root = Path(__file__).parents[1]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=root
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        client = DeskClient(url)
        client.submit("a", change("a secret label"))
        client.submit("a", change("another secret"))
        connection = http.client.HTTPConnection(urlsplit(url).netloc)
        connection.request("GET", "/secret", headers={"Host": "secret"})
        connection.getresponse().read()
        connection.close()
        said, cried = process.communicate(timeout=10)  # its standard input ends, and so it does
    assert (said, cried, process.returncode) == ("", "", 0)


# --- The process ----------------------------------------------------------------------------------


def test_a_desk_keeps_its_items_and_its_address_over_a_restart(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        client, url = desk.client(), desk.url
        record = client.submit("a", change())
        desk.restart()
        assert desk.url == url
        assert client.find("a") == record
        assert changed(desk) == 1


def test_after_its_with_block_the_process_is_gone(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        client = desk.client()
        assert repr(desk) == "<Desk desk.db: running>"
    assert not desk.running
    assert repr(desk) == "<Desk desk.db: not running>"
    with pytest.raises(OSError):
        client.find("a")


def test_a_desk_that_runs_cannot_be_started_again(shared: Desk) -> None:
    with pytest.raises(UsageError, match="running already"):
        shared.start()


def test_a_desk_that_is_not_started_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no address before it is started"):
        Desk(tmp_path / "desk.db").client()


def _text(path: Path) -> Path:
    path.write_text("no database at all, but a text of more than a hundred characters" * 9)
    return path


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path, "unable to open"),
        (lambda path: path / "no" / "such" / "folder.db", "unable to open"),
        (lambda path: _text(path / "text.db"), "not a database"),
    ],
    ids=["a directory", "a missing folder", "a text file"],
)
def test_a_file_that_is_none_of_a_desk_is_a_usage_error(tmp_path: Path, make, says: str) -> None:
    desk = Desk(make(tmp_path))
    with pytest.raises(UsageError, match=f"did not start: .*{says}"):
        desk.start()
    assert not desk.running


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no SIGKILL")
def test_a_desk_ends_with_its_owner_however_that_one_ends(tmp_path: Path) -> None:
    script = (
        "import os, signal\nfrom streamlab.streams.desk import Desk\n"
        f"desk = Desk({str(tmp_path / 'desk.db')!r}).start()\nprint(desk.url, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    client, until = DeskClient(done.stdout.strip()), time.monotonic() + 10
    with pytest.raises(OSError):
        while time.monotonic() < until:
            client.find("a")
            time.sleep(0.01)
