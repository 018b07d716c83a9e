"""HAR, the HTTP Archive: what a browser's network panel, Playwright and many proxies export.

    {"log": {"version": "1.2", "entries": [{"startedDateTime": ..., "time": ms, "request": {...},
      "response": {"status": ..., "content": {"text": ..., "encoding": "base64"}}, "timings": ms}]}}

The format: http://www.softwareishard.com/blog/har-12-spec/. It has one time for the first byte and
one for the last. Chrome's network panel adds `_eventSourceMessages` (time in seconds since 1970,
eventName, eventId, data) to the entry of an `EventSource`, which is what has the events' own times;
a `fetch` has none. A failed entry says so in `_error` (Chrome) or `_failureText` (Playwright), and
a browser drops what had come of its body.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from streamlab.streams.importers.exchange import Exchange
from streamlab.streams.importers.inflate import magic_of
from streamlab.streams.importers.loose import (
    MEMBERS,
    at,
    from_base64,
    header_pairs,
    items,
    json_of,
    moment,
    number,
    several,
    text,
)
from streamlab.streams.last_words import ending_said
from streamlab.streams.recording import Chunk
from streamlab.streams.timed_lines import MAX_SECONDS
from streamlab.wire.forms import frames_of

__all__ = ["looks", "read"]

_START = re.compile(
    MEMBERS + rb'"log"\s*:\s*\{\s*"(version|creator|browser|pages|entries|comment|_)'
)

#: What of an entry's time comes before its request is sent, and what after.
BEFORE, SENDING = ("blocked", "dns", "connect"), ("send",)


def looks(head: bytes) -> bool:
    """Whether a file that begins so is a HAR."""
    return _START.match(head) is not None and not several(head)


def read(data: bytes, name: str) -> Iterator[Exchange]:
    """The entries of a HAR."""
    whole = json_of(data, "a HAR", name)
    for entry_number, entry in enumerate(items(at(whole, "log", "entries")), 1):
        yield _entry(entry, f"entry {entry_number}")


def _entry(entry: Any, where: str) -> Exchange:
    response = at(entry, "response")
    failure = text(at(response, "_error")) or text(at(response, "_failureText"))
    ms = {key: _ms(at(entry, "timings", key)) for key in _TIMINGS}
    sent = sum(ms[key] for key in (*BEFORE, *SENDING)) / 1000
    started = moment(at(entry, "startedDateTime"))
    known = number(at(response, "status"))
    exchange = Exchange(
        where,
        text(at(entry, "request", "method")),
        text(at(entry, "request", "url")),
        None if started is None else started + sent,
        int(known) if known and 100 <= known < 1000 else None,
        header_pairs(at(response, "headers")) or _type_of(response),
        ending=ending_said(failure) if failure else "eof",
        first_byte_s=ms["wait"] / 1000 or None,
        end_s=(ms["wait"] + ms["receive"]) / 1000 or None,
    )
    body, cut, note = _body(at(response, "content"), failure)
    exchange = msgspec.structs.replace(
        exchange,
        chunks=None if body is None else (Chunk(None, body),) if body else (),
        ending="cut" if cut and not failure else exchange.ending,
        note=note,
    )
    messages = items(at(entry, "_eventSourceMessages"))
    return _with_events(exchange, messages) if messages else exchange


_TIMINGS = (*BEFORE, *SENDING, "wait", "receive")


def _ms(value: Any) -> float:
    """A part of an entry's time; -1 says that there was no such part."""
    return min(max(0.0, number(value) or 0.0), MAX_SECONDS)


def _type_of(response: Any) -> tuple[tuple[str, str], ...]:
    kind = text(at(response, "content", "mimeType"))
    return (("content-type", kind),) if kind else ()


def _body(content: Any, failure: str) -> tuple[bytes | None, bool, str]:
    """The bytes of a body (None: not kept), whether they are fewer than came, and a note."""
    said = at(content, "text")
    if not isinstance(said, str) or (not said and failure):
        return None, False, _no_body(content, failure)
    body: bytes | None = said.encode("utf-8", "surrogatepass")
    if at(content, "encoding") == "base64":
        body = from_base64(said)
        if body is None:
            return None, False, "its content is said to be base64, and is not"
    assert body is not None
    size = number(at(content, "size")) or 0
    if not body and size > 0:
        return None, False, _no_body(content, failure)
    if len(body) < size and not magic_of(body):  # the size is that of the decoded content
        return body, True, f"the HAR keeps {len(body):,} of {int(size):,} bytes"
    return body, False, f"the browser said {failure[:80]}" if failure else ""


def _no_body(content: Any, failure: str) -> str:
    if failure:
        return f"{failure[:80]}, and a browser keeps no body of an answer that failed"
    if at(content, "_file"):
        return "its body is in another file (_file); export it with the content embedded"
    return (
        "its body is not in the HAR; export it with content (in Playwright: "
        'record_har_content="embed"), and keep the panel open while it is recorded'
    )


def _with_events(exchange: Exchange, messages: list[Any]) -> Exchange:
    """The events that the browser gave, each at its own time, as the stream they came from.

    Where the body is there too, its bytes are cut at the events.
    """
    dates = [number(at(message, "time")) for message in messages]
    times = _since(dates, exchange)
    data = b"".join(chunk.data for chunk in exchange.chunks or ())
    frames = [frame for frame in frames_of(data) if frame.data] if data else []
    if len(frames) == len(messages):
        ends = [frame.end for frame in frames[:-1]] + [len(data)]
        parts = [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        note = exchange.note
    else:
        parts = [_event(message) for message in messages]
        note = "events as the browser gave them, without comments"
    chunks = tuple(Chunk(t, part) for t, part in zip(times, parts, strict=True))
    last = times[-1] if times else None
    end = None if last is None else max(last, exchange.end_s or 0.0)
    return msgspec.structs.replace(
        exchange, chunks=chunks, end_t=end, first_byte_s=None, end_s=None, note=note
    )


def _since(dates: list[float | None], exchange: Exchange) -> list[float | None]:
    """Times since the request was sent; never running backwards, None where one is missing."""
    if any(date is None for date in dates):
        return [None] * len(dates)
    found = [date for date in dates if date is not None]
    start = exchange.at
    if start is None or not 0 <= found[0] - start < 1e6:  # by another clock
        start = found[0] - (exchange.first_byte_s or 0.0)
    times: list[float | None] = []
    last = 0.0
    for date in found:
        last = max(last, min(date - start, MAX_SECONDS))
        times.append(round(last, 6))
    return times


def _event(message: Any) -> bytes:
    """An event of the browser as it was in the stream."""
    event, number_, data = (text(at(message, key)) for key in ("eventName", "eventId", "data"))
    lines = [f"event: {event}"] if event and event != "message" else []
    lines += [f"id: {number_}"] if number_ else []
    lines += [f"data: {line}" for line in data.split("\n")]
    return ("\n".join(lines) + "\n\n").encode("utf-8", "surrogatepass")
