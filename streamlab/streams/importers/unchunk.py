"""Undo the chunked transfer coding (RFC 9112, section 7.1), where a capture has kept it."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["Unchunk", "is_chunked"]

#: A chunk's first line: its size in hex, maybe an extension. No event stream and no JSON begins so.
_SIZE = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]{0,200})?\r\n")

#: Bytes of such a line.
MAX_SIZE_LINE = 220


def is_chunked(head: bytes) -> bool:
    """Whether these first bytes are still framed as chunks."""
    return _SIZE.match(head) is not None


class Unchunk:
    """Takes framed bytes, gives the body; bytes that keep no such frame are given as they are."""

    def __init__(self) -> None:
        self.whole = False
        self._rest = b""
        self._left = 0  # bytes of the chunk that are still to come
        self._raw = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self.whole:
            return
        data, at = self._rest + data, 0
        while at < len(data) and not self._raw:
            if self._left:
                piece = data[at : at + self._left]
                self._left -= len(piece)
                at += len(piece)
                yield piece
                continue
            start = at + 2 if data.startswith(b"\r\n", at) else at  # the end of the chunk before
            found = _SIZE.match(data, start)
            if found is None:
                self._raw = len(data) - start > MAX_SIZE_LINE
                break
            self._left, at = int(found[1], 16), found.end()
            if self._left == 0:
                self.whole, self._rest = True, b""
                return
        self._rest = b"" if self._raw else data[at:]
        if self._raw and at < len(data):
            yield data[at:]
