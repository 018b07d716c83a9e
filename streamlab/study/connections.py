"""A client and its connection: how it hangs up, and how long it waits. Real SDKs, real sockets.

`left("chat raw", "break")` stops reading in the middle of an answer, in one of `EXITS`, and says
by the server's own log whether the connection was closed at once. The server would send nothing
more for an hour, so it hears nothing but the client's leaving. "At once" needs no clock: a second
request is made after it, and what is in the log before that one ended came first.

`waited("chat raw", 12)` puts so many keep-alives into an answer and says how the client ended.

Read next: `clients.py`, the ways to read; `report_card.py`, everything else that can go wrong.
"""

from __future__ import annotations

import asyncio
import gc
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

from streamlab.errors import UsageError
from streamlab.streams.recording import Chunk, Recording
from streamlab.streams.sdks import SDKS, opened, opened_async
from streamlab.streams.server import FaultServer
from streamlab.study.card_streams import GOOD, sse
from streamlab.study.clients import WAYS, Way, ask

__all__ = ["EXITS", "RAW", "left", "waited"]

#: The ways whose stream the program holds itself, without a helper around it.
RAW = tuple(way.id for way in WAYS.values() if not way.final)

FOR_EVER = 3600.0

#: Events that come before the silence.
FEW = 3

#: Seconds: a client's timeout, and from one keep-alive to the next.
TIMEOUT, EVERY = 1.0, 0.1


def _silent(wire: str) -> Recording:
    """A good answer that falls silent after some events."""
    pieces = [piece.data for piece in GOOD[wire].pieces]
    now = min(FEW, len(pieces) - 2)
    later = (Chunk(FOR_EVER, data) for data in pieces[now:])
    return Recording((Chunk(0.0, b"".join(pieces[:now])), *later), wire=wire)


# --- Hanging up -----------------------------------------------------------------------------------


def _close(way: Way, client: Any) -> None:
    stream = way.start(client, "m", FOR_EVER)
    next(iter(stream))
    stream.close()


def _break_in_with(way: Way, client: Any) -> None:
    stream = way.start(client, "m", FOR_EVER)
    with stream if hasattr(stream, "__exit__") else closing(stream) as managed:
        for _ in managed:
            break


def _break(way: Way, client: Any) -> None:
    for _ in way.start(client, "m", FOR_EVER):
        break


async def _cancelled(way: Way, client: Any) -> None:
    began = asyncio.Event()

    async def read() -> None:
        async for _ in await way.start(client, "m", FOR_EVER):
            began.set()

    task = asyncio.create_task(read())
    await began.wait()
    task.cancel()
    await asyncio.wait({task})


#: How a program may stop reading: with a sync client, and with an async one.
_SYNC: dict[str, Callable[[Way, Any], None]] = {
    "close()": _close,
    "break in with": _break_in_with,
    "break": _break,
}
EXITS = (*_SYNC, "task.cancel()")


def left(client: str, exit: str) -> str:
    """Stop reading, and say when the server saw it: "at once", or "when collected".

    Raises `UsageError` for a name that is none.
    """
    if client not in RAW or exit not in EXITS:
        raise UsageError(f"{client!r} by {exit!r}: one of {RAW} by one of {EXITS}")
    way = WAYS[client]
    collects = gc.isenabled()
    gc.disable()  # it may come by at any time, and this is about what happens before
    try:
        with FaultServer(_silent(way.wire), speed=1.0) as server:
            if exit in _SYNC:
                return _left_sync(way, _SYNC[exit], server)
            with ThreadPoolExecutor(1) as pool:  # a notebook has a loop running already
                return pool.submit(asyncio.run, _left_async(way, server)).result()
    finally:
        if collects:
            gc.enable()


def _left_sync(way: Way, act: Callable[[Way, Any], None], server: FaultServer) -> str:
    with opened(SDKS[way.sdk], server.url, retries=0) as client:
        act(way, client)
        return _seen(server)


async def _left_async(way: Way, server: FaultServer) -> str:
    async with opened_async(SDKS[way.sdk], server.url, retries=0) as client:
        await _cancelled(way, client)
        return await asyncio.to_thread(_seen, server)


def _seen(server: FaultServer) -> str:
    """When the server saw that the client was gone, by its log."""
    if _gone(server):
        return "at once"
    gc.collect()
    return "when collected" if _gone(server) else "never"


def _gone(server: FaultServer) -> bool:
    """Whether the first request was over before a second one, made now, is."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        direct.open(f"{server.url}/anything").close()
    except urllib.error.HTTPError as refused:  # 404: there is nothing at that path
        refused.close()
    return any(served.ended == "client gone" for served in server.wait(1))


# --- Waiting --------------------------------------------------------------------------------------


def waited(client: str, keepalives: int) -> str:
    """How a client with a timeout of `TIMEOUT` seconds ends: "right", or the exception's class.

    `keepalives` of them come in the middle of the answer, one each `EVERY` seconds; with 0 there is
    silence instead, for an hour.
    """
    way = WAYS[client]
    first, *later = (piece.data for piece in GOOD[way.wire].pieces)
    alive = sse({"type": "ping"}, "ping") if way.wire == "claude" else b": keep-alive\n\n"
    silence = 0.0 if keepalives else FOR_EVER
    chunks = [Chunk(0.0, first), *(Chunk(EVERY * n, alive) for n in range(1, keepalives + 1))]
    end = EVERY * keepalives + silence
    recording = Recording((*chunks, *(Chunk(end, data) for data in later)), wire=way.wire)
    with (
        FaultServer(recording, speed=1.0) as server,
        opened(SDKS[way.sdk], server.url, retries=0) as opened_client,
    ):
        return ask(way, opened_client, "m", TIMEOUT).error or "right"
