"""Whoever stops reading hangs up: with each real SDK, at once, and the server's log is the proof.

The server sends a few events and then nothing for an hour. So an end in its log that says "client
gone" came from the client's leaving and from nothing else, and before any further event was sent.

Two habits of the SDKs show here. openai's raw stream is a cycle of references, so a loop that is
left without a `with` around it hangs up only when the garbage collector comes by. google-genai's
async stream is several generators in a row: closing the outermost hangs up when the inner ones are
collected. Cancelling the task hangs up at once with all of them.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextlib import nullcontext

import pytest

from streamlab.streams.recording import Chunk, Recording
from streamlab.streams.sdks import SDKS, opened, opened_async
from streamlab.streams.server import FaultServer
from streamlab.study.card_streams import GOOD
from streamlab.study.clients import WAYS

FOR_EVER = 3600.0

#: How many events come in the first read; the others come in an hour.
AT_ONCE = 3


def silent(wire: str) -> Recording:
    """A good stream that falls silent after some events."""
    pieces = [piece.data for piece in GOOD[wire].pieces]
    now = min(AT_ONCE, len(pieces) - 2)
    later = (Chunk(FOR_EVER, data) for data in pieces[now:])
    return Recording((Chunk(0.0, b"".join(pieces[:now])), *later), wire=wire)


def check(server: FaultServer) -> None:
    """The client left while the server waited to send the next event, and was noticed."""
    (served,) = server.wait(1)
    assert (served.ended, served.chunks) == ("client gone", 1), str(served)


def by_close(way, client) -> None:
    stream = way.start(client, "m", FOR_EVER)
    stream = stream.__enter__() if way.final else stream
    next(iter(stream))
    stream.close()


def by_leaving_the_loop(way, client) -> None:
    stream = way.start(client, "m", FOR_EVER)
    with stream if hasattr(stream, "__enter__") else nullcontext(stream) as opened_stream:
        for _ in opened_stream:
            break


@pytest.mark.parametrize("leave", [by_close, by_leaving_the_loop])
@pytest.mark.parametrize("way", WAYS.values(), ids=lambda way: way.id)
def test_a_program_that_stops_reading_hangs_up_before_the_next_event(way, leave):
    pytest.importorskip(SDKS[way.sdk].module)
    with (
        FaultServer(silent(way.wire), speed=1.0) as server,
        opened(SDKS[way.sdk], server.url, retries=0) as client,
    ):
        leave(way, client)
        check(server)


async def collect(server: FaultServer) -> None:
    """Let generators that are left alone be collected, one after another, by turns of the loop."""
    for _ in range(200):
        if server.log:
            return
        gc.collect()
        await asyncio.sleep(0)


async def begin(way, client):
    stream = way.start(client, "m", FOR_EVER)
    return await (stream.__aenter__() if way.final else stream)


async def by_async_close(way, client) -> None:
    stream = await begin(way, client)
    await anext(aiter(stream))
    await (stream.aclose() if hasattr(stream, "aclose") else stream.close())


async def by_leaving_the_async_loop(way, client) -> None:
    stream = way.start(client, "m", FOR_EVER)
    stream = stream if way.final else await stream
    managed = hasattr(stream, "__aenter__")
    async with stream if managed else nullcontext(stream) as opened_stream:
        async for _ in opened_stream:
            break


async def by_cancelling_the_task(way, client) -> None:
    began = asyncio.Event()

    async def read() -> None:
        async for _ in await begin(way, client):
            began.set()

    task = asyncio.create_task(read())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    "leave", [by_async_close, by_leaving_the_async_loop, by_cancelling_the_task]
)
@pytest.mark.parametrize("way", WAYS.values(), ids=lambda way: way.id)
def test_a_task_that_stops_reading_hangs_up_before_the_next_event(way, leave):
    pytest.importorskip(SDKS[way.sdk].module)

    async def run(server: FaultServer) -> None:
        async with opened_async(SDKS[way.sdk], server.url, retries=0) as client:
            await leave(way, client)
            if way.sdk == "google-genai" and leave is not by_cancelling_the_task:
                await collect(server)
            await asyncio.to_thread(check, server)

    gc.freeze()  # what was there before is not looked at each time
    try:
        with FaultServer(silent(way.wire), speed=1.0) as server:
            asyncio.run(run(server))
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("name", ["chat raw", "responses raw"])
def test_openais_raw_stream_outlives_its_loop_until_it_is_collected(name):
    way = WAYS[name]
    pytest.importorskip("openai")
    if SDKS["openai"].version != "3.57.0":
        pytest.skip(f"measured with openai 3.57.0; here is {SDKS['openai'].version}")

    def read(client) -> weakref.ref:
        stream = way.start(client, "m", FOR_EVER)
        for _ in stream:
            break
        return weakref.ref(stream)

    with (
        FaultServer(silent(way.wire), speed=1.0) as server,
        opened(SDKS[way.sdk], server.url, retries=0) as client,
    ):
        gc.disable()
        try:
            stream = read(client)
            assert stream() is not None, "nothing refers to it, and it is there"
        finally:
            gc.enable()
        gc.collect()
        assert stream() is None
        check(server)
