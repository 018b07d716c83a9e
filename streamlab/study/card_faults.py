"""The faults of the report card: each a sentence, and how it is made of a good stream.

`CARD_FAULTS` is the catalogue. Of the good stream of a wire (`card_streams.py`) a fault makes what
the server sends: bytes, how the connection stops, and in which HTTP framing; or None, where that
wire has no such thing. A fault stands between `half` and `rest` of the call's input wherever it
can, so that a client which does not notice it holds half a payment.

Read next: `report_card.py`, which puts these to the SDKs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from streamlab.streams.answer import Answer
from streamlab.streams.error_shapes import error_frame
from streamlab.streams.recording import Recording
from streamlab.study.card_streams import HALF, INPUT, PART, TEXT, Good, sse

__all__ = ["CARD_FAULTS", "Fault", "Sent"]


class Sent(NamedTuple):
    """What the server sends: the body, how the connection stops, and in which framing."""

    data: bytes
    ending: str = "eof"
    framing: str = "chunked"
    type: str = "text/event-stream; charset=utf-8"

    def answer(self) -> Answer:
        """For the server."""
        recording = Recording.from_bytes(self.data, ending=self.ending)
        return Answer(recording, framing=self.framing, headers=(("content-type", self.type),))

    def recording(self, wire: str) -> Recording:
        """For streamlab: what the client's HTTP library could know of it, and no more."""
        ending = "eof" if self.framing == "close" and self.ending == "cut" else self.ending
        return Recording.from_bytes(self.data, ending=ending, wire=wire)


class Fault(NamedTuple):
    """One thing that goes wrong, or only looks as if it did."""

    id: str
    says: str
    make: Callable[[Good], Sent | bytes | None]

    def sent(self, good: Good) -> Sent | None:
        """What is sent on that wire; None where there is no such thing on it."""
        made = self.make(good)
        return Sent(made) if isinstance(made, bytes) else made


# --- Places, the same on every wire ---------------------------------------------------------------


def _middle(good: Good) -> tuple[bytes, bytes]:
    """The stream in two: inside the call's input, or before the call where that comes whole."""
    role = "half" if good.has("half") else "text"
    return good.through(role), good.beyond(role)


def _between(frame: Callable[[Good], bytes | None]) -> Callable[[Good], bytes | None]:
    """A fault that puts a frame of its own into the middle."""

    def make(good: Good) -> bytes | None:
        before, after = _middle(good)
        extra = frame(good)
        return None if extra is None else before + extra + after

    return make


def _stopped(ending: str, framing: str = "chunked") -> Callable[[Good], Sent]:
    return lambda good: Sent(_middle(good)[0], ending, framing)


def _row(rows: dict[str, bytes]) -> Callable[[Good], bytes | None]:
    return lambda good: rows.get(good.wire)


def _whole_but(role: str, rest: str) -> Callable[[Good], bytes | None]:
    """Everything up to a role's last piece, where the wire has that role and more after it."""
    return lambda good: good.through(role) if good.has(role) and good.has(rest) else None


# --- Faults that each wire words in its own way ---------------------------------------------------

#: An error that few clients know as one: without its event name, flat, or not in its usual place.
ODD_ERRORS = {
    "claude": sse({"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}),
    "openai-chat": sse({"type": "server_error", "message": "Busy"}, "error"),
    "openai-responses": sse(
        {"type": "error", "sequence_number": 9, "code": "server_error", "message": "Busy"}
        | {"param": None},
        "error",
    ),
    "gemini": sse({"responseId": "r1", "error": {"code": 503, "message": "Busy"}}),
}

#: An event of a type that came into being after the client was written.
UNKNOWN = {
    "claude": sse({"type": "mood_changed", "mood": "calm"}, "mood_changed"),
    "openai-chat": sse({"object": "chat.mood", "mood": "calm"}),
    "openai-responses": sse(
        {"type": "response.mood", "sequence_number": 9, "mood": "calm"}, "response.mood"
    ),
    "gemini": sse({"mood": "calm"}),
}

#: What the other side of the end marker may bring.
LATE_TEXT = " Or not."


def _error(good: Good) -> bytes:
    return error_frame(good.wire, "overloaded_error")


def _token_limit(good: Good) -> bytes:
    """The model is out of tokens inside the call, and says so properly."""
    before, _ = _middle(good)
    if good.wire == "claude":
        stop = good.only("stop").replace(b"tool_use", b"max_tokens")
        return before + good.only("closed") + stop + good.only("end")
    if good.wire == "openai-chat":
        return before + good.only("stop").replace(b"tool_calls", b"length") + good.only("end")
    if good.wire == "gemini":
        return before + good.only("stop").replace(b"STOP", b"MAX_TOKENS")
    return before + _incomplete(good)


def _incomplete(good: Good) -> bytes:
    """The Responses events that close half a call."""
    payload: dict[str, Any] = json.loads(good.only("end").partition(b"data: ")[2])
    response = payload["response"]
    call = response["output"][1]
    call |= {"arguments": PART + HALF, "status": "incomplete"}
    reason = {"reason": "max_output_tokens"}
    response |= {"status": "incomplete", "incomplete_details": reason}
    item = {"type": "response.output_item.done", "sequence_number": 10, "output_index": 1}
    last = {**payload, "type": "response.incomplete"}
    return sse({**item, "item": call}, str(item["type"])) + sse(last, "response.incomplete")


def _late(good: Good) -> bytes:
    """Another piece of text, after everything."""
    old, new = json.dumps(TEXT), json.dumps(LATE_TEXT)
    for piece in good.pieces:
        deltas = ("content_block_delta", "output_text.delta", "chat.completion", "candidates")
        if piece.role == "text" and any(name.encode() in piece.data for name in deltas):
            return good.data + piece.data.replace(old.encode(), new.encode())
    raise AssertionError(f"{good.wire} has no piece of text")


def _without_names(good: Good) -> bytes | None:
    lines = good.data.split(b"\n")
    kept = [line for line in lines if not line.startswith(b"event:")]
    return b"\n".join(kept) if len(kept) < len(lines) else None


def _without_start(good: Good) -> bytes | None:
    return good.joined("call") if good.has("part") else None


#: Where a call's number stands, and what a gap makes of it.
GAPS = {
    "claude": (b'"index": 1', b'"index": 5'),
    "openai-chat": (b'"tool_calls": [{"index": 0', b'"tool_calls": [{"index": 4'),
    "openai-responses": (b'"output_index": 1', b'"output_index": 5'),
}


def _gap(good: Good) -> bytes | None:
    old, new = GAPS.get(good.wire, (b"", b""))
    return good.data.replace(old, new) if old else None


def _not_json(good: Good) -> bytes:
    """One event whose data stops two characters early."""
    role = "half" if good.has("half") else "text"
    broken = good.only(role)[:-4] + b"\n\n"
    before = b"".join(piece.data for piece in _before(good, role))
    return before + broken + good.beyond(role)


def _before(good: Good, role: str) -> list[Any]:
    roles = [piece.role for piece in good.pieces]
    return list(good.pieces[: roles.index(role)])


def _not_utf8(good: Good) -> bytes:
    """A broken character inside the invoice's number."""
    head = b"".join(piece.data for piece in _before(good, "call"))
    return head + good.data[len(head) :].replace(b"INV-17", b"INV-\xff17")


def _bad_input(good: Good) -> bytes | None:
    """The call's input is no JSON: its first value lacks the quotation marks."""
    return good.data.replace(rb"\"INV-17\"", b"INV-17") if good.has("part") else None


def _json_body(good: Good) -> Sent:
    """The answer in one piece, as if nobody had asked for a stream."""
    body: Any = {"id": "1", "content": TEXT, "input": INPUT}
    if good.wire == "gemini":  # this endpoint's other form
        events = [line[6:] for line in good.data.split(b"\n") if line.startswith(b"data: ")]
        body = [json.loads(event) for event in events]
    return Sent(json.dumps(body).encode(), framing="length", type="application/json")


_HTML = b"<!doctype html>\n<title>502</title>\n<p>Bad gateway</p>\n"

_FAULTS = (
    Fault("none", "Nothing is wrong: the control.", lambda good: good.data),
    # Ends that look clean
    Fault("end-inside", "The body ends cleanly inside the answer.", _stopped("eof")),
    Fault(
        "end-at-call",
        "The body ends cleanly where the call has a name and no input yet.",
        _whole_but("call", "part"),
    ),
    Fault(
        "end-before-stop",
        "The body ends cleanly after the last piece of the call, before any stop reason.",
        lambda good: good.joined("stop", "end"),
    ),
    Fault(
        "end-before-marker",
        "Only the end marker is missing: the stop reason came.",
        _whole_but("stop", "end"),
    ),
    Fault("empty", "HTTP 200 with an empty body.", lambda good: Sent(b"")),
    Fault("json-body", "HTTP 200 with one JSON document in place of a stream.", _json_body),
    Fault(
        "html-body",
        "HTTP 200 with a proxy's HTML page in place of a stream.",
        lambda good: Sent(_HTML, framing="length", type="text/html"),
    ),
    Fault(
        "close-cut",
        "The body's end is the connection's end (no length, no chunks), in the middle of an event.",
        lambda good: Sent(_middle(good)[0] + _middle(good)[1][:20], "cut", "close"),
    ),
    # Ends that HTTP notices
    Fault("reset", "The connection is torn down (TCP RST).", _stopped("reset")),
    Fault("cut", "The connection closes before HTTP's own end of the body.", _stopped("cut")),
    Fault(
        "cut-after-end",
        "The whole answer came, then the connection closes before HTTP's own end.",
        lambda good: Sent(good.data, "cut"),
    ),
    Fault("timeout", "The server falls silent inside the answer.", _stopped("timeout")),
    # What the provider says
    Fault("error", "An error event after HTTP 200.", lambda good: _middle(good)[0] + _error(good)),
    Fault("error-then-more", "The rest of the stream comes after the error.", _between(_error)),
    Fault(
        "odd-error",
        "An error event in an unusual shape.",
        lambda good: _middle(good)[0] + ODD_ERRORS[good.wire],
    ),
    Fault(
        "odd-error-then-more",
        "The rest of the stream comes after the error in an unusual shape.",
        _between(_row(ODD_ERRORS)),
    ),
    Fault("token-limit", "The token limit is reached inside the call's input.", _token_limit),
    Fault("bad-input", "The call's input is no JSON.", _bad_input),
    # What may come between
    Fault("unknown-event", "An event of an unknown type.", _between(_row(UNKNOWN))),
    Fault(
        "ping",
        "A keep-alive event `ping` with JSON data.",
        _between(lambda good: sse({"type": "ping"}, "ping")),
    ),
    Fault(
        "empty-ping",
        "A keep-alive event `ping` with empty data.",
        _between(lambda good: b"event: ping\ndata:\n\n"),
    ),
    Fault("comment", "A comment as keep-alive.", _between(lambda good: b": keep-alive\n\n")),
    Fault(
        "comment-after-id",
        "The first event has an `id:`, and a comment comes later.",
        lambda good: b"id: 1\n" + (_between(lambda good: b": keep-alive\n\n")(good) or b""),
    ),
    # What breaks the grammar
    Fault("no-names", "The events have no `event:` line.", _without_names),
    Fault(
        "two-ends",
        "The end marker comes twice.",
        lambda good: good.data + good.only("end" if good.has("end") else "stop"),
    ),
    Fault("after-end", "Another piece of text comes after the end marker.", _late),
    Fault("no-start", "The call's pieces come without its start.", _without_start),
    Fault("index-gap", "The call's number skips some.", _gap),
    Fault("not-json", "The data of one event is no JSON.", _not_json),
    Fault("not-utf8", "A byte inside the call is no UTF-8.", _not_utf8),
    Fault(
        "bom", "A byte-order mark before the first event.", lambda good: b"\xef\xbb\xbf" + good.data
    ),
    Fault("no-blank-line", "The last event lacks its blank line.", lambda good: good.data[:-1]),
)

#: Id -> fault, in the order of the card.
CARD_FAULTS = {fault.id: fault for fault in _FAULTS}
