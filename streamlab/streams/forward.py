"""Between a vendor's stream and a browser: run the turn here, and forward what is normal of it.

    upstream ──bytes──▶ run_turn ──▶ Bus ──▶ Frames ──SSE──▶ the page
                           ▲                                  │
                           └────────── cancelled ◀── it left ─┘

`Forwarder(ask, tools)` serves a page, and `POST /turn` gives one turn as SSE. The browser never
sees the vendor's stream, a key, or half a tool input.

Why a POST that the page reads with `fetch`, and not `EventSource`: that one can only GET, and comes
back by itself when a line is lost. But a turn is an act: it costs money, and its tools run. A GET
may be repeated, prefetched, or sent by any page's image; a reconnect would start a second turn. The
ids are there so that a reader sees a gap. Who comes back with a `Last-Event-ID` gets HTTP 204.

Who leaves, closes: the end of the browser's connection cancels the turn, and with it the upstream's
connection. Who reads slowly gets fewer and larger events (`consumer/bus.py`).

Read next: `browser/page.js`, the other side; `upstream.py`, which asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

import msgspec

from streamlab.consumer.bus import Bus
from streamlab.consumer.conversation import Conversation
from streamlab.consumer.gates import EFFECT, Policy
from streamlab.consumer.screen import CaughtUp
from streamlab.consumer.toolloop import Ask, Tool, run_turn
from streamlab.consumer.toolrecord import Ended, failure
from streamlab.consumer.turn_events import TOLD, BusEvent, TurnEnded, TurnState
from streamlab.streams.answer import framed
from streamlab.streams.connection import Line, hear
from streamlab.streams.forward_frames import FRAMING, HEADERS, HEARTBEAT, Frames, Header
from streamlab.streams.forward_page import Reply, asked_for, head, refused
from streamlab.streams.loopback import LoopbackServer

__all__ = ["Forwarded", "Forwarder"]

#: Bounds: connections at a time, and turns among them.
MAX_CONNECTIONS, MAX_TURNS = 64, 8

#: Seconds of silence before a heartbeat, and seconds after which a browser that takes nothing of
#: what is sent to it counts as gone.
HEARTBEAT_SECONDS, STALL_SECONDS = 15.0, 60.0

#: Seconds for a client to read what it was sent, before we hang up on it.
LINGER_SECONDS = 1.0


class Forwarded(msgspec.Struct, frozen=True):
    """What came of one turn. `str()` says it in one line, without times."""

    number: int
    state: str  #: a `TurnState`
    events: int  #: frames handed to the operating system for this browser
    ended: str  #: "sent all", "client gone", "too slow" or "server stopped"

    def __str__(self) -> str:
        return f"turn {self.number}: {self.state}, {self.ended} after event {self.events}"


class Forwarder(LoopbackServer[Forwarded]):
    """A server in a thread of its own, for as long as its `with` block.

    `ask`, `tools` and `policy` are `run_turn`'s; each turn is a conversation of its own.
    `suggestion` is the question that the page begins with. `headers` are there to be left out, to
    see what a proxy makes of it; `sleep` is there for a clock that a test turns by hand.
    """

    called = "streamlab forwarder"

    def __init__(
        self,
        ask: Ask,
        tools: Mapping[str, Tool] | None = None,
        policy: Policy = EFFECT,
        *,
        suggestion: str = "What about W-7?",
        headers: tuple[Header, ...] = HEADERS,
        heartbeat: float = HEARTBEAT_SECONDS,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        show: Callable[[Forwarded], object] = lambda forwarded: None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        super().__init__(host, port)
        self._ask, self._tools, self._policy = ask, dict(tools or {}), policy
        self._suggestion, self._headers, self._show = suggestion, headers, show
        self._heartbeat, self._sleep = heartbeat, sleep
        self._turns = 0  # under way

    # --- one connection

    async def _talk(self, connection: socket.socket) -> None:
        """Hear one request and answer it."""
        with contextlib.suppress(OSError):  # a browser may leave at any time
            # A small frame must not wait for the acknowledgement of the one before (Nagle).
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            reader, writer = await asyncio.open_connection(sock=connection)
            try:
                if len(self._talks) > MAX_CONNECTIONS:
                    writer.write(refused(503, "too many connections at once").wire)
                    return
                heard = await hear(reader, writer)
                if heard.head is None and heard.refusal is None:
                    return  # opened ahead of need, and closed without a request
                line = Line(reader, writer)
                asked = asked_for(heard, self._suggestion)
                if isinstance(asked, Reply):
                    await line.finish(asked.wire)
                elif self._turns >= MAX_TURNS:
                    await line.finish(refused(503, "too many turns at once").wire)
                else:
                    old = heard.head is not None and heard.head.http_version < b"1.1"
                    await self._turn(line, asked, "close" if old else "chunked")
                await line.wait(LINGER_SECONDS)
                line.close()
            finally:
                writer.transport.abort()

    async def _turn(self, line: Line, asked: Conversation, framing: str) -> None:
        """Run one turn while somebody listens, and log what came of it."""
        number, bus, ended = next(self._numbers), Bus(), "server stopped"
        browser = _Browser(line, framing)

        def publish(event: BusEvent) -> None:
            if not isinstance(event, TurnEnded):  # the last word is ours, after all problems
                bus.publish(event)

        run = (asked, self._ask, self._tools, self._policy)
        name = f"turn-{number}"
        turn = asyncio.create_task(run_turn(*run, publish=publish, turn=name), name=name)
        turn.add_done_callback(bus.close)
        carry = asyncio.create_task(self._carry(browser, bus, turn))
        gone = asyncio.create_task(line.wait(None))
        self._turns += 1
        try:
            await asyncio.wait({carry, gone}, return_when=asyncio.FIRST_COMPLETED)
            ended = carry.result() if carry.done() else "client gone"
        finally:
            for task in (carry, gone, turn):
                task.cancel()
            await asyncio.gather(carry, gone, turn, return_exceptions=True)
            self._turns -= 1
            self._keep(Forwarded(number, _last(turn).state, browser.sent, ended))

    async def _carry(self, browser: _Browser, bus: Bus, turn: asyncio.Task[Ended]) -> str:
        """Bring every event to the browser as it comes; return how that ended."""
        try:
            await browser.begin(self._headers)
            async with contextlib.aclosing(self._events(bus)) as events:
                async for event in events:
                    await browser.tell(event)
            await browser.finish(turn)
        except TimeoutError:
            return "too slow"
        except OSError:
            return "client gone"
        return "sent all"

    async def _events(self, bus: Bus) -> AsyncGenerator[BusEvent | CaughtUp | None, None]:
        """What crosses the bus; None whenever that was silent for a while."""
        while True:
            following = asyncio.ensure_future(anext(bus))
            try:
                while not following.done():
                    idle = asyncio.ensure_future(self._sleep(self._heartbeat))
                    await asyncio.wait({following, idle}, return_when=asyncio.FIRST_COMPLETED)
                    idle.cancel()
                    if not following.done():
                        yield None
                event = following.result()
            except StopAsyncIteration:
                return
            finally:
                following.cancel()
            yield event

    def _keep(self, entry: Forwarded) -> None:
        super()._keep(entry)
        self._show(entry)


class _Browser:
    """The way to one browser. Each call raises an `OSError` where nobody takes what is sent."""

    def __init__(self, line: Line, framing: str) -> None:
        self.sent = 0  #: events
        self._line, self._framing, self._frames = line, framing, Frames()

    async def begin(self, headers: tuple[Header, ...]) -> None:
        """Send the head, before there is any event: the page knows that it was heard."""
        framing = FRAMING if self._framing == "chunked" else FRAMING[1:]
        pairs = tuple((name, value) for name, value, _ in (*headers, *framing))
        await self._send(head(200, pairs))

    async def tell(self, event: BusEvent | CaughtUp | None) -> None:
        """Send one event as one chunk; None is a heartbeat."""
        if event is None:
            await self._send(framed(self._framing, HEARTBEAT))
        else:
            await self._frame(self._frames.of(event))

    async def finish(self, turn: asyncio.Task[Ended]) -> None:
        """Say what was wrong, then how the turn ended, then that this is all."""
        rounds = () if turn.cancelled() or turn.exception() else turn.result().rounds
        for round in rounds:
            for found in round.turn.facts.problems:
                if found.rule != "empty":  # no stream began; `why` says it better
                    await self._frame(self._frames.problem(round.attempt.id, found))
        await self._frame(self._frames.of(_last(turn)))
        if not await self._line.finish(framed(self._framing, b"")):
            raise ConnectionAbortedError("the browser has gone")

    async def _frame(self, data: bytes) -> None:
        if data:
            await self._send(framed(self._framing, data))
            self.sent += 1

    async def _send(self, data: bytes) -> None:
        async with asyncio.timeout(STALL_SECONDS):
            if not await self._line.send(data):
                raise ConnectionAbortedError("the browser has gone")


def _last(turn: asyncio.Task[Ended]) -> TurnEnded:
    """The last word on a turn, also on one that a fault of ours has ended."""
    id, state, why = "", TurnState.CANCELLED, "it was cancelled before it began"
    if not turn.cancelled():
        fault = turn.exception()
        if fault is None:
            ended = turn.result()
            id, state, why = ended.attempt.id, ended.state, ended.why
        else:
            state, why = TurnState.INVALID, f"the server failed: {failure(fault)}"
    return TurnEnded(turn.get_name(), id, state, TOLD[state], why)
