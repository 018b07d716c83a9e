"""A log's line of text: the time and the words in front, and what comes after them.

    2026-11-30 12:00:01,123 DEBUG data: {...}          an application's, in any of a dozen layouts
    2026-11-30T12:00:01.123456789Z stdout F data: ...  a container's, with the line after it
    web-1  | data: {...}                               the same without a time

Only what stands in front of the first piece of a stream is looked at: a date in a stream is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from streamlab.streams.importers.log_fields import RAW, SENT, Said, said_in
from streamlab.streams.importers.loose import moment

__all__ = ["in_text", "is_log_line", "plain_text"]

#: Bytes of a line in which a time may stand.
MAX_FRONT = 300

_COLOUR = re.compile(rb"\x1b\[[\d;]*m")

#: A date and a time; a time of day, maybe after a day without its year; or seconds since 1970.
_TIME = re.compile(
    rb"(?<!\w)(?:"
    rb"(?P<date>\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d))?)"
    rb"|(?P<clock>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
    rb"|(?P<epoch>\d{10}(?:\.\d{1,9}|\d{3})?)"
    rb")(?!\w)"
)

#: What else makes a line one of a log: a level, or the name of a container.
_LEVEL = re.compile(rb"\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR)[:\s\]]|[\w./-]{1,80} +\| ")


def plain_text(line: bytes) -> bytes:
    """A line without its colours."""
    return _COLOUR.sub(b"", line) if b"\x1b" in line else line


def is_log_line(line: bytes) -> bool:
    """Whether a line has in front what only a log has there."""
    front = line[:MAX_FRONT]
    return not RAW.match(front) and bool(_LEVEL.match(front) or _TIME.search(front))


def in_text(line: bytes, in_json: Callable[[bytes], Said | None]) -> Said | None:
    """What a line holds; `in_json` reads a JSON object that stands after the words in front."""
    if not is_log_line(line):
        return None
    found = said_in(line)
    brace = line.find(b"{", 0, MAX_FRONT)
    if brace > 0 and (found is None or brace < found[1]):
        said = in_json(line[brace:])
        if said is not None:
            return said if said.t is not None else _at(said, line[:brace])
    if found is not None:
        return _at(found[0], line[: found[1]])
    return _at(Said(sent=True), line) if SENT.search(line) else None


def _at(said: Said, front: bytes) -> Said:
    """The same with the first time that stands in front."""
    time = _TIME.search(front[:MAX_FRONT])
    return said if time is None else msgspec.structs.replace(said, t=_seconds(time))


def _seconds(time: re.Match[bytes]) -> float | None:
    if date := time["date"]:
        return moment(date.decode().replace("/", "-").replace(" +", "+").replace(" -", "-"))
    if clock := time["clock"]:
        hours, minutes, seconds = clock.replace(b",", b".").split(b":")
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    return moment(time["epoch"].decode())
