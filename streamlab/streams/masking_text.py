"""Find secrets in a text, whatever its escapes, and say which of its bytes they are.

A recording is JSON in which there is JSON (a tool's input), in which there may be JSON again. One
letter is `a`, `\\u0061` or `\\\\u0061` there. So that the same secret is the same in a delta and in
the snapshot that repeats it, a text is read flat: its escapes are resolved until none is left. What
is found there leads back to all bytes of the escapes that it came from.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from streamlab.streams.masking_kinds import KINDS, places

__all__ = ["Found", "Range", "Unescaped", "flat", "secrets_in", "unescaped"]

#: What was found: kind -> the secrets. How many there are is how many *different* ones.
Found = defaultdict[str, set[bytes]]

#: An escape of a JSON string; two that are the halves of one character are one.
_ESCAPE = re.compile(
    rb"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    rb'|u([0-9a-fA-F]{4})|(["\\/bfnrt]))'
)

_SHORT = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}

#: Never masked: the words of JSON and of lines stay where they are.
_KEPT = re.compile(rb'[\s"\\]++')

Range = tuple[int, int]


class Unescaped(NamedTuple):
    """A text without one level of escapes, and where each of its bytes was."""

    text: bytes
    at: array[int]  #: where in `text` a run begins; the runs are in turns plain and one escape
    source: array[int]  #: where that run was

    def spread(self, start: int, end: int) -> Iterator[Range]:
        """The ranges of the source that some bytes of the text come from: an escape is whole."""
        run = bisect_right(self.at, start) - 1
        while start < end:
            upto, source = min(self.at[run + 1], end), self.source[run]
            if run % 2:
                yield source, self.source[run + 1]
            elif start < upto:
                yield source + start - self.at[run], source + upto - self.at[run]
            start, run = upto, run + 1


def unescaped(text: bytes) -> Unescaped:
    """Read the inside of a JSON string; what is no escape stays.

    >>> unescaped(rb"a\\nb").text
    b'a\\nb'
    """
    out, at, source = list[bytes](), array("q", [0]), array("q", [0])
    size, done = 0, 0
    for found in _ESCAPE.finditer(text):
        start, end = found.span()
        means = _character(found)
        out += (text[done:start], means)
        size += start - done
        at.append(size)
        source.append(start)
        size += len(means)
        at.append(size)
        source.append(end)
        done = end
    out.append(text[done:])
    at.append(size + len(text) - done)
    source.append(len(text))
    return Unescaped(b"".join(out), at, source)


def _character(escape: re.Match[bytes]) -> bytes:
    high, low, code, short = escape.groups()
    if short:
        return _SHORT.get(short, short)
    units = b"".join(int(half, 16).to_bytes(2, "little") for half in (high, low, code) if half)
    return units.decode("utf-16-le", "surrogatepass").encode("utf-8", "surrogatepass")


def flat(text: bytes) -> list[Unescaped]:
    """Read a text without its escapes, level by level, until none is left."""
    levels = list[Unescaped]()
    while (level := unescaped(text)).text != text:
        levels.append(level)
        text = level.text
    return levels


def secrets_in(text: bytes, found: Found) -> list[Range]:
    """The ranges of a text that are secrets, in order; `found` learns which they are."""
    levels = flat(text)
    plain = levels[-1].text if levels else text
    rest = bytearray(plain)
    for kind in KINDS:
        for start, end in list(places(kind, rest)):
            found[kind.name].add(bytes(rest[start:end]))
            at = start
            for kept in _KEPT.finditer(bytes(rest[start:end])):
                rest[at : start + kept.start()] = b"*" * (start + kept.start() - at)
                at = start + kept.end()
            rest[at:end] = b"*" * (end - at)
    ranges = _changed(plain, rest)
    for level in reversed(levels):
        ranges = [each for start, end in ranges for each in level.spread(start, end)]
    return ranges


#: Bytes that are compared at once, to find where a text was changed.
_BLOCK = 4096


def _changed(before: bytes, after: bytearray) -> list[tuple[int, int]]:
    """The ranges in which two texts of one length differ."""
    out: list[tuple[int, int]] = []
    for base in range(0, len(before), _BLOCK):
        old, new = before[base : base + _BLOCK], after[base : base + _BLOCK]
        if old == new:
            continue
        for n, (a, b) in enumerate(zip(old, new, strict=True)):
            if a != b:
                if out and out[-1][1] == base + n:
                    out[-1] = (out[-1][0], base + n + 1)
                else:
                    out.append((base + n, base + n + 1))
    return out
