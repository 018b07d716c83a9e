"""What a browser is sent of a turn: each bus event as one frame of server-sent events (SSE).

    event: SegmentGrew
    data: {"turn": "turn-1", "attempt": "turn-1/1", "segment": "0", "text": "Let me"}
    id: 4

Pure: events go in, bytes come out. The vendor's events never get here, so a page knows one
vocabulary, whoever answers. `HEADERS` has what keeps a proxy from holding these frames back, each
with its reason.

JSON on its way to a tool is not sent. While it grows, a browser hears its size (`InputGrew`); when
it is whole, names and values. So no page can show a half of it, or act on one.

Read next: `forward.py`, which sends this; `browser/page.js`, which draws it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from io import StringIO
from typing import Any, NamedTuple

import msgspec

from streamlab.consumer.screen import Bubble, CaughtUp, Part
from streamlab.consumer.turn_events import (
    BusEvent,
    RoundEnded,
    SegmentGrew,
    SegmentOpened,
    SegmentRestated,
    SegmentStopped,
    Status,
    ToolResolved,
)
from streamlab.wire.events import Problem
from streamlab.wire.payload import NotJSON, joined, parse

__all__ = ["BARE", "FRAMING", "HEADERS", "HEARTBEAT", "Frames", "Header", "given"]


class Header(NamedTuple):
    """A header of the answer, and why it is there."""

    name: str
    value: str
    why: str


#: Without these a proxy may collect, compress or keep what was sent. Each is for another reader.
HEADERS: tuple[Header, ...] = (
    Header(
        "Content-Type",
        "text/event-stream; charset=utf-8",
        "Names the format: clients read it frame by frame, and some proxies pass it on at once. "
        "SSE is UTF-8 by definition; said aloud, nothing on the way guesses.",
    ),
    Header(
        "Cache-Control",
        "no-cache, no-store, no-transform",
        "A cache would keep the answer, and perhaps wait for its end first. no-transform forbids "
        "to rewrite the body: Envoy's and Express's compression go by it.",
    ),
    Header(
        "X-Accel-Buffering",
        "no",
        "nginx collects an answer until a buffer is full or the answer is over: seen with one that "
        "asks over HTTP/1.0, its default for long, and with one that compresses. This header, from "
        "the server behind it, turns that off for this one answer.",
    ),
    Header(
        "Content-Encoding",
        "identity",
        "A compressor holds back what it has not yet packed. nginx and Envoy leave alone what has "
        "an encoding already. (By the letter the word belongs in Accept-Encoding; browsers take it "
        "as what it means: none.)",
    ),
)

#: What an answer is called by whoever knows no better.
BARE: tuple[Header, ...] = (Header("Content-Type", "text/event-stream", "the bare minimum"),)

#: How the body is carried. (To a client of HTTP/1.0, which knows no chunks, only the second.)
FRAMING: tuple[Header, ...] = (
    Header(
        "Transfer-Encoding",
        "chunked",
        "The length is unknown. Each frame is a chunk of its own, and a last, empty chunk tells an "
        "end from a line that was cut.",
    ),
    Header("Connection", "close", "One request a connection: when it is gone, the reader is gone."),
)

#: A comment, while there is nothing to say: proxies hang up on a silent line, often after 60 s.
HEARTBEAT = b": still here\n\n"

#: Bounds of a tool's card: how many names, and characters of a value or of a result.
MOST_GIVEN, MOST_VALUE, MOST_RESULT = 50, 2_000, 20_000

Fields = dict[str, Any]
Key = tuple[str, str]


class Frames:
    """Bus events of one turn in, frames out; their ids count from 1.

    It keeps what a tool is given until that is whole, and of texts only that they are texts.
    """

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._texts: set[Key] = set()
        self._inputs: dict[Key, StringIO] = {}  #: of the tool calls that still grow

    def of(self, event: BusEvent | CaughtUp) -> bytes:
        """The frame of one event; no bytes where a browser has nothing to hear of it."""
        if isinstance(event, CaughtUp):
            return self._frame("CaughtUp", self._caught_up(event))
        fields = msgspec.to_builtins(event)
        name = fields.pop("type")
        change = CHANGES.get(type(event))
        said = change(self, event, fields) if change else (name, fields)
        return self._frame(*said) if said else b""

    def problem(self, attempt: str, found: Problem) -> bytes:
        """The frame of something that was wrong with a stream, or that a person should know."""
        return self._frame("ProblemFound", {"attempt": attempt, **msgspec.to_builtins(found)})

    def _frame(self, name: str, fields: Fields) -> bytes:
        head, id = f"event: {name}\ndata: ".encode(), next(self._ids)
        return b"%b%b\nid: %d\n\n" % (head, _json(fields), id)

    # --- what is not sent as it is

    def _open(self, event: SegmentOpened, fields: Fields) -> tuple[str, Fields]:
        key = (event.attempt, event.segment)
        if event.kind == "tool_call":
            self._inputs[key] = StringIO(newline="")
        else:
            self._texts.add(key)
        return "SegmentOpened", fields

    def _grow(self, event: SegmentGrew, fields: Fields) -> tuple[str, Fields] | None:
        key = (event.attempt, event.segment)
        if key in self._texts:
            return "SegmentGrew", fields
        if key not in self._inputs:
            return None  # of a part that was never opened: it may be anything
        self._inputs[key].write(fields.pop("text"))
        return "InputGrew", fields | {"size": self._inputs[key].tell()}

    def _restate(self, event: SegmentRestated, fields: Fields) -> tuple[str, Fields] | None:
        key = (event.attempt, event.segment)
        if key in self._texts:
            return "SegmentRestated", fields
        if key in self._inputs:
            self._inputs[key] = StringIO(newline="")
        return self._grow(SegmentGrew(event.turn, *key, event.text), fields)

    def _stop(self, event: SegmentStopped, fields: Fields) -> tuple[str, Fields]:
        text = self._inputs.pop((event.attempt, event.segment), None)
        if text is not None and not event.error:
            fields["input"] = given(text.getvalue())
        return "SegmentStopped", fields

    def _resolve(self, event: BusEvent, fields: Fields) -> tuple[str, Fields]:
        return "ToolResolved", fields | {"text": _clipped(fields["text"], MOST_RESULT)}

    def _round_over(self, event: RoundEnded, fields: Fields) -> tuple[str, Fields]:
        self._texts = {key for key in self._texts if key[0] != event.attempt}
        self._inputs = {key: t for key, t in self._inputs.items() if key[0] != event.attempt}
        return "RoundEnded", fields

    def _caught_up(self, event: CaughtUp) -> Fields:
        """A whole bubble, for a browser that was far behind; what grows on is known from here."""
        bubble = event.screen.bubbles[-1] if event.screen.bubbles else Bubble("")
        self._texts, self._inputs = set(), {}
        for part in bubble.parts:
            key = (part.attempt, part.segment)
            if part.kind != "tool_call":
                self._texts.add(key)
            elif part.status is Status.STREAMING:
                self._inputs[key] = StringIO(newline="")
                self._inputs[key].write(part.text)
        parts = [_part(part) for part in bubble.parts]
        return {"turn": bubble.id, "rounds": bubble.rounds, "parts": parts}


#: Events of which a browser hears something else than what crosses the bus.
CHANGES: dict[type, Callable[[Frames, Any, Fields], tuple[str, Fields] | None]] = {
    SegmentOpened: Frames._open,
    SegmentGrew: Frames._grow,
    SegmentRestated: Frames._restate,
    SegmentStopped: Frames._stop,
    ToolResolved: Frames._resolve,
    RoundEnded: Frames._round_over,
}


def given(text: str) -> list[list[str]]:
    """What a tool is given, as names and values to show; free text has no name.

    >>> given('{"item": "W-7", "deep": {"a": [1, null]}}')
    [['item', 'W-7'], ['deep', '{"a": [1, null]}']]
    >>> given("free text")
    [['', 'free text']]
    """
    whole = joined([text])
    try:
        value = parse(whole) if whole else {}
    except NotJSON:
        return [["", _clipped(whole, MOST_VALUE)]]
    pairs = list(value.items()) if isinstance(value, dict) else [("", value)]
    shown = [
        [_clipped(name, MOST_VALUE), _clipped(_plain(held), MOST_VALUE)]
        for name, held in pairs[:MOST_GIVEN]
    ]
    more = len(pairs) - MOST_GIVEN
    return [*shown, ["…", f"{more:,} more"]] if more > 0 else shown


def _part(part: Part) -> Fields:
    """A part as it is now, under the same rules as the events."""
    names = ("attempt", "segment", "kind", "tool", "server")
    fields = {name: getattr(part, name) for name in names}
    fields |= {"status": str(part.status), "result": _clipped(part.result, MOST_RESULT)}
    if part.kind != "tool_call":
        return fields | {"text": part.text}
    whole = part.status is not Status.STREAMING and not _is_broken(part)
    return fields | ({"input": given(part.text)} if whole else {"size": len(part.text)})


def _is_broken(part: Part) -> bool:
    """Whether its input never became whole, as far as its chip leaves that open."""
    if part.status not in (Status.FAILED, Status.DISCARDED):
        return False
    try:
        parse(part.text)
    except NotJSON:
        return True
    return False


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"


def _json(fields: Fields) -> bytes:
    """JSON in one line, so that no text can end its frame.

    A delta may hold half a character, which UTF-8 cannot; as an escape it can be sent, and the page
    puts the halves together.
    """
    try:
        return json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(fields).encode()
