"""Text from a stranger, made safe to print and honest to read.

A recording may hold anything: escape sequences that repaint a terminal or open a link, characters
that turn the reading direction round, invisible ones, half a character. `visible` shows each of
them as a sign of itself, so that what a person sees is what the bytes say.
"""

from __future__ import annotations

import unicodedata

__all__ = ["clipped", "counted", "seconds", "size", "visible"]

#: Signs for the two that occur in every honest text, and the joiners that emoji and scripts need.
SIGNS = {"\n": "⏎", "\t": "⇥", "\x7f": "␡", "\u200c": "\u200c", "\u200d": "\u200d"}

UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def visible(text: str) -> str:
    """The text in one line, every character that has no picture of its own replaced by a sign.

    >>> visible("a\\x1b[2J\\u202eb\\n")
    'a␛[2J⟨U+202E⟩b⏎'
    """
    return text if text.isprintable() else "".join(map(_sign, text))


def _sign(char: str) -> str:
    if char.isprintable():
        return char
    known = SIGNS.get(char)
    if known is not None:
        return known
    if char < " ":
        return chr(0x2400 + ord(char))
    return " " if unicodedata.category(char) == "Zs" else f"⟨U+{ord(char):04X}⟩"


def clipped(text: str, most: int) -> str:
    """The text as `visible` shows it, or its two ends, and how long it is.

    >>> clipped("a long way down", 9)
    'a long … own (15 characters)'
    """
    if len(text) <= most:
        return visible(text)
    tail = most // 3
    head, last = text[: most - tail], text[len(text) - tail :]
    return f"{visible(head)} … {visible(last)} ({len(text):,} characters)"


def size(count: int) -> str:
    """A number of bytes for a person.

    >>> size(1), size(2412), size(3_400_000)
    ('1 byte', '2,412 bytes', '3.4 MB')
    """
    if count < 100_000:
        return counted(count, "byte")
    unit, name = next((unit, name) for unit, name in UNITS if count >= unit)
    return f"{count / unit:.3g} {name}"


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "frame"), counted(1200, "frame")
    ('1 frame', '1,200 frames')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def seconds(value: float) -> str:
    """A time for a person.

    >>> seconds(0.0312), seconds(2.5), seconds(7260)
    ('31 ms', '2.5 s', '7,260 s')
    """
    if value < 0.1:
        return f"{value * 1000:.0f} ms"
    return f"{value:.3g} s" if value < 1000 else f"{value:,.0f} s"
