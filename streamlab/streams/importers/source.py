"""The bytes of a file, whatever it is compressed with, as a file to read from; and its first bytes.

gzip and zstd are recognised by their first bytes, not by a name, also one inside the other. What
comes out is decompressed piece by piece and bounded, so that a small file cannot become a large
one in memory. One that stops short gives what is there, and says so afterwards (`short`).
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterator
from typing import IO

from streamlab.errors import WireError
from streamlab.streams.importers.inflate import decoder_for, magic_of
from streamlab.streams.recording import reason

__all__ = ["MAX_INFLATED", "Source"]

#: First bytes that tell the form of a file.
HEAD_SIZE = 64 * 1024

#: Bytes that may come out of a compressed file.
MAX_INFLATED = 512 * 1024 * 1024

#: How often a file may be compressed.
MAX_LAYERS = 3

#: First bytes of UTF-16, as `>` of Windows PowerShell writes whatever a program gives it.
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Pieces(io.RawIOBase):
    """An iterator of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes], close: Callable[[], object]) -> None:
        self._pieces, self._close_it = pieces, close
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            self._close_it()
        super().close()


class Source:
    """An opened file: its `head`, its `stream` (from the first byte on), and where it is `short`.

    Raises `WireError`, naming the file, here and in reading from the stream.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.name = name
        self._short = ""
        try:
            self.head, pieces = _peek(_blocks(file, name))
            for _ in range(MAX_LAYERS):
                encoding = magic_of(self.head)
                if not encoding:
                    break
                self.head, pieces = _peek(self._inflated(pieces, encoding))
            else:
                if magic_of(self.head):
                    raise WireError(f"it is compressed more than {MAX_LAYERS} times", name)
            if self.head.startswith(UTF_16):
                self.head, pieces = _peek(_utf8(pieces))
        except BaseException:
            _close(file, name)
            raise
        raw = Pieces(pieces, lambda: _close(file, name))
        self.stream: IO[bytes] = io.BufferedReader(raw, HEAD_SIZE)

    def short(self) -> str:
        """Where the compressed data stops before its own end, known when all is read; or ""."""
        return self._short

    def whole(self, most: int) -> bytes:
        """All bytes, at most so many."""
        data = self.stream.read(most + 1)
        if len(data) > most:
            raise WireError(f"more than {most:,} bytes, which is too much for a capture", self.name)
        return data

    def _inflated(self, blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
        decoder, came, size = decoder_for(encoding), 0, 0
        try:
            for block in blocks:
                came += len(block)
                for piece in decoder.feed(block):
                    size += len(piece)
                    if size > MAX_INFLATED:
                        said = (
                            f"more than {MAX_INFLATED:,} bytes come out of {came:,} of {encoding}"
                        )
                        raise WireError(said, self.name)
                    yield piece
        except WireError as why:
            if why.where:  # it is not the decoder's
                raise
            raise WireError(f"the {encoding} data is broken: {why}", self.name) from None
        if not decoder.whole:
            self._short = f"{self.name}: the {encoding} data stops before its end"


def _utf8(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Text in UTF-16, in UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for piece in pieces:
        yield decoder.decode(piece).encode("utf-8", "surrogatepass")
    yield decoder.decode(b"", True).encode("utf-8", "surrogatepass")


def _peek(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes, and all of them."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= HEAD_SIZE:
            break

    def again() -> Iterator[bytes]:
        yield head
        yield from pieces

    return head, again()


def _blocks(file: IO[bytes], name: str) -> Iterator[bytes]:
    try:
        while block := file.read(HEAD_SIZE):
            yield block
    except (OSError, ValueError) as why:
        raise WireError(reason(why), name) from None


def _close(file: IO[bytes], name: str) -> None:
    if name != "-":
        file.close()
