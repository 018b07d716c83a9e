"""Take values out of what another tool wrote: what is missing, or of another type, is None.

A capture's fields are hostile input like everything else; a reader asks for what it needs, and goes
on without what is not there.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from streamlab.errors import WireError
from streamlab.streams.timed_lines import MAX_SECONDS
from streamlab.wire.payload import NotJSON, parse

__all__ = [
    "MEMBERS",
    "at",
    "from_base64",
    "header_pairs",
    "iso",
    "items",
    "json_of",
    "lines_of",
    "moment",
    "number",
    "several",
    "text",
]

#: Brackets and commas in a capture's JSON; those inside its texts count too.
MAX_NESTED, MAX_VALUES = 4_000_000, 40_000_000

#: In JSON: the beginning of an object, with small members before the one that tells what it is.
MEMBERS = (
    rb'(?:\xef\xbb\xbf)?\s*\{\s*(?:"[^"\\]{0,80}"\s*:\s*'
    rb'(?:"[^"\\]{0,200}"|[\w.+-]{1,30}|\{[^{}]{0,400}\}|\[[^\[\]]{0,400}\])\s*,\s*){0,8}'
)

#: From so many of a unit since 1970 on, a number is a date in it (1 Sep 2001 in each): seconds,
#: milliseconds, microseconds, nanoseconds.
DATES = ((1e18, 1e9), (1e15, 1e6), (1e12, 1e3), (1e9, 1.0))


def at(value: Any, *path: str) -> Any:
    """What is under some keys, each in the one before; None where there is nothing.

    >>> at({"a": {"b": 1}}, "a", "b"), at({"a": []}, "a", "b")
    (1, None)
    """
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text(value: Any) -> str:
    """A text, also one of bytes; "" for anything else."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def number(value: Any) -> float | None:
    """A finite number, also as a text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if isfinite(found) else None


def items(value: Any) -> list[Any]:
    """A list; empty for anything else."""
    return value if isinstance(value, list) else []


def lines_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers, without their line feeds; one at a time, however many."""
    start, number = 0, 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += 1
        yield number, data[start:end]
        start = end + 1


def json_of(data: bytes, what: str, name: str) -> Any:
    """A capture that is one JSON value. Raises `WireError` where it is none, or one too large."""
    if data.count(b"{") + data.count(b"[") > MAX_NESTED or data.count(b",") > MAX_VALUES:
        raise WireError(f"{what} of more values than are read", name)
    try:
        return parse(data.removeprefix(b"\xef\xbb\xbf"))
    except NotJSON as why:
        raise WireError(f"{what} that is not JSON: {why}", name) from None


def several(head: bytes) -> bool:
    """Whether these are JSON lines: an object ends with the first line, and another one begins."""
    first, _, rest = head.partition(b"\n")
    try:
        return rest.lstrip()[:1] == b"{" and isinstance(parse(first), dict)
    except NotJSON:
        return False


def from_base64(value: str) -> bytes | None:
    """The bytes; None where this is not base64, of either alphabet. Line ends in it mean nothing.

    >>> from_base64("Pz8_"), from_base64("Pz8/\\nPw"), from_base64("?")
    (b'???', b'????', None)
    """
    plain = "".join(value.split()).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def moment(value: Any) -> float | None:
    """A date as seconds since 1970: ISO 8601, or a number of seconds or a thousandth part of it.

    >>> moment("1970-01-01T00:00:01Z"), moment(1.7e12), moment("now")
    (1.0, 1700000000.0, None)
    """
    found = number(value)
    if found is not None:
        return next((found / parts for least, parts in DATES if found >= least), None)
    try:
        date = datetime.fromisoformat(text(value).strip().replace(",", "."))
    except ValueError:
        return None
    seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    return seconds if 0 <= seconds < MAX_SECONDS else None


def iso(seconds: float | None) -> str:
    """A moment as ISO 8601 in UTC; "" where it is not known.

    >>> iso(1.25)
    '1970-01-01T00:00:01.250000+00:00'
    """
    if seconds is None or not 0 <= seconds < MAX_SECONDS:
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def header_pairs(headers: Any) -> tuple[tuple[str, str], ...]:
    """Headers with names in lower case; a list of values is one header each.

    Tools write them as an object, as a list of pairs, or as a list of names and values.
    """
    pairs = headers.items() if isinstance(headers, dict) else map(_pair, items(headers))
    return tuple(
        (text(name).lower(), text(value))
        for name, values in pairs
        for value in (values if isinstance(values, list) else [values])
    )


def _pair(header: Any) -> tuple[Any, Any]:
    if isinstance(header, list) and len(header) == 2:
        return header[0], header[1]
    return at(header, "name"), at(header, "value")
