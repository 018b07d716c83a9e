"""One JSON array of events, as frames: Gemini without `alt=sse`, and files that keep a stream so.

The array arrives in pieces like any stream, so its elements are found while it grows: only strings
and brackets count, and no byte is looked at more than three times. Bounded and indifferent
to how the bytes are split, like `sse.py`. Whether an element is JSON is for its reader to say.
"""

from __future__ import annotations

import re

from .sse import BOM, MAX_FRAME, Frame, Overrun

__all__ = ["JSONArrayDecoder"]

#: What changes nothing: whole strings, and all bytes but brackets and (between elements) commas.
#: The quantifiers are possessive: nothing is ever tried again.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BETWEEN = re.compile(rb'(?:[^"\[\]{},]++|' + _STRING + rb")*+", re.DOTALL)
_WITHIN = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+", re.DOTALL)

#: Levels of brackets that are followed at once; no chunk of an answer has as many.
LEVELS = 16


def _nested(levels: int) -> bytes:
    """A pattern of a value in brackets that are nested no deeper."""
    plain, inner = rb'[^"\[\]{}]*+', _STRING
    for _ in range(levels):
        value = rb"[\[{]" + plain + rb"(?:(?:" + inner + rb")" + plain + rb")*+[\]}]"
        inner = _STRING + rb"|" + value
    return value


#: Nearly every element is this: all of it has come, and its brackets are not nested deep. The comma
#: before it may stand in a line of its own, as the vendor writes it.
_WHOLE = re.compile(rb"(?:\s{0,2},)?(\s*+" + _nested(LEVELS) + rb")", re.DOTALL)

#: What counts in a string that has not come whole.
_IN_STRING = re.compile(rb'["\\]')


class JSONArrayDecoder:
    """Decode one array; each element is a frame without a name.

    An object is a frame as soon as its bracket closes; anything else when what follows it comes.
    A frame's range is that of its element: the commas and the white space belong to nobody.

    >>> [frame.data for frame in JSONArrayDecoder().feed(b'[{"a": 1}, {"b"')]
    [b'{"a": 1}']
    """

    LEFT = "the array of events is not closed, or something follows it"

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self.max_frame = max_frame
        self.overrun: Overrun | None = None
        self.left: Frame | None = None  # what was no element when the stream ended
        self._number = 0
        self._at = 0  # offset of the first byte kept in _rest
        self._rest = bytearray()
        self._seen = 0  # how much of _rest has been looked at
        self._depth = 0
        self._in_string = False
        self._closed = False

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take the bytes of one read; return the elements that they complete."""
        if self.overrun:
            return []
        self._rest += chunk
        if self._at == 0 and self._depth == 0 and self._rest.startswith(BOM):
            self._skip(len(BOM))
        frames: list[Frame] = []
        begun = 0  # where in _rest the element begins that is being read
        while not self._closed and self.overrun is None:
            if self._depth == 1 and self._seen == begun:
                whole = _WHOLE.match(self._rest, begun)
                if whole is not None:
                    begun = self._seen = whole.end()
                    self._take(whole.start(1), begun, frames)
                    continue
            at = self._next()
            if at is None:
                break
            end = self._ends(at)
            if end is not None:
                self._take(begun, end, frames)
                begun = self._seen
        self._skip(begun)
        if len(self._rest) > self.max_frame and self.overrun is None:
            self.overrun = Overrun(self._at, self.max_frame)
        if self.overrun:
            self._rest.clear()
        return frames

    def end(self) -> list[Frame]:
        """Nothing more comes; an element that its bracket has not closed is `left`."""
        data, start = _stripped(self._rest, self._at)
        if not self.overrun and (data or not self._closed):
            self.left = Frame(self._number + 1, "", data, start, start + len(data))
        self._rest.clear()
        return []

    def _next(self) -> int | None:
        """Where the next byte is that counts; None where it has not come yet."""
        if self._in_string:
            return self._next_in_string()
        run = (_WITHIN if self._depth > 1 else _BETWEEN).match(self._rest, self._seen)
        at = run.end() if run else self._seen
        self._seen = min(at + 1, len(self._rest))
        return at if at < len(self._rest) else None

    def _next_in_string(self) -> int | None:
        found = _IN_STRING.search(self._rest, self._seen)
        if found is None:
            self._seen = len(self._rest)
            return None
        at = found.start()
        escapes = self._rest[at] == ord("\\")
        if escapes and at + 1 == len(self._rest):  # what it escapes has not come yet
            self._seen = at
            return None
        self._seen = at + 1 + escapes
        return at

    def _ends(self, at: int) -> int | None:
        """Follow the byte at a place that counts; where an element ends, if one ends by it."""
        byte = bytes(self._rest[at : at + 1])
        if byte == b'"':  # of a string that has not come whole
            self._in_string = not self._in_string
        elif byte in (b"[", b"{"):
            self._depth += 1
            return at if self._depth == 1 else None  # the array's own bracket: before it is nothing
        elif byte in (b"]", b"}"):
            self._depth -= 1
            self._closed = self._depth == 0
            return at if self._closed else at + 1 if self._depth == 1 else None
        elif byte == b"," and self._depth == 1:
            return at
        return None

    def _take(self, begun: int, end: int, frames: list[Frame]) -> None:
        if end - begun > self.max_frame:  # white space counts: it is kept until the element ends
            self.overrun = Overrun(self._at + begun, self.max_frame)
            return
        data, start = _stripped(self._rest[begun:end], self._at + begun)
        if data:
            self._number += 1
            frames.append(Frame(self._number, "", data, start, start + len(data)))

    def _skip(self, size: int) -> None:
        del self._rest[:size]
        self._at += size
        self._seen = max(0, self._seen - size)


def _stripped(raw: bytearray, at: int) -> tuple[bytes, int]:
    """Some bytes from offset `at` without the white space around them, and where they start."""
    data = bytes(raw.lstrip())
    return data.rstrip(), at + len(raw) - len(data)
