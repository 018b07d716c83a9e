"""What is known of a frame before, or without, its wire format: an error, a sign of life, a format.

`Unrecognised` reads a stream in none of the formats. `reader.py` uses it, and asks `recognised`
which format a frame can only be of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .dialect import Dialect, word
from .events import Event, KeepAlive, Problem
from .payload import NotJSON, error_in, parse
from .runs import Run
from .sse import Blocks, Frame

__all__ = [
    "Dialects",
    "Unrecognised",
    "clip",
    "is_keep_alive",
    "object_of",
    "objects_of",
    "recognised",
    "whole_in",
    "whole_said",
]

#: Wire format -> its reader.
Dialects = Mapping[str, type[Dialect]]


class Unrecognised:
    """A stream of frames in no format known here: only an error in it can be understood."""

    completed = False
    marker = ""

    def __init__(self, dialects: Dialects) -> None:
        self._dialects = dialects
        self._said = False

    def read(self, frame: Frame) -> tuple[Event, ...]:
        """The error that the frame states, if it is one; else, once, that it means nothing here."""
        payload = object_of(frame)
        found = [payload] if payload is not None else [None, *objects_of(frame)]
        if errors := tuple(filter(None, (error_in(each, frame) for each in found))):
            return errors
        if is_keep_alive(frame):
            return (KeepAlive(),)
        if self._said:
            return ()
        self._said = True
        if wire := whole_in(self._dialects, object_of(frame) or {}):
            return (Problem("not-a-stream", "error", whole_said(wire, frame), frame.number),)
        text = f"none of the wire formats known here ({', '.join(self._dialects)}): the first frame"
        return (Problem("unknown-wire", "error", f"{text} is {clip(frame.data)}", frame.number),)

    def runs(self, blocks: Blocks, first: int) -> list[Run]:
        """None: each frame is looked at."""
        return []

    def end(self) -> tuple[Event, ...]:
        """A clean end completes nothing here."""
        return ()

    def unfinished(self) -> str:
        """What is missing where nothing but keep-alives came; else nothing that could be named."""
        return "" if self._said else "any event of an answer"


def whole_in(dialects: Dialects, payload: dict[str, Any]) -> str:
    """The wire format of which a payload is a whole answer; "" where it is none."""
    return next((wire for wire, it in dialects.items() if it.whole(payload)), "")


def whole_said(wire: str, frame: Frame) -> str:
    """What is wrong with a frame that is a whole answer."""
    return (
        f"not a stream: a whole answer ({wire}), as it comes without streaming: {clip(frame.data)}"
    )


def recognised(dialects: Dialects, frame: Frame) -> str | None:
    """The wire format that a frame can only be of; None where it may be any, or none."""
    payload = object_of(frame)
    if payload is None:
        return None
    found = (wire for wire, it in dialects.items() if it.recognises(frame.event, payload))
    return next(found, None)


def clip(data: bytes, most: int = 80) -> str:
    """The first characters of some bytes, quoted, with how long the whole is."""
    text = data[: most * 4].decode("utf-8", "replace")
    more = f"… ({len(data)} bytes)" if len(data) > most * 4 or len(text) > most else ""
    return f"{text[:most]!r}{more}"


def object_of(frame: Frame) -> dict[str, Any] | None:
    """The JSON object in a frame; {} where it holds no JSON, None where that is no object."""
    try:
        payload = parse(frame.data)
    except NotJSON:
        return {}
    return payload if isinstance(payload, dict) else None


def objects_of(frame: Frame) -> list[dict[str, Any]]:
    """The JSON objects in a frame: it is one, or an array of them."""
    try:
        payload = parse(frame.data)
    except NotJSON:
        return [{}]
    items = payload if isinstance(payload, list) else [payload]
    return [item for item in items if isinstance(item, dict)]


def is_keep_alive(frame: Frame) -> bool:
    """Whether a frame proves life and nothing else, in every format known here."""
    payload = object_of(frame) or {}
    if error_in(payload, frame):
        return False
    return not frame.data.strip() or bool(
        {frame.event, word(payload.get("type"))} & {"ping", "keepalive"}
    )
