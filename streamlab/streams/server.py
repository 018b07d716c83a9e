"""The local fault server: real HTTP/1.1 on loopback, whose answers break the way you ask.

`FaultServer(recording)` answers a request for a stream, on the path of each of the four wire
formats, with a recording's bytes, whatever they are; then it stops the connection as the recording
was stopped, or as you say. It lives in a thread of its own, gives every connection a task
(`connection.py`) and logs what came of each request (`Served`). Every connection carries one
request. Keys and bodies are never kept.

Read next: `live.py`, which records what a real client gets, from this server or the real one.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType

import msgspec

from streamlab.errors import UsageError
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
from streamlab.streams.recording import Recording

__all__ = ["Answer", "Asked", "FaultServer", "Served", "http_error"]

#: The only addresses to bind to.
HOSTS = ("127.0.0.1", "::1")

#: Bounds: connections at a time, and requests that the log remembers.
MAX_CONNECTIONS, MAX_LOG = 64, 1000

#: A body of at most so many bytes has its history checked at once.
SMALL_HISTORY = 64 * 1024

#: Seconds for a client to read what it was sent, before we hang up on it.
LINGER_SECONDS = 1.0

#: Seconds that connections have for ending by themselves when the server stops.
STOP_GRACE = 0.05


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


class FaultServer:
    """A server in a thread of its own, for as long as its `with` block.

    `answers` is a recording, an `Answer`, or an HTTP status (529: that error, before any stream);
    or several of them, served in turn, over and over; or a dict of them, chosen by the request's
    model (`streamlab/NAME` or `NAME`); or a function from `Asked` to one of them. What is said
    here holds for every recording among them (and the headers for an HTTP status too).

    With `check_history`, a request whose messages the API would refuse gets HTTP 400 and the reason
    instead, and uses no answer up: some of the API's rules, in words of ours. They are in
    `consumer/history.py`.
    """

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
        if host not in HOSTS:
            raise UsageError(f"host {host!r} is none of {', '.join(HOSTS)}: loopback only")
        how = Answer(Recording(), ending, framing, speed, every, error, headers=headers)
        self._choose = chooser(answers, how)
        self._check_history = check_history
        self._host, self._port = host, port
        self._address: tuple[str, int] | None = None
        self._thread: threading.Thread | None = None
        self._numbers = itertools.count(1)
        self._log: deque[Served] = deque(maxlen=MAX_LOG)
        self._served = 0
        self._news = threading.Condition()  # guards the two above

    def __repr__(self) -> str:
        return f"<FaultServer {self.url if self._address else 'not started'}>"

    @property
    def url(self) -> str:
        """What to give a client as its `base_url`."""
        if self._address is None:
            raise UsageError("the server has no address before it is started: `with server: …`")
        host, port = self._address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def log(self) -> tuple[Served, ...]:
        """What came of the requests so far, the last 1,000 of them, in the order they ended."""
        return self.wait(0)

    def wait(self, count: int, timeout: float = 5.0) -> tuple[Served, ...]:
        """Wait until `count` requests are over, at most `timeout` seconds; return the log."""
        with self._news:
            self._news.wait_for(lambda: self._served >= count, timeout)
            return tuple(self._log)

    def start(self) -> FaultServer:
        """Listen, in a thread of its own."""
        if self._thread is not None:
            raise UsageError(f"the server is running already, at {self.url}")
        listener = _bind(self._host, self._port)
        self._address = listener.getsockname()[:2]
        self._started = time.monotonic()
        self._stop, self._one_large = asyncio.Event(), asyncio.Lock()
        self._talks: set[asyncio.Task[None]] = set()
        # Not the default loop: the one of Windows would send a FIN before our RST.
        runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
        self._loop = runner.get_loop()
        self._thread = threading.Thread(
            target=self._run, args=(runner, listener), name="streamlab fault server", daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Hang up on everybody, at once, and wait until the thread is gone."""
        if self._thread is not None:
            with contextlib.suppress(RuntimeError):  # the loop is dead: there is nobody to tell
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
            self._thread = self._address = None

    def __enter__(self) -> FaultServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, at: TracebackType | None
    ) -> None:
        self.stop()

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

    def _after(self, seen: int, timeout: float) -> list[tuple[int, Served]]:
        """Wait for what comes after the first `seen` requests, each with its place in the log.

        Never wait long: on Windows, Ctrl-C does not interrupt a wait.
        """
        with self._news:
            self._news.wait_for(lambda: self._served > seen, timeout)
            forgotten = self._served - len(self._log)
            return [*enumerate(self._log, forgotten + 1)][max(0, seen - forgotten) :]

    def _run(self, runner: asyncio.Runner, listener: socket.socket) -> None:
        with listener, runner:
            runner.run(self._listen(listener))

    async def _listen(self, listener: socket.socket) -> None:
        """Give every connection a task of its own, until told to stop."""
        async with asyncio.TaskGroup() as group:

            def arrive() -> None:
                with contextlib.suppress(OSError):  # it may have gone again
                    connection, _ = listener.accept()
                    talk = group.create_task(self._talk(connection))
                    self._talks.add(talk)
                    talk.add_done_callback(self._talks.discard)
                    talk.add_done_callback(lambda _: connection.close())

            # Not `asyncio.start_server`: it forgets what it accepts in the moment of closing.
            self._loop.add_reader(listener, arrive)
            await self._stop.wait()
            self._loop.remove_reader(listener)
            listener.close()
            if self._talks:  # who is about to end by itself gets a moment, and the log the truth
                await asyncio.wait(self._talks, timeout=STOP_GRACE)
            for talk in self._talks:
                talk.cancel()

    async def _talk(self, connection: socket.socket) -> None:
        """Hear one request and answer it."""
        connection.setblocking(False)
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

    def _now(self) -> float:
        return time.monotonic() - self._started

    def _keep(self, served: Served) -> None:
        with self._news:
            self._log.append(served)
            self._served += 1
            self._news.notify_all()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as why:
        reason = os.strerror(why.errno) if isinstance(why, OSError) and why.errno else why
        raise UsageError(f"cannot listen on {host}, port {port}: {reason}") from None
    listener.setblocking(False)
    return listener
