"""Overhear one byte stream: a `Tap` hands everything on unchanged, a `Tape` keeps it, with times.

The tap stands between an HTTP client and its network. It passes each chunk and each exception on
as it comes, and tells the tape first; so what breaks a stream is seen by both, and by the client
exactly as if nobody had listened. The tape writes every line at once, so that a crash loses
nothing, and takes its ending from how the reading stopped.

One thing is done for the tape alone: a client that reads `[DONE]` may hang up there, as OpenAI's
does, and nobody would know how the stream ended. So what is left of the body is read, for a moment.

Read next: `live.py`, which puts a tap on every stream of an SDK's client.
"""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import IO, Any

from streamlab.errors import UsageError
from streamlab.streams.recording import (
    Chunk,
    Recording,
    read,
)
from streamlab.streams.timed_lines import chunk_line, end_line, header_line

try:
    import httpx2
except ImportError:
    raise UsageError(
        "recording a client needs httpx2, which comes with the SDK: pip install 'anthropic>=2.14'"
    ) from None

__all__ = ["DECODED", "Clock", "Tap", "Tape", "httpx2"]

#: What the client's transport says, and the ending that it means; the first that fits.
ENDING_OF: tuple[tuple[type[BaseException], str], ...] = (
    (httpx2.TimeoutException, "timeout"),
    (httpx2.RemoteProtocolError, "cut"),
    (httpx2.TransportError, "reset"),
    (BaseException, "cancelled"),  # close(), leaving the loop, a cancelled task, Ctrl-C
)

#: Compressions that can be read back without another library; a client may offer only these.
DECODED = ("gzip", "deflate")

#: The end of what a stream has to say, where its format has such a line; and how much to keep of
#: what came, to see it.
DONE, MOST_TAIL = re.compile(rb"(?:^|[\r\n])data: ?\[DONE\]\s*\Z"), 64

#: Seconds for the end of a body, after which a client that has hung up need not wait any longer.
REST_SECONDS = 5.0

Clock = Callable[[], float]


class Tape:
    """One stream as it comes: each chunk gets its time, and the first ending counts.

    As a context manager around the reading, it takes its ending from how the block was left.
    """

    def __init__(
        self, file: IO[bytes] | None, clock: Clock, header: Recording, coding: str
    ) -> None:
        self.over = False
        self.done = False  #: whether the last line so far is `[DONE]`
        self._tail = b""
        self.problem: OSError | None = None
        self._file, self._clock, self._header = file, clock, header
        self._chunks: list[Chunk] = []
        self._end: tuple[float, str] = (0.0, "cancelled")
        self._lock = threading.Lock()  # a client may be closed by another thread than reads it
        self._decoder = zlib.decompressobj(zlib.MAX_WBITS | 32) if coding in DECODED else None
        self._write(header_line(header.wire, header.source, header.model))

    def add(self, data: bytes) -> None:
        """Keep the bytes of one read."""
        with self._lock:
            chunk = Chunk(self._clock(), self._decoded(data))
            if chunk.data and not self.over:
                if self._file is None:
                    self._chunks.append(chunk)
                self._write(chunk_line(chunk))
                self._tail = (self._tail + chunk.data)[-MOST_TAIL:]
                self.done = DONE.search(self._tail) is not None

    def end(self, ending: str) -> None:
        """Say how it stopped; only the first word counts."""
        with self._lock:
            if self.over:
                return
            self.over = True
            self._end = (self._clock(), ending)
            self._write(end_line(*self._end))
            self._close()

    def recording(self) -> Recording:
        """What is on the tape."""
        if self._file is not None:
            return read(self._file.name)
        end_t, ending = self._end
        head = self._header
        return Recording(tuple(self._chunks), ending, head.wire, end_t, head.source, head.model)

    def __enter__(self) -> Tape:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, at: TracebackType | None
    ) -> None:
        if why is None:
            self.end("eof")
        else:
            self.end(next(word for kind, word in ENDING_OF if isinstance(why, kind)))

    def _decoded(self, data: bytes) -> bytes:
        """Decompress a copy; what is not compressed as announced is kept as it came."""
        try:
            return self._decoder.decompress(data) if self._decoder else data
        except zlib.error:
            self._decoder = None
            return data

    def _write(self, line: bytes) -> None:
        """Write at once. A full disk is the recorder's problem, and never the client's."""
        if self._file is not None and self.problem is None:
            try:
                self._file.write(line)
                self._file.flush()
            except OSError as why:
                self.problem = why

    def _close(self) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except OSError as why:
                self.problem = self.problem or why


class Tap(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A response's byte stream, overheard."""

    def __init__(self, inner: Any, tape: Tape) -> None:
        self._inner, self._tape = inner, tape
        self._chunks: Iterator[bytes] = iter(())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)  # such as `elapsed`, where the client looks for it

    def __iter__(self) -> Iterator[bytes]:
        self._chunks = iter(self._inner)
        with self._tape:
            for chunk in self._chunks:
                self._tape.add(chunk)
                yield chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = self._inner.__aiter__()
        try:
            with self._tape:
                async for chunk in chunks:
                    self._tape.add(chunk)
                    yield chunk
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()

    def close(self) -> None:
        if self._tape.done and not self._tape.over:
            rest = threading.Thread(target=self._rest, name="streamlab tap", daemon=True)
            rest.start()  # a thread, since no read here can be given a time of its own
            rest.join(REST_SECONDS)
        self._tape.end("cancelled")  # unless it was over
        self._inner.close()

    def _rest(self) -> None:
        """Read on to the end of the body. What goes wrong there is on the tape: the client left."""
        with suppress(Exception), self._tape:
            for chunk in self._chunks:
                self._tape.add(chunk)

    async def aclose(self) -> None:
        self._tape.end("cancelled")
        await self._inner.aclose()
