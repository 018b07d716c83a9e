"""Judge for a scan: the same outcome as `judge`, in a fraction of the time.

Who watches a stream wants every read and every turn; a scan wants the end. So here many reads are
decoded as one (any split of the same bytes gives the same frames), successive deltas of a segment
are appended as one, and successive counts are merged before the turn sees them. The times stay
those of the reads: a frame came with the read that holds its last byte. Wherever a bound could be
passed, or it is not yet known what is read, it goes read by read, as in `judge`.

`tests/test_corpus_judging.py` holds the two to the same outcome.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from streamlab.analysis.judge import Outcome
from streamlab.analysis.meter import Meter
from streamlab.analysis.signs import Noting
from streamlab.consumer.attempt import State, observe
from streamlab.consumer.consumer import Consumer
from streamlab.consumer.gates import EFFECT, Policy, Proposal
from streamlab.consumer.turn import reduce
from streamlab.streams.recording import Chunk, Reads, Recording, RecordingFile
from streamlab.wire.events import InputDelta, TextDelta, ThinkingDelta, Tokens, UsageReported
from streamlab.wire.reader import BOUNDS, Bounds, Read

__all__ = ["judged"]

#: Bytes that are decoded as one, and reads.
MAX_BYTES, MAX_READS = 64 * 1024, 1024

#: Events of which many in a row come to the same as one.
DELTAS = frozenset({TextDelta, ThinkingDelta, InputDelta})

#: Each count of tokens in a usage.
TOKENS = [attrgetter(f"tokens.{name}") for name in Tokens.__struct_fields__]

#: First bytes that say nothing yet; after them, "[" begins an array, which ends its frames early.
BLANK = b"\xef\xbb\xbf \t\r\n"


def judged(
    recording: Recording | RecordingFile,
    policy: Policy = EFFECT,
    wire: str | None = None,
    bounds: Bounds = BOUNDS,
) -> Outcome:
    """Consume a recording to its end. Raises `WireError` where a file is not readable."""
    source = recording.header if isinstance(recording, RecordingFile) else recording
    many = recording.reads() if isinstance(recording, RecordingFile) else _many(recording.chunks)
    judging = _Judging(_Hasty(wire or source.wire, policy, bounds))
    for reads in many:
        judging.take(reads)
        if judging.consumer.finished:
            break
    return judging.over(recording)


def _many(chunks: Sequence[Chunk]) -> Iterator[Reads]:
    """The chunks, as many at a time as may be decoded as one."""
    first = size = 0
    for number, chunk in enumerate(chunks, 1):
        size += len(chunk.data)
        if size >= MAX_BYTES or number - first == MAX_READS or number == len(chunks):
            yield Reads.of(chunks[first:number])
            first, size = number, 0


class _Judging:
    """One recording on its way."""

    def __init__(self, consumer: _Hasty) -> None:
        self.consumer = consumer
        self._meter, self._noting = Meter(), Noting()
        self._whole = 0  # offset of the end of the last frame
        self._head = b""  # what came before the first frame

    def take(self, many: Reads) -> None:
        """Take some reads: one by one until it is known what is read, then as one."""
        bounded = self._is_bounded(many)
        for taken, chunk in enumerate(many):
            if bounded and taken + 1 < len(many.ends) and self._is_known():
                self._take_joined(many.after(taken))
                return
            if self.consumer.finished:
                return
            if not self.consumer.reader.frames:
                self._head += chunk.data[: len(BLANK) + 1]
            reads = self.consumer.feed(chunk.data, chunk.t)
            self._meter.feed(chunk.t, reads)
            self._see(chunk, reads)

    def _is_bounded(self, many: Reads) -> bool:
        """Whether no bound can be passed in these reads."""
        reader, size = self.consumer.reader, len(many.data)
        bounds = reader.bounds
        return (
            reader.bytes + size <= bounds.bytes
            and reader.bytes - self._whole + size <= bounds.frame_bytes
            and reader.frames + size <= bounds.frames
            and max([t for t in many.times if t is not None], default=0.0) <= bounds.seconds
        )

    def _is_known(self) -> bool:
        """Whether every frame is read as it comes."""
        reader = self.consumer.reader
        known = reader.frames > 0 and reader.wire is not None
        return known and self._head.lstrip(BLANK)[:1] != b"["

    def _take_joined(self, many: Reads) -> None:
        at = self.consumer.reader.bytes
        reads = self.consumer.feed(many.data)
        self._see(Chunk(many.times[0], many.data), reads)
        times, ends = self._meter.when(many.times), many.ends
        came = [times[bisect_left(ends, frame.end - at)] for frame, _ in reads if frame is not None]
        known = [t for t in came if t is not None]
        self._meter.take(known, reads[len(reads) - len(known) :])

    def _see(self, chunk: Chunk, reads: list[Read]) -> None:
        self._noting.feed(chunk, reads, self.consumer.turn, self.consumer.reader.wire)
        frame = reads[-1][0] if reads else None
        self._whole = frame.end if frame is not None else self._whole

    def over(self, recording: Recording | RecordingFile) -> Outcome:
        """End it as the recording ended."""
        consumer, meter, noting = self.consumer, self._meter, self._noting
        consumer.end(recording.ending, recording.end_t)
        meter.end(recording.end_t, consumer.last_words)
        noting.over(consumer.last_words, consumer.turn)
        reader = consumer.reader
        return Outcome(
            consumer.attempt,
            consumer.turn,
            consumer.ending or recording.ending,
            reader.wire,
            reader.frames,
            reader.bytes,
            consumer.verdicts,
            _proposals(consumer),
            meter.metrics(consumer.turn.complete),
            recording.truncated if isinstance(recording, RecordingFile) else "",
            noting.signs(),
        )


def _proposals(consumer: Consumer) -> tuple[Proposal, ...]:
    """What may be committed, not copied as a consumer's are: a scan only counts them."""
    if consumer.attempt.state is not State.VALIDATED_PROPOSAL:
        return ()
    calls = consumer.turn.calls
    return tuple(Proposal(call.start.call_id, call.start.name, call.input) for call in calls)


class _Hasty(Consumer):
    """A consumer that gives the turn what came in one read in as few pieces as there can be."""

    def _take(self, reads: list[Read]) -> list[Read]:
        texts: list[str] = []
        counts: list[UsageReported] = []
        kind: Any = None
        segment = ""
        for _, events in reads:
            for event in events:
                cls: Any = type(event)
                if cls is kind and event.segment == segment:  # type: ignore[union-attr]
                    texts.append(event.text)  # type: ignore[union-attr]
                elif cls in DELTAS:
                    self._append(kind, segment, texts)
                    kind, segment = cls, event.segment  # type: ignore[union-attr]
                    texts.append(event.text)  # type: ignore[union-attr]
                elif cls is UsageReported:
                    counts.append(event)  # type: ignore[arg-type]
                else:
                    self._append(kind, segment, texts)
                    self._count(counts)
                    self.turn = reduce(self.turn, event)
                    self.attempt = observe(self.attempt, event)
        self._append(kind, segment, texts)
        self._count(counts)
        return reads

    def _append(self, kind: Any, segment: str, texts: list[str]) -> None:
        """Append what has come of one segment; text and counts do not meet in a turn."""
        if texts:
            self.turn = reduce(self.turn, kind(segment, "".join(texts)))
            texts.clear()

    def _count(self, counts: list[UsageReported]) -> None:
        """Merge counts as the turn would: field by field, and what is null takes nothing back."""
        if not counts:
            return
        usage: dict[str, Any] = {}
        for event in counts:
            new = event.usage
            if None in new.values():
                new = {key: value for key, value in new.items() if value is not None}
            usage.update(new)
        last = [
            next((found for event in reversed(counts) if (found := of(event)) is not None), None)
            for of in TOKENS
        ]
        self.turn = reduce(self.turn, UsageReported(usage, Tokens(*last)))
        counts.clear()
