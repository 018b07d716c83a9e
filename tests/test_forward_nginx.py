"""What the headers are for, seen with a real nginx in front that buffers and compresses."""

from __future__ import annotations

import os
import socket
import threading
import zlib
from typing import Any

import pytest

from streamlab.streams.connection import Line
from streamlab.streams.forward import Forwarder
from streamlab.streams.forward_frames import BARE, HEADERS, Header
from streamlab.streams.server import FaultServer
from streamlab.streams.upstream import Upstream
from streamlab.study.nginx import Nginx
from tests.loopback import HELLO, frames, pausing
from tests.test_forward import BODY, Steps, names, post, said
from tests.test_forward import events as events_of

pytestmark = pytest.mark.skipif(
    Nginx.program() is None and os.environ.get("CI") != "true", reason="there is no nginx here"
)

#: Buffering is nginx's default and is not mentioned; compression is on for this type too.
COMPRESS = ("gzip on;", "gzip_types text/event-stream;", "gzip_min_length 1;")


class Proxied:
    """A connection to the proxy; `arrived()` is what of the body is new."""

    def __init__(self, proxy: Nginx, sent: bytes) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(proxy.socket)
        self.socket.sendall(sent)
        self.head, self._left = b"", b""
        self._decoder: Any = None

    def read_head(self) -> bytes:
        while b"\r\n\r\n" not in self._left:
            piece = self.socket.recv(65536)
            assert piece, f"no answer: {self._left!r}"
            self._left += piece
        self.head, _, self._left = self._left.partition(b"\r\n\r\n")
        return self.head

    def arrived(self) -> bytes:
        """What lies in the socket now; waits for nothing."""
        self.socket.setblocking(False)
        try:
            while piece := self.socket.recv(65536):
                self._left += piece
        except BlockingIOError:
            pass
        finally:
            self.socket.settimeout(10)
        return self._take()

    def rest(self) -> bytes:
        """Everything up to the end."""
        while piece := self.socket.recv(65536):
            self._left += piece
        return self._take()

    def _take(self) -> bytes:
        if not self.head:
            if b"\r\n\r\n" not in self._left:
                return b""
            self.head, _, self._left = self._left.partition(b"\r\n\r\n")
        data = b""
        while b"\r\n" in self._left:
            size, _, rest = self._left.partition(b"\r\n")
            length = int(size, 16)
            if len(rest) < length + 2:
                break
            data, self._left = data + rest[:length], rest[length + 2 :]
        if b"Content-Encoding: gzip" not in self.head:
            return data
        self._decoder = self._decoder or zlib.decompressobj(zlib.MAX_WBITS | 16)
        return self._decoder.decompress(data)


class Sent:
    """Counts the events that our server has handed to the operating system."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events, self._news, send = 0, threading.Condition(), Line.send

        async def counted(line: Line, data: bytes) -> bool:
            there = await send(line, data)
            with self._news:
                self.events += data.count(b"event: ")
                self._news.notify_all()
            return there

        monkeypatch.setattr(Line, "send", counted)

    def wait(self, events: int) -> None:
        with self._news:
            assert self._news.wait_for(lambda: self.events >= events, 10)


def pass_through(proxy: Nginx) -> None:
    """Fetch a file through the proxy, which has one worker.

    What our server sent before that was there before this, so the worker has seen it, and what it
    would pass on at once, it has passed on.
    """
    fetched = Proxied(proxy, post(b"", "Connection: close", line="GET /page.css HTTP/1.1"))
    assert fetched.read_head().startswith(b"HTTP/1.1 200")
    fetched.rest()
    fetched.socket.close()


def arrivals(
    monkeypatch: pytest.MonkeyPatch, headers: tuple[Header, ...], more: str
) -> tuple[list[list[str]], dict[str, str]]:
    """Send a turn event by event; say which events had come by each of those moments."""
    steps, sent = Steps(), Sent(monkeypatch)
    blocks = frames(HELLO)
    with (
        Forwarder(steps, headers=headers) as server,
        Nginx(server.url, (*COMPRESS, more)) as proxy,
    ):
        client = Proxied(proxy, post(BODY, "Accept-Encoding: gzip", "Connection: close"))
        groups = []
        for number, block in enumerate(blocks[:5]):  # the first says nothing, each other one event
            steps.give(block)
            sent.wait(max(1, number + 1))
            pass_through(proxy)
            groups.append(names(events_of(client.arrived())))
        steps.give(b"".join(blocks[5:]))
        steps.give()
        groups.append(names(events_of(client.rest())))
        client.socket.close()
    return groups, dict(said(client.head))


ALL = ["RoundStarted", "SegmentOpened", "SegmentGrew", "SegmentGrew", "SegmentStopped"]
END = ["RoundEnded", "TurnEnded"]
ONE_BY_ONE = [*([name] for name in ALL), END]
TOGETHER = [[], [], [], [], [], ALL + END]


def without(name: str) -> tuple[Header, ...]:
    return tuple(header for header in HEADERS if header.name != name)


#: How the proxy asks us. Its default was 1.0 for long, which has no chunks.
OLD, NEW = "proxy_http_version 1.0;", "proxy_http_version 1.1;"

#: A proxy that asks for chunks, and may not compress, passes each on: so two rows stand alone.
ROWS = [
    pytest.param(HEADERS, OLD, ONE_BY_ONE, "identity", id="all of them, 1.0: one by one"),
    pytest.param(HEADERS, NEW, ONE_BY_ONE, "identity", id="all of them, 1.1: one by one"),
    pytest.param(BARE, OLD, TOGETHER, "gzip", id="none, 1.0: together and compressed"),
    pytest.param(BARE, NEW, TOGETHER, "gzip", id="none, 1.1: together and compressed"),
    pytest.param(without("X-Accel-Buffering"), OLD, TOGETHER, "identity", id="buffering alone"),
    pytest.param(without("Content-Encoding"), OLD, ONE_BY_ONE, "gzip", id="compression alone"),
]


@pytest.mark.parametrize(("headers", "more", "groups", "encoding"), ROWS)
def test_with_our_headers_events_pass_a_proxy_one_by_one_and_without_them_together(
    monkeypatch: pytest.MonkeyPatch,
    headers: tuple[Header, ...],
    more: str,
    groups: list[list[str]],
    encoding: str,
) -> None:
    found, answered = arrivals(monkeypatch, headers, more)
    assert found == groups
    assert answered["Content-Encoding"] == encoding


def test_who_leaves_the_proxy_closes_the_stream_behind_too() -> None:
    blocks = frames(HELLO)
    with (
        FaultServer(pausing(*blocks), speed=1.0) as behind,
        Forwarder(Upstream(behind.url)) as server,
        Nginx(server.url, COMPRESS) as proxy,
    ):
        client = Proxied(proxy, post())
        client.read_head()
        client.socket.close()
        (served,) = behind.wait(1)
        (log,) = server.wait(1)
    assert (served.ended, log.ended) == ("client gone", "client gone")
    assert served.chunks < len(blocks)
