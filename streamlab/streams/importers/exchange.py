"""What every capture gives: exchanges, a request and its answer each; and when one is a stream.

The importers differ in how they find these values in a file. What becomes of one is the same for
all, and is here: is it a stream, are its bytes still framed or compressed, how did it end.

A capture that knows only when the first and the last byte came gives a recording *without* times:
all content at one of the two moments would be a measurement that nobody made. The two are in
`About`. Captures that know when each chunk came keep every time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from streamlab.errors import WireError
from streamlab.streams.importers.inflate import Decoder, decoder_for, magic_of
from streamlab.streams.importers.unchunk import Unchunk, is_chunked
from streamlab.streams.recording import Chunk, Recording
from streamlab.wire.reader import Bounds, Reader

__all__ = ["MAX_BODY", "Exchange", "decoded", "is_stream", "recording_of"]

#: Bytes that may come out of the bodies of a file.
MAX_BODY = 256 * 1024 * 1024

#: Bytes of a body that tell whether it is in a wire format.
SNIFFED = 64 * 1024

#: Types of a body that is a stream of events.
STREAMS = re.compile(
    r"text/event-stream|application/(x-ndjson|ndjson|jsonl|x-jsonlines|json-lines|stream\+json)",
    re.I,
)

#: Where models are asked: an answer from there that is no stream is one that should have been.
PATHS = re.compile(
    r"(/messages|/chat/completions|/completions|/responses|/interactions|:streamGenerateContent)/?$"
)


class Exchange(msgspec.Struct, frozen=True):
    """A request and its answer, as a capture has it."""

    where: str = ""  #: which of the file's: "entry 3"
    method: str = ""
    url: str = ""
    at: float | None = None  #: when the request was sent, in seconds since 1970
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()  #: of the answer; names in lower case
    chunks: tuple[Chunk, ...] | None = None  #: None: the capture kept no body
    ending: str = "eof"
    end_t: float | None = None  #: only where the chunks have times
    first_byte_s: float | None = None  #: seconds since the request was sent
    end_s: float | None = None
    note: str = ""  #: what else is to be said, such as why there is no body

    def header(self, name: str) -> str:
        """One of the answer's headers; "" where there is none."""
        return next((value for key, value in self.headers if key == name), "")


def is_stream(exchange: Exchange) -> bool:
    """Whether an answer is a stream of events, or the error that came in its place.

    Its body must be decoded. Redirects, and answers that only say wait, are none.
    """
    status = exchange.status or 200
    if status < 200 or 300 <= status < 400 or exchange.method == "OPTIONS":
        return False
    if STREAMS.search(exchange.header("content-type")):
        return True
    path = exchange.url.partition("?")[0]
    asked = not exchange.url or bool(PATHS.search(path))
    if exchange.chunks is None:
        unsaid = not exchange.header("content-type") or status >= 400
        return bool(exchange.url) and asked and unsaid
    head = _head(exchange.chunks)
    if head and exchange.status is None and not exchange.url and not exchange.headers:
        return True  # nothing is known but the bytes: what they are, their reader says
    if asked and (status >= 400 or head.lstrip()[:1] == b"<"):
        return True
    return _in_a_wire_format(head)


def _in_a_wire_format(head: bytes) -> bool:
    """Whether a body is recognised. One JSON object alone is a whole answer, and no stream."""
    reader = Reader(bounds=Bounds(frame_bytes=SNIFFED, bytes=SNIFFED + 1))
    reader.feed(head)
    if reader.wire is None:
        reader.end("cut")
    return reader.wire is not None and (reader.frames > 1 or head.lstrip()[:1] != b"{")


def _head(chunks: Iterable[Chunk]) -> bytes:
    head = b""
    for chunk in chunks:
        head += chunk.data[:SNIFFED]
        if len(head) >= SNIFFED:
            break
    return head[:SNIFFED]


def decoded(exchange: Exchange, most: int = MAX_BODY) -> Exchange:
    """Undo what is left of chunked transfer and of compression; at most `most` bytes come of it.

    Tools differ in what they keep, so the bytes decide, not the headers: what looks decoded stays.
    A body that stops inside its framing, or short of its length, was cut. One that cannot be
    decoded counts as not kept, and the note says why.
    """
    if not exchange.chunks:
        return exchange
    try:
        chunks, whole = _plain(exchange, exchange.chunks, most)
    except WireError as why:
        return msgspec.structs.replace(exchange, chunks=None, note=f"its body is unreadable: {why}")
    ending = "cut" if exchange.ending == "eof" and not whole else exchange.ending
    return msgspec.structs.replace(exchange, chunks=chunks, ending=ending)


def _plain(
    exchange: Exchange, chunks: tuple[Chunk, ...], most: int
) -> tuple[tuple[Chunk, ...], bool]:
    """Decoded chunks, and whether all of them came."""
    head, whole = _head(chunks), True
    coded = exchange.header("content-encoding").strip().lower()
    if is_chunked(head):
        chunks, whole = _through(chunks, Unchunk(), most)
        head = _head(chunks)
    encoding = magic_of(head) or ("" if _readable(head) else coded)
    if encoding and encoding != "identity":
        chunks, ended = _through(chunks, decoder_for(encoding), most)
        return chunks, whole and ended
    length = exchange.header("content-length")
    if coded in ("", "identity") and length.isdecimal():
        whole = whole and sum(len(chunk.data) for chunk in chunks) >= int(length[:12])
    return chunks, whole


def _through(
    chunks: Iterable[Chunk], decoder: Decoder, most: int
) -> tuple[tuple[Chunk, ...], bool]:
    """Chunks decoded, each at its own time; and whether that came to its end."""
    found, size = [], 0
    for chunk in chunks:
        pieces = []
        for piece in decoder.feed(chunk.data):
            size += len(piece)
            if size > most:
                raise WireError(f"more than {most:,} bytes come out of it")
            pieces.append(piece)
        if data := b"".join(pieces):
            found.append(Chunk(chunk.t, data))
    return tuple(found), decoder.whole


def _readable(head: bytes) -> bool:
    """Whether these can be the first bytes of text: no control characters, and valid UTF-8."""
    text = head[:256].decode("utf-8", "replace")
    strange = sum(sign == "\ufffd" or (sign < " " and sign not in "\t\r\n") for sign in text)
    return strange * 20 <= len(text)


def recording_of(exchange: Exchange) -> Recording:
    """The stream of a decoded exchange, with what else is known of it in a note."""
    status = "" if exchange.status is None else f"HTTP {exchange.status}"
    kind = exchange.header("content-type").partition(";")[0].strip()[:80]
    through = exchange.header("via") or exchange.header("server")
    said = [status, status and kind, through and f"via {through[:80]}"]
    times = (("first byte", exchange.first_byte_s), ("all", exchange.end_s))
    said += [f"{what} after {t:.3f} s" for what, t in times if t is not None]
    note = "; ".join(filter(None, (", ".join(filter(None, said)), exchange.note)))
    return Recording(exchange.chunks or (), exchange.ending, end_t=exchange.end_t, note=note)
