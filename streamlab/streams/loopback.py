"""A server in a thread of its own, on loopback only: what the fault server and the forwarder share.

It binds, gives every connection a task (`_talk`), keeps a log of what came of them, and stops: it
hangs up on everybody and waits until its thread is gone. What is said on a connection is up to the
class that derives from it.

Read next: `server.py`, which breaks streams; `forward.py`, which forwards turns.
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
from types import TracebackType
from typing import ClassVar, Generic, Self, TypeVar

from streamlab.errors import UsageError

__all__ = ["LoopbackServer"]

#: The only addresses to bind to.
HOSTS = ("127.0.0.1", "::1")

#: Entries that the log remembers.
MAX_LOG = 1000

Entry = TypeVar("Entry")


class LoopbackServer(Generic[Entry]):
    """Serves for as long as its `with` block. Each log entry is what came of one request."""

    called: ClassVar[str]  #: the name of its thread
    grace: ClassVar[float] = (
        0.0  #: seconds that connections have for ending by themselves at a stop
    )

    def __init__(self, host: str, port: int) -> None:
        if host not in HOSTS:
            raise UsageError(f"host {host!r} is none of {', '.join(HOSTS)}: loopback only")
        self._host, self._port = host, port
        self._address: tuple[str, int] | None = None
        self._thread: threading.Thread | None = None
        self._numbers = itertools.count(1)
        self._log: deque[Entry] = deque(maxlen=MAX_LOG)
        self._over = 0  # how many entries there have ever been
        self._news = threading.Condition()  # guards the two above

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url if self._address else 'not started'}>"

    @property
    def url(self) -> str:
        """Its address, without a path."""
        if self._address is None:
            raise UsageError("the server has no address before it is started: `with server: …`")
        host, port = self._address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    # --- The log

    @property
    def log(self) -> tuple[Entry, ...]:
        """What came of the requests so far, the last 1,000 of them, in the order they ended."""
        return self.wait(0)

    def wait(self, count: int, timeout: float = 5.0) -> tuple[Entry, ...]:
        """Wait until `count` of them are over, at most `timeout` seconds; return the log."""
        with self._news:
            self._news.wait_for(lambda: self._over >= count, timeout)
            return tuple(self._log)

    def _after(self, seen: int, timeout: float) -> list[tuple[int, Entry]]:
        """Wait for what comes after the first `seen` entries, each with its place in the log.

        Never wait long: on Windows, Ctrl-C does not interrupt a wait.
        """
        with self._news:
            self._news.wait_for(lambda: self._over > seen, timeout)
            forgotten = self._over - len(self._log)
            return [*enumerate(self._log, forgotten + 1)][max(0, seen - forgotten) :]

    def _keep(self, entry: Entry) -> None:
        with self._news:
            self._log.append(entry)
            self._over += 1
            self._news.notify_all()

    # --- Its thread

    def start(self) -> Self:
        """Listen, in a thread of its own."""
        if self._thread is not None:
            raise UsageError(f"the server is running already, at {self.url}")
        listener = _bind(self._host, self._port)
        self._address = listener.getsockname()[:2]
        self._started = time.monotonic()
        self._stop = asyncio.Event()
        self._talks: set[asyncio.Task[None]] = set()
        # Not the default loop: the one of Windows can't watch a listener, and would send a FIN
        # before our RST.
        runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
        self._loop = runner.get_loop()
        self._thread = threading.Thread(
            target=self._run, args=(runner, listener), name=self.called, daemon=True
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

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, at: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, runner: asyncio.Runner, listener: socket.socket) -> None:
        with listener, runner:
            runner.run(self._listen(listener))

    async def _listen(self, listener: socket.socket) -> None:
        """Give every connection a task of its own, until told to stop."""

        def arrive() -> None:
            with contextlib.suppress(OSError):  # it may have gone again
                connection, _ = listener.accept()
                connection.setblocking(False)
                talk = asyncio.create_task(self._talk(connection))
                self._talks.add(talk)
                talk.add_done_callback(self._talks.discard)
                talk.add_done_callback(lambda _: connection.close())

        # Not `asyncio.start_server`: it forgets what it accepts in the moment of closing.
        self._loop.add_reader(listener, arrive)
        await self._stop.wait()
        self._loop.remove_reader(listener)
        listener.close()
        if self._talks and self.grace:  # who is about to end gets a moment, and the log the truth
            await asyncio.wait(self._talks, timeout=self.grace)
        talks = [*self._talks]
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)

    async def _talk(self, connection: socket.socket) -> None:
        """Hear what comes on a connection that does not block, and answer; it is closed after."""
        raise NotImplementedError

    def _now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as why:
        reason = os.strerror(why.errno) if isinstance(why, OSError) and why.errno else why
        raise UsageError(f"cannot listen on {host}, port {port}: {reason}") from None
    listener.setblocking(False)
    return listener
