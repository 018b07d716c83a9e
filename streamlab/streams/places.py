"""Where a fault can happen: drawn from a seed, or beside the frame that has just come.

A `Place` is two functions with the same answer, the arguments of a fault. `draw` finds them for a
generator of broken recordings, `here` for somebody who looks at one moment of one recording. Both
raise `UsageError` where there is no such place, and say what is missing.

Read next: `catalogue.py`, which gives each fault its place.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from streamlab.errors import UsageError
from streamlab.streams.edit import frames
from streamlab.streams.provider_faults import generating, is_json
from streamlab.streams.recording import Recording
from streamlab.streams.transport_faults import line_ends, most_of
from streamlab.streams.voice import Payload, first
from streamlab.streams.voices import payloads, voice_of
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


def _end(recording: Recording) -> int | None:
    """The number of the frame that proves the answer whole; None where there is none."""
    at = voice_of(recording).ended(payloads(recording), not is_json(recording))
    return None if at is None else at + 1


def _end_name(recording: Recording) -> str:
    voice = voice_of(recording)
    return (is_json(recording) and voice.end_alone) or voice.end


def _before_end(recording: Recording, rng: Random) -> int:
    """A place from which the end marker is still to come."""
    end = _end(recording)
    if end is None:
        missing = _end_name(recording).removeprefix("the ")
        raise UsageError(f"this recording has no {missing}: it is broken already")
    return rng.randrange(end)


def _next(recording: Recording, after: int, count: int = 1) -> list[Frame]:
    """The next frames."""
    found = frames(recording)[after : after + count]
    if len(found) < count:
        left = "one more comes" if found else "none comes"
        wanted = "a next frame" if count == 1 else f"the next {count} frames"
        raise UsageError(f"this is about {wanted}, and {left} after frame {after}")
    return found


def _numbers(said: list[Payload], of: Callable[[Payload], tuple[int, ...]]) -> list[int]:
    """The numbers that these payloads say, each once, in their order."""
    return list(dict.fromkeys(number for payload in said for number in of(payload)))


def _any_part(recording: Recording, rng: Random) -> Arguments:
    voice = voice_of(recording)
    numbers = sorted(_numbers(payloads(recording), voice.numbers))
    if not numbers:
        raise UsageError(f"this recording has no {voice.numbered} with a number")
    return {"index": rng.choice(numbers)}


def _any_stopped(recording: Recording, rng: Random) -> Arguments:
    voice = voice_of(recording)
    numbers = sorted(_numbers(payloads(recording), voice.stops))
    if not numbers:
        raise UsageError(f"this recording has no {voice.stopping} that stops")
    return {"index": rng.choice(numbers)}


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
    if first(payloads(recording)[:after], voice_of(recording).begins) is None:
        raise UsageError(f"no message has begun by frame {after}, so it cannot begin again")
    return {"after": after}


def _still_open(recording: Recording, after: int) -> Arguments:
    end = _end(recording)
    if end is not None and after >= end:
        name = _end_name(recording)
        raise UsageError(f"{name} has come by frame {after}, so the answer is whole")
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
    voice = voice_of(recording)
    stopped = _numbers(payloads(recording)[:after], voice.stops)
    if not stopped:
        what = voice.stopping
        raise UsageError(f"no {what} has stopped by frame {after}, so none can go on after that")
    return {"index": stopped[-1], "after": after}


def _next_part(recording: Recording, after: int) -> Arguments:
    voice = voice_of(recording)
    started = _numbers(payloads(recording)[after:], voice.starts)
    if not started:
        what = voice.numbered
        raise UsageError(f"no {what} starts after frame {after}, so none can get another number")
    return {"index": started[0]}


def _parts_here(recording: Recording, after: int) -> Arguments:
    voice = voice_of(recording)
    if len(_numbers(payloads(recording), voice.numbers)) < 2:
        what = voice.numbered
        raise UsageError(f"there are no two {what}s here that could come side by side")
    return {"seed": 1}


def _reason_here(recording: Recording, after: int) -> Arguments:
    if first(payloads(recording)[after:], voice_of(recording).gives_reason) is None:
        raise UsageError(f"no stop reason comes after frame {after}, so none can be left out")
    return {}


# --- Both -----------------------------------------------------------------------------------------


def _inside(recording: Recording, rng: Random) -> Arguments:
    after = _before_end(recording, rng)
    most = most_of(recording, after + 1)
    kept = _one_of(rng, 1, most, f"place inside frame {after + 1}")
    return {"after": after, "inside": True, "kept": kept}


def _while_generating(recording: Recording, rng: Random) -> Arguments:
    begun, last = generating(recording)
    return {"after": _one_of(rng, begun, last, "place at which content can still come")}


def _once_begun(recording: Recording, rng: Random) -> Arguments:
    last = len(frames(recording))
    return {"after": _one_of(rng, generating(recording)[0], last, "message")}


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
BLOCKS = Place(_any_seed, _parts_here)
ANYWHERE = Place(lambda r, rng: {"after": rng.randrange(len(frames(r)) + 1)}, _after)
BEFORE_END = Place(lambda r, rng: {"after": _before_end(r, rng)}, _still_open)
TO_THE_END = Place(BEFORE_END.draw, _after)
BEGUN = Place(_once_begun, _begun)
GENERATING = Place(_while_generating, _after)
INSIDE = Place(_inside, _inside_here)
LAST_FRAME, NEXT_FRAME = Place(_any_frame, _last_frame), Place(_any_frame, _next_frame)
TWO_FRAMES = Place(_any_two, lambda r, after: {"frame": _next(r, after, 2)[0].number})
LINE, BIT = Place(_any_line, _line_here), Place(_any_bit, _bit_here)
STOPPED_BLOCK, NEXT_BLOCK = Place(_any_stopped, _stopped_here), Place(_any_part, _next_part)
REASON = Place(WHOLE.draw, _reason_here)
END = Place(lambda r, rng: {"after": len(frames(r))}, lambda r, after: {"after": len(frames(r))})
