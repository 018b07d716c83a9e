"""Edits of a recording at exact places: what every fault is made of, whatever the wire format.

A place is a frame number: `after=3` is just after frame 3, `after=0` before the first. Edits keep
every other byte in the read that brought it and at its time; what is inserted comes at the time of
its place. Each is a pure function to a new recording. In a JSON array the commas between the frames
are no frame's own: an edit puts them where they belong.

Read next: `faults.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import msgspec

from streamlab.errors import UsageError
from streamlab.streams.recording import Chunk, Recording
from streamlab.wire.forms import frames_of, is_array
from streamlab.wire.sse import BOM, Frame

__all__ = [
    "cut_reads",
    "delay",
    "disconnect",
    "edge",
    "frame_at",
    "frames",
    "in_order",
    "insert",
    "move",
    "skip",
    "splice",
    "splice_all",
    "stop_at",
    "whole",
    "with_chunks",
]

#: Seconds of silence before a reader gives up, where the ending is a timeout.
TIMEOUT_S = 60.0


def frames(recording: Recording) -> list[Frame]:
    """The frames of a recording, numbered from 1, with the byte ranges that they came from."""
    return frames_of(recording.data)


def whole(name: str, number: object) -> None:
    """Refuse what is no whole number: a place that is between two frames is none."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise UsageError(f"{name}={repr(number)[:40]}: this is a whole number, such as {name}=3")


def edge(recording: Recording, after: int) -> int:
    """The offset of the first byte that no longer belongs to frame `after`."""
    whole("after", after)
    data, found = recording.data, frames(recording)
    if not 0 <= after <= len(found):
        raise UsageError(f"after={after}: this recording allows 0 (before all) to {len(found)}")
    if after == 0:
        return len(BOM) if data.startswith(BOM) else 0
    end = found[after - 1].end
    return end + 1 if data[end - 1 : end + 1] == b"\r\n" else end  # a Frame leaves the LF to nobody


def frame_at(recording: Recording, frame: int) -> tuple[int, int]:
    """Where a frame's bytes start and end."""
    whole("frame", frame)
    found = frames(recording)
    if not 1 <= frame <= len(found):
        raise UsageError(f"frame={frame}: this recording has frames 1 to {len(found)}")
    return found[frame - 1].start, edge(recording, frame)


def with_chunks(recording: Recording, chunks: Sequence[Chunk]) -> Recording:
    """The same recording with other reads."""
    return msgspec.structs.replace(recording, chunks=tuple(chunks))


def splice(recording: Recording, start: int, end: int, new: bytes = b"") -> Recording:
    """Put `new` in the place of the bytes from `start` to `end`."""
    out: list[Chunk] = []
    at = 0
    for t, data in recording.chunks:
        offset, at = at, at + len(data)
        if at <= start:
            out.append(Chunk(t, data))
            continue
        rest = data[max(0, end - offset) :]
        if offset < start:  # the place is inside this read: it stays one read
            new, rest = b"", data[: start - offset] + new + rest
        elif new:
            out.append(Chunk(out[-1].t if out and start == end else t, new))
            new = b""
        if rest:
            out.append(Chunk(t, rest))
    if new:
        out.append(Chunk(out[-1].t if out else recording.end_t, new))
    return with_chunks(recording, out)


def splice_all(recording: Recording, changes: Sequence[tuple[int, int, bytes]]) -> Recording:
    """The same for many ranges, in ascending order and none empty, in one pass over the reads."""
    out: list[Chunk] = []
    waiting, at, done = deque(changes), 0, 0
    for t, data in recording.chunks:
        offset, at = at, at + len(data)
        first, rest = b"", list[bytes]()  # what replaces a read from its first byte on is a read
        while waiting and waiting[0][0] < at:
            start, end, new = waiting.popleft()
            rest.append(data[max(0, done - offset) : start - offset])
            if start == offset:
                first = new
            else:
                rest.append(new)
            done = end
        rest.append(data[max(0, done - offset) :])
        pieces = [piece for piece in (first, b"".join(rest)) if piece]
        out += [Chunk(t, piece) for piece in (pieces if data else [b""])]
    return with_chunks(recording, out)


def insert(recording: Recording, after: int, frame: bytes) -> Recording:
    """Put the bytes of a frame, blank line included, after frame `after`."""
    if not isinstance(frame, bytes):
        raise UsageError(f"a frame is given as its bytes, not as {type(frame).__name__}")
    place = edge(recording, after)
    if is_array(recording.data):
        return _insert_element(recording, after, frame.strip())
    if after and recording.data[place - 1] not in b"\r\n":  # a last line that nothing ended
        frame = b"\n" + frame
    return splice(recording, place, place, frame)


def skip(recording: Recording, frame: int) -> Recording:
    """Lose one whole frame."""
    start, end = frame_at(recording, frame)
    if is_array(recording.data):  # with the comma before it, or after it where it is the first
        found = frames(recording)
        if frame > 1:
            start = found[frame - 2].end
        elif len(found) > 1:
            end = found[1].start
    return splice(recording, start, end)


def _insert_element(recording: Recording, after: int, element: bytes) -> Recording:
    """Put an element of a JSON array after element `after`, and a comma between the two."""
    found = frames(recording)
    if after:
        return splice(recording, found[after - 1].end, found[after - 1].end, b"," + element)
    if found:
        return splice(recording, found[0].start, found[0].start, element + b",")
    place = recording.data.index(b"[") + 1
    return splice(recording, place, place, element)


def move(recording: Recording, frame: int, after: int) -> Recording:
    """Deliver a frame only after a later one."""
    start, end = frame_at(recording, frame)
    edge(recording, after)  # is there such a place?
    if after < frame:
        raise UsageError(f"after={after}: frame {frame} can be late from after={frame} on")
    if after == frame:  # there it is
        return recording
    return insert(skip(recording, frame), after - 1, recording.data[start:end])


def in_order(recording: Recording, order: Sequence[int]) -> Recording:
    """All frames in another order, one a read, each at the time of its new place."""
    data, found = recording.data, frames(recording)
    starts = [frame.start for frame in found]
    pieces = [data[start:end] for start, end in pairwise([*starts, len(data)])]
    head, tail = data[: starts[0]] if starts else data, b""
    if found and is_array(data):
        tail = data[found[-1].end :]
        pieces = [data[frame.start : frame.end] for frame in found]
    moved = [pieces[number - 1] for number in order]
    if tail:
        moved = [*(piece + b"," for piece in moved[:-1]), *(piece + tail for piece in moved[-1:])]
    moved = [head, *moved]
    reads = list(accumulate(len(chunk.data) for chunk in recording.chunks))
    out, at = list[Chunk](), 0
    for piece in filter(None, moved):
        at += len(piece)
        out.append(Chunk(recording.chunks[bisect_left(reads, at)].t, piece))
    return with_chunks(recording, out)


def cut_reads(recording: Recording, places: Sequence[int]) -> Recording:
    """Cut the reads at these offsets too (in ascending order)."""
    out: list[Chunk] = []
    at = 0
    for t, data in recording.chunks:
        offset, at = at, at + len(data)
        inner = places[bisect_right(places, offset) : bisect_left(places, at)]
        cuts = [0, *(place - offset for place in inner), len(data)]
        out += [Chunk(t, data[start:end]) for start, end in pairwise(cuts) if start < end]
    return with_chunks(recording, out)


def delay(recording: Recording, after: int, time: Callable[[float], float]) -> Recording:
    """Let everything after frame `after` come at another time, told from its old one."""
    if not recording.timed:
        raise UsageError("this recording has no times, so nothing in it can come later")
    place, at = edge(recording, after), 0
    out: list[Chunk] = []
    for t, data in cut_reads(recording, [place]).chunks:
        out.append(Chunk(t if at < place or t is None else time(t), data))
        at += len(data)
    end_t = None if recording.end_t is None else time(recording.end_t)
    return msgspec.structs.replace(recording, chunks=tuple(out), end_t=end_t)


def disconnect(recording: Recording, after: int, ending: str = "eof") -> Recording:
    """Lose everything after frame `after`; the connection ends in one of the `ENDINGS`."""
    return stop_at(recording, edge(recording, after), ending)


def stop_at(recording: Recording, place: int, ending: str = "eof") -> Recording:
    """Lose every byte from an offset on."""
    kept = splice(recording, place, len(recording.data)).chunks
    last = kept[-1] if kept else recording.chunks[0] if recording.chunks else Chunk(None, b"")
    t = last.t
    if t is not None and ending == "timeout":
        t += TIMEOUT_S
    return msgspec.structs.replace(recording, chunks=kept, ending=ending, end_t=t)
