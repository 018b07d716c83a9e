"""One pass over a recording: what happened, and what it is worth.

`judge` keeps only where the way ends, in bounded memory; `trace.py` keeps every step of the same
way, and a test holds the two to the same answer. Who needs more of the way watches it: a picture
(`timeline.py`), a progress bar.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from streamlab.analysis.meter import Meter
from streamlab.analysis.metrics import Metrics
from streamlab.analysis.signs import Noting, Signs
from streamlab.consumer.attempt import Attempt, State
from streamlab.consumer.consumer import Consumer
from streamlab.consumer.gates import EFFECT, Policy, Proposal, Verdict
from streamlab.consumer.turn import Turn
from streamlab.streams.recording import Chunk, Recording, RecordingFile
from streamlab.wire.reader import BOUNDS, Bounds, Read

__all__ = ["Outcome", "Watch", "judge"]

#: Is told each read, and what it stated; the last call has no bytes, and the time of the end.
Watch = Callable[[Chunk, list[Read]], object]


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
    metrics: Metrics | None = None  #: None where the recording has no times
    truncated: str = ""  #: where its file stops short, if it does
    signs: Signs = Signs()  #: where its frames were, and how its bytes were dressed
    stream: int = 1  #: which one of those in its file
    streams: int = 1  #: how many there are

    @property
    def complete(self) -> bool:
        """Whether the answer is whole, whatever the state."""
        return self.turn.complete

    @property
    def state(self) -> State:
        """Where the attempt is."""
        return self.attempt.state


def judge(
    recording: Recording | RecordingFile,
    policy: Policy = EFFECT,
    wire: str | None = None,
    bounds: Bounds = BOUNDS,
    watch: Watch | None = None,
    attempt: str = "attempt-1",
) -> Outcome:
    """Consume a recording to its end; a retry is given an `attempt` id of its own.

    Raises `WireError` where a file turns out not to be readable.
    """
    source = recording.header if isinstance(recording, RecordingFile) else recording
    chunks = recording if isinstance(recording, RecordingFile) else recording.chunks
    consumer, meter = Consumer(wire or source.wire, policy, bounds, attempt), Meter()
    noting, reader = Noting(), consumer.reader
    for chunk in chunks:
        reads = consumer.feed(chunk.data, chunk.t)
        meter.feed(chunk.t, reads)
        noting.feed(chunk, reads, consumer.turn)
        if watch is not None:
            watch(chunk, reads)
        if consumer.finished:
            break
    consumer.end(recording.ending, recording.end_t)
    meter.end(recording.end_t, consumer.last_words)
    noting.over(consumer.last_words, consumer.turn, reader.beside_data)
    if watch is not None:
        watch(Chunk(meter.now, b""), consumer.last_words)
    return Outcome(
        consumer.attempt,
        consumer.turn,
        consumer.ending or recording.ending,
        reader.wire,
        reader.frames,
        reader.bytes,
        consumer.verdicts,
        consumer.proposals,
        meter.metrics(consumer.turn.complete),
        recording.truncated if isinstance(recording, RecordingFile) else "",
        noting.signs(),
    )
