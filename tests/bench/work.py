"""What is measured: synthetic answers of each wire format, and short recordings from a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from streamlab import Recording, judge, read, synth
from streamlab.analysis.judge import Outcome
from streamlab.wire.forms import frames_of
from streamlab.wire.reader import WIRES

__all__ = ["FRAMED", "Work", "work", "works"]

#: Bytes a read brings: what a busy socket gives, and (as "framed") one frame a read.
READ_SIZE = 16 * 1024

FRAMED = "a frame a read"

#: Frames that the row of a folder's recordings has at least, by reading them more than once.
SHORT = 10_000

#: Sizes of a tool's input, in KB; each is twice the one before, so that the growth can be judged.
SIZES = {"claude": (20, 40, 80, 160), "openai-chat": (40, 80), "openai-responses": (40, 80)}

#: Gemini's arguments come whole, in one chunk, but on Vertex, which sends each value by its path.
BY_PATH = synth.Style(arguments="path", fragment=(8, 8))


class Work(NamedTuple):
    """One row: streams of one wire format, cut into reads."""

    wire: str
    name: str
    streams: Sequence[list[bytes]]
    events: int
    array: bool = False  #: whether each is one JSON array; no SDK reads that form

    @property
    def title(self) -> str:
        """The name that the table shows."""
        return f"{self.wire} {self.name}"


def work(name: str, recordings: Iterable[Recording], wire: str, framed: bool = False) -> Work:
    """Prepare a row's bytes: everything that is not to be measured happens here."""
    streams, events, array = [], 0, False
    for recording in recordings:
        data, frames = recording.data, frames_of(recording.data)
        edges = [f.end for f in frames] if framed else [*range(READ_SIZE, len(data), READ_SIZE)]
        streams.append([data[a:b] for a, b in pairwise([0, *edges, len(data)])])
        events += len(frames)
        array |= data[:1] == b"["
    return Work(wire, name, streams, events, array)


def works(folder: Path) -> Iterator[Work]:
    """Everything that is measured, one wire format after the other."""
    found = recordings(folder)
    for wire in WIRES:
        if wire in synth.WRITERS:
            yield from synthetic(wire)
        if wire in found:
            times = max(1, SHORT // sum(len(frames_of(each.data)) for each in found[wire]))
            name = f"recordings, {len(found[wire])} x {times}"
            yield work(name, found[wire] * times, wire)


def synthetic(wire: str) -> Iterator[Work]:
    """Long answers of one wire format: text, and a tool's arguments in small fragments."""
    yield work("text", [synth.long_text(200_000, wire=wire)], wire)
    for size in SIZES.get(wire, ()):
        yield work(f"tool JSON, {size} KB", [synth.tool_json(size * 1024, wire=wire)], wire)
    if wire == "claude":
        framed = [synth.tool_json(40 * 1024)]
        yield work(f"tool JSON, 40 KB, {FRAMED}", framed, wire, framed=True)
    if wire == "gemini":
        style = synth.Style(form="array")
        yield work("text as an array", [synth.long_text(200_000, wire=wire, style=style)], wire)
        for size in (20, 40):
            by_path = synth.tool_json(size * 1024, wire=wire, style=BY_PATH)
            yield work(f"arguments by path, {size} KB", [by_path], wire)


def recordings(folder: Path) -> dict[str, list[Recording]]:
    """The recordings of event streams in a folder that every contestant can read, by wire."""
    found: dict[str, list[Recording]] = {}
    for path in sorted(folder.rglob("*.sse")):
        recording = read(path)
        outcome = judge(recording)
        if outcome.wire in synth.WRITERS and all_read(recording, outcome):
            found.setdefault(outcome.wire, []).append(recording)
    return found


def all_read(recording: Recording, outcome: Outcome) -> bool:
    """Whether no SDK raises: on a broken stream, at a token limit, at another vendor's marker."""
    marked = b"[DONE]" in recording.data and not (outcome.wire or "").startswith("openai")
    return outcome.complete and outcome.turn.facts.stop_reason != "max_tokens" and not marked
