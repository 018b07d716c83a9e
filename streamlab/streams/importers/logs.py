"""Logs: the lines of an application, or of an SDK, that hold the lines of a stream.

    2026-11-30 12:00:01,123 DEBUG data: {"type": ...}         a line of text, a time in front
    {"timestamp": ..., "message": "data: {...}"}              the same as JSON
    {"ts": ..., "event": "message_start", "data": {...}}      an event in a wrapper

What the SDKs themselves log at DEBUG (OPENAI_LOG, ANTHROPIC_LOG, httpx, httpcore) is requests,
headers and statuses: no body. Such a log is recognised, and the error says so.

Times count from the line that says a request was sent; where none does, from the first line of the
stream, and a note says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from streamlab.errors import WireError
from streamlab.streams.importers.exchange import Exchange
from streamlab.streams.importers.loose import moment, number, text
from streamlab.streams.recording import Chunk
from streamlab.streams.timed_lines import MAX_SECONDS
from streamlab.wire.payload import NotJSON, compact, parse
from streamlab.wire.reader import READERS

__all__ = ["looks", "read"]

#: In front of a log's line: a date, a time of day, seconds since 1970, or a level alone.
_PREFIX = re.compile(
    rb"\[?(?:(?P<date>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)"
    rb"|(?P<clock>\d\d:\d\d:\d\d[.,]\d{1,9})"
    rb"|(?P<epoch>\d{10}\.\d{1,9})"
    rb"|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR)[:\s\]])"
)

#: Somewhere after that: a line of an event stream, to the end of the log's line.
_FIELD = re.compile(rb"(?:^|[\s:|\]>-])(?:(data: ?[{\[][^\r\n]*)|(event: ?[\w.]{1,80})[ \t]*\r?$)")

#: A line that says that a request was sent, in the words of the SDKs and of their HTTP clients.
_SENT = re.compile(rb"Sending HTTP Request|send_request_body\.complete")

#: Who writes logs about HTTP, and no bodies.
_SDKS = re.compile(rb"openai|anthropic|google_genai|httpx|httpcore|HTTP Request")

#: Keys of a wrapper, in the order in which they are tried.
TIMES = ("timestamp", "@timestamp", "ts", "time", "t", "at", "datetime", "date", "created_at")
PAYLOADS = ("data", "payload", "chunk", "event", "message", "msg", "line", "body", "raw")
STREAM_IDS = ("request_id", "requestId", "stream_id", "stream", "trace_id")

NO_BODY = (
    "a log of requests, headers and statuses: SDKs log no body at DEBUG; record the answer itself, "
    "with `streamlab record`, curl -N or mitmproxy"
)


def looks(head: bytes) -> bool:
    """Whether a file that begins so is a log: by its first line that is not empty."""
    first, end, _ = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    if first[:1] == b"{":
        return bool(end) and _wrapped(first) is not None
    return _PREFIX.match(first) is not None


class Said(msgspec.Struct, frozen=True):
    """What one line holds of a stream, or that a request was sent (`sent`)."""

    data: bytes = b""  #: lines of an event stream, or a JSON object
    is_sse: bool = False
    name: str = ""  #: of the event, where its object does not say it
    t: float | None = None  #: by the clock of the log
    stream: str = ""  #: which stream it says it is of
    sent: bool = False

    def in_form(self, sse: bool) -> bytes:
        """The bytes of the stream: JSON as an event, or as a line."""
        if self.is_sse:
            return self.data
        named = f"event: {self.name}\n".encode() if self.name else b""
        return named + b"data: " + self.data + b"\n\n" if sse else self.data + b"\n"


def read(data: bytes, name: str) -> Iterator[Exchange]:
    """The streams in a log."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    streams: dict[str, list[tuple[int, Said]]] = {}
    sent: dict[str, float | None] = {}
    round_, now = 0, None
    in_json = data.lstrip()[:1] == b"{"
    for number_, line in enumerate(data.split(b"\n"), 1):
        said = _wrapped(line, again=bool(streams)) if in_json else _in_text(line)
        if said is None:
            continue
        now = _forward(said.t, now)
        if said.sent:
            round_ += bool(streams)
            sent[str(round_)] = now
            continue
        kept = msgspec.structs.replace(said, t=now if said.t is not None else None)
        streams.setdefault(said.stream or str(round_), []).append((number_, kept))
    if not streams and _SDKS.search(data):
        raise WireError(NO_BODY, name)
    for key, lines in streams.items():
        yield _exchange(lines, sent.get(key), in_json)


def _forward(t: float | None, now: float | None) -> float | None:
    """The clock of a log, which goes on where a line has none, and never runs backwards."""
    if t is None or now is None:
        return now if t is None else t
    if t < 86_400 and now - t > 43_200:  # a time of day, after midnight
        t += 86_400 * ((now - t) // 86_400 + 1)
    return max(t, now)


def _exchange(lines: list[tuple[int, Said]], sent: float | None, in_json: bool) -> Exchange:
    """A stream; a small number in JSON is seconds since its request, everything else a date."""
    first = lines[0][1].t
    since = in_json and first is not None and first < 86_400 and sent is None
    start = sent if sent is not None else 0.0 if since else first
    told = sent is not None or first is None or since
    sse = any(said.is_sse or said.name for _, said in lines)
    chunks = tuple(Chunk(_since(said.t, start), said.in_form(sse)) for _, said in lines)
    return Exchange(
        f"line {lines[0][0]}",
        at=start if start is not None and start >= 1e9 else None,
        headers=(("content-type", "text/event-stream" if sse else "application/jsonl"),),
        chunks=chunks,
        end_t=chunks[-1].t,
        note="" if told else "times count from the first line: the log says no request",
    )


def _since(t: float | None, start: float | None) -> float | None:
    if t is None or start is None:
        return None
    return min(max(0.0, round(t - start, 6)), MAX_SECONDS / 2)


# --- Lines of text


def _in_text(line: bytes) -> Said | None:
    prefix = _PREFIX.match(line)
    if prefix is None:
        return None
    t = _time(prefix)
    rest = line[prefix.end() :]
    if found := _FIELD.search(rest):
        return Said(_field(found), True, t=t)
    if _SENT.search(rest):
        return Said(t=t, sent=True)
    return None


def _field(found: re.Match[bytes]) -> bytes:
    """A line of an event stream; that of the data ends its event."""
    return found[1] + b"\n\n" if found[1] else found[2] + b"\n"


def _time(prefix: re.Match[bytes]) -> float | None:
    if date := prefix["date"]:
        return moment(date.decode())
    if clock := prefix["clock"]:
        hours, minutes, seconds = clock.replace(b",", b".").split(b":")
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    return float(prefix["epoch"]) if prefix["epoch"] else None


# --- Lines of JSON


def _wrapped(line: bytes, again: bool = False) -> Said | None:
    """What a wrapper holds; None for a line that is an event itself, or nothing of a stream.

    Where a line before was a wrapper (`again`), any object in its place is an event.
    """
    try:
        item = parse(line)
    except NotJSON:
        return None
    if not isinstance(item, dict) or "streamlab" in item:
        return None
    key = next((key for key in TIMES if key in item), None)
    if key is None:
        return None
    t = moment(item[key])
    t = number(item[key]) if t is None else t
    stream = next((str(item[key])[:80] for key in STREAM_IDS if item.get(key)), "")
    found = (_payload(item.get(key), item, again) for key in PAYLOADS)
    said = next((each for each in found if each is not None), None)
    if said is not None:
        return msgspec.structs.replace(said, t=t, stream=stream)
    if any(_SENT.search(_bytes(text(item.get(key)))) for key in ("message", "msg", "event")):
        return Said(t=t, sent=True)
    return None


def _payload(value: Any, item: dict[str, Any], again: bool) -> Said | None:
    """What is under one key of a wrapper: an object, its text, or lines of an event stream."""
    if isinstance(value, dict):
        name = _event_name(value, item)
        return None if name is None and not again else Said(_bytes(compact(value)), name=name or "")
    said = text(value)
    if said.strip() == "[DONE]":
        return Said(b"[DONE]")
    if said.lstrip()[:1] == "{":
        try:
            inner = parse(said)
        except NotJSON:
            return None
        name = _event_name(inner, item) if isinstance(inner, dict) else None
        return None if name is None else Said(_bytes(said.strip()), name=name)
    found = _FIELD.match(_bytes(said))
    if found is None:
        return None
    return Said(_bytes(said) if "\n" in said else _field(found), True)


def _event_name(value: dict[str, Any], wrapper: dict[str, Any]) -> str | None:
    """The name that makes an object an event: "" where it needs none, None where it is no event."""
    names = ("", *(text(wrapper.get(key)) for key in ("event", "type", "name")))
    is_event = text(value.get("type")) == "ping" or isinstance(value.get("error"), dict)
    known = (name for name in names if any(it.recognises(name, value) for it in READERS))
    return next(known, "" if is_event else None)


def _bytes(said: str) -> bytes:
    return said.encode("utf-8", "surrogatepass")
