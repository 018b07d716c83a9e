"""A browser's EventSource in Python: it reconnects by itself, and only some streams can resume.

`listen(url)` does what the WHATWG standard has a browser do: GET, hand out each event, and when the
connection is over, however that came, wait for the `retry` time and ask again, with the header
`Last-Event-ID`. Only a status other than 200 (204 is the usual one) or another content type ends
it. `EventLog` is a server that can answer such a request: it keeps its events, and each has an id.

With `post=…` the same client asks an API that can't. No real EventSource does that: it knows only
GET, without a body. But it is easy to write, and people do write it.

Read next: `streams/server.py`, whose streams have no ids.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import msgspec

from streamlab.errors import UsageError, WireError
from streamlab.streams.recording import Recording
from streamlab.wire.sse import Frame, SSEDecoder

__all__ = ["Connection", "EventLog", "Listened", "listen"]

#: Milliseconds until the next try: where the stream names none (a browser then waits for some
#: seconds), and at most.
RETRY, MAX_RETRY = 10, 60_000

#: Bounds of one connection: seconds for each read, and bytes.
PATIENCE, MAX_BYTES = 5.0, 1024 * 1024

STREAM = "text/event-stream"


class Connection(msgspec.Struct, frozen=True):
    """One request, and what came of it. `str()` says it in one line."""

    asked: str  #: method and path
    last_event_id: str  #: what the header said; "" where it was not sent
    status: int  #: 0 where no answer came
    frames: tuple[Frame, ...]  #: the events that it brought
    ended: str  #: "eof", "cut", or "closed": after that one it is not tried again

    def __str__(self) -> str:
        header = f", Last-Event-ID: {self.last_event_id}" if self.last_event_id else ""
        return f"{self.asked}{header}: {self.status}, {len(self.frames)} events, {self.ended}"


class Listened(msgspec.Struct, frozen=True):
    """What a listener was handed, and over which connections."""

    connections: tuple[Connection, ...]

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The events in order, as a page gets them: it sees no seam."""
        return tuple(frame for each in self.connections for frame in each.frames)

    @property
    def recording(self) -> Recording:
        """The same events as one stream, for a consumer to judge."""
        return Recording.from_bytes(b"".join(map(_written, self.frames)))


def _written(frame: Frame) -> bytes:
    name = b"event: %b\n" % frame.event.encode() if frame.event else b""
    return name + b"".join(b"data: %b\n" % line for line in frame.data.split(b"\n")) + b"\n"


# --- The client -----------------------------------------------------------------------------------


def listen(
    url: str,
    *,
    post: dict[str, Any] | None = None,
    most: int = 5,
    wait: Callable[[float], object] = time.sleep,
) -> Listened:
    """Listen as an EventSource does, over `most` connections at most; `wait` is given seconds."""
    where = urlsplit(url)
    if where.scheme != "http" or where.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise UsageError("only this machine is listened to: http://127.0.0.1 and a port")
    source = _Source()
    made: list[Connection] = []
    while len(made) < most and not (made and made[-1].ended == "closed"):
        if made:
            wait(min(source.retry, MAX_RETRY) / 1000)
        made.append(source.connect(where.hostname, where.port or 80, where.path or "/", post))
    return Listened(tuple(made))


class _Source:
    """What an EventSource remembers from one connection to the next: an id and a time."""

    def __init__(self) -> None:
        self.last_event_id, self.retry = "", RETRY

    def connect(self, host: str, port: int, path: str, post: dict[str, Any] | None) -> Connection:
        """Ask once, and read until the connection is over."""
        sent, method = self.last_event_id, "GET" if post is None else "POST"
        headers = {"accept": STREAM, **({"last-event-id": sent} if sent else {})}
        body = None if post is None else json.dumps(post).encode()
        line = http.client.HTTPConnection(host, port, timeout=PATIENCE)
        frames: list[Frame] = []
        status, ended = 0, "cut"
        try:
            line.request(method, path, body, headers)
            answer = line.getresponse()
            status = answer.status
            ended = self._read(answer, frames, path)
        except (OSError, http.client.HTTPException):
            pass  # the network's fault: it is tried again, whatever it was
        finally:
            line.close()
        return Connection(f"{method} {path}", sent, status, tuple(frames), ended)

    def _read(self, answer: http.client.HTTPResponse, frames: list[Frame], path: str) -> str:
        """Take the events of one answer, and say how it ended. Raises what the network raises."""
        kind = (answer.getheader("content-type") or "").partition(";")[0].strip().lower()
        if answer.status != 200 or kind != STREAM:
            return "closed"
        decoder, size, last = SSEDecoder(), 0, b""
        decoder.last_event_id = self.last_event_id
        while piece := answer.read1(65536):
            size += len(piece)
            if size > MAX_BYTES:
                raise WireError(f"one connection brought more than {MAX_BYTES:,} bytes", path)
            for line in piece.splitlines(keepends=True):  # bytes end a line at CR, LF, CRLF alone
                frames += decoder.feed(line)
                rest_of_crlf = line == b"\n" and last == b"\r"
                if not line.strip(b"\r\n") and last in (b"\r", b"\n") and not rest_of_crlf:
                    self.last_event_id = decoder.last_event_id  # its block is over: now it counts
                last = line[-1:]
            self.retry = self.retry if decoder.retry is None else decoder.retry
        return "eof"


# --- A server that can resume ---------------------------------------------------------------------


class EventLog:
    """`GET /events`: numbered events from after the `Last-Event-ID` on, while its `with` lasts.

    `cuts` says for each connection in turn after how many events it breaks, in the middle of the
    next one; those that follow are whole. Who has everything gets 204: there is no more to come.
    """

    def __init__(
        self, entries: Sequence[str], cuts: Sequence[int] = (), retry: int = RETRY
    ) -> None:
        if any("\n" in entry or "\r" in entry for entry in entries):
            raise UsageError("an entry is one line")
        self._entries, self._cuts, self._retry = tuple(entries), list(cuts), retry
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = False  # so that closing waits for them
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        """Where the events are."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/events"

    def __repr__(self) -> str:
        return f"<EventLog of {len(self._entries)} events>"

    def __enter__(self) -> EventLog:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, at: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, last_event_id: str) -> tuple[bytes, bool] | None:
        """The events after an id, and whether they come whole; None where there is none."""
        known = last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 10
        blocks = [b"id: %d\ndata: %b\n\n" % (n, e.encode()) for n, e in enumerate(self._entries, 1)]
        left = blocks[int(last_event_id) if known else 0 :]
        if not left:
            return None
        retry = b"retry: %d\n\n" % self._retry
        cut = self._cuts.pop(0) if self._cuts else len(left)
        if cut >= len(left):
            return retry + b"".join(left), True
        return retry + b"".join(left[:cut]) + left[cut][: len(left[cut]) // 2], False


def _handler(log: EventLog) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = PATIENCE

        def do_GET(self) -> None:
            self.close_connection = True
            answer = log._answer(self.headers.get("last-event-id", ""))
            if self.path != "/events" or answer is None:
                self.send_response(404 if self.path != "/events" else 204)
                self.send_header("connection", "close")
                self.end_headers()
                return
            data, whole = answer
            self.send_response(200)
            for name, value in (("content-type", STREAM), ("transfer-encoding", "chunked")):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) + (b"0\r\n\r\n" if whole else b""))

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: a notebook's output is the lesson's."""

    return Handler
