"""One JSON array of events, as frames: Gemini without `alt=sse`, and files that keep a stream so.

The array arrives in pieces like any stream, so its elements are found while it grows: only strings
and brackets count, and no byte is looked at twice. Bounded and indifferent to how the bytes are
split, like `sse.py`.
"""

from __future__ import annotations

import re

from .sse import BOM, MAX_FRAME, Frame, Overrun

__all__ = ["JSONArrayDecoder"]

#: The bytes that can change the depth, open or close a string, or end an element.
_OUTSIDE, _INSIDE = re.compile(rb'["\[\]{},]'), re.compile(rb'["\\]')


class JSONArrayDecoder:
    """Decode one array; each element is a frame without a name.

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
        while not self._closed:
            found = (_INSIDE if self._in_string else _OUTSIDE).search(self._rest, self._seen)
            if found is None:
                self._seen = max(self._seen, len(self._rest))
                break
            at, byte = found.start(), found.group()
            if byte == b"\\" and at + 1 >= len(self._rest):  # what it escapes has not come yet
                self._seen = at
                break
            self._seen = at + (2 if byte == b"\\" else 1)
            if self._ends_element(byte):
                self._take(begun, at, frames)
                begun = self._seen
        self._skip(begun)
        if len(self._rest) > self.max_frame:
            self.overrun = Overrun(self._at, self.max_frame)
            self._rest.clear()
        return frames

    def end(self) -> list[Frame]:
        """Nothing more comes; an element that its bracket has not closed is `left`."""
        data = bytes(self._rest).strip()
        if not self.overrun and (data or not self._closed):
            self.left = Frame(self._number + 1, "", data, self._at, self._at + len(self._rest))
        self._rest.clear()
        return []

    def _ends_element(self, byte: bytes) -> bool:
        """Follow one byte that counts; whether an element, or the array's head, ends with it."""
        if byte == b'"':
            self._in_string = not self._in_string
        elif byte in b"[{":
            self._depth += 1
            return self._depth == 1
        elif byte in b"]}":
            self._depth -= 1
            self._closed = self._depth <= 0
            return self._depth <= 1
        return byte == b"," and self._depth == 1

    def _take(self, begun: int, end: int, frames: list[Frame]) -> None:
        data = bytes(self._rest[begun:end]).strip()
        if len(data) > self.max_frame:
            self.overrun = Overrun(self._at + begun, self.max_frame)
        if data and not self.overrun:
            self._number += 1
            start = self._at + begun
            frames.append(Frame(self._number, "", data, start, start + end - begun))

    def _skip(self, size: int) -> None:
        del self._rest[:size]
        self._at += size
        self._seen = max(0, self._seen - size)
