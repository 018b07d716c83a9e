"""Secrets out of a recording, on its way in: each of their bytes becomes `*`, and nothing else.

    >>> masked_text("write to alice@example.com")
    ('write to *****************', (('e-mail address', 1),))

No length changes, so every chunk, time, offset and frame stays what it was, and a masked recording
is judged like its original. A secret is found where it is cut in two by the stream, where its
letters are escapes, and in each place that repeats it; the result holds none of it.

Not found are: a secret without a form (a name, a street, a password in a sentence), one that a
model's probabilities repeat token by token (`logprobs`), and one inside base64. And two secrets of
one length are equal afterwards. Where a reader has to tell two things apart by nothing else (two
keys of an object, two calls without an id, two pieces of arguments by path), it then cannot, and
holds the answer; and a fault that shows only inside a secret (two pieces of it in the wrong order)
shows no more. `convert` says so where the verdict on an answer changes by it.

Read next: `masking_kinds.py`, what is a secret; `masking_pieces.py`, how fragments are joined.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from streamlab.streams.masking_kinds import KINDS, Kind
from streamlab.streams.masking_pieces import Piece, pieces_of
from streamlab.streams.masking_text import Found, Range, Unescaped, secrets_in, unescaped
from streamlab.streams.recording import Chunk, Recording

__all__ = ["KINDS", "Counts", "Kind", "masked", "masked_text"]

#: What was masked: (kind, how many different ones), in the order of `KINDS`.
Counts = tuple[tuple[str, int], ...]

#: Between two texts that are searched as one: no secret goes on over it.
_APART = b'"\n"'


def masked(recording: Recording, wire: str | None = None) -> tuple[Recording, Counts]:
    """A recording without its secrets, and how many of which kind it had.

    The recording itself where there are none. Takes time and memory in proportion to its size.
    """
    found: Found = defaultdict(set)
    data = recording.data
    ranges = _secret_ranges(data, wire or recording.wire, found)
    model, note = (_masked_text(text, found) for text in (recording.model, recording.note))
    if not found:
        return recording, ()
    hidden = bytearray(data)
    for start, end in ranges:
        hidden[start:end] = b"*" * (end - start)
    chunks = tuple(_chunked(bytes(hidden), recording.chunks))
    clean = msgspec.structs.replace(recording, chunks=chunks, model=model, note=note)
    return clean, _counts(found)


def masked_text(text: str) -> tuple[str, Counts]:
    """A short text without its secrets: a URL, a header, a name."""
    found: Found = defaultdict(set)
    return _masked_text(text, found), _counts(found)


def _masked_text(text: str, found: Found) -> str:
    raw = bytearray(text.encode("utf-8", "surrogatepass"))
    for start, end in secrets_in(bytes(raw), found):
        raw[start:end] = b"*" * (end - start)
    return raw.decode("utf-8", "surrogatepass")


def _counts(found: Found) -> Counts:
    names = dict.fromkeys(kind.name for kind in KINDS)
    return tuple((name, len(found[name])) for name in names if name in found)


def _chunked(data: bytes, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Bytes in the chunks that the original came in."""
    at = 0
    for t, old in chunks:
        yield Chunk(t, data[at : at + len(old)])
        at += len(old)


def _secret_ranges(data: bytes, wire: str | None, found: Found) -> list[Range]:
    """The ranges of a body that are secrets; they may overlap."""
    joined = _Joined(data)
    pieces = pieces_of(data, wire)
    at = 0
    for start, end in pieces.taken:
        joined.add(((at, start),))
        at = max(at, end)
    joined.add(((at, len(data)),))
    for segment in pieces.segments.values():
        joined.apart()
        for piece in segment:
            joined.add(piece, escaped=True)
    joined.apart()
    return [each for run in secrets_in(joined.text(), found) for each in joined.origin(*run)]


class _Joined:
    """Ranges of a body that are read as one text, and the way back."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._texts: list[bytes] = []
        self._size = 0
        self._starts = array("q")  # of each piece, in the text
        self._pieces: list[tuple[Piece, bool]] = []
        self._last: tuple[Range, Unescaped] | None = None

    def add(self, piece: Piece, escaped: bool = False) -> None:
        """Append a range; `escaped`, as the inside of a JSON string, perhaps in several places."""
        start, end = piece[0]
        text = self._data[start:end]
        if text:
            self._starts.append(self._size)
            self._pieces.append((piece, escaped))
            self._append(unescaped(text).text if escaped else text)

    def apart(self) -> None:
        """Let what comes next be a text of its own."""
        self._starts.append(self._size)
        self._pieces.append(((), False))
        self._append(_APART)

    def text(self) -> bytes:
        """All of it."""
        return b"".join(self._texts)

    def origin(self, start: int, end: int) -> Iterator[Range]:
        """The ranges of the body that a range of the text comes from."""
        n = bisect_right(self._starts, start) - 1
        while start < end:
            upto = self._starts[n + 1] if n + 1 < len(self._starts) else self._size
            upto, at = min(upto, end), self._starts[n]
            piece, escaped = self._pieces[n]
            for place in piece:
                base = place[0]
                within = (start - at, upto - at)
                ranges = self._read(place).spread(*within) if escaped else (within,)
                yield from ((base + a, base + b) for a, b in ranges)
            start, n = upto, n + 1

    def _read(self, place: Range) -> Unescaped:
        """The text of a string; of the last one it is kept, since it may hold many secrets."""
        if self._last is None or self._last[0] != place:
            self._last = (place, unescaped(self._data[slice(*place)]))
        return self._last[1]

    def _append(self, text: bytes) -> None:
        self._texts.append(text)
        self._size += len(text)
