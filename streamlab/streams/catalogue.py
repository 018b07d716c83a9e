"""The catalogue of faults: each with its function, its places, and the outcomes it may have.

Outcomes are where an attempt may end under the policy that wants an effect, whichever whole answer
is broken and wherever; SAME is where it would have ended anyway. Some faults cannot be seen on this
wire at all, and the catalogue says so.

Read next: `scenarios.py`, for broken streams that have names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Literal, get_args

import msgspec

from streamlab.streams.edit import disconnect, skip, whole
from streamlab.streams.places import (
    ANYWHERE,
    BEFORE_END,
    BEGUN,
    BIT,
    BLOCKS,
    END,
    GENERATING,
    INSIDE,
    LAST_FRAME,
    LINE,
    NEXT_BLOCK,
    NEXT_FRAME,
    REASON,
    SEED,
    STOPPED_BLOCK,
    TO_THE_END,
    TWO_FRAMES,
    WHOLE,
    Arguments,
    Place,
)
from streamlab.streams.provider_faults import (
    delta_after_stop,
    error,
    index_gap,
    interleave,
    json_error,
    never_end,
    no_stop_reason,
    pause,
    ping_flood,
    refuse,
    second_start,
    token_limit,
    unknown,
)
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
    merge,
    reconnect,
    reorder,
    slow_start,
    split,
    stall,
)
from streamlab.streams.voices import VOICES, speaking

__all__ = ["FAULTS", "KINDS", "SAME", "Fault"]

Kind = Literal["bytes", "frames", "provider", "time", "transport", "control"]

#: The kinds of fault, in the order of the catalogue.
KINDS: tuple[Kind, ...] = get_args(Kind)

SAME = "SAME"
INCOMPLETE, INVALID, HELD, ABORTED = "INCOMPLETE", "INVALID", "HELD", "ABORTED"
CHAT, RESPONSES, GEMINI = "openai-chat", "openai-responses", "gemini"
ANYTHING = (SAME, INCOMPLETE, INVALID, HELD, "MESSAGE_COMPLETE", "VALIDATED_PROPOSAL")


class Fault(msgspec.Struct, frozen=True):
    """One fault: the function that makes it, where it can happen, and what may come of it."""

    name: str
    kind: Kind
    outcomes: tuple[str, ...]  #: states of the attempt, or SAME: as without the fault
    says: str
    function: Callable[..., Recording]  #: one of `faults`, by the same name there
    place: Place
    given: Arguments = {}  #: what the fault says besides its place
    on: Mapping[str, tuple[str, ...]] = {}  #: wire format -> its own outcomes, where they differ

    def outcomes_on(self, wire: str) -> tuple[str, ...]:
        """Where an attempt may end with this fault on a wire format; nowhere, if it cannot be."""
        cannot = self.function.__name__ in VOICES[wire].cannot
        return () if cannot else self.on.get(wire, self.outcomes)

    def apply(self, recording: Recording, seed: int = 0) -> Recording:
        """Break a whole recording at a place that the seed chooses.

        Raises `UsageError` where the recording has no such place (no frame, no block, no times).
        """
        return self.function(recording, **self.draw(recording, Random(seed)))

    def draw(self, recording: Recording, rng: Random) -> Arguments:
        """The arguments of the function, with a place that the generator chooses."""
        speaking(recording, self.function.__name__)
        return {**self.place.draw(recording, rng), **self.given}

    def here(self, recording: Recording, after: int) -> Arguments:
        """The arguments of the function, with the place just after a frame that has come.

        Raises `UsageError` where the fault cannot happen there.
        """
        whole("after", after)
        speaking(recording, self.function.__name__)
        return {**self.place.here(recording, after), **self.given}


_CATALOGUE = (
    Fault(
        "split",
        "bytes",
        (SAME,),
        "A frame may come in any number of reads: a network read is not an event.",
        split,
        SEED,
    ),
    Fault(
        "merge",
        "bytes",
        (SAME,),
        "One read may bring any number of frames.",
        merge,
        SEED,
    ),
    Fault(
        "cut_inside",
        "bytes",
        (INCOMPLETE,),
        "The bytes stop inside a frame, and the end is clean: what came of that frame is never "
        "dispatched, not even a last frame that only its blank line is missing from.",
        cut,
        INSIDE,
    ),
    Fault(
        "flip",
        "bytes",
        ANYTHING,
        "One bit turns over: nothing on this wire would tell, so a 1 may become a 9 in a proposal "
        "that passes every gate; TLS is what protects from it.",
        flip,
        BIT,
    ),
    Fault(
        "drop_newline",
        "bytes",
        (SAME, INCOMPLETE, INVALID, HELD),
        "A line end is lost: two frames become one, or one frame loses its data and is gone, which "
        "its name without data tells.",
        drop_newline,
        LINE,
    ),
    Fault(
        "html_page",
        "bytes",
        (INVALID,),
        "A web page comes instead of a stream, under HTTP 200; it is not an empty answer.",
        html_page,
        WHOLE,
    ),
    Fault(
        "json_error",
        "bytes",
        (INVALID,),
        "An error comes as plain JSON between the frames, or instead of them.",
        json_error,
        TO_THE_END,
    ),
    Fault(
        "skip",
        "frames",
        (SAME, INCOMPLETE, INVALID),
        "A frame is lost: a start, a stop or the end is missed, but a lost delta is not, so text "
        "may be short, and a tool's input may be another valid one.",
        skip,
        NEXT_FRAME,
        on={
            RESPONSES: (SAME, INCOMPLETE, HELD),
            GEMINI: (SAME, INCOMPLETE, INVALID, HELD, "MESSAGE_COMPLETE"),  # a call is one frame
        },
    ),
    Fault(
        "duplicate",
        "frames",
        (SAME, INVALID),
        "A frame comes twice: a delta then counts twice, because equal text is never taken for a "
        "repetition.",
        duplicate,
        LAST_FRAME,
        on={CHAT: (SAME, INVALID, HELD), RESPONSES: (SAME, INVALID, HELD), GEMINI: (SAME, HELD)},
    ),
    Fault(
        "reorder",
        "frames",
        (SAME, INVALID),
        "Two neighbours change places: two deltas of a block do so unseen, and garble it; most "
        "other pairs break the grammar.",
        reorder,
        TWO_FRAMES,
        on={CHAT: (SAME, INVALID, HELD), RESPONSES: (SAME, INVALID, HELD), GEMINI: (SAME, HELD)},
    ),
    Fault(
        "interleave",
        "frames",
        (SAME,),
        "The blocks come side by side: whose fragment it is, the index says, not the order.",
        interleave,
        BLOCKS,
    ),
    Fault(
        "late",
        "frames",
        (SAME, INVALID),
        "A frame comes after the end, when it no longer belongs to any answer.",
        late,
        NEXT_FRAME,
        on={
            CHAT: (SAME, INVALID, HELD),
            RESPONSES: (SAME, INVALID, HELD),
            GEMINI: (SAME, HELD),
        },
    ),
    Fault(
        "unknown",
        "frames",
        (SAME,),
        "An event of a new type comes: it is kept, and grants nothing.",
        unknown,
        ANYWHERE,
    ),
    Fault(
        "ping_flood",
        "frames",
        (SAME,),
        "Hundreds of pings come, or comments where the wire has no ping: proof of life, not of "
        "progress.",
        ping_flood,
        ANYWHERE,
    ),
    Fault(
        "second_start",
        "frames",
        (INVALID,),
        "A second message begins inside or after this one: two answers in one stream.",
        second_start,
        ANYWHERE,
        on={CHAT: (SAME, INVALID, HELD), GEMINI: (SAME, INVALID)},
    ),
    Fault(
        "delta_after_stop",
        "frames",
        (INVALID,),
        "A block goes on after it has stopped.",
        delta_after_stop,
        STOPPED_BLOCK,
        on={CHAT: (SAME, INVALID), RESPONSES: (SAME, INVALID, HELD)},
    ),
    Fault(
        "index_gap",
        "frames",
        (HELD,),
        "A block's number is missing, so a whole block may be.",
        index_gap,
        NEXT_BLOCK,
        on={RESPONSES: (SAME,)},  # the last event has all items
    ),
    Fault(
        "error",
        "provider",
        (INVALID,),
        "The provider fails after it has said HTTP 200.",
        error,
        TO_THE_END,
    ),
    Fault(
        "no_stop_reason",
        "provider",
        (INVALID,),
        "The message ends without saying why, so nothing can be concluded from its end.",
        no_stop_reason,
        REASON,
        on={CHAT: (INCOMPLETE,), GEMINI: (INCOMPLETE,)},
    ),
    Fault(
        "token_limit",
        "provider",
        (HELD,),
        "The tokens run out, maybe inside a tool's JSON: every marker comes, and where that JSON "
        "happens to parse, the stop reason alone tells.",
        token_limit,
        GENERATING,
    ),
    Fault(
        "refuse",
        "provider",
        (HELD,),
        "A classifier stops the answer; what came before is not to be used.",
        refuse,
        GENERATING,
    ),
    Fault(
        "pause",
        "provider",
        (HELD,),
        "The provider pauses a long turn; it is to be sent back, not acted on.",
        pause,
        GENERATING,
        on={GEMINI: (INCOMPLETE,)},
    ),
    Fault(
        "stall",
        "time",
        (SAME,),
        "Nothing comes for half a minute, then all goes on.",
        stall,
        ANYWHERE,
    ),
    Fault(
        "slow_start",
        "time",
        (SAME,),
        "The first byte takes half a minute.",
        slow_start,
        WHOLE,
    ),
    Fault(
        "burst",
        "time",
        (SAME,),
        "A proxy holds everything back and lets it go at once: whole, and no longer a stream.",
        burst,
        ANYWHERE,
    ),
    Fault(
        "never_end",
        "time",
        (INCOMPLETE,),
        "Pings come for hours, and nothing else: a timeout between reads never fires, a bound on "
        "the whole does.",
        never_end,
        BEFORE_END,
    ),
    Fault(
        "eof",
        "transport",
        (INCOMPLETE,),
        "The connection ends cleanly before the end marker; only that it is missing tells.",
        disconnect,
        BEFORE_END,
        {"ending": "eof"},
    ),
    Fault(
        "cut",
        "transport",
        (INCOMPLETE,),
        "As cut inside, but the connection breaks inside an HTTP chunk too, so that HTTP itself "
        "reports it.",
        cut,
        INSIDE,
        {"ending": "cut"},
    ),
    Fault(
        "reset",
        "transport",
        (INCOMPLETE,),
        "The connection is torn down before the end marker.",
        disconnect,
        BEFORE_END,
        {"ending": "reset"},
    ),
    Fault(
        "timeout",
        "transport",
        (INCOMPLETE,),
        "Nothing comes any more, until the reader gives up.",
        disconnect,
        BEFORE_END,
        {"ending": "timeout"},
    ),
    Fault(
        "reset_at_end",
        "transport",
        (SAME,),
        "The connection is torn down after the last frame: if the end marker had come, the answer "
        "is whole; where the end of the body is the only one, it is not.",
        disconnect,
        END,
        {"ending": "reset"},
        on={CHAT: (SAME, INCOMPLETE), GEMINI: (INCOMPLETE,)},  # lines of JSON hold no [DONE]
    ),
    Fault(
        "reconnect",
        "transport",
        (INVALID,),
        "The connection breaks and a client connects again by itself, as a browser does: it gets "
        "the answer from its start again (a real model would use other words), which continues "
        "nothing.",
        reconnect,
        BEGUN,
        on={CHAT: (SAME, INVALID, HELD), RESPONSES: (SAME, INVALID, HELD), GEMINI: (SAME, HELD)},
    ),
    Fault(
        "cancel",
        "control",
        (ABORTED,),
        "We stop reading by our own wish.",
        cancel,
        ANYWHERE,
    ),
)

#: Every fault by its name.
FAULTS = {fault.name: fault for fault in _CATALOGUE}
