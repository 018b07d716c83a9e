"""Where a fault can happen: drawn from a seed, or beside the frame that has just come.

A `Place` is two functions with the same answer, the arguments of a fault. `draw` finds them for a
generator of broken recordings, `here` for somebody who looks at one moment of one recording. Both
raise `UsageError` where there is no such place, and say what is missing.

Read next: `catalogue.py`, which gives each fault its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import msgspec

from streamlab.errors import UsageError
from streamlab.streams.claude_faults import generating, payload_of
from streamlab.streams.edit import frames
from streamlab.streams.recording import Recording
from streamlab.streams.transport_faults import line_ends, most_of
from streamlab.wire.sse import Frame

__all__ = [
    "ANYWHERE",
    "BEFORE_END",
    "BEGUN",
    "BIT",
    "BLOCKS",
    "END",
    "GENERATING",
    "INSIDE",
    "LAST_FRAME",
    "LINE",
    "NEXT_BLOCK",
    "NEXT_FRAME",
    "REASON",
    "SEED",
    "STOPPED_BLOCK",
    "TO_THE_END",
    "TWO_FRAMES",
    "WHOLE",
    "Arguments",
    "Place",
]

Arguments = dict[str, Any]


class Place(msgspec.Struct, frozen=True):
    """Where a fault happens, as its arguments."""

    draw: Callable[[Recording, Random], Arguments]
    here: Callable[[Recording, int], Arguments]  #: `after` this frame, which has just come


# --- What a recording has -------------------------------------------------------------------------


def _one_of(rng: Random, first: int, last: int, what: str) -> int:
    """One of the places from `first` to `last`; `what` names them where there are none."""
    if first > last:
        raise UsageError(f"this recording has no {what}")
    return rng.randrange(first, last + 1)


def _types(found: Iterable[Frame]) -> list[Any]:
    return [payload_of(frame).get("type") for frame in found]


def _before_end(recording: Recording, rng: Random) -> int:
    """A place from which the end marker is still to come."""
    types = _types(frames(recording))
    if "message_stop" not in types:
        raise UsageError("this recording has no message_stop: it is broken already")
    return rng.randrange(types.index("message_stop") + 1)


def _next(recording: Recording, after: int, count: int = 1) -> list[Frame]:
    """The next frames."""
    found = frames(recording)[after : after + count]
    if len(found) < count:
        left = "one more comes" if found else "none comes"
        wanted = "a next frame" if count == 1 else f"the next {count} frames"
        raise UsageError(f"this is about {wanted}, and {left} after frame {after}")
    return found


def _blocks(found: Iterable[Frame], type: str = "") -> list[int]:
    """The numbers of the blocks that these frames name, in their order."""
    payloads = map(payload_of, found)
    named = [p.get("index") for p in payloads if not type or p.get("type") == type]
    return list(dict.fromkeys(n for n in named if isinstance(n, int) and not isinstance(n, bool)))


def _any_block(recording: Recording, rng: Random) -> Arguments:
    blocks = sorted(_blocks(frames(recording)))
    if not blocks:
        raise UsageError("this recording has no block")
    return {"index": rng.choice(blocks)}


# --- Here -----------------------------------------------------------------------------------------


def _after(recording: Recording, after: int) -> Arguments:
    return {"after": after}


def _next_frame(recording: Recording, after: int) -> Arguments:
    return {"frame": _next(recording, after)[0].number}


def _last_frame(recording: Recording, after: int) -> Arguments:
    if not after:
        raise UsageError("this is about the frame that came last, and none has come yet")
    return {"frame": after}


def _begun(recording: Recording, after: int) -> Arguments:
    if "message_start" not in _types(frames(recording)[:after]):
        raise UsageError(f"no message has begun by frame {after}, so it cannot begin again")
    return {"after": after}


def _still_open(recording: Recording, after: int) -> Arguments:
    if "message_stop" in _types(frames(recording)[:after]):
        raise UsageError(f"message_stop has come by frame {after}, so the answer is whole")
    return {"after": after}


def _bit_here(recording: Recording, after: int) -> Arguments:
    """A bit of the next frame's last letter or digit, which makes it another one (no 0)."""
    (frame,) = _next(recording, after)
    raw = recording.data[frame.start : frame.end]
    at = next((at for at in reversed(range(len(raw))) if raw[at : at + 1].isalnum()), 0)
    turned = (chr(raw[at] ^ 1 << bit) for bit in range(8))
    bit = next((bit for bit, sign in enumerate(turned) if sign in "123456789" or sign.isalpha()), 0)
    return {"bit": 8 * (frame.start + at) + bit}


def _line_here(recording: Recording, after: int) -> Arguments:
    """The first line end of the next frame."""
    (frame,) = _next(recording, after)
    starts = [start for start, _ in line_ends(recording)]
    line = next((n for n, at in enumerate(starts, 1) if at >= frame.start), None)
    if line is None:
        raise UsageError(f"no line ends after frame {after}, so no line end can be lost")
    return {"line": line}


def _inside_here(recording: Recording, after: int) -> Arguments:
    _next(recording, after)
    return {**_still_open(recording, after), "inside": True}


def _stopped_here(recording: Recording, after: int) -> Arguments:
    stopped = _blocks(frames(recording)[:after], "content_block_stop")
    if not stopped:
        raise UsageError(f"no block has stopped by frame {after}, so none can go on after that")
    return {"index": stopped[-1], "after": after}


def _next_block(recording: Recording, after: int) -> Arguments:
    started = _blocks(frames(recording)[after:], "content_block_start")
    if not started:
        raise UsageError(f"no block starts after frame {after}, so none can get another number")
    return {"index": started[0]}


def _blocks_here(recording: Recording, after: int) -> Arguments:
    if len(_blocks(frames(recording))) < 2:
        raise UsageError("there are no two blocks here that could come side by side")
    return {"seed": 1}


def _reason_here(recording: Recording, after: int) -> Arguments:
    types = _types(frames(recording))
    if "message_delta" not in types[after:]:
        raise UsageError(f"no stop reason comes after frame {after}, so none can be left out")
    return {}


# --- Both -----------------------------------------------------------------------------------------


def _inside(recording: Recording, rng: Random) -> Arguments:
    after = _before_end(recording, rng)
    most = most_of(recording, after + 1)
    kept = _one_of(rng, 1, most, f"place inside frame {after + 1}")
    return {"after": after, "inside": True, "kept": kept}


def _while_generating(recording: Recording, rng: Random) -> Arguments:
    first, last = generating(frames(recording))
    return {"after": _one_of(rng, first, last, "place at which content can still come")}


def _once_begun(recording: Recording, rng: Random) -> Arguments:
    found = frames(recording)
    return {"after": _one_of(rng, generating(found)[0], len(found), "message")}


def _any_frame(recording: Recording, rng: Random) -> Arguments:
    return {"frame": _one_of(rng, 1, len(frames(recording)), "frame")}


def _any_two(recording: Recording, rng: Random) -> Arguments:
    last = len(frames(recording)) - 1
    return {"frame": _one_of(rng, 1, last, "two frames that could change places")}


def _any_line(recording: Recording, rng: Random) -> Arguments:
    return {"line": _one_of(rng, 1, len(line_ends(recording)), "line end")}


def _any_bit(recording: Recording, rng: Random) -> Arguments:
    return {"bit": _one_of(rng, 0, 8 * len(recording.data) - 1, "bytes")}


def _any_seed(recording: Recording, rng: Random) -> Arguments:
    return {"seed": rng.randrange(1 << 30)}


WHOLE = Place(lambda recording, rng: {}, lambda recording, after: {})
SEED = Place(_any_seed, lambda recording, after: {"seed": after})
BLOCKS = Place(_any_seed, _blocks_here)
ANYWHERE = Place(lambda r, rng: {"after": rng.randrange(len(frames(r)) + 1)}, _after)
BEFORE_END = Place(lambda r, rng: {"after": _before_end(r, rng)}, _still_open)
TO_THE_END = Place(BEFORE_END.draw, _after)
BEGUN = Place(_once_begun, _begun)
GENERATING = Place(_while_generating, _after)
INSIDE = Place(_inside, _inside_here)
LAST_FRAME, NEXT_FRAME = Place(_any_frame, _last_frame), Place(_any_frame, _next_frame)
TWO_FRAMES = Place(_any_two, lambda r, after: {"frame": _next(r, after, 2)[0].number})
LINE, BIT = Place(_any_line, _line_here), Place(_any_bit, _bit_here)
STOPPED_BLOCK, NEXT_BLOCK = Place(_any_block, _stopped_here), Place(_any_block, _next_block)
REASON = Place(WHOLE.draw, _reason_here)
END = Place(lambda r, rng: {"after": len(frames(r))}, lambda r, after: {"after": len(frames(r))})
