"""Bytes in, events out: finds the form and the wire format by the content, and keeps the bounds.

Forms: an event stream, one JSON event a line, or one JSON array of events. Wire formats: whichever
dialect recognises one of the first payloads. What is neither (a web page, a JSON error body, a
picture) is said to be so, with its first words; it is never an empty answer.

Nothing after this module knows a vendor. Read next: `consumer/turn.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from streamlab.errors import UsageError

from .bounds import BOUNDS, Bounds
from .claude import ClaudeReader
from .dialect import Dialect
from .events import (
    ENDINGS,
    Ambiguous,
    BoundExceeded,
    Event,
    KeepAlive,
    Problem,
    StreamEnded,
    Unknown,
)
from .gemini import GeminiReader
from .gemini_interactions import InteractionsReader
from .jsonarray import JSONArrayDecoder
from .jsonl import JSONLinesDecoder
from .openai_chat import ChatReader
from .openai_responses import ResponsesReader
from .payload import error_in
from .runs import Item, runs_in
from .sse import BOM, FIELDS, Blocks, Frame, Overrun, SSEDecoder
from .unrecognised import (
    Unrecognised,
    clip,
    is_keep_alive,
    object_of,
    objects_of,
    recognised,
    whole_in,
    whole_said,
)

__all__ = ["BOUNDS", "DIALECTS", "WIRES", "Bounds", "Read", "Reader"]

#: A frame and what it states; events of the stream as a whole have no frame.
Read = tuple[Frame | None, tuple[Event, ...]]


#: The readers. A new dialect is one more file, and its class in this list.
READERS: tuple[type[Dialect], ...] = (
    ClaudeReader,
    ChatReader,
    ResponsesReader,
    GeminiReader,
    InteractionsReader,
)

#: Wire format -> its reader.
DIALECTS = {reader.wire: reader for reader in READERS}

#: The wire formats, by name.
WIRES = tuple(DIALECTS)

#: Frames, not counting keep-alives, that may come before the first one that tells the wire format.
SNIFFED_FRAMES = 64

#: White space, in bytes, that may come before the first byte that tells the form.
SNIFFED_BYTES = 4096

#: Bytes decoded at once: of a huge read, no more than this is ever in pieces at the same time.
STRIDE = 1024 * 1024

#: What a first byte gives away about a body that is no event stream.
_LOOKS_LIKE = {b"<": "a web page (HTML or XML)", b"{": "JSON", b"[": "a JSON array"}


class Decoder(Protocol):
    """What reads frames out of one form of file."""

    overrun: Overrun | None

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take the bytes of one read; return the frames that they complete."""


#: First character of a body that is JSON -> its decoder. A line of an event stream begins with
#: neither.
JSON_FORMS: dict[bytes, type[JSONLinesDecoder | JSONArrayDecoder]] = {
    b"{": JSONLinesDecoder,
    b"[": JSONArrayDecoder,
}


class Reader:
    """Read one stream: `feed` it bytes, `end` it once; each gives frames with their events.

    >>> stream = Reader()
    >>> stream.feed(b'event: ping\\ndata: {"type": "ping"}\\n\\n')[0][1]
    (KeepAlive(),)
    """

    def __init__(self, wire: str | None = None, bounds: Bounds = BOUNDS) -> None:
        if wire is not None and wire not in WIRES:
            raise UsageError(f"wire {wire!r} is none of {', '.join(WIRES)}")
        self.wire = wire
        self.bounds = bounds
        self.bytes = 0
        self.frames = 0
        self.exceeded: BoundExceeded | None = None
        self.ending: str | None = None
        self._head = b""  # what came before the form was known
        self._decoder: SSEDecoder | JSONLinesDecoder | JSONArrayDecoder | None = None
        self._reader: Dialect | Unrecognised | None = None
        self._only: Frame | None = None  # the first frame, as long as it is the only one
        self._foreign: Frame | None = None  # the first of another format, while none was of this
        self._spoken = False  # whether some frame was of this format
        self._pending: list[Frame] = []  # frames from before the wire format was known
        self._error_between = False  # an error was written between the frames
        self._sniffed = 0  # how many of them should have told it

    @property
    def completed(self) -> bool:
        """Whether the final marker came, after a whole sequence."""
        return self._reader is not None and self._reader.completed

    @property
    def beside_data(self) -> int | None:
        """In an event stream: the offset of the first comment, event name or id."""
        return self._decoder.beside_data if isinstance(self._decoder, SSEDecoder) else None

    def feed(self, chunk: bytes) -> list[Read]:
        """Take the bytes of one read; return the frames that they complete, with their events."""
        if len(chunk) > STRIDE:
            pieces = (chunk[at : at + STRIDE] for at in range(0, len(chunk), STRIDE))
            return [read for piece in pieces for read in self.feed(piece)]
        if self.exceeded:
            return []
        self.bytes += len(chunk)
        excess = self.bytes - self.bounds.bytes
        if excess > 0:
            self.bytes -= excess
            chunk = chunk[:-excess]
        frames = self._decode(chunk) if self._decoder is None else self._decoder.feed(chunk)
        reads = self._read_all(frames)
        if excess > 0 or (self._decoder is not None and self._decoder.overrun):
            self._exceed_size(reads)
        return reads

    def feed_runs(self, chunk: bytes) -> list[Item]:
        """The same, with what many frames append to one part as one: for who needs no events.

        Where that could matter to anything but speed, it is `feed`: before the wire format is
        known, near a bound, and in a form that is no event stream.
        """
        decoder, size = self._decoder, len(chunk)
        roomy = self.bytes + size <= self.bounds.bytes and self.frames + size <= self.bounds.frames
        if not (isinstance(decoder, SSEDecoder) and self._reader and self._spoken and roomy):
            return [*self.feed(chunk)]
        if self.exceeded:
            return []
        self.bytes += size
        items: list[Item] = []
        for found in decoder.feed_blocks(chunk):
            self._only = None
            if isinstance(found, Blocks):
                self.frames += len(found.data)
                items += runs_in(found, self._reader)
            else:
                self.frames += 1
                items.append((found, self._reader.read(found)))
        if decoder.overrun:
            self._exceed_size(items)
        return items

    def over_time(self, t: float) -> list[Read]:
        """Say that `t` seconds have passed since the request was sent."""
        if self.exceeded or t <= self.bounds.seconds:
            return []
        return [self._exceed(("seconds", self.bounds.seconds, t))]

    def end(self, ending: str = "eof", t: float | None = None) -> list[Read]:
        """Say how the transport stopped, in one of the `ENDINGS`; return what is left to report.

        `t` is when, in seconds since the request was sent.
        """
        if ending not in ENDINGS:
            raise UsageError(f"ending {ending!r} is none of {', '.join(ENDINGS)}")
        reads = self.over_time(t) if t is not None else []
        if self.exceeded is None:
            if self._decoder is None:
                self._start_decoding()
            if isinstance(self._decoder, JSONLinesDecoder | JSONArrayDecoder):
                reads += self._read_all(self._decoder.end())
            if self._reader is None:
                reads += self._give_up()
            reads += [(None, events) for events in self._last_words(ending) if events]
        if self.exceeded is not None:
            ending = "cancelled"  # by us, at the bound: how it would have ended nobody saw
        self.ending = ending
        return [*reads, (None, (StreamEnded(ending, self.frames),))]

    # ------------------------------------------------------------------ bytes -> frames

    def _decode(self, chunk: bytes) -> list[Frame]:
        """Hold the first bytes back until they tell the form."""
        self._head += chunk
        head = self._head[:SNIFFED_BYTES]
        nothing_yet = BOM.startswith(head) or not head.removeprefix(BOM).strip()
        if nothing_yet and len(head) < SNIFFED_BYTES:
            return []
        return self._start_decoding()

    def _start_decoding(self) -> list[Frame]:
        head, self._head = self._head, b""
        first = head[:SNIFFED_BYTES].removeprefix(BOM).lstrip()[:1]
        self._decoder = JSON_FORMS.get(first, SSEDecoder)(self.bounds.frame_bytes)
        return self._decoder.feed(head)

    def _exceed_size(self, reads: list[Read] | list[Item]) -> None:
        if self.exceeded is None:
            overrun = self._decoder.overrun if self._decoder is not None else None
            bound = "frame_bytes" if overrun else "bytes"
            limit = overrun.limit if overrun else self.bounds.bytes
            reads.append(self._exceed((bound, limit, limit + 1)))

    def _exceed(self, found: tuple[str, float, float]) -> Read:
        self.exceeded = BoundExceeded(*found, at=self.frames)
        return (None, (self.exceeded,))

    # ------------------------------------------------------------------ frames -> events

    def _read_all(self, frames: list[Frame]) -> list[Read]:
        if frames:
            self._only = frames[0] if self.frames == 0 and len(frames) == 1 else None
        self.frames += len(frames)
        excess = self.frames - self.bounds.frames
        if excess > 0:
            self.frames -= excess
            frames = frames[: len(frames) - excess]
        reads: list[Read] = []
        if self._reader is None:
            frames = self._sniff_all(frames, reads)
        if self._reader is not None:
            read = self._reader.read
            for frame in frames:
                reads.append((frame, read(frame)))
        if not self._spoken:
            self._listen_for_this_format(reads)
        if excess > 0:
            limit = self.bounds.frames
            reads.append(self._exceed(("frames", limit, limit + 1)))
        return reads

    def _sniff_all(self, frames: list[Frame], reads: list[Read]) -> list[Frame]:
        """Read frames until one tells the wire format; give the rest."""
        for number, frame in enumerate(frames, 1):
            reads += self._sniff(frame)
            if self._reader is not None:
                return frames[number:]
        return []

    def _listen_for_this_format(self, reads: list[Read]) -> None:
        """Notice the first frame that states something in the wire format, or that does not.

        Where that one can only be another format's, a later one says nothing: formats share names.
        """
        for frame, events in reads:
            kinds = {type(event) for event in events} - {KeepAlive, Problem}
            if frame is None or (events and not kinds):
                continue
            if kinds == {Unknown}:
                self._foreign = self._foreign or frame
            elif self._foreign is None or not recognised(DIALECTS, self._foreign):
                self._spoken, self._foreign = True, None
                return

    def _sniff(self, frame: Frame) -> Iterator[Read]:
        """Hold frames until one tells the wire format, then read them all."""
        wire = self.wire if self.wire is not None else recognised(DIALECTS, frame)
        if wire is None and not self._pending and is_keep_alive(frame):
            yield frame, (KeepAlive(),)
            return
        self._pending.append(frame)
        if wire is not None:
            self.wire = wire
            self._reader = DIALECTS[wire](isinstance(self._decoder, SSEDecoder))
            held, self._pending = self._pending, []
            for earlier in held:
                yield earlier, self._reader.read(earlier)
            return
        self._sniffed += not is_keep_alive(frame)
        if self._sniffed == SNIFFED_FRAMES:
            yield from self._give_up()

    def _give_up(self) -> Iterator[Read]:
        """No wire format: let each frame say at least whether it is an error."""
        held, self._pending = self._pending, []
        self._reader = Unrecognised(DIALECTS)
        for frame in held:
            yield frame, self._reader.read(frame)

    # ------------------------------------------------------------------ the end

    def _last_words(self, ending: str) -> Iterator[tuple[Event, ...]]:
        decoder, at, left = self._decoder, self.frames, None
        if isinstance(decoder, SSEDecoder):
            ended = len(decoder.stray)
            left = decoder.end()  # the last line may be an error too, though nothing ends it
            yield from self._unframed(decoder, ended)
            if left:
                yield (_unfinished_block(left, at),)
                if error := error_in(object_of(left), left):
                    yield (error,)
        elif decoder is not None and (left := decoder.left):
            yield (_cut_short(decoder.LEFT, left, at),)
        if in_one_piece := None if left else self._in_one_piece():
            yield (in_one_piece,)
        elif of_another := self._of_another_format():
            yield (of_another,)
        if ending == "eof" and not left and self._reader is not None:
            yield self._reader.end()
        if isinstance(decoder, SSEDecoder):
            yield from self._without_data(decoder)
            yield from self._misnamed(decoder)
        if self.frames == 0:
            yield from self._nothing_read()
        elif self._reader is not None and (missing := self._reader.unfinished()):
            yield (_incomplete(missing, self._reader.marker, at),)

    def _in_one_piece(self) -> Problem | None:
        """A file that is one JSON object: a whole answer is no stream, also where it reads as one.

        An object over several lines is no line of a file that has one event a line.
        """
        lines = isinstance(self._decoder, JSONLinesDecoder)
        frame = self._only if lines and self.wire is not None else None
        if frame is None or error_in(payload := object_of(frame) or {}, frame):
            return None
        wire = whole_in(DIALECTS, payload) or (self.wire if b"\n" in frame.data else "")
        return (
            Problem("not-a-stream", "error", whole_said(wire, frame), frame.number)
            if wire
            else None
        )

    def _of_another_format(self) -> Problem | None:
        """Something else was read than the caller said it is: JSON of any kind, or another stream.

        Of an event stream it must be known what else it is: a new event may come before the others.
        """
        frame = self._foreign
        if frame is None or self.completed:
            return None
        looks = recognised(DIALECTS, frame)
        if isinstance(self._decoder, SSEDecoder) and not looks:
            return None
        hint = f"; it looks like {looks}" if looks else ""
        said = f"nothing here is in the wire format {self.wire}: the first frame is"
        return Problem("unknown-wire", "error", f"{said} {clip(frame.data)}{hint}", frame.number)

    def _unframed(self, decoder: SSEDecoder, ended: int) -> Iterator[tuple[Event, ...]]:
        """Lines that are no field of an event: an error that a gateway wrote between them?

        Of these, `ended` have a line end; one that has none may just be a field cut short.
        """
        if not decoder.stray or not (decoder.fields or self.frames):
            return
        lines = [line for _, line in decoder.stray]
        for text in (b"\n".join(lines), *lines):  # over several lines, or in one
            at = decoder.stray[0][0]
            frame = Frame(self.frames, "", text, at, at + len(text))
            found = (error_in(each, frame) for each in objects_of(frame))
            if error := next(filter(None, found), None):
                self._error_between = True
                yield (error,)
                break
        if ended and not self._is_none(decoder):
            at, shown = decoder.stray[0][0], clip(lines[0])
            said = f"{ended} lines are no field of an event stream; the first: {shown} (byte {at})"
            yield (Problem("unframed", "warning", said, self.frames),)

    def _is_none(self, decoder: SSEDecoder) -> bool:
        """Whether it is no event stream at all: by chance, a few lines of anything look like it."""
        few = decoder.fields < len(decoder.stray)
        return self.frames == 0 and few and not self._error_between

    def _misnamed(self, decoder: SSEDecoder) -> Iterator[tuple[Event, ...]]:
        """A line that is no field and holds a JSON object: an event that lost its field's name?"""
        for at, line in decoder.stray if self.completed and not self._error_between else ():
            if line.partition(b":")[2].lstrip()[:1] == b"{" or line.lstrip()[:1] == b"{":
                text = f"the line {clip(line)} is no field (byte {at}); an event may be lost"
                yield (Ambiguous(text, self.frames),)
                return

    def _without_data(self, decoder: SSEDecoder) -> Iterator[tuple[Event, ...]]:
        """Named events that came without data dispatch nothing; one that matters may be lost."""
        for at, name in decoder.without_data:
            if name != "ping":
                text = f"an event {name[:80]!r} without data dispatched nothing (byte {at})"
                yield (Problem("no-data", "warning", text, self.frames),)
                if self.completed:
                    yield (Ambiguous(f"{text}; a part may be lost", self.frames),)
                return

    def _nothing_read(self) -> Iterator[tuple[Event, ...]]:
        decoder = self._decoder
        if self.bytes == 0:
            yield (Problem("empty", "warning", "no bytes came: no event, no answer", 0),)
        elif isinstance(decoder, SSEDecoder) and self._is_none(decoder):
            first = next((line for _, line in decoder.stray if line.strip()), b"").lstrip()
            if any(field.startswith(first) for field in FIELDS):
                yield (Problem("empty", "warning", "the stream ended inside its first word", 0),)
                return
            looks = _LOOKS_LIKE.get(first[:1], "")
            what = f"it looks like {looks} and" if looks else "it"
            text = f"not an event stream: {what} begins with {clip(first)}"
            yield (Problem("not-a-stream", "error", text, 0),)
        elif isinstance(decoder, JSONArrayDecoder) and not decoder.left:
            yield (Problem("not-a-stream", "error", "an empty JSON array: no event at all", 0),)
        else:
            yield (Problem("empty", "warning", "the stream ended before its first event", 0),)


def _unfinished_block(left: Frame, at: int) -> Problem:
    name = f"event {left.event!r} with " if left.event else ""
    text = (
        "the last block is unfinished (no blank line), so it was not dispatched; it would have been"
    )
    said = f"{text} {name}{clip(left.data)} (byte {left.start})"
    return Problem("unfinished-block", "warning", said, at)


def _cut_short(what: str, left: Frame, at: int) -> Problem:
    said = f"{what}: {clip(left.data)} (byte {left.start})"
    return Problem("unfinished-block", "warning", said, at)


def _incomplete(missing: str, marker: str, at: int) -> Problem:
    closed = (
        "; the content looks closed, but only the marker proves it" if missing == marker else ""
    )
    return Problem("incomplete", "warning", f"the stream ended without {missing}{closed}", at)
