"""The lines of a timed recording: how each is written, and how a stranger's is read.

    {"streamlab": 1, "wire": "claude", "source": "recorded", "model": ..., "note": ...}
    {"t": 0.412, "data": "..."}      or "b64" where the bytes are not UTF-8
    {"t": 3.1, "end": "eof"}

`t` is seconds since the request was sent. What nobody asks for is skipped unread, however large.
Everything here raises `WireError`, with the file and the line. Read next: `recording.py`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import msgspec

from streamlab.errors import WireError
from streamlab.wire.events import ENDINGS
from streamlab.wire.reader import WIRES

__all__ = [
    "MARK",
    "MAX_LINE",
    "MAX_SECONDS",
    "Chunk",
    "End",
    "Header",
    "Reads",
    "Usual",
    "chunk_line",
    "chunk_or_end",
    "end_line",
    "header_line",
    "is_whole",
    "read_header",
    "reads_of",
    "usual_lines",
]

#: Longest line of a timed recording, in bytes; one chunk of a real network is far smaller.
MAX_LINE = 64 * 1024 * 1024

#: Seconds that a time in a recording stays below: three hundred years.
MAX_SECONDS = 1e10

#: What the first line of a timed recording holds.
MARK = b'"streamlab"'


class Chunk(NamedTuple):
    """The bytes of one network read, and when it came: seconds since the request was sent."""

    t: float | None
    data: bytes


class Reads(msgspec.Struct, frozen=True):
    """Several reads, one after the other: all that they brought as one."""

    data: bytes
    times: list[float | None]  #: of each: when it came
    ends: list[int]  #: of each: the offset in `data` just after its last byte

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> Reads:
        """Chunks as one."""
        pieces = [chunk.data for chunk in chunks]
        return cls(b"".join(pieces), [chunk.t for chunk in chunks], [*accumulate(map(len, pieces))])

    def after(self, number: int) -> Reads:
        """All but the first ones."""
        start = self.ends[number - 1] if number else 0
        ends = [end - start for end in self.ends[number:]] if start else self.ends[number:]
        return Reads(self.data[start:], self.times[number:], ends)

    def __iter__(self) -> Iterator[Chunk]:
        """Each read by itself."""
        start = 0
        for t, end in zip(self.times, self.ends, strict=True):
            yield Chunk(t, self.data[start:end])
            start = end


class End(NamedTuple):
    """How the connection stopped, one of `ENDINGS`, and when."""

    t: float | None
    ending: str


class Header(msgspec.Struct, frozen=True):
    """What the first line of a timed recording says about all the others."""

    wire: str | None = None
    source: str = "recorded"
    model: str = ""
    note: str = ""


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


def read_header(first: bytes, name: str) -> Header | None:
    """The header, if this is one of our own recordings; None for any other content."""
    if MARK not in first or not first.lstrip(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
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


def is_whole(line: bytes) -> bool:
    """Whether a last line without a newline is all there."""
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


class Usual(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Nearly every line: a time or null, and text."""

    t: float | None
    data: str


_decode_usual = msgspec.json.Decoder(Usual).decode


def usual_lines(lines: Iterator[bytes]) -> list[Usual]:
    """Take lines up to and with the first that is no usual one; what the usual ones say."""
    found: list[Usual] = []
    with suppress(msgspec.MsgspecError, RecursionError):
        found.extend(map(_decode_usual, lines))
    return found


def reads_of(lines: list[Usual], last: float) -> Reads | None:
    """Usual lines as reads, after one at `last`; None where a time in them cannot be."""
    times = [line.t for line in lines]
    known = [last, *(times if None not in times else [t for t in times if t is not None])]
    if known[-1] >= MAX_SECONDS or sorted(known) != known:
        return None
    texts = [line.data for line in lines]
    text = "".join(texts)
    data = text.encode()
    same = len(data) == len(text)
    return Reads(data, times, [*accumulate(len(t if same else t.encode()) for t in texts)])


def chunk_or_end(line: bytes, last: float, where: str) -> Chunk | End:
    """Any line after the first, where the one before it came at `last`."""
    item = _fields(line, _Line, where)
    t = _time(item.t, last, where)
    form, text = _one_of_three(item, where)
    return End(t, _ending(text, where)) if form == "end" else Chunk(t, _payload(form, text, where))


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
