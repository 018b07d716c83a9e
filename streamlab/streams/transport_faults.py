"""What a network, a proxy or a reader in a hurry does to a stream, whatever its wire format.

Faults of the bytes, the reads, the frames and the times; none of them knows what a frame means.
Each is a pure function from a recording to a new one, and what is random comes from a seed.

Read next: `provider_faults.py`, for what a provider *says*.
"""

from __future__ import annotations

import re
from random import Random

import msgspec

from streamlab.errors import UsageError
from streamlab.streams.edit import (
    cut_reads,
    delay,
    disconnect,
    frame_at,
    frames,
    insert,
    move,
    splice,
    stop_at,
    whole,
    with_chunks,
)
from streamlab.streams.recording import Chunk, Recording
from streamlab.wire.forms import decoder_of, is_array
from streamlab.wire.jsonl import JSONLinesDecoder
from streamlab.wire.sse import BOM

__all__ = [
    "burst",
    "cancel",
    "cut",
    "drop_newline",
    "duplicate",
    "flip",
    "html_page",
    "late",
    "line_ends",
    "merge",
    "most_of",
    "reconnect",
    "reorder",
    "slow_start",
    "split",
    "stall",
]

#: The longest silence that a fault makes, in seconds.
LONGEST_S = 1_000_000_000


# --- Bytes ----------------------------------------------------------------------------------------


def split(recording: Recording, seed: int = 0) -> Recording:
    """Cut the reads into smaller ones, also inside a frame, a line end or a character."""
    rng, size = Random(seed), len(recording.data)
    return cut_reads(recording, sorted(rng.randrange(size + 1) for _ in range(2 + size // 50)))


def merge(recording: Recording, seed: int = 0) -> Recording:
    """Let one read bring what several brought, when the last of them came."""
    rng = Random(seed)
    out: list[Chunk] = []
    for chunk in recording.chunks:
        joined = out and rng.random() < 0.6
        out.append(Chunk(chunk.t, out.pop().data + chunk.data) if joined else chunk)
    return with_chunks(recording, out)


def cut(
    recording: Recording,
    after: int,
    inside: bool = False,
    ending: str = "eof",
    kept: int | None = None,
) -> Recording:
    """Lose the bytes after frame `after`; inside: only after the first half of the next frame.

    `kept` says how many bytes of that frame still come, where it is not to be half of them.
    """
    if not inside:
        return disconnect(recording, after, ending)
    whole("after", after)
    start, end = frame_at(recording, after + 1)
    most = most_of(recording, after + 1)
    if kept is None:
        return stop_at(recording, (start + end) // 2, ending)
    whole("kept", kept)
    if not 0 < kept <= most:
        raise UsageError(f"kept={kept}: of frame {after + 1} it can be 1 to {most} bytes")
    return stop_at(recording, start + kept, ending)


def most_of(recording: Recording, frame: int) -> int:
    """How many bytes of a frame can come without the frame being whole."""
    data, found = recording.data, frames(recording)[frame - 1]
    if decoder_of(data) is not JSONLinesDecoder:
        return found.end - 1 - found.start
    # A whole line counts even where nothing ends it.
    return len(data[found.start : found.end].rstrip()) - 1


def flip(recording: Recording, bit: int) -> Recording:
    """Turn one bit over; bit 0 is the lowest of the first byte."""
    whole("bit", bit)
    data = recording.data
    if not 0 <= bit < 8 * len(data):
        raise UsageError(f"bit={bit}: this recording has bits 0 to {8 * len(data) - 1}")
    at = bit // 8
    return splice(recording, at, at + 1, bytes([data[at] ^ 1 << bit % 8]))


def drop_newline(recording: Recording, line: int) -> Recording:
    """Lose the line end of one line, counted from 1, blank lines too."""
    whole("line", line)
    ends = line_ends(recording)
    if not 1 <= line <= len(ends):
        raise UsageError(f"line={line}: this recording has lines 1 to {len(ends)}")
    return splice(recording, *ends[line - 1])


def line_ends(recording: Recording) -> list[tuple[int, int]]:
    """Where each line end starts and ends."""
    return [found.span() for found in re.finditer(rb"\r\n|\r|\n", recording.data)]


def html_page(recording: Recording) -> Recording:
    """Answer with a web page instead, as a proxy or a login wall does, under HTTP 200."""
    page = b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head></html>\n"
    return insert(disconnect(recording, 0), 0, page)


# --- Frames (insert and skip are in edit.py) ------------------------------------------------------


def duplicate(recording: Recording, frame: int) -> Recording:
    """Deliver one frame twice."""
    start, end = frame_at(recording, frame)
    return insert(recording, frame, recording.data[start:end])


def reorder(recording: Recording, frame: int) -> Recording:
    """Deliver one frame after the one that follows it."""
    whole("frame", frame)
    return move(recording, frame, after=frame + 1)


def late(recording: Recording, frame: int) -> Recording:
    """Deliver one frame after everything else."""
    return move(recording, frame, after=len(frames(recording)))


# --- Time -----------------------------------------------------------------------------------------


def stall(recording: Recording, after: int, seconds: float = 30.0) -> Recording:
    """Let nothing come for a while, then go on."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise UsageError(f"seconds={repr(seconds)[:40]}: this is a number, such as seconds=30.0")
    if not 0 <= seconds <= LONGEST_S:  # not a number is refused too
        raise UsageError(f"seconds={seconds}: a silence lasts 0 to {LONGEST_S:,} seconds")
    return delay(recording, after, lambda t: round(t + seconds, 6))


def slow_start(recording: Recording, seconds: float = 30.0) -> Recording:
    """Let the first byte take its time."""
    return stall(recording, 0, seconds)


def burst(recording: Recording, after: int = 0) -> Recording:
    """Hold everything back and let it go at once at the end, as a buffering proxy does."""
    last = max((chunk.t for chunk in recording.chunks if chunk.t is not None), default=0.0)
    return delay(recording, after, lambda t: max(t, last))


# --- Transport (how it may stop is `disconnect`, in edit.py) --------------------------------------


def reconnect(recording: Recording, after: int) -> Recording:
    """Lose the connection, connect again, and be sent the answer anew, from its start.

    A browser's EventSource does so by itself; whoever reads on sees one stream.
    """
    if is_array(recording.data):
        raise UsageError("an array cannot begin again inside itself: each connection has its own")
    kept = disconnect(recording, after)
    lost_at, joint = kept.end_t or 0.0, b""
    if after and kept.data[-1] not in b"\r\n":  # a last line that nothing ended
        joint = b"\n"
    mark = len(BOM) if recording.data.startswith(BOM) else 0
    again = splice(recording, 0, mark, joint) if mark or joint else recording

    def later(t: float | None) -> float | None:
        return None if t is None else round(lost_at + t, 6)

    chunks = [*kept.chunks, *(Chunk(later(t), data) for t, data in again.chunks)]
    return msgspec.structs.replace(with_chunks(recording, chunks), end_t=later(recording.end_t))


# --- Control --------------------------------------------------------------------------------------


def cancel(recording: Recording, after: int) -> Recording:
    """Stop reading by our own wish."""
    return disconnect(recording, after, "cancelled")
