"""A recording: the chunks of one stream, its wire format, and how it ended.

Four forms on disk, told apart by their content: raw bytes (`.sse`, `.txt`), one JSON event a line
(`.jsonl`), one JSON array of events (read, never written), and our own timed recording
(`.stream.jsonl`), the only one that keeps what the network did: which bytes came in one read, when,
and how the connection stopped. The others have no times and are taken to end cleanly.

`open_recording` reads a file piece by piece, so that a file larger than memory can be judged;
`read` gives the whole value. Read next: `faults.py`, which breaks one on purpose.
"""

from __future__ import annotations

import io
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from streamlab.errors import UsageError, WireError
from streamlab.streams.last_words import MAX_LAST_WORDS, without_last_words
from streamlab.streams.timed_lines import (
    MARK,
    MAX_LINE,
    Chunk,
    End,
    Header,
    Reads,
    chunk_line,
    chunk_or_end,
    end_line,
    header_line,
    is_whole,
    read_header,
    reads_of,
    usual_lines,
)
from streamlab.wire.events import ENDINGS
from streamlab.wire.forms import frames_of
from streamlab.wire.payload import NotJSON, parse
from streamlab.wire.reader import WIRES

__all__ = [
    "WIRES",
    "Chunk",
    "Reads",
    "Recording",
    "RecordingFile",
    "open_recording",
    "read",
    "write",
]

#: Bytes a read takes from a file that has no chunks of its own.
READ_SIZE = 64 * 1024


class Recording(msgspec.Struct, frozen=True):
    """One stream as a value."""

    chunks: tuple[Chunk, ...] = ()
    ending: str = "eof"
    wire: str | None = None  #: one of `WIRES`; None: recognise it from the content
    end_t: float | None = None  #: seconds since the request was sent
    source: str = "recorded"  #: "recorded" or "synthetic"
    model: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if self.ending not in ENDINGS:
            raise UsageError(f"ending {self.ending!r} is none of {', '.join(ENDINGS)}")
        if self.wire is not None and self.wire not in WIRES:
            raise UsageError(f"wire {self.wire!r} is none of {', '.join(WIRES)}")

    @property
    def data(self) -> bytes:
        """All bytes, as if one read had brought them."""
        return b"".join(chunk.data for chunk in self.chunks)

    @property
    def timed(self) -> bool:
        """Whether the chunks know when they came."""
        return any(chunk.t is not None for chunk in self.chunks) or self.end_t is not None

    @classmethod
    def from_bytes(cls, data: bytes, **fields: Any) -> Recording:
        """Make a recording of bytes that came as one read, at no known time."""
        return cls(chunks=(Chunk(None, data),) if data else (), **fields)


class RecordingFile:
    """A recording that is read piece by piece: iterate over it for its chunks, once.

    `ending` and `end_t` are known when the iteration is over. A timed recording that stops without
    its end line (its writer was killed, or is still writing) counts as cut, and `truncated` says
    where. Raises `WireError`, naming the file and the line, where one breaks its own format in any
    other way; the chunks before that have been given by then.

    Where the bytes come out of something else (a `.gz`), `short` says, once they are over, where
    that stopped short of its own end, or "".
    """

    def __init__(self, stream: IO[bytes], name: str, short: Callable[[], str] = str) -> None:
        self.name = name
        self._short = short
        self.header = Header()
        self.ending: str = "eof"
        self.end_t: float | None = None
        self.truncated = ""  #: where a timed recording stops short, if it does
        self._stream = stream
        first = stream.readline(READ_SIZE)
        if MARK in first and not first.endswith(b"\n"):  # a long note
            first += stream.readline(MAX_LINE)
        header = read_header(first, name)
        self.timed = header is not None
        self.header = header or Header()
        self._first = b"" if self.timed else first
        self._number, self._last = 1, 0.0  # of the last line, and its time
        self._end: End | None = None

    def __iter__(self) -> Iterator[Chunk]:
        for reads in self.reads():
            yield from reads

    def reads(self) -> Iterator[Reads]:
        """The chunks, as many at a time as come together: for who does not look at each."""
        try:
            yield from self._timed_reads() if self.timed else self._raw_reads()
            if where := self._short():
                self.truncated, self.ending, self.end_t = where, "cut", None
        except OSError as why:
            raise WireError(reason(why), self.name) from None

    def close(self) -> None:
        """Close the file (standard input stays open)."""
        if self.name != "-":
            self._stream.close()

    def __enter__(self) -> RecordingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _raw_reads(self) -> Iterator[Reads]:
        # The first line was read to tell the form; it is no chunk of its own.
        piece = self._first + self._stream.read(max(0, READ_SIZE - len(self._first)))
        while piece:
            following = self._stream.read(READ_SIZE)
            if len(following) < MAX_LAST_WORDS:  # the last piece, and curl's words may begin in it
                piece, following = piece + following, b""
                piece, self.ending = without_last_words(piece)
            if piece:
                yield Reads(piece, [None], [len(piece)])
            piece = following

    def _timed_reads(self) -> Iterator[Reads]:
        for lines in self._lines():
            first, rest = self._number, iter(lines)
            while (at := self._number - first) < len(lines):
                usual = usual_lines(rest)  # and with them, the line after the last one is taken
                reads = reads_of(usual, self._last) if usual and self._end is None else None
                other = lines[at : at + len(usual) + 1]
                if reads is not None:
                    yield reads
                    self._number += len(usual)
                    self._last = max([self._last, *(t for t in reads.times if t is not None)])
                    other = other[len(usual) :]
                for line in other:
                    if (chunk := self._long_way(line)) is not None:
                        yield Reads.of([chunk])
        if self._end is None:
            where = f"{self.name}:{self._number}"
            self.truncated = f"{where}: the recording stops without its end line"
            self._end = End(None, "cut")
        self.end_t, self.ending = self._end

    def _long_way(self, line: bytes) -> Chunk | None:
        """Any line: a chunk, or the end, or none."""
        self._number += 1
        where = f"{self.name}:{self._number}"
        if line.isspace():
            return None
        if self._end is not None:
            raise WireError("a line after the end line", where)
        if not line.endswith(b"\n") and not is_whole(line):  # the last one
            return None
        item = chunk_or_end(line, self._last, where)
        if isinstance(item, End):
            self._end = item
            return None
        self._last = self._last if item.t is None else item.t
        return item

    def _lines(self) -> Iterator[list[bytes]]:
        """The lines after the first, as many at a time as come together."""
        read1: Callable[[int], bytes] = getattr(self._stream, "read1", self._stream.read)
        held: list[bytes] = []  # the line that has no end yet, in pieces
        size = 0
        while piece := read1(READ_SIZE):
            if size + (piece.find(b"\n") + 1 or len(piece)) >= MAX_LINE:
                where = f"{self.name}:{self._number + 1}"
                raise WireError(f"a line of more than {MAX_LINE} bytes", where)
            end = piece.rfind(b"\n") + 1
            if end:
                whole = b"".join([*held, piece[:end]])
                held, size, piece = [], 0, piece[end:]
                yield io.BytesIO(whole).readlines()
            held.append(piece)
            size += len(piece)
        if size:
            yield [b"".join(held)]


def open_recording(path: str | os.PathLike[str]) -> RecordingFile:
    """Open a recording of any form; `-` is standard input.

    Raises `WireError`, naming the file, where it cannot be read.
    """
    name = os.fspath(path)
    stream = open_bytes(name)
    try:
        return RecordingFile(stream, name)
    except (OSError, WireError) as why:
        if name != "-":
            stream.close()
        raise why if isinstance(why, WireError) else WireError(reason(why), name) from None


def open_bytes(name: str) -> IO[bytes]:
    """Open a file, or standard input for `-`. Raises `WireError`, naming it, where that fails."""
    if name == "-":
        return _standard_input()
    try:
        return open(name, "rb")
    except (OSError, ValueError) as why:
        raise WireError(reason(why), name) from None


def read(path: str | os.PathLike[str]) -> Recording:
    """Read a whole recording; `-` is standard input."""
    with open_recording(path) as file:
        chunks = tuple(file)
        head = file.header
        note = "; ".join(filter(None, (head.note, file.truncated)))
        return Recording(chunks, file.ending, head.wire, file.end_t, head.source, head.model, note)


def write(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording in the form that its name asks for.

    `.stream.jsonl` keeps chunks, times and the ending; `.sse` and `.txt` keep the bytes alone;
    `.jsonl` keeps the data of each event. The file appears whole or not at all.
    """
    target = Path(path)
    form = next((write for suffix, write in _FORMS.items() if target.name.endswith(suffix)), None)
    if form is None:
        raise UsageError(f"{target}: the name must end in one of {', '.join(_FORMS)}")
    replace_file(target, form(recording))


def refuse_special(target: Path) -> None:
    """Raise `UsageError` where a file would take the place of a folder, a device or a pipe."""
    try:
        special = target.exists() and not target.is_file()
    except OSError as why:
        raise UsageError(f"{target}: {reason(why)}") from None
    if special:
        raise UsageError(f"{target}: exists and is not a regular file")


def replace_file(target: Path, pieces: Iterable[bytes]) -> None:
    """Write a file that appears whole or not at all, through a new one in the same folder.

    Its name is drawn and must not exist yet ("x"), so no other file is ever lost. Not `tempfile`:
    its files only their owner may read, whatever the umask says.
    """
    refuse_special(target)
    part: Path | None = None
    try:
        real = Path(os.path.realpath(target))  # a link stays one
        new = real.with_name(f".{secrets.token_hex(8)}.part")
        with open(new, "xb") as out:
            part = new
            out.writelines(pieces)
        part.replace(real)
    except (OSError, ValueError) as why:
        raise UsageError(f"{target}: {reason(why)}") from None
    finally:
        if part is not None:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _timed_form(recording: Recording) -> Iterable[bytes]:
    yield header_line(recording.wire, recording.source, recording.model, recording.note)
    yield from map(chunk_line, recording.chunks)
    yield end_line(recording.end_t, recording.ending)


def _raw_form(recording: Recording) -> Iterable[bytes]:
    return (chunk.data for chunk in recording.chunks)


def _event_lines_form(recording: Recording) -> Iterable[bytes]:
    for frame in frames_of(recording.data):
        try:
            parse(frame.data)
        except NotJSON:
            raise UsageError(
                f"frame {frame.number} is not JSON, so it has no place in a .jsonl; write .sse"
            ) from None
        # In JSON, a bare line end is only white space; within an array there may be some.
        yield frame.data.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


#: Longest suffix first: `.stream.jsonl` also ends in `.jsonl`.
_FORMS = {
    ".stream.jsonl": _timed_form,
    ".jsonl": _event_lines_form,
    ".sse": _raw_form,
    ".txt": _raw_form,
}


def _standard_input() -> IO[bytes]:
    stream: IO[bytes] | None = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise WireError("there is no standard input", "-")
    return stream


def reason(why: Exception) -> str:
    """The system's own words for it, without the errno and the name that it repeats."""
    return getattr(why, "strerror", None) or str(why)
