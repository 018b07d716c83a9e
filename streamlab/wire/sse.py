"""Bytes in, frames out: the event-stream format of the WHATWG HTML standard, section 9.2.6.

Sans-IO: nothing here reads a socket or a clock. A network read is not an event, so the decoder
keeps what a read leaves unfinished, and *any* split of the same bytes gives the same frames with
the same byte ranges. It knows lines and fields, never JSON and never a vendor.

Four traps that other decoders fall into, each a test in `tests/test_sse.py`:
only CR, LF and CRLF end a line (U+2028 is data); one byte order mark is dropped, once; an `id`
alone dispatches nothing; `retry` is ASCII digits, not whatever `int()` accepts.

Read next: `claude.py`, which gives each frame its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import accumulate, groupby
from typing import Any, NamedTuple

import msgspec

__all__ = ["BOM", "FIELDS", "MAX_FRAME", "Blocks", "Frame", "Overrun", "SSEDecoder"]

#: Largest block, in bytes, before the decoder gives up. A preview cannot grow for ever; the
#: largest honest blocks are base64 images of a few MB.
MAX_FRAME = 16 * 1024 * 1024

BOM = b"\xef\xbb\xbf"

#: The names of the fields; a line with any other name is ignored.
FIELDS = (b"data", b"event", b"id", b"retry")

#: What some clients cannot read, though it is legal: a comment, a name, an id.
BESIDE_DATA = (b"", b"event", b"id")

#: Lines that are no field are ignored, but the first ones are kept, to say what they were.
MAX_STRAY, MAX_STRAY_LINE = 100, 64 * 1024

#: `event` lines that a decoder remembers; a stream has a dozen, a hostile one no more than this.
MAX_NAMES, MAX_NAME = 64, 256

#: Nearly every block is an `event` line or none, one `data` line, a blank line. These find such
#: blocks, as (event line, data, b""), and any other line, as (b"", b"", line); the second one where
#: the lines of a block end in CRLF.
_with_lf = re.compile(rb"(event: [^\n]*\n|)data: ([^\n]*)\n\n|([^\n]*\n)").findall
_with_crlf = re.compile(rb"(event: [^\n]*\r\n|)data: ([^\n]*)\r\n\r\n|([^\n]*\n)").findall

_lone_cr = re.compile(rb"\r(?!\n)").search


#: What a pattern finds.
Found = tuple[bytes, bytes, bytes]

#: Blocks that are sooner frames than they are a row.
FEW = 4


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One dispatched block. `data` is bytes: UTF-8 is decoded once, where it gets its meaning.

    `start` and `end` are offsets into the stream, in bytes: from the first byte of the block to
    just after the CR or LF that closes its blank line (the LF of a CRLF belongs to nobody, so that
    a read that ends between the two changes nothing).
    """

    number: int  #: 1 for the first frame of the stream
    event: str  #: "" where the block names none (the standard reads that as "message")
    data: bytes  #: the data lines, joined by LF
    start: int
    end: int
    id: str = ""  #: the last event id, which outlives its block
    retry: int | None = None  #: milliseconds, where this block sets it

    @property
    def text(self) -> str:
        """The data as text; invalid UTF-8 becomes U+FFFD, as the standard says."""
        return self.data.decode("utf-8", "replace")


class Overrun(msgspec.Struct, frozen=True):
    """The block that grew past the bound: the offset of its first byte, and the bound in bytes."""

    start: int
    limit: int


class Blocks(NamedTuple):
    """Usual blocks of one event name, one after the other, that are not frames yet."""

    number: int  #: of the first one
    event: str
    data: tuple[bytes, ...]  #: of each
    starts: list[int]  #: of each, its offset; and, last, where they are over
    slack: int  #: bytes between a block's end and the next one's start
    id: str

    def frame(self, place: int) -> Frame:
        """One of them, as a frame."""
        start, end = self.starts[place], self.starts[place + 1] - self.slack
        return Frame(self.number + place, self.event, self.data[place], start, end, self.id)

    def ends(self, first: int, last: int) -> list[int]:
        """The offsets just after some of them."""
        ends = self.starts[first + 1 : last + 1]
        return [end - self.slack for end in ends] if self.slack else ends


class SSEDecoder:
    """Decode one stream.

    >>> SSEDecoder().feed(b"data: hi\\n\\n")[0].data
    b'hi'
    """

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self.max_frame = max_frame
        self.last_event_id = ""
        self.retry: int | None = None
        self.fields = 0  #: lines that are legal fields or comments: was it an event stream at all?
        self.overrun: Overrun | None = None
        self.stray: list[tuple[int, bytes]] = []  #: lines that are no field: (offset, line)
        self.without_data: list[tuple[int, str]] = []  #: blocks with only a name: (offset, name)
        self.beside_data: int | None = None  #: offset of the first comment, event name or id
        self._names = {b"": ""}  # whole `event` lines -> the name
        self._number = 0
        self._at = 0  # offset of the next byte that no line has taken
        self._line: list[bytes] = []  # the unfinished line, in the pieces that it came in
        self._line_size = 0
        self._after_cr = False  # an LF that comes now belongs to the CR before it
        self._head: bytes | None = b""  # the first bytes, until it is known whether they are a mark
        self._start_block(0)

    def _start_block(self, at: int) -> None:
        self._start = at
        self._event = b""
        self._data: list[bytes] = []
        self._block_retry: int | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take the bytes of one read; return the frames that they complete."""
        frames: list[Frame] = []
        self._read_lines(self._whole_lines(chunk), self._take_blocks, frames)
        return frames

    def feed_blocks(self, chunk: bytes) -> list[Frame | Blocks]:
        """The same, but usual blocks in a row are given as they are, before they are frames."""
        found: list[Frame | Blocks] = []
        self._read_lines(self._whole_lines(chunk), self._take_rows, found)
        return found

    def _whole_lines(self, chunk: bytes) -> bytes:
        """What can be read of what came: with what was kept before, or b"" where no line ends."""
        if self.overrun or not chunk:
            return b""
        if self._head is not None:
            chunk = self._drop_bom(chunk)
        elif self._after_cr:
            chunk = self._drop_lf(chunk)
        if not self._line:
            return chunk
        if b"\n" not in chunk and b"\r" not in chunk:  # nothing ends here: do not join, only keep
            self._keep(chunk)
            return b""
        text = b"".join([*self._line, chunk])
        self._line, self._line_size = [], 0
        return text

    def end(self) -> Frame | None:
        """Say what the unfinished last block would have been; it is never dispatched."""
        line = (self._head or b"") + b"".join(self._line)
        if line and not self.overrun:
            self._take_field(line, self._at)
        if self.overrun or not (self._data or self._event):
            return None
        return self._frame(self._number + 1, self._at + len(line))

    def _drop_bom(self, chunk: bytes) -> bytes:
        """Hold the first bytes back until they are a byte order mark, or can no longer be one."""
        head = (self._head or b"") + chunk
        if len(head) < len(BOM) and BOM.startswith(head):
            self._head = head
            return b""
        self._head = None
        if not head.startswith(BOM):
            return head
        self._at = self._start = len(BOM)
        return head[len(BOM) :]

    def _drop_lf(self, chunk: bytes) -> bytes:
        """The last read ended in CR: an LF now is the second half of that line end."""
        self._after_cr = False
        if chunk[:1] != b"\n":
            return chunk
        if self._start == self._at:
            self._start += 1
        self._at += 1
        return chunk[1:]

    def _keep(self, piece: bytes) -> None:
        self._line.append(piece)
        self._line_size += len(piece)
        self._check_size(self._at + self._line_size)

    def _check_size(self, end: int) -> None:
        if end - self._start > self.max_frame:
            self.overrun = Overrun(self._start, self.max_frame)
            self._line, self._data, self._event = [], [], b""

    def _read_lines(self, text: bytes, take: Callable[..., None], frames: list[Any]) -> None:
        """Take every whole line, and keep what is left. Most streams have one kind of line end."""
        end = text.rfind(b"\n") + 1
        if b"\r" not in text:
            take(_with_lf(text, 0, end), 1, frames)
        elif not _lone_cr(text):
            take(_with_crlf(text, 0, end), 2, frames)
        else:
            end = max(end, text.rfind(b"\r") + 1)
            self._take_lines(text[:end].splitlines(keepends=True), frames)
            self._after_cr = text[-1:] == b"\r"
        if end < len(text) and not self.overrun:
            self._keep(text[end:])

    def _take_rows(self, found: list[Found], width: int, out: list[Any]) -> None:
        """Take what the pattern found, with usual blocks of one name as they stand in a row."""
        if not found:
            return
        heads, data, others = zip(*found, strict=True)
        start = 0
        for name, row in groupby(heads if not any(others) else map(_name_of, heads, others)):
            stop = start + len([*row])
            rows = data[start:stop]
            if name is None or len(rows) < FEW or not self._take_row(name, rows, width, out):
                self._take_blocks(found[start:stop], width, out)
            start = stop

    def _take_row(self, head: bytes, data: tuple[bytes, ...], width: int, out: list[Any]) -> bool:
        """Take usual blocks; none of them where one has begun before, or where one is too large."""
        beside = len(head) + len(b"data: ") + 2 * width
        sizes = [*map(len, data)]
        if self._start != self._at or max(sizes) + beside > self.max_frame:
            return False
        starts = [*accumulate(map(beside.__add__, sizes), initial=self._at)]
        name = self._names.get(head)
        name = self._remember(head, self._at) if name is None else name
        out.append(Blocks(self._number + 1, name, data, starts, width - 1, self.last_event_id))
        self._number += len(data)
        self.fields += len(data)
        self._start = self._at = starts[-1]
        return True

    def _take_blocks(self, found: list[Found], width: int, frames: list[Frame]) -> None:
        """Take what the pattern found, where a line end is so many bytes wide.

        A block of the usual shape is a frame at once. Whatever is not, or stands inside a block
        that has begun, goes line by line, with the same result.
        """
        names, limit, beside = self._names, self.max_frame, len(b"data: ") + width + 1
        at, number, last_id = self._at, self._number, self.last_event_id
        between = self._start == at
        for head, data, line in found:
            end = at + len(head) + len(data) + beside
            if line or not between or end - at > limit:
                self.fields += number - self._number
                self._at, self._number = at, number
                self._start = at if between else self._start
                newline = b"\r\n"[-width:]
                whole = (line,) if line else (head, b"data: " + data + newline, newline)
                self._take_lines(filter(None, whole), frames)
                at, number, last_id = self._at, self._number, self.last_event_id
                between = self._start == at
                if self.overrun:
                    return
                continue
            name = names.get(head)
            if name is None:
                name = self._remember(head, at)
            number += 1
            frames.append(Frame(number, name, data, at, end, last_id))
            at = end + width - 1
        self.fields += number - self._number
        self._at, self._number = at, number
        if between:
            self._start = at

    def _take_lines(self, lines: Iterable[bytes], frames: list[Frame]) -> None:
        for line in lines:
            body = line.rstrip(b"\r\n")
            if self.overrun:
                return
            start = self._at
            self._at += len(line)
            if not body:
                self._end_block(start + 1, self._at, frames)
                continue
            self._check_size(
                start + len(body) + 1
            )  # not with the LF of a CRLF, which may come later
            if not self.overrun:
                self._take_field(body, start)

    def _remember(self, line: bytes, at: int) -> str:
        """The name in an `event` line, kept with it: a stream has few, each a thousand times."""
        if self.beside_data is None:
            self.beside_data = at
        name = line[7:].rstrip(b"\r\n").decode("utf-8", "replace")
        if len(self._names) < MAX_NAMES and len(line) < MAX_NAME:
            self._names[line] = name
        return name

    def _end_block(self, end: int, next_start: int, frames: list[Frame]) -> None:
        self._check_size(end)
        if self.overrun:
            return
        if self._data:
            self._number += 1
            frames.append(self._frame(self._number, end))
        elif self._event and len(self.without_data) < MAX_STRAY:
            name = self._event[:MAX_NAME].decode("utf-8", "replace")
            self.without_data.append((self._start, name))
        self._start_block(next_start)

    def _frame(self, number: int, end: int) -> Frame:
        name = self._event.decode("utf-8", "replace")
        data = b"\n".join(self._data)
        return Frame(number, name, data, self._start, end, self.last_event_id, self._block_retry)

    def _take_field(self, line: bytes, at: int) -> None:
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if self.beside_data is None and name in BESIDE_DATA:
            self.beside_data = at
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value
        elif name == b"id":
            if b"\0" not in value:
                self.last_event_id = value.decode("utf-8", "replace")
        elif name == b"retry":
            if value.isdigit() and len(value) <= 18:
                self.retry = self._block_retry = int(value)
        elif name:  # not a comment: the standard ignores the line, a reader may want to know
            if len(self.stray) < MAX_STRAY:
                self.stray.append((at, line[:MAX_STRAY_LINE]))
            return
        self.fields += 1


def _name_of(head: bytes, other: bytes) -> bytes | None:
    """The event line of a usual block; None for any other line."""
    return None if other else head
