"""Judge for a scan: the same outcome as `judge`, in a fraction of the time.

Who watches a stream wants every read and every turn; a scan wants the end. So here many reads are
decoded as one (any split of the same bytes gives the same frames), and a run of deltas is appended
as one, with the counts in it merged, before the turn sees it. The times stay those of the reads: a
frame came with the read that holds its last byte. Wherever a bound could be passed, or it is not
yet known what is read, it goes read by read, as in `judge`.

`tests/test_corpus_judging.py` holds the two to the same outcome.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from streamlab.analysis.judge import Outcome
from streamlab.analysis.meter import Meter
from streamlab.analysis.runs import Other, Whole, runs_of
from streamlab.analysis.signs import Noting
from streamlab.consumer.attempt import State, observe
from streamlab.consumer.consumer import Consumer
from streamlab.consumer.gates import EFFECT, Policy, Proposal
from streamlab.consumer.turn import reduce
from streamlab.streams.recording import Chunk, Reads, Recording, RecordingFile
from streamlab.wire.events import Tokens, UsageReported
from streamlab.wire.reader import BOUNDS, Bounds
from streamlab.wire.runs import Item, last_frame

__all__ = ["judged"]

#: Bytes that are decoded as one, and reads.
MAX_BYTES, MAX_READS = 64 * 1024, 1024

#: Bytes of a large first read that are taken by themselves.
FIRST = 2048

#: Counts that a usage may have to be merged in one go; a vendor has a dozen.
MAX_COUNTS = 20

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
        if not self._is_known() and many.ends[0] > FIRST:  # what tells it stands at the beginning
            many = Reads(many.data, [many.times[0], *many.times], [FIRST, *many.ends])
        for taken, chunk in enumerate(many):
            if bounded and self._is_known():
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
        items = self.consumer.reader.feed_runs(many.data)
        runs = [*runs_of(items)]
        self.consumer.take_runs(runs)
        self._see(Chunk(many.times[0], many.data), items)
        times, ends = self._meter.when(many.times), [at + end for end in many.ends]
        if times[-1] is None:  # no time is known yet
            return

        def when(given: list[int]) -> list[float | None]:
            """A frame came with the read that holds its last byte; most often a read brings one."""
            if len(ends) == 1:
                return times * len(given)
            first = bisect_left(ends, given[0])
            last = first + len(given)
            if ends[first:last] == given:
                return times[first:last]
            return [times[bisect_left(ends, end, first)] for end in given]

        self._meter.take_runs(runs, when)

    def _see(self, chunk: Chunk, items: Sequence[Item]) -> None:
        self._noting.feed(chunk, items, self.consumer.turn)
        frame = last_frame(items)
        self._whole = frame.end if frame is not None else self._whole

    def over(self, recording: Recording | RecordingFile) -> Outcome:
        """End it as the recording ended."""
        consumer, meter, noting = self.consumer, self._meter, self._noting
        consumer.end(recording.ending, recording.end_t)
        meter.end(recording.end_t, consumer.last_words)
        noting.over(consumer.last_words, consumer.turn, consumer.reader.beside_data)
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
    """A consumer that gives the turn what many reads stated in as few pieces as there can be."""

    def take_runs(self, runs: Iterable[Whole | Other]) -> None:
        """Give the turn what many reads stated."""
        for run in runs:
            if isinstance(run, Other):
                self.turn = reduce(self.turn, run.event)
                self.attempt = observe(self.attempt, run.event)
                continue
            self.turn = reduce(self.turn, run.kind(run.segment, "".join(run.texts)))
            if run.counts:
                self.turn = reduce(self.turn, _merged([event for _, event in run.counts]))


def _merged(counts: list[UsageReported]) -> UsageReported:
    """Counts as the turn would merge them: field by field, and what is null takes nothing back."""
    usage: dict[str, Any] = {}
    for event in counts:
        usage.update(event.usage)
    if None in usage.values() or len(usage) > MAX_COUNTS:
        usage = {}
        for event in counts:
            usage |= {key: value for key, value in event.usage.items() if value is not None}
    last = [
        next((found for event in reversed(counts) if (found := of(event)) is not None), None)
        for of in TOKENS
    ]
    return UsageReported(usage, Tokens(*last))
