"""The local fault server: real HTTP/1.1 on loopback, whose answers break the way you ask.

`FaultServer(recording)` answers a request for a stream, on the path of each of the four wire
formats, with a recording's bytes, whatever they are; then it stops the connection as the recording
was stopped, or as you say. It lives in a thread of its own (`loopback.py`), which gives every
connection a task (`connection.py`), and logs what came of each request (`Served`). Every connection
carries one request. Keys and bodies are never kept.

Read next: `live.py`, which records what a real client gets, from this server or the real one.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Self

import msgspec

from streamlab.streams.answer import (
    Answer,
    Asked,
    Items,
    chooser,
    decide,
    history_refused,
    http_error,
    shaped,
    shown,
    would_be_answered,
)
from streamlab.streams.connection import Heard, Line, asked_of, hear, send
from streamlab.streams.loopback import LoopbackServer
from streamlab.streams.recording import Recording

__all__ = ["Answer", "Asked", "FaultServer", "Served", "http_error"]

#: Connections at a time.
MAX_CONNECTIONS = 64

#: A body of at most so many bytes has its history checked at once.
SMALL_HISTORY = 64 * 1024

#: Seconds for a client to read what it was sent, before we hang up on it.
LINGER_SECONDS = 1.0


class Served(msgspec.Struct, frozen=True):
    """What came of one request. `str()` says it in one line, without times."""

    asked: Asked
    status: int
    chunks: int  #: handed to the operating system for this client
    bytes: int  #: of body, without the framing
    ended: str  #: "sent all", "cut", "reset", "client gone", "server stopped" or "server error"
    end_t: float  #: seconds since the server started, by a monotonic clock

    def __str__(self) -> str:
        what = f"{self.asked.method} {self.asked.path}".strip() or "no request"
        sent = f"{self.ended} after chunk {self.chunks} ({self.bytes:,} bytes)"
        return f"#{self.asked.number} {what}: {self.status}, {sent}"


class FaultServer(LoopbackServer[Served]):
    """A server in a thread of its own, for as long as its `with` block.

    `answers` is a recording, an `Answer`, or an HTTP status (529: that error, before any stream);
    or several of them, served in turn, over and over; or a dict of them, chosen by the request's
    model (`streamlab/NAME` or `NAME`); or a function from `Asked` to one of them. What is said
    here holds for every recording among them (and the headers for an HTTP status too).

    With `check_history`, a request whose messages the API would refuse gets HTTP 400 and the reason
    instead, and uses no answer up: some of the API's rules, in words of ours. They are in
    `consumer/history.py`.
    """

    called = "streamlab fault server"
    grace = 0.05

    def __init__(
        self,
        answers: Items,
        *,
        ending: str | None = None,
        framing: str = "chunked",
        speed: float | None = None,
        every: float | None = None,
        error: str = "",
        headers: tuple[tuple[str, str], ...] = (),
        check_history: bool = False,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        super().__init__(host, port)
        how = Answer(Recording(), ending, framing, speed, every, error, headers=headers)
        self._choose = chooser(answers, how)
        self._check_history = check_history

    def start(self) -> Self:
        """Listen, in a thread of its own."""
        if self._thread is None:
            self._one_large = asyncio.Lock()  # it belongs to one loop, and each start has its own
        return super().start()

    def serve_forever(self, show: Callable[[Served], object] = print) -> None:
        """Serve until Ctrl-C, if need be starting first; `show` gets what came of each request."""
        if self._thread is None:
            self.start()
        seen = 0
        try:
            while True:
                for number, served in self._after(seen, 0.5):
                    seen = number
                    show(served)
        except KeyboardInterrupt:
            self.stop()  # before the last look: what was under way gets its line too
            for _, served in self._after(seen, 0):
                show(served)
        finally:
            self.stop()

    async def _talk(self, connection: socket.socket) -> None:
        """Hear one request and answer it."""
        with contextlib.suppress(OSError):  # a client may tear its connection down at any time
            reader, writer = await asyncio.open_connection(sock=connection)
            try:
                if len(self._talks) > MAX_CONNECTIONS:
                    full = http_error(503, f"more than {MAX_CONNECTIONS} connections at once")
                    heard = Heard(refusal=full)
                else:
                    heard = await hear(reader, writer)
                if heard.head or heard.refusal:
                    await self._answer(Line(reader, writer), heard)
            except OSError:
                raise
            except Exception:  # whatever it is, the other connections go on
                asked = Asked(next(self._numbers), t=self._now())
                self._keep(Served(asked, 500, 0, 0, "server error", self._now()))
            finally:
                writer.transport.abort()

    async def _answer(self, line: Line, heard: Heard) -> None:
        """Answer one request, and log what came of it."""
        asked = asked_of(heard, next(self._numbers), self._now())
        refusal = heard.refusal or await self._history_refused(asked, heard.body)
        answer = shaped(asked, refusal or decide(asked, self._choose))
        ended = "server stopped"
        try:
            if heard.head and heard.head.http_version < b"1.1" and answer.framing == "chunked":
                answer = msgspec.structs.replace(answer, framing="close")  # 1.0 knows no chunks
            ended = await send(line, answer, asked.number)
        except Exception as why:  # an answer that is none must not end the others' connections
            ended = "server error"
            if not line.begun:
                answer = http_error(500, f"this is no answer that can be sent: {shown(why)}")
                await send(line, answer, asked.number)
        finally:
            self._keep(Served(asked, answer.status, line.chunks, line.bytes, ended, self._now()))
            if ended in ("sent all", "cut", "server error"):
                await line.wait(LINGER_SECONDS)
            line.close()

    async def _history_refused(self, asked: Asked, body: bytes) -> Answer | None:
        """Look at the history, but only of a request with nothing else to refuse.

        A large one is looked at beside the loop, so that it makes no other client wait; and one at
        a time, since it takes many times its size while it is looked at.
        """
        if not self._check_history or not would_be_answered(asked):
            return None
        if len(body) <= SMALL_HISTORY:
            return history_refused(body)
        async with self._one_large:
            return await asyncio.to_thread(history_refused, body)
