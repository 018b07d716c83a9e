"""CPU per event, as ratios measured in one run: `python3 -m streamlab bench`.

The whole way (bytes -> frames -> events -> turn -> attempt) stands against

    floor    finding the data lines and JSON-decoding them, with the faster of two fast decoders
    raw      the official SDK's iteration over the same bytes, nothing accumulated
    helper   the official SDK's accumulating helper

A second is CPU time of this process; each figure is the least of several rounds, and the rounds of
the contestants take turns, so that a busy machine slows them alike. The network is not measured:
the SDK reads from memory, through its own client. No figure here is a test.

The explorer, which reads no stream, has a row of its own: a state's cost against the plainest
breadth-first search over as many tuples of integers, whose ways are known beforehand.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import httpx2
import msgspec
import orjson
from anthropic import Anthropic

from streamlab import Consumer, Recording, judge, read, synth
from streamlab.__main__ import bench_parser
from streamlab.study.explorer import reach
from streamlab.wire.sse import SSEDecoder

#: Bytes a read brings: what a busy socket gives, and (as "framed") one frame a read.
READ_SIZE = 16 * 1024

FRAMED = "a frame a read"
AIMS = {"floor": 4.0, "raw": 4.0, "doubling": 2.2, "explorer": 6.0}


class Work(NamedTuple):
    """One row: a stream cut into reads, as often as the row needs to be long enough."""

    name: str
    streams: list[list[bytes]]
    events: int


class Row(NamedTuple):
    """CPU in microseconds an event."""

    name: str
    events: int
    floor: float
    streamlab: float
    raw: float
    helper: float

    @property
    def group(self) -> str:
        """What an aim is judged over: short streams are mostly their fixed costs."""
        return f"tool JSON, {FRAMED}" if self.framed else self.name.partition(",")[0]

    @property
    def framed(self) -> bool:
        """Whether each read brings one frame; the floor, which joins its reads, is no measure."""
        return self.name.endswith(FRAMED)


def work(name: str, recordings: Iterable[Recording], framed: bool = False) -> Work:
    """Prepare a row's bytes: everything that is not to be measured happens here."""
    streams, events = [], 0
    for recording in recordings:
        data, frames = recording.data, SSEDecoder().feed(recording.data)
        edges = [f.end for f in frames] if framed else [*range(READ_SIZE, len(data), READ_SIZE)]
        streams.append([data[a:b] for a, b in pairwise([0, *edges, len(data)])])
        events += len(frames)
    return Work(name, streams, events)


def rows(folder: Path) -> Iterator[Work]:
    """Everything that is measured."""
    yield work("text", [synth.long_text(200_000)])
    for size in (20, 40, 80, 160):
        yield work(f"tool JSON, {size} KB", [synth.tool_json(size * 1024)])
    yield work(f"tool JSON, 40 KB, {FRAMED}", [synth.tool_json(40 * 1024)], framed=True)
    found = [recording for path in sorted(folder.rglob("*.sse")) if whole(recording := read(path))]
    if found:
        times = max(1, 10_000 // sum(map(size_in_events, found)))
        yield work(f"{len(found)} recordings, {times} times", found * times)


def size_in_events(recording: Recording) -> int:
    """How many frames it has."""
    return len(SSEDecoder().feed(recording.data))


def whole(recording: Recording) -> bool:
    """Whether every contestant can read it to its end: the others raise on a broken one."""
    return judge(recording).turn.complete and b"[DONE]" not in recording.data


def floor(job: Work) -> None:
    """Only JSON, by the decoder that is faster here."""
    decode = FASTEST
    for chunks in job.streams:
        for line in b"".join(chunks).splitlines():
            if line.startswith(b"data: "):
                decode(line[6:])


def streamlab(job: Work) -> None:
    """The whole way, to a judged attempt."""
    for chunks in job.streams:
        consumer = Consumer("claude")
        for chunk in chunks:
            consumer.feed(chunk)
        consumer.end()


def raw(job: Work) -> None:
    """The SDK's events, one after the other."""
    for chunks in job.streams:
        with client(chunks).messages.create(**REQUEST, stream=True) as stream:
            for _ in stream:
                pass


def helper(job: Work) -> None:
    """The SDK's accumulated message."""
    for chunks in job.streams:
        with client(chunks).messages.stream(**REQUEST) as stream:
            stream.get_final_message()


REQUEST = {"model": "none", "max_tokens": 1, "messages": [{"role": "user", "content": "…"}]}


def client(chunks: list[bytes]) -> Anthropic:
    """The real client over a transport that answers from memory."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, stream=Chunks(chunks))

    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    return Anthropic(api_key="none", http_client=transport, max_retries=0)


class Chunks(httpx2.SyncByteStream):
    """A body that comes in these reads."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.chunks)


def cpu(run: Callable[[Work], None], job: Work) -> float:
    """CPU seconds of one run."""
    start = time.process_time()
    run(job)
    return time.process_time() - start


def measure(job: Work, rounds: int, with_sdk: bool = True) -> Row:
    """One row; the dear contestant runs less often."""
    best = {run: float("inf") for run in (floor, streamlab, raw, helper)}
    for turn in range(rounds):
        for run in best:
            dear = run in (raw, helper)
            if not dear or (with_sdk and turn < (2 if run is raw else 1)):
                best[run] = min(best[run], cpu(run, job))
    return Row(job.name, job.events, *(t / job.events * 1e6 for t in best.values()))


def fastest() -> Callable[[bytes], object]:
    """The faster of two JSON decoders, on a typical delta."""
    line = b'{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hello"}}'
    timed = {}
    for decode in (orjson.loads, msgspec.json.Decoder().decode):
        start = time.process_time()
        for _ in range(100_000):
            decode(line)
        timed[decode] = time.process_time() - start
    return min(timed, key=timed.__getitem__)


FASTEST: Callable[[bytes], object] = fastest()

HEAD = ("events", "floor", "streamlab", "raw", "helper", "of floor", "raw is", "helper is")


def show(row: Row) -> str:
    """A row for a person."""
    times = [row.streamlab / row.floor, row.raw / row.streamlab, row.helper / row.streamlab]
    cells = [
        f"{row.events:,}",
        *(f"{cost:.2f}" for cost in row[2:]),
        *(f"{x:.1f} x" for x in times),
    ]
    return f"{row.name:34}" + "".join(f"{cell:>11}" for cell in cells)


def verdicts(found: list[Row]) -> Iterator[str]:
    """Each aim, for each group, with the worst figure of this run and whether it meets the aim."""
    aims = (
        (f"at most {AIMS['floor']} times the floor", times_the_floor),
        (f"at least {AIMS['raw']} times as fast as the SDK's raw iteration", times_as_fast),
        (f"twice the input, at most {AIMS['doubling']} times the time", growth),
    )
    groups = {row.group: [other for other in found if other.group == row.group] for row in found}
    for aim, figure in aims:
        for name, group in groups.items():
            judged = figure(group)
            if judged is not None:
                value, holds = judged
                yield f"{aim}: {value:.2f}, {'met' if holds else 'missed'} ({name})"


Judged = tuple[float, bool] | None  #: the figure, and whether it meets its aim


def times_the_floor(group: list[Row]) -> Judged:
    """The worst ratio to the floor."""
    if group[0].framed:
        return None
    worst = max(row.streamlab / row.floor for row in group)
    return worst, worst <= AIMS["floor"]


def times_as_fast(group: list[Row]) -> Judged:
    """The worst ratio to the SDK's raw iteration."""
    worst = min(row.raw / row.streamlab for row in group)
    return worst, worst >= AIMS["raw"]


def growth(group: list[Row]) -> Judged:
    """The worst growth from a row to the next, which is twice as long."""
    total = [row.streamlab * row.events for row in group]
    if len(total) < 2:
        return None
    worst = max(b / a for a, b in pairwise(total))
    return worst, worst <= AIMS["doubling"]


class Explored(NamedTuple):
    """CPU of a search in microseconds a state."""

    name: str
    states: int
    floor: float
    streamlab: float

    @property
    def verdict(self) -> str:
        """The aim, with the figure of this run and whether it meets the aim."""
        times = self.streamlab / self.floor
        met = "met" if times <= AIMS["explorer"] else "missed"
        return f"at most {AIMS['explorer']} times a plain search: {times:.2f}, {met} ({self.name})"

    def __str__(self) -> str:
        times, speed = self.streamlab / self.floor, 1e6 / self.streamlab
        costs = f"{self.floor:>11.2f}{self.streamlab:>11.2f}"
        return (
            f"{self.name:34}{self.states:>11,}{costs}  {times:.1f} x, {speed:,.0f} states a second"
        )


Known = dict[tuple[int, ...], list[tuple[int, ...]]]


def known_ways() -> Known:
    """What the explorer reaches, as tuples of integers: each state's, and those after it."""
    found = reach()
    values: dict[object, int] = {}
    states = [
        tuple(values.setdefault(value, len(values)) for value in msgspec.structs.astuple(moment))
        for moment in found.moments
    ]
    return {
        state: [states[after] for _, after in ways]
        for state, ways in zip(states, found.ways, strict=True)
    }


def plain_search(known: Known) -> int:
    """A breadth-first search that has only to copy, to look up and to remember."""
    waiting = [next(iter(known))]
    seen = set(waiting)
    for state in waiting:
        for after in known[state]:
            copy = tuple([*after])
            if copy not in seen:
                seen.add(copy)
                waiting.append(copy)
    return len(seen)


def measure_explorer(rounds: int) -> Explored:
    """The explorer's row, all of it in this run."""
    known = known_ways()
    best = {"plain": float("inf"), "explorer": float("inf")}
    for _ in range(rounds):
        for name, run in (("plain", lambda: plain_search(known)), ("explorer", reach)):
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    each = [cost / len(known) * 1e6 for cost in best.values()]
    return Explored("explorer, a state", len(known), *each)


def main() -> int:
    """Measure, and print a table."""
    options = bench_parser().parse_args()
    found = []
    if not options.json:
        print("CPU, microseconds an event; the least of several rounds")
        print(" " * 34 + "".join(f"{word:>11}" for word in HEAD))
    for job in rows(Path(options.recordings)):
        found.append(measure(job, options.rounds))
        print(json.dumps(found[-1]._asdict()) if options.json else show(found[-1]), flush=True)
    explored = measure_explorer(options.rounds)
    print(json.dumps(explored._asdict()) if options.json else explored, flush=True)
    if not options.json:
        print("", *verdicts(found), explored.verdict, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
