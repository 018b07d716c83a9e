"""One JSON event a line, as frames: the form in which many projects keep a stream's payloads.

Such a file holds no event names, no comments and no reads; what is left is the order of the events.
Bounded and indifferent to how the bytes are split, like `sse.py`.
"""

from __future__ import annotations

import msgspec

from .payload import NotJSON, parse
from .sse import BOM, MAX_FRAME, Frame, Overrun

__all__ = ["JSONLinesDecoder"]


class JSONLinesDecoder:
    """One JSON event a line, as frames without a name.

    A body whose first line is not JSON by itself (an error reply, nicely indented) is one frame.
    A last line needs no newline: a file, unlike a stream, has an end of its own. One that is cut
    short is no frame: it is what is `left`, as an unfinished block is in an event stream.
    """

    LEFT = "the last line is cut short"

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self.max_frame = max_frame
        self.overrun: Overrun | None = None
        self.by_line: bool | None = None  # None until the first line has told
        self.left: Frame | None = None  # the frame that a last line would have been, were it whole
        self._number = 0
        self._at = 0  # offset of the first byte kept in _rest
        self._rest: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take the bytes of one read; return the frames that they complete."""
        if self.overrun:
            return []
        self._rest.append(chunk)
        self._size += len(chunk)
        frames: list[Frame] = []
        if b"\n" in chunk and self.by_line is not False:
            *lines, last = b"".join(self._rest).split(b"\n")
            for number, line in enumerate(lines):
                if not self._take(line, len(line) + 1, frames):
                    last = b"\n".join([*lines[number:], last])
                    break
            self._rest, self._size = [last], len(last)
        if self._size > self.max_frame:
            self.overrun, self._rest = Overrun(self._at, self.max_frame), []
        return frames

    def end(self) -> list[Frame]:
        """The last line, or the whole body, that no newline has closed; see also `left`."""
        line, frames = b"".join(self._rest), list[Frame]()
        self._rest, self._size = [], 0
        if not self.overrun:
            cut = _is_cut(line) if self.by_line is None else self.by_line and not _is_json(line)
            self.by_line = True
            self._take(line, len(line), frames)
            if cut and frames:
                self.left = frames.pop()
        return frames

    def _take(self, line: bytes, size: int, frames: list[Frame]) -> bool:
        """Make a frame of a line; False where it turns out that lines mean nothing here."""
        data = line.strip()
        if self._at == 0:
            data = data.removeprefix(BOM)
        if data and self.by_line is None:
            self.by_line = _is_json(data)
            if not self.by_line:
                return False
        if len(line) > self.max_frame:
            self.overrun = Overrun(self._at, self.max_frame)
        elif data and not self.overrun:
            self._number += 1
            frames.append(Frame(self._number, "", data, self._at, self._at + size))
        self._at += size
        return True


def _is_json(data: bytes) -> bool:
    """Whether some bytes are one JSON value."""
    try:
        parse(data)
    except NotJSON:
        return False
    return True


def _is_cut(line: bytes) -> bool:
    """Whether the only line is JSON that stops too early; anything else is a body of another kind.

    msgspec tells these apart: its decoder says "truncated" where it wanted more bytes.
    """
    try:
        msgspec.json.decode(line.removeprefix(BOM))
    except msgspec.DecodeError as why:
        return "truncated" in str(why)
    except (ValueError, RecursionError):
        return False
    return False
