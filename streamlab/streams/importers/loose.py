"""Take values out of what another tool wrote: what is missing, or of another type, is None.

A capture's fields are hostile input like everything else; a reader asks for what it needs, and goes
on without what is not there.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from streamlab.streams.timed_lines import MAX_SECONDS

__all__ = ["at", "from_base64", "header_pairs", "iso", "items", "moment", "number", "text"]

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


def from_base64(value: str) -> bytes | None:
    """The bytes; None where this is not base64. Line ends in it mean nothing."""
    try:
        return base64.b64decode("".join(value.split()), validate=True)
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


def header_pairs(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[str, str], ...]:
    """Headers with names in lower case; a list of values is one header each."""
    return tuple(
        (text(name).lower(), text(value))
        for name, values in pairs
        for value in (values if isinstance(values, list) else [values])
    )
