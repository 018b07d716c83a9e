"""What a failing provider says, in the words of its own wire: errors, early ends, broken grammar.

Each is a pure function from a recording to a new one, which keeps the form and the line ends of the
old: frames, one JSON event a line, or an array. The words are a `Voice`'s; a fault that a wire
cannot have raises `UsageError`, which says why. Read next: `places.py`, for where they can happen.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable
from random import Random

import msgspec

from streamlab.errors import UsageError
from streamlab.streams.edit import (
    disconnect,
    frames,
    in_order,
    insert,
    splice,
    splice_all,
    whole,
)
from streamlab.streams.recording import Chunk, Recording
from streamlab.streams.voice import DONE, Early, Payload, Voice, first, payload_of
from streamlab.streams.voices import payloads, speaking, voice_of
from streamlab.wire.forms import decoder_of, is_array
from streamlab.wire.sse import Frame, SSEDecoder

__all__ = [
    "delta_after_stop",
    "error",
    "generating",
    "index_gap",
    "interleave",
    "is_json",
    "json_error",
    "never_end",
    "no_stop_reason",
    "pause",
    "ping_flood",
    "refuse",
    "second_start",
    "token_limit",
    "unknown",
]

TWO_HOURS_S = 7200
MAX_PINGS = 100_000


# --- It fails, or stops early ---------------------------------------------------------------------


def error(recording: Recording, after: int, type: str = "overloaded_error") -> Recording:
    """Let the provider fail after HTTP said 200: an error event, and nothing after it.

    The type is one of Claude's names for errors; the other vendors have names of their own for it.
    """
    voice = speaking(recording, "error")
    said = voice.error(type, _before(recording, after))
    return _ending(recording, after, _written(recording, voice, [said]))


def json_error(recording: Recording, after: int = 0) -> Recording:
    """Write an error as plain JSON, outside the framing of an event stream, and stop."""
    said = voice_of(recording).error("api_error", _before(recording, after))
    body = json.dumps(said, indent=2).encode("ascii")
    return insert(disconnect(recording, after), after, body + b"\n")


def token_limit(recording: Recording, after: int) -> Recording:
    """Run out of tokens: open blocks are closed wherever their content is, and all looks whole."""
    return _stop_early(recording, after, "token_limit")


def refuse(recording: Recording, after: int) -> Recording:
    """Let a classifier stop the answer: HTTP says 200, and what came before is to be discarded."""
    return _stop_early(recording, after, "refuse")


def pause(recording: Recording, after: int) -> Recording:
    """Let the provider pause a long turn, to be sent back as it is."""
    return _stop_early(recording, after, "pause")


def _stop_early(recording: Recording, after: int, why: Early) -> Recording:
    """Close the open parts and the answer, as the provider does when generation stops."""
    voice = speaking(recording, why)
    whole("after", after)
    begun, last = generating(recording)
    if not begun <= after <= last:
        raise UsageError(
            f"after={after}: generation stops between {voice.start} and {voice.reason}; "
            f"this recording allows {begun} to {last}"
        )
    tail = voice.early(why, _before(recording, after))
    return _ending(recording, after, _written(recording, voice, tail))


def _ending(recording: Recording, after: int, last: bytes) -> Recording:
    """Lose everything after a frame, and end with these frames; an array is closed after them."""
    kept = disconnect(recording, after)
    if not is_array(recording.data):
        return insert(kept, after, last)
    kept = insert(kept, after, last if after else b"[" + last)
    size = len(kept.data)
    return splice(kept, size, size, b"]\n")


def generating(recording: Recording) -> tuple[int, int]:
    """The first and the last place at which content can still come."""
    voice, said = voice_of(recording), payloads(recording)
    begun, end = first(said, voice.begins), first(said, voice.closes)
    if begun is None:
        raise UsageError(f"this recording has no {_bare(voice.start)}, so there is nothing to stop")
    return begun + 1, len(said) if end is None else end


def _bare(name: str) -> str:
    """A name without its article."""
    return name.removeprefix("a ").removeprefix("the ")


def _before(recording: Recording, after: int) -> list[Payload]:
    """What has come by a place; an impossible place is refused where the fault is put in."""
    whole("after", after)
    return payloads(recording)[: max(after, 0)]


def is_json(recording: Recording) -> bool:
    """Whether the payloads stand alone (a line each, or an array), so that there is no framing."""
    return decoder_of(recording.data) is not SSEDecoder


def _written(recording: Recording, voice: Voice, said: Iterable[Payload]) -> bytes:
    """Frames of these payloads, in the recording's own form and line ends."""
    if is_json(recording):  # which has no place for an end marker that is no JSON
        texts = [json.dumps(payload).encode("ascii") for payload in said if payload is not DONE]
        between = b",\n" if is_array(recording.data) else b"\n"
        return between.join(texts) + b"\n"
    newline = _newline(recording.data)
    done = f"data: [DONE]{newline}{newline}".encode("ascii")
    return b"".join(done if it is DONE else voice.frame(it, newline) for it in said)


def _newline(data: bytes) -> str:
    found = re.search(rb"\r\n|\r|\n", data)
    return found[0].decode("ascii") if found else "\n"


def _life(recording: Recording, count: int = 1) -> bytes:
    """Signs of life: the wire's own, or the comments that a proxy sends where it has none."""
    voice = voice_of(recording)
    if voice.keep_alive is not None:
        return _written(recording, voice, count * [voice.keep_alive])
    if is_json(recording):
        raise UsageError(f"the wire {voice.wire!r} has no ping, and JSON holds no comment")
    newline = _newline(recording.data)
    return count * f": keep-alive{newline}{newline}".encode("ascii")


# --- It says more, or less, than its grammar allows -----------------------------------------------


def unknown(recording: Recording, after: int, type: str = "future_event") -> Recording:
    """Insert an event of a type that no reader knows yet."""
    voice = speaking(recording, "unknown")
    said = voice.unknown(type, _before(recording, after))
    return insert(recording, after, _written(recording, voice, [said]))


def ping_flood(recording: Recording, after: int, count: int = 200) -> Recording:
    """Insert many pings at one place; comments, on a wire that has no ping."""
    whole("count", count)
    if not 1 <= count <= MAX_PINGS:
        raise UsageError(f"count={count}: a flood has 1 to {MAX_PINGS:,} pings")
    return insert(recording, after, _life(recording, count))


def second_start(recording: Recording, after: int) -> Recording:
    """Begin a second message inside this one."""
    voice = speaking(recording, "second_start")
    start = voice.again(_before(recording, after))
    return insert(recording, after, _written(recording, voice, [start]))


def delta_after_stop(recording: Recording, index: int = 0, after: int | None = None) -> Recording:
    """Go on with a block that has stopped: at once, or after a later frame."""
    voice, said = speaking(recording, "delta_after_stop"), payloads(recording)
    what = voice.stopping
    stopped = first(said, lambda payload: index in voice.stops(payload))
    if stopped is None:
        raise UsageError(f"index={index}: no {what} of this number stops in this recording")
    if after is not None:
        whole("after", after)
    if after is not None and after <= stopped:
        raise UsageError(f"after={after}: {what} {index} stops only with frame {stopped + 1}")
    place = stopped + 1 if after is None else after
    more = voice.more(index, said[:place])
    return insert(recording, place, _written(recording, voice, [more]))


def index_gap(recording: Recording, index: int = 0) -> Recording:
    """Number every block from `index` on one higher, as if a block had been lost."""
    voice = speaking(recording, "index_gap")
    if all(index not in voice.numbers(payload) for payload in payloads(recording)):
        what = voice.numbered
        raise UsageError(f"index={index}: there is no {what} of this number in this recording")
    return _rewritten(recording, lambda frame, raw: voice.raised(raw, payload_of(frame), index))


def no_stop_reason(recording: Recording) -> Recording:
    """End the message without saying why it ended."""
    voice = speaking(recording, "no_stop_reason")

    def unsaid(frame: Frame, raw: bytes) -> bytes:
        return voice.unsaid(raw) if voice.gives_reason(payload_of(frame)) else raw

    return _rewritten(recording, unsaid)


def never_end(recording: Recording, after: int, every: float = 15.0) -> Recording:
    """Send pings for two hours instead of the rest: alive, and no step further.

    The first comes `every` seconds after the last chunk, so no silence is ever longer than that.
    """
    if not 0.1 <= every <= TWO_HOURS_S:
        raise UsageError(f"every={every}: a ping may come every 0.1 to {TWO_HOURS_S} seconds")
    stopped = msgspec.structs.replace(disconnect(recording, after), ending="timeout")
    ping, t = _life(recording), stopped.end_t
    before = [b"", b""]  # the first, and the others
    if is_array(recording.data):
        before = [b"," if after else b"[", b","]
    pings = [
        Chunk(None if t is None else round(t + number * every, 6), before[number > 1] + ping)
        for number in range(1, 1 + int(TWO_HOURS_S / every))
    ]
    return msgspec.structs.replace(
        stopped, chunks=(*stopped.chunks, *pings), end_t=pings[-1].t if pings else t
    )


def interleave(recording: Recording, seed: int = 0) -> Recording:
    """Let the blocks come side by side: each in its own order, and starting in theirs."""
    voice, rng = speaking(recording, "interleave"), Random(seed)
    indexes = [next(iter(voice.numbers(payload)), None) for payload in payloads(recording)]
    waiting: dict[int, deque[int]] = {}  # block -> numbers of its frames
    for number, index in enumerate(indexes, 1):
        if index is not None:
            waiting.setdefault(index, deque()).append(number)
    unstarted, started, order = deque(waiting), list[int](), list[int]()
    for number, index in enumerate(indexes, 1):
        if index is None:
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
    """Each frame's bytes as `rewrite` gives them, in the read that brought them."""
    data, changes = recording.data, []
    for frame in frames(recording):
        raw = data[frame.start : frame.end]
        new = rewrite(frame, raw)
        if new != raw:
            changes.append((frame.start, frame.end, new))
    return splice_all(recording, changes)
