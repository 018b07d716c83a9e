"""Faults: pure functions from one recording to a broken one, each with the outcomes it may have.

A fault never mutates, never reads a clock, and takes what is random from a seed; `after=3` is just
after frame 3, `after=0` before the first. What is inserted comes at the time of its place, and time
never runs backwards. They are all to be had from here, wherever they are written.

`FAULTS` is the catalogue. Its outcomes are where an attempt may end under the policy that wants an
effect, whichever whole answer is broken and wherever; SAME is where it would have ended anyway.
Some faults cannot be seen on this wire at all, and the catalogue says so.

Read next: `analysis/trace.py`, which folds a recording, broken or not, into what a consumer saw.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Literal

import msgspec

from streamlab.errors import UsageError
from streamlab.streams.claude_faults import (
    delta_after_stop,
    error,
    generating,
    index_gap,
    interleave,
    json_error,
    never_end,
    no_stop_reason,
    pause,
    payload_of,
    ping_flood,
    refuse,
    second_start,
    token_limit,
    unknown,
)
from streamlab.streams.edit import disconnect, frames, insert, skip, stop_at
from streamlab.streams.recording import Recording
from streamlab.streams.transport_faults import (
    burst,
    cancel,
    cut,
    drop_newline,
    duplicate,
    flip,
    html_page,
    late,
    line_ends,
    merge,
    reorder,
    slow_start,
    split,
    stall,
)
from streamlab.wire.jsonl import is_json_lines

__all__ = [
    "FAULTS",
    "SAME",
    "Fault",
    "burst",
    "cancel",
    "cut",
    "delta_after_stop",
    "disconnect",
    "drop_newline",
    "duplicate",
    "error",
    "flip",
    "frames",
    "html_page",
    "index_gap",
    "insert",
    "interleave",
    "json_error",
    "late",
    "merge",
    "never_end",
    "no_stop_reason",
    "pause",
    "ping_flood",
    "refuse",
    "reorder",
    "second_start",
    "skip",
    "slow_start",
    "split",
    "stall",
    "token_limit",
    "unknown",
]

Kind = Literal["bytes", "frames", "provider", "time", "transport", "control"]

SAME = "SAME"
INCOMPLETE, INVALID, HELD, ABORTED = "INCOMPLETE", "INVALID", "HELD", "ABORTED"
ANYTHING = (SAME, INCOMPLETE, INVALID, HELD, "MESSAGE_COMPLETE", "VALIDATED_PROPOSAL")


class Fault(msgspec.Struct, frozen=True):
    """One fault: what it does at a place that a generator draws, and what may come of it."""

    name: str
    kind: Kind
    outcomes: tuple[str, ...]  #: states of the attempt, or SAME: as without the fault
    says: str
    act: Callable[[Recording, Random], Recording]

    def apply(self, recording: Recording, seed: int = 0) -> Recording:
        """Break a whole recording at a place that the seed chooses.

        Raises `UsageError` where the recording has no such place (no frame, no block, no times).
        """
        return self.act(recording, Random(seed))


def _draw(rng: Random, first: int, last: int, what: str) -> int:
    """One of the places from `first` to `last`; `what` names them where there are none."""
    if first > last:
        raise UsageError(f"this recording has no {what}")
    return rng.randrange(first, last + 1)


def _frame(recording: Recording, rng: Random) -> int:
    return _draw(rng, 1, len(frames(recording)), "frame")


def _neighbour(recording: Recording, rng: Random) -> int:
    """A frame that another one follows."""
    return _draw(rng, 1, len(frames(recording)) - 1, "two frames that could change places")


def _bit(recording: Recording, rng: Random) -> int:
    return _draw(rng, 0, 8 * len(recording.data) - 1, "bytes")


def _place(recording: Recording, rng: Random) -> int:
    return rng.randrange(len(frames(recording)) + 1)


def _before_end(recording: Recording, rng: Random) -> int:
    """A place from which the end marker is still to come."""
    types = [payload_of(frame).get("type") for frame in frames(recording)]
    if "message_stop" not in types:
        raise UsageError("this recording has no message_stop: it is broken already")
    return rng.randrange(types.index("message_stop") + 1)


def _inside(recording: Recording, frame: int, rng: Random) -> int:
    """An offset at which some of a frame has come, and not all."""
    data, chosen = recording.data, frames(recording)[frame - 1]
    last = chosen.end - 1
    if is_json_lines(data):  # a whole line counts even where nothing ends it
        last = chosen.start + len(data[chosen.start : chosen.end].rstrip()) - 1
    return _draw(rng, chosen.start + 1, last, f"place inside frame {frame}")


def _while_generating(recording: Recording, rng: Random) -> int:
    first, last = generating(frames(recording))
    return _draw(rng, first, last, "place at which content can still come")


def _block(recording: Recording, rng: Random) -> int:
    found = [payload_of(frame).get("index") for frame in frames(recording)]
    blocks = sorted({index for index in found if isinstance(index, int)})
    if not blocks:
        raise UsageError("this recording has no block")
    return rng.choice(blocks)


def _line(recording: Recording, rng: Random) -> int:
    return _draw(rng, 1, len(line_ends(recording)), "line end")


_CATALOGUE = (
    Fault(
        "split",
        "bytes",
        (SAME,),
        "A frame may come in any number of reads: a network read is not an event.",
        lambda r, rng: split(r, rng.randrange(1 << 30)),
    ),
    Fault(
        "merge",
        "bytes",
        (SAME,),
        "One read may bring any number of frames.",
        lambda r, rng: merge(r, rng.randrange(1 << 30)),
    ),
    Fault(
        "cut_inside",
        "bytes",
        (INCOMPLETE,),
        "The bytes stop inside a frame: what came of it is never dispatched, not even a last "
        "message_stop that only its blank line is missing from.",
        lambda r, rng: stop_at(r, _inside(r, _before_end(r, rng) + 1, rng)),
    ),
    Fault(
        "flip",
        "bytes",
        ANYTHING,
        "One bit turns over: nothing on this wire would tell, so a 1 may become a 9 in a proposal "
        "that passes every gate; TLS is what protects from it.",
        lambda r, rng: flip(r, _bit(r, rng)),
    ),
    Fault(
        "drop_newline",
        "bytes",
        (SAME, INCOMPLETE, INVALID, HELD),
        "A line end is lost: two frames become one, or one frame loses its data and is gone, which "
        "its name without data tells.",
        lambda r, rng: drop_newline(r, _line(r, rng)),
    ),
    Fault(
        "html_page",
        "bytes",
        (INVALID,),
        "A web page comes instead of a stream, under HTTP 200; it is not an empty answer.",
        lambda r, rng: html_page(r),
    ),
    Fault(
        "json_error",
        "bytes",
        (INVALID,),
        "An error comes as plain JSON between the frames, or instead of them.",
        lambda r, rng: json_error(r, _before_end(r, rng)),
    ),
    Fault(
        "skip",
        "frames",
        (SAME, INCOMPLETE, INVALID),
        "A frame is lost: a start, a stop or the end is missed, but a lost delta is not, so text "
        "may be short, and a tool's input may be another valid one.",
        lambda r, rng: skip(r, _frame(r, rng)),
    ),
    Fault(
        "duplicate",
        "frames",
        (SAME, INVALID),
        "A frame comes twice: a delta then counts twice, because equal text is never taken for a "
        "repetition.",
        lambda r, rng: duplicate(r, _frame(r, rng)),
    ),
    Fault(
        "reorder",
        "frames",
        (SAME, INVALID),
        "Two neighbours change places: two deltas of a block do so unseen, and garble it; most "
        "other pairs break the grammar.",
        lambda r, rng: reorder(r, _neighbour(r, rng)),
    ),
    Fault(
        "interleave",
        "frames",
        (SAME,),
        "The blocks come side by side: whose fragment it is, the index says, not the order.",
        lambda r, rng: interleave(r, rng.randrange(1 << 30)),
    ),
    Fault(
        "late",
        "frames",
        (SAME, INVALID),
        "A frame comes after the end, when it no longer belongs to any answer.",
        lambda r, rng: late(r, _frame(r, rng)),
    ),
    Fault(
        "unknown",
        "frames",
        (SAME,),
        "An event of a new type comes: it is kept, and grants nothing.",
        lambda r, rng: unknown(r, _place(r, rng)),
    ),
    Fault(
        "ping_flood",
        "frames",
        (SAME,),
        "Hundreds of pings come: proof of life, not of progress.",
        lambda r, rng: ping_flood(r, _place(r, rng)),
    ),
    Fault(
        "second_start",
        "frames",
        (INVALID,),
        "A second message begins inside or after this one: two answers in one stream.",
        lambda r, rng: second_start(r, _place(r, rng)),
    ),
    Fault(
        "delta_after_stop",
        "frames",
        (INVALID,),
        "A block goes on after it has stopped.",
        lambda r, rng: delta_after_stop(r, _block(r, rng)),
    ),
    Fault(
        "index_gap",
        "frames",
        (HELD,),
        "A block's number is missing, so a whole block may be.",
        lambda r, rng: index_gap(r, _block(r, rng)),
    ),
    Fault(
        "error",
        "provider",
        (INVALID,),
        "The provider fails after it has said HTTP 200.",
        lambda r, rng: error(r, _before_end(r, rng)),
    ),
    Fault(
        "no_stop_reason",
        "provider",
        (INVALID,),
        "The message ends without saying why, so nothing can be concluded from its end.",
        lambda r, rng: no_stop_reason(r),
    ),
    Fault(
        "token_limit",
        "provider",
        (HELD,),
        "The tokens run out, maybe inside a tool's JSON: every marker comes, and where that JSON "
        "happens to parse, the stop reason alone tells.",
        lambda r, rng: token_limit(r, _while_generating(r, rng)),
    ),
    Fault(
        "refuse",
        "provider",
        (HELD,),
        "A classifier stops the answer; what came before is not to be used.",
        lambda r, rng: refuse(r, _while_generating(r, rng)),
    ),
    Fault(
        "pause",
        "provider",
        (HELD,),
        "The provider pauses a long turn; it is to be sent back, not acted on.",
        lambda r, rng: pause(r, _while_generating(r, rng)),
    ),
    Fault(
        "stall",
        "time",
        (SAME,),
        "Nothing comes for half a minute, then all goes on.",
        lambda r, rng: stall(r, _place(r, rng)),
    ),
    Fault(
        "slow_start",
        "time",
        (SAME,),
        "The first byte takes half a minute.",
        lambda r, rng: slow_start(r),
    ),
    Fault(
        "burst",
        "time",
        (SAME,),
        "A proxy holds everything back and lets it go at once: whole, and no longer a stream.",
        lambda r, rng: burst(r, _place(r, rng)),
    ),
    Fault(
        "never_end",
        "time",
        (INCOMPLETE,),
        "Pings come for hours, and nothing else: a timeout between reads never fires, a bound on "
        "the whole does.",
        lambda r, rng: never_end(r, _before_end(r, rng)),
    ),
    Fault(
        "eof",
        "transport",
        (INCOMPLETE,),
        "The connection ends cleanly before message_stop; only the missing marker tells.",
        lambda r, rng: disconnect(r, _before_end(r, rng), "eof"),
    ),
    Fault(
        "cut",
        "transport",
        (INCOMPLETE,),
        "The connection ends inside an HTTP chunk, and inside a frame.",
        lambda r, rng: stop_at(r, _inside(r, _before_end(r, rng) + 1, rng), "cut"),
    ),
    Fault(
        "reset",
        "transport",
        (INCOMPLETE,),
        "The connection is torn down before message_stop.",
        lambda r, rng: disconnect(r, _before_end(r, rng), "reset"),
    ),
    Fault(
        "timeout",
        "transport",
        (INCOMPLETE,),
        "Nothing comes any more, until the reader gives up.",
        lambda r, rng: disconnect(r, _before_end(r, rng), "timeout"),
    ),
    Fault(
        "reset_at_end",
        "transport",
        (SAME,),
        "The connection is torn down after message_stop: the answer is whole all the same.",
        lambda r, rng: disconnect(r, len(frames(r)), "reset"),
    ),
    Fault(
        "cancel",
        "control",
        (ABORTED,),
        "We stop reading by our own wish.",
        lambda r, rng: cancel(r, _place(r, rng)),
    ),
)

#: Every fault by its name.
FAULTS = {fault.name: fault for fault in _CATALOGUE}
