"""Who reads: the floor, streamlab, and each vendor's own SDK.

An SDK reads from memory, through its own client, which is made once a run, as an application would.
Its raw iteration makes an object of each event and keeps none; its helper, where there is one,
accumulates them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import httpx2
import msgspec
import openai
import orjson
from anthropic import Anthropic
from google import genai
from google.genai import types

from streamlab import Consumer
from tests.bench.work import Work

__all__ = ["SDKS", "Run", "floor", "streamlab"]

Run = Callable[[Work], None]

BASE = "http://sdk.invalid"

MESSAGES = [{"role": "user", "content": "…"}]
CLAUDE: Any = {"model": "none", "max_tokens": 1, "messages": MESSAGES}
CHAT: Any = {"model": "none", "messages": MESSAGES}
RESPONSES: Any = {"model": "none", "input": "…"}

#: It must not ask for a continuation by itself.
GEMINI = types.GenerateContentConfig(automatic_continuation=False)


#: The elements of a JSON array, found but not decoded.
elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


def floor(job: Work) -> None:
    """Only JSON, by the decoder that is faster here."""
    decode = FASTEST
    for chunks in job.streams:
        data = b"".join(chunks)
        for element in elements(data) if job.array else ():
            decode(bytes(element))
        for line in data.splitlines():
            if line.startswith(b"data: ") and line != b"data: [DONE]":
                decode(line[6:])


def streamlab(job: Work) -> None:
    """The whole way, to a judged attempt."""
    for chunks in job.streams:
        consumer = Consumer(job.wire)
        for chunk in chunks:
            consumer.feed(chunk)
        consumer.end()


def claude_raw(job: Work) -> None:
    """The events of `anthropic`, one after the other."""
    with Anthropic(api_key="none", http_client=transport(job), max_retries=0) as client:
        for _ in job.streams:
            exhaust(client.messages.create(**CLAUDE, stream=True))


def claude_helper(job: Work) -> None:
    """Its accumulated message."""
    with Anthropic(api_key="none", http_client=transport(job), max_retries=0) as client:
        for _ in job.streams:
            with client.messages.stream(**CLAUDE) as stream:
                stream.get_final_message()


def chat_raw(job: Work) -> None:
    """The chunks of `openai`, one after the other."""
    with of_openai(job) as client:
        for _ in job.streams:
            exhaust(client.chat.completions.create(**CHAT, stream=True))


def chat_helper(job: Work) -> None:
    """Its accumulated completion."""
    with of_openai(job) as client:
        for _ in job.streams:
            with client.chat.completions.stream(**CHAT) as stream:
                stream.get_final_completion()


def responses_raw(job: Work) -> None:
    """The events of `openai`, one after the other."""
    with of_openai(job) as client:
        for _ in job.streams:
            exhaust(client.responses.create(**RESPONSES, stream=True))


def responses_helper(job: Work) -> None:
    """Its accumulated response."""
    with of_openai(job) as client:
        for _ in job.streams:
            with client.responses.stream(**RESPONSES) as stream:
                stream.get_final_response()


def gemini_raw(job: Work) -> None:
    """The chunks of `google-genai`; it has no helper."""
    options = types.HttpOptions(base_url=BASE, httpx_client=transport(job))
    with genai.Client(api_key="none", http_options=options) as client:
        for _ in job.streams:
            ask = client.models.generate_content_stream
            exhaust(ask(model="none", contents="…", config=GEMINI))


def exhaust(events: Iterable[object]) -> None:
    """Read to the end, and keep nothing."""
    for _ in events:
        pass


class SDK(NamedTuple):
    """A vendor's own ways to read; None where it has none."""

    raw: Run
    helper: Run | None


#: Wire format -> its vendor's SDK.
SDKS = {
    "claude": SDK(claude_raw, claude_helper),
    "openai-chat": SDK(chat_raw, chat_helper),
    "openai-responses": SDK(responses_raw, responses_helper),
    "gemini": SDK(gemini_raw, None),
}


def of_openai(job: Work) -> openai.OpenAI:
    """The client of both formats."""
    http = transport(job)
    return openai.OpenAI(api_key="none", base_url=BASE, http_client=http, max_retries=0)


def transport(job: Work) -> httpx2.Client:
    """A client of a server that answers each request with the next stream, from memory."""
    waiting = iter(job.streams)

    def answer(request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, stream=Chunks(next(waiting)))

    return httpx2.Client(transport=httpx2.MockTransport(answer))


class Chunks(httpx2.SyncByteStream):
    """A body that comes in these reads."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.chunks)


def fastest() -> Callable[[bytes], object]:
    """The faster of two JSON decoders, on a typical delta."""
    line = b'{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hello"}}'
    timed = {}
    for decode in (orjson.loads, msgspec.json.Decoder().decode):
        start = time.process_time()
        for _ in range(100_000):
            decode(line)
        timed[decode] = time.process_time() - start
    return min(timed, key=timed.__getitem__)


FASTEST: Callable[[bytes], object] = fastest()
