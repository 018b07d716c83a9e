"""Where the tool loop's streams come from: a server, over a real socket, or recordings in memory.

`Upstream(url, wire=…)` and `Replay(recording, …)` are both an `ask`: called with the messages of a
request, each gives the answer's bytes as they come, and stops as the transport stopped: `OSError`s
are let through (a reset, a time that ran out), and where a body ends too early there is one too.

Who cancels, closes: the connection is gone at once, and the server knows. There is no SDK here;
h11 is imported with the first request.

Read next: `consumer/toolloop.py`, which asks.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from streamlab.consumer.history import Message
from streamlab.consumer.turn_events import printable
from streamlab.errors import UsageError, WireError
from streamlab.streams.recording import Chunk, Recording
from streamlab.streams.requests import Request, request_of
from streamlab.wire.payload import NotJSON, parse

if TYPE_CHECKING:
    import h11

__all__ = ["Replay", "Upstream"]

READ_SIZE = 64 * 1024

#: Bytes of an error's body that are read.
MOST_REFUSAL = 16 * 1024

#: Provisional answers (HTTP 1xx) that may come before the one that counts.
MOST_PROVISIONAL = 16

#: Seconds without a byte after which an answer counts as interrupted. Where no stream has begun
#: they count from the request on, and for the whole body of an error: bytes may drip.
IDLE_SECONDS = 60.0


#: The version at the end of a vendor's address; every request's path begins with one.
VERSION = re.compile(r"/v1(beta)?$")


class Upstream:
    """Asks a server; every request has a connection of its own.

    `wire` is the format of the request and of its answer; `tools` are those on offer, each with the
    JSON Schema of its input; `options` are more fields of the body, such as `system`. Raises
    `WireError` where what answers is no stream: an HTTP error, or no HTTP. `idle_seconds` is
    explained at `IDLE_SECONDS`.
    """

    def __init__(
        self,
        url: str,
        model: str = "streamlab",
        *,
        wire: str = "claude",
        tools: Mapping[str, Any] | None = None,
        max_tokens: int = 1024,
        headers: Mapping[str, str] | None = None,
        idle_seconds: float = IDLE_SECONDS,
        **options: Any,
    ) -> None:
        self._to = _checked(url)
        self._headers = dict(headers or {})
        self._idle = idle_seconds
        self._options = options
        self._request_of = partial(request_of, wire, model, limit=max_tokens, tools=tools)
        self._request_of([])  # is there such a format?

    def __repr__(self) -> str:
        return f"Upstream({self._to.scheme}://{self._to.netloc})"  # no header: one may be a key

    async def __call__(self, messages: list[Message]) -> AsyncIterator[Chunk]:
        """Send one request; give the chunks of its answer, with times, as they come."""
        import h11

        clock = asyncio.get_running_loop().time
        sent = clock()
        request = self._request_of(messages)
        body = msgspec.json.encode({**request.body, **self._options})
        async with asyncio.timeout(self._idle):
            reader, writer = await asyncio.open_connection(
                self._to.hostname, self._port, ssl=self._to.scheme == "https" or None
            )
        try:
            talk = h11.Connection(h11.CLIENT)
            async with asyncio.timeout(self._idle):
                writer.write(self._bytes(talk, request, body))
                await writer.drain()
                status = await _status(talk, reader)
            if status != 200:
                raise WireError(f"HTTP {status}{_reason(await self._refusal(talk, reader))}")
            while True:
                async with asyncio.timeout(self._idle):
                    event = await _event(talk, reader)
                if isinstance(event, h11.EndOfMessage):
                    return
                yield Chunk(clock() - sent, bytes(event.data))
        finally:
            writer.transport.abort()  # nothing waits for a polite end

    @property
    def _port(self) -> int:
        return self._to.port or (443 if self._to.scheme == "https" else 80)

    def _bytes(self, talk: h11.Connection, request: Request, body: bytes) -> bytes:
        import h11

        headers = {
            "host": self._to.netloc,
            "content-type": "application/json",
            "content-length": str(len(body)),
            "accept": "text/event-stream",
            **request.headers,
            **self._headers,
        }
        base = VERSION.sub("", self._to.path.rstrip("/"))  # vendors' pages give it with or without
        target = base + request.path
        try:
            head = h11.Request(method="POST", target=target, headers=list(headers.items()))
        except (h11.LocalProtocolError, UnicodeEncodeError):  # its message would quote the value
            raise UsageError("the URL's path, or a header, holds what HTTP can't send") from None
        pieces = (head, h11.Data(data=body), h11.EndOfMessage())
        return b"".join(talk.send(piece) or b"" for piece in pieces)

    async def _refusal(self, talk: h11.Connection, reader: asyncio.StreamReader) -> bytes:
        """The body of an error, as far as it comes, and no further than it is of use."""
        import h11

        body = b""
        with suppress(OSError):  # an error is one, whether its body is whole or not
            async with asyncio.timeout(self._idle):
                while len(body) < MOST_REFUSAL:
                    event = await _event(talk, reader)
                    if isinstance(event, h11.EndOfMessage):
                        break
                    body += bytes(event.data)
        return body


async def _status(talk: h11.Connection, reader: asyncio.StreamReader) -> int:
    """The status of the answer that counts, when its head is whole."""
    import h11

    for _ in range(MOST_PROVISIONAL + 1):
        event = await _event(talk, reader)
        if isinstance(event, h11.Response):
            return event.status_code
    raise WireError(f"more than {MOST_PROVISIONAL} provisional answers, and none that counts")


async def _event(talk: h11.Connection, reader: asyncio.StreamReader) -> Any:
    """The next HTTP event of an answer."""
    import h11

    ended = False
    while True:
        try:
            event = talk.next_event()
        except h11.RemoteProtocolError as why:
            if ended:  # h11 counts it as a broken promise; it is how lines are cut
                raise ConnectionAbortedError("the connection ended inside the body") from None
            raise WireError(f"this is not HTTP/1.1: {why}") from None
        if event is not h11.NEED_DATA:
            return event
        data = await reader.read(READ_SIZE)
        ended = not data
        talk.receive_data(data)


class Replay:
    """Answers from recordings in memory, one a request, in turn; without times of their own."""

    def __init__(self, *recordings: Recording) -> None:
        self.requests: list[list[Message]] = []  #: the messages of every request
        self._recordings: Iterator[Recording] = iter(recordings)

    async def __call__(self, messages: list[Message]) -> AsyncIterator[Chunk]:
        """Give the chunks of the next recording, then stop as it stopped."""
        self.requests.append(messages)
        recording = next(self._recordings, None)
        if recording is None:
            raise UsageError(f"there is no recording for request {len(self.requests)}")
        for chunk in recording.chunks:
            yield chunk
            await asyncio.sleep(0)
        stopped = STOPPED.get(recording.ending)
        if stopped is not None:
            raise stopped(f"as recorded: {recording.ending}")


#: How a recording ended -> what its reader was told. (A clean end tells by ending.)
STOPPED: dict[str, type[OSError]] = {
    "cut": ConnectionAbortedError,
    "cancelled": ConnectionAbortedError,
    "reset": ConnectionResetError,
    "timeout": TimeoutError,
}


def _reason(body: bytes) -> str:
    """What an HTTP error says about itself, if it says it as one of the APIs does."""
    try:
        value = parse(body.decode("utf-8", "replace"))
    except NotJSON:
        return ""
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        return ""
    kind = error.get("type") or error.get("status") or error.get("code")
    return printable(f", {str(kind)[:80]}: {str(error.get('message'))[:400]}")


def _checked(url: str) -> SplitResult:
    try:
        to = urlsplit(url)
        _ = to.port
    except ValueError as why:
        raise UsageError(f"{url!r} is no URL: {why}") from None
    if to.scheme not in ("http", "https") or not to.hostname or "@" in to.netloc:
        raise UsageError(f"{url!r} is no URL of a server, such as http://127.0.0.1:8765")
    return to
