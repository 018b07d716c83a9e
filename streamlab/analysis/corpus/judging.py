"""Judge for a scan: the same outcome as `judge`, in a fraction of the time.

Who watches a stream wants every read and every turn; a scan wants the end. So here many reads are
decoded as one (any split of the same bytes gives the same frames), successive deltas of a segment
are appended as one, and successive counts are merged before the turn sees them. The times stay
those of the reads: a frame came with the read that holds its last byte. Wherever a bound could be
passed, or it is not yet known what is read, it goes read by read, as in `judge`.

`tests/test_corpus_judging.py` holds the two to the same outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from streamlab.analysis.judge import Outcome
from streamlab.analysis.meter import Meter
from streamlab.analysis.signs import Noting
from streamlab.consumer.attempt import State, observe
from streamlab.consumer.consumer import Consumer
from streamlab.consumer.gates import EFFECT, Policy, Proposal
from streamlab.consumer.turn import reduce
from streamlab.streams.recording import Chunk, Recording, RecordingFile
from streamlab.wire.events import InputDelta, TextDelta, ThinkingDelta, Tokens, UsageReported
from streamlab.wire.reader import BOUNDS, Bounds, Read

__all__ = ["judged"]

#: Bytes that are decoded as one, and reads.
MAX_BYTES, MAX_READS = 64 * 1024, 1024

#: Events of which many in a row come to the same as one.
DELTAS = frozenset({TextDelta, ThinkingDelta, InputDelta})

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
    chunks = recording if isinstance(recording, RecordingFile) else recording.chunks
    judging = _Judging(_Hasty(wire or source.wire, policy, bounds))
    for several in _together(chunks):
        judging.take(several)
        if judging.consumer.finished:
            break
    return judging.over(recording)


def _together(chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
    """The reads, as many at a time as may be decoded as one."""
    held: list[Chunk] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk.data)
        if size >= MAX_BYTES or len(held) == MAX_READS:
            yield held
            held, size = [], 0
    if held:
        yield held


class _Judging:
    """One recording on its way."""

    def __init__(self, consumer: _Hasty) -> None:
        self.consumer = consumer
        self._meter, self._noting = Meter(), Noting()
        self._whole = 0  # offset of the end of the last frame
        self._head = b""  # what came before the first frame

    def take(self, chunks: list[Chunk]) -> None:
        """Take some reads: as one, or one by one."""
        if len(chunks) > 1 and self._may_join(chunks):
            self._take_joined(chunks)
            return
        consumer, reader = self.consumer, self.consumer.reader
        for number, chunk in enumerate(chunks):
            if reader.frames and number + 1 < len(chunks) and self._may_join(chunks[number:]):
                self._take_joined(chunks[number:])
                return
            if not reader.frames:
                self._head += chunk.data[: len(BLANK) + 1]
            reads = consumer.feed(chunk.data, chunk.t)
            self._meter.feed(chunk.t, reads)
            self._noting.feed(chunk, reads, consumer.turn, reader.wire)
            self._see(reads)
            if consumer.finished:
                return

    def _may_join(self, chunks: list[Chunk]) -> bool:
        """Whether no bound can be passed in these reads, and every frame is read as it comes."""
        reader = self.consumer.reader
        bounds, size = reader.bounds, sum(len(chunk.data) for chunk in chunks)
        last = max((chunk.t for chunk in chunks if chunk.t is not None), default=0.0)
        return (
            reader.frames > 0
            and reader.wire is not None
            and self._head.lstrip(BLANK)[:1] != b"["
            and reader.bytes + size <= bounds.bytes
            and reader.bytes - self._whole + size <= bounds.frame_bytes
            and reader.frames + size <= bounds.frames
            and last <= bounds.seconds
        )

    def _take_joined(self, chunks: list[Chunk]) -> None:
        consumer, meter = self.consumer, self._meter
        at, first = consumer.reader.bytes, 0
        data = b"".join([chunk.data for chunk in chunks])
        reads = consumer.feed(data)
        self._noting.feed(Chunk(chunks[0].t, data), reads, consumer.turn, consumer.reader.wire)
        self._see(reads)
        ends: list[Any] = [frame.end for frame, _ in reads if frame is not None]
        ends.append(at + len(data) + 1)
        for chunk in chunks:
            at += len(chunk.data)
            after = first
            while ends[after] <= at:
                after += 1
            meter.feed(chunk.t, reads[first:after])
            first = after

    def _see(self, reads: list[Read]) -> None:
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
        given = inner = thinking = None
        for event in counts:
            usage.update({key: v for key, v in event.usage.items() if v is not None})
            tokens = event.tokens
            given = given if tokens.input is None else tokens.input
            inner = inner if tokens.output is None else tokens.output
            thinking = thinking if tokens.thinking is None else tokens.thinking
        self.turn = reduce(self.turn, UsageReported(usage, Tokens(given, inner, thinking)))
        counts.clear()
