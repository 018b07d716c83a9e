"""A log's line of JSON: a wrapper with a time, and what of it is the stream's.

{"timestamp": ..., "message": "data: {...}"}          a line of text in a wrapper
{"ts": ..., "event": "message_start", "data": {...}}  an event in one
{"time": ..., "log": "{\\"ts\\": ...}\\n"}               a wrapper in a wrapper: a container's
{"events": [{"timestamp": ..., "message": ...}]}      many: the export of a log service
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from streamlab.streams.importers.log_fields import SENT, Said, bytes_of
from streamlab.streams.importers.log_text import in_text
from streamlab.streams.importers.loose import at, items, json_of, moment, number, several, text
from streamlab.wire.payload import NotJSON, compact, parse
from streamlab.wire.reader import READERS

__all__ = ["first_of_export", "has_time", "in_json", "is_event", "of_export"]

#: Keys of a wrapper, in the order in which they are tried.
TIMES = (
    *("timestamp", "@timestamp", "ts", "time", "t", "at", "datetime", "date", "created_at"),
    *("asctime", "@t", "__REALTIME_TIMESTAMP"),
)
PAYLOADS = (
    *("data", "payload", "chunk", "event", "message", "msg", "line", "body", "raw", "log"),
    *("MESSAGE", "@message", "textPayload", "jsonPayload", "attributes", "record", "text"),
)
STREAM_IDS = ("request_id", "requestId", "stream_id", "stream", "trace_id")

#: What `stream` says in a container's log, which is no stream's id.
PIPES = ("stdout", "stderr")

#: How deep wrappers may stand in one another.
MAX_WRAPPERS = 3

#: Where an export has its list.
_EXPORT = re.compile(rb'\s*(?:\{\s*"(events|data|entries|logs|results)"\s*:\s*)?\[\s*(?=\{)')


def has_time(item: dict[str, Any]) -> bool:
    """Whether an object may be a log's line."""
    return _time_key(item) is not None


def is_event(item: dict[str, Any]) -> bool:
    """Whether an object is an event itself, whatever else is in it."""
    return "streamlab" in item or any(it.recognises("", item) for it in READERS)


def in_json(item: Any, again: str = "", deep: int = 1) -> Said | None:
    """What a wrapper holds; None for one that is an event itself, or holds nothing of a stream.

    `item` is the object, or its text. Any object is an event under the key (`again`) under which
    a line before had one.
    """
    if isinstance(item, bytes | str):
        item = _parsed(item)
    if not isinstance(item, dict) or is_event(item):
        return None
    key = _time_key(item)
    if key is None and item.get("type") != "stream_event" and deep == 1:
        return None
    t = None if key is None else moment(item[key])
    t = number(item[key]) if t is None and key is not None else t
    for place in PAYLOADS:
        said = _payload(item.get(place), item, again == place, deep) if place in item else None
        if said is not None:
            t = t if said.t is None else said.t
            of = said.stream or _stream_of(item)
            return msgspec.structs.replace(said, t=t, stream=of, key=place, in_json=True)
    if any(SENT.search(bytes_of(text(item.get(key)))) for key in ("message", "msg", "event")):
        return Said(t=t, sent=True, in_json=True)
    return None


def _time_key(item: dict[str, Any]) -> str | None:
    return next((key for key in TIMES if key in item), None)


def _stream_of(item: dict[str, Any]) -> str:
    named = (str(item[key])[:80] for key in STREAM_IDS if item.get(key))
    return next((name for name in named if name not in PIPES), "")


def _parsed(data: bytes | str) -> Any:
    try:
        return parse(data)
    except NotJSON:
        return None


def _payload(value: Any, item: dict[str, Any], again: bool, deep: int) -> Said | None:
    """What is under one key of a wrapper: an object, its text, or a text that holds some."""
    if isinstance(value, dict):
        name = _event_name(value, item)
        if name is None and deep < MAX_WRAPPERS and (inner := in_json(value, deep=deep + 1)):
            return inner
        if name is None and not again:
            return None
        return Said(bytes_of(compact(value)), name=name or "")
    said = text(value)
    if said.strip() == "[DONE]":
        return Said(b"[DONE]")
    if said.lstrip()[:1] == "{":
        inner_item = _parsed(said)
        name = _event_name(inner_item, item) if isinstance(inner_item, dict) else None
        if name is not None:
            return Said(bytes_of(said.strip()), name=name)
        inner = in_json(inner_item, deep=deep + 1) if deep < MAX_WRAPPERS else None
        if inner is not None or not again:
            return inner
    data = bytes_of(said)
    if data.startswith((b"data:", b"event:")):
        return Said(data, True, raw=True)
    found = in_text(
        data, lambda rest: in_json(rest, deep=deep + 1) if deep < MAX_WRAPPERS else None
    )
    return Said(data, True, raw=True, rest=True) if found is None and again and data else found


def _event_name(value: dict[str, Any], wrapper: dict[str, Any]) -> str | None:
    """The name that makes an object an event: "" where it needs none, None where it is no event."""
    names = ("", *(text(wrapper.get(key)) for key in ("event", "type", "name")))
    known = text(value.get("type")) == "ping" or isinstance(value.get("error"), dict)
    found = (name for name in names if any(it.recognises(name, value) for it in READERS))
    return next(found, "" if known else None)


def first_of_export(head: bytes) -> dict[str, Any] | None:
    """The first object of an export that begins so; None where it is none."""
    found = _EXPORT.match(head)
    if found is None or several(head):
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(head[found.end() :].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return _entry(value)


def of_export(data: bytes, name: str) -> Iterator[dict[str, Any]]:
    """The objects of an export, in its order. Raises `WireError` where it is not whole JSON."""
    found, whole = _EXPORT.match(data), json_of(data, "an export of a log", name)
    if found is not None:
        listed = at(whole, found[1].decode()) if found[1] else whole
        yield from (entry for entry in map(_entry, items(listed)) if entry is not None)


def _entry(value: Any) -> dict[str, Any] | None:
    """An object of an export; where it is only the envelope of one, what is in it."""
    if not isinstance(value, dict):
        return None
    inside = (value.get(key) for key in ("attributes", "_source"))
    found = next((item for item in inside if isinstance(item, dict) and has_time(item)), None)
    return value if found is None or has_time(value) else found
