"""One pass over a recording: what happened, and what it is worth.

`judge` keeps only where the way ends, in bounded memory; `trace.py` keeps every step of the same
way, and a test holds the two to the same answer.
"""

from __future__ import annotations

import msgspec

from streamlab.consumer.attempt import Attempt, State
from streamlab.consumer.consumer import Consumer
from streamlab.consumer.gates import EFFECT, Policy, Proposal, Verdict
from streamlab.consumer.turn import Turn
from streamlab.streams.recording import Recording, RecordingFile
from streamlab.wire.reader import BOUNDS, Bounds

__all__ = ["Outcome", "judge"]


class Outcome(msgspec.Struct, frozen=True):
    """What a recording says, and what may be done with it."""

    attempt: Attempt
    turn: Turn
    ending: str
    wire: str | None
    frames: int
    bytes: int
    verdicts: tuple[Verdict, ...] = ()
    proposals: tuple[Proposal, ...] = ()  #: what may be committed: only in VALIDATED_PROPOSAL

    @property
    def state(self) -> State:
        """Where the attempt is."""
        return self.attempt.state


def judge(
    recording: Recording | RecordingFile,
    policy: Policy = EFFECT,
    wire: str | None = None,
    bounds: Bounds = BOUNDS,
) -> Outcome:
    """Consume a recording to its end.

    Raises `WireError` where a file turns out not to be readable.
    """
    source = recording.header if isinstance(recording, RecordingFile) else recording
    chunks = recording if isinstance(recording, RecordingFile) else recording.chunks
    consumer = Consumer(wire or source.wire, policy, bounds)
    for t, data in chunks:
        consumer.feed(data, t)
        if consumer.finished:
            break
    consumer.end(recording.ending)
    reader = consumer.reader
    return Outcome(
        consumer.attempt,
        consumer.turn,
        recording.ending,
        reader.wire,
        reader.frames,
        reader.bytes,
        consumer.verdicts,
        consumer.proposals,
    )
