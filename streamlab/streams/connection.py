"""One connection of the fault server: hear a request, send an answer, know whether anybody listens.

Two coroutines: `hear` reads one request (h11 parses it; this is the part that strangers can talk
to, so it has bounds and turns garbage into a refusal), and `send` carries out an `Answer` and says
in a word how that ended. Between them is `Line`, the only class here that touches a socket; it
watches for the client's leaving all the time, so that it is noticed before the next chunk.

Read next: `server.py`, which gives every connection a task and keeps the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from typing import NamedTuple

import h11

from streamlab.streams.answer import Answer, Asked, framed, head, http_error, plan, wanted

__all__ = ["Heard", "Line", "asked_of", "hear", "send"]

#: Bounds of a request, in bytes. The real API takes bodies of 32 MB; no lesson needs that much.
MAX_HEAD, MAX_BODY = 64 * 1024, 8 * 1024 * 1024

#: Seconds for a whole request to arrive.
REQUEST_SECONDS = 10.0

#: Seconds before a reset: Windows and macOS throw away what the client has not read by then.
RESET_GRACE = 0.05

READ_SIZE = 64 * 1024

#: Leave to send the body, for a client that asks before it does.
GO_ON = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")

#: Of a request's headers, the log keeps these, and of those that carry keys only that they came.
KEPT = {
    *("host", "user-agent", "accept", "accept-encoding", "content-type", "content-length"),
    *("anthropic-version", "anthropic-beta", "x-stainless-retry-count"),
}
HIDDEN = {"authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"}


class Heard(NamedTuple):
    """A request as it came: its head, its body, and the refusal that it has earned already."""

    head: h11.Request | None = None
    body: bytes = b""
    refusal: Answer | None = None


async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Heard:
    """Read one request, within the bounds."""
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
    request, body = None, bytearray()
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            while len(body) <= MAX_BODY:
                event = parser.next_event()
                if event is h11.NEED_DATA:
                    if parser.they_are_waiting_for_100_continue:
                        writer.write(parser.send(GO_ON) or b"")
                    parser.receive_data(await reader.read(READ_SIZE))
                elif isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.Data):
                    body += event.data
                else:  # the end of the request, or of a connection that asked nothing
                    return Heard(request, bytes(body))
    except TimeoutError:
        late = f"no whole request within {REQUEST_SECONDS:g} seconds"
        return Heard(request, refusal=http_error(408, late))
    except h11.RemoteProtocolError as why:
        garbage = http_error(why.error_status_hint, f"this is not HTTP/1.1: {why}")
        return Heard(request, refusal=garbage)
    return Heard(request, refusal=http_error(413, f"the body is over {MAX_BODY:,} bytes"))


def asked_of(heard: Heard, number: int, t: float) -> Asked:
    """Keep of a request what may be kept."""
    if heard.head is None:
        return Asked(number, t=t)
    path = heard.head.target.decode("ascii").partition("?")[0]
    wants = wanted(heard.body, path)
    pairs = [(name.decode("ascii"), value.decode("latin-1")) for name, value in heard.head.headers]
    headers = tuple(
        (name, value if name in KEPT else "(hidden)")
        for name, value in pairs
        if name in KEPT | HIDDEN
    )
    method = heard.head.method.decode("ascii")
    return Asked(number, method, path, headers, wants.model, wants.stream, t)


class Line:
    """The way to one client: sends, waits, and knows when the client has gone."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.chunks = self.bytes = 0
        self.begun = False  #: after the first byte it is too late for another answer
        self._writer = writer
        writer.transport.set_write_buffer_limits(high=0)  # drain() means: the system has it all
        self._gone = asyncio.create_task(_until_gone(reader))

    async def wait(self, seconds: float | None) -> bool:
        """Wait, but no longer than the client stays; say whether it is still there."""
        await asyncio.wait({self._gone}, timeout=seconds)
        return not self._gone.done()

    async def send(self, data: bytes) -> bool:
        """Hand bytes to the operating system; say whether there was a client to send them to."""
        try:
            self.begun = self.begun or bool(data)
            self._writer.write(data)
            await self._writer.drain()
        except OSError:
            return False
        return True

    async def finish(self, last: bytes) -> bool:
        """Send the last bytes, then say that no more will come (TCP FIN)."""
        with contextlib.suppress(OSError):
            if await self.send(last):
                self._writer.write_eof()
                return True
        return False

    async def reset(self) -> bool:
        """Tear the connection down: a close that lingers for zero seconds sends a TCP RST."""
        linger = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
        connection = self._writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            if await self.wait(RESET_GRACE):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self._writer.transport.abort()
                return True
        return False

    def close(self) -> None:
        """Hang up, and stop watching for the client to go."""
        self._writer.transport.abort()
        self._gone.cancel()


async def _until_gone(reader: asyncio.StreamReader) -> None:
    """Wait for the client's end of the connection; what it sends after its request is ignored."""
    with contextlib.suppress(OSError):
        while await reader.read(READ_SIZE):
            pass


async def send(line: Line, answer: Answer, number: int) -> str:
    """Send an answer; return how that ended, in a word of `Served.ended`."""
    sent = plan(answer)
    clock = asyncio.get_running_loop().time
    start = clock()
    opening = head(answer, sent, number)
    if not (sent.chunks and sent.chunks[0].t == 0):  # otherwise it goes with the first chunk
        await line.send(opening)
        opening = b""
    for chunk in sent.chunks:
        there = await line.wait(max(0.0, start + (chunk.t or 0.0) - clock()))
        if not (there and await line.send(opening + framed(answer.framing, chunk.data))):
            return "client gone"
        opening = b""
        line.chunks += 1
        line.bytes += len(chunk.data)
    await line.wait(max(0.0, start + (sent.end_t or 0.0) - clock()))
    return await _end(line, answer.framing, sent.ending)


async def _end(line: Line, framing: str, ending: str) -> str:
    """Stop the connection as asked, unless the client was faster."""
    if ending == "eof":
        there = await line.finish(framed(framing, b""))
        return "sent all" if there or framing == "length" else "client gone"
    if ending == "cut":
        return "cut" if await line.finish(b"") else "client gone"
    if ending == "reset":
        return "reset" if await line.reset() else "client gone"
    await line.wait(None)
    return "client gone"
