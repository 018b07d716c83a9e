"""Naive readers of an event stream: written as people write them, each with one flaw.

A *reader* is a function from the reads (bytes, as the network delivered them) to the data of the
events. What these share is right, so each fails for one reason only: what it takes a read for, when
it decodes, or where it believes that a line or a block ends. Read next: `boundaries.py`, which
finds the places at which each of them fails.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "NAIVE",
    "Reader",
    "decode_each_read",
    "decode_each_read_replacing",
    "each_read_holds_whole_events",
    "each_read_is_an_event",
    "split_at_two_newlines",
    "splitlines_of_text",
    "tidy_line_ends_in_each_read",
    "until_a_blank_line",
]

Reader = Callable[[Sequence[bytes]], list[str]]


# --- What they share, and what is right about them ------------------------------------------------


def values(lines: Iterable[str]) -> list[str]:
    """What the `data` lines among some lines hold."""
    fields = (line.partition(":") for line in lines)
    return [value.removeprefix(" ") for name, _, value in fields if name == "data"]


def lines_of(text: str) -> list[str]:
    """The lines of a text; CR, LF and CRLF end one, and nothing else does."""
    return re.split(r"\r\n|\r|\n", text)


def data_of(block: str) -> list[str]:
    """The data of one event, given all the text of its block; nothing where it has none."""
    found = values(lines_of(block))
    return ["\n".join(found)] if found else []


def dispatched(lines: Iterable[str]) -> list[str]:
    """The data of every event in some lines: a blank line ends a block."""
    found: list[str] = []
    block: list[str] = []
    for line in lines:
        if line:
            block.append(line)
            continue
        if data := values(block):
            found.append("\n".join(data))
        block = []
    return found


# --- The readers ----------------------------------------------------------------------------------


def each_read_is_an_event(reads: Sequence[bytes]) -> list[str]:
    """One read is one event."""
    return [data for read in reads for data in data_of(read.decode("utf-8-sig"))]


def each_read_holds_whole_events(reads: Sequence[bytes]) -> list[str]:
    """One read holds one event or several, but whole ones."""
    texts = (read.decode("utf-8-sig") for read in reads)
    return [event for text in texts for event in dispatched(lines_of(text))]


def until_a_blank_line(reads: Sequence[bytes]) -> list[str]:
    """Keep the bytes until they end in a blank line: that is one event."""
    found, kept = [], b""
    for read in reads:
        kept += read
        if kept.endswith((b"\n\n", b"\r\n\r\n", b"\r\r")):
            found += data_of(kept.decode("utf-8-sig"))
            kept = b""
    return found


def decode_each_read(reads: Sequence[bytes]) -> list[str]:
    """Keep all the text, but decode each read by itself."""
    text = "".join(read.decode() for read in reads).removeprefix("\ufeff")
    return dispatched(lines_of(text))


def decode_each_read_replacing(reads: Sequence[bytes]) -> list[str]:
    """The same, with errors="replace", so that it never raises."""
    text = "".join(read.decode("utf-8", "replace") for read in reads)
    return dispatched(lines_of(text.removeprefix("\ufeff")))


def tidy_line_ends_in_each_read(reads: Sequence[bytes]) -> list[str]:
    """Decode in one go, but turn CRLF and CR into LF read by read."""
    texts = codecs.iterdecode(reads, "utf-8-sig")
    tidy = [text.replace("\r\n", "\n").replace("\r", "\n") for text in texts]
    return dispatched("".join(tidy).split("\n"))


def split_at_two_newlines(reads: Sequence[bytes]) -> list[str]:
    """Decode in one go, then split where two LFs stand."""
    text = "".join(codecs.iterdecode(reads, "utf-8-sig"))
    return [data for block in text.split("\n\n") for data in data_of(block)]


def splitlines_of_text(reads: Sequence[bytes]) -> list[str]:
    """Decode in one go, then let str.splitlines find the lines."""
    text = "".join(codecs.iterdecode(reads, "utf-8-sig"))
    return dispatched(text.splitlines())


#: The readers that people write, from the first one on.
NAIVE: tuple[Reader, ...] = (
    each_read_is_an_event,
    each_read_holds_whole_events,
    until_a_blank_line,
    decode_each_read,
    decode_each_read_replacing,
    tidy_line_ends_in_each_read,
    split_at_two_newlines,
    splitlines_of_text,
)
