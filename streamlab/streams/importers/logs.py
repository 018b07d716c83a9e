"""Logs: the lines of an application, or of an SDK, that hold the lines of a stream.

A line is text (`log_text.py`) or JSON (`log_json.py`), also both in turn. A container's log may
have cut a long line in pieces, which are put together first. What the SDKs themselves log at DEBUG
(OPENAI_LOG, ANTHROPIC_LOG, httpx, httpcore) is requests, headers and statuses: no body. Such a log
is recognised, and the error says so.

Times count from the line that says a request was sent; where none does, from the first line of the
stream, and a note says so.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from streamlab.errors import WireError
from streamlab.streams.importers.exchange import Exchange
from streamlab.streams.importers.log_fields import RAW, Said, bytes_of
from streamlab.streams.importers.log_json import (
    first_of_export,
    has_time,
    in_json,
    is_event,
    of_export,
)
from streamlab.streams.importers.log_text import in_text, is_log_line, plain_text
from streamlab.streams.importers.loose import at, lines_of, text
from streamlab.streams.recording import Chunk
from streamlab.streams.timed_lines import MAX_SECONDS
from streamlab.wire.payload import NotJSON, parse

__all__ = ["looks", "read"]

#: Who writes logs about HTTP, and no bodies.
_SDKS = re.compile(rb"openai|anthropic|google_genai|httpx|httpcore|HTTP Request")

#: The line of the clients that says that the head of an answer came; its stream follows.
_ANSWERED = re.compile(rb"HTTP Request: ")

#: A container's line: "P" for a piece of one, "F" for the last.
_CRI = re.compile(rb"(\S{20,40} (?:stdout|stderr) )([FP])(?::\S*)? ?(.*)", re.S)

#: Bytes of a piece of a line in Docker's own log: 16,384, but half a character becomes U+FFFD.
DOCKER_PIECE = range(16_380, 16_400)

#: Pieces of a line, of 16 kB each.
MAX_PIECES = 10_000

_BOM = b"\xef\xbb\xbf"

NO_BODY = (
    "a log of requests, headers and statuses: SDKs log no body at DEBUG; record the answer itself, "
    "with `streamlab record`, curl -N or mitmproxy"
)


def looks(head: bytes) -> bool:
    """Whether a file that begins so is a log: one of its lines comes before any line of a stream.

    Whatever else an application says first is no matter.
    """
    head = head.removeprefix(_BOM)
    if (item := first_of_export(head)) is not None and _is_wrapper(item):
        return True
    logged = False
    for line in io.BytesIO(head):  # nearly always the first one tells
        line = plain_text(line.strip())
        if line[:1] == b"{":
            item = _parsed(line)
            if item is None or not (_is_wrapper(item) or in_json(item)):
                return logged and item is None  # the last line of a head may be a part of one
            logged = True
        elif RAW.match(line):
            return False  # a stream, and what is before it is skipped by its reader
        else:
            logged = logged or is_log_line(line)
    return logged


def _is_wrapper(item: dict[str, Any]) -> bool:
    return has_time(item) and not is_event(item)


def _parsed(line: bytes) -> Any:
    try:
        return parse(line)
    except NotJSON:
        return None


def read(data: bytes, name: str) -> Iterator[Exchange]:
    """The streams in a log."""
    data = data.removeprefix(_BOM)
    streams: dict[str, list[tuple[int, Said]]] = {}
    sent: dict[str, float | None] = {}
    round_, now, key, of_sdk = 0, None, "", False
    for number, line in _lines(data, name):
        said = in_json(line, key) if isinstance(line, dict) else _of_line(line, key)
        if said is None and isinstance(line, bytes) and _SDKS.search(line):
            of_sdk = of_sdk or is_log_line(line) or line.lstrip()[:1] == b"{"
            round_ += bool(_ANSWERED.search(line)) and str(round_) in streams
        if said is None:
            continue
        now = _forward(said.t, now)
        if said.sent:
            of_sdk = True
            round_ += str(round_) in streams
            sent[str(round_)] = now
            continue
        key = said.key or key
        kept = msgspec.structs.replace(said, t=now if said.t is not None else None)
        streams.setdefault(said.stream or str(round_), []).append((number, kept))
    if of_sdk and not streams and not re.search(rb"^(?:data|event):", data, re.M):
        raise WireError(NO_BODY, name)
    for of, lines in streams.items():
        if kept_lines := _as_read(lines):
            yield _exchange(kept_lines, sent.get(of))


def _lines(data: bytes, name: str) -> Iterator[tuple[int, Any]]:
    """The lines with their numbers, or the objects of an export."""
    if first_of_export(data[:65_536]) is not None:
        return enumerate(of_export(data, name), 1)
    return _joined(lines_of(data))


def _of_line(line: bytes, key: str) -> Said | None:
    line = plain_text(line)
    if line.lstrip()[:1] == b"{":
        return in_json(line, key)
    return in_text(line, lambda rest: in_json(rest, key))


def _joined(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Any]]:
    """The same lines; one that a container's log has in pieces comes whole, with the last."""
    held: list[bytes] = []
    for number, line in lines:
        front, piece, over = _piece(line)
        if not over and len(held) < MAX_PIECES:
            held.append(piece)
            continue
        if held:
            line = front + b"".join([*held, piece])
            held.clear()
        yield number, line


def _piece(line: bytes) -> tuple[bytes, bytes, bool]:
    """What of a line comes before its piece of a longer one, the piece, and whether it is the last.

    Of Docker's JSON the text alone is put together: a log's line with its time in front.
    """
    if found := _CRI.fullmatch(line.rstrip(b"\r")):
        return found[1] + b"F ", found[3], found[2] == b"F"
    if not line.startswith(b'{"log":'):
        return b"", line, True
    item = _parsed(line)
    said, time = (bytes_of(text(at(item, key))) for key in ("log", "time"))
    over = said.endswith(b"\n") or len(said) not in DOCKER_PIECE
    return time[:80] + b" F ", said.strip(b"\n"), over


def _forward(t: float | None, now: float | None) -> float | None:
    """The clock of a log, which goes on where a line has none, and never runs backwards."""
    if t is None or now is None:
        return now if t is None else t
    if t < 86_400 and now - t > 43_200:  # a time of day, after midnight
        t += 86_400 * ((now - t) // 86_400 + 1)
    return max(t, now)


def _as_read(lines: list[tuple[int, Said]]) -> list[tuple[int, Said]]:
    """The lines of a stream; or, where its texts end amid JSON, the reads of its connection."""
    raw = [said for _, said in lines if said.raw]
    blank = any(b"\n\n" in said.data or b"\r\n\r\n" in said.data for said in raw)
    if blank and any(_cut(said.data) for said in raw if not said.rest):
        return [(number, msgspec.structs.replace(said, raw=False)) for number, said in lines]
    return [(number, said) for number, said in lines if not said.rest]


def _cut(text: bytes) -> bool:
    """Whether a text ends amid the JSON of its last line."""
    last = text[text.rfind(b"\n") + 1 :]
    return last.startswith((b"data: {", b"data:{")) and _parsed(last[5:]) is None


def _exchange(lines: list[tuple[int, Said]], sent: float | None) -> Exchange:
    """A stream; a small number in JSON is seconds since its request, everything else a date."""
    first = lines[0][1].t
    since = lines[0][1].in_json and first is not None and first < 86_400 and sent is None
    start = sent if sent is not None else 0.0 if since else first
    told = sent is not None or first is None or since
    sse = any(said.is_sse or said.name for _, said in lines)
    chunks = tuple(Chunk(_since(said.t, start), said.in_form(sse)) for _, said in lines)
    return Exchange(
        f"line {lines[0][0]}",
        at=start if start is not None and start >= 1e9 else None,
        headers=(("content-type", "text/event-stream" if sse else "application/jsonl"),),
        chunks=chunks,
        end_t=chunks[-1].t,
        note="" if told else "times count from the first line: the log says no request",
    )


def _since(t: float | None, start: float | None) -> float | None:
    if t is None or start is None:
        return None
    return min(max(0.0, round(t - start, 6)), MAX_SECONDS / 2)
