"""What a failing provider says, in the Claude API's words: errors, early ends, broken grammar.

Each is a pure function from a recording to a new one, which keeps the form and the line ends of the
old: frames, or one JSON event a line. Read next: `places.py`, for where they can happen.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from streamlab.errors import UsageError
from streamlab.streams import claude_writer
from streamlab.streams.edit import disconnect, frames, in_order, insert, splice, whole
from streamlab.streams.recording import Chunk, Recording
from streamlab.wire.jsonl import is_json_lines
from streamlab.wire.sse import Frame

__all__ = [
    "delta_after_stop",
    "error",
    "generating",
    "index_gap",
    "interleave",
    "json_error",
    "never_end",
    "no_stop_reason",
    "pause",
    "payload_of",
    "ping_flood",
    "refuse",
    "second_start",
    "token_limit",
    "unknown",
]

Payload = dict[str, Any]

TWO_HOURS_S = 7200
MAX_PINGS = 100_000


# --- It fails, or stops early ---------------------------------------------------------------------


def error(recording: Recording, after: int, type: str = "overloaded_error") -> Recording:
    """Let the provider fail after HTTP said 200: an error event, and nothing after it."""
    return insert(disconnect(recording, after), after, _written(recording, _error(type)))


def json_error(recording: Recording, after: int = 0) -> Recording:
    """Write an error as plain JSON, outside the framing of an event stream, and stop."""
    body = json.dumps(_error("api_error"), indent=2).encode("ascii")
    return insert(disconnect(recording, after), after, body + b"\n")


def token_limit(recording: Recording, after: int) -> Recording:
    """Run out of tokens: open blocks are closed wherever their content is, and all looks whole."""
    return _stop_early(recording, after, {"stop_reason": "max_tokens"})


def refuse(recording: Recording, after: int) -> Recording:
    """Let a classifier stop the answer: HTTP says 200, and what came before is to be discarded."""
    details = {"type": "refusal", "category": "general_harms", "explanation": None}
    return _stop_early(recording, after, {"stop_reason": "refusal", "stop_details": details})


def pause(recording: Recording, after: int) -> Recording:
    """Let the provider pause a long turn, to be sent back as it is."""
    return _stop_early(recording, after, {"stop_reason": "pause_turn"})


def _error(type: str) -> Payload:
    message = type.removesuffix("_error").replace("_", " ").capitalize()
    return {"type": "error", "error": {"type": type, "message": message}}


def _stop_early(recording: Recording, after: int, delta: Payload) -> Recording:
    """Close the open blocks and the message, as the API does when generation stops."""
    whole("after", after)
    found = frames(recording)
    first, last = generating(found)
    if not first <= after <= last:
        raise UsageError(
            f"after={after}: generation stops between message_start and message_delta; "
            f"this recording allows {first} to {last}"
        )
    generated = [payload_of(frame) for frame in found[:after]]
    tokens = sum(payload.get("type") == "content_block_delta" for payload in generated)
    tail = _written(
        recording,
        *({"type": "content_block_stop", "index": index} for index in _open_blocks(generated)),
        {
            "type": "message_delta",
            "delta": {"stop_sequence": None, **delta},
            "usage": {"output_tokens": tokens + 1},
        },
        {"type": "message_stop"},
    )
    return insert(disconnect(recording, after), after, tail)


def generating(found: list[Frame]) -> tuple[int, int]:
    """The first and the last place at which content can still come."""
    types = [payload_of(frame).get("type") for frame in found]
    if "message_start" not in types:
        raise UsageError("this recording has no message_start, so there is nothing to stop")
    end = next((at for at, type in enumerate(types) if type in _AFTER_CONTENT), len(types))
    return types.index("message_start") + 1, end


_AFTER_CONTENT = ("message_delta", "message_stop", "error")


def _open_blocks(payloads: list[Payload]) -> list[int]:
    """Blocks that have started and not stopped, in the order of the message."""

    def numbers(type: str) -> set[int]:
        found = [p.get("index") for p in payloads if p.get("type") == type]
        return {index for index in found if isinstance(index, int)}

    return sorted(numbers("content_block_start") - numbers("content_block_stop"))


def payload_of(frame: Frame) -> Payload:
    """The JSON object in a frame; an empty one where it holds none."""
    try:
        value = json.loads(frame.data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _written(recording: Recording, *payloads: Payload) -> bytes:
    """Frames of these payloads, in the recording's own form and line ends."""
    if recording.wire not in (None, "claude"):
        raise UsageError(f"this fault speaks as Claude does, not on the wire {recording.wire!r}")
    if is_json_lines(recording.data):
        return b"".join(json.dumps(payload).encode("ascii") + b"\n" for payload in payloads)
    newline = _newline(recording.data)
    return b"".join(claude_writer.frame(payload, newline) for payload in payloads)


def _newline(data: bytes) -> str:
    found = re.search(rb"\r\n|\r|\n", data)
    return found[0].decode("ascii") if found else "\n"


# --- It says more, or less, than its grammar allows -----------------------------------------------


def unknown(recording: Recording, after: int, type: str = "future_event") -> Recording:
    """Insert an event of a type that no reader knows yet."""
    note = "new in a later version of the API"
    return insert(recording, after, _written(recording, {"type": type, "note": note}))


def ping_flood(recording: Recording, after: int, count: int = 200) -> Recording:
    """Insert many pings at one place."""
    whole("count", count)
    if not 1 <= count <= MAX_PINGS:
        raise UsageError(f"count={count}: a flood has 1 to {MAX_PINGS:,} pings")
    return insert(recording, after, count * _written(recording, {"type": "ping"}))


def second_start(recording: Recording, after: int) -> Recording:
    """Begin a second message inside this one."""
    message = claude_writer.MESSAGE | {"id": "msg_second"}
    start = {"type": "message_start", "message": message}
    return insert(recording, after, _written(recording, start))


def delta_after_stop(recording: Recording, index: int = 0, after: int | None = None) -> Recording:
    """Go on with a block that has stopped: at once, or after a later frame."""
    stop = {"type": "content_block_stop", "index": index}
    numbers = (f.number for f in frames(recording) if payload_of(f) == stop)
    stopped = next(numbers, None)
    if stopped is None:
        raise UsageError(f"index={index}: no block of this number stops in this recording")
    if after is not None:
        whole("after", after)
    if after is not None and after < stopped:
        raise UsageError(f"after={after}: block {index} stops only with frame {stopped}")
    delta = {"type": "text_delta", "text": "too late"}
    more = {"type": "content_block_delta", "index": index, "delta": delta}
    place = stopped if after is None else after
    return insert(recording, place, _written(recording, more))


def index_gap(recording: Recording, index: int = 0) -> Recording:
    """Number every block from `index` on one higher, as if a block had been lost."""
    if all(payload_of(frame).get("index") != index for frame in frames(recording)):
        raise UsageError(f"index={index}: there is no block of this number in this recording")

    def higher(frame: Frame, raw: bytes) -> bytes:
        found = payload_of(frame).get("index")
        if not isinstance(found, int) or found < index:
            return raw
        return re.sub(rb'"index":\s*\d+', b'"index":%d' % (found + 1), raw, count=1)

    return _rewritten(recording, higher)


def no_stop_reason(recording: Recording) -> Recording:
    """End the message without saying why it ended."""

    def unsaid(frame: Frame, raw: bytes) -> bytes:
        if payload_of(frame).get("type") != "message_delta":
            return raw
        return re.sub(rb'"stop_reason":\s*"[^"]*"', b'"stop_reason":null', raw)

    return _rewritten(recording, unsaid)


def never_end(recording: Recording, after: int, every: float = 15.0) -> Recording:
    """Send pings for two hours instead of the rest: alive, and no step further.

    The first comes `every` seconds after the last chunk, so no silence is ever longer than that.
    """
    if not 0.1 <= every <= TWO_HOURS_S:
        raise UsageError(f"every={every}: a ping may come every 0.1 to {TWO_HOURS_S} seconds")
    stopped = msgspec.structs.replace(disconnect(recording, after), ending="timeout")
    ping, t = _written(recording, {"type": "ping"}), stopped.end_t
    pings = [
        Chunk(None if t is None else round(t + number * every, 6), ping)
        for number in range(1, 1 + int(TWO_HOURS_S / every))
    ]
    return msgspec.structs.replace(
        stopped, chunks=(*stopped.chunks, *pings), end_t=pings[-1].t if pings else t
    )


def interleave(recording: Recording, seed: int = 0) -> Recording:
    """Let the blocks come side by side: each in its own order, and starting in theirs."""
    rng = Random(seed)
    indexes = [payload_of(frame).get("index") for frame in frames(recording)]
    waiting: dict[int, deque[int]] = {}  # block -> numbers of its frames
    for number, index in enumerate(indexes, 1):
        if isinstance(index, int):
            waiting.setdefault(index, deque()).append(number)
    unstarted, started, order = deque(waiting), list[int](), list[int]()
    for number, index in enumerate(indexes, 1):
        if not isinstance(index, int):
            order.append(number)
            continue
        pick = rng.randrange(len(started) + bool(unstarted))
        if pick == len(started):
            started.append(unstarted.popleft())
        order.append(waiting[started[pick]].popleft())
        if not waiting[started[pick]]:
            del started[pick]
    return in_order(recording, order)


def _rewritten(recording: Recording, rewrite: Callable[[Frame, bytes], bytes]) -> Recording:
    """Each frame's bytes as `rewrite` gives them, from the last, so that places stay right."""
    data = recording.data
    for frame in reversed(frames(recording)):
        raw = data[frame.start : frame.end]
        new = rewrite(frame, raw)
        if new != raw:
            recording = splice(recording, frame.start, frame.end, new)
    return recording
