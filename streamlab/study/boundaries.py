"""Where a read may end: one short stream, cut at every place, and what readers make of it.

A *reader* is a function from the reads (bytes, as the network delivered them) to the data of the
events: one of the `naive_readers`, or ours, `sse_decoder`. `outcomes` runs a reader at every place
where the stream can be cut, and `failing` names the places at which it goes wrong. Nothing here is
random: the whole table is computed.

Read next: `../widgets/boundary.py`, which shows the table; `../wire/sse.py`, the decoder itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from streamlab.errors import UsageError
from streamlab.study.naive_readers import Reader
from streamlab.wire.sse import SSEDecoder

__all__ = [
    "DELIVERIES",
    "EXPECTED",
    "STREAM",
    "Outcome",
    "Unit",
    "deliver",
    "expected",
    "failing",
    "outcome",
    "outcomes",
    "sdk_reader",
    "shown",
    "sse_decoder",
    "units",
    "where",
]

#: Every rule has its place in it: a byte order mark, characters of 2, 3 and 4 bytes, a block
#: without data, a comment inside a block, data of two lines, and the three kinds of line end.
STREAM = (
    "\ufeffdata: Grüße 🐋\n\n"
    "event: ping\n\n"
    "data: first\r\n: still here\r\ndata: second\r\n\r\n"
    "data: up\u2028down\r\r"
).encode()

#: What `STREAM` says, written by hand: no reader is asked what is right.
EXPECTED = ("Grüße 🐋", "first\nsecond", "up\u2028down")


def sse_decoder(reads: Sequence[bytes]) -> list[str]:
    """Ours: keep the bytes of an unfinished line, decode what is whole."""
    decoder = SSEDecoder()
    return [frame.text for read in reads for frame in decoder.feed(read)]


def sdk_reader(reads: Sequence[bytes]) -> list[str]:
    """The Anthropic SDK's own decoder; pings are left out, as its client leaves them out."""
    from anthropic._streaming import SSEDecoder as TheirDecoder  # here: it takes two seconds

    found = TheirDecoder().iter_bytes(iter(reads))
    return [event.data for event in found if event.event != "ping"]


# --- Reads ----------------------------------------------------------------------------------------

_END = rb"(?:\r\n|\r(?!\n)|\n)"
_BLOCK = re.compile(rb".*?" + _END + _END + rb"|.+", re.DOTALL)
_BLANK_LINE = re.compile(rb"(?:^|" + _END + rb")" + _END + rb"\Z")

#: How the network delivers a stream -> the reads. The place at which one is cut comes on top.
DELIVERIES: dict[str, Callable[[bytes], list[bytes]]] = {
    "event by event": lambda stream: _BLOCK.findall(stream),
    "all at once": lambda stream: [stream],
    "byte by byte": lambda stream: [stream[at : at + 1] for at in range(len(stream))],
}


def deliver(stream: bytes, cut: int = 0, delivery: str = "event by event") -> list[bytes]:
    """The reads of a stream, one of them cut in two after `cut` bytes; 0: nothing is cut.

    >>> deliver(b"data: a\\n\\ndata: b\\n\\n", cut=3)
    [b'dat', b'a: a\\n\\n', b'data: b\\n\\n']
    """
    if delivery not in DELIVERIES:
        raise UsageError(f"delivery {delivery!r} is none of {', '.join(DELIVERIES)}")
    _allow(stream, cut)
    reads, at = [], 0
    for read in DELIVERIES[delivery](stream):
        here = cut - at
        inside = 0 < here < len(read)
        reads += [read[:here], read[here:]] if inside else [read]
        at += len(read)
    return reads


def _allow(stream: bytes, cut: int) -> None:
    last = max(len(stream) - 1, 0)
    if not 0 <= cut <= last:
        raise UsageError(
            f"cut={cut}: a stream of {len(stream)} bytes allows 0 (nothing is cut) to {last}"
        )


# --- What a reader makes of them ------------------------------------------------------------------


class Outcome(msgspec.Struct, frozen=True):
    """What one reader gives for some reads, or what it raises."""

    events: tuple[str, ...] = ()
    error: str = ""


#: Characters of an exception that are kept.
MOST_WORDS = 200


def outcome(reader: Reader, reads: Sequence[bytes]) -> Outcome:
    """Run a reader; what it raises is its outcome."""
    try:
        return Outcome(_kept(reader(reads), sum(map(len, reads))))
    except Exception as why:  # a naive reader's, or a learner's: it is what the table is about
        return Outcome(error=f"{type(why).__name__}: {_words(why)}"[:MOST_WORDS])


def _kept(found: Iterable[object], size: int) -> tuple[str, ...]:
    """As much of what a reader gives as bytes came: no right answer needs more."""
    kept, room = list[str](), size + 1
    for each in found:
        text = each if isinstance(each, str) else repr(each)
        kept.append(text[:room])
        room -= len(text) + 1
        if room <= 0:
            break
    return tuple(kept)


def _words(why: Exception) -> str:
    try:
        return str(why)
    except Exception:  # its own `__str__` raises
        return "(it has no text)"


def outcomes(
    reader: Reader, stream: bytes = STREAM, delivery: str = "event by event"
) -> tuple[Outcome, ...]:
    """What a reader gives at every place: the first is the stream without a cut.

    Byte by byte there is nothing left to cut, so there is that one outcome only.
    """
    places = range(1 if delivery == "byte by byte" else max(len(stream), 1))
    return tuple(outcome(reader, deliver(stream, cut, delivery)) for cut in places)


def failing(
    reader: Reader, stream: bytes = STREAM, delivery: str = "event by event"
) -> tuple[int, ...]:
    """The places at which a cut makes a reader give something else than the stream says.

    Place 7 is between the seventh byte and the eighth. Byte by byte, every place is cut at once:
    then it is all of them or none.
    """
    right, found = expected(stream), outcomes(reader, stream, delivery)
    places = range(1, len(stream))
    return tuple(cut for cut in places if found[cut % len(found)] != right)


def expected(stream: bytes) -> Outcome:
    """What a stream says: by hand for ours; of another one, what the decoder makes of the whole."""
    return Outcome(EXPECTED if stream == STREAM else tuple(sse_decoder([stream])))


# --- What can be seen -----------------------------------------------------------------------------

#: Characters that nobody sees -> the sign that is shown.
_SIGNS = {
    "\n": "LF",
    "\r": "CR",
    "\t": "TAB",
    "\0": "NUL",
    " ": "␣",
    "\ufeff": "BOM",
    "\u2028": "LS",
    "\u2029": "PS",
    "\x85": "NEL",
}


class Unit(msgspec.Struct, frozen=True):
    """One character of a stream, with its bytes; `sign` is what is shown for it."""

    at: int
    data: bytes
    sign: str


def units(stream: bytes) -> Iterator[Unit]:
    """The characters of a stream; a byte that is part of none stands alone."""
    at = 0
    while at < len(stream):
        char, size = _character(stream[at : at + 4])
        yield Unit(at, stream[at : at + size], _sign(char))
        at += size


def _character(data: bytes) -> tuple[str, int]:
    for size in range(1, len(data) + 1):
        try:
            return data[:size].decode(), size
        except UnicodeDecodeError:
            continue
    return "\ufffd", 1


def _sign(char: str) -> str:
    return _SIGNS.get(char) or (char if char.isprintable() else f"{ord(char):X}")


def shown(text: str) -> str:
    """Put a text in one line; what cannot be seen in it has a sign, but for the spaces.

    >>> shown("up\\u2028down")
    'up⟨LS⟩down'
    """
    return "".join(
        char if char == " " or char.isprintable() else f"⟨{_sign(char)}⟩" for char in text
    )


def where(stream: bytes, cut: int) -> str:
    """What the place of a cut is inside of, or between, in words."""
    _allow(stream, cut)
    if cut == 0:
        return "not cut"
    unit = next(unit for unit in units(stream) if unit.at <= cut < unit.at + len(unit.data))
    if unit.at < cut:
        named = f"U+{ord(unit.data.decode()):04X}" if len(unit.sign) > 1 else unit.sign
        what = "the byte order mark" if unit.sign == "BOM" else named
        return f"inside {what}, which has {len(unit.data)} bytes"
    if stream[cut - 1 : cut + 1] == b"\r\n":
        return "between CR and LF"
    if _BLANK_LINE.search(stream[:cut]):
        return "between two blocks"
    return "between two lines" if stream[cut - 1] in b"\r\n" else "inside a line"
