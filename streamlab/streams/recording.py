"""A recording: the chunks of one stream, its wire format, and how it ended.

Three forms on disk, told apart by their content: raw bytes (`.sse`, `.txt`), one JSON event a line
(`.jsonl`), and our own timed recording (`.stream.jsonl`), the only one that keeps what the network
did: which bytes came in one read, when, and how the connection stopped. Raw files have no times
and are taken to end cleanly.

`open_recording` reads a file piece by piece, so that a file larger than memory can be judged;
`read` gives the whole value. Read next: `faults.py`, which breaks one on purpose.
"""

from __future__ import annotations

import base64
import binascii
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from streamlab.errors import UsageError, WireError
from streamlab.wire.events import ENDINGS, WIRES
from streamlab.wire.jsonl import JSONLinesDecoder, is_json_lines
from streamlab.wire.payload import NotJSON, parse
from streamlab.wire.sse import SSEDecoder

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
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self.name = name
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
        except OSError as why:
            raise WireError(_reason(why), self.name) from None

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
            yield Chunk(None, piece)
            piece = self._stream.read(READ_SIZE)

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
            item = _json_line(line, where)
            t = _time(item, last, where)
            last = t if t is not None else last
            if _one_of_three(item, where) == "end":
                self.ending, self.end_t, ended = _ending(item["end"], where), t, True
            else:
                yield Chunk(t, _payload(item, where))
        if not ended:
            self.truncated = f"{self.name}:{number}: the recording stops without its end line"
            self.ending, self.end_t = "cut", None


def open_recording(path: str | os.PathLike[str]) -> RecordingFile:
    """Open a recording of any form; `-` is standard input.

    Raises `WireError`, naming the file, where it cannot be read.
    """
    name = os.fspath(path)
    try:
        if name == "-":
            return RecordingFile(_standard_input(), "-")
        stream = open(name, "rb")  # noqa: SIM115 (RecordingFile closes it)
    except (OSError, ValueError) as why:
        raise WireError(_reason(why), name) from None
    try:
        return RecordingFile(stream, name)
    except (OSError, WireError) as why:
        stream.close()
        raise why if isinstance(why, WireError) else WireError(_reason(why), name) from None


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
    part = target.with_name(target.name + ".part")
    try:
        with open(part, "wb") as out:
            out.writelines(form(recording))
        part.replace(target)
    except OSError as why:
        raise UsageError(f"{target}: {_reason(why)}") from None
    finally:
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
    data, lines = recording.data, JSONLinesDecoder()
    lined = is_json_lines(data)
    frames = [*lines.feed(data), *lines.end()] if lined else SSEDecoder().feed(data)
    for frame in frames:
        try:
            parse(frame.data)
        except NotJSON:
            raise UsageError(
                f"frame {frame.number} is not JSON, so it has no place in a .jsonl; write .sse"
            ) from None
        yield frame.data.replace(b"\n", b" ") + b"\n"  # in JSON, a bare LF is only white space


#: Longest suffix first: `.stream.jsonl` also ends in `.jsonl`.
_FORMS = {
    ".stream.jsonl": _timed_form,
    ".jsonl": _event_lines_form,
    ".sse": _raw_form,
    ".txt": _raw_form,
}


def _line(item: dict[str, Any]) -> bytes:
    return msgspec.json.encode(item) + b"\n"


def _header(first: bytes, name: str) -> Header | None:
    """The header, if this is one of our own recordings; None for any other content."""
    if _MARK not in first or not first.lstrip(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return None
    where = f"{name}:1"
    item = _json_line(first.lstrip(b"\xef\xbb\xbf"), where)
    if "streamlab" not in item:
        return None
    if item["streamlab"] != 1:
        raise WireError(f"version {item['streamlab']!r} of the format; this reads version 1", where)
    wire = item.get("wire")
    if wire is not None and wire not in WIRES:
        raise WireError(f"wire {wire!r} is none of {', '.join(WIRES)}", where)
    text = {key: str(item.get(key) or "") for key in ("source", "model", "note")}
    return Header(wire, text["source"] or "recorded", text["model"], text["note"])


def _whole(line: bytes) -> bool:
    """Whether a last line without a newline is all there."""
    try:
        msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _json_line(line: bytes, where: str) -> dict[str, Any]:
    try:
        item = msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError) as why:
        raise WireError(f"not a line of JSON ({why})", where) from None
    if not isinstance(item, dict):
        raise WireError("not a JSON object", where)
    return item


def _time(item: dict[str, Any], last: float, where: str) -> float | None:
    t = item.get("t")
    if t is None:
        return None
    if isinstance(t, bool) or not isinstance(t, (int, float)) or not 0 <= t < MAX_SECONDS:
        raise WireError(f"t must be seconds since the request was sent, not {t!r}", where)
    if t < last:
        raise WireError(f"time runs backwards: {t} after {last}", where)
    return float(t)


def _ending(word: Any, where: str) -> str:
    if word not in ENDINGS:
        raise WireError(f"end {word!r} is none of {', '.join(ENDINGS)}", where)
    return str(word)


def _one_of_three(item: dict[str, Any], where: str) -> str:
    given = [key for key in ("data", "b64", "end") if item.get(key) is not None]
    if len(given) != 1 or not isinstance(item[given[0]], str):
        raise WireError('a line needs "data", "b64" or "end", one of the three, as text', where)
    return given[0]


def _payload(item: dict[str, Any], where: str) -> bytes:
    if item.get("data") is not None:
        return str(item["data"]).encode("utf-8")
    try:
        return base64.b64decode(item["b64"], validate=True)
    except (binascii.Error, ValueError) as why:
        raise WireError(f"b64 is not base64 ({why})", where) from None


def _standard_input() -> IO[bytes]:
    stream: IO[bytes] | None = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise WireError("there is no standard input", "-")
    return stream


def _reason(why: Exception) -> str:
    """The system's own words for it, without the errno and the name that it repeats."""
    return getattr(why, "strerror", None) or str(why)
