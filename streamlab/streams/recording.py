"""A recording: the chunks of one stream, its wire format, and how it ended.

Four forms on disk, told apart by their content: raw bytes (`.sse`, `.txt`), one JSON event a line
(`.jsonl`), one JSON array of events (read, never written), and our own timed recording
(`.stream.jsonl`), the only one that keeps what the network did: which bytes came in one read, when,
and how the connection stopped. The others have no times and are taken to end cleanly.

`open_recording` reads a file piece by piece, so that a file larger than memory can be judged;
`read` gives the whole value. Read next: `faults.py`, which breaks one on purpose.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import msgspec

from streamlab.errors import UsageError, WireError
from streamlab.streams.last_words import MAX_LAST_WORDS, without_last_words
from streamlab.wire.events import ENDINGS
from streamlab.wire.forms import frames_of
from streamlab.wire.payload import NotJSON, parse
from streamlab.wire.reader import WIRES

__all__ = ["WIRES", "Chunk", "Recording", "RecordingFile", "open_recording", "read", "write"]

#: Bytes a read takes from a file that has no chunks of its own.
READ_SIZE = 64 * 1024

#: Longest line of a timed recording, in bytes; one chunk of a real network is far smaller.
MAX_LINE = 64 * 1024 * 1024

#: Seconds that a time in a recording stays below: three hundred years.
MAX_SECONDS = 1e10

#: What the first line of a timed recording holds.
_MARK = b'"streamlab"'


class Chunk(NamedTuple):
    """The bytes of one network read, and when it came: seconds since the request was sent."""

    t: float | None
    data: bytes


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


class Header(msgspec.Struct, frozen=True):
    """What the first line of a timed recording says about all the others."""

    wire: str | None = None
    source: str = "recorded"
    model: str = ""
    note: str = ""


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
        if _MARK in first and not first.endswith(b"\n"):  # a long note
            first += stream.readline(MAX_LINE)
        header = _header(first, name)
        self.timed = header is not None
        self.header = header or Header()
        self._first = b"" if self.timed else first

    def __iter__(self) -> Iterator[Chunk]:
        try:
            yield from self._timed_chunks() if self.timed else self._raw_chunks()
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

    def _raw_chunks(self) -> Iterator[Chunk]:
        # The first line was read to tell the form; it is no chunk of its own.
        piece = self._first + self._stream.read(max(0, READ_SIZE - len(self._first)))
        while piece:
            following = self._stream.read(READ_SIZE)
            if len(following) < MAX_LAST_WORDS:  # the last piece, and curl's words may begin in it
                piece, following = piece + following, b""
                piece, self.ending = without_last_words(piece)
            if piece:
                yield Chunk(None, piece)
            piece = following

    def _timed_chunks(self) -> Iterator[Chunk]:
        number, ended, last = 1, False, 0.0
        while line := self._stream.readline(MAX_LINE):
            number += 1
            where = f"{self.name}:{number}"
            if not line.strip():
                continue
            if ended:
                raise WireError("a line after the end line", where)
            if len(line) >= MAX_LINE:
                raise WireError(f"a line of more than {MAX_LINE} bytes", where)
            if not line.endswith(b"\n") and not _whole(line):
                break
            item = _fields(line, _Line, where)
            t = _time(item.t, last, where)
            last = t if t is not None else last
            form, text = _one_of_three(item, where)
            if form == "end":
                self.ending, self.end_t, ended = _ending(text, where), t, True
            else:
                yield Chunk(t, _payload(form, text, where))
        if not ended:
            self.truncated = f"{self.name}:{number}: the recording stops without its end line"
            self.ending, self.end_t = "cut", None


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


def header_line(wire: str | None, source: str, model: str = "", note: str = "") -> bytes:
    """The first line of a timed recording."""
    return _line({"streamlab": 1, "wire": wire, "source": source, "model": model, "note": note})


def chunk_line(chunk: Chunk) -> bytes:
    """One chunk as a line; base64 where its bytes are not UTF-8 by themselves."""
    try:
        return _line({"t": chunk.t, "data": chunk.data.decode("utf-8")})
    except UnicodeDecodeError:
        return _line({"t": chunk.t, "b64": base64.b64encode(chunk.data).decode("ascii")})


def end_line(t: float | None, ending: str) -> bytes:
    """The last line of a timed recording."""
    return _line({"t": t, "end": ending})


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


def _line(item: dict[str, Any]) -> bytes:
    return msgspec.json.encode(item) + b"\n"


#: Bytes of JSON that a field may have to be built, unless it is text: longer ones are only skipped.
_SHORT = 1000

_NULL = msgspec.Raw(b"null")


class _First(msgspec.Struct):
    """The fields of a header that mean something here, not built yet; all others are skipped."""

    streamlab: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    wire: msgspec.Raw = _NULL
    source: msgspec.Raw = _NULL
    model: msgspec.Raw = _NULL
    note: msgspec.Raw = _NULL


class _Line(msgspec.Struct):
    """The same of any other line."""

    t: msgspec.Raw = _NULL
    data: msgspec.Raw = _NULL
    b64: msgspec.Raw = _NULL
    end: msgspec.Raw = _NULL


_Fields = TypeVar("_Fields", _First, _Line)


def _header(first: bytes, name: str) -> Header | None:
    """The header, if this is one of our own recordings; None for any other content."""
    if _MARK not in first or not first.lstrip(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return None
    where = f"{name}:1"
    item = _fields(first.lstrip(b"\xef\xbb\xbf"), _First, where)
    if isinstance(item.streamlab, msgspec.UnsetType):
        return None
    version, wire = _value(item.streamlab, where), _value(item.wire, where)
    if version != 1:
        said = f"version {_quoted(version)} of the format; this reads version 1"
        raise WireError(said, where)
    if wire is not None and wire not in WIRES:
        raise WireError(f"wire {_quoted(wire)} is none of {', '.join(WIRES)}", where)
    source, model, note = (
        value if isinstance(value, str) else _quoted(value) if value else ""
        for value in (_value(raw, where) for raw in (item.source, item.model, item.note))
    )
    return Header(wire, source or "recorded", model, note)


def _whole(line: bytes) -> bool:
    """Whether a last line without a newline is all there."""
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _fields(line: bytes, form: type[_Fields], where: str) -> _Fields:
    """Find the fields of a line: what nobody asks for is skipped, however large."""
    try:
        return msgspec.json.decode(line, type=form)
    except msgspec.ValidationError:
        raise WireError("not a JSON object", where) from None
    except (msgspec.MsgspecError, RecursionError) as why:
        raise WireError(f"not a line of JSON ({why})", where) from None


def _value(raw: msgspec.Raw, where: str) -> Any:
    """Build a field; one that is long, and no text, stays the bytes of its first characters."""
    view = memoryview(raw)
    if view[0] != ord('"') and len(view) > _SHORT:
        return bytes(view[:_SHORT])
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as why:
        raise WireError(f"not a line of JSON ({why})", where) from None


def _quoted(value: Any, most: int = 80) -> str:
    """A value for a message: its first characters."""
    if isinstance(value, bytes):  # see `_value`
        text = value.decode("utf-8", "replace")
    else:
        text = repr(value[:most] if isinstance(value, str) else value)
        text += "…" * (isinstance(value, str) and len(value) > most)
    return text if len(text) <= most else text[: most - 1] + "…"


def _time(raw: msgspec.Raw, last: float, where: str) -> float | None:
    t = _value(raw, where)
    if t is None:
        return None
    if isinstance(t, bool) or not isinstance(t, (int, float)) or not 0 <= t < MAX_SECONDS:
        raise WireError(f"t must be seconds since the request was sent, not {_quoted(t)}", where)
    if t < last:
        raise WireError(f"time runs backwards: {t} after {last}", where)
    return float(t)


def _ending(word: str, where: str) -> str:
    if word not in ENDINGS:
        raise WireError(f"end {_quoted(word)} is none of {', '.join(ENDINGS)}", where)
    return word


def _one_of_three(item: _Line, where: str) -> tuple[str, str]:
    """Which of the three a line has, and its text."""
    values = {key: _value(getattr(item, key), where) for key in ("data", "b64", "end")}
    given = [(key, value) for key, value in values.items() if value is not None]
    if len(given) != 1 or not isinstance(given[0][1], str):
        raise WireError('a line needs "data", "b64" or "end", one of the three, as text', where)
    return given[0]


def _payload(form: str, text: str, where: str) -> bytes:
    if form == "data":
        return text.encode("utf-8")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as why:
        raise WireError(f"b64 is not base64 ({why})", where) from None


def _standard_input() -> IO[bytes]:
    stream: IO[bytes] | None = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise WireError("there is no standard input", "-")
    return stream


def reason(why: Exception) -> str:
    """The system's own words for it, without the errno and the name that it repeats."""
    return getattr(why, "strerror", None) or str(why)
